// Tables by keyboard: Tab goes from row to row, the arrow keys to every cell that has something to say.
const STOPS = "a, button, summary, [data-hint][tabindex], time[tabindex]";
const TYPED = "input, select, textarea, .dropdown-menu *";

/** Cells with a hint are no stops of Tab: a list of a hundred cards would have seven hundred. */
function leaveOut(root = document) {
  root.querySelectorAll("table .cell[tabindex='0'], table time[tabindex='0']").forEach((cell) => {
    cell.tabIndex = -1;
  });
}

function shown(element) {
  return element.getClientRects().length > 0;
}

function sideways(element, row, step) {
  const stops = [...row.querySelectorAll(STOPS)].filter((stop) => shown(stop) && !stop.closest(".dropdown-menu"));
  return stops[stops.indexOf(element) + step];
}

function upOrDown(element, row, step) {
  const column = element.closest("td, th").cellIndex;
  for (let next = row; (next = step > 0 ? next.nextElementSibling : next.previousElementSibling); ) {
    const cell = next.cells[column];
    const stop = cell && [...cell.querySelectorAll(STOPS)].find(shown);
    if (stop) return stop;
  }
  return undefined;
}

export function startTables() {
  leaveOut();
  document.addEventListener("htmx:afterSwap", () => leaveOut());
  document.addEventListener("keydown", (event) => {
    if (!event.key.startsWith("Arrow") || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const element = event.target;
    const row = element.closest("td, th") && element.closest("tr");
    if (!row || element.matches(TYPED)) return;
    const step = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : -1;
    const open = element.getAttribute("aria-expanded") === "true"; // its menu has the arrows
    const level = event.key === "ArrowLeft" || event.key === "ArrowRight";
    const next = open ? undefined : level ? sideways(element, row, step) : upOrDown(element, row, step);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}
