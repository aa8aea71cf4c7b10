"""The lists, as the reads show them: the order of the appends, and what a single read can show to be wrong."""

from collections import namedtuple

from .operations import BadHistory, shown

#: Something that can't have happened: its name, the operations, and the reasons.
Anomaly = namedtuple("Anomaly", "name operations reasons")


def anomaly(name, operations, *reasons):
    return Anomaly(name, list(operations), list(reasons))


class ListOrder:
    """The order of one list.

    values:   its observed values, in order
    writers:  value → the operation that appended it
    reads:    the reads that the order explains: pairs of an operation and the number of values that it saw
    pending:  operations that appended values which nobody saw, and which have happened
    """

    def __init__(self, store, operations):
        self.store = store
        self.values = []
        self.writers = {}
        self.reads = []
        self.pending = []
        self.anomalies = []
        self._find_writers(operations)
        readers = [each for each in operations if store in each.reads]
        self._find_order(readers)
        self._check_values()
        self._find_pending(operations)

    def _find_writers(self, operations):
        for each in operations:
            for value in each.appends.get(self.store, ()):
                if value in self.writers:
                    raise BadHistory(
                        f"lines {self.writers[value].number} and {each.number} both append {value} "
                        f"to {self.store}"
                    )
                self.writers[value] = each

    def _find_order(self, readers):
        """The longest read has the order. Every other one must be its beginning."""
        sound = []
        for each in readers:
            values = each.reads[self.store]
            seen, twice = set(), set()
            for value in values:
                (twice if value in seen else seen).add(value)
            if twice:
                self._add("duplicate application", [each], f"it read {sorted(twice, key=str)} twice")
            else:
                sound.append(each)
        longest = max(sound, key=lambda each: len(each.reads[self.store]), default=None)
        if longest is None:
            return
        self.values = longest.reads[self.store]
        for each in sound:
            values = each.reads[self.store]
            if values == self.values[: len(values)]:
                self.reads.append((each, len(values)))
                continue
            place = next(i for i, value in enumerate(values) if value != self.values[i])
            self._add(
                "contradicting lists",
                [each, longest],
                f"they differ at index {place}: {values[place]} and {self.values[place]}",
            )

    def _check_values(self):
        for value in self.values:
            writer = self.writers.get(value)
            if writer is None:
                readers = self._readers_of(value)
                self._add("value from nowhere", readers, f"nobody has appended {value}")
            elif writer.outcome == "fail":
                readers = [writer] + self._readers_of(value)
                self._add("read of a failed append", readers, f"{value} was observed nevertheless")
        for each, count in self.reads:
            if count == 0:
                continue
            writer = self.writers.get(self.values[count - 1])
            if writer is None or writer is each:
                continue
            own = writer.appends[self.store]
            if self.values[count - 1] != own[-1]:
                self._add(
                    "torn append", [writer, each], f"it saw {self.values[count - 1]} of {shown(own)}"
                )

    def _readers_of(self, value):
        """The first operation that read a value."""
        place = self.values.index(value)
        return [each for each, count in self.reads if count > place][:1]

    def _find_pending(self, operations):
        observed = set(self.values)
        for each in operations:
            values = each.appends.get(self.store, ())
            if each.outcome == "ok" and any(value not in observed for value in values):
                self.pending.append(each)

    def _add(self, name, operations, *reasons):
        self.anomalies.append(anomaly(name, operations, f"store {self.store}", *reasons))

    def observed_writers(self):
        """The operations whose appends were observed, in the order of the list, each once in a row."""
        writers = []
        for value in self.values:
            writer = self.writers.get(value)
            if writer is not None and writer.outcome != "fail" and writers[-1:] != [writer]:
                writers.append(writer)
        return writers
