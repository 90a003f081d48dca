// Acts that are confirmed: a link with data-dialog opens its page's form in a dialog. Without script it is a page.
let dialog = null;

function frame() {
  if (dialog) return dialog;
  dialog = document.createElement("dialog");
  dialog.className = "act-dialog";
  dialog.id = "act-dialog";
  document.body.append(dialog);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-dialog-close]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.addEventListener("close", () => dialog.replaceChildren());
  return dialog;
}

async function open(link) {
  const box = frame();
  await window.htmx.ajax("GET", link.href, { target: "#act-dialog", swap: "innerHTML" });
  const heading = box.querySelector("h1, h2");
  if (!heading) return; // it was refused: htmx has said so
  heading.id = "act-title";
  box.setAttribute("aria-labelledby", "act-title");
  if (!box.open) box.showModal();
  const field = box.querySelector("[autofocus], input:not([type=hidden]), textarea, select");
  if (field) field.focus();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-dialog]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  open(link);
});
