// The shell: the address, the views, the overview each second, keys, the theme and the token.

import { announce, ask, h, icon, plural, put, replace } from "./dom.js";
import { Problem, get, onUnauthorized, token } from "./api.js";
import { Model } from "./model.js";
import { HealthView } from "./views/health.js";
import { NodesView } from "./views/nodes.js";
import { EntriesView } from "./views/entries.js";
import { EntryView } from "./views/entry.js";
import { StoresView } from "./views/stores.js";
import { StoreView } from "./views/store.js";
import { RunbookView } from "./views/runbook.js";

const INTERVAL = 1000;
const VIEWS = [
  { path: "", name: "Health", icon: "health", key: "h", view: HealthView },
  { path: "nodes", name: "Nodes", icon: "nodes", key: "n", view: NodesView },
  { path: "entries", name: "Entries", icon: "entries", key: "e", view: EntriesView },
  { path: "stores", name: "Stores", icon: "stores", key: "s", view: StoresView },
  { path: "runbook", name: "Runbook", icon: "runbook", key: "r", view: RunbookView },
];

const model = new Model();
const main = document.getElementById("main");
let view = null;
let route = "";

// MARK: The address

/** Reads the address: #/stores/document/prefs?at=12. */
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  let parts;
  try {
    parts = path.split("/").map(decodeURIComponent);
  } catch {
    parts = ["?"];
  }
  return { parts, query: new URLSearchParams(query ?? "") };
}

/** What a view may do with the page. */
const page = {
  model,
  /** Changes the parameters in the address, without a new view. */
  setQuery(values) {
    const { query } = address();
    for (const [key, value] of Object.entries(values)) {
      if (value === null || value === "") query.delete(key);
      else query.set(key, value);
    }
    const text = query.toString();
    const path = location.hash.split("?")[0] || "#/";
    history.replaceState(null, "", text ? `${path}?${text}` : path);
  },
  get query() { return address().query; },
  refresh: () => poll(),
};

function open() {
  const { parts, query } = address();
  const known = VIEWS.find((item) => item.path === parts[0]);
  const here = parts.join("/");
  if (view && here === route) return view.changed?.(query);
  route = here;
  view?.close?.();
  view = null;
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.dataset.path === parts[0]) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.scrollTop = 0;
  const heading = h("h1", { tabindex: "-1" });
  if (!known) {
    put(heading, "Nothing here");
    replace(main, heading, h("p", {}, "There is no view at this address. ", h("a", { href: "#/" }, "Go to Health"), "."));
  } else if (parts[0] === "stores" && parts.length > 1) view = new StoreView(main, page, parts.slice(1).join("/"), query);
  else if (parts[0] === "entries" && parts.length > 1) view = new EntryView(main, page, parts[1], query);
  else view = new known.view(main, page, parts[1], query);
  document.title = `${main.querySelector("h1")?.textContent ?? "Conflux"} · Conflux`;
  view?.update?.();
  announce(document.title);
}

// MARK: The overview

let polling = null;
let timer = 0;

function poll() {
  clearTimeout(timer);
  if (document.hidden) return Promise.resolve();
  polling ??= get("/status", { signal: AbortSignal.timeout(10000) }).then((overview) => model.take(overview),
    (error) => model.fail(error instanceof Problem ? error : new Problem(0, "unreachable", "The gateway takes too long to answer.")))
    .then(() => {
      polling = null;
      show();
      clearTimeout(timer);
      timer = setTimeout(poll, INTERVAL);
    });
  return polling;
}

let worst = "";

function show() {
  const alarms = model.alarms;
  const level = !model.overview && !model.problem ? "waiting" : (alarms[0]?.level ?? "well");
  const words = { well: "All is well", waiting: "Connecting…", info: "A note", warning: plural(alarms.length, "warning"), critical: plural(alarms.filter((alarm) => alarm.level === "critical").length, "alarm") }[level];
  document.body.classList.toggle("stale", model.problem !== null);
  pulse.className = `pulse ${level}`;
  put(pulse.lastChild, model.problem ? "No answer" : words);
  if (level !== worst && worst !== "") announce(words);
  worst = level;
  put(access, model.mayChange ? "May change" : "Read-only");
  access.className = `chip ${model.mayChange ? "accent" : ""}`;
  access.title = model.mayChange ? "The token allows to dispatch, and to decide about stores" : "Only a token allows more than to read";
  view?.update?.();
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) poll(); });

// MARK: The token

let asking = false;

async function askToken(detail) {
  if (asking) return;
  asking = true;
  const had = token.get() !== null;
  token.clear();
  const input = h("input", { type: "password", name: "token", autocomplete: "off", id: "token-input", class: "mono" });
  const form = await ask({
    title: had ? "The token is not accepted any more" : "This gateway needs a token",
    body: [h("p", {}, "It is the content of the file that was given as ", h("code", {}, "--http-token"), ". The page keeps it for this tab alone."),
      h("label", { for: "token-input" }, "Token"), input],
    yes: "Open", check: () => input.value.trim().length > 0,
  });
  asking = false;
  if (form) {
    token.set(input.value.trim());
    route = "";
    view?.close?.();
    view = null;
    await poll();
    open();
  }
}

onUnauthorized(askToken);

// MARK: The theme

const THEME = "conflux-theme";

function setTheme(name) {
  if (name) localStorage.setItem(THEME, name);
  const isDark = name ? name === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  replace(themeButton, icon(isDark ? "sun" : "moon"));
  themeButton.setAttribute("aria-label", isDark ? "Light theme" : "Dark theme");
}

const toggleTheme = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
const themeButton = h("button", { class: "quiet square", type: "button", onclick: toggleTheme });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(localStorage.getItem(THEME)));

// MARK: Keys

let prefix = 0;

const KEYS = [
  ["g then h, n, e, s, r", "Health, Nodes, Entries, Stores, Runbook"], ["/", "Filter entries"], ["Space", "Pause or resume the entries"],
  ["← →", "In a store: one entry back, one forward"], ["l", "In a store: follow it live"], ["t", "Light or dark"], ["?", "These keys"],
];

function help() {
  ask({ title: "Keys", yes: "Close", body: h("dl", { class: "keys" }, KEYS.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])) });
}

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = performance.now() - prefix < 1500 ? VIEWS.find((item) => item.key === event.key) : null;
  prefix = event.key === "g" ? performance.now() : 0;
  if (target) location.hash = `#/${target.path}`;
  else if (event.key === "t") toggleTheme();
  else if (event.key === "?") help();
  else if (!view?.key?.(event)) return;
  event.preventDefault();
});

// MARK: The beginning

const pulse = h("a", { href: "#/", class: "pulse waiting" }, h("span", { class: "dot", "aria-hidden": "true" }), h("span", {}, "Connecting…"));
const access = h("span", { class: "chip" }, "Read-only");

replace(document.getElementById("nav"), VIEWS.map((item) =>
  h("a", { href: `#/${item.path}`, "data-path": item.path }, icon(item.icon), h("span", {}, item.name))));
replace(document.getElementById("foot"), pulse, h("div", { class: "tools" }, access,
  h("button", { class: "quiet square", type: "button", "aria-label": "Keys", onclick: help }, icon("help")), themeButton));
setTheme(localStorage.getItem(THEME));
addEventListener("hashchange", () => asking || open());
// Without a token nothing would answer a view.
poll().then(() => asking || open());
