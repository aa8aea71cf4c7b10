"""Replicas, digests and loads of snapshots, without a socket."""

import unittest

from conflux import wire
from conflux.client import Client
from conflux.coding import Invalid
from conflux.counter import Counter
from conflux.following import Action, Event
from conflux.replica import POINTS_MAX, Replica
from conflux.snapshots import Digest, Load, first_difference, part_of
from conflux.wire import Frame

STORE = "counter/shared"
INCREMENT = b'{"increment":{}}'
NOTHING = Digest().digits()


def digits(value):
    return Digest(value).digits()


def counted(count, sequence=4, version=1):
    return {
        "sequence": sequence, "schemaVersion": version,
        "state": {"coding": "json", "bytes": Counter(count).encode()}}


def reference(octets, sequence=9):
    return {
        "sequence": sequence, "schemaVersion": 1, "digest": digits(octets),
        "byteCount": len(octets)}


def action(sequence, payload=INCREMENT, target=STORE, life=0, version=1):
    return Action(sequence, (7, sequence), target, life, version, "json", payload)


def event(sequence, name, life=4, **fields):
    return Event(sequence, {name: {"0": STORE, "life": life, **fields}})


class DigestTests(unittest.TestCase):
    def test_it_is_blake2b(self):
        for octets, value in (
            (b"", "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"),
            (b"abc", "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"),
            (b'{"count":5}', "60ecae351b18f1e13c972450320462dd07d370b4d18937b6f9f00ecd5d9ab34f"),
        ):
            self.assertEqual(digits(octets), value)

    def test_states_with_the_same_xxh64_have_different_digests(self):
        state = b'{"alice":1000,"note":"paid by the month I_5(d-b1 of the company"}'
        forged = b'{"alice":9991,"note":"paid by the month adacAaaa of the company"}'
        self.assertEqual(len(state), len(forged))
        self.assertNotEqual(digits(state), digits(forged))
        for sent, taken in ((forged, None), (state, state)):
            got = []
            load = Load(STORE, 4, reference(state), got.append)
            part = {"place": load.place, "offset": 0, "byteCount": len(sent), "bytes": sent}
            self.assertFalse(load.take(part))
            self.assertEqual(got, [taken])

    def test_pieces_have_the_digest_of_the_whole(self):
        octets = bytes(range(256)) * 3
        for size in (1, 7, 31, 32, 33, 100, 768):
            digest = Digest()
            for at in range(0, len(octets), size):
                digest.update(octets[at : at + size])
            self.assertEqual(digest.digits(), digits(octets), size)


class ReplicaTests(unittest.TestCase):
    def setUp(self):
        self.replica = Replica(STORE, Counter(), None)
        self.replica.begin(4, counted(10), [])

    def take(self, *entries):
        return [self.replica.take(entry) for entry in entries]

    def count(self):
        return self.replica.state.count

    def test_it_takes_what_concerns_it_above_its_snapshot(self):
        self.take(
            action(4), action(5), action(6, target="counter/*"), action(7, target="counter/other"),
            action(8, target="event:increment"), action(9, life=3), action(10, life=4))
        self.assertEqual((self.count(), self.replica.position, self.replica.last), (13, 10, 10))

    def test_nothing_reaches_it_from_frozen_to_thawed(self):
        self.take(
            action(5), event(6, "frozen", reason="asked"), action(7), action(8, target="counter/*"),
            event(9, "thawed", life=3), action(10), event(11, "thawed"), action(12))
        self.assertEqual(self.count(), 12)
        self.assertEqual(list(self.replica.refusals), [])

    def test_it_votes_with_what_had_no_effect_since_the_point_before(self):
        refused = action(6, b"{}")
        _, _, vote, _, next_vote = self.take(
            action(5), refused, event(7, "digestPoint"), action(8), event(9, "digestPoint"))
        self.assertEqual(vote, {"vote": {
            "place": {"store": STORE, "life": 4, "sequence": 7}, "schemaVersion": 1,
            "digest": digits(b'{"count":11}'), "refusals": digits((6).to_bytes(8, "little")),
            "byteCount": 12}})
        self.assertEqual(next_vote["vote"]["refusals"], NOTHING)

    def test_it_keeps_the_encodings_of_the_last_points(self):
        self.take(*(event(5 + n, "digestPoint") for n in range(POINTS_MAX + 3)))
        self.assertEqual(list(self.replica.points), [8, 9])

    def test_a_point_of_another_life_is_not_its_own(self):
        self.assertEqual(self.take(event(5, "digestPoint", life=3)), [None])

    def test_an_older_replica_stops_where_the_version_rises(self):
        self.take(action(5), event(6, "upgraded", schemaVersion=2, base=5), action(7))
        self.assertEqual((self.replica.stopped[0], self.replica.position, self.count()), (6, 5, 11))

    def test_an_older_replica_stops_at_the_first_newer_entry_that_concerns_it(self):
        self.take(action(6), action(7, target="counter/other", version=2))
        self.assertIsNone(self.replica.stopped)
        outcomes = self.take(action(8, version=2), action(9), event(10, "digestPoint"))
        self.assertEqual(outcomes, [None] * 3)
        self.assertEqual((self.replica.stopped[0], self.replica.position, self.count()), (8, 7, 11))
        # Its life can still end.
        self.assertEqual(self.take(event(11, "dropped")), ["over"])

    def test_what_is_skipped_has_no_effect_and_who_has_it_begins_anew(self):
        self.replica.begin(4, counted(10), [6])
        skip = Event(7, {"skipped": {"0": 6, "1": "counter/*"}})
        self.assertEqual(self.take(action(5), action(6, version=2), skip), [None] * 3)
        self.assertEqual((self.count(), list(self.replica.refusals)), (11, [6]))
        outcomes = self.take(
            action(8), Event(9, {"skipped": {"0": 8, "1": STORE}}),
            action(10, version=2), Event(11, {"skipped": {"0": 10, "1": STORE}}),
            Event(12, {"skipped": {"0": 3, "1": STORE}}))
        self.assertEqual(outcomes, [None, "reload", None, "reload", None])

    def test_a_snapshot_of_another_version_is_migrated_or_none(self):
        with self.assertRaises(Invalid):
            self.replica.begin(4, counted(1, version=2), [])
        self.replica.state.version = 3
        with self.assertRaises(Invalid):
            self.replica.begin(4, counted(1, version=2), [])
        self.replica.state.migrate = lambda octets, coding, version: self.replica.state.load(
            octets, coding)
        self.replica.begin(4, counted(1, version=2), [])
        self.assertEqual(self.count(), 1)


