// Builds the page. Whatever comes from outside gets into it as text alone: nothing here parses HTML.

/** The most characters of a text that is shown. */
export const TEXT_MAX = 300;

/** Makes an element: h("p", {class: "note", onclick: f}, "text", child). */
export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) set(element, key, value);
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function set(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) {
    element.addEventListener(key.slice(2), value);
    element.isOwn = true;
  }
  else if (key === "vars") for (const [name, text] of Object.entries(value)) element.style.setProperty(name, text);
  else if (key in element && typeof value !== "string") element[key] = value;
  else element.setAttribute(key, value === true ? "" : value);
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Characters that would be invisible, or change the order of others.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** A text from outside, of which every character can be seen, and of bounded length. */
export function visible(text, max = TEXT_MAX) {
  const all = String(text);
  let part = all.length > max ? all.slice(0, max) : all;
  part = part.replace(HIDDEN, (character) =>
    character === "\n" ? "⏎" : character === "\t" ? "⇥" : `⟨U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
  return all.length > max ? `${part}… (${count(all.length)} characters)` : part;
}

/** A text from outside, on its own: it can't change how its surroundings are shown. */
export function data(text, attributes = {}, max = TEXT_MAX) {
  return h("bdi", { ...attributes, dir: "ltr" }, visible(text, max));
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Sets a text only if it differs, so that nothing is drawn anew, and nothing selected is lost. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// MARK: Words

const numbers = new Intl.NumberFormat("en-US");
export const count = (number) => (number === null || number === undefined ? "–" : numbers.format(number));

export function rate(number) {
  if (number === null || number === undefined) return "–";
  return number >= 10 || number === 0 ? count(Math.round(number)) : number.toFixed(1);
}

export function size(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (bytes >= factor) return `${(bytes / factor).toFixed(bytes / factor < 10 ? 1 : 0)} ${unit}`;
  }
  return `${bytes} B`;
}

export function duration(milliseconds) {
  if (milliseconds < 1) return `${Math.round(milliseconds * 1000)} µs`;
  if (milliseconds < 1000) return `${milliseconds < 10 ? milliseconds.toFixed(1) : Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** A time of day, with the date and UTC in its title. */
export function time(iso) {
  const date = iso ? new Date(iso) : null;
  if (!date || isNaN(date)) return h("span", { class: "faint" }, "–");
  return h("time", { datetime: iso, title: iso, class: "time" }, clock(date));
}

export function clock(date) {
  const two = (number) => String(number).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

// MARK: Parts

const ICONS = {
  health: "M3 12h4l2.5-7 4 14L16 12h5", nodes: "M12 3v6m0 0L5 17m7-8 7 8M12 3h.01M5 18h.01M19 18h.01",
  entries: "M4 6h16M4 12h16M4 18h10", stores: "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zm0 0v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  runbook: "M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM9 9h6M9 13h6", pause: "M8 5v14M16 5v14", play: "M7 5l12 7-12 7z",
  first: "M6 5v14M18 5l-9 7 9 7z", back: "M15 5l-8 7 8 7", forward: "M9 5l8 7-8 7", live: "M12 12h.01M7 7a7 7 0 0 0 0 10M17 7a7 7 0 0 1 0 10",
  sun: "M12 4V2m0 20v-2m8-8h2M2 12h2m13.7-5.7 1.4-1.4M4.9 19.1l1.4-1.4m0-11.4L4.9 4.9m14.2 14.2-1.4-1.4M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0z",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z", key: "M15 7a4 4 0 1 1-3.5 5.9L9 15.5V18H6v3H3v-3.5l6.2-6.2A4 4 0 0 1 15 7z",
  check: "M5 12.5l4.5 4.5L19 7.5", alarm: "M12 8v5m0 3.5h.01M10.3 4 2.6 17.5A2 2 0 0 0 4.3 20.5h15.4a2 2 0 0 0 1.7-3L13.7 4a2 2 0 0 0-3.4 0z",
  chevron: "M9 6l6 6-6 6", close: "M6 6l12 12M18 6L6 18", help: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5h.01",
};

export function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": "1.8", "stroke-linecap": "round", "stroke-linejoin": "round" },
    svg("path", { d: ICONS[name] }));
}

/** A line of values over time; null is a gap. Its label says what a screen reader needs. */
export function spark(values, label, { width = 120, height = 28, tone = "accent" } = {}) {
  const known = values.filter((value) => value !== null);
  const top = Math.max(...known, 1);
  const step = width / Math.max(values.length - 1, 1);
  const y = (value) => (height - 2 - (value / top) * (height - 5)).toFixed(1);
  let line = "";
  values.forEach((value, index) => {
    if (value === null) return;
    line += `${line === "" || values[index - 1] === null ? "M" : "L"}${(index * step).toFixed(1)} ${y(value)}`;
  });
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: `spark ${tone}`, role: "img", "aria-label": label, preserveAspectRatio: "none" });
  const first = values.findIndex((value) => value !== null);
  if (line !== "" && !values.slice(first).includes(null)) {
    picture.append(svg("path", { d: `${line}L${width} ${height}L${(first * step).toFixed(1)} ${height}Z`, class: "area" }));
  }
  if (line !== "") picture.append(svg("path", { d: line, class: "line" }));
  return picture;
}

