"use strict";
/* The table of steps: searched, sorted, and filled a page at a time. */
(() => {
  const { data, language, number, percent } = window.npufuse;
  const body = document.getElementById("steps-body");
  if (!body || !data || !data.step) return;
  const search = document.getElementById("steps-search");
  const beyond = document.getElementById("steps-beyond");
  const more = document.getElementById("steps-more");
  const count = document.getElementById("steps-count");
  const page = 200;
  const told = { step: String, phase: (one) => phases[language()][one] || one, rel_diff: percent };
  const phases = { en: { warmup: "warm-up", steady: "steady" }, zh: { warmup: "预热", steady: "稳定" } };
  const columns = ["step", "phase", "base_loss", "fused_loss", "rel_diff", "base_time", "fused_time"];
  let order = { column: "step", down: false };
  let found = [];
  let shown = page;

  const over = (place) => {
    const one = data.rel_diff[place];
    return data.limit !== null && (typeof one === "string" || (one !== null && one > data.limit));
  };
  /* "12" is a step, "10-20" a range of steps, ">0.5%" a difference, anything else is looked for in every cell. */
  const wanted = (text) => {
    const range = text.match(/^(\d+)\s*(?:-|\.\.|–)\s*(\d+)$/);
    if (range) return (place) => data.step[place] >= Number(range[1]) && data.step[place] <= Number(range[2]);
    const than = text.match(/^([<>])\s*([\d.eE+-]+)\s*(%?)$/);
    if (than) {
      const edge = Number(than[2]) / (than[3] ? 100 : 1);
      return (place) => {
        const one = data.rel_diff[place];
        if (typeof one === "string") return than[1] === ">";
        return one !== null && (than[1] === ">" ? one > edge : one < edge);
      };
    }
    if (/^\d+$/.test(text)) return (place) => data.step[place] === Number(text);
    return (place) => columns.some((name) => (told[name] || number)(data[name][place]).toLowerCase().includes(text));
  };
  const rank = (value) => (value === null ? -Infinity : value === "NaN" || value === "Infinity" ? Infinity : value === "-Infinity" ? -Number.MAX_VALUE : value);

  const fill = () => {
    const rows = found.slice(0, shown).map((place) => {
      const row = document.createElement("tr");
      if (over(place)) row.className = "beyond";
      if (data.step[place] === data.first_fail_step) row.classList.add("first");
      for (const name of columns) row.insertCell().textContent = (told[name] || number)(data[name][place]);
      return row;
    });
    body.replaceChildren(...rows);
    more.hidden = found.length <= shown;
    count.textContent = language() === "zh" ? `显示 ${rows.length} / ${found.length} 行，共 ${data.step.length} 步` : `${rows.length} of ${found.length} rows shown, ${data.step.length} steps`;
  };
  const sift = () => {
    const text = search.value.trim().toLowerCase();
    const fits = text ? wanted(text) : () => true;
    found = data.step.map((_, place) => place).filter((place) => fits(place) && (!beyond.checked || over(place)));
    const values = data[order.column];
    found.sort((one, other) => {
      const first = rank(values[one]), second = rank(values[other]);
      return (first < second ? -1 : first > second ? 1 : one - other) * (order.down ? -1 : 1);
    });
    shown = page;
    fill();
  };
  search.addEventListener("input", sift);
  beyond.addEventListener("change", sift);
  more.addEventListener("click", () => { shown += page * 5; fill(); });
  for (const one of document.querySelectorAll("[data-sort]")) {
    one.addEventListener("click", () => {
      order = { column: one.dataset.sort, down: order.column === one.dataset.sort ? !order.down : false };
      for (const other of document.querySelectorAll("[data-sort]")) {
        other.closest("th").setAttribute("aria-sort", other === one ? (order.down ? "descending" : "ascending") : "none");
      }
      sift();
    });
  }
  document.addEventListener("npufuse-language", fill);
  sift();
})();
