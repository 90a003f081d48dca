// The page of a run: what each of its cards did while it ran. One node at a time, one cursor for all, gaps drawn as gaps.
import { colour } from "./colours.js";
import { exact } from "./times.js";

const root = document.querySelector("[data-job-charts]");
const library = document.getElementById("charts-script").dataset.library;
const list = root.querySelector("[data-chart-list]");
const note = root.querySelector("[data-chart-note]");
const choice = document.querySelector("[data-job-node]");
let charts = [];
let request = 0;

function held() {
  const all = [...root.querySelectorAll("[data-held]")];
  const node = choice ? choice.value : null;
  return node ? all.filter((one) => one.dataset.node === node) : all;
}

function percent(part, whole) {
  return whole ? `${Math.round((1000 * part) / whole) / 10} %` : "none";
}

function told(data) {
  const all = data.busy + data.idle + data.unknown;
  return `busy ${percent(data.busy, all)}, idle ${percent(data.idle, all)}, unknown ${percent(data.unknown, all)}`;
}

function option(data, title) {
  const tone = colour("--busy");
  const muted = colour("--tblr-secondary-color");
  const line = colour("--tblr-border-color");
  const rows = data.times.map((at, place) => [at * 1000, data.activity[place]]);
  const decal = { symbol: "rect", color: colour("--unknown-a"), dashArrayX: [1, 0], dashArrayY: [2, 4], rotation: -Math.PI / 4 };
  return {
    animation: false,
    textStyle: { fontFamily: getComputedStyle(document.body).fontFamily },
    aria: { enabled: true, label: { description: `Activity of ${title} while the job ran: ${told(data)}` } },
    grid: { left: 40, right: 10, top: 8, bottom: 20 },
    tooltip: {
      trigger: "axis", confine: true, backgroundColor: colour("--tblr-bg-surface"), borderColor: line,
      textStyle: { color: colour("--tblr-body-color"), fontSize: 12 },
      formatter: (found) => {
        const point = found.find((one) => one.seriesName === "Activity") || found[0];
        const value = data.activity[point.dataIndex];
        return `${exact(new Date(point.value[0]))}<br>${value === null || value === undefined ? "not known" : `${Math.round(value * 10) / 10} %`}`;
      },
    },
    xAxis: {
      type: "time", min: data.start * 1000, max: Math.max(data.end, data.start + 1) * 1000,
      axisLabel: { color: muted, hideOverlap: true }, axisLine: { lineStyle: { color: line } }, splitLine: { show: false },
    },
    yAxis: { type: "value", min: 0, max: 100, interval: 50, axisLabel: { color: muted, formatter: "{value} %" }, splitLine: { lineStyle: { color: line } } },
    series: [{
      // what nobody reported is hatched over the whole height: it is not zero
      name: "Unknown", type: "bar", barWidth: "100%", barCategoryGap: 0, silent: true, data: rows.map(([at, value]) => [at, value === null ? 100 : null]),
      itemStyle: { color: colour("--unknown-b"), decal },
    }, {
      name: "Activity", type: "line", data: rows, connectNulls: false, symbolSize: 3, showSymbol: rows.filter((row) => row[1] !== null).length < 3,
      lineStyle: { width: 1.5, color: tone }, itemStyle: { color: tone }, areaStyle: { color: tone, opacity: 0.15 },
    }],
  };
}

async function history(one) {
  const answer = await fetch(`${root.dataset.url}?held=${one.dataset.held}`);
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  return answer.json();
}

function head(one, data) {
  const heading = document.createElement("h3");
  heading.className = "chart-title";
  const link = document.createElement("a");
  link.href = one.dataset.cardUrl;
  link.textContent = one.dataset.title;
  const share = document.createElement("span");
  share.className = "text-secondary";
  share.textContent = told(data);
  heading.append(link, " ", share);
  return heading;
}

async function draw() {
  const mine = ++request;
  const shown = held();
  let found;
  let echarts;
  try {
    [echarts, ...found] = await Promise.all([import(library), ...shown.map(history)]);
  } catch (error) {
    note.textContent = `What its cards did could not be loaded: ${error.message}.`;
    root.dataset.ready = "failed";
    return;
  }
  if (mine !== request) return;
  charts.forEach((chart) => chart.dispose());
  charts = [];
  list.replaceChildren();
  const sum = (key) => found.reduce((all, data) => all + (data[key] || 0), 0);
  const whole = { busy: sum("busy"), idle: sum("idle"), unknown: sum("unknown") };
  const of = choice ? `on ${choice.selectedOptions[0].textContent}` : "of its cards";
  note.textContent = whole.busy + whole.idle + whole.unknown === 0
    ? "It has not run for long enough to be measured."
    : `Of the time ${of} while it ran: ${told(whole)}. Activity is SM activity where it is known, GPU utilization else; hatched is not known.`;
  shown.forEach((one, place) => {
    const box = document.createElement("div");
    box.className = "chart-strip";
    list.append(head(one, found[place]), box);
    const chart = echarts.init(box, null, { renderer: "canvas" });
    chart.setOption(option(found[place], one.dataset.title));
    chart.group = "job";
    charts.push(chart);
  });
  echarts.connect("job");
  root.dataset.ready = "1";
}

if (choice) choice.addEventListener("change", draw);
window.addEventListener("resize", () => charts.forEach((chart) => chart.resize()));
document.addEventListener("sensaka:theme", draw);
draw();
