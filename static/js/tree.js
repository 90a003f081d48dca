// The tree: when lines come or go below an open branch, they are put in or taken out; what is open stays open.
function rename(known, line) {
  const name = known.querySelector(":scope > details > summary > strong");
  const now = line.querySelector(":scope > details > summary > strong");
  if (name && now && name.textContent !== now.textContent) name.textContent = now.textContent;
}

function merge(list, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  const before = new Map([...list.children].map((line) => [line.dataset.line, line]));
  const kept = new Set();
  let at = list.firstElementChild;
  for (const line of [...fresh.content.children]) {
    const known = line.dataset.line && before.get(line.dataset.line);
    if (!known || !known.querySelector(":scope > details")) {
      list.insertBefore(line, at);
      window.htmx.process(line);
      if (!known && line.dataset.line) line.classList.add("glow");
      kept.add(line);
    } else {
      rename(known, line);
      kept.add(known);
      if (known === at) at = at.nextElementSibling;
      else list.insertBefore(known, at);
    }
  }
  for (const line of [...list.children]) if (!kept.has(line)) line.remove();
  for (const name of ["htmx:afterSwap", "htmx:afterSettle"]) document.dispatchEvent(new CustomEvent(name));
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const head = event.detail.elt;
  if (!head.matches("[data-branch-head]") || !event.detail.shouldSwap) return;
  event.detail.shouldSwap = false;
  merge(head.parentElement, event.detail.xhr.responseText);
});
