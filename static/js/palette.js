// Ctrl-K: find a node, a card or a page. Arrow keys choose, Enter goes.
export function startPalette() {
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const input = dialog.querySelector("input");
  const links = () => [...dialog.querySelectorAll(".palette-list a")];

  function open() {
    if (dialog.open) return;
    dialog.showModal();
    input.select();
    window.htmx.trigger(input, "palette");
  }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    }
    if (!dialog.open || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const all = links();
    if (all.length === 0) return;
    const at = all.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
    if (at < 0) input.focus();
    else all[Math.min(at, all.length - 1)].focus();
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette-open]")) open();
    if (event.target.closest("[data-palette-close]") || event.target === dialog) dialog.close();
  });
  dialog.querySelector("form").addEventListener("submit", (event) => {
    const [first] = links();
    if (!first) return;
    event.preventDefault();
    location.href = first.href;
  });
}
