// What just happened?

import { Stream } from "../api.js";
import { announce, count, data, h, icon, plural, put, replace, time, visible } from "../dom.js";
import { brief } from "../tree.js";

/** The most entries that are kept, and that are in the page. */
const KEPT_MAX = 500;

/** An event of the log's own, in words. */
export function eventWords(entry) {
  const by = entry.key ? `, by the key ${entry.key}` : "";
  const words = {
    claim: () => `Epoch ${entry.epoch} began`, joined: () => entry.rejoining ? `Node ${entry.rejoining} is back` : `${entry.name ?? (entry.keyed ? "A process with a key" : "A node without a name")} joined`,
    left: () => `Node ${entry.incarnation} left`, forgotten: () => `Node ${entry.incarnation} is forgotten`, created: () => `${entry.store} was created`,
    dropped: () => `${entry.store} was dropped`, upgraded: () => `${entry.store} has schema version ${entry.schemaVersion}`, frozen: () => `${entry.store} was frozen (${entry.reason})`,
    thawed: () => `${entry.store} was thawed`, digestPoint: () => `${entry.store}: replicas compare their states`, skipped: () => `Entry ${entry.skipped} was skipped for ${entry.target}`,
    forked: () => `This log began as a copy of ${String(entry.from).slice(0, 8)}…`, handles: () => `${entry.state}/* takes the events ${entry.events}`, visited: () => "A program came for one dispatch",
  }[entry.kind];
  return (words?.() ?? entry.kind) + by;
}

/** The name of an action, and its arguments. */
export function actionParts(entry) {
  const { action } = entry;
  if (entry.hidden) return ["hidden", "this gateway's key may not observe it"];
  if (action === undefined || action === null) {
    const name = /^\s*\{\s*"([^"\\]{1,64})"\s*:/.exec(entry.text ?? "")?.[1];
    return [name ?? (entry.text ? "action" : "compact"), entry.text ? `${entry.text} … ${count(entry.bytes)} bytes` : "only a program with this state can read it"];
  }
  if (typeof action === "string") return [action, ""];
  const keys = typeof action === "object" && !Array.isArray(action) ? Object.keys(action) : [];
  if (keys.length !== 1) return ["action", brief(action, 240)];
  const inner = action[keys[0]];
  if (inner !== null && typeof inner === "object" && !Array.isArray(inner)) {
    return [keys[0], Object.entries(inner).map(([key, value]) => `${key}: ${brief(value, 120)}`).join("  ")];
  }
  return [keys[0], brief(inner, 240)];
}

export class EntriesView {
  #page; #stream = null; #target = ""; #entries = []; #fresh = []; #isPaused = false; #frame = 0;
  #seen = 0; #left = 0; #last = 0;
  #filters = {};
  #list = h("ol", { class: "entries", "aria-label": "Entries, newest first" });
  #note = h("p", { class: "faint", id: "entries-note" });
  #pause = h("button", { type: "button", onclick: () => this.#setPaused(!this.#isPaused) });
  #rows = new Map();

