// How the timeline is painted: its axis, lanes and runs. Never by colour alone: failures are striped, lost runs hatched, cancelled ones outlined.
import { colour } from "./colours.js";

export const AXIS = 22; // px of the time axis, which stays in view
export const BAR = { node: 16, card: 12 }; // px of a lane with one row
const STEPS = [300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400]; // s between two marks of the axis
const MARK = 76; // px that a mark's text needs

const zone = document.documentElement.dataset.timeZone || undefined;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(zone ? { timeZone: zone } : {}) });
const day = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", ...(zone ? { timeZone: zone } : {}) });

export function colours() {
  return {
    text: colour("--tblr-body-color"), muted: colour("--tblr-secondary-color"), line: colour("--tblr-border-color"), surface: colour("--tblr-bg-surface"),
    busy: colour("--busy"), good: colour("--good"), bad: colour("--bad"), warn: colour("--idle"), off: colour("--free"), unknown: colour("--unknown-a"), soft: colour("--unknown-b"), stripe: colour("--tblr-bg-surface-secondary"),
  };
}

export function paintAxis(line, tones) {
  const { pen, data, size } = line;
  const length = data.end - data.start;
  const room = Math.max(1, Math.floor((size.width - line.gutter) / MARK));
  const step = STEPS.find((seconds) => length / seconds <= room) || STEPS[STEPS.length - 1];
  const shift = new Date(data.start * 1000).getTimezoneOffset() * 60;
  pen.fillStyle = tones.muted;
  pen.strokeStyle = tones.line;
  pen.lineWidth = 1;
  for (let at = Math.ceil((data.start - shift) / step) * step + shift; at < data.end; at += step) {
    const x = Math.round(line.x(at - data.start)) + 0.5;
    pen.beginPath();
    pen.moveTo(x, AXIS - 4);
    pen.lineTo(x, size.height);
    pen.stroke();
    const date = new Date(at * 1000);
    const text = clock.format(date);
    const label = text === "00:00" || step >= 86400 ? day.format(date) : text;
    if (x + pen.measureText(label).width + 3 < size.width) pen.fillText(label, x + 3, AXIS / 2);
  }
}

export function paintLane(line, index, top, tones) {
  const { pen, size } = line;
  const lane = line.data.lanes[index];
  const height = line.height(index);
  if (index % 2) {
    pen.fillStyle = tones.stripe;
    pen.fillRect(0, top - 1, size.width, height + 2);
  }
  pen.fillStyle = line.chosen && line.chosen.lane === index ? tones.text : tones.muted;
  pen.fillText(fit(pen, lane.name, line.gutter - 8), 4, top + Math.min(height, BAR[line.by]) / 2 + 0.5);
  lane.bars.forEach((bar, place) => paintBar(line, index, place, bar, top, tones));
}

function paintBar(line, index, place, [run, from, to, row], top, tones) {
  const { pen } = line;
  const job = line.data.jobs[run];
  const lane = line.data.lanes[index];
  const height = lane.rows > 1 ? line.row - 1 : BAR[line.by];
  const y = top + (lane.rows > 1 ? row * line.row : 0);
  const x = line.x(from);
  const width = Math.max(2, line.x(to) - x - 1);
  if (job.kind === "off") {
    pen.strokeStyle = tones.off;
    pen.lineWidth = 1.5;
    pen.setLineDash([3, 2]);
    pen.strokeRect(x + 0.75, y + 0.75, Math.max(0.5, width - 1.5), height - 1.5);
    pen.setLineDash([]);
  } else {
    pen.fillStyle = job.kind === "unknown" ? tones.soft : tones[job.kind] || tones.off;
    pen.fillRect(x, y, width, height);
    if (job.kind === "bad" || job.kind === "unknown") hatch(pen, x, y, width, height, job.kind === "bad" ? tones.surface : tones.unknown);
  }
  if (height >= 12 && width > 34) {
    pen.fillStyle = job.kind === "off" || job.kind === "unknown" ? tones.text : tones.surface;
    const text = fit(pen, job.job, width - 6); // a few letters of a name tell nothing
    if (text === job.job || text.length > 8) pen.fillText(text, x + 3, y + height / 2 + 0.5);
  }
  if (line.chosen && line.data.lanes[line.chosen.lane].bars[line.chosen.bar][0] === run) {
    const here = line.chosen.lane === index && line.chosen.bar === place;
    pen.strokeStyle = tones.text;
    pen.lineWidth = here ? 2 : 1;
    pen.strokeRect(x - 0.5, y - 0.5, width + 1, height + 1);
  }
}

function hatch(pen, x, y, width, height, tone) {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, width, height);
  pen.clip();
  pen.strokeStyle = tone;
  pen.globalAlpha = 0.6;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = x - height; at < x + width; at += 6) {
    pen.moveTo(at, y + height);
    pen.lineTo(at + height, y);
  }
  pen.stroke();
  pen.restore();
}

function fit(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let length = text.length;
  while (length > 1 && pen.measureText(`${text.slice(0, length)}…`).width > width) length -= 1;
  return `${text.slice(0, length)}…`;
}
