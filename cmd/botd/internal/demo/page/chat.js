// One platform's panel: its places, the messages of the one shown, and the line to write in.
import { avatar, el, linkified, post, select, tablist, time } from "./dom.js";
import { markdown } from "./markdown.js";

const hints = {
  direct: ["my name is Mika", "what is my name?", "time in Tokyo?", "remember the keys", "what do you remember?"],
  group: ["my name is Mika", "what is my name?", "what do you remember?"],
};

export class Chat {
  constructor(panel, platform, onShow) {
    this.panel = panel;
    this.platform = platform;
    this.onShow = onShow;
    this.places = new Map();
    this.sessions = new Map();
    this.tabs = panel.querySelector(".places");
    this.log = panel.querySelector(".log");
    this.typing = panel.querySelector(".typing");
    this.form = panel.querySelector(".composer");
    this.text = this.form.elements.text;
    this.person = this.form.elements.person;
    this.mention = this.form.elements.mention;
    this.failure = panel.querySelector(".failure");
    tablist(this.tabs);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.say(this.text.value);
    });
    // Enter sends, unless it confirms what an input method has composed: that makes no line break.
    this.text.addEventListener("keydown", (event) => (this.shift = event.shiftKey));
    this.text.addEventListener("beforeinput", (event) => {
      if (event.inputType !== "insertLineBreak" || this.shift || event.isComposing) return;
      event.preventDefault();
      this.form.requestSubmit();
    });
    this.text.addEventListener("input", () => this.grow());
    this.text.addEventListener("focus", () => this.onShow(this));
    this.person.addEventListener("change", () => {
      this.at.speaker = this.person.value;
      this.draw();
      this.onShow(this);
    });
    panel.querySelector(".reset").addEventListener("click", () => this.reset());
    // Who reads the newest message goes on reading it when the panel is shown or changes its size.
    this.log.addEventListener("scroll", () => (this.bottom = this.atBottom()));
    new ResizeObserver(() => this.bottom && this.scroll()).observe(this.log);
  }

  /** atBottom tells whether the newest message is in sight. */
  atBottom() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80;
  }

  scroll() {
    this.log.scrollTop = this.log.scrollHeight;
    this.bottom = true;
  }

  /** load takes the state of the platform's places. */
  load(places) {
    const shown = this.at?.id;
    const speakers = new Map([...this.places.values()].map((place) => [place.id, place.speaker]));
    this.places.clear();
    this.tabs.replaceChildren();
    for (const place of places) {
      place.messages = new Map((place.messages ?? []).map((message) => [message.id, message]));
      place.speaker = speakers.get(place.id) ?? place.people[0].id;
      place.busy = place.busy ? Date.parse(place.busy) : 0;
      place.unread = 0;
      this.places.set(place.id, place);
      place.tab = el(
        "button",
        { type: "button", role: "tab", id: `tab-${place.id}`, title: place.subtitle, click: () => this.show(place) },
        this.platform === "discord" ? el("span", { class: "sigil", "aria-hidden": "true" }, place.group ? "#" : "@") : null,
        el("span", { class: "title" }, place.title),
      );
      this.tabs.append(place.tab);
    }
    this.show(this.places.get(shown) ?? places[0], true);
  }

  /** session takes the state of a session, for the note in a chat that is new to it. */
  session(session) {
    this.sessions.set(session.id, session);
    if (this.at && this.at.messages.size === 0 && this.current.session === session.id) this.draw();
  }

  get current() {
    return this.at.people.find((person) => person.id === this.at.speaker);
  }

  show(place, quietly) {
    this.at = place;
    place.unread = 0;
    place.tab.classList.remove("unread");
    select(this.tabs, place.tab);
    this.log.setAttribute("aria-labelledby", place.tab.id);
    this.person.replaceChildren(...place.people.map((person) => el("option", { value: person.id }, person.name)));
    this.person.value = place.speaker;
    this.form.querySelector(".options").hidden = !place.group;
    this.text.placeholder = this.platform === "discord" ? `Message ${place.group ? "#" : "@"}${place.title}` : "Message";
    this.panel.querySelector(".hints").replaceChildren(
      ...(place.group ? hints.group : hints.direct).map((hint) => el("button", { type: "button", click: () => this.say(hint) }, hint)),
    );
    this.draw();
    if (!quietly) this.onShow(this);
  }

  /** update takes one change in one of the places. */
  update(update) {
    const place = this.places.get(update.place);
    if (!place) return;
    if (update.busy) place.busy = Date.parse(update.busy);
    if (update.message) {
      const fresh = !place.messages.has(update.message.id);
      if (update.message.bot) place.busy = 0;
      place.messages.set(update.message.id, update.message);
      if (place !== this.at && fresh) place.tab.classList.add("unread");
    }
    if (update.reset) {
      const id = `reset-${place.messages.size}-${Date.now()}`;
      place.messages.set(id, { id, notice: "Memory reset. The chat is still here, but botd has forgotten it." });
    }
    if (place === this.at) this.draw();
  }

  async say(text) {
    if (text.trim() === "") return;
    this.fail("");
    this.onShow(this);
    const mine = text === this.text.value;
    if (mine) {
      this.text.value = "";
      this.grow();
    }
    try {
      await post("/api/say", { place: this.at.id, person: this.at.speaker, text, mention: this.mention.checked });
    } catch (problem) {
      this.fail(problem.message);
      if (mine && this.text.value === "") this.text.value = text;
    }
  }

  async reset() {
    this.fail("");
    this.onShow(this);
    try {
      await post("/api/reset", { place: this.at.id, person: this.at.speaker });
    } catch (problem) {
      this.fail(problem.message);
    }
  }

  fail(text) {
    this.failure.hidden = !text;
    this.failure.textContent = text;
  }

  grow() {
    this.text.rows = Math.min(6, Math.max(1, this.text.value.split("\n").length));
  }

  draw() {
    const place = this.at;
    const bottom = this.bottom || this.atBottom() || place !== this.drawn;
    this.drawn = place;
    const rows = [];
    let last = null;
    for (const message of place.messages.values()) {
      if (message.deleted) continue;
      if (message.notice) {
        rows.push(el("p", { class: "notice" }, message.notice));
        last = null;
        continue;
      }
      const follows = last && last.from === message.from && !message.reply_to && Date.parse(message.at) - Date.parse(last.at) < 300000;
      rows.push(this.platform === "line" ? this.bubble(message, follows) : this.row(message, follows));
      last = message;
    }
    if (rows.length === 0) rows.push(this.welcome());
    this.drawTyping(rows);
    this.log.replaceChildren(...rows);
    if (bottom) this.scroll();
  }

  welcome() {
    const kept = this.sessions.get(this.current.session)?.items.length ?? 0;
    return el(
      "div",
      { class: "welcome" },
      avatar("botd", true),
      el("strong", {}, this.at.title),
      el("small", {}, this.at.subtitle),
      kept > 0
        ? el("p", {}, `This chat is new, but botd remembers ${kept} items of it from before. Ask what it remembers.`)
        : el("p", {}, this.at.group ? "In a group botd answers when it is mentioned, and otherwise keeps quiet." : "Say something, or press one of the suggestions below."),
    );
  }

  drawTyping(rows) {
    clearTimeout(this.timer);
    const left = this.at.busy - Date.now();
    const busy = left > 0;
    if (busy) this.timer = setTimeout(() => this.draw(), left + 50);
    this.typing.hidden = !busy || this.platform === "line";
    const dots = () => el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i"));
    if (this.platform === "line") {
      if (busy) rows.push(el("div", { class: "message loading" }, avatar("botd", true), el("div", { class: "bubble" }, el("span", { class: "hide" }, "botd is writing"), dots())));
    } else if (busy) {
      this.typing.replaceChildren(dots(), el("b", {}, "botd"), " is typing…");
    }
  }

  quoted(message) {
    const source = message.reply_to && this.at.messages.get(message.reply_to);
    return source ? el("div", { class: "quoted" }, el("b", {}, source.name), " ", el("span", {}, source.text)) : null;
  }

  bubble(message, follows) {
    const mine = message.from === this.at.speaker;
    return el(
      "div",
      { class: `message ${mine ? "mine" : "theirs"}${follows ? " follows" : ""}`, "data-bot": String(message.bot) },
      mine ? null : avatar(message.name, message.bot),
      el(
        "div",
        { class: "body" },
        mine || follows ? null : el("span", { class: "name" }, message.name),
        el("div", { class: "bubble" }, this.quoted(message), el("span", { class: "text" }, linkified(message.text))),
      ),
      el("span", { class: "meta" }, mine ? el("span", {}, "Read") : null, time(message.at)),
    );
  }

  row(message, follows) {
    const names = ["botd", ...this.at.people.map((person) => person.name)];
    return el(
      "div",
      { class: `message${follows ? " follows" : ""}`, "data-bot": String(message.bot) },
      this.quoted(message),
      avatar(message.name, message.bot),
      el(
        "div",
        { class: "body" },
        el(
          "div",
          { class: "head" },
          el("span", { class: "name" }, message.name),
          message.bot ? el("span", { class: "badge" }, "APP") : null,
          time(message.at),
        ),
        el("div", { class: "text" }, markdown(message.text, names)),
      ),
    );
  }
}
