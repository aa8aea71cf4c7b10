"""Following, submitting and counting, without a socket."""

import unittest

from conflux import following
from conflux.client import Client, Ended
from conflux.coding import Invalid, canonical, decode
from conflux.counter import HIGHEST, LOWEST, Counter, Refused
from conflux.following import Action, BrokenOrder, Follower
from conflux.outbox import UNKNOWN, Outbox
from conflux.wire import Frame

INCREMENT = b'{"increment":{}}'
ROW = {"target": "counter/*", "life": 0, "schemaVersion": 1, "coding": "json"}


def commit(first, count=1, epoch=1, predecessor=1):
    batch = {
        "firstCounter": first, "settled": 0, "kind": "separate", "count": count, "targets": [ROW],
        "entries": [{"target": 0, "payload": INCREMENT}] * count,
    }
    return {
        "log": "00" * 16, "epoch": epoch, "predecessor": predecessor, "first": first,
        "count": count, "timestamp": 0, "blocks": [{"batch": {"0": 7, "1": batch}}],
    }


class FollowingTests(unittest.TestCase):
    def setUp(self):
        self.follower = Follower()

    def take(self, *arguments, **options):
        return [entry.sequence for entry in self.follower.take(commit(*arguments, **options))]

    def test_commits_in_order_are_given_once(self):
        self.assertEqual(self.take(1, 3), [1, 2, 3])
        self.assertEqual(self.take(1, 3), [])
        self.assertEqual(self.take(4), [4])
        self.assertIsNone(self.follower.wanted)

    def test_a_hole_is_wanted_and_what_is_behind_it_is_kept(self):
        self.assertEqual(self.take(1), [1])
        self.assertEqual(self.take(4), [])
        self.assertEqual(self.take(5, 2), [])
        self.assertEqual(self.follower.wanted, 2)
        self.assertEqual(self.take(2, 2), [2, 3, 4, 5, 6])
        self.assertIsNone(self.follower.wanted)

    def test_a_beat_shows_a_hole(self):
        self.take(1)
        self.follower.learn(3)
        self.assertEqual(self.follower.wanted, 2)

    def test_a_commit_that_begins_below_is_given_from_where_it_is_new(self):
        self.follower.begin(5)
        self.assertEqual(self.take(4, 4), [6, 7])

    def test_what_is_kept_is_bounded_and_wanted_again(self):
        for first in range(2, following.KEPT_MAX + 50):
            self.take(first)
        self.assertEqual(len(self.follower.kept), following.KEPT_MAX)
        self.assertEqual(len(self.take(1)), following.KEPT_MAX + 1)
        self.assertEqual(self.follower.wanted, following.KEPT_MAX + 2)
        self.assertEqual(self.follower.kept, {})

    def test_a_commit_names_the_epoch_before_it(self):
        self.take(1, epoch=2, predecessor=0)
        self.assertEqual(self.take(2, epoch=3, predecessor=2), [2])
        with self.assertRaises(BrokenOrder):
            self.take(3, epoch=3, predecessor=2)

    def test_nothing_is_known_of_the_epoch_behind_a_snapshot(self):
        self.follower.begin(5)
        self.assertEqual(self.take(6, epoch=9, predecessor=8), [6])

    def test_the_origin_is_the_session_and_the_counter(self):
        entry = self.follower.take(commit(1, 2))[1]
        self.assertIsInstance(entry, Action)
        self.assertEqual((entry.origin, entry.target), ((7, 2), "counter/*"))
        self.assertEqual(entry.payload, INCREMENT)


