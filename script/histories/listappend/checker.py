"""Checks a history, and names what is wrong with it."""

from .arrows import KINDS, Arrows, add_list, add_time
from .cycles import groups, shortest_cycle
from .lists import ListOrder, anomaly


class Report:
    """What a check found."""

    def __init__(self, operations, anomalies):
        self.operations = operations
        self.anomalies = anomalies

    @property
    def names(self):
        return [each.name for each in self.anomalies]

    def __str__(self):
        counts = {}
        for each in self.operations:
            counts[each.outcome] = counts.get(each.outcome, 0) + 1
        parts = [f"{counts.get(outcome, 0)} {outcome}" for outcome in ("ok", "fail", "unknown")]
        lines = [
            f"{len(self.operations)} operations ({', '.join(parts)}): "
            + (f"{len(self.anomalies)} anomalies" if self.anomalies else "no anomaly")
        ]
        for each in self.anomalies:
            lines.append(f"\n{each.name}:")
            lines += [f"    {operation}" for operation in each.operations]
            lines += [f"    {reason}" for reason in each.reasons]
        return "\n".join(lines)


def check(operations):
    """Checks that operations can have happened one after the other.

    Returns: a report with every anomaly of a list, and one for each group of operations that depend on each other.
    """
    stores = sorted({store for each in operations for store in {**each.reads, **each.appends}})
    orders = [ListOrder(store, operations) for store in stores]
    anomalies = [each for order in orders for each in order.anomalies]
    happened = those_that_happened(operations, orders)
    arrows = Arrows()
    for order in orders:
        add_list(arrows, order)
    add_time(arrows, happened)
    numbers = {each.number: each for each in happened}
    for group in groups(numbers, arrows.after):
        anomalies.append(explain(group, numbers, arrows, orders))
    return Report(operations, anomalies)


def those_that_happened(operations, orders):
    """The operations with an effect: those that say so, and the unknown ones of which something was observed."""
    observed = {
        order.writers[value].number
        for order in orders
        for value in order.values
        if value in order.writers
    }
    happened = []
    for each in operations:
        if each.outcome == "ok" or (each.outcome == "unknown" and each.number in observed):
            happened.append(each)
    # Of an unknown operation that has happened, all has happened.
    for order in orders:
        seen = set(order.values)
        for each in happened:
            values = each.appends.get(order.store, ())
            if each.outcome == "unknown" and any(value not in seen for value in values):
                order.pending.append(each)
    return happened


def explain(group, numbers, arrows, orders):
    """The shortest cycle of those that need the fewest kinds of arrows."""
    for count in range(1, len(KINDS) + 1):
        kinds = KINDS[:count]

        def after(number):
            return arrows.after(number, kinds)

        cycle = shortest_cycle(group, after)
        if cycle is not None:
            break
    steps = []
    for earlier, later in zip(cycle, cycle[1:] + cycle[:1]):
        kind, reason = arrows.after(earlier, kinds)[later]
        steps.append((kind, earlier, later, reason))
    name = name_of([numbers[number] for number in cycle], steps, orders)
    reasons = [
        f"line {earlier} must be before line {later}: {reason} ({kind})"
        for kind, earlier, later, reason in steps
    ]
    return anomaly(name, [numbers[number] for number in cycle], *reasons)


def name_of(cycle, steps, orders):
    """The usual name of a cycle."""
    kinds = [step[0] for step in steps]
    rw = kinds.count("rw")
    if "time" in kinds or "process" in kinds:
        if rw == 0:
            return "order against time"
        if any(each in order.pending for order in orders for each in cycle):
            return "lost append"
        return "stale read" if "time" in kinds else "read that went back"
    if rw == 0:
        return "circular information" if "wr" in kinds else "appends in two orders"
    if rw == 1:
        return "torn read" if "wr" in kinds else "lost update"
    readers = {earlier for kind, earlier, *_ in steps if kind == "rw"}
    is_skew = all(each.appends for each in cycle if each.number in readers)
    return "write skew" if is_skew else "long fork"
