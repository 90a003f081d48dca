// The card page's charts: one span for all, one cursor for all, gaps drawn as gaps, events as marks.
import { colour } from "./colours.js";
import { exact } from "./times.js";

const root = document.querySelector("[data-charts]");
const library = document.getElementById("charts-script").dataset.library;
const NAMES = {
  sm_activity: "SM activity", utilization: "GPU utilization", tensor_activity: "Tensor", memory_activity: "Memory",
  memory_used: "Used", temperature: "Card", memory_temperature: "Memory", power: "Power", power_limit: "Limit",
  sm_clock: "SM", memory_clock: "Memory", pcie_tx: "Sent", pcie_rx: "Received", nvlink_tx: "Sent", nvlink_rx: "Received",
};
const SOURCES = {
  raw: "raw samples", "5m": "5-minute rollups", "1h": "hourly rollups",
};
let charts = [];
let span = "1h";
let request = 0;
let last = null;

function theme() {
  return {
    text: colour("--tblr-body-color"), muted: colour("--tblr-secondary-color"), line: colour("--tblr-border-color"),
    series: [colour("--busy"), colour("--idle")], busy: colour("--busy"), idle: colour("--idle"), unknown: colour("--unknown-b"),
    hatch: colour("--unknown-a"), surface: colour("--tblr-bg-surface"),
  };
}

function frame(colours, data, title, unit, top) {
  return {
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    aria: { enabled: true, label: { description: `${title} over ${span}` } },
    grid: { left: 52, right: 12, top: 34, bottom: 24 },
    legend: { top: 2, right: 8, textStyle: { color: colours.muted }, itemWidth: 14, itemHeight: 8 },
    title: { show: false },
    tooltip: {
      trigger: "axis", confine: true, backgroundColor: colours.surface, borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 },
      axisPointer: { type: "line", label: { show: false } },
      formatter: (points) => tip(points, unit),
    },
    xAxis: {
      type: "time", min: data.start * 1000, max: data.end * 1000,
      axisLabel: { color: colours.muted, hideOverlap: true }, axisLine: { lineStyle: { color: colours.line } }, splitLine: { show: false },
    },
    yAxis: {
      type: "value", min: 0, max: top, name: unit, nameTextStyle: { color: colours.muted, align: "right" }, splitNumber: 3, ...(top === 100 ? { interval: 25 } : {}),
      axisLabel: { color: colours.muted }, splitLine: { lineStyle: { color: colours.line } },
    },
  };
}

function tip(points, unit) {
  const box = document.createElement("div");
  const head = document.createElement("strong");
  head.textContent = exact(new Date(points[0].axisValue));
  box.append(head);
  for (const point of points) {
    if (point.seriesName.startsWith(" ")) continue;
    const line = document.createElement("div");
    const value = point.value[1];
    const range = point.value[2] !== undefined && point.value[2] !== null ? ` (${round(point.value[2])} to ${round(point.value[3])})` : "";
    line.textContent = `${point.seriesName}: ${value === null || value === undefined ? "not known" : `${round(value)} ${unit}${range}`}`;
    box.append(line);
  }
  return box;
}

function round(value) {
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString() : Math.round(value * 10) / 10;
}

function marks(data, colours) {
  return {
    silent: true, symbol: ["none", "none"], label: { show: false },
    lineStyle: { color: colours.muted, type: "dashed", width: 1 },
    data: data.events.map((event) => ({ xAxis: event.at * 1000, name: event.text })),
  };
}

function points(data, field, scale) {
  const found = data.fields[field];
  if (!found) return null;
  const times = scale || 1;
  const put = (value) => (value === null ? null : value * times);
  const rows = data.times.map((at, index) => [at * 1000, put(found.mean[index]), put(found.min[index]), put(found.max[index])]);
  return rows.some((row) => row[1] !== null) ? rows : null;
}

function measureChart(about, data, colours) {
  const series = about.fields
    .map((field) => ({ field, rows: points(data, field, about.scale) }))
    .filter((entry) => entry.rows);
  if (series.length === 0) return null;
  return {
    ...frame(colours, data, about.title, about.unit, about.max),
    series: series.flatMap((entry, place) => {
      const colour = colours.series[place];
      const line = {
        name: NAMES[entry.field] || entry.field, type: "line", data: entry.rows, showSymbol: isolated(entry.rows), symbolSize: 3,
        connectNulls: false, lineStyle: { width: 1.5, color: colour, type: place ? "dashed" : "solid" }, itemStyle: { color: colour },
        ...(place === 0 ? { markLine: marks(data, colours) } : {}),
      };
      if (place > 0 || data.resolution <= 30) return [line];
      // the range within each bucket, so that a short peak is not averaged away
      const low = { name: " low", type: "line", data: entry.rows.map((row) => [row[0], row[2]]), stack: "range", symbol: "none", lineStyle: { opacity: 0 }, silent: true, connectNulls: false };
      const range = {
        name: " range", type: "line", stack: "range", symbol: "none", silent: true, connectNulls: false, lineStyle: { opacity: 0 },
        data: entry.rows.map((row) => [row[0], row[2] === null ? null : row[3] - row[2]]), areaStyle: { color: colour, opacity: 0.18 },
      };
      return [low, range, line];
    }),
  };
}

