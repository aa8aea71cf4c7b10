// Asks the gateway. The token is kept for this tab alone, and sent as a header.

const TOKEN = "conflux-token";

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  clear: () => sessionStorage.removeItem(TOKEN),
};

/** Why there is no answer: a problem of the gateway, or no gateway. */
export class Problem extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

let whenUnauthorized = () => {};
export function onUnauthorized(body) { whenUnauthorized = body; }

async function request(path, { method = "GET", body, headers = {}, signal } = {}) {
  const all = { ...headers };
  if (token.get()) all.Authorization = `Bearer ${token.get()}`;
  if (body !== undefined) all["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(`/api/v1${path}`, { method, body, headers: all, signal, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The gateway does not answer.");
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) whenUnauthorized(problem.detail);
  throw new Problem(response.status, problem.code ?? `${response.status}`, problem.detail ?? response.statusText);
}

/** Reads JSON. Whole numbers that JavaScript can't hold become BigInt. */
export function parse(text) {
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "") ? BigInt(context.source) : value);
}

export async function get(path, options) { return parse(await (await request(path, options)).text()); }

export async function post(path, body, headers) {
  return parse(await (await request(path, { method: "POST", body, headers })).text());
}

export const storePath = (name) => `/stores/${name.split("/").map(encodeURIComponent).join("/")}`;

/** A gateway says something each 30 seconds. After a longer silence the connection is dead, as when a computer slept. */
const SILENCE_MAX = 45000;
/** The most bytes of one event. More than that is no event of a gateway. */
const EVENT_BYTES_MAX = 1.2 * 2 ** 30;

/**
 * Reads server-sent events until it is closed, and connects again when the connection ends. While the page is hidden, it
 * does not read: a browser has few connections, and an hour later nobody wants what was missed.
 */
export class Stream {
  #path; #handlers; #closed = false; #abort = null; #last = ""; #delay = 0; #timer = 0;

  constructor(path, handlers) {
    this.#path = path;
    this.#handlers = handlers;
    document.addEventListener("visibilitychange", this.#seen);
    this.#run();
  }

  #seen = () => {
    clearTimeout(this.#timer);
    if (document.hidden) this.#timer = setTimeout(() => this.#abort?.abort(), 15000);
    else if (!this.#abort) this.#run();
  };

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#seen);
    this.#abort?.abort();
  }

  async #run() {
    if (this.#closed || this.#abort || document.hidden) return;
    const abort = (this.#abort = new AbortController());
    let problem = null;
    try {
      const headers = this.#last ? { "Last-Event-ID": this.#last } : {};
      const response = await request(this.#path, { signal: abort.signal, headers });
      this.#delay = 0;
      this.#handlers.open?.();
      await this.#read(response.body.getReader(), abort);
    } catch (error) {
      problem = error;
    }
    this.#abort = null;
    if (this.#closed || document.hidden) return;
    const isFinal = problem instanceof Problem && [401, 403, 404, 410].includes(problem.status);
    this.#handlers.closed?.(problem instanceof Problem ? problem : new Problem(0, "unreachable", "The connection broke."), isFinal);
    if (isFinal) return;
    this.#delay = Math.min(5000, (this.#delay || 250) * 2);
    this.#timer = setTimeout(() => this.#run(), this.#delay * (0.75 + Math.random() / 2));
  }

  async #read(reader, abort) {
    const decoder = new TextDecoder();
    let parts = [];
    let length = 0;
    for (;;) {
      const silence = setTimeout(() => abort.abort(), SILENCE_MAX);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      const text = decoder.decode(value, { stream: true });
      // A state may come in many parts: only the new part is searched, and its end may be at the seam.
      const seam = parts.length > 0 ? parts[parts.length - 1].slice(-1) : "";
      parts.push(text);
      length += text.length;
      if (length > EVENT_BYTES_MAX) throw new Problem(0, "tooLarge", "An event is too large.");
      if (!(seam + text).includes("\n\n")) continue;
      const events = parts.join("").split("\n\n");
      parts = [events.pop()];
      length = parts[0].length;
      for (const event of events) this.#take(event);
    }
  }

  #take(event) {
    let name = "message";
    let data = null;
    for (const line of event.split("\n")) {
      if (line.startsWith("id: ")) this.#last = line.slice(4);
      else if (line.startsWith("event: ")) name = line.slice(7);
      else if (line.startsWith("data: ")) data = line.slice(6);
    }
    if (data !== null && !this.#closed) this.#handlers[name]?.(parse(data));
  }
}
