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
      rows: part.matches(".page-rows") ? [...part.rows] : null,
    };
  }

  function isSelecting(part) {
    const selection = document.getSelection();
    return selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  }

  /* A page of a list that has grown ends where the next one begins, however many rows came in before it meanwhile: what
     they pushed out of it stays, and no row is there twice. */
  const PUSHED_OUT_MAX = 200;

  function close(part, before) {
    const lists = [...part.parentElement.querySelectorAll(":scope > .page-rows")];
    const rows = [...part.rows];
    const behind = new Set(lists.slice(lists.indexOf(part) + 1).flatMap((each) => [...each.rows].map((row) => row.id)));
    const reachesNext = rows.length === 0 || behind.has(rows.at(-1).id);
    if (part.nextElementSibling && !reachesNext) {
      const known = before.map((row) => row.id);
      const last = rows.map((row) => known.indexOf(row.id)).findLast((place) => place >= 0) ?? -1;
      part.append(...before.slice(last + 1).slice(0, PUSHED_OUT_MAX));
    }
    const seen = new Set();
    for (const row of lists.flatMap((each) => [...each.rows])) {
      if (seen.has(row.id)) row.remove();
      seen.add(row.id);
    }
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
    for (const [id, { checked, open, reached, name, rows }] of kept) {
      const part = document.getElementById(id);
      if (part === null) continue;
      if (rows) close(part, rows);
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
