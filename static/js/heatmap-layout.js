// Where each card stands on the map: sites as blocks, racks as columns, nodes as rows, cards as cells.
export const CELL = 10;
export const ROW = 13; // a cell and the gap that carries the node's name
const RACK_GAP = 8;
const RACK_HEAD = 8;
const SITE_HEAD = 12;
const SITE_GAP = 11;

function rackSize(rack) {
  const cells = Math.max(...rack.nodes.map((node) => node.count));
  return { width: cells * CELL, height: RACK_HEAD + rack.nodes.length * ROW };
}

/** The racks of a site, wrapped at `limit`. */
function siteBlock(site, limit) {
  const placed = [];
  let x = 0, y = SITE_HEAD, line = 0, width = 0;
  for (const rack of site.racks) {
    const size = rackSize(rack);
    if (x > 0 && x + size.width > limit) {
      x = 0;
      y += line + RACK_GAP;
      line = 0;
    }
    placed.push({ rack, x, y, ...size });
    x += size.width + RACK_GAP;
    width = Math.max(width, x - RACK_GAP);
    line = Math.max(line, size.height);
  }
  return { site, racks: placed, width, height: y + line };
}

function flow(sites, limit) {
  let x = 0, y = 0, line = 0, width = 0;
  const blocks = sites.map((site) => {
    const block = siteBlock(site, limit);
    if (x > 0 && x + block.width > limit) {
      x = 0;
      y += line + SITE_GAP;
      line = 0;
    }
    const placed = { ...block, x, y };
    x += block.width + SITE_GAP;
    width = Math.max(width, x - SITE_GAP);
    line = Math.max(line, block.height);
    return placed;
  });
  return { blocks, width, height: y + line };
}

/** The wrapping that shows the cards largest in a view of this shape. */
export function place(layout, viewWidth, viewHeight) {
  const area = layout.cards.length * CELL * ROW * 1.6;
  const natural = Math.sqrt((area * viewWidth) / Math.max(viewHeight, 1));
  let best = null;
  for (let factor = 0.4; factor <= 4; factor *= 1.12) {
    const candidate = flow(layout.sites, Math.max(natural * factor, 80));
    const scale = Math.min(viewWidth / Math.max(candidate.width, 1), viewHeight / Math.max(candidate.height, 1));
    if (!best || scale > best.scale * 1.001) best = { ...candidate, scale };
  }
  const cells = new Array(layout.cards.length);
  const nodes = [];
  for (const block of best.blocks)
    for (const column of block.racks)
      column.rack.nodes.forEach((node, row) => {
        const top = block.y + column.y + RACK_HEAD + row * ROW;
        const left = block.x + column.x;
        nodes.push({ node, x: left, y: top, rack: column.rack, site: block.site, width: node.count * CELL });
        for (let offset = 0; offset < node.count; offset += 1)
          cells[node.first + offset] = { x: left + offset * CELL, y: top, node: nodes.length - 1, offset };
      });
  return { ...best, cells, nodes };
}
