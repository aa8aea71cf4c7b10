// A store: its state live, what it was before, and what it would be without an entry.

import { Problem, Stream, get, storePath } from "../api.js";
import { announce, chip, count, data, duration, empty, h, icon, morph, put, replace, size, time, visible } from "../dom.js";
import { ActionForm, offer } from "../form.js";
import { Tree, applyPatch, changeList } from "../tree.js";
import { actionParts } from "./entries.js";

const HISTORY_MAX = 60;
/** States larger than this are not fetched while a slider moves, only once it rests. */
const LARGE = 1 << 20;

export class StoreView {
  #page; #name; #path; #closed = false;
  #stream = null; #state; #tree = new Tree(); #isLive = true; #sequence = 0;
  #floor = 0; #newest = 0; #history = []; #hasPast = true; #run = 0; #timer = 0; #historyTimer = 0; #at = null; #without = null;
  #kept = null; // The number of the state that is shown, if the gateway does not serve the store.
  #conditions = h("span", { class: "conditions" });
  #tools = h("div", { class: "tools" });
  #slider = h("input", { type: "range", min: "0", max: "0", step: "1", "aria-label": "Entry", oninput: () => this.#slide() });
  #where = h("p", { class: "where", role: "status" });
  #ends = h("div", { class: "ends faint mono" });
  #notice = h("div", { class: "notices" });
  #effect = h("section", { class: "card effect", hidden: true });
  #list = h("ol", { class: "history" });
  #form = h("section", { class: "card", hidden: true, "aria-label": "Dispatch" });
  #stateNote = h("span", { class: "faint" });
  #liveButton = h("button", { type: "button", class: "live", onclick: () => this.#live() }, icon("live"), "Live");
  #stateCard; #travelCard;

