// What changes something: decisions behind a question, and the form of an action.

import { post, storePath } from "./api.js";
import { ask, count, data, duration, h, replace, toast, visible } from "./dom.js";

/** A button for a decision, which asks first. */
export function offer(label, decision, question, page, danger = false, typed = null) {
  return h("button", { type: "button", class: danger ? "danger-quiet" : "", onclick: async () => {
    const input = typed ? h("input", { type: "text", id: "typed", class: "mono", autocomplete: "off" }) : null;
    const form = await ask({ title: label, yes: label, danger, check: () => !input || input.value === typed,
      body: [h("p", {}, question), input ? h("label", { for: "typed" }, `Type ${typed} to go on`) : null, input,
        h("p", { class: "faint" }, "The log keeps it, under the name of this gateway's key if it has one.")] });
    if (!form) return;
    try {
      const answer = await post("/decisions", JSON.stringify(decision));
      toast(answer.sequence !== undefined ? `Done, with entry ${count(answer.sequence)}.` : `${visible(answer.to ?? "A standby")} takes over.`);
    } catch (problem) {
      toast(visible(problem.message, 600), "bad");
    }
    page.refresh();
  } }, label);
}

const HINTS = { pointer: "a JSON pointer, such as /theme", any: "any JSON, such as \"dark\" or 12", list: "a JSON array", object: "a JSON object", integer: "a whole number", number: "a number", string: "a text" };

/** The form of a store's actions, made of their shapes. */
export class ActionForm {
  element = h("form", { class: "action-form", "aria-label": "Dispatch an action", onsubmit: (event) => this.#send(event) });
  #store; #shapes; #model; #name; #fields = h("div", { class: "fields" }); #inputs = new Map();
  #outcome = h("div", { class: "sent", role: "status", "aria-live": "polite" });
  #button = h("button", { type: "submit", class: "primary" }, "Dispatch");

  constructor(store, shapes, model) {
    this.#store = store;
    this.#model = model;
    this.#shapes = shapes;
    const names = shapes ? Object.keys(shapes) : [];
    this.#name = h("select", { id: "action-name", onchange: () => this.#showFields() }, names.map((name) => h("option", { value: name }, visible(name, 80))), h("option", { value: "" }, "JSON…"));
    replace(this.element, h("div", { class: "field" }, h("label", { for: "action-name" }, "Action"), this.#name), this.#fields, h("div", { class: "actions" }, this.#button), this.#outcome);
    this.#showFields();
  }

  #showFields() {
    this.#inputs.clear();
    const shape = this.#name.value === "" ? null : this.#shapes?.[this.#name.value];
    const rows = Object.entries(shape ?? (this.#name.value === "" ? { json: "any" } : { fields: "object" })).map(([key, kind], index) => {
      const isOptional = kind.endsWith("?");
      const base = kind.replace(/\?$/, "");
      const id = `field-${index}`;
      const isText = ["any", "list", "object"].includes(base);
      const input = base === "boolean" ? h("input", { type: "checkbox", id }) : isText ? h("textarea", { id, rows: "2", class: "mono", spellcheck: "false", "aria-describedby": `${id}-hint` })
        : h("input", { type: "text", id, inputmode: ["integer", "number"].includes(base) ? "decimal" : null, class: "mono", autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-hint` });
      this.#inputs.set(key, { input, base, isOptional });
      return h("div", { class: "field" }, h("label", { for: id }, data(key, {}, 80), isOptional ? h("span", { class: "faint" }, " optional") : null), input,
        HINTS[base] ? h("p", { class: "faint", id: `${id}-hint` }, HINTS[base]) : null);
    });
    replace(this.#fields, rows);
  }

  /** The action as JSON text. Numbers stay as they were typed, so that none loses a digit. */
  #action() {
    const members = [];
    for (const [key, { input, base, isOptional }] of this.#inputs) {
      const text = input.type === "checkbox" ? String(input.checked) : input.value.trim();
      if (text === "" && isOptional) continue;
      if (base === "string" || base === "pointer") {
        members.push([key, JSON.stringify(input.value)]);
        continue;
      }
      try {
        const value = JSON.parse(text);
        if (["integer", "number"].includes(base) && typeof value !== "number") throw new SyntaxError();
      } catch {
        throw Object.assign(new Error(`${key}: this is not ${HINTS[base] ?? "JSON"}.`), { input });
      }
      members.push([key, text]);
    }
    if (this.#name.value === "") return members[0][1];
    const shape = this.#shapes?.[this.#name.value];
    const inner = shape ? `{${members.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(",")}}` : members[0][1];
    return `{${JSON.stringify(this.#name.value)}:${inner}}`;
  }

  async #send(event) {
    event.preventDefault();
    for (const { input } of this.#inputs.values()) input.removeAttribute("aria-invalid");
    let action;
    try {
      action = this.#action();
    } catch (error) {
      error.input?.setAttribute("aria-invalid", "true");
      error.input?.focus();
      return this.#show("bad", visible(error.message));
    }
    this.#button.disabled = true;
    const [at, began] = [new Date(), performance.now()];
    try {
      // With a key, the action is applied once, even if the answer gets lost and the browser asks again.
      const { receipt } = await post(`${storePath(this.#store)}/actions`, action, { "Idempotency-Key": crypto.randomUUID?.() ?? `console-${Math.random()}` });
      const took = performance.now() - began;
      this.#model.sent(receipt.sequence, at, took);
      this.#show("good", "Applied as ", h("a", { href: `#/entries/${receipt.sequence}?store=${encodeURIComponent(this.#store)}` }, `entry ${count(receipt.sequence)}`), ` after ${duration(took)}.`);
    } catch (problem) {
      this.#show("bad", h("strong", {}, visible(problem.code ?? "failed"), ": "), visible(problem.message, 600));
    }
    this.#button.disabled = false;
  }

  #show(tone, ...parts) {
    this.#outcome.className = `sent ${tone}`;
    replace(this.#outcome, ...parts);
  }
}
