// What every page does: times, tables by keyboard, live values, hints, the search palette, small conveniences.
import "./dialogs.js";
import { startHints } from "./hints.js";
import { startLive } from "./live.js";
import { startPalette } from "./palette.js";
import { startTables } from "./tables.js";
import { startTimes } from "./times.js";

startTimes();
startHints();
startPalette();
startLive();
startTables();

document.addEventListener("click", async (event) => {
  const theme = event.target.closest("[data-theme-switch]");
  if (theme) window.sensakaTheme.toggle();
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    const source = document.querySelector(copy.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent.trim());
      copy.dataset.done = "1";
      setTimeout(() => delete copy.dataset.done, 1500);
    } catch {
      const range = document.createRange(); // without permission: select it, so that Ctrl-C does
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
  }
});

// A select that changes what is shown submits its form at once.
document.addEventListener("change", (event) => {
  const form = event.target.closest("form[data-auto-submit]");
  if (form && !event.target.matches("input[type=search], input[type=text]")) form.requestSubmit();
});

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-theme-choice]")) return;
  window.sensakaTheme.set(event.target.value);
});

// Fields that belong to one choice of another field: data-when="name=value".
function showDependents(root = document) {
  root.querySelectorAll("[data-when]").forEach((element) => {
    const [name, value] = element.dataset.when.split("=");
    const form = element.closest("form");
    const field = form && form.elements[name];
    if (!field) return;
    element.hidden = !value.split("|").includes(field.value);
  });
}
showDependents();
document.addEventListener("change", () => showDependents());
document.addEventListener("htmx:afterSwap", () => showDependents());
