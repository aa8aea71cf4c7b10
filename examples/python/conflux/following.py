"""Following the log: which entries are next, which ones are kept for later, and where a gap is.

A follower takes commits, from the feed and from answers to fetches alike, and returns the entries
that are next, each once and without gaps. It does not use sockets.

    position: every entry up to it was returned
    target:   the highest number that is known to be in the log
    kept:     commits after a gap, by their first numbers, within a bound

    There is a gap whenever the target is above the position and no kept commit closes it: see `wanted`.
"""

from collections import namedtuple

#: An entry of the log: its number, and either its origin and the parts of an action, or an event.
Action = namedtuple("Action", "sequence origin target life version coding payload")
Event = namedtuple("Event", "sequence event")

#: How many commits after a gap are kept. When there is no room, later ones are fetched later.
KEPT_MAX = 256


class BrokenOrder(Exception):
    """A commit does not follow the one before it: this is not the log that was followed."""


class Follower:
    def __init__(self):
        self.position = 0
        self.target = 0
        #: The epoch of the commit at the position, if one was read. The next commit must name it.
        self.epoch = None
        self.kept = {}

    def begin(self, position):
        """Continues after another number, about which nothing else is known."""
        self.position, self.epoch = position, None
        self.target = max(self.target, position)
        self.kept = {}

    def forget(self):
        """Starts again: with another log, or one that lost its end."""
        self.target = 0
        self.begin(0)

    def learn(self, last):
        self.target = max(self.target, last)

    @property
    def wanted(self):
        """The number to fetch from, or None when nothing is missing."""
        return self.position + 1 if self.target > self.position else None

    def take(self, commit):
        """Takes a commit: the next one, an old one, or a later one.

        Returns: the entries that are next, in order.
        """
        self.learn(commit["first"] + commit["count"] - 1)
        if commit["first"] > self.position + 1:
            if len(self.kept) < KEPT_MAX:
                self.kept[commit["first"]] = commit
            return []
        entries = self.advance(commit)
        while (following := self.kept.pop(self.position + 1, None)) is not None:
            entries += self.advance(following)
        # Entries below the position were fetched in differently divided commits.
        self.kept = {first: kept for first, kept in self.kept.items() if first > self.position}
        return entries

    def advance(self, commit):
        last = commit["first"] + commit["count"] - 1
        if last <= self.position:
            return []
        follows = commit["first"] == self.position + 1
        if follows and self.epoch not in (None, commit["predecessor"]):
            raise BrokenOrder(
                f"entry {commit['first']} follows epoch {commit['predecessor']}, not {self.epoch}")
        entries = [entry for entry in entries_of(commit) if entry.sequence > self.position]
        self.position, self.epoch = last, commit["epoch"]
        return entries


def entries_of(commit):
    """The entries of a commit, each with its number."""
    sequence = commit["first"]
    for block in commit["blocks"]:
        if "event" in block:
            yield Event(sequence, block["event"]["0"])
            sequence += 1
            continue
        incarnation, batch = block["batch"]["0"], block["batch"]["1"]
        for place, entry in enumerate(batch["entries"]):
            row = batch["targets"][entry["target"]]
            yield Action(
                sequence, (incarnation, batch["firstCounter"] + place), row["target"],
                row["life"], row["schemaVersion"], row["coding"], entry["payload"])
            sequence += 1
