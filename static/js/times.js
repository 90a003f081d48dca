// Times: relative on the page, exact in the viewer's zone on hover. The server sends UTC.
const zone = document.documentElement.dataset.timeZone || undefined;
const exactFormat = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium", timeStyle: "medium", ...(zone ? { timeZone: zone } : {}),
});
const zoneName = zone || Intl.DateTimeFormat().resolvedOptions().timeZone;

export function exact(date) {
  return `${exactFormat.format(date)} (${zoneName})`;
}

export function relative(date, now = Date.now()) {
  const seconds = Math.round((now - date.getTime()) / 1000);
  const ahead = seconds < 0;
  const span = Math.abs(seconds);
  if (span < 2) return "now";
  const [value, unit] =
    span < 120 ? [span, "s"] : span < 7200 ? [Math.round(span / 60), "min"]
    : span < 172800 ? [Math.round(span / 3600), "h"] : [Math.round(span / 86400), "d"];
  return ahead ? `in ${value}\u202f${unit}` : `${value}\u202f${unit} ago`;
}

export function paintTime(element) {
  const date = new Date(element.getAttribute("datetime"));
  if (Number.isNaN(date.getTime())) return;
  const text = element.hasAttribute("data-exact") ? exact(date) : relative(date);
  if (element.textContent !== text) element.textContent = text;
}

export function paintTimes(root = document) {
  root.querySelectorAll("time[datetime]").forEach(paintTime);
}

export function startTimes() {
  paintTimes();
  setInterval(() => {
    if (!document.hidden) paintTimes();
  }, 1000);
  document.addEventListener("htmx:afterSwap", () => paintTimes());
}
