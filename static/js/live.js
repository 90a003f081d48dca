// The live link: subscribes to the topics that the page names, writes changed cells, shows its own state.
import { exact, relative } from "./times.js";

const MOST_TOPICS = 60; // the server takes no more from one page
const STALE_AFTER = 15000; // ms without a message: the server beats every 10 s
const listeners = new Set();
const state = { socket: null, attempts: 0, lastAt: Date.now(), timer: 0, closed: false, ended: false, refused: 0 };
const AGAIN = 1500; // ms after which a line that was refused asks once more: the sign-in may have been renewed

/** Call `listener(message)` for every message: {topic, at, full, values, gone}. */
export function onLive(listener) {
  listeners.add(listener);
}

function topics() {
  const named = [...document.querySelectorAll("[data-topic]")]
    .filter((element) => !element.parentElement.closest("details:not([open])"))
    .map((element) => element.dataset.topic);
  const all = [...new Set(named)];
  tellLeft(all.length - MOST_TOPICS);
  return all.slice(0, MOST_TOPICS);
}

// What is beyond the limit stands still, so the page says how many parts do; the lowest ones are left out.
function tellLeft(left) {
  const note = document.querySelector("[data-live-left]");
  if (!note) return;
  note.hidden = left <= 0;
  const number = note.querySelector("[data-number]");
  if (number.textContent !== String(left)) number.textContent = String(left);
}

function showLink(name, text) {
  const element = document.getElementById("link-state");
  if (!element) return;
  if (element.dataset.state !== name) {
    element.dataset.state = name;
    element.querySelector(".link-text").textContent = text;
  }
  const since = new Date(state.lastAt);
  element.dataset.hint = name === "live"
    ? `Live: last message ${relative(since)}` : `${text}: what you see is from ${exact(since)}, ${relative(since)}`;
}

function check() {
  if (state.ended) return;
  const quiet = Date.now() - state.lastAt;
  const open = state.socket && state.socket.readyState === WebSocket.OPEN;
  const stale = quiet > STALE_AFTER && topics().length > 0;
  document.body.classList.toggle("is-stale", stale);
  if (stale) {
    const since = document.getElementById("link-state");
    if (since) {
      since.dataset.state = "down";
      since.querySelector(".link-text").textContent = `Stale since ${new Date(state.lastAt).toLocaleTimeString()}`;
      since.dataset.hint = `No news since ${exact(new Date(state.lastAt))}. Trying to reach the server.`;
    }
  } else if (open) showLink("live", "Live");
}

export function paintCell(element, cell, glow) {
  if (element.matches("time") && cell.a) {
    element.setAttribute("datetime", new Date(cell.a * 1000).toISOString());
  } else {
    const target = element.querySelector(":scope > .cell-text") || element;
    if (target.textContent !== cell.t) target.textContent = cell.t;
  }
  if (element.classList.contains("state-mark")) element.dataset.kind = cell.s || "";
  else element.dataset.state = cell.s || "";
  if (cell.a) element.dataset.at = cell.a;
  else delete element.dataset.at;
  if (cell.h) element.dataset.hint = cell.h;
  if (cell.f !== undefined) element.style.setProperty("--fill", `${cell.f}%`);
  if (glow) {
    element.classList.remove("glow");
    void element.offsetWidth; // restarts the animation
    element.classList.add("glow");
  }
}

function paint(message) {
  const changed = message.values || {};
  document.querySelectorAll("[data-live]").forEach((element) => {
    const cell = changed[element.dataset.live];
    if (!cell || (element.dataset.liveTopic && element.dataset.liveTopic !== message.topic)) return;
    const differs = (element.querySelector(":scope > .cell-text") || element).textContent !== cell.t;
    paintCell(element, cell, differs && !element.matches("time"));
  });
  document.querySelectorAll("[data-live-fill]").forEach((element) => {
    const cell = changed[element.dataset.liveFill];
    if (cell) element.style.setProperty("--fill", `${cell.f || 0}%`);
  });
  // parts whose rows come and go are fetched again when their version changes
  document.querySelectorAll("[data-live-refresh]").forEach((element) => {
    const cell = changed[element.dataset.liveRefresh];
    const topic = element.dataset.liveTopic || element.dataset.topic;  // several topics may have a cell of this name
    if (!cell || (topic && topic !== message.topic) || element.dataset.version === cell.t) return;
    element.dataset.version = cell.t;
    refresh(element);
  });
}

