// The stores, by their state.

import { chip, count, data, empty, h, morph, plural, rate, replace, size, spark } from "../dom.js";

const ROWS_MAX = 300;

export class StoresView {
  #page;
  #list = h("div", { class: "states" });
  #note = h("p", { class: "faint" });
  #filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter stores by name", oninput: () => { this.#page.setQuery({ q: this.#filter.value }); this.update(); } });

  constructor(main, page, part, query) {
    this.#page = page;
    this.#filter.value = query.get("q") ?? "";
    replace(main, h("div", { class: "head" }, h("h1", {}, "Stores"), this.#note, h("div", { class: "tools" }, this.#filter)), this.#list);
  }

  key(event) {
    if (event.key !== "/") return false;
    this.#filter.focus();
    return true;
  }

  update() {
    const { model } = this.#page;
    const status = model.overview?.sequencer;
    if (!status) {
      if (model.overview) morph(this.#list, empty("The stores are not known", model.overview.problem?.detail));
      return;
    }
    const wanted = this.#filter.value.trim();
    const all = status.stores.filter((store) => store.store.includes(wanted));
    const shown = all.slice(0, ROWS_MAX);
    const states = Map.groupBy(shown, (store) => store.store.split("/")[0]);
    this.#note.textContent = `${plural(all.length, "store")}${all.length > shown.length ? `, of which ${count(shown.length)} are shown` : ""}. Size and rate are known for what this gateway is given.`;
    morph(this.#list, shown.length === 0 ? empty(wanted ? "No store has this name" : "There is no store yet", wanted ? null : "A store begins when somebody opens it.")
      : [...states].map(([state, stores]) => this.#table(state, stores, status, model)));
  }

  #table(state, stores, status, model) {
    const number = (value) => h("td", { class: "number" }, value);
    return h("section", { class: "card flush", "aria-label": state },
      h("h2", {}, data(state), h("span", { class: "faint" }, plural(stores.length, "store"))),
      h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": `Stores of ${state}` }, h("table", {},
        h("thead", {}, h("tr", {}, ["Store", "Is", "Hosts", "Actions/s", "", "Size", "Snapshot", "Version"].map((title, index) =>
          h("th", { scope: "col", class: [2, 3, 5, 6, 7].includes(index) ? "number" : "" }, title || h("span", { class: "unseen" }, "Rate over time"))))),
        h("tbody", {}, stores.map((store) => {
          const hosted = model.hosted(store.store);
          const conditions = [store.frozen && ["frozen", "warning"], store.divergence && ["diverged", "critical"], store.stopped && ["stopped", "critical"], hosted?.ended && ["not served", "warning"]].filter(Boolean);
          const age = status.last - store.snapshot;
          return h("tr", {},
            h("th", { scope: "row" }, h("a", { href: `#/stores/${store.store}`, class: "mono" }, data(store.store.split("/").slice(1).join("/")))),
            h("td", {}, conditions.length > 0 ? conditions.map((condition) => chip(...condition)) : chip(hosted ? "served" : "elsewhere", hosted ? "good" : "")),
            number(count(store.hosts)), number(rate(model.newest(`target ${store.store}`) ?? (model.newest("entries") === null ? null : 0))),
            h("td", {}, spark(model.series(`target ${store.store}`), `Actions a second for ${store.store}`, { width: 80, height: 20 })),
            number(size(hosted?.bytes)), number(age === 0 ? "at the end" : `${count(age)} ago`), number(count(store.schemaVersion)));
        })))));
  }
}
