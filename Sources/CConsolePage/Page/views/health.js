// Is it well?

import { Stream } from "../api.js";
import { chip, count, data, duration, h, icon, morph, plural, rate, replace, size, spark, time } from "../dom.js";
import { offer } from "../form.js";
import { actionParts, eventWords } from "./entries.js";

const EVENTS_MAX = 8;
const ACTIONS_MAX = 10;
const BOUNDS_MAX = 4;

export class HealthView {
  #page; #stream; #events = [];
  #verdict = h("section", { class: "verdict", "aria-label": "Verdict" });
  #tiles = h("section", { class: "tiles", "aria-label": "Figures" });
  #sequencer = h("section", { class: "card", "aria-label": "Sequencer" });
  #bounds = h("section", { class: "card", "aria-label": "Bounds" });
  #recent = h("section", { class: "card", "aria-label": "What just happened" });
  #newest = h("section", { class: "card", "aria-label": "Newest actions" });
  #actions = [];
  #shown = "";

  constructor(main, page) {
    this.#page = page;
    replace(main, h("div", { class: "head" }, h("h1", {}, "Health")), this.#verdict, this.#tiles,
      h("div", { class: "columns" }, h("div", { class: "stack" }, this.#sequencer, this.#bounds), h("div", { class: "stack" }, this.#recent, this.#newest)));
    this.#stream = new Stream("/entries", { entries: (batch) => this.#take(batch) });
    this.#showEvents();
  }

  close() { this.#stream.close(); }

  update() {
    const { model } = this.#page;
    if (!model.overview && !model.problem) return;
    this.#showVerdict(model);
    if (!model.overview) return;
    this.#showTiles(model);
    this.#showSequencer(model);
    const { health } = model.overview.sequencer ?? {};
    morph(this.#bounds, health?.bounds ? [h("h2", {}, "Bounds of the sequencer"), meters(health.bounds)] : null, h("h2", {}, "Bounds of this gateway"), meters(model.overview.gateway.bounds));
  }

  #showVerdict(model) {
    const alarms = model.alarms;
    const stamp = JSON.stringify(alarms) + model.mayChange;
    if (stamp === this.#shown) return;
    this.#shown = stamp;
    const level = alarms[0]?.level ?? "well";
    this.#verdict.className = `verdict ${level}`;
    const title = level === "well" ? "All is well" : plural(alarms.length, "thing needs attention", "things need attention");
    const status = model.overview?.sequencer;
    const text = level !== "well" || !status ? null
      : `The sequencer serves, every replica agrees, and nobody is behind.`;
    replace(this.#verdict, h("div", { class: "verdict-title" }, icon(level === "well" ? "check" : "alarm"), h("div", {}, h("h2", {}, title), text ? h("p", {}, text) : null)),
      alarms.length > 0 ? h("ul", { class: "alarms" }, alarms.map((alarm) => h("li", { class: alarm.level },
        h("div", { class: "alarm-text" }, h("strong", {}, data(alarm.title)), h("p", {}, data(alarm.text, {}, 600))),
        h("div", { class: "alarm-tools" },
          alarm.skip && model.mayChange ? offer("Skip the entry", { skip: alarm.skip.sequence, target: alarm.skip.target },
            `Skip entry ${alarm.skip.sequence}? It has no effect on ${alarm.skip.target} any more, in every process. You can't undo it.`, this.#page, true) : null,
          h("a", { href: `#/runbook/${alarm.chapter}`, class: "button" }, "Runbook")),
      ))) : null);
  }

  #showTiles(model) {
    const status = model.overview.sequencer;
    const tile = (name, value, note, line) => h("div", { class: "tile" }, h("h3", {}, name), h("p", { class: "figure" }, value), note ? h("p", { class: "faint" }, note) : null, line);
    const live = status?.sessions.filter((node) => node.live) ?? [];
    const hosts = live.filter((node) => node.hosted.length > 0);
    const last = status?.last ?? model.overview.gateway.last;
    const entries = model.series("entries");
    const lag = model.newest("lag");
    const latency = percentiles(model.overview.gateway.latencies);
    morph(this.#tiles,
      tile("Entries a second", rate(model.newest("entries")), `newest ${count(last)}`, spark(entries, `Entries a second in the last ${entries.length} seconds`)),
      tile("Largest lag", count(lag), lag === 0 ? "everybody has everything" : lag === 1 ? "entry behind" : "entries behind", spark(model.series("lag"), "Largest lag in the last two minutes", { tone: "amber" })),
      tile("Nodes", count(live.length), `${count(hosts.length)} with replicas`),
      tile("Stores", count(model.overview.storeCount ?? null), `${count(model.overview.gateway.stores.length)} served here`),
      tile("Receipts here", latency ? duration(latency.median) : "–", latency ? `99 % within ${duration(latency.high)}` : "this gateway has dispatched nothing"));
  }

  #showSequencer(model) {
    const { sequencer: status, problem } = model.overview;
    const rows = (list) => h("dl", { class: "facts" }, list.map(([key, value]) => [h("dt", {}, key), h("dd", {}, value)]));
    if (!status) {
      morph(this.#sequencer, h("h2", {}, "Sequencer"), h("p", { class: "bad" }, data(problem?.detail ?? "There is no answer.", {}, 600)));
      return;
    }
    const { health } = status;
    const kept = status.last - status.floor + 1;
    const places = status.sequencers ?? [];
    const serving = places.find((place) => place.serving)?.address ?? status.address;
    const stamp = places.map((place) => `${place.address} ${place.serving}`).join() + model.mayChange;
    morph(this.#sequencer, h("h2", {}, "Sequencer ", chip("serving", "good")),
      rows([
        ["Address", data(serving, { class: "mono" })], ["Epoch", count(status.epoch)],
        ["Log", h("span", {}, data(`${status.log.slice(0, 8)}…`, { class: "mono", title: status.log }))],
        ["Entries kept", `${count(status.floor)} to ${count(status.last)} (${count(kept)})`],
        ["Checkpoint", status.checkpoint ? `at ${count(status.checkpoint)}, ${count(status.last - status.checkpoint)} ago` : "none yet"],
        ["Free on its disk", size(health?.freeBytes === undefined ? undefined : Number(health.freeBytes))],
      ]),
      health ? meters([{ name: "The log's size", level: Number(health.usedBytes), limit: Number(health.limitBytes) }], size)
        : h("p", { class: "faint" }, "This sequencer is older, and tells its disk and its bounds only in its own metrics."),
      places.length > 0 ? h("ul", { class: "places" }, places.map((place) => h("li", {},
        data(place.address, { class: "mono" }), chip(place.serving ? "serves" : "stands by", place.serving ? "good" : ""),
        h("span", { class: "faint" }, place.serving ? "" : `${count(status.last - place.last)} behind`),
        model.mayChange && !place.serving ? this.#handover(place, stamp) : null)))
        : h("p", { class: "faint" }, "This log has no standbys: it is on one disk."));
  }

  #kept = null;
  /** The button stays the same element, so that it keeps the focus. */
  #handover(place, stamp) {
    if (this.#kept?.stamp !== stamp) this.#kept = { stamp, buttons: new Map() };
    if (!this.#kept.buttons.has(place.address)) {
      this.#kept.buttons.set(place.address, offer("Hand over", { handOver: place.address },
        `Let ${place.address} take over? Nodes find it by themselves; actions wait for a moment.`, this.#page));
    }
    return this.#kept.buttons.get(place.address);
  }

  // MARK: Events

  /** Nodes without a name come and go with each command: nobody wants to know. */
  #isNews(entry) {
    const isNamed = (incarnation) => this.#page.model.overview?.sequencer?.sessions.some((node) => node.incarnation === incarnation && node.name);
    switch (entry.kind) {
      case "action": case "digestPoint": case "forgotten": case "visited": return false;
      case "joined": return entry.name !== undefined || isNamed(entry.rejoining);
      case "left": return isNamed(entry.incarnation);
      default: return true;
    }
  }

  #words(entry) {
    const node = entry.kind === "left" ? entry.incarnation : entry.kind === "joined" ? entry.rejoining : undefined;
    return node === undefined ? eventWords(entry) : `${this.#page.model.nodeName(node)} ${entry.kind === "left" ? "left" : "is back"}`;
  }

  #take(batch) {
    // After a new connection the newest ones come again.
    const add = (list, max, isWanted) => {
      const known = new Set(list.map((entry) => entry.sequence));
      return [...batch.entries.filter((entry) => isWanted(entry) && !known.has(entry.sequence)).reverse(), ...list].slice(0, max);
    };
    this.#events = add(this.#events, EVENTS_MAX, (entry) => this.#isNews(entry));
    this.#actions = add(this.#actions, ACTIONS_MAX, (entry) => entry.kind === "action");
    this.#showEvents();
  }

  #showEvents() {
    morph(this.#newest, h("h2", {}, "Newest actions"), this.#actions.length === 0 ? h("p", { class: "faint" }, "Nobody has dispatched anything since.")
      : h("ol", { class: "happenings" }, this.#actions.map((entry) => {
        const [name, text] = actionParts(entry);
        return h("li", {}, time(entry.timestamp), h("a", { href: `#/entries/${entry.sequence}${entry.target.endsWith("*") ? "" : `?store=${encodeURIComponent(entry.target)}`}` },
          data(entry.target, { class: "mono" }), " ", data(name, { class: "action-name" }, 40), " ", data(text, { class: "mono faint" }, 100)), entry.outcome === "refused" ? chip("refused", "critical") : null);
      })));
    morph(this.#recent, h("h2", {}, "What just happened"),
      this.#events.length === 0 ? h("p", { class: "faint" }, "Nothing since this page was opened: no node came or left, no store was created or frozen.")
        : h("ol", { class: "happenings" }, this.#events.map((entry) => h("li", {}, time(entry.timestamp), h("a", { href: `#/entries/${entry.sequence}` }, data(this.#words(entry)))))));
  }
}

/** How much of its bounds somebody uses, the fullest first. */
function meters(bounds, text = count) {
  const rows = bounds.filter((bound) => bound.limit > 0)
    .sort((one, other) => other.level / other.limit - one.level / one.limit).slice(0, BOUNDS_MAX);
  return h("ul", { class: "meters" }, rows.map((bound) => {
    const part = Math.min(1, bound.level / bound.limit);
    return h("li", {}, h("span", { class: "mono" }, data(bound.name)), h("span", { class: "faint" }, `${text(bound.level)} of ${text(bound.limit)}`),
      h("div", { class: `meter ${part > 0.9 ? "critical" : part > 0.6 ? "warning" : ""}`, role: "meter", "aria-label": bound.name, "aria-valuemin": "0", "aria-valuemax": bound.limit, "aria-valuenow": bound.level }, h("div", { vars: { "--part": part } })));
  }));
}

/** The median and the 99th percentile, as upper bounds in milliseconds; null if nothing was measured. */
export function percentiles({ bounds, counts }) {
  const total = counts.reduce((sum, number) => sum + number, 0);
  if (total === 0) return null;
  const at = (part) => {
    let sum = 0;
    for (let index = 0; index < counts.length; index += 1) {
      sum += counts[index];
      if (sum >= total * part) return (bounds[index] ?? bounds.at(-1)) / 1000;
    }
    return bounds.at(-1) / 1000;
  };
  return { median: at(0.5), high: at(0.99) };
}
