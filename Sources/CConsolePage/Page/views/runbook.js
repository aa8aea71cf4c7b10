// The runbook: docs/operating.md, as this gateway was built with it.

import { empty, h, replace } from "../dom.js";

let text = null;

const anchor = (title) => title.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");

export class RunbookView {
  #article = h("article", { class: "runbook" });
  #chapter;

  constructor(main, page, chapter) {
    this.#chapter = chapter;
    replace(main, h("div", { class: "head" }, h("h1", {}, "Runbook")), this.#article);
    this.#load();
  }

  async #load() {
    try {
      text ??= await (await fetch("/console/operating.md")).text();
    } catch {
      replace(this.#article, empty("The runbook can't be loaded", "The gateway does not answer. Open this view again later."));
      return;
    }
    const blocks = render(text);
    const toc = blocks.filter((block) => block.localName === "h2");
    replace(this.#article, h("nav", { class: "contents", "aria-label": "Chapters" }, toc.map((heading) => h("a", { href: `#/runbook/${heading.id.slice(2)}` }, heading.textContent))),
      h("div", { class: "prose" }, blocks));
    const target = this.#chapter ? document.getElementById(`r-${this.#chapter}`) : null;
    target?.scrollIntoView();
    target?.focus({ preventScroll: true });
  }
}

/** Makes elements of the part of Markdown that the document uses. */
export function render(source) {
  const lines = source.split("\n");
  const blocks = [];
  let index = 0;
  const isText = (line) => line !== undefined && line.trim() !== "" && !/^(#|\||```| {4}|- |\d+\. |>)/.test(line);
  while (index < lines.length) {
    const line = lines[index];
    if (line.trim() === "") index += 1;
    else if (/^#{1,4} /.test(line)) {
      const level = line.indexOf(" ");
      const title = line.slice(level + 1);
      if (level > 1) blocks.push(h(`h${level}`, { id: `r-${anchor(title)}`, tabindex: "-1" }, inline(title)));
      index += 1;
    } else if (line.startsWith("```")) {
      const start = ++index;
      while (index < lines.length && !lines[index].startsWith("```")) index += 1;
      blocks.push(code(lines.slice(start, index)));
      index += 1;
    } else if (line.startsWith("    ")) {
      const start = index;
      while (index < lines.length && (lines[index].startsWith("    ") || (lines[index].trim() === "" && lines[index + 1]?.startsWith("    ")))) index += 1;
      blocks.push(code(lines.slice(start, index).map((text) => text.slice(4))));
    } else if (line.startsWith("|")) {
      const rows = [];
      while (lines[index]?.startsWith("|")) rows.push(lines[index++].replace(/^\||\|\s*$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim()));
      const [head, , ...body] = rows;
      blocks.push(h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": `Table: ${head.filter(Boolean).join(", ")} (${rows.length - 2} rows, line ${index})` }, h("table", {}, h("thead", {}, h("tr", {}, head.map((cell) => h("th", { scope: "col" }, inline(cell))))),
        h("tbody", {}, body.map((row) => h("tr", {}, row.map((cell) => h("td", {}, inline(cell)))))))));
    } else if (/^(- |\d+\. )/.test(line)) {
      const isOrdered = /^\d/.test(line);
      const items = [];
      while (index < lines.length && (/^(- |\d+\. )/.test(lines[index]) || /^ {2,}\S/.test(lines[index]) || (lines[index].trim() === "" && /^( {2,}\S|- |\d+\. )/.test(lines[index + 1] ?? "")))) {
        if (/^(- |\d+\. )/.test(lines[index])) items.push([lines[index].replace(/^(- |\d+\. )/, "")]);
        else items.at(-1).push(lines[index].replace(/^ {2,3}/, ""));
        index += 1;
      }
      blocks.push(h(isOrdered ? "ol" : "ul", {}, items.map((item) => {
        const parts = render(item.join("\n"));
        return h("li", {}, parts.length === 1 && parts[0].localName === "p" ? [...parts[0].childNodes] : parts);
      })));
    } else {
      const start = index++;
      while (isText(lines[index])) index += 1;
      blocks.push(h("p", {}, inline(lines.slice(start, index).join(" "))));
    }
  }
  return blocks;
}

function code(lines) {
  return h("pre", { tabindex: "0" }, h("code", {}, lines.map((line, index) => [index > 0 ? "\n" : null,
    line.startsWith("$ ") ? [h("span", { class: "prompt", "aria-hidden": "true" }, "$ "), h("strong", {}, line.slice(2))] : line])));
}

function inline(text) {
  const parts = [];
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\(([^)]+)\)/g;
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push(text.slice(end, match.index));
    const [all, mono, strong, emphasis, label, target] = match;
    if (mono) parts.push(h("code", {}, mono));
    else if (strong) parts.push(h("strong", {}, strong));
    else if (emphasis) parts.push(h("em", {}, emphasis));
    // Other documents are not here.
    else if (target.startsWith("#")) parts.push(h("a", { href: `#/runbook/${target.slice(1)}` }, inline(label)));
    else parts.push(h("span", { class: "elsewhere", title: target }, inline(label)));
    end = match.index + all.length;
  }
  return [...parts, text.slice(end)];
}