class OutboxTests(unittest.TestCase):
    WINDOW = 1 << 20

    def setUp(self):
        self.outbox = Outbox()

    def dispatch(self, count=1):
        return [self.outbox.dispatch("counter/shared", INCREMENT) for _ in range(count)]

    def due(self, window=WINDOW):
        return [(batch["firstCounter"], batch["count"]) for batch in self.outbox.due(window)]

    def receipt(self, first, count, sequence=10):
        self.outbox.receipt({
            "firstCounter": first, "count": count, "firstSequence": sequence, "epoch": 1,
            "timestamp": 0})

    def test_what_waits_is_gathered_and_what_was_submitted_is_not_joined(self):
        self.dispatch(3)
        self.assertEqual(self.due(), [(1, 3)])
        self.assertEqual(self.due(), [])
        self.dispatch(Outbox.ENTRIES_MAX + 1)
        self.assertEqual(self.due(), [(4, Outbox.ENTRIES_MAX), (4 + Outbox.ENTRIES_MAX, 1)])

    def test_an_atomic_batch_is_by_itself(self):
        self.dispatch()
        self.outbox.dispatch("counter/shared", [INCREMENT] * 2, is_atomic=True)
        self.dispatch()
        batches = self.outbox.due(self.WINDOW)
        self.assertEqual(
            [(batch["kind"], batch["count"]) for batch in batches],
            [("separate", 1), ("atomic", 2), ("separate", 1)])

    def test_after_a_welcome_the_same_batches_come_again(self):
        self.dispatch(3)
        before = self.due()
        self.dispatch(2)
        before += self.due()
        self.dispatch(1)
        self.outbox.again()
        self.assertEqual(self.due(), [*before, (6, 1)])

    def test_receipts_end_actions_and_tell_what_is_settled(self):
        dispatched = self.dispatch(4)
        self.due()
        self.receipt(1, 2)
        self.assertEqual([one.sequence for one in dispatched], [10, 11, None, None])
        self.assertEqual(self.outbox.settled, 2)
        self.outbox.reject({"firstCounter": 3, "count": 1, "code": "otherLife", "message": "no"})
        self.assertEqual(dispatched[2].outcome["rejection"]["code"], "otherLife")
        self.receipt(1, 3, sequence=50)
        self.assertEqual(dispatched[0].sequence, 10)
        self.assertEqual(self.outbox.settled, 3)

    def test_a_batch_begins_above_what_it_says_is_settled(self):
        self.dispatch(4)
        self.due()
        self.receipt(1, 2)
        self.outbox.again()
        again, = self.outbox.due(self.WINDOW)
        self.assertEqual((again["firstCounter"], again["count"], again["settled"]), (1, 4, 0))

    def test_no_more_than_the_window_is_on_its_way_but_one_batch(self):
        for _ in range(4):
            self.dispatch(Outbox.ENTRIES_MAX)
        one = self.outbox.batches[0].bytes
        self.assertEqual(len(self.due(one * 2)), 2)
        self.assertEqual(self.due(one * 2), [])
        self.receipt(1, Outbox.ENTRIES_MAX)
        self.assertEqual(len(self.due(one * 2)), 1)
        self.outbox.again()
        self.assertEqual(len(self.due(1)), 1)

    def test_a_gap_is_submitted_again_once_however_often_it_is_told(self):
        for _ in range(3):
            self.dispatch()
            self.due()
        self.outbox.expect(2, "gap")
        self.assertEqual(self.due(), [(2, 1), (3, 1)])
        self.outbox.expect(2, "gap")
        self.assertEqual(self.due(), [])
        self.receipt(1, 1)
        self.outbox.expect(2, "gap")
        self.assertEqual(self.due(), [(2, 1), (3, 1)])

    def test_the_batch_that_has_the_counter_is_submitted_whole(self):
        self.dispatch(4)
        self.due()
        self.outbox.expect(3, "gap")
        self.assertEqual(self.due(), [(1, 4)])

    def test_where_there_is_no_room_the_next_beat_is_awaited(self):
        for _ in range(2):
            self.dispatch()
            self.due()
        self.outbox.expect(1, "full")
        self.outbox.expect(1, "gap")
        self.assertEqual(self.due(), [])
        self.outbox.beat()
        self.assertEqual(self.due(), [(1, 1), (2, 1)])

    def test_outcomes_of_nothing_that_was_dispatched_change_nothing(self):
        dispatched, = self.dispatch()
        self.due()
        self.receipt(2, 2**32 - 1)
        self.assertIsNone(dispatched.outcome)
        self.receipt(1, 2**32 - 1)
        self.assertEqual((dispatched.sequence, self.outbox.settled), (10, 1))

    def test_a_session_that_is_forgotten_leaves_outcomes_unknown(self):
        dispatched = self.dispatch(2)
        self.due()
        self.receipt(1, 1)
        self.outbox.lose()
        self.assertEqual(dispatched[0].sequence, 10)
        self.assertEqual(dispatched[1].outcome, UNKNOWN)
        self.dispatch()
        self.assertEqual(self.due(), [(1, 1)])