class LoadTests(unittest.TestCase):
    OCTETS = b'{"count":123456}'

    def setUp(self):
        self.got = []
        self.load = Load(STORE, 4, reference(self.OCTETS), self.got.append)

    def part(self, offset, size, octets=OCTETS, **changes):
        return {
            "place": self.load.place, "offset": offset, "byteCount": len(octets),
            "bytes": octets[offset : offset + size], **changes}

    def test_parts_come_in_order_and_twice(self):
        for part in (self.part(0, 5), self.part(0, 5), self.part(7, 5), self.part(5, 0)):
            self.assertTrue(self.load.take(part))
        self.assertFalse(self.load.take(self.part(5, 100)))
        self.assertEqual(self.got, [self.OCTETS])

    def test_one_that_is_gone_or_another_one_is_not_taken(self):
        self.assertFalse(self.load.take(self.part(0, 0, b"")))
        self.setUp()
        self.assertFalse(self.load.take(self.part(0, 100, b'{"count":654321}')))
        self.assertEqual(self.got, [None])

    def test_parts_are_cut_out_of_an_encoding(self):
        request = {"place": self.load.place, "offset": 3, "limitBytes": 5}
        self.assertEqual(part_of(self.OCTETS, request), self.part(3, 5))
        none = self.part(0, 0, b"")
        self.assertEqual(part_of(None, request), none)
        self.assertEqual(part_of(self.OCTETS, dict(request, offset=16)), none)

    def test_the_first_difference_is_a_pointer(self):
        for one, other, path in (
            ({"a": [1, {"b/~": 1}]}, {"a": [1, {"b/~": 2}]}, "/a/1/b~1~0"),
            ({"b": 1, "a": 1}, {"b": 2}, "/a"), ([1], [1, 2], "/1"), (1, 2, ""), (1, True, ""),
            ({"a": None}, {}, "/a"), ({"a": [1]}, {"a": [1]}, None),
        ):
            self.assertEqual(first_difference(one, other), path)


