// Runs before the first paint: the remembered theme, else the system's.
(function () {
  "use strict";
  const key = "sensaka-theme";
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    let chosen = null;
    try {
      chosen = localStorage.getItem(key);
    } catch {
      chosen = null; // storage may be closed to us; the system's theme is a fine answer
    }
    const theme = chosen === "dark" || chosen === "light" ? chosen : system.matches ? "dark" : "light";
    document.documentElement.setAttribute("data-bs-theme", theme);
    document.dispatchEvent(new CustomEvent("sensaka:theme", { detail: theme }));
  }
  apply();
  system.addEventListener("change", apply);
  window.sensakaTheme = {
    set(theme) {
      try {
        if (theme === "system") localStorage.removeItem(key);
        else localStorage.setItem(key, theme);
      } catch {
        document.documentElement.setAttribute("data-bs-theme", theme);
        return;
      }
      apply();
    },
    toggle() {
      this.set(document.documentElement.getAttribute("data-bs-theme") === "dark" ? "light" : "dark");
    },
  };
})();
