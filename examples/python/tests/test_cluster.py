"""The client against the real sequencer, beside a real worker."""

import json
import os
import shutil
import subprocess
import sys
import unittest

import zmq

from conflux import wire
from conflux.client import Client
from conflux.counter import Counter

from .cluster import TOP, Cluster, die_with_parent

STORE = "counter/shared"
INCREMENT = {"increment": {}}


def add(amount):
    return {"add": {"amount": amount}}


class ClusterTests(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.__exit__)
        self.cluster.__enter__()
        self.cluster.work("alpha")

    def join(self, name="python", **options):
        client = Client(self.cluster.address, name, **options)
        self.addCleanup(client.close)
        return client

    def assert_same(self, client, count):
        """Expects that the client and the worker have this count, and answer with it when they are observed."""
        states = self.cluster.observe(client, ["alpha", client.name])
        self.assertEqual(states, [{"count": count}] * 2)
        self.assertEqual(client.replicas[STORE].state.count, count)

    def assert_receipts(self, dispatched):
        """Expects that each action has a receipt with its own number, in the order of dispatching."""
        numbers = [one.sequence for one in dispatched]
        self.assertNotIn(None, numbers)
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_actions_of_both_sides_reach_both(self):
        client = self.join()
        counter = client.open(STORE, Counter())
        self.cluster.run(client, "dispatch", "counter/*", json.dumps(add(7)))
        dispatched = [client.dispatch(STORE, INCREMENT) for _ in range(600)]
        dispatched.append(client.dispatch("counter/*", add(-100)))
        dispatched += client.dispatch_atomically(STORE, [add(1_000), {"decrement": {}}])
        client.wait(lambda: dispatched[-1].outcome is not None)
        self.assert_receipts(dispatched)
        client.wait(lambda: counter.position >= dispatched[-1].sequence)
        self.assert_same(client, 7 + 600 - 100 + 1_000 - 1)
        self.assertEqual(client.outbox.settled, len(dispatched))

    def test_killed_sequencer_comes_back_and_nothing_is_lost_or_doubled(self):
        client = self.join()
        client.open(STORE, Counter())
        dispatched = []
        # All the time the feed also loses messages.
        client.hears = lambda octets: len(octets) % 3
        for _ in range(3):
            first = client.dispatch(STORE, INCREMENT)
            client.wait(lambda: first.outcome is not None)
            dispatched.append(first)
            for _ in range(40):
                dispatched += [client.dispatch(STORE, add(1 + k % 5)) for k in range(10)]
                client.step(0.001)
            self.cluster.sequencer.kill()
            dispatched += [client.dispatch(STORE, INCREMENT) for _ in range(49)]
            self.assertTrue(any(one.outcome is None for one in dispatched))
            self.cluster.restart()
        client.wait(lambda: dispatched[-1].outcome is not None)
        self.assert_receipts(dispatched)
        self.assertGreaterEqual(client.counts["welcomes"], 4)
        client.hears = None
        client.wait(lambda: client.replicas[STORE].position >= dispatched[-1].sequence)
        self.assert_same(client, 3 * (40 * (1 + 2 + 3 + 4 + 5) * 2 + 50))

    def test_one_that_is_led_nowhere_comes_back_to_what_it_was_given(self):
        context = zmq.Context()
        guide = context.socket(zmq.ROUTER)
        nowhere = "tcp://127.0.0.1:1"
        try:
            port = guide.bind_to_random_port("tcp://127.0.0.1")
            client = Client(f"tcp://127.0.0.1:{port},{self.cluster.address}")
            self.addCleanup(client.close)

            def is_led_away():
                while guide.poll(0):
                    route, octets = guide.recv_multipart()
                    hello = wire.decode(octets, "node")
                    redirect = {"request": hello.value["request"], "address": nowhere}
                    guide.send_multipart([route, wire.encode("redirect", 0, redirect)])
                return client.address == nowhere

            client.wait(is_led_away)
            client.open(STORE, Counter())
            self.assertEqual(client.address, self.cluster.address)
        finally:
            guide.close(0)
            context.term()

    def test_what_is_asked_while_it_says_hello_is_asked_again(self):
        client = self.join()
        client.open(STORE, Counter())
        heard, hear = [], client.hear_questionAsked

        def hear_in_a_hello(frame):
            if not heard:
                client.say_hello()
            heard.append(frame.value["number"])
            hear(frame)

        client.hear_questionAsked = hear_in_a_hello
        self.assert_same(client, 0)
        self.assertEqual(heard[0], heard[1])

    def test_a_log_that_is_put_back_is_loaded_anew(self):
        client = self.join()
        counter = client.open(STORE, Counter())
        copy = self.cluster.log + "-copy"
        first = [client.dispatch(STORE, INCREMENT) for _ in range(5)]
        client.wait(lambda: first[-1].outcome is not None)
        self.cluster.sequencer.kill()
        shutil.copytree(self.cluster.log, copy)
        self.cluster.restart()
        lost = [client.dispatch(STORE, add(1_000)) for _ in range(5)]
        client.wait(lambda: lost[-1].outcome is not None and counter.state.count == 5_005)
        self.assert_receipts(first + lost)
        self.cluster.sequencer.kill()
        shutil.rmtree(self.cluster.log)
        os.rename(copy, self.cluster.log)
        # The lost term may have had a higher epoch than the next one.
        self.cluster.restart()
        client.wait(lambda: counter.is_open and counter.state.count == 5)
        kept = client.dispatch(STORE, add(20))
        client.wait(lambda: kept.outcome is not None)
        self.assert_receipts([*first, kept])
        client.wait(lambda: counter.state.count == 25)
        self.assert_same(client, 25)

    def test_another_log_leaves_outcomes_unknown_and_is_begun_with(self):
        client = self.join()
        counter = client.open(STORE, Counter())
        first = client.dispatch(STORE, INCREMENT)
        client.wait(lambda: first.outcome is not None)
        self.cluster.sequencer.kill()
        waiting = client.dispatch(STORE, INCREMENT)
        shutil.rmtree(self.cluster.log)
        self.cluster.restart()
        client.wait(lambda: waiting.outcome is not None)
        self.assertEqual(waiting.outcome, "unknown")
        # The node that opens the store first creates it, with the initial state.
        client.wait(lambda: counter.is_open)
        again = client.dispatch(STORE, add(3))
        client.wait(lambda: again.outcome is not None)
        self.assertIsNotNone(again.sequence, again.outcome)
        client.wait(lambda: counter.state.count == 3)
        self.assert_same(client, 3)

    def test_lost_feed_messages_are_fetched(self):
        heard = iter(range(1_000_000))
        client = self.join(hears=lambda _: next(heard) % 3 == 0)
        counter = client.open(STORE, Counter())
        lines = "".join(json.dumps(add(k)) + "\n" for k in range(1, 401))
        before = client.counts["fetches"]
        self.cluster.run(client, "dispatch", "counter/*", "--file", "-", text=lines)
        client.wait(lambda: counter.state.count == 400 * 401 // 2)
        self.assertGreater(client.counts["lost"], 0)
        self.assertGreater(client.counts["fetches"], before)
        self.assert_same(client, 400 * 401 // 2)

    def test_no_message_of_the_feed_but_beats_is_enough(self):
        client = self.join(hears=lambda octets: octets[5] == 0x82)
        client.open(STORE, Counter())
        dispatched = [client.dispatch(STORE, INCREMENT) for _ in range(100)]
        client.wait(lambda: dispatched[-1].outcome is not None)
        client.wait(lambda: client.replicas[STORE].state.count == 100)
        self.assert_receipts(dispatched)
        self.assert_same(client, 100)

    def test_an_action_of_an_unknown_state_is_rejected_and_the_next_one_is_not(self):
        client = self.join()
        client.open(STORE, Counter())
        lost = client.dispatch("nobody/*", INCREMENT)
        kept = client.dispatch(STORE, INCREMENT)
        client.wait(lambda: kept.outcome is not None)
        self.assertEqual(lost.outcome["rejection"]["code"], "unknownTarget")
        self.assert_receipts([kept])
        self.assert_same(client, 1)

    def test_what_the_worker_refuses_is_refused(self):
        # Each action adds a power of two, so that the sum tells which ones were applied.
        forms = [
            '{"add":{"amount":%d}}', ' {"add" : {"amount": %d.0 } }\n', '{"add":{"amount":%de0}}',
            '{"add":{"amount":%d.5}}', '{"add":{"amount":"%d"}}', '{"add":{"amount":%d,"by":1}}',
            '{"add":{"amount":%d},"increment":{}}', '{"add":{"amount":%d}}x', '[%d]',
            '{"add":{"amount":%d,"amount":1}}', '{"add":{"amount":%d},"add":{"amount":1}}',
            '{"add":[%d]}', '{"add":%d}', '{"Add":{"amount":%d}}', '\ufeff{"add":{"amount":%d}}',
            '{"a\\u0064d":{"amount":%d}}', '{"add":{"amount":0%d}}', '{"add":{"amount":+%d}}',
            '{"add":{"amount":NaN,"x":%d}}', '{"add":{"amount":%d}}\x00', '{"add":{"amount":%d,}}',
            '{"add":{"amount":%d000000000000000000000}}', '{"add":{"amount":%d0e-1}}',
        ]
        payloads = [form.encode() % (1 << n) for n, form in enumerate(forms)]
        payloads += [
            b"", b"{}", b"null", b'{"increment":null}', b'{"increment":[]}',
            b'{"increment":{"a":1}}',
            b'{"decrement":{}}', b'\xff', b"[" * 100_000, b'{"\\ud800":{}}',
            b'{"add":{"amount":9223372036854775807}}', b'{"add":{"amount":9223372036854775808}}',
            b'{"add":{"amount":-9223372036854775808}}', b'{"add":{"amount":1e30}}',
            b'{"add":{"amount":-0}}', b'{"add":{"amount":-0.0}}', b'{"add":{"amount":1e400}}',
        ]
        client = self.join()
        counter = client.open(STORE, Counter())
        dispatched = [client.dispatch(STORE, payload) for payload in payloads]
        # In the compact coding: an object with one member, which is an object with one member, a number.
        compact = [
            f"018106616464810c616d6f756e74{number}" for number in (
                "1f10", "1f8080808080808080808001", "20", "30" + "00" * 6 + "5040",
                "40" + "00002042", "30" + "00" * 6 + "f87f", "5131", "10ff", "1f8000", "00", "")]
        compact += ["", "02", "0181" + "12696e6372656d656e7480", "018112696e6372656d656e7400",
                    "0182" + "12696e6372656d656e7480" + "0180", "018101" + "80"]
        dispatched += [
            client.dispatch(STORE, bytes.fromhex(digits), coding="compact") for digits in compact]
        client.wait(lambda: dispatched[-1].outcome is not None)
        client.wait(lambda: counter.position >= dispatched[-1].sequence)
        self.assert_receipts(dispatched)
        self.assert_same(client, counter.state.count)
        refused = [bytes(p) for p, d in zip(payloads, dispatched) if d.sequence in counter.refusals]
        self.assertIn(b"null", refused)
        self.assertNotIn(payloads[1], refused)
        accepted = [
            digits for digits, one in zip(compact, dispatched[len(payloads) :])
            if one.sequence not in counter.refusals]
        self.assertEqual(accepted, [compact[0], *compact[2:4], compact[13]])

    def test_the_program_counts_and_follows(self):
        def program(*words):
            return [
                sys.executable, "-B", os.path.join(TOP, "examples/python/counter.py"),
                "--connect", self.cluster.address, *words]

        follower = subprocess.Popen(
            program("follow"), stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self.addCleanup(follower.stdout.close)
        self.addCleanup(follower.wait)
        self.addCleanup(follower.kill)
        self.assertEqual(json.loads(follower.stdout.readline())["count"], 0)
        done = subprocess.run(
            program("add", "5"), capture_output=True, timeout=10, preexec_fn=die_with_parent)
        self.assertEqual(json.loads(done.stdout)["count"], 5, done.stderr)
        self.assertEqual(json.loads(follower.stdout.readline())["count"], 5)
        done = subprocess.run(
            program("add", str(2**63 - 1)), capture_output=True, timeout=10,
            preexec_fn=die_with_parent)
        self.assertEqual(done.returncode, 81, done.stderr)


if __name__ == "__main__":
    unittest.main()