function refresh(element) {
  const area = element.closest("[data-live-area]") || element;
  if (area.matches(":hover") || element.contains(document.activeElement)) {
    // rows keep their place while somebody points at them
    if (element.dataset.waiting) return;
    element.dataset.waiting = "1";
    const later = () => {
      delete element.dataset.waiting;
      area.removeEventListener("pointerleave", later);
      element.removeEventListener("focusout", later);
      refresh(element);
    };
    area.addEventListener("pointerleave", later);
    element.addEventListener("focusout", later);
    return;
  }
  window.htmx.trigger(element, "live");
}

function receive(event) {
  const message = JSON.parse(event.data);
  if (message.error) return console.warn("live:", message.error);
  if (message.trouble) return showLink("trouble", "Server in trouble");
  state.lastAt = Date.now();
  state.attempts = 0;
  if (state.ended || state.refused) resume();
  paint(message);
  listeners.forEach((listener) => listener(message));
  check();
}

function subscribe() {
  if (state.socket && state.socket.readyState === WebSocket.OPEN)
    state.socket.send(JSON.stringify({ subscribe: topics() }));
}

function connect() {
  clearTimeout(state.timer);
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://${location.host}/ws/live/`);
  state.socket = socket;
  socket.addEventListener("open", () => {
    if (topics().length === 0) state.lastAt = Date.now();
    subscribe();
    if (!state.ended) showLink("live", "Live");
  });
  socket.addEventListener("message", receive);
  socket.addEventListener("close", (event) => {
    if (state.closed) return;
    if (event.code === 4401 || event.code === 4403) return end(event.code);
    showLink("connecting", "Reconnecting");
    const wait = Math.min(10000, 500 * 2 ** Math.min(state.attempts, 5)) * (0.7 + Math.random() * 0.6);
    state.attempts += 1;
    state.timer = setTimeout(connect, wait);
  });
}

// The sign-in has ended, here or in another tab: what is shown stays, greyed, and the way back is offered.
function end(code) {
  state.ended = true;
  document.body.classList.add("is-stale");
  showLink("down", code === 4401 ? "Signed out" : "No longer allowed");
  const again = document.querySelector("[data-sign-in]");
  if (again) {
    again.href = `${again.dataset.signIn}?next=${encodeURIComponent(location.pathname + location.search)}`;
    again.hidden = code !== 4401;
  }
  state.refused += 1;
  if (state.refused === 1) state.timer = setTimeout(connect, AGAIN);
}

function resume() {
  state.ended = false;
  state.refused = 0;
  const again = document.querySelector("[data-sign-in]");
  if (again) again.hidden = true;
}

export function startLive() {
  if (!document.getElementById("link-state")) return;
  connect();
  setInterval(check, 1000);
  document.addEventListener("htmx:afterSettle", subscribeIfChanged);
  document.addEventListener("toggle", subscribeIfChanged, true); // of a closed line nothing is followed
  window.addEventListener("pagehide", () => {
    state.closed = true;
    if (state.socket) state.socket.close();
  });
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    state.closed = false;
    connect();
  });
  window.addEventListener("online", () => {
    if (!state.ended && (!state.socket || state.socket.readyState === WebSocket.CLOSED)) connect();
  });
}

let subscribed = "";
function subscribeIfChanged() {
  const now = topics().join(" ");
  if (now !== subscribed) subscribe();
  subscribed = now;
}
