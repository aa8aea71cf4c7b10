"""An editing trace, and the text that it makes.

CONFLUX_TRACE names a trace in the form of https://github.com/josephg/editing-traces, such as automerge-paper.json.gz.
Without it, a small one is made up.
"""

import gzip
import json
import os
import random


def trace():
    """Yields transactions: lists of [position, deleted count, inserted text]."""
    path = os.environ.get("CONFLUX_TRACE")
    if path:
        opening = gzip.open if path.endswith(".gz") else open
        with opening(path, "rt", encoding="utf-8") as file:
            for transaction in json.load(file)["txns"]:
                yield transaction["patches"]
        return
    generator = random.Random(1)
    length, place = 0, 0
    for _ in range(3_000):
        if generator.random() < 0.05:
            place = generator.randrange(length + 1)
        deleted = min(generator.choice((0, 0, 0, 1, 3)), length - place)
        text = generator.choice(("a", "b", "word ", "\n", "\u00e9\u2192", "", "line\nline"))
        yield [[place, deleted, text]]
        length += len(text) - deleted
        place += len(text)


class Text:
    """A text as lines with names: numbers, in the order of the lines. A line keeps its name while there is room."""

    STEP = 10 ** 12

    def __init__(self):
        self.names, self.lines = [0], [""]
        self.index, self.start = 0, 0  # of the line that was edited last

    @staticmethod
    def key(name):
        return f"{name:020}"

    def edit(self, place, deleted, text):
        """Returns what changed: the new text of each line, or None if it is gone."""
        while place < self.start:
            self.index -= 1
            self.start -= len(self.lines[self.index]) + 1
        while place > self.start + len(self.lines[self.index]):
            self.start += len(self.lines[self.index]) + 1
            self.index += 1
        first = self.index
        old, last = self.lines[first], first
        while place + deleted > self.start + len(old):
            last += 1
            old += "\n" + self.lines[last]
        offset = place - self.start
        new = (old[:offset] + text + old[offset + deleted:]).split("\n")
        changes = {self.key(name): None for name in self.names[first + 1:last + 1]}
        names = [self.names[first]]
        if last + 1 < len(self.names):
            gap = (self.names[last + 1] - names[0]) // len(new)
        else:
            gap = self.STEP
        names += [names[0] + gap * (number + 1) for number in range(len(new) - 1)]
        self.names[first:last + 1], self.lines[first:last + 1] = names, new
        changes.update(zip(map(self.key, names), new))
        if gap == 0:  # there is no room: all get new names
            changes = dict.fromkeys([*changes, *map(self.key, self.names)])
            self.names = [self.STEP * number for number in range(len(self.lines))]
            changes |= zip(map(self.key, self.names), self.lines)
        return changes

    def __str__(self):
        return "\n".join(self.lines)


def text(state):
    """The text of a document."""
    return "\n".join(line for _, line in sorted(state["lines"].items()))