  constructor(main, page, part, query) {
    this.#page = page;
    const filter = (name, label, placeholder) => {
      const input = h("input", { type: "search", name, placeholder, "aria-label": label, list: name === "q" || name === "action" ? null : `${name}-list`, autocomplete: "off" });
      input.value = query.get(name) ?? "";
      input.addEventListener("input", () => {
        page.setQuery({ [name]: input.value.trim() });
        this.#refilter();
      });
      this.#filters[name] = input;
      return input;
    };
    replace(main, h("div", { class: "head" }, h("h1", {}, "Entries"), this.#note),
      h("div", { class: "filters", role: "search", "aria-label": "Filter entries" },
        filter("store", "Store", "Store"), filter("node", "Node", "Node"), filter("action", "Action", "Action"), filter("q", "Text", "Text  /"),
        this.#pause, h("datalist", { id: "store-list" }), h("datalist", { id: "node-list" })),
      this.#list);
    this.#setPaused(false);
    this.#follow();
    this.#showNote();
  }

  close() {
    this.#stream?.close();
    cancelAnimationFrame(this.#frame);
  }

  changed(query) {
    for (const [name, input] of Object.entries(this.#filters)) input.value = query.get(name) ?? "";
    this.#refilter();
  }

  key(event) {
    if (event.key === "/") this.#filters.q.focus();
    else if (event.key === " ") this.#setPaused(!this.#isPaused);
    else return false;
    return true;
  }

  update() {
    const status = this.#page.model.overview?.sequencer;
    if (!status) return;
    const options = (id, names) => {
      const list = document.getElementById(id);
      const stamp = names.join();
      if (!list || list.dataset.stamp === stamp) return;
      list.dataset.stamp = stamp;
      replace(list, names.slice(0, 200).map((value) => h("option", { value })));
    };
    options("store-list", status.stores.map((store) => store.store));
    options("node-list", status.sessions.map((node) => node.name ?? `node ${node.incarnation}`));
  }

  // MARK: The stream

  /** A whole name of a store is filtered by the gateway, before it samples. */
  #follow() {
    const name = this.#filters.store.value.trim();
    const target = /^[a-z0-9._-]+\/[a-z0-9._*-]+$/.test(name) ? name : "";
    if (this.#stream && target === this.#target) return;
    this.#target = target;
    this.#stream?.close();
    this.#entries = [];
    this.#rows.clear();
    this.#seen = this.#left = 0;
    this.#stream = new Stream(target ? `/entries?target=${encodeURIComponent(target)}` : "/entries", {
      entries: (batch) => this.#take(batch),
      open: () => this.#showNote(),
      closed: (problem) => put(this.#note, `${problem.message} The page tries again by itself.`),
    });
  }

  #take(batch) {
    // After a new connection the newest ones come again.
    const news = batch.entries.filter((entry) => entry.sequence > this.#last);
    if (batch.through < this.#last) this.#entries = [];
    this.#last = batch.through;
    this.#seen += batch.entries.length + batch.left;
    this.#left += batch.left;
    if (this.#isPaused) {
      this.#fresh = [...this.#fresh, ...news].slice(-KEPT_MAX);
      return this.#showNote();
    }
    this.#entries = [...this.#entries, ...news].slice(-KEPT_MAX);
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#render();
    });
  }

  #setPaused(isPaused) {
    this.#isPaused = isPaused;
    replace(this.#pause, icon(isPaused ? "play" : "pause"), isPaused ? "Resume" : "Pause");
    this.#pause.setAttribute("aria-pressed", isPaused);
    if (isPaused) announce("Paused");
    else if (this.#fresh.length > 0) {
      this.#entries = [...this.#entries, ...this.#fresh].slice(-KEPT_MAX);
      this.#fresh = [];
      this.#render();
    }
    this.#showNote();
  }

  #showNote() {
    const parts = [];
    if (this.#isPaused) parts.push(`Paused, ${plural(this.#fresh.length, "newer entry", "newer entries")}.`);
    else parts.push("As they are ordered, newest first.");
    if (this.#left > 0) parts.push(`A sample: ${count(this.#left)} of ${count(this.#seen)} were left out.`);
    put(this.#note, parts.join(" "));
  }

  // MARK: The rows

  #refilter() {
    this.#follow();
    this.#render();
  }

  #isWanted(entry) {
    const value = (name) => this.#filters[name].value.trim().toLowerCase();
    const has = (text, name) => value(name) === "" || String(text).toLowerCase().includes(value(name));
    if (!has(entry.target ?? entry.store ?? "", "store")) return false;
    if (!has(this.#nodeOf(entry), "node")) return false;
    const [name, text] = entry.kind === "action" ? actionParts(entry) : [entry.kind, eventWords(entry)];
    return has(name, "action") && has(`${name} ${text} ${entry.reason ?? ""}`, "q");
  }

  #nodeOf(entry) {
    if (entry.kind !== "action") return entry.key ?? "log";
    const [node, counter] = entry.origin.split(":");
    return node === "0" ? `timer ${counter}` : this.#page.model.nodeName(node);
  }

  #render() {
    const wanted = this.#entries.filter((entry) => this.#isWanted(entry)).reverse();
    const rows = new Map();
    for (const entry of wanted) rows.set(entry.sequence, this.#rows.get(entry.sequence) ?? this.#row(entry));
    this.#rows = rows;
    if (rows.size === 0) {
      replace(this.#list, h("li", { class: "empty" }, h("strong", {}, this.#entries.length > 0 ? "No entry fits the filter" : "Nothing yet"),
        h("p", {}, this.#entries.length > 0 ? `${count(this.#entries.length)} others are here.` : "Entries appear here as soon as somebody dispatches an action.")));
    } else this.#place([...rows.values()]);
    this.#showNote();
  }

  /** Adds and removes only what differs, so that rows keep their place and the focus. */
  #place(elements) {
    const wanted = new Set(elements);
    for (const child of [...this.#list.children]) if (!wanted.has(child)) child.remove();
    let next = this.#list.firstChild;
    for (const element of elements) {
      if (element === next) next = next.nextSibling;
      else this.#list.insertBefore(element, next);
    }
  }

  #row(entry) {
    const isAction = entry.kind === "action";
    const [name, text] = isAction ? actionParts(entry) : [entry.kind, eventWords(entry)];
    const outcome = entry.outcome === "refused" ? h("span", { class: "outcome bad", title: visible(entry.reason ?? "") }, "refused")
      : isAction ? h("span", { class: `outcome ${entry.outcome === "applied" ? "good" : "faint"}` }, entry.outcome ?? "ordered") : h("span", { class: "outcome faint" }, "log");
    return h("li", {}, h("a", { class: `entry ${isAction ? "" : "event"}`, href: `#/entries/${entry.sequence}${isAction && !entry.target.endsWith("*") ? `?store=${encodeURIComponent(entry.target)}` : ""}`, onclick: () => remember(entry) },
      h("span", { class: "number mono" }, count(entry.sequence)), time(entry.timestamp),
      data(this.#nodeOf(entry), { class: "who" }), data(entry.target ?? entry.store ?? "log", { class: "where mono" }),
      h("span", { class: "what" }, data(name, { class: "action-name" }, 60), " ", data(entry.outcome === "refused" ? `${text}  — ${entry.reason}` : text, { class: "mono args" }, 240)), outcome));
  }
}

// MARK: What the entry's own view begins with

const remembered = new Map();

export function remember(entry) {
  remembered.set(entry.sequence, entry);
  if (remembered.size > 50) remembered.delete(remembered.keys().next().value);
}

export const recall = (sequence) => remembered.get(sequence) ?? null;
