"""The dispatched actions, until each has its outcome.

Actions are numbered from 1 without gaps, and gathered in batches. A batch keeps its boundaries
permanently: it may be submitted any number of times, and those of its actions that are in the log get
their first receipts again. The outbox does not use sockets: `due` says what to submit now.

    counters:  1 … settled … | batch | batch | batch | gathered
                             |<- in flight ->| not yet submitted

The batches in flight have at most as many octets as the window.
"""

from . import wire

# An action's outcome: an object with one key, except for the unknown one.
UNKNOWN = "unknown"


class Dispatched:
    """A dispatched action, and its outcome."""

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
            # A batch begins above the settled counter that it states, even if a part of it is settled by now.
            "firstCounter": self.first, "settled": min(settled, self.first - 1),
            "kind": "atomic" if self.is_atomic else "separate", "count": len(self.entries),
            "targets": self.rows, "entries": self.entries,
        }


class Outbox:
    #: The most actions of a batch, so that outcomes arrive while other batches are in transit.
    ENTRIES_MAX = 256

    def __init__(self):
        self.next_counter = 1
        self.settled = 0
        self.batches = []
        #: How many batches, counted from the first, were submitted in this term.
        self.submitted = 0
        self.open = {}
        #: There was no room: batches from this counter on are submitted again at the next beat.
        self.full_at = None
        #: Batches from this counter on were submitted again. It is reset when an action gets its outcome.
        self.resubmitted_from = None

    def dispatch(self, target, payload, life=0, version=1, coding="json", is_atomic=False):
        """Numbers actions, and gathers them. An atomic batch has only these payloads.

        Args:
            payload: An action in its coding; for an atomic batch, a list of actions.
            life: The life of the store; 0 for the present one.
            Returns: A `Dispatched`; for an atomic batch, a list of them.
        """
        payloads = payload if is_atomic else [payload]
        row = {"target": target, "life": life, "schemaVersion": version, "coding": coding}
        batch = self.batches[-1] if self.batches else None
        # A batch that was submitted keeps its boundaries.
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

    #: The most octets that a batch gathers, so that several batches fit into any window.
    gather_max = 65_536

    @staticmethod
    def octets(row, payload):
        """The most octets that an entry takes, with its row."""
        return len(payload) + 8 + len(row["target"]) + 16

    def due(self, window):
        """The batches to submit now, in order: `(counter, value)`. From then on they are in flight.

        Args:
            window: How many octets may be in flight. A single batch is always allowed.
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
        """A batch was discarded: the batches from this counter on are submitted again.

        All batches after a discarded one are discarded, too, and each is reported. So a gap at a counter
        from which everything was submitted again is old news, until an action gets its outcome.
        """
        if reason == "full":
            self.full_at = counter
        elif self.resubmitted_from != counter and self.full_at is None:
            self.resubmit(counter)

    def beat(self):
        """A beat arrived: batches for which there was no room are tried again."""
        if self.full_at is not None:
            counter, self.full_at = self.full_at, None
            self.resubmit(counter)

    def resubmit(self, counter):
        self.resubmitted_from = counter
        kept = [batch for batch in self.batches[: self.submitted] if batch.last < counter]
        self.submitted = len(kept)

    def lose(self):
        """The session is forgotten: open outcomes are unknown, and counters start with 1."""
        for dispatched in self.open.values():
            dispatched.outcome = UNKNOWN
        self.__init__()

    def counters(self, first, count):
        """The actions of a run without an outcome. A run may be longer than everything dispatched."""
        last = min(first + count, self.next_counter)
        return [c for c in range(max(first, self.settled + 1), last) if c in self.open]

    def end(self, counter, outcome):
        self.open.pop(counter).outcome = outcome

    def settle(self):
        # Counters were added in ascending order, so the first one is the lowest.
        self.settled = next(iter(self.open), self.next_counter) - 1
        while self.batches and self.batches[0].last <= self.settled:
            del self.batches[0]
            self.submitted = max(0, self.submitted - 1)
            self.resubmitted_from = None
