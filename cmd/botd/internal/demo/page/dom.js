// Small helpers. Nothing here or elsewhere on the page turns text into markup: text stays text.

/** el makes an element; attributes that are functions listen to the event of their name. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/** link makes a link that gives nothing away to where it leads. */
export function link(url, ...children) {
  return el("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

/** linkified returns text with its web addresses as links. */
export function linkified(text) {
  const out = document.createDocumentFragment();
  let from = 0;
  for (const match of text.matchAll(/https?:\/\/[^\s<>"]*[^\s<>".,:;!?'()\]]/g)) {
    out.append(text.slice(from, match.index), link(match[0], match[0]));
    from = match.index + match[0].length;
  }
  out.append(text.slice(from));
  return out;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });

/** time makes a time of day. */
export function time(at) {
  return el("time", { datetime: at }, clock.format(new Date(at)));
}

/** avatar makes a round picture of a name. */
export function avatar(name, bot) {
  const hue = [...name].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) % 6, 0);
  const node = el("span", { class: bot ? "avatar bot" : "avatar", "aria-hidden": "true", "data-hue": hue });
  if (!bot) node.append([...name][0] ?? "?");
  return node;
}

/** tablist lets the arrow keys move between the tabs of a list. */
export function tablist(list) {
  list.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const tabs = [...list.querySelectorAll("[role=tab]")];
    const at = tabs.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = tabs[(at + step + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
}

/** select marks one tab of a list as the selected one. */
export function select(list, chosen) {
  for (const tab of list.querySelectorAll("[role=tab]")) {
    tab.setAttribute("aria-selected", String(tab === chosen));
    tab.tabIndex = tab === chosen ? 0 : -1;
  }
}

/** post sends JSON to the demo and throws what went wrong, in words. */
export async function post(path, body) {
  let response;
  try {
    response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error("The demo does not answer. Has it stopped?");
  }
  if (!response.ok) throw new Error((await response.text()).trim() || `Status ${response.status}`);
}
