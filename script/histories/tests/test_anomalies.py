"""Planted anomalies: each is found, and has its name."""

import unittest

from .histories import History


class AnomalyTests(unittest.TestCase):
    def expect(self, history, *names):
        report = history.check()
        self.assertEqual(report.names, list(names), str(report))
        return report

    def test_an_orderly_history_has_none(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("q", reads={"a": [1]}, appends={"b": [2]})
        history.add("p", reads={"a": [1], "b": [2]}, fresh=True)
        report = self.expect(history)
        self.assertEqual(str(report), "3 operations (3 ok, 0 fail, 0 unknown): no anomaly")

    def test_lost_update(self):
        # Both read the same list, and one appended behind the other as if it had not.
        history = History()
        history.add("p", reads={"a": []}, appends={"a": [1]}, at=(1, 10))
        history.add("q", reads={"a": []}, appends={"a": [2]}, at=(2, 9))
        history.add("r", reads={"a": [1, 2]}, at=(11, 12))
        report = self.expect(history, "lost update")
        self.assertEqual([each.number for each in report.anomalies[0].operations], [1, 2])
        self.assertIn("the former read a without 1", str(report))

    def test_write_skew(self):
        history = History()
        history.add("p", reads={"a": [], "b": []}, appends={"a": [1]}, at=(1, 10))
        history.add("q", reads={"a": [], "b": []}, appends={"b": [2]}, at=(2, 9))
        history.add("r", reads={"a": [1], "b": [2]}, at=(11, 12))
        self.expect(history, "write skew")

    def test_torn_read_of_two_stores(self):
        history = History()
        history.add("p", appends={"a": [1], "b": [2]}, at=(1, 10))
        history.add("q", reads={"a": [1], "b": []}, at=(2, 9))
        history.add("r", reads={"a": [1], "b": [2]}, at=(11, 12))
        self.expect(history, "torn read")

    def test_stale_read_in_real_time(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("q", reads={"a": []}, fresh=True)
        history.add("p", reads={"a": [1]})
        report = self.expect(history, "stale read")
        self.assertIn("line 1 must be before line 2", str(report))
        self.assertIn("line 2 must be before line 1", str(report))

    def test_an_operation_that_appends_reads_nothing_stale(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("q", reads={"a": []}, appends={"b": [2]})
        history.add("p", reads={"a": [1], "b": [2]})
        self.expect(history, "stale read")

    def test_a_stale_read_through_another_process(self):
        # p saw what q appended, and then r, which began later, did not.
        history = History()
        history.add("q", appends={"a": [1]}, at=(1, 20))
        history.add("p", reads={"a": [1]}, at=(2, 3))
        history.add("r", reads={"a": []}, at=(4, 5), fresh=True)
        self.expect(history, "stale read")

    def test_lost_append(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("q", reads={"a": []}, fresh=True)
        self.expect(history, "lost append")

    def test_duplicate_application(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("q", appends={"a": [2]})
        history.add("q", reads={"a": [1, 2, 1]})
        report = self.expect(history, "duplicate application")
        self.assertIn("it read [1] twice", str(report))

    def test_a_replica_that_differs(self):
        history = History()
        history.add("p", appends={"a": [1]}, at=(1, 10))
        history.add("q", appends={"a": [2]}, at=(1, 10))
        history.add("p", reads={"a": [1, 2]})
        history.add("q", reads={"a": [2, 1]})
        self.expect(history, "contradicting lists")

    def test_a_failed_append_has_no_effect(self):
        history = History()
        history.add("p", appends={"a": [1]}, outcome="fail")
        self.expect(history)
        history.add("q", reads={"a": [1]})
        self.expect(history, "read of a failed append")

    def test_a_value_from_nowhere(self):
        history = History()
        history.add("q", reads={"a": [7]})
        self.expect(history, "value from nowhere")

    def test_a_torn_append(self):
        history = History()
        history.add("p", appends={"a": [1, 2]}, at=(1, 10))
        history.add("q", reads={"a": [1]}, at=(2, 9))
        self.assertIn("torn append", history.check().names)

    def test_a_part_of_a_transaction_that_is_lost(self):
        history = History()
        history.add("p", appends={"a": [1], "b": [2]}, outcome="unknown")
        history.add("q", reads={"a": [1], "b": []}, fresh=True)
        self.expect(history, "torn read")

    def test_circular_information(self):
        history = History()
        history.add("p", reads={"b": [2]}, appends={"a": [1]}, at=(1, 10))
        history.add("q", reads={"a": [1]}, appends={"b": [2]}, at=(1, 10))
        self.expect(history, "circular information")

    def test_appends_in_two_orders(self):
        history = History()
        history.add("p", appends={"a": [1], "b": [1]}, at=(1, 10))
        history.add("q", appends={"a": [2], "b": [2]}, at=(1, 10))
        history.add("r", reads={"a": [1, 2]}, at=(11, 12))
        history.add("r", reads={"b": [2, 1]}, at=(13, 14))
        self.expect(history, "appends in two orders")

    def test_appends_against_time(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("q", appends={"a": [2]})
        history.add("r", reads={"a": [2, 1]})
        self.expect(history, "order against time")

    def test_a_read_of_what_began_later(self):
        history = History()
        history.add("p", reads={"a": [1]})
        history.add("q", appends={"a": [1]})
        self.expect(history, "order against time")

    def test_long_fork(self):
        history = History()
        history.add("p", appends={"a": [1]}, at=(1, 10))
        history.add("q", appends={"b": [2]}, at=(1, 10))
        history.add("r", reads={"a": [1], "b": []}, at=(2, 3))
        history.add("s", reads={"a": [], "b": [2]}, at=(2, 3))
        self.expect(history, "long fork")

    def test_a_process_that_unsees(self):
        history = History()
        history.add("p", appends={"a": [1]}, at=(1, 10))
        history.add("q", reads={"a": [1]}, at=(2, 3))
        history.add("q", reads={"a": []}, at=(4, 5))
        self.expect(history, "read that went back")

    def test_a_process_that_does_not_see_its_own_append(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("p", reads={"a": []})
        history.add("q", reads={"a": [1]})
        self.expect(history, "read that went back")

    def test_each_group_is_named_once(self):
        history = History()
        for store in ("a", "b"):
            history.add("p", appends={store: [1]})
            history.add("q", reads={store: []}, fresh=True)
        self.expect(history, "lost append", "lost append")


class PromiseTests(unittest.TestCase):
    """What is promised to nobody is no anomaly."""

    def expect_none(self, history):
        report = history.check()
        self.assertEqual(report.names, [], str(report))

    def test_a_read_may_lag_behind_other_processes(self):
        history = History()
        history.add("p", appends={"a": [1]})
        history.add("q", reads={"a": []})
        history.add("q", reads={"a": [1]})
        self.expect_none(history)

    def test_an_unknown_append_may_be_lost_or_late(self):
        history = History()
        history.add("p", appends={"a": [1]}, outcome="unknown")
        history.add("p", appends={"b": [2]}, outcome="unknown")
        history.add("q", reads={"a": [], "b": []}, fresh=True)
        history.add("q", reads={"a": [1], "b": []}, fresh=True)
        self.expect_none(history)

    def test_what_overlaps_may_happen_in_either_order(self):
        history = History()
        history.add("p", appends={"a": [1]}, at=(1, 10))
        history.add("q", reads={"a": []}, at=(10, 11), fresh=True)
        history.add("r", reads={"a": [1]}, at=(2, 3), fresh=True)
        self.assertEqual(history.check().names, ["stale read"])
        history.operations.pop()
        history.add("r", reads={"a": [1]}, at=(2, 12), fresh=True)
        self.expect_none(history)


if __name__ == "__main__":
    unittest.main()
