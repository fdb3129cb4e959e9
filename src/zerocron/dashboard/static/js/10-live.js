/* Parts that refresh themselves ([data-live-part]): the reader's choices stay, and nothing is asked for in the dark. */
"use strict";

(() => {
  const kept = new Map();

  const REACHABLE = "a[href], button, input, select, textarea, summary";

  function choices(part) {
    const reached = [...part.querySelectorAll(REACHABLE)].indexOf(document.activeElement);
    return {
      reached,
      name: reached < 0 ? "" : document.activeElement.textContent,
      checked: [...part.querySelectorAll("input[type=checkbox]:checked[id]")].map((each) => each.id),
      open: [...part.querySelectorAll("details[open][id]")].map((each) => each.id),
    };
  }

  function isSelecting(part) {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  document.addEventListener("htmx:beforeRequest", (event) => {
    const part = event.detail.elt;
    if (!part.matches("[data-live-part]") || !document.hidden) return;
    part.dataset.stale = "";
    event.preventDefault();
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const part of document.querySelectorAll("[data-live-part][data-stale]")) {
      delete part.dataset.stale;
      window.htmx.trigger(part, "fresh");
    }
  });

  document.addEventListener("htmx:beforeSwap", (event) => {
    const part = event.detail.target;
    if (!part.matches?.("[data-live-part][id]")) return;
    if (event.detail.requestConfig.elt === part && isSelecting(part)) event.detail.shouldSwap = false;
    else kept.set(part.id, choices(part));
  });

  /* Whoever asked for more of a list with the keyboard goes on where it begins; the page stays where it is. */
  let isGrowing = false;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const asked = event.detail.requestConfig.elt;
    if (asked.matches("a[rel=next]")) isGrowing = asked === document.activeElement;
  });

  document.addEventListener("htmx:load", (event) => {
    if (!isGrowing || !event.target.matches(".page-rows")) return;
    isGrowing = false;
    event.target.querySelector(REACHABLE)?.focus({ preventScroll: true });
  });

  document.addEventListener("htmx:afterSwap", () => {
    for (const [id, { checked, open, reached, name }] of kept) {
      const part = document.getElementById(id);
      if (part === null) continue;
      for (const each of checked) {
        const box = document.getElementById(each);
        if (box && part.contains(box)) box.checked = true;
      }
      for (const each of open) document.getElementById(each)?.setAttribute("open", "");
      if (reached < 0 || part.contains(document.activeElement)) continue;
      const all = [...part.querySelectorAll(REACHABLE)];
      const same = all[reached]?.textContent === name ? all[reached] : all.find((each) => each.textContent === name);
      same?.focus({ preventScroll: true });
    }
    kept.clear();
    document.dispatchEvent(new CustomEvent("picked"));
  });
})();
