// What the page knows: the newest overview, and some minutes of what it said before.

import { count, plural, size } from "./dom.js";

/** How many samples are kept, about one a second. */
export const SAMPLES = 120;
/** How many entries are watched on their way. */
const WATCHED_MAX = 20;
/** With fewer free bytes, a disk is nearly full: as in the rules for Prometheus. */
const FREE_BYTES_MIN = 512 * 2 ** 20;
/** A node that has been behind for this many samples is slow. */
const SLOW_SAMPLES = 5;

export class Model {
  overview = null;
  /** Why there is no newer overview. */
  problem = null;
  /** When the newest overview came. */
  at = 0;
  #series = new Map();
  #former = null;
  /** Since how many samples each node has been behind. */
  #behind = new Map();
  /** For entries that are looked at: when each node was first seen to have applied them. */
  #watched = new Map();
  /** Of entries that this page dispatched: when, and how many milliseconds later the receipt was here. */
  #sent = new Map();

  take(overview) {
    const now = performance.now();
    const seconds = this.#former ? (now - this.at) / 1000 : 0;
    const former = this.#former;
    this.overview = overview;
    this.problem = null;
    this.at = now;
    // After a pause the differences are not those of a second, and the lines would lie.
    if (seconds > 10) this.#series.clear();
    const status = overview.sequencer;
    if (status) {
      const before = former?.sequencer?.log === status.log ? former.sequencer : null;
      this.#note("entries", this.#rate(status.last, before?.last, seconds));
      const lags = status.sessions.filter((node) => node.live && node.lag !== undefined).map((node) => node.lag);
      this.#note("lag", lags.length > 0 ? Math.max(...lags) : 0);
      const added = before ? Math.max(0, status.last - before.last) : Infinity;
      for (const node of status.sessions) {
        const id = node.incarnation;
        const old = before?.sessions.find((other) => other.incarnation === id);
        this.#note(`lag ${id}`, node.lag ?? null);
        this.#note(`rate ${id}`, this.#rate(node.dispatched, old?.dispatched, seconds));
        // Under load a node is always a little behind. It is slow if it lacks what was there a look before.
        const isBehind = node.live && (node.lag ?? 0) > added;
        this.#behind.set(id, isBehind ? (this.#behind.get(id) ?? 0) + 1 : 0);
      }
      this.#watch(status);
    } else {
      this.#note("entries", null);
      this.#note("lag", null);
    }
    const counts = new Map((former?.gateway.targets ?? []).map((row) => [row.target, row.actions]));
    for (const row of overview.gateway.targets) {
      this.#note(`target ${row.target}`, this.#rate(row.actions, counts.get(row.target) ?? (former ? 0 : undefined), seconds));
    }
    if (this.#series.size > 5000) this.#series.clear();
    this.#former = overview;
  }

  fail(problem) { this.problem = problem; }

  #rate(value, before, seconds) {
    if (value === undefined || before === undefined || before === null || seconds <= 0) return null;
    return value >= before ? (value - before) / seconds : null;
  }