class OpeningTests(unittest.TestCase):
    """What the sequencer offers, in ways that are rare."""

    def setUp(self):
        self.client = Client("inproc://nobody")
        self.addCleanup(self.client.close)
        self.client.awaits_welcome, self.client.log = False, "aa" * 16
        self.client.welcome = {
            "last": 99, "claim": "bb" * 16, "feed": "inproc://nothing"}
        self.said = []
        self.client.say = lambda kind, value: self.said.append((kind, value)) or True
        self.replica = self.client.replicas[STORE] = Replica(STORE, Counter(), None)
        self.client.ask_open()

    def hear(self, kind, value):
        getattr(self.client, f"hear_{kind}")(Frame(kind, 0, value))

    def opened(self, **changes):
        self.hear("opened", {"request": self.replica.request, "outcome": {"opened": {
            "life": 4, "schemaVersion": 1, "last": 10, "floor": 1, "snapshot": {"whole": counted(10)},
            "aside": None, "skipped": [], **changes}}})

    def serve(self, octets):
        kind, load = self.said[-1]
        self.assertEqual(kind, "load")
        self.hear("snapshotServed", {
            "request": load["request"], "deliveryTag": 77, "chunk": part_of(octets, load)})
        self.assertEqual(self.client.acknowledged, 77)

    def test_a_position_is_the_snapshots_or_that_before_the_floor(self):
        for floor, position in ((1, 4), (5, 4), (8, 7)):
            self.setUp()
            self.opened(floor=floor)
            self.assertEqual((self.replica.position, self.replica.began), (position, 4))
            self.assertEqual(self.client.follower.wanted, position + 1)

    def test_a_snapshot_that_is_gone_or_damaged_is_opened_again(self):
        for served in (None, b'{"count":99}'):
            self.opened(snapshot={"saved": reference(b'{"count":12}')})
            self.assertTrue(self.replica.is_loading)
            self.serve(served)
            self.assertFalse(self.replica.is_loading or self.replica.is_open)
            self.client.ask_open()
            self.assertEqual(self.said[-1][0], "open")
        self.opened(snapshot={"saved": reference(b'{"count":12}')})
        self.serve(b'{"count":12}')
        self.assertEqual((self.replica.is_open, self.replica.state.count), (True, 12))

    def test_what_is_kept_aside_follows_the_snapshot_less_what_is_skipped(self):
        aside = bytearray()
        row = {"target": STORE, "life": 0, "schemaVersion": 1, "coding": "json"}
        for first, block in (
            (6, {"batch": {"0": 7, "1": {
                "firstCounter": 1, "settled": 0, "kind": "separate", "count": 2,
                "targets": [row], "entries": [{"target": 0, "payload": INCREMENT}] * 2}}}),
            (9, {"event": {"0": {
                "frozen": {"0": STORE, "life": 4, "reason": "abandoned"}}, "by": None}}),
            # `opened` does not report entries that the log no longer has.
            (11, {"event": {"0": {"skipped": {"0": 7, "1": STORE}}, "by": "ops"}}),
        ):
            count = 1 if "event" in block else 2
            wire.SIZED_COMMIT.write({
                "log": "aa" * 16, "epoch": 1, "predecessor": 1, "first": first,
                "timestamp": 0, "count": count, "blocks": [block]}, aside)
        self.opened(aside=reference(bytes(aside), sequence=15), floor=13)
        self.serve(bytes(aside))
        self.assertTrue(self.replica.is_open and self.replica.is_frozen)
        self.assertEqual((self.replica.state.count, self.replica.position), (11, 15))
        self.assertEqual(list(self.replica.refusals), [7])

    def test_a_state_that_is_none_is_not_opened(self):
        self.opened(snapshot={"whole": dict(counted(1), schemaVersion=7)})
        self.assertIn("version 7", self.replica.failure)
        self.assertEqual(self.said[-1], ("close", {"subject": {"store": STORE}}))

    def test_a_new_connection_asks_for_the_store_again(self):
        self.opened(snapshot={"saved": reference(b'{"count":12}')})
        self.client.say_hello()
        self.assertEqual(self.said[-1][1]["hosted"], [])
        self.assertFalse(self.replica.is_loading)

    def test_who_differs_without_a_majority_says_where_and_stays(self):
        self.opened()
        self.client.apply(event(9, "digestPoint"))
        self.assertEqual(self.said[-1][0], "digest")
        other = b'{"count":77}'
        told = {
            "store": STORE, "life": 4, "lastEqual": 4, "reference": reference(other),
            "isMajority": False, "mustReload": False}
        self.hear("divergence", told)
        self.serve(other)
        place = {"store": STORE, "life": 4, "sequence": 9}
        self.assertEqual(
            self.said[-1], ("digest", {"located": {"place": place, "path": "/count"}}))
        self.assertTrue(self.replica.is_open)
        # It starts again if it must, though the snapshot to compare with is gone.
        self.hear("divergence", dict(told, isMajority=True, mustReload=True))
        self.serve(None)
        self.assertFalse(self.replica.is_open)

    def test_who_has_begun_anew_is_not_reloaded(self):
        self.opened()
        place = {"store": STORE, "life": 4, "sequence": 9}
        self.hear("reload", {"place": place})
        self.assertTrue(self.replica.is_open)
        self.client.apply(action(10, version=2))
        self.assertEqual(self.client.progress()["stopped"], [dict(place, sequence=10)])
        self.hear("reload", {"place": place})
        self.assertTrue(self.replica.is_open)
        self.hear("reload", {"place": dict(place, sequence=10)})
        self.assertFalse(self.replica.is_open)


if __name__ == "__main__":
    unittest.main()
