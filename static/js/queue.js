// An operator's own order: a line that is dropped before another opens the dialog that says what it means and asks why.
// By keyboard the same is behind each line's Move button.
let dragged = null;

const line = (event) => event.target.closest && event.target.closest("[data-queue] > [data-request]");

function mark(target, below) {
  document.querySelectorAll(".drop-before, .drop-after").forEach((other) => other.classList.remove("drop-before", "drop-after"));
  if (target) target.classList.add(below ? "drop-after" : "drop-before");
}

function lowerHalf(event, target) {
  const box = target.getBoundingClientRect();
  return event.clientY > box.top + box.height / 2;
}

// The line that the dragged one would stand before: null for the end.
function following(event, target) {
  let next = lowerHalf(event, target) ? target.nextElementSibling : target;
  if (next === dragged) next = dragged.nextElementSibling;
  return next;
}

document.addEventListener("dragstart", (event) => {
  dragged = line(event);
  if (!dragged) return;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.dataset.request);
  dragged.classList.add("dragged");
});

document.addEventListener("dragover", (event) => {
  const target = line(event);
  if (!dragged || !target || target.parentElement !== dragged.parentElement) return mark(null);
  event.preventDefault();
  mark(target === dragged ? null : target, lowerHalf(event, target));
});

document.addEventListener("dragend", () => {
  if (dragged) dragged.classList.remove("dragged");
  dragged = null;
  mark(null);
});

document.addEventListener("drop", (event) => {
  const target = line(event);
  if (!dragged || !target || target === dragged || target.parentElement !== dragged.parentElement) return;
  event.preventDefault();
  const next = following(event, target);
  if (next === dragged.nextElementSibling) return; // where it stands already
  const button = [...dragged.querySelectorAll("a[data-dialog]")].find((link) => link.pathname === dragged.dataset.move);
  const link = button.cloneNode();
  const query = new URLSearchParams(button.search);
  query.set("before", next ? next.dataset.request : dragged.parentElement.dataset.next || "");
  link.search = query.toString();
  link.hidden = true;
  dragged.append(link);
  link.click();
  link.remove();
});
