// One entry's way: dispatched, ordered, durable, applied.

import { get, storePath } from "../api.js";
import { chip, count, data, duration, empty, h, morph, replace, storeLink, time, visible } from "../dom.js";
import { applyPatch, brief, changeList } from "../tree.js";
import { actionParts, eventWords, recall } from "./entries.js";

export class EntryView {
  #page; #sequence; #entry; #store; #changes = null; #error = null; #closed = false;
  #way = h("section", { class: "card", "aria-label": "Its way" });
  #what = h("section", { class: "card", "aria-label": "The entry" });
  #effect = h("section", { class: "card", "aria-label": "What it changed" });

  constructor(main, page, part, query) {
    this.#page = page;
    this.#sequence = Number(part);
    if (!/^\d{1,15}$/.test(part)) {
      replace(main, h("h1", {}, "No such entry"), empty("An entry has a number", "Choose one from the entries."));
      this.#closed = true;
      return;
    }
    this.#entry = recall(this.#sequence);
    this.#store = query.get("store") ?? (this.#entry?.kind === "action" && !this.#entry.target.endsWith("*") ? this.#entry.target : null);
    page.model.watch(this.#sequence);
    replace(main, h("div", { class: "head" }, h("p", { class: "crumbs" }, h("a", { href: "#/entries" }, "Entries")), h("h1", {}, `Entry ${count(this.#sequence)}`)),
      h("div", { class: "columns" }, this.#way, h("div", { class: "stack" }, this.#what, this.#effect)));
    this.#showWhat();
    this.#load();
  }

  close() { this.#closed = true; }

  async #load() {
    if (!this.#store) return this.#showEffect();
    const path = storePath(this.#store);
    try {
      const page = await get(`${path}/entries?after=${this.#sequence - 1}&limit=1`);
      const found = page.entries.find((entry) => entry.sequence === this.#sequence);
      if (found) this.#entry = { ...this.#entry, kind: "action", target: this.#store, ...found };
      else if (this.#sequence < page.floor) this.#error = `It is older than what is kept of ${this.#store}, which begins at ${count(page.floor)}.`;
      const before = await get(`${path}?at=${this.#sequence - 1}`);
      const difference = await get(`${path}/difference?from=${this.#sequence - 1}&to=${this.#sequence}`);
      this.#changes = applyPatch(before.state, difference.changes).changes;
    } catch (problem) {
      this.#error ??= problem.message;
    }
    if (this.#closed) return;
    this.#showWhat();
    this.#showEffect();
    this.update();
  }

  #showWhat() {
    const entry = this.#entry;
    if (!entry) {
      replace(this.#what, h("h2", {}, "The entry"), h("p", { class: "faint" }, this.#error ?? (this.#store ? "Loading…" : "This page was opened with the number alone. Open the entry from the list, or from its store, to see what it is.")));
      return;
    }
    const [name, text] = entry.kind === "action" ? actionParts(entry) : [entry.kind, eventWords(entry)];
    replace(this.#what, h("h2", {}, data(name, { class: "action-name" }, 60), entry.outcome ? chip(entry.outcome, entry.outcome === "refused" ? "critical" : "good") : null),
      entry.reason ? h("p", { class: "bad" }, visible(entry.reason, 600)) : null,
      h("pre", { class: "block", tabindex: "0" }, h("bdi", { dir: "ltr" }, entry.action !== undefined ? visible(brief(entry.action, 4000), 4000) : visible(text, 1000))),
      entry.kind === "action" && entry.target.includes("/") && !entry.target.endsWith("*") ? h("p", {}, "for ", storeLink(entry.target)) : null);
  }

  #showEffect() {
    if (!this.#store) return this.#effect.remove();
    const number = this.#sequence;
    replace(this.#effect, h("h2", {}, "What it changed"),
      this.#error ? h("p", { class: "notice" }, visible(this.#error, 600)) : this.#changes === null ? h("p", { class: "faint" }, "Loading…")
        : this.#changes.length === 0 ? h("p", { class: "faint" }, "Nothing: the state before it and after it are the same.") : changeList(this.#changes),
      this.#error ? null : h("p", { class: "links" }, h("a", { class: "button", href: `#/stores/${this.#store}?at=${number}` }, "The state then"),
        h("a", { class: "button", href: `#/stores/${this.#store}?without=${number}` }, "Without this entry")));
  }

  update() {
    if (this.#closed) return;
    const { model } = this.#page;
    const entry = this.#entry;
    const status = model.overview?.sequencer;
    const [node, counter] = entry?.origin?.split(":") ?? [];
    const step = (tone, title, ...text) => h("li", { class: tone }, h("h3", {}, title), h("p", {}, ...text));
    const sent = model.dispatch(this.#sequence);
    const exists = status ? this.#sequence <= status.last : null;
    const hosts = status?.sessions.filter((other) => other.live && (this.#store ? other.hosted.includes(this.#store) || other.bridged.includes(this.#store.split("/")[0]) : other.hosted.length > 0)) ?? [];
    morph(this.#way, h("h2", {}, "Its way"), h("ol", { class: "way" },
      step("done", "Dispatched", !entry ? "Its origin is not known here." : entry.kind !== "action" ? "By the sequencer itself." : node === "0" ? `By timer ${counter}.`
        : [sent ? ["From this page, at ", time(sent.at.toISOString()), " of this browser's clock. "] : null, "By ", data(model.nodeName(node)), ` as its action ${count(Number(counter))}`, entry.principal ? [", with the key ", data(entry.principal)] : "", sent ? "." : ". The log does not keep when."]),
      step(exists ? "done" : "", "Ordered", exists === false ? `Not yet: the log ends at ${count(status.last)}.` : entry?.timestamp ? ["At ", time(entry.timestamp), " of the sequencer's clock", entry.epoch ? `, in epoch ${count(entry.epoch)}` : "", `, ${duration(Math.max(0, Date.now() - new Date(entry.timestamp)))} ago.`] : "The time is not known here."),
      step(exists ? "done" : "", "Durable", exists === false ? "Not yet." : sent ? `At the latest ${duration(sent.took)} after the dispatch: then this page had the receipt, and the gateway had applied it.`
        : "Before anybody saw it. How long the disk took is in the sequencer's metrics."),
      step(hosts.length > 0 && hosts.every((host) => host.applied >= this.#sequence) ? "done" : "", "Applied",
        hosts.length === 0 ? "No live node hosts the store." : "Seen up to two seconds late: nodes report their positions about once a second, and this page asks once a second.")),
    hosts.length > 0 ? h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": "Nodes" }, h("table", {}, h("thead", {}, h("tr", {}, ["Node", "Has it", "Position", "Seen at"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, hosts.slice(0, 50).map((host) => {
        const has = host.applied >= this.#sequence;
        const seen = model.seen(this.#sequence, host.incarnation);
        return h("tr", {}, h("th", { scope: "row" }, data(host.name ?? `node ${host.incarnation}`)), h("td", {}, chip(has ? "applied" : host.applied === undefined ? "not reported" : `${count(this.#sequence - host.applied)} behind`, has ? "good" : "warning")),
          h("td", { class: "mono" }, count(host.applied ?? null)), h("td", {}, seen ? [time(seen.toISOString()), sent ? `, ${duration(seen - sent.at)} later` : null] : has ? h("span", { class: "faint" }, "before this page looked") : "–"));
      })))) : null);
  }
}
