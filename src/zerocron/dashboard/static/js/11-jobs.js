/* The pages of jobs: choosing several, being asked once, and the chart that one can point at. */
"use strict";

(() => {
  /* A question that was answered here is not asked again by the page behind it. */
  document.addEventListener("submit", (event) => {
    const asked = event.target.querySelector("input[name=asked]");
    const question = event.target.dataset.ask ?? event.submitter?.dataset.ask;
    if (asked) asked.value = question && !event.defaultPrevented ? "yes" : "";
  });

  const plural = new Intl.PluralRules(document.documentElement.lang);
  const picks = () => [...document.querySelectorAll("input[data-pick]")];

  function tell() {
    const bar = document.querySelector("[data-bulk]");
    if (!bar) return;
    const all = picks();
    const count = all.filter((each) => each.checked).length;
    const whole = document.querySelector("input[data-pick-all]");
    if (whole) {
      whole.checked = count > 0 && count === all.length;
      whole.indeterminate = count > 0 && count < all.length;
    }
    bar.classList.toggle("is-empty", count === 0);
    bar.classList.toggle("is-some", count > 0);
    const told = bar.querySelector("[data-picked]");
    told.textContent = (plural.select(count) === "one" ? told.dataset.one : told.dataset.many).replace("#", count);
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) {
      for (const each of picks()) each.checked = event.target.checked;
    }
    if (event.target.matches("[data-pick-all], [data-pick]")) tell();
  });
  document.addEventListener("picked", tell);

  /* --- the chart of durations */

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const drawn = new Map();

  function draw(box) {
    const points = JSON.parse(box.dataset.points);
    if (!window.uPlot || points.length < 2) return;
    const locale = document.documentElement.lang;
    const zone = box.dataset.zone;
    const told = (options) => new Intl.DateTimeFormat(locale, { timeZone: zone, ...options });
    const at = told({ dateStyle: "medium", timeStyle: "short" });
    const day = told({ day: "numeric", month: "short" });
    const hour = told({ hour: "numeric", minute: "2-digit" });
    const second = told({ hour: "numeric", minute: "2-digit", second: "2-digit" });
    /* Days by themselves where a step is one; else hours, with the day below the first of it. */
    const instants = (_plot, splits, _axis, _space, step) => {
      const days = splits.map((each) => day.format(each * 1000));
      if (step >= 86400) return days;
      const clock = step < 60 ? second : hour;
      return splits.map((each, index) => clock.format(each * 1000) + (days[index] === days[index - 1] ? "" : `\n${days[index]}`));
    };
    const number = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
    const length = (ms) => (ms === null ? "—" : ms < 1000 ? `${number.format(ms)} ms` : `${number.format(ms / 1000)} s`);
    const isBad = (point) => point[2] === "failed" || point[2] === "lost";
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const dots = (name, label) => ({
      label,
      stroke: colour(name),
      fill: colour(name),
      paths: () => null,
      points: { show: true, size: 6, fill: colour(name) },
      value: (_plot, value) => length(value ?? null),
    });
    drawn.get(box)?.destroy();
    box.replaceChildren();
    box.classList.add("is-drawn");
    const plot = new window.uPlot(
      {
        width: box.clientWidth,
        height: 220,
        tzDate: (seconds) => window.uPlot.tzDate(new Date(seconds * 1000), zone),
        cursor: { y: false, points: { size: 8 } },
        axes: [{ ...axis, space: 80, values: instants }, { ...axis, size: 64, values: (_plot, values) => values.map(length) }],
        scales: { y: { range: (_plot, _low, high) => [0, Math.max(high * 1.1, 1)] } },
        series: [
          { label: box.dataset.wordAt, value: (_plot, value) => (value === null ? "—" : at.format(value * 1000)) },
          dots("--good-mark", box.dataset.wordGood),
          dots("--bad-mark", box.dataset.wordBad),
        ],
      },
      [
        points.map((point) => point[0]),
        points.map((point) => (isBad(point) ? null : point[1])),
        points.map((point) => (isBad(point) ? point[1] : null)),
      ],
      box,
    );
    plot.over.addEventListener("click", () => {
      const index = plot.cursor.idx;
      if (index !== null && index !== undefined) window.location.assign(`/runs/${points[index][3]}`);
    });
    drawn.set(box, plot);
  }

  function charts(root) {
    for (const box of root.querySelectorAll("[data-points]")) draw(box);
  }

  function resized() {
    for (const [box, plot] of drawn) {
      if (!box.isConnected) {
        plot.destroy();
        drawn.delete(box);
      } else plot.setSize({ width: box.clientWidth, height: 220 });
    }
  }

  let waiting;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(resized, 150);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts(document));
  document.addEventListener("htmx:load", (event) => {
    charts(event.target);
    tell();
  });
  document.addEventListener("DOMContentLoaded", () => {
    const here = document.querySelector("[data-here]");
    if (here) window.history.replaceState(null, "", here.dataset.here);
    if (!window.htmx) charts(document);
    tell();
  });
})();
