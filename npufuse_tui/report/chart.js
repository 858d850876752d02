"use strict";
/* The curves: small SVG charts with a pointer and a keyboard cursor. Everything is set as text or attribute, never as markup. */
(() => {
  const { data, language, number, percent } = window.npufuse;
  if (!data || !data.step) return;
  const words = {
    en: { step: "step", baseline: "baseline", candidate: "candidate", again: "baseline, second run", warmup: "warm-up", difference: "difference",
          noise: "baseline against itself", limit: "limit", fail: "first failing step", faster: "faster", slower: "slower", ratio: "ratio" },
    zh: { step: "步", baseline: "基线", candidate: "候选", again: "基线第二次", warmup: "预热", difference: "差异",
          noise: "基线自身", limit: "限值", fail: "首个超限步", faster: "更快", slower: "更慢", ratio: "比值" },
  };
  const say = (name) => words[language()][name];
  const make = (name, attributes, parent, text) => {
    const one = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    if (text !== undefined) one.textContent = text;
    if (parent) parent.append(one);
    return one;
  };
  const real = (value) => typeof value === "number" && Number.isFinite(value);

  const linearTicks = (low, high, wanted) => {
    const rough = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough);
    const ticks = [];
    for (let at = Math.ceil(low / size); at * size <= high + size * 1e-9; at += 1) ticks.push(+(at * size).toPrecision(12));
    return ticks;
  };
  const logTicks = (low, high) => {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const parts = last - first > 3 ? [1] : [1, 2, 5];
    const ticks = [];
    const skip = Math.max(1, Math.ceil((last - first) / 6));
    for (let power = first; power <= last; power += skip) for (const part of parts) ticks.push(+(part * 10 ** power).toPrecision(6));
    return ticks.filter((one) => one >= low && one <= high);
  };

  class Chart {
    constructor(box, build) {
      this.box = box;
      this.build = build;
      this.log = box.dataset.scale === "log";
      this.still = box.closest("[aria-hidden=true]") !== null;
      this.at = null;
      this.svg = make("svg", this.still ? { "aria-hidden": "true", focusable: "false" } : { role: "slider", tabindex: "0" });
      this.tip = document.createElement("div");
      this.tip.className = "tip";
      this.tip.hidden = true;
      box.append(this.svg, this.tip);
      if (!this.still) this.listen();
      new ResizeObserver(() => this.draw()).observe(box);
      document.addEventListener("npufuse-language", () => this.draw());
    }

    listen() {
      this.svg.addEventListener("pointermove", (event) => {
        const left = event.clientX - this.svg.getBoundingClientRect().left;
        this.show(this.nearest(left));
      });
      this.svg.addEventListener("pointerleave", () => this.show(null));
      this.svg.addEventListener("blur", () => this.show(null));
      this.svg.addEventListener("focus", () => this.svg.matches(":focus-visible") && this.show(this.at ?? 0));
      this.svg.addEventListener("keydown", (event) => {
        const last = data.step.length - 1;
        const far = Math.max(10, Math.round(last / 20));
        const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -far, PageUp: far, Home: -Infinity, End: Infinity };
        if (event.key === "Escape") this.show(null);
        if (!(event.key in moves)) return;
        event.preventDefault();
        this.show(Math.min(last, Math.max(0, (this.at ?? 0) + moves[event.key])));
      });
    }

    x(step) {
      const [low, high] = this.range;
      return this.left + ((step - low) / (high - low || 1)) * (this.width - this.left - this.right);
    }

    y(value) {
      const [low, high] = this.log ? this.span.map(Math.log10) : this.span;
      const at = this.log ? Math.log10(Math.max(value, this.span[0])) : value;
      return this.height - this.bottom - ((at - low) / (high - low || 1)) * (this.height - this.top - this.bottom);
    }

    nearest(left) {
      let low = 0, high = data.step.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (this.x(data.step[middle]) < left) low = middle; else high = middle;
      }
      return Math.abs(this.x(data.step[low]) - left) <= Math.abs(this.x(data.step[high]) - left) ? low : high;
    }

    draw() {
      this.width = this.box.clientWidth;
      this.height = this.box.clientHeight;
      if (!this.width || !data.step.length) return;
      Object.assign(this, { left: 62, right: 14, top: 20, bottom: 34 });
      const plan = this.build(this.log);
      this.plan = plan;
      this.svg.replaceChildren();
      this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
      this.range = [data.step[0], data.step[data.step.length - 1]];
      const usable = (value) => real(value) && (!this.log || value > 0);
      const values = [...plan.series.flatMap((one) => one.values), ...plan.lines.map((one) => one.value)].filter(usable);
      let low = Infinity, high = -Infinity;
      for (const one of values) { if (one < low) low = one; if (one > high) high = one; }
      if (!(low <= high)) [low, high] = this.log ? [1e-6, 1] : [0, 1];
      if (low === high) [low, high] = this.log ? [low / 2, high * 2] : [low - Math.abs(low) * 0.1 - 1e-9, high + Math.abs(high) * 0.1 + 1e-9];
      const space = (high - low) * 0.05;
      this.span = this.log ? [Math.max(low / 1.3, low * 1e-3), high * 1.3] : [plan.zero ? Math.min(0, low) : low - space, high + space];
      this.frame(plan);
      for (const one of plan.bands) this.band(one);
      for (const one of plan.lines) this.line(one);
      for (const one of plan.series) this.curve(one);
      this.fail(plan);
      this.svg.setAttribute("aria-label", plan.title);
      if (!this.still) {
        this.svg.setAttribute("aria-valuemin", data.step[0]);
        this.svg.setAttribute("aria-valuemax", data.step[data.step.length - 1]);
      }
      this.cursor = make("g", {}, this.svg);
      this.show(this.tip.hidden ? null : this.at);
    }

    frame(plan) {
      const warm = data.phase.filter((one) => one === "warmup").length;
      if (plan.warmup && warm && data.phase[warm - 1] === "warmup") {
        const end = warm < data.step.length ? (this.x(data.step[warm - 1]) + this.x(data.step[warm])) / 2 : this.width - this.right;
        make("rect", { class: "warmup", x: this.left, y: this.top, width: Math.max(0, end - this.left), height: this.height - this.top - this.bottom }, this.svg);
        make("text", { x: this.left + 4, y: this.top - 6 }, this.svg, say("warmup"));
      }
      const ticks = this.log ? logTicks(...this.span) : linearTicks(...this.span, Math.max(2, Math.floor(this.height / 55)));
      for (const one of ticks) {
        make("line", { class: "grid", x1: this.left, x2: this.width - this.right, y1: this.y(one), y2: this.y(one) }, this.svg);
        make("text", { x: this.left - 7, y: this.y(one) + 4, "text-anchor": "end" }, this.svg, plan.say(one));
      }
      make("line", { class: "axis", x1: this.left, x2: this.width - this.right, y1: this.height - this.bottom, y2: this.height - this.bottom }, this.svg);
      for (const one of linearTicks(...this.range, Math.max(2, Math.floor(this.width / 90))).filter(Number.isInteger)) {
        make("text", { x: this.x(one), y: this.height - this.bottom + 16, "text-anchor": "middle" }, this.svg, one);
      }
      make("text", { x: this.width - this.right, y: this.height - 3, "text-anchor": "end" }, this.svg, say("step"));
    }

    band(one) {
      const up = [], down = [];
      data.step.forEach((step, place) => {
        if (!real(one.high[place]) || !real(one.low[place])) return;
        up.push(`${this.x(step).toFixed(1)},${this.y(one.high[place]).toFixed(2)}`);
        down.unshift(`${this.x(step).toFixed(1)},${this.y(one.low[place]).toFixed(2)}`);
      });
      if (up.length > 1) make("polygon", { class: "band", points: [...up, ...down].join(" ") }, this.svg);
    }

    line(one) {
      if (!real(one.value) || (this.log && one.value <= 0)) return;
      const at = this.y(one.value);
      make("line", { class: one.look, x1: this.left, x2: this.width - this.right, y1: at, y2: at }, this.svg);
      make("text", { class: one.look, x: this.width - this.right - 4, y: at - 5, "text-anchor": "end" }, this.svg, one.label);
    }

    curve(one) {
      let path = "", pen = "M";
      const lost = [];
      one.values.forEach((value, place) => {
        if (real(value)) {
          path += `${pen}${this.x(data.step[place]).toFixed(1)} ${this.y(value).toFixed(2)}`;
          pen = "L";
        } else {
          pen = "M";
          if (typeof value === "string") lost.push(place);
        }
      });
      make("path", { class: `${one.look} line`, d: path || "M0 0" }, this.svg);
      for (const place of lost.slice(0, 400)) {
        const x = this.x(data.step[place]), y = this.top + 6;
        make("path", { class: one.look, d: `M${x - 3} ${y - 3}L${x + 3} ${y + 3}M${x - 3} ${y + 3}L${x + 3} ${y - 3}` }, this.svg);
      }
    }

    fail(plan) {
      if (!plan.mark || data.first_fail_step === null) return;
      const x = this.x(data.first_fail_step);
      make("line", { class: "failmark", x1: x, x2: x, y1: this.top, y2: this.height - this.bottom }, this.svg);
      const late = x > this.width * 0.6;
      make("text", { class: "fail", x: x + (late ? -6 : 6), y: this.top - 6, "text-anchor": late ? "end" : "start" }, this.svg, `${say("fail")} ${data.first_fail_step}`);
    }

    show(place) {
      if (this.still || !this.cursor) return;
      this.cursor.replaceChildren();
      this.tip.hidden = place === null;
      if (place === null) return;
      this.at = place;
      const step = data.step[place], x = this.x(step);
      make("line", { class: "cursor", x1: x, x2: x, y1: this.top, y2: this.height - this.bottom }, this.cursor);
      for (const one of this.plan.series) {
        if (real(one.values[place]) && one.look !== "again") make("circle", { class: `dot ${one.look}`, cx: x, cy: this.y(one.values[place]), r: 4 }, this.cursor);
      }
      const rows = [[say("step"), `${step}${data.phase[place] === "warmup" ? ` (${say("warmup")})` : ""}`], ...this.plan.told(place)];
      const table = document.createElement("table");
      for (const [name, value] of rows) {
        const row = table.insertRow();
        row.append(Object.assign(document.createElement("th"), { textContent: name }));
        row.insertCell().textContent = value;
      }
      this.tip.replaceChildren(table);
      const room = this.width - this.tip.offsetWidth - 4;
      this.tip.style.left = `${Math.max(0, Math.min(room, x > this.width / 2 ? x - this.tip.offsetWidth - 12 : x + 12))}px`;
      this.tip.style.top = `${this.top + 8}px`;
      this.svg.setAttribute("aria-valuenow", step);
      this.svg.setAttribute("aria-valuetext", rows.map((row) => row.join(" ")).join(", "));
    }
  }

  const relative = (base, other) => (real(base) && real(other) && base !== 0 ? Math.abs(other - base) / Math.abs(base) : null);
  const title = (box) => (language() === "zh" ? box.dataset.titleZh : box.dataset.titleEn);
  const charts = {
    loss(box) {
      return () => ({
        title: title(box), zero: false, warmup: false, mark: true, say: number, lines: [],
        bands: real(data.noise) ? [{ low: data.base_loss.map((one) => (real(one) ? one - Math.abs(one) * data.noise : null)), high: data.base_loss.map((one) => (real(one) ? one + Math.abs(one) * data.noise : null)) }] : [],
        series: [
          ...(data.again_loss.length ? [{ look: "again", values: data.again_loss }] : []),
          { look: "base", values: data.base_loss },
          { look: "fused", values: data.fused_loss },
        ],
        told: (at) => [
          [say("baseline"), number(data.base_loss[at])],
          ...(data.again_loss.length ? [[say("again"), number(data.again_loss[at])]] : []),
          [say("candidate"), number(data.fused_loss[at])],
          [say("difference"), percent(data.rel_diff[at])],
        ],
      });
    },
    difference(box) {
      const noise = data.again_loss.length ? data.base_loss.map((one, place) => relative(one, data.again_loss[place])) : [];
      return (log) => ({
        title: title(box), zero: !log, warmup: false, mark: true, say: percent,
        lines: [
          { value: data.limit, look: "limit", label: `${say("limit")} ${percent(data.limit)}` },
          { value: data.noise, look: "noise", label: `${say("noise")} ${percent(data.noise)}` },
        ],
        bands: real(data.noise) ? [{ low: data.step.map(() => (log ? Math.min(data.noise, 1e-12) : 0)), high: data.step.map(() => data.noise) }] : [],
        series: [
          ...(noise.length ? [{ look: "again", values: noise.map((one) => (log && one === 0 ? null : one)) }] : []),
          { look: "fused", values: data.rel_diff.map((one) => (log && one === 0 ? null : one)) },
        ],
        told: (at) => [[say("difference"), percent(data.rel_diff[at])], ...(noise.length ? [[say("noise"), percent(noise[at])]] : []), [say("limit"), percent(data.limit)]],
      });
    },
    time(box) {
      return () => ({
        title: title(box), zero: true, warmup: true, mark: false, say: (one) => `${number(one)} s`, bands: [], lines: [],
        series: [{ look: "base", values: data.base_time }, { look: "fused", values: data.fused_time }],
        told: (at) => [[say("baseline"), `${number(data.base_time[at])} s`], [say("candidate"), `${number(data.fused_time[at])} s`]],
      });
    },
  };

  for (const box of document.querySelectorAll("[data-chart]")) {
    const chart = new Chart(box, charts[box.dataset.chart](box));
    for (const one of document.querySelectorAll(`[data-scale-of="${box.id}"]`)) {
      one.addEventListener("click", () => {
        chart.log = one.dataset.scale === "log";
        for (const other of document.querySelectorAll(`[data-scale-of="${box.id}"]`)) other.setAttribute("aria-pressed", String(other === one));
        chart.draw();
      });
    }
  }

  const interval = document.querySelector("[data-interval]");
  if (interval) {
    const [low, middle, high] = ["low", "ratio", "high"].map((name) => Number(interval.dataset[name]));
    const draw = () => {
      const width = interval.clientWidth;
      interval.replaceChildren();
      interval.setAttribute("viewBox", `0 0 ${width} 92`);
      const reach = Math.max(Math.abs(1 - low), Math.abs(high - 1), 0.01) * 1.35;
      const x = (value) => 30 + ((value - 1 + reach) / (2 * reach)) * (width - 60);
      for (const one of linearTicks(1 - reach, 1 + reach, Math.max(2, width / 140))) {
        make("line", { class: "grid", x1: x(one), x2: x(one), y1: 22, y2: 66 }, interval);
        make("text", { x: x(one), y: 82, "text-anchor": "middle" }, interval, `${+one.toPrecision(4)}`);
      }
      make("line", { class: "axis", x1: x(1), x2: x(1), y1: 16, y2: 68, "stroke-width": 2 }, interval);
      make("text", { x: x(1) - 8, y: 13, "text-anchor": "end" }, interval, `\u2190 ${say("faster")}`);
      make("text", { x: x(1) + 8, y: 13 }, interval, `${say("slower")} \u2192`);
      make("line", { class: "fused", x1: x(low), x2: x(high), y1: 44, y2: 44, "stroke-width": 6, "stroke-linecap": "round" }, interval);
      make("circle", { class: "dot fused", cx: x(middle), cy: 44, r: 7 }, interval);
    };
    new ResizeObserver(draw).observe(interval);
    document.addEventListener("npufuse-language", draw);
  }
})();
