"""What a history is: one operation a line, as a JSON object.

    process   the process, a text. It has one replica, so what it has seen it never unsees
    begin     when the operation was called, in nanoseconds of a clock that all processes share
    end       when it returned
    outcome   "ok", "fail" (it has no effect, and never will), or "unknown"
    reads     the lists that it read, by store: {"a": [1, 2]}. They are as they were before its own appends
    appends   what it appended, by store: {"b": [3]}. No value is appended to the same store twice
    fresh     true if a read is up to date: it sees all that had ended anywhere before it began

An operation that appends is always up to date, since the sequencer judges it. An operation that only reads may lag,
unless it is fresh: it sees what its own process has seen, but perhaps not yet what others have done.

An unknown operation may have happened, at any time since its beginning. Its reads are not used.
"""

import json
from collections import namedtuple


class BadHistory(Exception):
    """This is no history."""


class Operation(
    namedtuple("Operation", "number process begin end outcome reads appends fresh kind")
):
    """One operation. Its number is that of its line."""

    @property
    def is_current(self):
        """Whether it is up to date when it happens."""
        return self.fresh or bool(self.appends)

    def __str__(self):
        parts = [f"read {store} {shown(values)}" for store, values in sorted(self.reads.items())]
        parts += [f"appended {values} to {store}" for store, values in sorted(self.appends.items())]
        time = f"{self.begin}–{self.end}" if self.outcome == "ok" else f"from {self.begin}, unknown"
        return f"line {self.number}: {self.kind} of {self.process} ({time}): " + "; ".join(parts)


def shown(values):
    """A list for people: a long one only with its end."""
    return str(values) if len(values) <= 8 else f"[… {str(values[-8:])[1:]} ({len(values)} values)"


def operation(number, fields):
    """Makes an operation of the fields of a line."""

    def field(name, kinds, default=None):
        value = fields.get(name, default)
        if not isinstance(value, kinds) or isinstance(value, bool) != (kinds is bool):
            raise BadHistory(f"line {number} has no {name}, or a wrong one: {value!r}")
        return value

    def lists(name):
        stores = field(name, dict, {})
        for store, values in stores.items():
            if not isinstance(values, list) or any(
                isinstance(value, bool) or not isinstance(value, (int, str)) for value in values
            ):
                raise BadHistory(f"line {number}: the {name} of {store} are no list of values")
        return {store: values for store, values in stores.items() if values or name == "reads"}

    outcome = field("outcome", str)
    if outcome not in ("ok", "fail", "unknown"):
        raise BadHistory(f"line {number}: the outcome is ok, fail or unknown, and not {outcome}")
    begin, end = field("begin", int), field("end", int)
    if end < begin:
        raise BadHistory(f"line {number} ends before it begins")
    reads, appends = lists("reads"), lists("appends")
    kind = field("kind", str, "transaction" if appends else "read")
    fresh = field("fresh", bool, False)
    process = field("process", str)
    return Operation(
        number, process, begin, end, outcome, reads if outcome == "ok" else {}, appends, fresh, kind
    )


def read_history(lines):
    """Reads a history, and checks its form.

    Returns: the operations, in the order of the lines. Raises BadHistory.
    """
    operations = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise BadHistory(f"line {number} is no JSON: {error}") from error
        if not isinstance(fields, dict):
            raise BadHistory(f"line {number} is no object")
        operations.append(operation(number, fields))
    return operations
