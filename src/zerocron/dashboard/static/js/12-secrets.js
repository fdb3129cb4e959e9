/* A value is hidden while it is typed; this shows it to whoever wants to see what they typed. */
"use strict";

(() => {
  document.addEventListener("DOMContentLoaded", () => {
    for (const area of document.querySelectorAll("textarea[data-masked]")) {
      const label = document.createElement("label");
      const box = document.createElement("input");
      label.className = "check small";
      box.type = "checkbox";
      box.addEventListener("change", () => area.classList.toggle("masked", !box.checked));
      label.append(box, document.createTextNode(area.dataset.masked));
      area.after(label);
    }
  });
})();
