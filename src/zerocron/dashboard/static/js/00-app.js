/* What makes pages lively. Every page works without it: it only adds. No inline handlers, nothing from elsewhere. */
"use strict";

(() => {
  const words = document.documentElement.lang;
  const relative = new Intl.RelativeTimeFormat(words, { numeric: "auto", style: "short" });
  const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];

  function ago(seconds) {
    const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
    return relative.format(Math.trunc(seconds / size), unit);
  }

  function left(seconds) {
    const whole = Math.max(0, Math.ceil(seconds));
    const days = Math.floor(whole / 86400);
    const hours = Math.floor((whole % 86400) / 3600);
    const minutes = Math.floor((whole % 3600) / 60);
    const day = words === "fr" ? "j" : "d";
    if (days) return `${days} ${day} ${hours} h`;
    if (hours) return `${hours} h ${minutes} min`;
    if (minutes) return `${minutes} min ${whole % 60} s`;
    return `${whole} s`;
  }

  /* The reader's clock may be wrong: what is shown counts from when the server made the page. */
  const madeAt = Date.parse(document.documentElement.dataset.now ?? "") || Date.now();
  const startedAt = performance.now();
  const now = () => madeAt + performance.now() - startedAt;

  function tick() {
    for (const each of document.querySelectorAll("time[data-live]")) {
      const seconds = (Date.parse(each.dateTime) - now()) / 1000;
      const text = each.dataset.live === "until" ? left(seconds) : ago(seconds);
      if (each.textContent !== text) each.textContent = text;
    }
  }

  setInterval(tick, 1000);

  function dress(root) {
    for (const box of root.querySelectorAll("[data-copy]:not([data-dressed])")) {
      box.dataset.dressed = "";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "button button-small";
      button.textContent = document.documentElement.dataset.wordCopy;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(box.querySelector("code").textContent);
        button.textContent = document.documentElement.dataset.wordCopied;
        setTimeout(() => (button.textContent = document.documentElement.dataset.wordCopy), 2000);
      });
      box.append(button);
    }
    for (const each of root.querySelectorAll("[data-submits]")) {
      each.addEventListener("change", () => each.form.requestSubmit());
    }
    root.querySelector("[data-focus]")?.focus();
  }

  /* On a phone the places are a line that scrolls: where one is has to be in sight. The page itself stays. */
  function showPlace() {
    const here = document.querySelector(".places [aria-current]");
    const line = here?.closest("nav");
    if (!line) return;
    const [own, whole] = [here.getBoundingClientRect(), line.getBoundingClientRect()];
    line.scrollLeft += own.left + own.width / 2 - whole.left - whole.width / 2;
  }

  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.ask ?? event.submitter?.dataset.ask;
    if (question && !window.confirm(question)) event.preventDefault();
  });

  document.addEventListener("htmx:load", (event) => dress(event.target));
  document.addEventListener("DOMContentLoaded", () => {
    showPlace();
    dress(document);
    tick();
  });
})();
