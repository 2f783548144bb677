// Ties the panels to the demo's stream of events.
import { Chat } from "./chat.js";
import { Memory } from "./memory.js";

const panel = (id) => document.getElementById(id);
const status = panel("status");

const chats = {};
const show = (chat) => memory.show(chat);
for (const platform of ["line", "discord"]) chats[platform] = new Chat(panel(platform), platform, show);
const memory = new Memory(panel("memory"), chats);
const all = Object.values(chats);

function setStatus(state, text) {
  status.dataset.state = state;
  status.textContent = text;
}

function takeSession(session) {
  memory.session(session);
  for (const chat of all) chat.session(session);
}

function connect() {
  let ended = false;
  const events = new EventSource("/api/events");
  events.addEventListener("snapshot", (event) => {
    const state = JSON.parse(event.data);
    for (const chat of all) chat.load(state.places.filter((place) => place.platform === chat.platform));
    state.sessions.forEach(takeSession);
    memory.show(memory.chat ?? chats.line);
    ended = false;
    setStatus("live", "live");
    document.body.dataset.ready = "true";
  });
  events.addEventListener("update", (event) => {
    const update = JSON.parse(event.data);
    if (update.session) takeSession(update.session);
    else for (const chat of all) chat.update(update);
  });
  events.addEventListener("end", () => {
    ended = true;
    setStatus("lost", "the demo has stopped");
  });
  events.addEventListener("error", () => {
    if (!ended) setStatus("lost", "not connected, trying again");
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  });
}

// On a small screen one panel shows at a time.
for (const button of document.querySelectorAll(".tabs button")) {
  button.addEventListener("click", () => {
    document.body.dataset.tab = button.dataset.for;
    for (const other of document.querySelectorAll(".tabs button")) other.setAttribute("aria-pressed", String(other === button));
    if (chats[button.dataset.for]?.at) memory.show(chats[button.dataset.for]);
  });
}

// The system's theme, until one is chosen.
const dark = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
function remembered() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null; // storage is switched off
  }
}
if (remembered()) document.documentElement.dataset.theme = remembered();
panel("theme").addEventListener("click", () => {
  const theme = chosen() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // For this visit, then.
  }
});

connect();
