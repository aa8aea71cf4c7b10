"""What was dispatched, until each action has its outcome.

Actions are numbered from 1 without a hole, and gathered in batches. A batch keeps its boundaries
for good: it may be submitted any number of times, and whatever of it is in the log gets its first
receipts again. The outbox knows nothing of sockets: `due` says what to submit now.

    counters:  1 … settled … | batch | batch | batch | gathered
                             |<- in flight ->| not yet submitted

What is in flight has no more octets than the window.
"""

from . import wire

# What an action's outcome is: an object with one key, but for the unknown one.
UNKNOWN = "unknown"


class Dispatched:
    """An action that was dispatched, and what became of it."""

    def __init__(self, counter):
        self.counter = counter
        #: None; `{"receipt": …}` with `sequence`, `epoch` and `timestamp`: it is in the log;
        #: `{"rejection": …}` with `code` and `message`: it never will be; or `"unknown"`.
        self.outcome = None

    @property
    def sequence(self):
        """The number of its entry, or None."""
        receipt = isinstance(self.outcome, dict) and self.outcome.get("receipt")
        return receipt["sequence"] if receipt else None


class Batch:
    def __init__(self, first, is_atomic):
        self.first, self.is_atomic = first, is_atomic
        self.rows, self.entries, self.bytes = [], [], 32

    @property
    def last(self):
        return self.first + len(self.entries) - 1

    def value(self, settled):
        return {
            # A batch begins above what it says is settled, even if a part of it is by now.
            "firstCounter": self.first, "settled": min(settled, self.first - 1),
            "kind": "atomic" if self.is_atomic else "separate", "count": len(self.entries),
            "targets": self.rows, "entries": self.entries,
        }


class Outbox:
    #: Actions of a batch at most, so that outcomes come while others are on their way.
    ENTRIES_MAX = 256

    def __init__(self):
        self.next_counter = 1
        self.settled = 0
        self.batches = []
        #: How many of the batches were submitted in this tenure, the first ones.
        self.submitted = 0
        self.open = {}
        #: From this counter on batches are to be submitted at the next beat: there was no room.
        self.full_at = None
        #: From which counter on batches were submitted again, until something has an outcome.
        self.resubmitted_from = None

    def dispatch(self, target, payload, life=0, version=1, coding="json", is_atomic=False):
        """Numbers actions, and gathers them. An atomic batch is these payloads alone.

        Args:
            payload: An action in its coding; of an atomic batch, a list of these.
            life: The life of the store that is meant; 0 for the one that there is.
        Returns: `Dispatched`; of an atomic batch, a list of these.
        """
        payloads = payload if is_atomic else [payload]
        row = {"target": target, "life": life, "schemaVersion": version, "coding": coding}
        batch = self.batches[-1] if self.batches else None
        # What was submitted keeps its boundaries.
        if (
            batch is None or len(self.batches) <= self.submitted or batch.is_atomic or is_atomic
            or len(batch.entries) >= self.ENTRIES_MAX or (
                row not in batch.rows and len(batch.rows) >= wire.ROWS_MAX)
            or batch.bytes + self.octets(row, payload) > self.gather_max
        ):
            batch = Batch(self.next_counter, is_atomic)
            self.batches.append(batch)
        results = []
        for octets in payloads:
            batch.bytes += self.octets(row, octets)
            if row not in batch.rows:
                batch.rows.append(row)
            batch.entries.append({"target": batch.rows.index(row), "payload": octets})
            results.append(Dispatched(self.next_counter))
            self.open[self.next_counter] = results[-1]
            self.next_counter += 1
        return results if is_atomic else results[0]

    #: Octets that a batch gathers, so that a few of them fit into any window.
    gather_max = 65_536

    @staticmethod
    def octets(row, payload):
        """What an entry takes at most, and its row."""
        return len(payload) + 8 + len(row["target"]) + 16

    def due(self, window):
        """The batches to submit now, in order: `(counter, value)`. They are in flight from then on.

        Args:
            window: How many octets may be in flight. One batch may be in any case.
        """
        if self.full_at is not None:
            return []
        flying = sum(batch.bytes for batch in self.batches[: self.submitted])
        values = []
        for batch in self.batches[self.submitted :]:
            if flying and flying + batch.bytes > window:
                break
            flying += batch.bytes
            self.submitted += 1
            values.append(batch.value(self.settled))
        return values

    def again(self):
        """After a welcome every batch without an outcome is submitted again."""
        self.submitted = 0
        self.full_at = self.resubmitted_from = None

    def receipt(self, run):
        first, count = run["firstCounter"], run["count"]
        for counter in self.counters(first, count):
            self.end(counter, {"receipt": {
                "sequence": run["firstSequence"] + counter - first,
                "epoch": run["epoch"], "timestamp": run["timestamp"],
            }})
        self.settle()

    def reject(self, rejection):
        for counter in self.counters(rejection["firstCounter"], rejection["count"]):
            self.end(counter, {"rejection": {
                "code": rejection["code"], "message": rejection["message"]}})
        self.settle()

    def expect(self, counter, reason):
        """A batch was discarded: those from the counter on are submitted again.

        Each batch behind a discarded one is discarded, too, and each of them is told. So a gap at a
        counter from which all was submitted again is old news, until something gets its outcome.
        """
        if reason == "full":
            self.full_at = counter
        elif self.resubmitted_from != counter and self.full_at is None:
            self.resubmit(counter)

    def beat(self):
        """A beat was heard: who was told that there is no room tries again."""
        if self.full_at is not None:
            counter, self.full_at = self.full_at, None
            self.resubmit(counter)

    def resubmit(self, counter):
        self.resubmitted_from = counter
        kept = [batch for batch in self.batches[: self.submitted] if batch.last < counter]
        self.submitted = len(kept)

    def lose(self):
        """The session is forgotten: open outcomes are unknown, and counters begin with 1."""
        for dispatched in self.open.values():
            dispatched.outcome = UNKNOWN
        self.__init__()

    def counters(self, first, count):
        """Those of a run that have no outcome yet. A run may be longer than anything dispatched."""
        last = min(first + count, self.next_counter)
        return [c for c in range(max(first, self.settled + 1), last) if c in self.open]

    def end(self, counter, outcome):
        self.open.pop(counter).outcome = outcome

    def settle(self):
        # Counters were put in ascending order, so the first one is the lowest.
        self.settled = next(iter(self.open), self.next_counter) - 1
        while self.batches and self.batches[0].last <= self.settled:
            del self.batches[0]
            self.submitted = max(0, self.submitted - 1)
            self.resubmitted_from = None