class ClientTests(unittest.TestCase):
    """Messages in an order that is rare with a real sequencer."""

    LOG, CLAIM, LATER = "aa" * 16, "bb" * 16, "cc" * 16

    def setUp(self):
        self.client = Client("inproc://nobody")
        self.addCleanup(self.client.close)

    def welcome(self, epoch=1, claim=CLAIM, agreed=0, log=LOG, request=None):
        self.client.hear_welcome(Frame("welcome", epoch, {
            "request": self.client.hello["request"] if request is None else request,
            "log": log, "claim": claim, "incarnation": 2, "last": 9, "floor": 1, "agreed": agreed,
            "settled": 0, "lastCounter": 0, "feed": "inproc://nothing",
            "limits": {
                "windowBytes": 1 << 20, "batchBytesMax": 1 << 20, "payloadBytesMax": 1 << 20,
                "beatInterval": 10**8, "silenceMax": 10**10},
        }))

    def farewell(self, code, request=0):
        self.client.hear_farewell(
            Frame("farewell", 1, {"request": request, "code": code, "message": ""}))

    def hello(self):
        self.client.say_hello()
        return self.client.hello["request"]

    def test_a_session_is_forgotten_once_however_often_it_is_told(self):
        self.hello()
        self.welcome()
        before = self.client.dispatch("counter/*", INCREMENT)
        request = self.hello()
        self.farewell("forgotten", request)
        self.assertEqual(before.outcome, UNKNOWN)
        after = self.client.dispatch("counter/*", INCREMENT)
        self.farewell("forgotten", request)
        self.assertIsNone(after.outcome)
        self.assertEqual(after.counter, 1)

    def test_a_welcome_of_an_earlier_hello_is_not_heard(self):
        self.hello()
        self.welcome()
        self.client.note(9)
        earlier, later = self.hello(), self.hello()
        self.welcome(epoch=2, claim=self.LATER, agreed=4, request=earlier)
        self.assertEqual((self.client.epoch, self.client.awaits_welcome), (1, True))
        self.welcome(epoch=2, claim=self.LATER, agreed=9, request=later)
        self.assertEqual((self.client.epoch, self.client.awaits_welcome), (2, False))
        self.assertEqual(self.client.history["sequence"], 9)
        # It is answered, and no other answer counts.
        self.welcome(epoch=3, claim=self.CLAIM, agreed=4, request=later)
        self.assertEqual((self.client.epoch, self.client.history["sequence"]), (2, 9))
        self.hello()
        self.welcome(epoch=3, claim=self.CLAIM, agreed=4)
        self.assertIsNone(self.client.history)

    def test_a_hello_that_is_said_again_is_the_same_as_long_as_it_says_the_same(self):
        self.hello()
        self.welcome()
        request = self.hello()
        self.client.say_hello(is_same=True)
        self.assertEqual(self.client.hello["request"], request)
        self.client.note(9)
        self.client.say_hello(is_same=True)
        self.assertEqual(self.client.hello["request"], request + 1)

    def test_a_refusal_of_an_earlier_hello_ends_nothing(self):
        earlier = self.hello()
        self.hello()
        self.farewell("nameTaken", earlier)
        with self.assertRaises(Ended):
            self.farewell("nameTaken", self.client.hello["request"])

    def test_a_log_that_was_put_back_answers_in_a_lower_epoch(self):
        self.hello()
        self.welcome(epoch=5)
        self.hello()
        self.welcome(epoch=4, claim=self.LATER)
        self.assertEqual((self.client.epoch, self.client.awaits_welcome), (4, False))

    def test_a_message_of_another_epoch_changes_nothing_and_a_later_one_is_a_reason_for_hello(self):
        self.hello()
        self.welcome(epoch=5)
        dispatched = self.client.dispatch("counter/*", INCREMENT)
        run = {"firstCounter": 1, "count": 1, "firstSequence": 3, "epoch": 4, "timestamp": 0}
        for epoch, awaits_welcome in ((4, False), (6, True)):
            self.client.hear_receipts(Frame("receipts", epoch, {"runs": [run]}))
            self.assertIsNone(dispatched.outcome)
            self.assertEqual(self.client.awaits_welcome, awaits_welcome)


class CounterTests(unittest.TestCase):
    def test_it_counts(self):
        counter = Counter()
        for payload in (INCREMENT, INCREMENT, b'{"decrement":{}}', b'{"add":{"amount":-5}}'):
            counter.apply(payload, "json")
        self.assertEqual(counter.encode(), b'{"count":-4}')
        other = Counter()
        other.load(counter.encode(), "json")
        self.assertEqual(other.count, -4)

    def test_it_stays_within_64_bits(self):
        for count, payload in ((HIGHEST, INCREMENT), (LOWEST, b'{"decrement":{}}')):
            counter = Counter(count)
            with self.assertRaises(Refused):
                counter.apply(payload, "json")
            self.assertEqual(counter.count, count)

    def test_a_state_that_is_none_is_not_loaded(self):
        for octets in (b"{}", b'{"count":1,"by":2}', b'{"count":"1"}', b"[1]", b'{"count":1.5}'):
            with self.subTest(octets), self.assertRaises(Invalid):
                Counter().load(octets, "json")

    def test_canonical_json_has_sorted_keys_and_no_blanks(self):
        self.assertEqual(canonical({"b": [1, "ü"], "a": None}), '{"a":null,"b":[1,"ü"]}'.encode())

    def test_the_compact_coding_is_read(self):
        for digits, value in (
            ("0100", None), ("011f01", 16), ("0127", -8), ("0152c3bc", "ü"),
            ("01621234", b"\x12\x34"),
            ("01720201", [True, False]), ("017281026110810111", [{"a": 0}, {"a": 1}]),
        ):
            with self.subTest(digits):
                self.assertEqual(decode(bytes.fromhex(digits), "compact"), value)
        for octets in (
            b"", b"\x01", b"\x01\x03", b"\x01" + b"\x71" * 100_000, b"\x01\x7f\xff\xff\x7f",
        ):
            with self.assertRaises(Invalid):
                decode(octets, "compact")


if __name__ == "__main__":
    unittest.main()