export const chip = (text, tone = "") => h("span", { class: `chip ${tone}` }, text);

export function empty(title, text) {
  return h("div", { class: "empty" }, h("strong", {}, title), text ? h("p", {}, text) : null);
}

/** A link to a store's view. */
export const storeLink = (name) => h("a", { href: `#/stores/${name}`, class: "mono" }, data(name));

export function announce(text) {
  put(document.getElementById("announcer"), text);
}

/** Asks a question in a dialog. Resolves to what was chosen; false if it was closed. */
export function ask({ title, body, yes, danger = false, check = () => true }) {
  return new Promise((resolve) => {
    const confirm = h("button", { type: "submit", class: danger ? "danger" : "primary", value: "yes" }, yes);
    const form = h("form", { method: "dialog" }, h("h2", { id: "question" }, title), body,
      h("div", { class: "actions" }, h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Cancel"), confirm));
    const dialog = h("dialog", { "aria-labelledby": "question" }, form);
    const update = () => { confirm.disabled = !check(form); };
    form.addEventListener("input", update);
    form.addEventListener("submit", () => { dialog.returnValue = "yes"; });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? form : false);
    });
    document.body.append(dialog);
    update();
    dialog.showModal();
  });
}

// MARK: Updates

/**
 * Makes the children of an element equal to new ones, and keeps those that are alike: so nothing loses the focus, a
 * selection or its place because a number next to it has changed.
 */
export function morph(element, ...children) {
  const next = children.flat(3).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(child)));
  const wanted = new Set(next);
  next.forEach((child, index) => {
    const old = element.childNodes[index];
    if (old === child) return;
    if (!old) element.append(child);
    else if (child.parentNode === element || wanted.has(old) || !isAlike(old, child)) element.insertBefore(child, old);
    else if (old.nodeType === Node.TEXT_NODE) put(old, child.data);
    else {
      for (const { name } of [...old.attributes]) if (!child.hasAttribute(name)) old.removeAttribute(name);
      for (const { name, value } of child.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
      if (child.style?.length || old.style?.length) old.style.cssText = child.style.cssText;
      morph(old, ...child.childNodes);
    }
  });
  while (element.childNodes.length > next.length) element.lastChild.remove();
  return element;
}

/** An element with functions of its own is never another one's. */
function isAlike(old, child) {
  return old.nodeType === child.nodeType && old.nodeName === child.nodeName && !old.isOwn && !child.isOwn;
}

/** A note at the edge of the page, for some seconds. */
export function toast(text, tone = "good") {
  const element = h("div", { class: `toast ${tone}`, role: tone === "bad" ? "alert" : "status" }, h("span", {}, text),
    h("button", { type: "button", class: "quiet square", "aria-label": "Close", onclick: () => element.remove() }, icon("close")));
  document.body.append(element);
  if (tone !== "bad") setTimeout(() => element.remove(), 6000);
}
