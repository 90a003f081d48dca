// Which columns of a table a person sees: kept in this browser. Runs before the first paint, so that nothing jumps.
(function () {
  "use strict";
  const key = "sensaka-columns";
  const sheet = new CSSStyleSheet();
  const name = /^[a-z][a-z-]*$/;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];

  function read() {
    try {
      const kept = JSON.parse(localStorage.getItem(key) || "{}");
      return kept && typeof kept === "object" ? kept : {};
    } catch {
      return {}; // storage closed to us or spoilt: every column is shown
    }
  }

  let hidden = read();

  function of(table) {
    return Array.isArray(hidden[table]) ? hidden[table].filter((column) => name.test(column)) : [];
  }

  function apply() {
    const rules = Object.keys(hidden)
      .filter((table) => name.test(table))
      .flatMap((table) => of(table).map((column) => `[data-columns="${table}"] [data-column="${column}"] { display: none; }`));
    sheet.replaceSync(rules.join("\n"));
  }

  function keep(table, columns) {
    hidden = { ...read(), [table]: columns };
    try {
      localStorage.setItem(key, JSON.stringify(hidden));
    } catch {
      // for this page only, then
    }
    apply();
  }

  function option(table, heading) {
    const label = document.createElement("label");
    label.className = "dropdown-item";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.className = "form-check-input m-0 me-2";
    box.checked = !of(table).includes(heading.dataset.column);
    box.addEventListener("change", () => {
      const others = of(table).filter((column) => column !== heading.dataset.column);
      keep(table, box.checked ? others : [...others, heading.dataset.column]);
    });
    label.append(box, heading.textContent.replace(/[▲▼]/, "").trim());
    return label;
  }

  // The first column names the row and stays.
  function fill(menu) {
    const table = menu.dataset.columnsMenu;
    const list = menu.querySelector(".dropdown-menu");
    const headings = [...document.querySelectorAll(`[data-columns="${table}"] thead [data-column]`)].slice(1);
    const all = document.createElement("button");
    all.type = "button";
    all.className = "dropdown-item";
    all.textContent = menu.dataset.all;
    all.addEventListener("click", () => {
      keep(table, []);
      fill(menu);
    });
    list.replaceChildren(...headings.map((heading) => option(table, heading)), all);
    menu.hidden = headings.length === 0;
  }

  const fillAll = () => document.querySelectorAll("[data-columns-menu]").forEach(fill);
  apply();
  document.addEventListener("DOMContentLoaded", fillAll);
  document.addEventListener("htmx:afterSwap", fillAll);
  window.addEventListener("storage", (event) => {
    if (event.key !== key) return;
    hidden = read();
    apply();
    fillAll();
  });
})();
