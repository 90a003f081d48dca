// What stands below the map: the legend with its numbers, and the cards that were selected.
import { scaleGradient } from "./heatmap-colours.js";

export const WORDS = { busy: "Busy", idle: "Idle", unknown: "Unknown", out: "Not available", failed: "Failed", missing: "Missing" };
const MARKS = { busy: "busy", idle: "idle", unknown: "unknown", out: "off", failed: "bad", missing: "bad" };
const MOST_LINES = 100;

function mark(kind, text) {
  const element = document.createElement("span");
  element.className = "state-mark";
  element.dataset.kind = kind;
  element.textContent = text;
  return element;
}

export function showLegend(map) {
  const { data } = map;
  if (data.measure === "state") {
    const numbers = data.kinds.map((_, place) => data.kind.filter((kind) => kind === place).length);
    map.legend.replaceChildren(...data.kinds.map((kind, place) => mark(MARKS[kind], `${WORDS[kind]} ${numbers[place]}`)));
    return;
  }
  const scale = document.createElement("span");
  scale.className = "legend-scale";
  scale.style.background = scaleGradient();
  const broken = data.kind.filter((kind) => ["failed", "missing"].includes(data.kinds[kind])).length;
  const known = data.values.filter((value) => value !== null).length;
  map.legend.replaceChildren(
    `${data.title}: ${data.low} ${data.unit}`, scale, `${Math.round(data.high)} ${data.unit}`,
    mark("unknown", `Not known ${data.values.length - known}`), mark("bad", `Failed or missing ${broken}`),
  );
}

export function showSelection(map) {
  const { list, selected, layout } = map;
  list.hidden = selected.size === 0;
  if (list.hidden) return;
  const title = document.createElement("p");
  title.className = "mb-1";
  title.textContent = `${selected.size} selected. Escape on the map clears the selection.`;
  const items = document.createElement("ul");
  items.className = "mb-0";
  [...selected].slice(0, MOST_LINES).forEach((index) => {
    const link = document.createElement("a");
    link.href = `${map.root.dataset.cardUrl}${layout.cards[index]}/`;
    link.textContent = map.describe(index).replaceAll("\n", ", ");
    const item = document.createElement("li");
    item.append(link);
    items.append(item);
  });
  if (selected.size > MOST_LINES) {
    const more = document.createElement("li");
    more.textContent = `and ${selected.size - MOST_LINES} more`;
    items.append(more);
  }
  list.replaceChildren(title, items);
}
