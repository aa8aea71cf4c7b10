"""Long-lived stores: snapshots, the floor, digests, upgrades, freezing, skipping, in a session
with the real sequencer."""

import unittest

from conflux import wire
from conflux.client import Client, Rejected, Stopped
from conflux.counter import Counter

from .cluster import Cluster

STORE = "counter/shared"
INCREMENT = {"increment": {}}
#: Counts up by one, and is so long that a few of these lead to a snapshot.
LONG = b'{"increment":{}}' + b" " * 300_000


class Newer(Counter):
    """A later version of the counter, which is migrated from the first one."""

    version = 2

    def migrate(self, octets, coding, _):
        self.load(octets, coding)


class LongLogTests(unittest.TestCase):
    def setUp(self):
        # A checkpoint is made every 256 KiB, and only necessary entries are kept.
        self.cluster = Cluster("--keep-bytes", "1MiB", "--keep-entries", "1")
        self.addCleanup(self.cluster.__exit__)
        self.cluster.__enter__()
        self.clients = []

    def join(self, name, state=None):
        client = Client(self.cluster.address, name)
        client.floor = 1

        def hears(octets):
            frame = wire.decode(octets, "feed")
            client.floor = frame.value.get("floor", client.floor)
            return True

        client.hears = hears
        self.addCleanup(client.close)
        self.clients.append(client)
        return client, client.open(STORE, state or Counter())

    def wait(self, condition, timeout=15, *, but=()):
        """All clients except for some step until a condition holds."""
        def others():
            for client in self.clients:
                if client not in but:
                    client.step(0)
            return condition()

        first = next(client for client in self.clients if client not in but)
        first.wait(others, timeout)

    def dispatch(self, client, action=INCREMENT, **options):
        dispatched = client.dispatch(STORE, action, **options)
        self.wait(lambda: dispatched.outcome is not None)
        return dispatched

    def raise_floor(self, client, but=()):
        """Dispatches until the log has discarded the entries of the store. Returns how many actions."""
        first, count = None, 0
        while first is None or client.floor <= first:
            self.assertLess(count, 100, "the floor does not move")
            dispatched = client.dispatch(STORE, LONG)
            self.wait(lambda: dispatched.outcome is not None, but=but)
            first, count = first or dispatched.sequence, count + 1
            # Meanwhile checkpoints and snapshots are made.
            if count % 8 == 0:
                try:
                    self.wait(lambda: client.floor > first, 1.5, but=but)
                except TimeoutError:
                    pass
        return count

    def assert_same(self, count, *nodes):
        """Expects that clients and workers have this count, and answer with it when they are observed."""
        names = [one.name for one in self.clients] + list(nodes)
        # Each observed node answers in its turn.
        states = self.cluster.observe(self, names)
        self.assertEqual(states, [{"count": count}] * len(names))

    def test_a_late_joiner_begins_with_a_snapshot_that_python_gave(self):
        first, counter = self.join("first")
        count = self.raise_floor(first)
        self.assertGreater(first.counts["votes"], 0)
        self.assertGreater(first.counts["parts"], 0)
        late, replica = self.join("late")
        self.assertGreater(late.floor, 1)
        self.assertGreater(late.counts["loads"], 0)
        self.assertGreater(replica.began, replica.life)
        self.assertEqual(replica.state.count, count)
        # A worker starts from it, too, and all continue.
        self.cluster.work("alpha")
        self.dispatch(late)
        self.wait(lambda: counter.state.count == count + 1)
        self.assert_same(count + 1, "alpha")

    def test_who_is_behind_the_floor_begins_anew(self):
        self.cluster.work("alpha")
        slow, replica = self.join("slow")
        fast, _ = self.join("fast")
        self.dispatch(slow)
        before = replica.began
        # The feed announces only the numbers of such long commits.
        count = 1 + self.raise_floor(fast, but=[slow])
        self.wait(lambda: replica.is_open and replica.state.count == count)
        self.assertGreater(slow.counts["reloads"], 0)
        self.assertGreater(replica.began, before)
        self.assertGreaterEqual(replica.position, slow.floor - 1)
        last = self.dispatch(slow)
        self.wait(lambda: replica.position >= last.sequence)
        self.assert_same(count + 1, "alpha")

    def test_a_replica_that_differs_says_where_and_is_made_the_majoritys(self):
        self.cluster.work("alpha")
        sick, replica = self.join("sick")
        well, other = self.join("well")
        self.dispatch(well)
        self.wait(lambda: replica.state.count == 1)
        replica.state.count = 1_000
        # One digest point: at a second one the replica might still differ, and start again twice.
        self.dispatch(well, LONG)
        self.wait(lambda: replica.divergence is not None and replica.is_open)
        self.assertEqual(replica.divergence["path"], "/count")
        self.assertTrue(replica.divergence["isMajority"])
        self.wait(lambda: replica.is_open and replica.state.count == 2)
        self.assertEqual(sick.counts["reloads"], 1)
        self.wait(lambda: other.divergence is not None)
        self.assertIsNone(other.divergence["path"])
        self.assertEqual(well.counts["reloads"], 0)
        # A snapshot has the number of its digest point, until another entry concerns the store.
        self.dispatch(sick)
        self.assert_same(3, "alpha")

    def test_nothing_reaches_a_frozen_store_until_it_is_thawed(self):
        self.cluster.work("alpha")
        client, replica = self.join("python")
        self.dispatch(client)
        self.cluster.run(client, "freeze", "counter")
        self.assertEqual(self.dispatch(client).outcome["rejection"]["code"], "frozen")
        passed = client.dispatch("counter/*", INCREMENT)
        client.wait(lambda: passed.outcome is not None)
        self.assertIsNotNone(passed.sequence)
        client.wait(lambda: replica.position >= passed.sequence)
        self.assertTrue(replica.is_frozen)
        # A node that opens the store now learns it from the log.
        _, late = self.join("late")
        self.assertTrue(late.is_frozen)
        self.cluster.run(client, "thaw", "counter")
        self.dispatch(client)
        self.wait(lambda: late.state.count == 2 and replica.state.count == 2)
        self.assert_same(2, "alpha")

    def test_a_newer_program_raises_the_version_once_no_older_one_hosts_the_store(self):
        old, replica = self.join("old")
        with self.assertRaisesRegex(Rejected, "schemaVersion"):
            self.join("early", Newer())
        self.assertIsNone(replica.stopped)
        old.end(STORE)
        new, newer = self.join("new", Newer())
        self.dispatch(new, version=2)
        self.wait(lambda: newer.state.count == 1)
        with self.assertRaisesRegex(Rejected, "schemaVersion"):
            self.join("older")
        again, other = self.join("again", Newer())
        self.wait(lambda: other.state.count == 1)

    def test_a_replica_that_stopped_is_given_the_state_of_others(self):
        self.cluster.work("alpha")
        client, replica = self.join("python")
        # As if the replica could not apply the next entry.
        replica.stopped = (client.follower.position + 1, "it is sick")
        passed = client.dispatch("counter/*", INCREMENT)
        client.wait(lambda: passed.outcome is not None and client.told["stopped"])
        with self.assertRaisesRegex(RuntimeError, "passed"):
            self.cluster.run(client, "log", "skip", str(passed.sequence))
        self.dispatch(client)
        client.wait(lambda: replica.is_open and replica.stopped is None)
        client.wait(lambda: replica.position >= passed.sequence)
        self.assertGreaterEqual(replica.began, passed.sequence)
        self.assert_same(2, "alpha")


if __name__ == "__main__":
    unittest.main()
