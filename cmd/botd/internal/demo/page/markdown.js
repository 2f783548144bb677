// Discord's dialect of Markdown, as far as a bot writes it, built from elements and text alone.
import { el, link } from "./dom.js";

/** markdown returns a message as Discord shows it; names are those that can be mentioned. */
export function markdown(text, names) {
  const out = document.createDocumentFragment();
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; ) {
    const fence = /^```([\w+\-.#]*)\s*$/.exec(lines[i]);
    if (fence) {
      let end = i + 1;
      while (end < lines.length && !lines[end].startsWith("```")) end++;
      out.append(el("pre", { "data-language": fence[1] || null }, el("code", {}, lines.slice(i + 1, end).join("\n"))));
      i = end + 1;
    } else if (/^> /.test(lines[i])) {
      let end = i;
      while (end < lines.length && /^> /.test(lines[end])) end++;
      out.append(el("blockquote", {}, markdown(lines.slice(i, end).map((l) => l.slice(2)).join("\n"), names)));
      i = end;
    } else {
      out.append(line(lines[i], names));
      i++;
    }
  }
  return out;
}

function line(text, names) {
  let match;
  if ((match = /^(#{1,3}) (.+)/.exec(text))) {
    return el("div", { class: `h${match[1].length}` }, inline(match[2], names));
  }
  if ((match = /^-# (.+)/.exec(text))) return el("div", { class: "subtext" }, inline(match[1], names));
  if ((match = /^( *)([-*]|\d+\.) (.*)/.exec(text))) {
    const depth = Math.min(Math.floor(match[1].length / 2), 4);
    const mark = match[2].length === 1 ? "•" : match[2];
    return el("div", { class: "li", "data-depth": depth }, el("span", { class: "mark" }, mark), el("span", {}, inline(match[3], names)));
  }
  return el("div", { class: text === "" ? "gap" : "p" }, inline(text, names));
}

const wrap = (tag, attributes = {}) => (match, names) => el(tag, attributes, inline(match[1], names));

const rules = [
  [/\\([^\p{L}\p{N}\s])/uy, (match) => match[1]],
  [/(`+)([^]*?[^`])\1(?!`)/y, (match) => el("code", {}, match[2])],
  [/\*\*([^]+?)\*\*(?!\*)/y, wrap("strong")],
  [/__([^]+?)__(?!_)/y, wrap("u")],
  [/\*(?=\S)((?:\*\*|[^*])+?)\*(?!\*)/y, wrap("em")],
  [/(?<![\p{L}\p{N}])_(?=\S)([^]+?)_(?![\p{L}\p{N}_])/uy, wrap("em")],
  [/~~([^]+?)~~/y, wrap("s")],
  [/\|\|([^]+?)\|\|/y, wrap("span", { class: "spoiler", tabindex: "0" })],
  [/\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)/y, (match, names) => link(match[2], inline(match[1], names))],
  [/https?:\/\/[^\s<]+[^<.,:;"')\]\s]/y, (match) => link(match[0], match[0])],
  [/@([\p{L}\p{N}_]+)/uy, (match, names) => (names.includes(match[1]) ? el("span", { class: "ping" }, match[0]) : match[0])],
];

function inline(text, names) {
  const out = document.createDocumentFragment();
  let plain = "";
  for (let at = 0; at < text.length; ) {
    const found = rules.some(([pattern, make]) => {
      pattern.lastIndex = at;
      const match = pattern.exec(text);
      if (!match) return false;
      if (plain) out.append(plain);
      plain = "";
      out.append(make(match, names));
      at += match[0].length;
      return true;
    });
    if (!found) plain += text[at++];
  }
  if (plain) out.append(plain);
  return out;
}