  constructor(main, page, name, query) {
    this.#page = page;
    this.#name = name;
    this.#path = storePath(name);
    const step = (label, glyph, body) => h("button", { type: "button", class: "square", "aria-label": label, title: label, onclick: body }, icon(glyph));
    this.#stateCard = h("section", { class: "card flush state", "aria-label": "State" }, h("h2", {}, "State", this.#stateNote), this.#tree.element);
    this.#travelCard = h("section", { class: "card travel", "aria-label": "Time travel" },
      h("div", { class: "steps" }, step("The oldest entry that is kept", "first", () => this.#oldest()), step("One entry back", "back", () => this.#step(-1)), step("One entry forward", "forward", () => this.#step(1)), this.#liveButton),
      h("div", { class: "track" }, this.#slider, this.#ends), this.#where);
    replace(main,
      h("div", { class: "head" }, h("p", { class: "crumbs" }, h("a", { href: "#/stores" }, "Stores")), h("h1", { class: "mono" }, data(name, {}, 140)), this.#conditions, this.#tools),
      this.#travelCard, this.#notice,
      h("div", { class: "columns store" }, this.#stateCard,
        h("div", { class: "stack" }, this.#effect, this.#form, h("section", { class: "card flush", "aria-label": "History" }, h("h2", {}, "History"), this.#list))));
    this.#loadForm();
    this.#loadHistory().then(() => this.changed(query));
  }

  close() {
    this.#closed = true;
    this.#run += 1;
    clearTimeout(this.#timer);
    clearTimeout(this.#historyTimer);
    this.#stream?.close();
  }

  key(event) {
    if (this.#kept !== null) return false;
    if (event.key === "ArrowLeft") this.#step(-1);
    else if (event.key === "ArrowRight") this.#step(1);
    else if (event.key === "l") this.#live();
    else return false;
    return true;
  }

  /** The address has changed. */
  changed(query) {
    const number = (key) => (/^\d{1,15}$/.test(query.get(key) ?? "") ? Number(query.get(key)) : null);
    const [at, without] = [number("at"), number("without")];
    if (this.#kept !== null) this.#showKept(at);
    else if (without !== null) this.#imagine(without, at);
    else if (at !== null) this.#travel(at);
    else this.#live();
  }

  update() {
    const { model } = this.#page;
    const status = model.overview?.sequencer?.stores.find((store) => store.store === this.#name);
    if (!status) return morph(this.#conditions);
    morph(this.#conditions, status.frozen ? chip("frozen", "warning") : null, status.divergence ? chip("diverged", "critical") : null, status.stopped ? chip("stopped", "critical") : null,
      h("span", { class: "faint" }, `${count(status.hosts)} hosts · version ${count(status.schemaVersion)} · snapshot at ${count(status.snapshot)}`));
    if (this.#kept !== null && this.#at === null && status.snapshot > this.#kept) this.#showKept(null);
    const stamp = `${model.mayChange} ${status.frozen}`;
    if (this.#tools.dataset.stamp === stamp) return;
    this.#tools.dataset.stamp = stamp;
    this.#form.hidden = !model.mayChange || this.#form.childElementCount === 0;
    replace(this.#tools, model.mayChange ? [
      status.frozen ? offer("Thaw", { thaw: this.#name }, `Let actions reach ${this.#name} again?`, this.#page)
        : offer("Freeze", { freeze: this.#name }, `Block all actions for ${this.#name}, in every process? It stays readable.`, this.#page),
      offer("Drop", { drop: this.#name }, `End ${this.#name} in every process? You can't undo it.`, this.#page, true, this.#name),
    ] : null);
  }

  // MARK: Live

  #live() {
    this.#run += 1;
    this.#at = this.#without = null;
    this.#isLive = true;
    this.#page.setQuery({ at: null, without: null });
    this.#effect.hidden = true;
    this.#tree.clearMarks();
    replace(this.#notice);
    this.#showMode();
    if (this.#stream) return this.#state !== undefined ? this.#show(this.#state) : null;
    this.#stream = new Stream(`${this.#path}/events`, {
      state: ({ head, body }) => this.#take(head, body, []),
      change: ({ head, body }) => {
        try {
          const { root, changes } = applyPatch(this.#state, body);
          this.#take(head, root, changes);
        } catch {
          // It does not fit what is here: begin anew with the state.
          this.#restart();
        }
      },
      ended: ({ body }) => this.#say("bad", `The gateway does not serve this store any more. ${body}`),
      open: () => { if (this.#isLive) replace(this.#notice); },
      closed: (problem, isFinal) => this.#say(isFinal ? "bad" : "", isFinal ? problem.message : `${problem.message} The page tries again by itself.`),
    });
  }

  #restart() {
    this.#stream?.close();
    this.#stream = null;
    this.#state = undefined;
    if (this.#isLive) this.#timer = setTimeout(() => this.#live(), 500);
  }

  #take(head, state, changes) {
    this.#state = state;
    this.#sequence = head.sequence;
    this.#newest = Math.max(this.#newest, head.sequence);
    if (this.#isLive) this.#later(changes);
    // The gateway reads the log for it, so the more that takes, the more seldom it is asked.
    this.#historyTimer ||= setTimeout(() => {
      this.#historyTimer = 0;
      if (!document.hidden && !this.#closed) this.#loadHistory();
    }, Math.max(700, 5 * this.#historyTime));
  }

  #waiting = [];
  #frame = 0;
  #skipped = 0;
  /** At most ten times a second, whatever comes. */
  #later(changes) {
    const room = 400 - this.#waiting.length;
    this.#waiting.push(...changes.slice(0, Math.max(0, room)));
    this.#skipped += Math.max(0, changes.length - room);
    this.#frame ||= setTimeout(() => {
      this.#frame = 0;
      const shown = this.#waiting;
      this.#waiting = [];
      if (this.#closed || !this.#isLive) return;
      this.#show(this.#state, shown);
      this.#showMode();
    }, 100);
  }

  #show(state, changes = [], options = {}) {
    this.#tree.element.hidden = false;
    this.#tree.show(state, changes, options);
    const bytes = this.#page.model.hosted(this.#name)?.bytes;
    put(this.#stateNote, this.#isLive && bytes ? size(bytes) : "");
  }

  #say(tone, text) {
    replace(this.#notice, h("p", { class: `notice ${tone}`, role: "alert" }, visible(text, 800)));
  }

  /** What the log keeps of a store that the gateway does not serve: a snapshot, or the state with which it began. */
  async #showKept(at) {
    this.#kept = this.#page.model.overview?.sequencer?.stores.find((store) => store.store === this.#name)?.snapshot ?? 0;
    const kept = await this.#go(at, null, () => get(at === null ? this.#path : `${this.#path}?at=${at}`));
    if (!kept) return;
    const what = kept.kept === "snapshot" ? "This is its snapshot" : "There is no snapshot of it yet: this is the state with which it was created,";
    this.#say("", `${kept.reason} ${what} at ${count(kept.sequence)}; later entries are not applied.`);
    this.#show(kept.state);
  }

  // MARK: The past

  #showMode() {
    const at = this.#isLive ? this.#newest : (this.#at ?? this.#newest);
    this.#slider.min = this.#floor;
    this.#slider.max = Math.max(this.#newest, this.#floor);
    if (document.activeElement !== this.#slider || this.#isLive) this.#slider.value = at;
    this.#slider.setAttribute("aria-valuetext", this.#isLive ? `live, entry ${at}` : `entry ${at}`);
    this.#slider.style.setProperty("--part", this.#newest > this.#floor ? (at - this.#floor) / (this.#newest - this.#floor) : 1);
    this.#liveButton.setAttribute("aria-pressed", this.#isLive);
    this.#stateCard.classList.toggle("past", !this.#isLive);
    this.#slider.disabled = !this.#hasPast;
    replace(this.#ends, h("span", {}, count(this.#floor)), h("span", {}, count(this.#newest)));
    const entry = this.#history.find((other) => other.sequence === at);
    if (this.#isLive) put(this.#where, `Live, at entry ${count(this.#sequence || this.#newest)}`);
    else if (this.#without !== null) put(this.#where, `At entry ${count(at)}, as if entry ${count(this.#without)} had not been`);
    else replace(this.#where, `At entry ${count(at)} of ${count(this.#newest)}`, entry ? [" · ", time(entry.timestamp), " · ", data(actionParts(entry)[0], {}, 40), " by ", data(this.#who(entry))] : null);
    this.#showHistory();
  }

  #who(entry) {
    const [node, counter] = String(entry.origin ?? "").split(":");
    return node === "0" ? `timer ${counter}` : this.#page.model.nodeName(node);
  }

  /** Goes to a place of the past. */
  async #go(at, without, ask) {
    const run = (this.#run += 1);
    this.#isLive = false;
    this.#at = at;
    this.#without = without;
    this.#page.setQuery({ at, without });
    this.#showMode();
    try {
      const result = await ask();
      if (run !== this.#run || this.#closed) return null;
      replace(this.#notice);
      return result;
    } catch (problem) {
      if (run !== this.#run || this.#closed) return null;
      this.#effect.hidden = true;
      // Another state would look like that of this entry.
      this.#tree.element.hidden = true;
      put(this.#stateNote, "not known");
      if (!(problem instanceof Problem)) throw problem;
      const hint = problem.code === "unknownPath" || problem.code === "invalidRequest" && !this.#hasPast ? "This gateway has no time travel." : problem.message;
      this.#say("bad", hint);
      return null;
    }
  }

  async #travel(at) {
    // The gateway makes the past, so it is asked for one state, and for the difference to the next one.
    const found = await this.#go(at, null, async () => {
      try {
        const before = await get(`${this.#path}?at=${at - 1}`);
        const difference = await get(`${this.#path}/difference?from=${at - 1}&to=${at}`);
        const { root, changes } = applyPatch(before.state, difference.changes);
        return { state: root, changes };
      } catch (problem) {
        if (problem.code !== "belowFloor" && at > 0) throw problem;
        return { state: (await get(`${this.#path}?at=${at}`)).state, changes: null };
      }
    });
    if (!found) return;
    const known = found.changes !== null;
    const changes = found.changes ?? [];
    this.#tree.clearMarks();
    this.#show(found.state, changes, { reveal: true, keep: true });
    await this.#nearby(at);
    const entry = this.#history.find((other) => other.sequence === at);
    this.#effect.hidden = false;
    replace(this.#effect, h("h2", {}, entry ? [data(actionParts(entry)[0], { class: "action-name" }, 60), ` of entry ${count(at)}`] : `Entry ${count(at)}`, entry?.outcome === "refused" ? chip("refused", "critical") : null),
      entry?.reason ? h("p", { class: "bad" }, visible(entry.reason, 600)) : null,
      entry ? h("p", { class: "mono args" }, visible(actionParts(entry)[1], 400)) : null,
      !known ? h("p", { class: "faint" }, "What it changed is not known: the state before it is not kept.")
        : changes.length === 0 ? h("p", { class: "faint" }, entry ? "It changed nothing here." : "This entry is not of this store, so the state is that of the entry before it.") : changeList(changes),
      entry ? h("p", { class: "links" }, h("button", { type: "button", onclick: () => this.#imagine(at, null) }, "What would it be without this entry?"),
        h("a", { class: "button", href: `#/entries/${at}?store=${encodeURIComponent(this.#name)}` }, "Its way")) : null);
    announce(this.#where.textContent);
  }

  /** What the state would be if an entry had not been. */
  async #imagine(without, at) {
    const to = at ?? this.#newest;
    const found = await this.#go(to, without, async () => {
      return { real: await get(`${this.#path}?at=${to}`), difference: await get(`${this.#path}/difference?to=${to}&without=${without}`) };
    });
    if (!found) return;
    const { root, changes } = applyPatch(found.real.state, found.difference.changes);
    this.#tree.clearMarks();
    this.#show(root, changes, { reveal: true, keep: true, word: "is" });
    this.#effect.hidden = false;
    replace(this.#effect, h("h2", {}, `Without entry ${count(without)}`),
      h("p", {}, changes.length === 0 ? `The state at entry ${count(to)} would be the same.` : `At entry ${count(to)}, the state would differ at ${changes.length === 1 ? "one place" : `${count(changes.length)} places`}. What is, is struck through; what would be, stands beside it.`),
      changeList(changes), h("p", { class: "links" }, h("button", { type: "button", onclick: () => this.#travel(without) }, `See entry ${count(without)}`), h("button", { type: "button", onclick: () => this.#live() }, "Back to live")));
    announce(this.#where.textContent);
  }

  #slide() {
    const at = Number(this.#slider.value);
    clearTimeout(this.#timer);
    if (at >= this.#newest) return this.#live();
    this.#isLive = false;
    this.#at = at;
    this.#without = null;
    this.#showMode();
    const isLarge = (this.#page.model.hosted(this.#name)?.bytes ?? 0) > LARGE;
    this.#timer = setTimeout(() => this.#travel(at), isLarge ? 600 : 90);
  }

  async #step(direction) {
    const from = this.#isLive ? this.#newest + 1 : (this.#at ?? this.#newest);
    try {
      const { entries } = await get(`${this.#path}/entries?${direction < 0 ? `before=${from}` : `after=${from}`}&limit=1`);
      if (this.#closed) return;
      if (entries.length > 0) this.#travel(entries[0].sequence);
      else if (direction > 0) this.#live();
      else this.#say("", "This is the oldest entry that is kept.");
    } catch (problem) {
      if (!this.#closed) this.#say("bad", problem.message);
    }
  }

  async #oldest() {
    try {
      const { entries } = await get(`${this.#path}/entries?after=${Math.max(0, this.#floor - 1)}&limit=1`);
      if (entries.length > 0 && !this.#closed) this.#travel(entries[0].sequence);
    } catch (problem) {
      if (!this.#closed) this.#say("bad", problem.message);
    }
  }

  // MARK: The history

  async #loadHistory() {
    const began = performance.now();
    try {
      const page = await get(`${this.#path}/entries?before=${Number.MAX_SAFE_INTEGER}&limit=${HISTORY_MAX}`);
      if (this.#closed) return;
      this.#floor = page.floor;
      this.#newest = Math.max(page.newest, this.#sequence);
      this.#hasPast = true;
      if (this.#isLive) this.#history = page.entries;
      this.#showMode();
    } catch (problem) {
      if (this.#closed) return;
      this.#hasPast = !["unknownPath", "unknownStore", "invalidRequest"].includes(problem.code);
      this.#travelCard.hidden = problem.code === "unknownStore";
      if (problem.code === "unknownStore") this.#kept = 0;
      // What is there is still true.
      if (this.#history.length > 0) return;
      replace(this.#list, h("li", { class: "empty" }, this.#hasPast ? visible(problem.message, 400) : "This gateway keeps no history."));
    } finally {
      this.#historyTime = performance.now() - began;
    }
  }

  /** Has the entries around a place in the list. */
  async #nearby(at) {
    if (this.#history.some((entry) => entry.sequence === at)) return;
    const half = HISTORY_MAX / 2;
    try {
      const [older, newer] = await Promise.all([get(`${this.#path}/entries?before=${at + 1}&limit=${half}`), get(`${this.#path}/entries?after=${at}&limit=${half}`)]);
      if (this.#closed || this.#at !== at) return;
      this.#history = [...older.entries, ...newer.entries];
      this.#showMode();
    } catch (problem) {
      this.#say("bad", problem.message);
    }
  }

  #historyTime = 0;
  #rows = new Map();
  #showHistory() {
    if (this.#history.length === 0) {
      if (this.#hasPast) replace(this.#list, h("li", { class: "empty" }, "No action has reached this store, or none is kept."));
      return;
    }
    const rows = new Map();
    for (const entry of this.#history.toReversed()) {
      const row = this.#rows.get(entry.sequence) ?? this.#row(entry);
      const isHere = !this.#isLive && entry.sequence === (this.#without ?? this.#at);
      row.firstChild.setAttribute("aria-current", isHere ? "step" : "false");
      row.classList.toggle("later", !this.#isLive && entry.sequence > (this.#at ?? Infinity));
      rows.set(entry.sequence, row);
    }
    this.#rows = rows;
    morph(this.#list, [...rows.values()]);
    const here = this.#isLive ? null : rows.get(this.#without ?? this.#at);
    if (here && (here.offsetTop < this.#list.scrollTop || here.offsetTop + here.offsetHeight > this.#list.scrollTop + this.#list.clientHeight)) {
      this.#list.scrollTop = here.offsetTop - this.#list.clientHeight / 3;
    }
  }

  #row(entry) {
    const [name, text] = actionParts(entry);
    const row = h("li", {}, h("button", { type: "button", class: "moment", onclick: () => this.#travel(entry.sequence) },
      h("span", { class: "number mono" }, count(entry.sequence)), h("span", { class: "what" }, data(name, { class: "action-name" }, 40), " ", data(text, { class: "mono args" }, 120)),
      entry.outcome === "refused" ? h("span", { class: "outcome bad" }, "refused") : time(entry.timestamp)));
    row.isOwn = true;
    return row;
  }

  // MARK: The form

  async #loadForm() {
    try {
      const { actions } = await get(`${this.#path}/actions`);
      if (this.#closed) return;
      replace(this.#form, h("h2", {}, "Dispatch"), new ActionForm(this.#name, actions, this.#page.model).element);
      this.#form.hidden = !this.#page.model.mayChange;
    } catch {} // Without the shapes there is no form. What is wrong with the store is said of its state.
  }
}
