"""Short ways to write a history down."""

from listappend.checker import check
from listappend.operations import operation


class History:
    """Operations, each behind the former ones in time unless it has times of its own."""

    def __init__(self):
        self.operations = []
        self.time = 0

    def add(
        self, process, reads=None, appends=None, at=None, outcome="ok", fresh=False, kind=None
    ):
        begin, end = at or (self.time + 1, self.time + 2)
        self.time = max(self.time, end)
        fields = {
            "process": process,
            "begin": begin,
            "end": end,
            "outcome": outcome,
            "reads": reads or {},
            "appends": appends or {},
            "fresh": fresh,
        }
        if kind is not None:
            fields["kind"] = kind
        self.operations.append(operation(len(self.operations) + 1, fields))
        return self

    def check(self):
        return check(self.operations)
