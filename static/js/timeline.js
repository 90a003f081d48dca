// What ran where: a canvas of lanes (nodes or cards) over time. Only what is in view is drawn; hover, keys and Enter work on runs.
import { onLive } from "./live.js";
import { AXIS, BAR, colours, paintAxis, paintLane } from "./timeline-paint.js";
import { exact } from "./times.js";

const ROW = 8; // px of each row where runs overlap, and where there is room for all
const WIDE_ROW = 15;
const FEW_ROWS = 36;
const GAP = 3;
const REFETCH = 10000; // ms between two fetches that news ask for

class Timeline {
  constructor(root) {
    this.root = root;
    this.view = root.querySelector(".timeline-view");
    this.canvas = root.querySelector("canvas");
    this.space = root.querySelector(".timeline-space");
    this.tip = root.querySelector(".timeline-tip");
    this.note = root.querySelector("[data-timeline-note]");
    this.pen = this.canvas.getContext("2d");
    this.span = root.dataset.span;
    this.by = "node";
    this.end = null; // null: up to now
    this.data = null;
    this.chosen = null; // {lane, bar}
    this.asked = 0;
    this.fetchedAt = 0;
    this.listen();
    this.load();
  }

  listen() {
    const section = this.root.closest("section");
    section.querySelectorAll("[data-span]").forEach((button) => button.tagName === "BUTTON" && button.addEventListener("click", () => this.choose("[data-span]", button, () => { this.span = button.dataset.span; })));
    section.querySelectorAll("[data-by]").forEach((button) => button.addEventListener("click", () => this.choose("[data-by]", button, () => { this.by = button.dataset.by; })));
    section.querySelectorAll("[data-shift]").forEach((button) => button.addEventListener("click", () => this.shift(Number(button.dataset.shift))));
    this.later = section.querySelector('[data-shift="1"]');
    this.view.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.resize()).observe(this.view);
    document.addEventListener("sensaka:theme", () => {
      this.tones = null;
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => { if (document.activeElement !== this.canvas) this.pick(null); });
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => { if (!this.chosen) this.step(0, 0); });
    this.canvas.addEventListener("blur", () => this.pick(null));
    onLive((message) => {
      const { follow = "cluster", followCell = "jobs.version" } = this.root.dataset;
      if (message.topic.split(":")[0] === follow && message.values[followCell] && !message.full) this.news();
    });
  }

  choose(kind, button, set) {
    this.root.closest("section").querySelectorAll(`button${kind}`).forEach((other) => {
      other.classList.toggle("active", other === button);
      other.setAttribute("aria-pressed", String(other === button));
    });
    set();
    this.load();
  }

  shift(direction) {
    if (!this.data) return;
    const length = this.data.end - this.data.start;
    const end = this.data.end + (direction * length) / 2;
    this.end = end >= this.data.now - 1 ? null : end;
    this.load();
  }

  news() {
    if (this.end !== null || this.waiting) return;
    this.waiting = setTimeout(() => {
      this.waiting = 0;
      if (!document.hidden) this.load();
    }, Math.max(0, this.fetchedAt + REFETCH - Date.now()));
  }

  async load() {
    const mine = ++this.asked;
    this.fetchedAt = Date.now();
    const end = this.end === null ? "" : `&end=${new Date(this.end * 1000).toISOString()}`;
    let data;
    try {
      const answer = await fetch(`${this.root.dataset.url}?${this.root.dataset.query || ""}&span=${this.span}&by=${this.by}${end}`);
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      data = await answer.json();
    } catch (error) {
      this.note.textContent = `What ran could not be loaded: ${error.message}.`;
      return;
    }
    if (mine !== this.asked) return;
    this.data = data;
    this.chosen = null;
    this.tip.hidden = true;
    this.later.disabled = this.end === null;
    this.place();
    this.say();
    this.resize();
    this.root.dataset.ready = `${this.by}-${this.span}`;
  }

  // Where each lane begins, so that a position is found without walking all of them.
  place() {
    const rows = this.data.lanes.reduce((sum, lane) => sum + lane.rows, 0);
    this.row = rows <= FEW_ROWS ? WIDE_ROW : ROW;
    let top = 0;
    this.tops = this.data.lanes.map((lane) => {
      const at = top;
      top += (lane.rows > 1 ? lane.rows * this.row : BAR[this.by]) + GAP;
      return at;
    });
    this.total = top;
  }

  say() {
    const { jobs, lanes, truncated, unknown } = this.data;
    const { noun = "run", nouns = "runs" } = this.root.dataset;
    const rows = this.by === "card" ? "cards" : "nodes";
    const parts = [`${jobs.length.toLocaleString()} ${jobs.length === 1 ? noun : nouns} on ${lanes.length.toLocaleString()} ${rows}, ${exact(new Date(this.data.start * 1000))} to ${exact(new Date(this.data.end * 1000))}.`];
    if (truncated) parts.push("There are more: the oldest are left out. Choose a shorter span.");
    if (this.by === "card" && unknown) parts.push(`Runs whose cards are unknown are drawn by node only: ${unknown.toLocaleString()}.`);
    this.note.textContent = parts.join(" ");
    const list = this.root.querySelector("[data-timeline-list]");
    if (!list) return;
    const iso = (at) => new Date(at * 1000).toISOString();
    list.href = `${this.root.dataset.jobUrl}?cluster=${this.root.dataset.cluster}&since=${iso(this.data.start)}&until=${iso(this.data.end)}`;
  }

  resize() {
    if (!this.data) return;
    const most = Math.min(innerHeight * 0.6, 560);
    const height = Math.max(AXIS + BAR.node, Math.min(most, AXIS + this.total));
    this.view.style.height = `${height + 2}px`;
    const width = this.view.clientWidth;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.space.style.height = `${Math.max(0, AXIS + this.total - height)}px`;
    this.size = { width, height, ratio };
    this.gutter = Math.min(width * 0.32, this.by === "card" ? 150 : 120);
    this.draw();
  }

  x(seconds) {
    const { start, end } = this.data;
    return this.gutter + (seconds / (end - start)) * (this.size.width - this.gutter - 4);
  }

  draw() {
    if (!this.data || !this.size) return;
    const { pen, size } = this;
    this.tones ??= colours(); // asking the page for a colour costs; they change with the theme only
    const { tones } = this;
    pen.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    pen.font = `11px ${getComputedStyle(document.body).fontFamily}`;
    pen.textBaseline = "middle";
    paintAxis(this, tones);
    pen.save();
    pen.beginPath();
    pen.rect(0, AXIS, size.width, size.height - AXIS);
    pen.clip();
    const scrolled = this.view.scrollTop;
    for (let lane = this.at(scrolled); lane < this.tops.length && this.tops[lane] < scrolled + size.height; lane++) paintLane(this, lane, AXIS + this.tops[lane] - scrolled, tones);
    pen.restore();
  }

  height(index) {
    return (index + 1 < this.tops.length ? this.tops[index + 1] : this.total) - this.tops[index] - GAP;
  }

  // The lane at a distance from the top of all lanes.
  at(distance) {
    let low = 0;
    let high = this.tops.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.tops[middle] <= distance) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  find(event) {
    if (!this.data || !this.size) return null;
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top - AXIS + this.view.scrollTop;
    if (event.clientY - box.top < AXIS || y > this.total) return null;
    const lane = this.at(y);
    const found = this.data.lanes[lane];
    if (!found) return null;
    const row = Math.min(found.rows - 1, Math.floor((y - this.tops[lane]) / this.row));
    const bar = found.bars.findIndex(([, from, to, own]) => (found.rows === 1 || own === row) && x >= this.x(from) - 1 && x <= Math.max(this.x(to), this.x(from) + 3));
    return bar < 0 ? null : { lane, bar };
  }

  hover(event) {
    const found = this.find(event);
    this.canvas.style.cursor = found ? "pointer" : "";
    if (found || document.activeElement !== this.canvas) this.pick(found);
  }

  click(event) {
    const found = this.find(event);
    if (!found) return;
    const same = this.chosen && this.chosen.lane === found.lane && this.chosen.bar === found.bar;
    this.pick(found);
    if (event.pointerType !== "touch" || (same && !this.tip.hidden)) this.open();
  }

  key(event) {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0] };
    if (event.key === "Enter") this.open();
    else if (event.key === "Escape") this.pick(null);
    else if (moves[event.key]) this.step(...moves[event.key]);
    else return;
    event.preventDefault();
  }

  step(down, right) {
    if (!this.data || this.data.jobs.length === 0) return;
    const { lanes } = this.data;
    if (!this.chosen) {
      const lane = Math.max(0, lanes.findIndex((one, place) => one.bars.length && place >= this.at(this.view.scrollTop)));
      if (lanes[lane].bars.length) this.pick({ lane, bar: 0 }, true);
      return;
    }
    let { lane, bar } = this.chosen;
    const now = lanes[lane].bars[bar];
    if (right) bar = Math.min(Math.max(bar + right, 0), lanes[lane].bars.length - 1);
    else {
      const way = Math.sign(down);
      let wanted = Math.min(Math.max(lane + down, 0), lanes.length - 1);
      while (lanes[wanted] && lanes[wanted].bars.length === 0) wanted += way;
      if (!lanes[wanted]) return;
      lane = wanted;
      // the run there that is nearest in time
      const middle = (now[1] + now[2]) / 2;
      const apart = ([, from, to]) => (middle < from ? from - middle : middle > to ? middle - to : 0);
      bar = lanes[lane].bars.reduce((best, one, place, all) => (apart(one) < apart(all[best]) ? place : best), 0);
    }
    this.pick({ lane, bar }, true);
  }

  open() {
    if (this.chosen) location.href = `${this.root.dataset.jobUrl}${this.data.jobs[this.data.lanes[this.chosen.lane].bars[this.chosen.bar][0]].id}/`;
  }

  pick(found, follow = false) {
    const same = found && this.chosen && found.lane === this.chosen.lane && found.bar === this.chosen.bar;
    if (same || (!found && !this.chosen)) return;
    this.chosen = found;
    this.tip.hidden = !found;
    if (found) {
      const top = this.tops[found.lane];
      const height = this.height(found.lane);
      const shown = this.size.height - AXIS;
      if (follow && top < this.view.scrollTop) this.view.scrollTop = top;
      else if (follow && top + height > this.view.scrollTop + shown) this.view.scrollTop = top + height - shown;
      this.tell(found);
    }
    this.draw();
  }

  tell({ lane, bar }) {
    const [run, from, to] = this.data.lanes[lane].bars[bar];
    const job = this.data.jobs[run];
    const at = (seconds) => exact(new Date((this.data.start + seconds) * 1000));
    const cards = job.known ? `${job.cards} ${job.cards === 1 ? "card" : "cards"}` : "cards unknown";
    this.tip.textContent = [
      `${job.job} ${job.name}`.trim(), `${job.state}, ${[job.user, job.account].filter(Boolean).join(", ")}`, `${this.data.lanes[lane].name}, ${cards} in all`,
      `${from === 0 ? "from before " : ""}${at(from)}`, job.over ? `to ${at(to)}` : "still going on",
    ].join("\n");
    const left = Math.min(Math.max(this.x(from), 0), Math.max(0, this.size.width - this.tip.offsetWidth - 4));
    const below = this.tops[lane] - this.view.scrollTop + AXIS + this.height(lane) + 6;
    const room = this.view.offsetHeight - below > this.tip.offsetHeight;
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${room ? below : Math.max(0, below - this.height(lane) - 12 - this.tip.offsetHeight)}px`;
  }
}

document.querySelectorAll("[data-timeline]").forEach((root) => new Timeline(root));
