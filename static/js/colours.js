// What a CSS variable is on this page, as rgb: canvas and charts do not read color-mix() and its like.
const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = "#808080";
  pen.fillStyle = value;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return `rgba(${red},${green},${blue},${Math.round((alpha / 255) * 100) / 100})`;
}
