/* What the pages about people add: a password that can be looked at, a time zone that is guessed, a page that
   prints, a form that is sent once. */
"use strict";

(() => {
  function showable(input) {
    const [show, hide] = input.dataset.showable.split("|");
    const box = document.createElement("div");
    box.className = "showable";
    input.replaceWith(box);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "button button-quiet button-small";
    button.textContent = show;
    button.setAttribute("aria-controls", input.id);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      const isShown = input.type === "text";
      input.type = isShown ? "password" : "text";
      button.textContent = isShown ? show : hide;
      button.setAttribute("aria-pressed", String(!isShown));
    });
    input.form?.addEventListener("submit", () => (input.type = "password"));
    box.append(input, button);
    if (input.autofocus) input.focus();
  }

  function zone(input) {
    const guess = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (!guess || input.value || input.getAttribute("aria-invalid")) return;
    input.value = guess;
    input.closest(".field").hidden = true;
  }

  function dress(root) {
    for (const input of root.querySelectorAll("input[data-showable]")) {
      if (!input.closest(".showable")) showable(input);
    }
    for (const input of root.querySelectorAll("input[data-zone]")) zone(input);
    for (const button of root.querySelectorAll("button[data-print]")) {
      button.hidden = false;
      button.addEventListener("click", () => window.print());
    }
  }

  /* What makes something is sent once, however often one clicks; coming back to the page allows it anew. */
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-once]") || event.defaultPrevented) return;
    if (event.target.dataset.once === "sent") event.preventDefault();
    event.target.dataset.once = "sent";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-once]")) form.dataset.once = "";
  });

  document.addEventListener("htmx:load", (event) => dress(event.target));
  document.addEventListener("DOMContentLoaded", () => dress(document));
})();
