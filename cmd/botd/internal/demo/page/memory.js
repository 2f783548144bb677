// The panel that shows a session's items as they are stored.
import { el, select, tablist } from "./dom.js";

export class Memory {
  constructor(panel, chats) {
    this.panel = panel;
    this.chats = chats;
    this.sessions = new Map();
    this.known = new Map();
    this.items = panel.querySelector("#items");
    this.tabs = panel.querySelector(".which");
    this.bytes = panel.querySelector("#bytes");
    tablist(this.tabs);
    for (const tab of this.tabs.children) tab.addEventListener("click", () => this.show(chats[tab.dataset.platform]));
    this.bytes.addEventListener("change", () => this.draw());
    panel.querySelector(".reset").addEventListener("click", () => this.chat?.reset());
  }

  /** session takes the state of one session. */
  session(session) {
    this.sessions.set(session.id, session);
    if (session.id === this.shown) this.draw();
  }

  /** show shows the session of the person who speaks in a chat. */
  show(chat) {
    this.chat = chat;
    this.shown = chat.current.session;
    select(this.tabs, this.tabs.querySelector(`[data-platform=${chat.platform}]`));
    this.draw();
  }

  draw() {
    const session = this.sessions.get(this.shown);
    if (!session) return;
    this.panel.querySelector("#session-id").textContent = session.id;
    const many = session.items.length;
    const resets = session.generation === 0 ? "" : session.generation === 1 ? ", reset once" : `, reset ${session.generation} times`;
    this.panel.querySelector("#session-count").textContent = `${many}${session.more ? "+" : ""} ${many === 1 ? "item" : "items"}${resets}`;
    const seen = this.known.get(session.id);
    const newest = many ? session.items[many - 1].seq : 0;
    const rows = session.items.map((item) => this.row(item, seen !== undefined && item.seq > seen));
    this.known.set(session.id, newest);
    if (many === 0) rows.push(el("li", { class: "empty" }, "Nothing is stored. What is said in the chat appears here as soon as it is answered."));
    const moved = this.drawn !== session.id || newest !== this.newest;
    this.drawn = session.id;
    this.newest = newest;
    this.items.replaceChildren(...rows);
    // To the end, or to where the newest item begins when it is longer than the panel.
    if (moved) this.items.scrollTop = this.items.lastElementChild.offsetTop - this.items.firstElementChild.offsetTop;
  }

  row(item, fresh) {
    let value = null;
    try {
      value = JSON.parse(item.raw);
    } catch {
      // Shown as it is.
    }
    const kind = value?.role ?? value?.type ?? "item";
    const json = el("pre", {});
    if (value === null || this.bytes.checked) json.append(item.raw);
    else write(json, value, "");
    return el(
      "li",
      { class: fresh ? "item fresh" : "item", "data-kind": kind },
      el("div", { class: "item-head" }, el("span", { class: "kind" }, kind), el("span", { class: "seq" }, `#${item.seq}`), el("span", { class: "turn", title: "The turn that stored it" }, `turn ${item.turn.slice(0, 8)}`)),
      json,
    );
  }
}

/** write writes a JSON value, indented, its parts in spans of their kind. */
function write(out, value, indent) {
  const list = Array.isArray(value);
  if (value === null || typeof value !== "object") {
    out.append(el("span", { class: value === null ? "null" : typeof value }, JSON.stringify(value)));
    return;
  }
  const entries = list ? value.map((v) => [null, v]) : Object.entries(value);
  if (entries.length === 0) {
    out.append(list ? "[]" : "{}");
    return;
  }
  out.append(list ? "[\n" : "{\n");
  entries.forEach(([key, part], i) => {
    out.append(`${indent}  `);
    if (key !== null) out.append(el("span", { class: "key" }, JSON.stringify(key)), ": ");
    write(out, part, `${indent}  `);
    out.append(i < entries.length - 1 ? ",\n" : "\n");
  });
  out.append(indent + (list ? "]" : "}"));
}
