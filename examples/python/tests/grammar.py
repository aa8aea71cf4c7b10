"""Reads the grammar of `docs/protocol.md`: ABNF (RFC 5234), and matches octets against it.

A rule begins at the margin of its block, and continues in lines that are indented further. A number
right before a repetition says how often it occurs, as section 2 of the document says. Everything else
is plain ABNF.
"""

import os
import re

from .cluster import TOP

CORE = {"octet": ("range", 0, 255), "digit": ("range", 0x30, 0x39)}
#: The fields that say how often the repetition right after them occurs.
COUNTS = {
    "u8": lambda octets: octets[0],
    "u16": lambda octets: int.from_bytes(octets, "little"),
    "u32": lambda octets: int.from_bytes(octets, "little"),
    "varint": lambda octets: sum((octet & 0x7F) << 7 * n for n, octet in enumerate(octets)),
}
MARGIN = "    "
TOKEN = re.compile(
    r"\s*(?:;.*|(?P<name>[A-Za-z][A-Za-z0-9-]*)"
    r"|(?P<hex>%x[0-9A-F]+(?:(?:\.[0-9A-F]+)+|-[0-9A-F]+)?)"
    r'|(?P<text>"[^"]*")|(?P<repeat>\d*\*\d*|\d+)|(?P<sign>[=/()\[\]]))')


def document():
    with open(os.path.join(TOP, "docs/protocol.md"), encoding="utf-8") as file:
        return file.read()


def rule_texts(text):
    """The rules of the indented blocks, each with its lines."""
    rules = []
    for line in text.split("\n"):
        if line.startswith(MARGIN) and not line.startswith(MARGIN + " "):
            rules.append(line)
        elif line.startswith(MARGIN):
            rules[-1] += "\n" + line
    return rules


def tokens(text):
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(f"no ABNF: {text[at:]!r}")
        if match.lastgroup:
            found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


class Parser:
    """Reads `name = alternatives`, by recursive descent."""

    def __init__(self, text):
        self.tokens, self.at = tokens(text), 0

    def next(self, group=None, value=None):
        if self.at == len(self.tokens):
            return None
        token = self.tokens[self.at]
        if (group and token[0] != group) or (value and token[1] != value):
            return None
        self.at += 1
        return token[1]

    def rule(self):
        name = self.next("name")
        if name is None or not self.next("sign", "="):
            raise ValueError(f"a rule begins with its name: {self.tokens}")
        node = self.alternatives()
        if self.at != len(self.tokens):
            raise ValueError(f"{name}: what is {self.tokens[self.at:]}?")
        return name.lower(), node

    def alternatives(self):
        nodes = [self.sequence()]
        while self.next("sign", "/"):
            nodes.append(self.sequence())
        return ("any", nodes)

    def sequence(self):
        nodes = []
        while (node := self.element()) is not None:
            nodes.append(node)
        if not nodes:
            raise ValueError(f"nothing where an element was due: {self.tokens}")
        return ("all", nodes)

    def element(self):
        low, star, high = (self.next("repeat") or "1*1").partition("*")
        low, high = (int(low or 0), int(high) if high else None) if star else (int(low),) * 2
        node = self.single()
        if node is None or (low, high) == (1, 1):
            return node
        return ("repeat", low, high, node)

    def single(self):
        if name := self.next("name"):
            return ("rule", name.lower())
        if text := self.next("text"):
            return ("literal", text[1:-1].encode("ascii"))
        if digits := self.next("hex"):
            if "-" in digits:
                return ("range", *(int(part, 16) for part in digits[2:].split("-")))
            return ("literal", bytes(int(part, 16) for part in digits[2:].split(".")))
        if self.next("sign", "("):
            node = self.alternatives()
            if not self.next("sign", ")"):
                raise ValueError(f"a parenthesis is open: {self.tokens}")
            return node
        if self.next("sign", "["):
            node = self.alternatives()
            if not self.next("sign", "]"):
                raise ValueError(f"a bracket is open: {self.tokens}")
            return ("repeat", 0, 1, node)
        return None


def names_in(node):
    """The rules that a node names."""
    if node[0] == "rule":
        return {node[1]}
    parts = node[1] if node[0] in ("any", "all") else node[3:]
    return set().union(*(names_in(part) for part in parts if isinstance(part, tuple)))


class Matcher:
    """The places where a rule can end that begins at a place in octets."""

    def __init__(self, rules, octets):
        self.rules, self.octets, self.known = rules, octets, {}

    def ends(self, node, at):
        key = (id(node), at)
        if key not in self.known:
            self.known[key] = getattr(self, node[0])(node, at)
        return self.known[key]

    def rule(self, node, at):
        return self.ends(self.rules.get(node[1]) or CORE[node[1]], at)

    def range(self, node, at):
        fits = at < len(self.octets) and node[1] <= self.octets[at] <= node[2]
        return {at + 1} if fits else set()

    def literal(self, node, at):
        return {at + len(node[1])} if self.octets.startswith(node[1], at) else set()

    def any(self, node, at):
        return set().union(*(self.ends(part, at) for part in node[1]))

    def all(self, node, at):
        # Each end, with the count that the part before it states, if it states one.
        ends, parts = {(at, None)}, node[1]
        for place, part in enumerate(parts):
            is_repeated = place + 1 < len(parts) and parts[place + 1][0] == "repeat"
            counted = COUNTS.get(part[1]) if part[0] == "rule" and is_repeated else None
            found = set()
            for begin, count in ends:
                is_counted = part[0] == "repeat"
                reached = self.repeat(part, begin, count) if is_counted else self.ends(part, begin)
                for end in reached:
                    found.add((end, counted and counted(self.octets[begin:end])))
            ends = found
        return {end for end, _ in ends}

    def repeat(self, node, at, count=None):
        low, high = (count, count) if count is not None else node[1:3]
        found, ends, times = set(), {at}, 0
        while ends and (high is None or times <= high):
            if times >= low:
                found |= ends
            ends = set().union(*(self.ends(node[3], end) for end in ends)) - found
            times += 1
        return found
