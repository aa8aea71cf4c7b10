"""Which operation must be before which other one, and why."""

#: The kinds of arrows, in the order in which cycles are looked for: the fewer kinds a cycle needs, the worse it is.
KINDS = ("ww", "wr", "rw", "process", "time")


class Arrows:
    """Arrows between operations, by their numbers.

    to[kind]: number → {number of the later one: the reason}
    """

    def __init__(self):
        self.to = {kind: {} for kind in KINDS}

    def add(self, kind, earlier, later, reason):
        if earlier.number != later.number:
            self.to[kind].setdefault(earlier.number, {}).setdefault(later.number, reason)

    def after(self, number, kinds=KINDS):
        """The operations that must be behind one, each with the kind and the reason."""
        found = {}
        for kind in kinds:
            for later, reason in self.to[kind].get(number, {}).items():
                found.setdefault(later, (kind, reason))
        return found


def add_list(arrows, order):
    """Adds what the order of a list shows."""
    store = order.store
    writers = order.observed_writers()
    for earlier, later in zip(writers, writers[1:]):
        arrows.add("ww", earlier, later, f"both appended to {store}, in this order")
    for later in order.pending:
        for earlier in writers[-1:]:
            arrows.add("ww", earlier, later, f"nobody saw the append of the latter to {store}")
    for reader, count in order.reads:
        if count > 0:
            value = order.values[count - 1]
            writer = order.writers.get(value)
            if writer is not None and writer.outcome != "fail":
                reason = f"the latter read {value} in {store}, which the former had appended"
                arrows.add("wr", writer, reader, reason)
        if count < len(order.values):
            value = order.values[count]
            writer = order.writers.get(value)
            if writer is not None and writer.outcome != "fail":
                reason = f"the former read {store} without {value}, which the latter appended"
                arrows.add("rw", reader, writer, reason)
        else:
            for writer in order.pending:
                reason = f"the former read {store} without what the latter appended"
                arrows.add("rw", reader, writer, reason)


def add_time(arrows, operations):
    """Adds what is promised about time.

    An operation that has ended is before each one that begins later, if that one is up to date. A read that may lag is
    behind those of its own process only.
    """
    add_times(arrows, "time", operations, lambda each: each.is_current)
    processes = {}
    for each in operations:
        processes.setdefault(each.process, []).append(each)
    for own in processes.values():
        add_times(arrows, "process", own, lambda each: True)


def add_times(arrows, kind, operations, is_behind):
    """Adds arrows from ended operations to later ones, without those that follow from others.

    `frontier` has the ended operations that are not yet before another ended one of those that count.
    """
    moments = []
    for each in operations:
        moments.append((each.begin, 0, each.number, each))
        if each.outcome == "ok":
            moments.append((each.end, 1, each.number, each))
    # What begins in the nanosecond in which another one ends is not behind it.
    moments.sort(key=lambda moment: moment[:3])
    frontier, before = {}, {}
    for _, is_end, number, each in moments:
        if not is_end:
            if is_behind(each):
                before[number] = list(frontier)
                for earlier in frontier.values():
                    arrows.add(kind, earlier, each, "the former had ended when the latter began")
            continue
        for earlier in before.get(number, ()):
            frontier.pop(earlier, None)
        frontier[number] = each
