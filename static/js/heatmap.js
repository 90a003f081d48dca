// The heat map: one component at every level, from the whole fleet to one node.
import { hatch, palette, scaleColour } from "./heatmap-colours.js";
import { CELL, place } from "./heatmap-layout.js";
import { showLegend, showSelection, WORDS } from "./heatmap-panels.js";
import { onLive } from "./live.js";

const MOST_CELL = 56; // px: a map of few cards does not fill the screen
const REFRESH = 2000; // ms between two readings

class HeatMap {
  constructor(root) {
    this.root = root;
    this.view = root.querySelector(".heatmap-view");
    this.canvas = root.querySelector("canvas");
    this.pen = this.canvas.getContext("2d");
    this.tip = root.querySelector(".heatmap-tip");
    this.legend = root.querySelector("[data-heatmap-legend]");
    this.list = root.querySelector("[data-heatmap-selection]");
    this.measure = root.dataset.measure;
    this.selected = new Set();
    this.at = -1;
    this.zoom = { scale: 1, x: 0, y: 0, fitted: true };
    this.fetchedAt = 0;
    this.listen();
    this.load(true);
  }

  async load(withLayout) {
    this.fetchedAt = Date.now();
    const query = new URLSearchParams(this.root.dataset.scope);
    query.set("measure", this.measure);
    if (withLayout) query.set("layout", "1");
    let body;
    try {
      const answer = await fetch(`${this.root.dataset.url}?${query}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) return;
      body = await answer.json();
    } catch {
      return; // the link's dot says that the server is away; the next message tries again
    }
    if (!withLayout && (!this.data || body.version !== this.data.version)) return this.load(true);
    if (body.layout) this.layout = body.layout;
    this.data = body;
    if (body.layout) this.arrange();
    showLegend(this);
    this.draw();
    if (this.selected.size) this.drawSelection();
    this.root.dataset.ready = "1";
  }

  later() {
    if (this.waiting) return;
    this.waiting = setTimeout(() => {
      this.waiting = 0;
      this.load(false);
    }, Math.max(0, this.fetchedAt + REFRESH - Date.now()));
  }

  arrange() {
    const box = this.view.getBoundingClientRect();
    this.width = box.width;
    this.height = box.height;
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(box.width * this.ratio);
    this.canvas.height = Math.round(box.height * this.ratio);
    this.map = place(this.layout, this.width - 20, this.height - 20);
    if (this.zoom.fitted) this.fit();
  }

  fit() {
    const scale = Math.min(this.map.scale, MOST_CELL / CELL);
    this.zoom = {
      scale, fitted: true,
      x: Math.max(10, (this.width - this.map.width * scale) / 2),
      y: Math.max(10, (this.height - this.map.height * scale) / 2),
    };
  }

  colours() {
    const theme = document.documentElement.dataset.bsTheme;
    if (this.theme !== theme) {
      this.theme = theme;
      this.colour = palette();
      this.hatched = hatch(this.pen, this.colour);
    }
    return this.colour;
  }

  draw() {
    if (this.drawing) return;
    this.drawing = requestAnimationFrame(() => {
      this.drawing = 0;
      this.paint();
    });
  }

  paint() {
    if (!this.map) return;
    const colour = this.colours();
    const { pen } = this;
    const { scale, x, y } = this.zoom;
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.clearRect(0, 0, this.width, this.height);
    const gap = Math.min(2, Math.max(0.4, scale * 0.35));
    const size = CELL * scale - gap;
    this.map.cells.forEach((cell, index) => {
      const left = x + cell.x * scale;
      const top = y + cell.y * scale;
      if (left > this.width || top > this.height || left + size < 0 || top + size < 0) return;
      this.paintCell(index, left, top, size, colour);
    });
    this.paintNames(colour);
    if (this.brush) {
      pen.strokeStyle = colour.busy;
      pen.setLineDash([4, 3]);
      pen.lineWidth = 1.5;
      pen.strokeRect(this.brush.x, this.brush.y, this.brush.w, this.brush.h);
      pen.setLineDash([]);
    }
  }

  paintCell(index, left, top, size, colour) {
    const { pen, data } = this;
    const kind = data.kinds[data.kind[index]];
    const gone = kind === "failed" || kind === "missing";
    const value = data.measure === "state" ? null : data.values[index];
    if (data.measure === "state") this.fillState(kind, left, top, size, size, colour);
    else this.fillValue(value, left, top, size, size);
    const slices = this.layout.slices[index];
    if (slices && size >= 9) this.paintSlices(index, slices, left, top, size, colour);
    if (gone && data.measure !== "state") this.cross(left, top, size, colour);
    const own = slices && data.measure !== "state" && data.slices[index]; // each slice shows its own value
    if (size > 30 && !gone && !own) this.paintText(index, kind, value, left, top, size, colour);
    if (this.selected.has(index) || index === this.at) {
      pen.strokeStyle = index === this.at ? colour.text : colour.busy;
      pen.lineWidth = 2.5;
      pen.strokeRect(left - 1, top - 1, size + 2, size + 2);
    }
  }

  fillValue(value, left, top, width, height) {
    const { low, high } = this.data;
    this.pen.fillStyle = value === null || value === undefined ? this.hatched : scaleColour((value - low) / (high - low || 1));
    this.pen.fillRect(left, top, width, height);
  }

  fillState(kind, left, top, width, height, colour) {
    const { pen } = this;
    if (kind === "unknown") pen.fillStyle = this.hatched;
    else if (kind === "busy") pen.fillStyle = colour.busy;
    else if (kind === "idle") pen.fillStyle = colour.idle;
    else if (kind === "failed") pen.fillStyle = colour.bad;
    else pen.fillStyle = colour.surface;
    pen.fillRect(left, top, width, height);
    if (kind === "out" || kind === "missing") {
      pen.strokeStyle = kind === "out" ? colour.free : colour.bad;
      pen.lineWidth = Math.max(0.6, Math.min(1.5, width / 8));
      pen.strokeRect(left + 0.5, top + 0.5, width - 1, height - 1);
    }
    if (kind === "missing" || kind === "failed") this.cross(left, top, width, kind === "failed" ? { bad: colour.surface } : colour);
  }

  cross(left, top, size, colour) {
    const { pen } = this;
    pen.strokeStyle = colour.bad;
    pen.lineWidth = Math.max(0.8, size / 10);
    pen.beginPath();
    pen.moveTo(left + size * 0.2, top + size * 0.2);
    pen.lineTo(left + size * 0.8, top + size * 0.8);
    pen.moveTo(left + size * 0.8, top + size * 0.2);
    pen.lineTo(left + size * 0.2, top + size * 0.8);
    pen.stroke();
  }

  paintSlices(index, slices, left, top, size, colour) {
    const values = this.data.slices[index];
    const each = size / slices.length;
    slices.forEach((_, part) => {
      if (values) this.fillValue(values[part], left, top + part * each, size, Math.max(1, each - 0.6));
      else if (part > 0) {
        this.pen.fillStyle = colour.surface;
        this.pen.fillRect(left, top + part * each - 0.3, size, 0.8);
      }
    });
  }

  paintText(index, kind, value, left, top, size, colour) {
    const { pen } = this;
    const { low, high } = this.data;
    const plain = this.data.measure === "state" ? kind === "out" || kind === "unknown" || kind === "missing" : value === null;
    const light = this.data.measure !== "state" && !plain && (value - low) / (high - low || 1) > 0.55;
    const text = this.data.measure === "state" ? this.layout.labels[index] : plain ? "–" : `${Math.round(value)}`;
    const pale = this.data.measure === "state" && (kind === "idle" || this.theme === "dark");
    pen.fillStyle = plain ? colour.text : light || pale ? "#111" : "#fff";
    pen.font = `${Math.min(13, size / 3.2)}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, left + size / 2, top + size / 2, size - 4);
  }

  paintNames(colour) {
    const { pen } = this;
    const { scale, x, y } = this.zoom;
    pen.textAlign = "left";
    pen.textBaseline = "alphabetic";
    for (const block of this.map.blocks) {
      pen.fillStyle = colour.text;
      pen.font = "600 12px system-ui, sans-serif";
      pen.fillText(block.site.name, x + block.x * scale, Math.max(12, y + (block.y + 6) * scale), Math.max(40, block.width * scale));
      if (scale * 8 < 9) continue;
      pen.fillStyle = colour.muted;
      pen.font = "10px system-ui, sans-serif";
      for (const rack of block.racks)
        pen.fillText(rack.rack.name, x + (block.x + rack.x) * scale, y + (block.y + rack.y + 3.5) * scale, rack.width * scale);
    }
    if (scale < 3.4) return;
    pen.fillStyle = colour.muted;
    pen.font = "10px system-ui, sans-serif";
    for (const node of this.map.nodes) pen.fillText(node.node.name, x + node.x * scale, y + node.y * scale - 4, node.width * scale);
  }

  indexAt(px, py) {
    if (!this.map) return -1;
    const wx = (px - this.zoom.x) / this.zoom.scale;
    const wy = (py - this.zoom.y) / this.zoom.scale;
    for (const node of this.map.nodes) {
      if (wy < node.y || wy >= node.y + CELL || wx < node.x || wx >= node.x + node.width) continue;
      return node.node.first + Math.floor((wx - node.x) / CELL);
    }
    return -1;
  }

  describe(index) {
    const cell = this.map.cells[index];
    const place = this.map.nodes[cell.node];
    const kind = WORDS[this.data.kinds[this.data.kind[index]]];
    const lines = [`${this.layout.labels[index]} on ${place.node.name}`, `${place.site.name}, ${place.rack.name}`, this.layout.models[this.layout.model[index]], kind];
    if (this.data.measure !== "state") {
      const value = this.data.values[index];
      lines.push(`${this.data.title}: ${value === null ? "not known" : `${value} ${this.data.unit}`}`);
    }
    const slices = this.layout.slices[index];
    if (slices) lines.push(`Slices: ${slices.join(", ")}`);
    return lines.join("\n");
  }

  point(index) {
    if (index === this.at) return;
    this.at = index;
    this.draw();
    this.tip.hidden = index < 0;
    if (index < 0) return;
    this.tip.textContent = this.describe(index);
    const cell = this.map.cells[index];
    const left = this.zoom.x + (cell.x + CELL) * this.zoom.scale + 8;
    const top = this.zoom.y + cell.y * this.zoom.scale;
    const size = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(left, this.width - size.width - 4))}px`;
    this.tip.style.top = `${Math.max(4, Math.min(top, this.height - size.height - 4))}px`;
  }

  zoomBy(factor, px = this.width / 2, py = this.height / 2) {
    const least = Math.min(this.map.scale, MOST_CELL / CELL) * 0.8;
    const scale = Math.min(14, Math.max(least, this.zoom.scale * factor));
    const change = scale / this.zoom.scale;
    this.zoom = { scale, fitted: false, x: px - (px - this.zoom.x) * change, y: py - (py - this.zoom.y) * change };
    this.draw();
  }

  step(key) {
    const last = this.layout.cards.length - 1;
    if (this.at < 0) return this.point(0);
    const cell = this.map.cells[this.at];
    let next = this.at;
    if (key === "ArrowRight") next = Math.min(last, this.at + 1);
    if (key === "ArrowLeft") next = Math.max(0, this.at - 1);
    if (key === "ArrowDown" || key === "ArrowUp") {
      const node = this.map.nodes[cell.node + (key === "ArrowDown" ? 1 : -1)];
      if (node) next = node.node.first + Math.min(cell.offset, node.node.count - 1);
    }
    const target = this.map.cells[next];
    const px = this.zoom.x + target.x * this.zoom.scale;
    const py = this.zoom.y + target.y * this.zoom.scale;
    if (px < 0 || px > this.width - 20) this.zoom.x += this.width / 2 - px;
    if (py < 0 || py > this.height - 20) this.zoom.y += this.height / 2 - py;
    this.point(next);
  }

  open(index) {
    if (index >= 0) location.href = `${this.root.dataset.cardUrl}${this.layout.cards[index]}/`;
  }

  listen() {
    const { canvas } = this;
    const spot = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("wheel", (event) => {
      if (!this.map) return;
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY * 0.0015), ...spot(event));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.map || event.button > 0) return;
      const [px, py] = spot(event);
      this.press = { px, py, x: this.zoom.x, y: this.zoom.y, moved: false, brush: event.shiftKey };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.map) return;
      const [px, py] = spot(event);
      if (!this.press) return this.point(this.indexAt(px, py));
      const dx = px - this.press.px;
      const dy = py - this.press.py;
      if (!this.press.moved && Math.hypot(dx, dy) < 5) return;
      this.press.moved = true;
      if (this.press.brush) this.brush = { x: Math.min(px, this.press.px), y: Math.min(py, this.press.py), w: Math.abs(dx), h: Math.abs(dy) };
      else this.zoom = { ...this.zoom, fitted: false, x: this.press.x + dx, y: this.press.y + dy };
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const press = this.press;
      this.press = null;
      if (!press) return;
      if (this.brush) this.take();
      else if (!press.moved) this.open(this.indexAt(...spot(event)));
    });
    canvas.addEventListener("pointerleave", () => this.point(-1));
    canvas.addEventListener("blur", () => this.point(-1));
    canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => {
      if (!this.layout) return;
      this.arrange();
      this.paint(); // at once: a canvas that changes its size is empty
    }).observe(this.view);
    document.addEventListener("sensaka:theme", () => this.draw());
    onLive((message) => {
      if (message.topic === "fleet") this.later();
    });
  }

  key(event) {
    if (!this.map || event.ctrlKey || event.metaKey) return;
    if (event.key.startsWith("Arrow")) this.step(event.key);
    else if (event.key === "Enter") this.open(this.at);
    else if (event.key === "+" || event.key === "=") this.zoomBy(1.3);
    else if (event.key === "-") this.zoomBy(1 / 1.3);
    else if (event.key === "0") {
      this.fit();
      this.draw();
    } else if (event.key === " " && this.at >= 0) {
      if (!this.selected.delete(this.at)) this.selected.add(this.at);
      this.drawSelection();
    } else if (event.key === "Escape" && this.selected.size) {
      this.selected.clear();
      this.drawSelection();
    } else return;
    event.preventDefault();
  }

  take() {
    const { scale, x, y } = this.zoom;
    const half = (CELL * scale) / 2;
    this.selected.clear();
    this.map.cells.forEach((cell, index) => {
      const cx = x + cell.x * scale + half;
      const cy = y + cell.y * scale + half;
      const { brush } = this;
      if (cx >= brush.x && cx <= brush.x + brush.w && cy >= brush.y && cy <= brush.y + brush.h) this.selected.add(index);
    });
    this.brush = null;
    this.drawSelection();
  }

  drawSelection() {
    this.draw();
    showSelection(this);
  }
}

document.querySelectorAll("[data-heatmap]").forEach((root) => {
  const map = new HeatMap(root);
  const choice = document.getElementById("measure");
  if (!choice || "staticMeasure" in root.dataset) return;
  choice.addEventListener("change", (event) => {
    event.stopPropagation(); // the form would load the page again
    map.measure = choice.value;
    const url = new URL(location.href);
    url.searchParams.set("measure", choice.value);
    history.replaceState(null, "", url);
    map.load(false);
  });
});
