/* The form of a job: rows that grow, suggestions that fill a field, secrets that are put where one writes. */
"use strict";

(() => {
  function grow(rows) {
    const all = rows.querySelectorAll("[data-row]");
    const fresh = all[all.length - 1].cloneNode(true);
    fresh.querySelector(".error")?.remove();
    for (const each of fresh.querySelectorAll("input")) {
      each.value = "";
      each.removeAttribute("aria-invalid");
      each.removeAttribute("aria-describedby");
      each.setAttribute("aria-label", each.getAttribute("aria-label").replace(/\d+$/, String(all.length + 1)));
    }
    all[all.length - 1].after(fresh);
    return fresh;
  }

  /* A text that is too long is told before it is sent, and where it is. */
  document.addEventListener("input", (event) => {
    const most = Number(event.target.dataset?.bytesMax);
    if (!most) return;
    const isLong = event.target.value.length > most / 4 && new Blob([event.target.value]).size > most;
    event.target.setCustomValidity(isLong ? event.target.dataset.tooLong : "");
    if (isLong) event.target.reportValidity();
  });
  document.addEventListener("invalid", (event) => event.target.closest("details")?.setAttribute("open", ""), true);

  document.addEventListener("input", (event) => {
    const row = event.target.closest?.("[data-row]");
    if (row && event.target.value && !row.nextElementSibling?.matches("[data-row]")) grow(row.closest("[data-rows]"));
  });

  /* Where a secret goes: into the field of the request that was last written in. */
  let last = null;
  document.addEventListener("focusin", (event) => {
    if (event.target.matches?.('[name="headers.value"], [name="body"], [name="url"]')) last = event.target;
  });

  function insert(chip) {
    const field = last?.isConnected ? last : document.getElementById(chip.parentElement.dataset.inserts);
    field.setRangeText(chip.dataset.text, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.focus();
  }

  document.addEventListener("click", (event) => {
    const add = event.target.closest?.("[data-add-row]");
    const fill = event.target.closest?.("[data-fill]");
    const chip = event.target.closest?.("[data-text]");
    if (add) {
      event.preventDefault();
      grow(add.closest("[data-rows]")).querySelector("input").focus();
    } else if (fill) {
      event.preventDefault();
      const field = document.getElementById(fill.dataset.fill);
      field.value = fill.value;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    } else if (chip) {
      insert(chip);
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.target.matches?.("[data-text]") && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      insert(event.target);
    }
  });

  document.addEventListener("DOMContentLoaded", () => {
    for (const chip of document.querySelectorAll("[data-text]")) {
      chip.setAttribute("role", "button");
      chip.tabIndex = 0;
    }
  });
})();
