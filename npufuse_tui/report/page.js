"use strict";
/* The language switch, attributes in both languages, the filter of lists, and what a printer needs. */
(() => {
  const root = document.documentElement;
  const known = ["en", "zh"];

  const remembered = () => {
    const asked = new URLSearchParams(location.search).get("lang");
    if (known.includes(asked)) return asked;
    try {
      const kept = localStorage.getItem("npufuse-language");
      return known.includes(kept) ? kept : null;
    } catch (_) {
      return null; /* no storage for this page: it opens in its own language */
    }
  };

  const speak = (language) => {
    root.dataset.lang = language;
    root.lang = language === "zh" ? "zh-CN" : "en";
    for (const one of document.querySelectorAll("[data-speak]")) one.setAttribute("aria-pressed", String(one.dataset.speak === language));
    for (const one of document.querySelectorAll("[data-en]")) {
      const said = language === "zh" ? one.dataset.zh : one.dataset.en;
      if (one.dataset.attribute) one.setAttribute(one.dataset.attribute, said);
      else one.textContent = said;
    }
    document.dispatchEvent(new Event("npufuse-language"));
  };

  for (const one of document.querySelectorAll("[data-speak]")) {
    one.addEventListener("click", () => {
      try { localStorage.setItem("npufuse-language", one.dataset.speak); } catch (_) { /* as above */ }
      speak(one.dataset.speak);
    });
  }

  const filter = document.querySelector("[data-filter]");
  if (filter) {
    const rows = [...document.querySelectorAll("[data-words]")];
    const count = document.querySelector("[data-count]");
    const verdict = document.querySelector("[data-verdict-filter]");
    const sift = () => {
      const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = words.every((word) => row.dataset.words.toLowerCase().includes(word)) && (!verdict.value || row.dataset.verdict === verdict.value);
        row.hidden = !fits;
        shown += fits ? 1 : 0;
      }
      count.textContent = `${shown} / ${rows.length}`;
    };
    filter.addEventListener("input", sift);
    verdict.addEventListener("change", sift);
    sift();
  }

  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details")) one.open = true;
  });

  window.npufuse = {
    language: () => root.dataset.lang,
    data: JSON.parse(document.getElementById("data")?.textContent || "null"),
    number(value) {
      if (value === null || value === undefined) return "-";
      if (typeof value === "string") return value;
      if (value === 0) return "0";
      const size = Math.abs(value);
      return size < 1e-3 || size >= 1e6 ? value.toExponential(2) : String(+value.toPrecision(6));
    },
    percent(value) {
      return value === null || value === undefined ? "-" : typeof value === "string" ? value : `${+(value * 100).toPrecision(3)}%`;
    },
  };
  speak(remembered() || root.dataset.lang);
})();
