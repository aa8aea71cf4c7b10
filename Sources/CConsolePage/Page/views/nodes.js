// Who is behind?

import { chip, count, data, empty, h, morph, plural, rate, replace, spark, storeLink } from "../dom.js";

/** The most nodes that are shown at a time, and the most stores of one. */
const NODES_MAX = 60;
const STORES_MAX = 12;

/** How a replica stopped: before an entry, or without any state. */
const stop = ({ sequence }) => sequence ? ` stopped before entry ${count(sequence)}. ` : " could not be loaded. ";

export class NodesView {
  #page;
  #grid = h("div", { class: "nodes" });
  #note = h("p", { class: "faint" });

  constructor(main, page) {
    this.#page = page;
    replace(main, h("div", { class: "head" }, h("h1", {}, "Nodes"), this.#note), this.#grid);
  }

  update() {
    const { model } = this.#page;
    const status = model.overview?.sequencer;
    if (!status) {
      if (model.overview) morph(this.#grid, empty("The nodes are not known", model.overview.problem?.detail));
      return;
    }
    const nodes = status.sessions.toSorted((one, other) =>
      Number(other.live) - Number(one.live) || Number(model.isBehind(other.incarnation)) - Number(model.isBehind(one.incarnation)) || (one.name ?? "~").localeCompare(other.name ?? "~"));
    const shown = nodes.slice(0, NODES_MAX);
    this.#note.textContent = `Position, lag and dispatches, each second. Newest entry: ${count(status.last)}.`
      + (nodes.length > shown.length ? ` The ${count(shown.length)} that lag most of ${count(model.overview.sessionCount)} are shown.` : "");
    morph(this.#grid, shown.length === 0 ? empty("No node is here", "Start one with conflux worker.") : shown.map((node) => this.#card(node, status, model)));
  }

  #card(node, status, model) {
    const id = node.incarnation;
    const differs = status.stores.filter((store) => store.divergence?.nodes.some((other) => other.incarnation === id));
    const stopped = status.stores.filter((store) => store.stopped?.some((replica) => replica.incarnation === id));
    const hasReplicas = node.hosted.length + node.bridged.length > 0;
    const state = !node.live ? ["left", ""] : differs.length > 0 ? ["differs", "critical"] : stopped.length > 0 ? ["stopped", "critical"]
      : node.lag === undefined ? [hasReplicas ? "not reported" : "no replicas", ""] : model.isBehind(id) ? ["behind", "warning"] : ["current", "good"];
    const part = node.applied === undefined ? 0 : Math.max(0, Math.min(1, node.applied / Math.max(1, status.last)));
    const name = node.name ?? `node ${id}`;
    return h("article", { class: `card node ${node.live ? "" : "gone"}`, "aria-label": name },
      h("header", {}, h("h2", {}, data(name)), chip(...state), h("span", { class: "faint mono" }, `#${id}`)),
      hasReplicas ? h("div", { class: "position", role: "meter", "aria-label": "Position", "aria-valuemin": "0", "aria-valuemax": status.last, "aria-valuenow": node.applied ?? 0 }, h("div", { vars: { "--part": part } })) : null,
      h("div", { class: "pair" },
        h("div", {}, h("h3", {}, "Position"), h("p", { class: "figure small" }, count(node.applied ?? null))),
        h("div", {}, h("h3", {}, "Lag"), h("p", { class: "figure small" }, count(node.lag ?? null)), hasReplicas ? spark(model.series(`lag ${id}`), `Lag of ${name} in the last two minutes`, { tone: "amber", height: 24 }) : null),
        h("div", {}, h("h3", {}, "Dispatches"), h("p", { class: "figure small" }, `${rate(model.newest(`rate ${id}`))}/s`), spark(model.series(`rate ${id}`), `Dispatches a second of ${name}`, { height: 24 }))),
      differs.map((store) => h("p", { class: "bad" }, storeLink(store.store), " differs",
        store.divergence.path !== undefined ? [" first at ", data(store.divergence.path === "" ? "its root" : store.divergence.path, { class: "mono" })] : "",
        `, between entries ${count(store.divergence.lastEqual)} and ${count(store.divergence.firstUnequal)}. `, h("a", { href: "#/runbook/divergence" }, "Runbook"))),
      stopped.map((store) => h("p", { class: "bad" }, storeLink(store.store), stop(store.stopped.find((replica) => replica.incarnation === id)), h("a", { href: "#/runbook/poisoned-entry" }, "Runbook"))),
      node.hosted.length > 0 ? h("ul", { class: "hosted", "aria-label": plural(node.hosted.length, "store") }, node.hosted.slice(0, STORES_MAX).map((store) => h("li", {}, storeLink(store))),
        node.hosted.length > STORES_MAX ? h("li", { class: "faint" }, `and ${count(node.hosted.length - STORES_MAX)} more`) : null) : h("p", { class: "faint" }, "It hosts no store."),
      node.key ? h("p", { class: "faint" }, "key ", data(node.key, { class: "mono" })) : null);
  }
}
