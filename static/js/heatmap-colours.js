// Colours of the map: cividis, made to be read alike with and without colour vision; hatching for unknown.
import { colour } from "./colours.js";

const STOPS = [[0, 32, 77], [49, 68, 107], [102, 105, 112], [149, 143, 120], [203, 186, 105], [255, 234, 70]];

const known = new Map(); // writing a colour as text costs more than filling a cell with it

export function scaleColour(share) {
  const step = Math.round(Math.min(1, Math.max(0, share)) * 200);
  if (!known.has(step)) known.set(step, mixed(step / 200));
  return known.get(step);
}

function mixed(share) {
  const at = share * (STOPS.length - 1);
  const low = Math.floor(at);
  const high = Math.min(low + 1, STOPS.length - 1);
  const mix = STOPS[low].map((part, index) => Math.round(part + (STOPS[high][index] - part) * (at - low)));
  return `rgb(${mix.join(",")})`;
}

export function scaleGradient() {
  return `linear-gradient(90deg, ${STOPS.map((stop) => `rgb(${stop.join(",")})`).join(", ")})`;
}

export function palette() {
  return {
    busy: colour("--busy"), idle: colour("--idle"), free: colour("--free"), bad: colour("--bad"),
    hatchA: colour("--unknown-a"), hatchB: colour("--unknown-b"), text: colour("--tblr-body-color"),
    muted: colour("--tblr-secondary-color"), surface: colour("--tblr-bg-surface"), border: colour("--tblr-border-color"),
  };
}

export function hatch(context, colours) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.fillStyle = colours.hatchB;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = colours.hatchA;
  pen.lineWidth = 2;
  pen.beginPath();
  for (const shift of [-6, 0, 6]) {
    pen.moveTo(shift, 6);
    pen.lineTo(shift + 6, 0);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}
