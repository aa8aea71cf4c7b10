// A value as a tree. However large the value is, only a bounded number of rows is in the page.

import { count, h, icon, visible } from "./dom.js";

/** The most members of one object or array that are shown before somebody asks for more. */
const MEMBERS_MAX = 100;
/** The most rows. */
const ROWS_MAX = 1500;
/** The most marks of changes. */
const MARKS_MAX = 500;
/** How long a change is marked, in milliseconds. */
const MARK_TIME = 6000;

const isBranch = (value) => value !== null && typeof value === "object";
const keysOf = (value) => (Array.isArray(value) ? value.length : Object.keys(value).length);
const escape = (key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1");
const unescape = (token) => token.replaceAll("~1", "/").replaceAll("~0", "~");

/** A short text of any value, whose cost is bounded. */
export function brief(value, max = 120) {
  let text = "";
  const write = (part) => { text += part; return text.length <= max; };
  const walk = (item) => {
    if (text.length > max) return;
    if (typeof item === "string") write(JSON.stringify(item.slice(0, max)));
    else if (!isBranch(item)) write(String(item));
    else if (Array.isArray(item)) {
      write("[");
      for (let index = 0; index < item.length && text.length <= max; index += 1) {
        if (index > 0) write(",");
        walk(item[index]);
      }
      write("]");
    } else {
      write("{");
      let isFirst = true;
      for (const key in item) {
        if (text.length > max) break;
        write(`${isFirst ? "" : ","}${JSON.stringify(key.slice(0, max))}:`);
        walk(item[key]);
        isFirst = false;
      }
      write("}");
    }
  };
  walk(value);
  return text.length > max ? `${text.slice(0, max)}…` : text;
}

/**
 * Applies a JSON Patch of add, remove and replace.
 *
 * @returns The new value, and what has changed: {path, op, old, value}.
 */
export function applyPatch(root, patch) {
  const holder = { root };
  const changes = [];
  for (const step of patch) {
    const tokens = step.path === "" ? [] : step.path.slice(1).split("/").map(unescape);
    let place = holder;
    let key = "root";
    for (const token of tokens) {
      place = place[key];
      key = token;
    }
    const inArray = Array.isArray(place);
    const isEnd = inArray && key === "-";
    const old = isEnd ? undefined : Object.hasOwn(place, key) ? place[key] : undefined;
    if (step.op === "remove") {
      if (inArray) place.splice(Number(key), 1);
      else delete place[key];
    } else if (step.op === "add" && inArray) {
      if (isEnd) place.push(step.value);
      else place.splice(Number(key), 0, step.value);
    } else if (inArray || place === holder) place[key] = step.value;
    // A member may have any name, __proto__ too.
    else Object.defineProperty(place, key, { value: step.value, enumerable: true, configurable: true, writable: true });
    const isNew = step.op === "add" && inArray;
    changes.push({ path: isEnd ? step.path.replace(/-$/, String(place.length - 1)) : step.path, op: step.op, old: isNew ? undefined : old, value: step.value });
  }
  return { root: holder.root, changes };
}

/** The changes as a list: what was, and what is. */
export function changeList(changes, max = 100) {
  const rows = changes.slice(0, max).map((change) => {
    const op = change.op ?? "replace";
    const label = op === "add" ? "added" : op === "remove" ? "removed" : "changed";
    return h("li", { class: `change ${op}` },
      h("span", { class: "op", title: label }, h("span", { class: "unseen" }, label), h("span", { "aria-hidden": "true" }, op === "add" ? "+" : op === "remove" ? "−" : "±")),
      h("bdi", { class: "path mono", dir: "ltr" }, change.path === "" ? "(the whole state)" : visible(change.path, 200)),
      h("span", { class: "values mono" },
        change.old !== undefined ? h("del", {}, h("bdi", { dir: "ltr" }, visible(brief(change.old, 200)))) : null,
        op !== "remove" ? h("ins", {}, h("bdi", { dir: "ltr" }, visible(brief(change.value, 200)))) : null));
  });
  if (changes.length > max) rows.push(h("li", { class: "faint" }, `and ${count(changes.length - max)} more`));
  return h("ul", { class: "changes" }, rows);
}

export class Tree {
  element = h("div", { class: "tree mono", role: "tree", "aria-label": "State" });
  #value = undefined;
  #open = new Set([""]);
  #more = new Map();
  #marks = new Map();
  #rows = new Map();
  #focus = "";
  #timer = 0;

  constructor() {
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  /**
   * Shows a value, with marks at what has changed.
   *
   * @param reveal Whether to open the branches of the first change, and to scroll there.
   * @param word What the old value is called.
   * @param keep Whether the marks stay, until they are cleared.
   */
  show(value, changes = [], { reveal = false, word = "was", keep = false } = {}) {
    const isFirst = this.#value === undefined;
    this.#value = value;
    if (isFirst) this.#openSome();
    const now = performance.now();
    for (const change of changes.slice(-MARKS_MAX)) {
      this.#marks.delete(change.path);
      this.#marks.set(change.path, { ...change, at: now, word, until: keep ? Infinity : now + MARK_TIME });
    }
    while (this.#marks.size > MARKS_MAX) this.#marks.delete(this.#marks.keys().next().value);
    const first = reveal ? changes.find((change) => change.op !== "remove") : null;
    if (first) this.#openTo(first.path);
    this.render();
    if (first) this.#scrollTo(first.path);
  }

  #openTo(path) {
    const tokens = path.split("/").slice(1);
    let place = this.#value;
    tokens.forEach((token, depth) => {
      if (!isBranch(place)) return;
      const parent = tokens.slice(0, depth).map((part) => `/${part}`).join("");
      this.#open.add(parent);
      const key = unescape(token);
      const index = Array.isArray(place) ? Number(key) : Object.keys(place).indexOf(key);
      if (index >= (this.#more.get(parent) ?? MEMBERS_MAX)) this.#more.set(parent, Math.min(index + 1, ROWS_MAX - 100));
      place = place[key];
    });
  }

  #scrollTo(path) {
    const row = this.#rows.get(path);
    if (!row) return;
    const { offsetTop: top, offsetHeight: height } = row;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top + height > scrollTop + clientHeight) this.element.scrollTop = top - clientHeight / 3;
  }

  clearMarks() { this.#marks.clear(); }

  /** At first, small values are open, two levels deep. */
  #openSome() {
    let room = 40;
    const walk = (value, path, depth) => {
      if (!isBranch(value) || depth > 2) return;
      room -= keysOf(value);
      if (path !== "" && (room < 0 || keysOf(value) > 12)) return;
      this.#open.add(path);
      if (keysOf(value) > MEMBERS_MAX) return;
      for (const [key, member] of Object.entries(value)) walk(member, `${path}/${escape(key)}`, depth + 1);
    };
    walk(this.#value, "", 0);
  }

  render() {
    clearTimeout(this.#timer);
    const now = performance.now();
    for (const [path, mark] of this.#marks) if (now > mark.until) this.#marks.delete(path);
    // A change in a closed branch is shown at the branch.
    const closed = new Map();
    for (const mark of this.#marks.values()) {
      const parts = mark.path.split("/");
      for (let length = 1; length < parts.length; length += 1) {
        const path = parts.slice(0, length).join("/");
        if (!this.#open.has(path)) { closed.set(path, mark); break; }
      }
    }
    const rows = [];
    this.#collect(this.#value, "", null, 0, rows);
    const old = this.#rows;
    this.#rows = new Map();
    const elements = rows.map((row) => {
      const element = this.#row(row, old.get(row.id), this.#marks.get(row.path) ?? closed.get(row.path), now);
      this.#rows.set(row.id, element);
      return element;
    });
    if (!this.#rows.has(this.#focus)) this.#focus = rows[0]?.id ?? "";
    for (const [id, element] of this.#rows) element.tabIndex = id === this.#focus ? 0 : -1;
    const focused = document.activeElement;
    const hadFocus = this.element.contains(focused);
    this.element.replaceChildren(...elements);
    if (hadFocus) this.#rows.get(this.#focus)?.focus({ preventScroll: true });
    if ([...this.#marks.values()].some((mark) => mark.until !== Infinity)) this.#timer = setTimeout(() => this.render(), MARK_TIME);
  }

  #collect(value, path, key, depth, rows) {
    if (rows.length >= ROWS_MAX) return;
    const branch = isBranch(value);
    const isOpen = branch && this.#open.has(path);
    rows.push({ id: path, path, key, value, depth, branch, isOpen });
    if (!isOpen) return;
    const most = this.#more.get(path) ?? MEMBERS_MAX;
    const total = keysOf(value);
    let index = 0;
    const add = (name, member) => this.#collect(member, `${path}/${escape(name)}`, name, depth + 1, rows);
    if (Array.isArray(value)) for (; index < Math.min(total, most); index += 1) add(index, value[index]);
    else for (const name in value) {
      if (index >= most) break;
      add(name, value[name]);
      index += 1;
    }
    if (rows.length >= ROWS_MAX) {
      if (!rows.some((row) => row.full)) rows.push({ id: "#full", path, depth: 1, full: true });
    } else if (total > most) rows.push({ id: `#more ${path}`, path, depth: depth + 1, left: total - most, most });
  }

  #row(row, element, mark, now) {
    element ??= h("div", { role: "treeitem" });
    const signature = row.full ? "full" : row.left ? `more ${row.left}` : row.branch ? `${Array.isArray(row.value)} ${keysOf(row.value)} ${row.isOpen}` : `${typeof row.value} ${String(row.value).slice(0, 400)}`;
    const stamp = `${signature} ${row.depth} ${mark?.at ?? ""}`;
    if (element.stamp === stamp) return element;
    element.stamp = stamp;
    element.style.setProperty("--depth", row.depth);
    element.setAttribute("aria-level", row.depth + 1);
    element.dataset.id = row.id;
    element.className = "row";
    element.onfocus = () => { this.#focus = row.id; };
    if (row.full || row.left) {
      element.classList.add("note");
      element.onclick = row.left ? () => { this.#more.set(row.path, row.most + 500); this.render(); } : null;
      element.replaceChildren(row.left ? `${count(row.left)} more: show 500` : `The tree shows ${count(ROWS_MAX)} rows. Close branches to see others.`);
      return element;
    }
    if (row.branch) {
      element.setAttribute("aria-expanded", row.isOpen);
      element.onclick = () => this.toggle(row.path);
    } else {
      element.removeAttribute("aria-expanded");
      element.onclick = null;
    }
    const key = row.key === null ? null : h("bdi", { class: typeof row.key === "number" ? "index" : "key", dir: "ltr" }, visible(row.key, 120));
    element.replaceChildren(
      h("span", { class: `twist ${row.isOpen ? "open" : ""}`, "aria-hidden": "true" }, row.branch ? icon("chevron") : ""),
      ...(key ? [key, h("span", { class: "colon" }, ": ")] : []), this.#text(row), ...this.#change(row, mark));
    if (mark && now - mark.at < 100) {
      element.classList.add("flash");
      element.addEventListener("animationend", () => element.classList.remove("flash"), { once: true });
    }
    return element;
  }

  #text(row) {
    const { value } = row;
    if (row.branch) {
      const total = keysOf(value);
      const words = Array.isArray(value) ? `[ ${count(total)} ]` : `{ ${count(total)} }`;
      return h("span", { class: "branch" }, words, row.isOpen || total === 0 ? null : h("bdi", { class: "preview", dir: "ltr" }, visible(brief(value, 60), 80)));
    }
    const kind = value === null ? "null" : typeof value === "bigint" ? "number" : typeof value;
    const text = typeof value === "string" ? `"${visible(value)}"` : String(value);
    return h("bdi", { class: kind, dir: "ltr" }, text);
  }

  #change(row, mark) {
    if (!mark || row.path !== mark.path) return mark ? [h("span", { class: "was" }, mark.word === "was" ? "changed inside" : "differs inside")] : [];
    if (mark.old === undefined) return [h("span", { class: "was" }, "new")];
    return [h("span", { class: "was" }, `${mark.word} `, h("del", {}, h("bdi", { dir: "ltr" }, visible(brief(mark.old, 60), 80))))];
  }

  toggle(path) {
    this.#focus = path;
    if (this.#open.has(path)) this.#open.delete(path);
    else this.#open.add(path);
    this.render();
    this.#rows.get(path)?.focus({ preventScroll: true });
  }

  #key(event) {
    const ids = [...this.#rows.keys()];
    const at = ids.indexOf(this.#focus);
    const element = this.#rows.get(this.#focus);
    const expanded = element?.getAttribute("aria-expanded");
    const go = (index) => {
      const id = ids[Math.max(0, Math.min(ids.length - 1, index))];
      this.#rows.get(this.#focus)?.setAttribute("tabindex", "-1");
      this.#focus = id;
      this.#rows.get(id).tabIndex = 0;
      this.#rows.get(id).focus();
    };
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(ids.length - 1);
    else if (event.key === "ArrowRight" && expanded === "false") this.toggle(this.#focus);
    else if (event.key === "ArrowLeft" && expanded === "true") this.toggle(this.#focus);
    else if (event.key === "ArrowLeft" && this.#focus.includes("/")) go(ids.indexOf(this.#focus.slice(0, this.#focus.lastIndexOf("/"))));
    else if (event.key === "Enter" || event.key === " ") element?.onclick?.();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