function isolated(rows) {
  return rows.filter((row) => row[1] !== null).length < 3;
}

function bandChart(data, colours) {
  const step = data.resolution || 1;
  const part = (name, key, style) => ({
    name, type: "bar", stack: "time", barCategoryGap: 0, barGap: 0, barWidth: "100%", itemStyle: style,
    data: data.times.map((at, index) => [at * 1000, (100 * data.band[key][index]) / Math.max(1, data.band.busy[index] + data.band.idle[index] + data.band.unknown[index])]),
  });
  const decal = { symbol: "rect", color: colours.hatch, dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: -Math.PI / 4 };
  const base = frame(colours, data, "Busy, idle and unknown time", "%", 100);
  return {
    ...base,
    grid: { ...base.grid, top: 28 },
    yAxis: { ...base.yAxis, name: "", axisLabel: { show: false }, axisTick: { show: false }, splitLine: { show: false } },
    xAxis: { ...base.xAxis, max: data.end * 1000, min: data.start * 1000 - step * 500 },
    series: [
      part("Busy", "busy", { color: colours.busy }),
      part("Idle", "idle", { color: colours.idle }),
      part("Unknown", "unknown", { color: colours.unknown, decal }),
    ],
  };
}

function note(data) {
  const sum = (key) => data.band[key].reduce((total, value) => total + value, 0);
  const [busy, idle, unknown] = ["busy", "idle", "unknown"].map(sum);
  const all = busy + idle + unknown;
  const text = document.querySelector("[data-chart-note]");
  const from = SOURCES[data.source] || data.source;
  text.textContent = all === 0
    ? "No time of this span has passed through a reading yet."
    : `Busy ${round((100 * busy) / all)} %, idle ${round((100 * idle) / all)} %, unknown ${round((100 * unknown) / all)} % of the span. Coverage ${round((100 * (busy + idle)) / all)} %. From ${from}, one point per ${data.resolution} s.`;
}

function listEvents(data, list) {
  if (data.events.length === 0) return;
  const heading = document.createElement("h3");
  heading.className = "subheader mt-2 mb-0";
  heading.textContent = "Marks";
  const items = document.createElement("ul");
  items.className = "chart-marks";
  for (const event of data.events) {
    const item = document.createElement("li");
    item.textContent = `${exact(new Date(event.at * 1000))}: ${event.text}`;
    items.append(item);
  }
  list.append(heading, items);
}

async function draw() {
  const mine = ++request;
  let data;
  let echarts;
  try {
    const [answer, module] = await Promise.all([fetch(`${root.dataset.url}?span=${span}`), import(library)]);
    if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
    data = await answer.json();
    echarts = module;
  } catch (error) {
    document.querySelector("[data-chart-note]").textContent = `The history could not be loaded: ${error.message}.`;
    return;
  }
  if (mine !== request) return;
  last = { data, echarts };
  paint();
}

function paint() {
  if (!last) return;
  const { data, echarts } = last;
  const colours = theme();
  const list = document.querySelector("[data-chart-list]");
  charts.forEach((chart) => chart.dispose());
  list.replaceChildren();
  note(data);
  const options = [["Time", bandChart(data, colours), "chart-band"], ...data.charts.map((about) => [about.title, measureChart(about, data, colours), "chart"])];
  const absent = options.filter(([, option]) => !option).map(([title]) => title);
  charts = options.filter(([, option]) => option).map(([title, option, name]) => {
    const heading = document.createElement("h3");
    heading.className = "subheader mt-2 mb-0";
    heading.textContent = title;
    const box = document.createElement("div");
    box.className = name;
    list.append(heading, box);
    const chart = echarts.init(box, null, { renderer: "canvas" });
    chart.setOption(option);
    chart.group = "card";
    return chart;
  });
  echarts.connect("card");
  if (absent.length) {
    const line = document.createElement("p");
    line.className = "text-secondary small mb-0";
    line.textContent = `Not reported in this span: ${absent.join(", ")}.`;
    list.append(line);
  }
  listEvents(data, list);
  root.dataset.ready = span;
}

if (root) {
  document.querySelectorAll("[data-span]").forEach((button) => {
    button.addEventListener("click", () => {
      span = button.dataset.span;
      document.querySelectorAll("[data-span]").forEach((other) => {
        other.classList.toggle("active", other === button);
        other.setAttribute("aria-pressed", String(other === button));
      });
      draw();
    });
  });
  window.addEventListener("resize", () => charts.forEach((chart) => chart.resize()));
  document.addEventListener("sensaka:theme", paint);
  setInterval(() => {
    if (!document.hidden && (span === "1h" || span === "6h")) draw();
  }, 30000);
  draw();
}