  #note(name, value) {
    const list = this.#series.get(name) ?? [];
    list.push(value);
    if (list.length > SAMPLES) list.shift();
    this.#series.set(name, list);
  }

  series(name) {
    const list = this.#series.get(name) ?? [];
    // A young page does not draw two minutes of nothing.
    return [...Array(Math.max(0, 30 - list.length)).fill(null), ...list];
  }

  newest(name) { return this.#series.get(name)?.at(-1) ?? null; }

  // MARK: Names

  nodeName(incarnation) {
    const node = this.overview?.sequencer?.sessions.find((other) => String(other.incarnation) === String(incarnation));
    return node?.name ?? `node ${incarnation}`;
  }

  /** Whether a node lacks what was there a look before: under load, everybody is always a little behind. */
  isBehind(incarnation) { return (this.#behind.get(incarnation) ?? 0) > 0; }

  get mayChange() { return this.overview?.mayChange === true; }

  hosted(name) { return this.overview?.gateway.stores.find((store) => store.store === name) ?? null; }

  // MARK: One entry

  /** Notes an entry that this page has dispatched, as soon as there is a receipt. */
  sent(sequence, at, took) {
    this.#sent.set(sequence, { at, took });
    this.#watched.set(sequence, new Map());
    for (const map of [this.#sent, this.#watched]) if (map.size > WATCHED_MAX) map.delete(map.keys().next().value);
    if (this.overview?.sequencer) this.#watch(this.overview.sequencer);
  }

  /** When this page dispatched an entry: {at, took}; undefined if it did not. */
  dispatch(sequence) { return this.#sent.get(sequence); }

  /** Begins to note when nodes have applied an entry. */
  watch(sequence) {
    if (!this.#watched.has(sequence)) this.#watched.set(sequence, new Map());
    if (this.#watched.size > WATCHED_MAX) this.#watched.delete(this.#watched.keys().next().value);
    if (this.overview?.sequencer) this.#watch(this.overview.sequencer, true);
  }

  #watch(status, isFirst = false) {
    for (const [sequence, seen] of this.#watched) {
      for (const node of status.sessions) {
        if (node.applied === undefined || node.applied < sequence || seen.has(node.incarnation)) continue;
        seen.set(node.incarnation, isFirst ? null : new Date());
      }
    }
  }

  /** When a node was first seen to have applied an entry; null if it had when somebody looked first. */
  seen(sequence, incarnation) { return this.#watched.get(sequence)?.get(incarnation); }

  // MARK: Alarms

  /** What needs somebody, the worst first: {level, title, text, chapter, skip}. */
  get alarms() {
    const alarms = [];
    const add = (level, title, text, chapter, more = {}) => alarms.push({ level, title, text, chapter, ...more });
    if (this.problem) {
      const title = this.problem.status === 0 ? "The gateway does not answer" : this.problem.status === 503 ? "The gateway does not serve yet" : "The gateway refuses";
      add("critical", title, `${this.problem.message} The page tries again by itself${this.overview ? ", and shows what it knew last" : ""}.`, "no-sequencer");
      return alarms;
    }
    const overview = this.overview;
    if (!overview) return alarms;
    if (overview.problem) add("critical", "No sequencer", overview.problem.detail, "no-sequencer");
    const status = overview.sequencer;
    const health = status?.health;
    if (health?.held) add("critical", "The log is nearly full", `No action is admitted: ${health.held}.`, "disk-full");
    if (health?.freeBytes < FREE_BYTES_MIN) add("critical", "The log's disk is nearly full", `It has ${size(health.freeBytes)} left.`, "disk-full");
    if (health?.slowed) add("warning", "Actions are admitted slowly", "Most replicas lag.", "slow-nodes");
    if (health?.clockBehind) add("warning", "The sequencer's clock is wrong", "It is behind the log's timestamps.", "wrong-clock");
    for (const store of status?.stores ?? []) {
      if (store.divergence) {
        const nodes = store.divergence.nodes.map((node) => node.name ?? `node ${node.incarnation}`).join(", ");
        const where = store.divergence.path ? `, first at ${store.divergence.path}` : "";
        add("critical", `${store.store} diverged`, `Between entries ${count(store.divergence.lastEqual)} and ${count(store.divergence.firstUnequal)}${where}: ${nodes}.`, "divergence");
      }
      for (const replica of store.stopped ?? []) {
        add("critical", `${store.store} stopped in ${replica.name ?? `node ${replica.incarnation}`}`,
          replica.sequence ? `It stopped before entry ${count(replica.sequence)}. Install a newer program there, or skip the entry.`
            : "Its state could not be loaded. The node's own messages say why.", "poisoned-entry",
          replica.sequence ? { skip: { sequence: replica.sequence, target: store.store } } : {});
      }
    }
    for (const node of status?.sessions ?? []) {
      if ((this.#behind.get(node.incarnation) ?? 0) >= SLOW_SAMPLES) {
        add("warning", `${node.name ?? `Node ${node.incarnation}`} is behind`, `It has not applied ${plural(node.lag, "entry", "entries")}.`, "slow-nodes");
      }
    }
    if (status?.sequencers && status.sequencers.length === 1) {
      add("warning", "No standby", "If the sequencer ends, nobody takes over.", "standbys");
    }
    for (const store of status?.stores ?? []) {
      if (store.frozen) add("warning", `${store.store} is frozen`, "No action reaches it until somebody thaws it.", "what-to-watch");
    }
    for (const store of overview.gateway.stores) {
      if (store.ended) add("warning", `The gateway does not serve ${store.store}`, store.ended, "what-to-watch");
    }
    for (const fault of overview.gateway.faults) add("warning", "The gateway is not ready", `${fault}.`, "what-to-watch");
    for (const [who, bounds] of [["sequencer", health?.bounds ?? []], ["gateway", overview.gateway.bounds]]) {
      for (const bound of bounds.filter(({ level, limit }) => limit > 0 && level / limit > 0.9)) {
        add("info", `${bound.name} is nearly reached`, `The ${who} has ${count(bound.level)} of ${count(bound.limit)}.`, "sizing");
      }
    }
    const rank = { critical: 0, warning: 1, info: 2 };
    return alarms.sort((one, other) => rank[one.level] - rank[other.level]);
  }
}
