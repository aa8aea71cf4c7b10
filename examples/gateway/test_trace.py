"""An editing trace through the gateway: three clients in different languages follow it, one of them slow, one without
a connection now and then. At the end all have the same text.

CONFLUX_TRACE names a trace, as `editing.py` describes it.
"""

import json
import signal
import socket
import tempfile
import threading
import time
import unittest

import zmq

import test_gateway as examples
from editing import Text, text, trace
from test_gateway import SECONDS, STORE, Client, Cluster

WINDOW = 512  # dispatches without an answer


class Wire:
    """A connection to the gateway that can be cut."""

    def __init__(self, address):
        host, port = address.removeprefix("tcp://").rsplit(":", 1)
        self.target, self.open, self.is_cut, self.count = (host, int(port)), [], False, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "tcp://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                pair = [self.listener.accept()[0]]
            except OSError:
                return
            if self.is_cut:
                pair[0].close()
                continue
            pair.append(socket.create_connection(self.target))
            self.count += 1
            self.open.append(pair)
            for source, sink in (pair, reversed(pair)):
                threading.Thread(target=self.pump, args=(source, sink), daemon=True).start()

    @staticmethod
    def pump(source, sink):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass  # it was cut
        finally:
            source.close()
            sink.close()

    def cut(self, is_cut):
        self.is_cut = is_cut
        while is_cut and self.open:
            for end in self.open.pop():
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has ended already

    def end(self):
        self.cut(True)
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Trace(unittest.TestCase):
    def setUp(self):
        for example in (examples.C, examples.Perl, examples.Java):
            if example.missing():
                self.skipTest(f"{example.missing()} is not installed")
        examples.FOLDER = tempfile.TemporaryDirectory(prefix="conflux-gateway-")
        self.addCleanup(examples.FOLDER.cleanup)
        self.cluster = Cluster(self)

    def client(self, example, publish=None):
        client = Client(*example.build(), publish or self.cluster.publish, self.cluster.ask)
        self.addCleanup(client.end)
        client.until(lambda: client.state and example.key in client.state)
        return client

    def test_all_have_the_text(self):
        wire = Wire(self.cluster.publish)
        self.addCleanup(wire.end)
        self.cluster.set("/lines", {})
        steady, slow = self.client(examples.C), self.client(examples.Perl)
        broken = self.client(examples.Java, wire.address)
        expected, last = self.replay(slow, wire)
        state = self.cluster.request(get=STORE)
        self.assertEqual(text(state["state"]), expected)
        for name, client in (("steady", steady), ("slow", slow), ("broken", broken)):
            deadline = time.monotonic() + 6 * SECONDS
            while client.last < last:
                self.assertTrue(client.step(deadline - time.monotonic()), f"{name} is not there")
            self.assertEqual(text(client.state), expected, name)
        # It lost its connection, and got what it had missed: by the state, or because it asked.
        self.assertGreaterEqual(wire.count, 2)

    def replay(self, slow, wire):
        """Dispatches the trace. Returns the text, and the number of the last action."""
        dealer = self.cluster.socket(zmq.DEALER)
        dealer.connect(self.cluster.ask)
        transactions, whole = list(trace()), Text()
        open_count, last, share = 0, 0, 0

        def answer():
            nonlocal open_count, last
            self.assertTrue(dealer.poll(SECONDS * 1000), "no answer came")
            receipt = json.loads(dealer.recv_multipart()[1]).get("receipt")
            self.assertIsNotNone(receipt)
            open_count -= 1
            last = max(last, receipt["sequence"])

        for number, patches in enumerate(transactions):
            former, share = share, number * 10 // len(transactions)
            if share != former:
                if share in (2, 6):  # the slow one stands still, and nobody can connect
                    slow.process.send_signal(signal.SIGSTOP)
                    wire.cut(True)
                if share in (4, 8):
                    slow.process.send_signal(signal.SIGCONT)
                    wire.cut(False)
            changes = {}
            for patch in patches:
                changes.update(whole.edit(*patch))
            request = {"store": STORE, "dispatch": {
                "merge": {"at": "/lines", "value": changes}}}
            dealer.send_multipart([b"", json.dumps(request).encode()])
            open_count += 1
            while open_count >= WINDOW or open_count and dealer.poll(0):
                answer()
        while open_count:
            answer()
        return str(whole), last


if __name__ == "__main__":
    unittest.main()
