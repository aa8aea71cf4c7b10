"""Random histories: the checker agrees with a search of all orders, and finds nothing in what a list has done."""

import itertools
import os
import random
import unittest

from listappend.arrows import Arrows, add_time
from listappend.checker import check

from .histories import History

SEED = int(os.environ.get("CONFLUX_SEED", random.SystemRandom().randrange(1 << 32)))


def is_orderly(operations):
    """Whether some order explains every read, by trying all of them. All operations have happened."""
    arrows = Arrows()
    add_time(arrows, operations)
    numbers = [each.number for each in operations]
    later = {number: set(arrows.after(number)) for number in numbers}
    return any(is_explained(order, later) for order in itertools.permutations(operations))


def is_explained(order, later):
    lists, done = {}, set()
    for each in order:
        if later[each.number] & done:
            return False
        done.add(each.number)
        for store, values in each.reads.items():
            if lists.get(store, []) != values:
                return False
        for store, values in each.appends.items():
            lists[store] = lists.get(store, []) + values
    return True


def random_times(rng, end):
    return tuple(sorted(rng.sample(range(1, end), 2)))


def random_history(rng):
    """A few operations with random reads, most of which can't have happened."""
    history, values = History(), {"a": [], "b": []}
    for number in range(rng.randint(2, 5)):
        reads, appends = {}, {}
        for store in values:
            if rng.random() < 0.5:
                reads[store] = values[store][: rng.randint(0, len(values[store]))]
            if rng.random() < 0.4:
                appends[store] = [number]
                values[store] = values[store] + [number]
        if reads or appends:
            history.add(
                rng.choice("pqr"), reads, appends, random_times(rng, 12), fresh=rng.random() < 0.5
            )
    return history


def performed_history(rng, count):
    """What processes saw that used lists one after the other, some of them on a copy that lags."""
    history, lists, past, seen = History(), {"a": [], "b": [], "c": []}, [], {}
    past.append(dict(lists))
    for number in range(count):
        process = rng.choice("pqr")
        moment = 10 * number + 5
        times = (moment - rng.randint(0, 25), moment + rng.randint(0, 25))
        stores = rng.sample(sorted(lists), rng.randint(1, 3))
        if rng.random() < 0.5:
            kind = rng.choice(["ok", "ok", "ok", "unknown", "fail"])
            reads = {store: lists[store] for store in stores}
            appends = {store: [number] for store in stores[:2]}
            if kind == "ok" or (kind == "unknown" and rng.random() < 0.5):
                lists = {**lists, **{store: lists[store] + [number] for store in appends}}
            if kind == "ok":
                seen[process] = len(past)
            history.add(process, reads, appends, times, outcome=kind)
        elif rng.random() < 0.5:
            history.add(process, {store: lists[store] for store in stores}, None, times, fresh=True)
            seen[process] = len(past)
        else:
            place = rng.randint(seen.get(process, 0), len(past))
            copy = (past + [lists])[place]
            # Its operations do not overlap, so that each begins where the former one has ended.
            history.add(process + "'", {store: copy[store] for store in stores}, None, times)
            if seen.get(process + "'", 0) > place:
                history.operations.pop()
            else:
                seen[process + "'"] = place
        past.append(dict(lists))
    return history


class OracleTests(unittest.TestCase):
    def test_the_checker_agrees_with_a_search_of_all_orders(self):
        orderly = 0
        for round in range(3_000):
            rng = random.Random(f"{SEED}-{round}")
            operations = random_history(rng).operations
            expected = is_orderly(operations)
            orderly += expected
            report = check(operations)
            self.assertEqual(not report.anomalies, expected, f"CONFLUX_SEED={SEED}: {report}")
        self.assertTrue(300 < orderly < 2_700, orderly)

    def test_lists_that_were_used_in_order_have_no_anomaly(self):
        for round in range(30):
            rng = random.Random(f"{SEED}-{round}")
            report = performed_history(rng, 60).check()
            self.assertEqual(report.names, [], f"CONFLUX_SEED={SEED}: {report}")

    def test_a_long_history_is_checked_too(self):
        history = performed_history(random.Random(1), 3_000)
        self.assertEqual(history.check().names, [])
        # One read misses one append of the middle.
        values = next(each for each in history.operations[2_900:] if each.reads.get("a"))
        values.reads["a"] = values.reads["a"][:-1]
        self.assertNotEqual(history.check().names, [])


if __name__ == "__main__":
    unittest.main()
