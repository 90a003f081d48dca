// Acts that are confirmed: a link with data-dialog opens its page's form in a dialog. Without script it is a page.
let dialog = null;

function frame() {
  if (dialog) return dialog;
  dialog = document.createElement("dialog");
  dialog.className = "act-dialog";
  dialog.id = "act-dialog";
  dialog.setAttribute("aria-labelledby", "act-title");
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
  if (!box.querySelector("#act-title")) { // the server did not give the form: let its page say why
    location.href = link.href;
    return;
  }
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
