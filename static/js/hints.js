// One tooltip for every element with data-hint, and for every time, whose exact moment it says: by pointer, by focus, by tap. Escape closes it.
import { exact } from "./times.js";

const OWNERS = "[data-hint], time[datetime]";
let box = null;
let owner = null;

function show(element) {
  const moment = element.matches("time[datetime]") ? new Date(element.getAttribute("datetime")) : null;
  const text = [element.dataset.hint, moment && exact(moment)].filter(Boolean).join("\n");
  if (!text) return;
  if (!box) {
    box = document.createElement("div");
    box.id = "hint";
    box.className = "hint";
    box.setAttribute("role", "tooltip");
    document.body.append(box);
  }
  owner = element;
  let age = "";
  if (element.dataset.at && !moment) {
    const seconds = Math.max(0, Math.round(Date.now() / 1000 - Number(element.dataset.at)));
    age = `\nRead ${seconds < 120 ? `${seconds} s` : seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`} ago`;
  }
  box.textContent = text + age;
  box.hidden = false;
  const place = element.getBoundingClientRect();
  const own = box.getBoundingClientRect();
  const left = Math.min(Math.max(8, place.left + place.width / 2 - own.width / 2), innerWidth - own.width - 8);
  const above = place.top - own.height - 8;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${(above > 4 ? above : place.bottom + 8) + scrollY}px`;
  element.setAttribute("aria-describedby", "hint");
}

function hide() {
  if (!box) return;
  box.hidden = true;
  if (owner) owner.removeAttribute("aria-describedby");
  owner = null;
}

export function startHints() {
  const over = (event) => {
    const element = event.target.closest ? event.target.closest(OWNERS) : null;
    if (element && element !== owner) show(element);
    else if (!element) hide();
  };
  document.addEventListener("pointerover", over);
  document.addEventListener("focusin", over);
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}
