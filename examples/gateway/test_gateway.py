"""Each example with a real sequencer and a real gateway. Every wait has a deadline."""

import ctypes
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import zmq

HERE = os.path.dirname(os.path.realpath(__file__))
EXECUTABLE = os.path.abspath(os.environ.get(
    "CONFLUX_EXECUTABLE", os.path.join(HERE, "..", "..", ".build", "debug", "conflux")))
STORE = "document/prefs"
SECONDS = 20  # the deadline of each wait
FOLDER = tempfile.TemporaryDirectory(prefix="conflux-gateway-")
unittest.addModuleCleanup(FOLDER.cleanup)


def die_with_parent():
    """Ends the process even if this one is killed. Only Linux can do it."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except AttributeError:
        pass


class Process:
    """A process whose lines can be waited for."""

    def __init__(self, *command):
        self.errors = tempfile.TemporaryFile()
        self.lines = queue.Queue()
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors,
            preexec_fn=die_with_parent)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.decode().rstrip("\n"))
        self.lines.put(None)

    def line(self, seconds=SECONDS):
        """The next line. None if it doesn't come in time."""
        try:
            line = self.lines.get(timeout=max(0, seconds))
        except queue.Empty:
            return None
        if line is None:
            self.errors.seek(0)
            raise AssertionError(
                f"{self.process.args} ended with {self.process.wait(SECONDS)}: "
                + self.errors.read().decode())
        return line

    def end(self, number=signal.SIGKILL):
        """Ends the process. Returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(SECONDS)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.reader.join()
            self.process.stdout.close()
            self.errors.close()


class Tool(Process):
    """A sequencer or a gateway. It prints a line when it is ready."""

    def __init__(self, *arguments):
        super().__init__(EXECUTABLE, *arguments, "--json")
        try:
            self.ready = json.loads(self.line() or "null")
            if not self.ready or self.ready["event"] != "ready":
                raise AssertionError(f"not ready within {SECONDS} s: {self.ready}")
        except BaseException:
            self.end()
            raise


class Client(Process):
    """An example. It applies the lines of the example to a state of its own."""

    def __init__(self, *command):
        super().__init__(*command)
        self.state, self.last, self.seen = None, 0, []

    def step(self, seconds):
        line = self.line(seconds)
        if line is None:
            return False
        sequence, kind, body = line.split(" ", 2)
        self.last = int(sequence)
        self.seen.append((self.last, kind))
        if kind == "state":
            self.state = json.loads(body)
        elif kind == "change":
            if self.state is None:
                raise AssertionError(f"a change before the state: {line}")
            self.state = patched(self.state, json.loads(body))
        return True

    def until(self, condition):
        """Reads lines until the condition is true."""
        end = time.monotonic() + SECONDS
        while not condition():
            if not self.step(end - time.monotonic()):
                raise AssertionError(f"nothing new within {SECONDS} s; seen: {self.seen}")


def patched(state, patch):
    """A state after a JSON Patch, as far as the gateway uses it."""
    state = {"": state}  # so that the whole document has a place, too
    for operation in patch:
        *path, key = [
            part.replace("~1", "/").replace("~0", "~")
            for part in operation["path"].split("/")]
        place = state
        for part in path:
            place = place[int(part) if isinstance(place, list) else part]
        if isinstance(place, list):
            index = len(place) if key == "-" else int(key)
            if operation["op"] == "add":
                place.insert(index, operation["value"])
            elif operation["op"] == "replace":
                place[index] = operation["value"]
            else:
                del place[index]
        elif operation["op"] == "remove":
            del place[key]
        else:
            if operation["op"] == "replace" and key not in place:
                raise AssertionError(f"nothing to replace: {operation}")
            place[key] = operation["value"]
    return state[""]


class Proxy:
    """Sockets between clients and the gateway, in a thread."""

    def __init__(self, run, *sides):
        """`run` gets the sockets: for each side the one to the gateway, then the one to clients."""
        self.context = zmq.Context()
        self.addresses, sockets = [], []
        for gateway_kind, address, client_kind in sides:
            gateway, client = self.context.socket(gateway_kind), self.context.socket(client_kind)
            gateway.linger = client.linger = 0
            gateway.connect(address)
            port = client.bind_to_random_port("tcp://127.0.0.1")
            self.addresses.append(f"tcp://127.0.0.1:{port}")
            sockets.append((client, gateway))
        self.threads = [
            threading.Thread(target=self.work, args=(run, pair), daemon=True) for pair in sockets]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def work(run, pair):
        try:
            run(*pair)
        except zmq.ContextTerminated:
            pass
        finally:
            for socket in pair:
                socket.close()

    def end(self):
        self.context.term()
        for thread in self.threads:
            thread.join(SECONDS)


class Drops:
    """A proxy for subscribers that loses messages on command."""

    def __init__(self):
        self.condition = threading.Condition()
        self.dropping, self.dropped = False, []

    def run(self, client, gateway):
        poller = zmq.Poller()
        poller.register(client, zmq.POLLIN)
        poller.register(gateway, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if client in ready:
                gateway.send_multipart(client.recv_multipart())
            if gateway in ready:
                parts = gateway.recv_multipart()
                with self.condition:
                    if not self.dropping:
                        client.send_multipart(parts)
                    else:
                        self.dropped.append(json.loads(parts[1])["sequence"])
                        self.condition.notify_all()

    def wait(self, sequence):
        """Waits until the message with this number is lost."""
        with self.condition:
            if not self.condition.wait_for(lambda: sequence in self.dropped, SECONDS):
                raise AssertionError(f"message {sequence} did not come; dropped: {self.dropped}")


class Cluster:
    """A sequencer, a gateway, and a socket for requests."""

    def __init__(self, case):
        self.sequencer = Tool("sequencer", "--memory", "--bind", "tcp://127.0.0.1:0")
        case.addCleanup(self.sequencer.end)
        self.gateway = None
        case.addCleanup(lambda: self.gateway and self.gateway.end())
        self.publish = self.ask = "tcp://127.0.0.1:0"
        self.start()
        self.context = zmq.Context()
        case.addCleanup(self.context.destroy, linger=0)
        self.sockets = []  # so that they are not collected before they are closed
        self.req = self.socket(zmq.REQ)
        self.req.req_relaxed = self.req.req_correlate = True
        self.req.connect(self.ask)

    def socket(self, kind):
        self.sockets.append(self.context.socket(kind))
        return self.sockets[-1]

    def start(self):
        self.gateway = Tool(
            "gateway", "--connect", self.sequencer.ready["address"], "--store", STORE,
            "--publish", self.publish, "--ask", self.ask)
        self.publish, self.ask = self.gateway.ready["publish"], self.gateway.ready["ask"]

    def request(self, **request):
        self.req.send_json(request)
        if not self.req.poll(SECONDS * 1000):
            raise AssertionError(f"no answer within {SECONDS} s to {request}")
        return self.req.recv_json()

    def dispatch(self, action):
        """Dispatches an action. Returns its number."""
        answer = self.request(store=STORE, dispatch=action)
        if "receipt" not in answer:
            raise AssertionError(f"{action}: {answer}")
        return answer["receipt"]["sequence"]

    def set(self, at, value):
        return self.dispatch({"set": {"at": at, "value": value}})


class Tests:
    """What each example must do. A subclass has the example's `key` in the document."""

    key = None

    @classmethod
    def missing(cls):
        """What is not installed, or nothing."""
        return None

    @classmethod
    def build(cls):
        """The command that runs the example."""
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        missing = cls.missing()
        if missing:
            print(f"{cls.__name__}: skipped, since {missing} is not installed", file=sys.stderr)
            raise unittest.SkipTest(f"{missing} is not installed")
        cls.command = cls.build()

    def setUp(self):
        self.cluster = Cluster(self)

    def start(self, publish=None, ask=None):
        client = Client(*self.command, publish or self.cluster.publish, ask or self.cluster.ask)
        self.addCleanup(client.end)
        return client

    def begin(self):
        """A client that has dispatched its action and printed it."""
        client = self.start()
        client.until(lambda: client.state and self.key in client.state)
        self.assertIn(self.key, self.cluster.request(get=STORE)["state"])
        return client

    def check(self, client):
        """The client has the newest sequence and the state."""
        newest = self.cluster.request(get=STORE)
        client.until(lambda: client.last >= newest["sequence"])
        self.assertEqual(client.last, newest["sequence"])
        self.assertEqual(client.state, newest["state"])

    def test_it_follows(self):
        client = self.begin()
        self.check(client)
        numbers = [
            self.cluster.set("/theme", "dark \u2192 \"light\""),
            self.cluster.dispatch({"merge": {"at": "", "value": {"list": [1], "a/b": {"c": None}}}}),
            self.cluster.dispatch({"append": {"at": "/list", "value": {"d": 2.5}}}),
            self.cluster.dispatch({"remove": {"at": "/theme"}}),
            self.cluster.set("", {"all": "new"}),
        ]
        refused = self.cluster.request(store=STORE, dispatch={"remove": {"at": "/nothing"}})
        self.assertEqual(refused["error"]["code"], "refused")
        numbers.append(self.cluster.set("/theme", "light"))
        self.check(client)
        self.assertEqual(client.seen[-6:], [(number, "change") for number in numbers])

    def test_it_ends_on_sigterm(self):
        client = self.begin()
        client.end(signal.SIGTERM)

    def test_it_continues_after_the_gateway_was_killed(self):
        client = self.begin()
        self.check(client)
        for number in range(2):
            self.cluster.gateway.end()
            self.cluster.start()
            self.cluster.set("/again", number)  # the client may be back before, or after
            client.until(lambda: client.state.get("again") == number)
            self.cluster.set("/after", number)
            self.check(client)
        self.assertIn("state", [kind for _, kind in client.seen[1:]])

    def test_it_asks_for_what_it_missed(self):
        drops = Drops()
        proxy = Proxy(drops.run, (zmq.XSUB, self.cluster.publish, zmq.XPUB))
        self.addCleanup(proxy.end)
        client = self.start(publish=proxy.addresses[0])
        client.until(lambda: client.state and self.key in client.state)
        for count in (1, 20):
            with drops.condition:
                drops.dropping = True
            lost = [self.cluster.set(f"/lost{number}", {"n": [number]}) for number in range(count)]
            drops.wait(lost[-1])
            with drops.condition:
                drops.dropping = False
                self.assertEqual(drops.dropped[-count:], lost)
            after = self.cluster.set("/after", count)
            self.check(client)
            self.assertEqual(
                client.seen[-count - 1:], [(number, "change") for number in (*lost, after)])

    def test_it_sends_a_request_again(self):
        lost = []

        def run(client, gateway):
            poller = zmq.Poller()
            poller.register(client, zmq.POLLIN)
            poller.register(gateway, zmq.POLLIN)
            while True:
                ready = dict(poller.poll())
                if gateway in ready:
                    client.send_multipart(gateway.recv_multipart())
                if client in ready:
                    parts = client.recv_multipart()
                    if lost:
                        gateway.send_multipart(parts)
                    else:
                        lost.append(json.loads(parts[-1]))

        proxy = Proxy(run, (zmq.DEALER, self.cluster.ask, zmq.ROUTER))
        self.addCleanup(proxy.end)
        client = self.start(ask=proxy.addresses[0])
        client.until(lambda: client.state and self.key in client.state)
        self.assertIn(self.key, lost[0]["dispatch"]["set"]["at"])
        self.check(client)

    def test_it_takes_the_state_if_it_missed_too_much(self):
        drops = Drops()
        proxy = Proxy(drops.run, (zmq.XSUB, self.cluster.publish, zmq.XPUB))
        self.addCleanup(proxy.end)
        client = self.start(publish=proxy.addresses[0])
        client.until(lambda: client.state and self.key in client.state)
        with drops.condition:
            drops.dropping = True
        drops.wait(self.cluster.set("/before", 1))
        self.cluster.gateway.end()
        self.cluster.start()
        # The proxy subscribes again: the state is lost, too, and the new gateway has no older messages.
        drops.wait(self.cluster.request(get=STORE)["sequence"])
        drops.wait(self.cluster.set("/lost", 1))
        with drops.condition:
            drops.dropping = False
        before = len(client.seen)
        after = self.cluster.set("/after", 1)
        self.check(client)
        self.assertEqual(client.seen[before:], [(after, "state")])

    def test_it_works_behind_stock_proxies(self):
        proxy = Proxy(
            zmq.proxy, (zmq.XSUB, self.cluster.publish, zmq.XPUB),
            (zmq.DEALER, self.cluster.ask, zmq.ROUTER))
        self.addCleanup(proxy.end)
        # Somebody subscribes before. Then the proxy doesn't subscribe again, and no state comes.
        sub = self.cluster.socket(zmq.SUB)
        sub.subscribe(STORE + "\0")
        sub.connect(proxy.addresses[0])
        self.assertTrue(sub.poll(SECONDS * 1000))
        client = self.start(*proxy.addresses)
        end, number = time.monotonic() + SECONDS, 0
        while not client.step(0.2):  # until it has subscribed
            number += 1
            self.cluster.set("/number", number)
            self.assertLess(time.monotonic(), end, "no line came")
        self.assertEqual(client.seen[0][1], "state")
        client.until(lambda: self.key in client.state)
        self.cluster.set("/theme", "dark")
        self.check(client)
        self.assertEqual([kind for _, kind in client.seen].count("state"), 1)

    def test_the_subscription_of_somebody_else_does_no_harm(self):
        client = self.begin()
        other = self.cluster.socket(zmq.SUB)
        other.connect(self.cluster.publish)
        other.subscribe(STORE + "\0?")  # no such topic: both get an error
        self.assertTrue(other.poll(SECONDS * 1000))
        other.subscribe(STORE + "\0")
        self.cluster.set("/theme", "dark")
        self.check(client)
        self.cluster.set("/theme", "light")
        self.check(client)


def compiled(source, *libraries):
    """Compiles an example in the temporary folder. Returns the name of the program."""
    program = os.path.join(FOLDER.name, source.replace(".", "-"))
    command = ["cc", "-Wall", "-Wextra", "-Werror", os.path.join(HERE, source), "-o", program,
               *("-l" + library for library in libraries)]
    subprocess.run(command, check=True, timeout=60)
    return program


def has_headers(*headers):
    """Whether there is a compiler that finds them."""
    if not shutil.which("cc"):
        return False
    text = "".join(f"#include <{header}>\n" for header in headers)
    return not subprocess.run(
        ["cc", "-E", "-"], input=text.encode(), capture_output=True, timeout=60).returncode


class Pyzmq(Tests, unittest.TestCase):
    key = "pyzmq"

    @classmethod
    def build(cls):
        return sys.executable, "-B", os.path.join(HERE, "observe.py")


class C(Tests, unittest.TestCase):
    key = "c"

    @classmethod
    def missing(cls):
        return None if has_headers("zmq.h") else "a C compiler with libzmq"

    @classmethod
    def build(cls):
        return [compiled("observe.c", "zmq")]


class Czmq(Tests, unittest.TestCase):
    key = "czmq"

    @classmethod
    def missing(cls):
        return None if has_headers("czmq.h", "cjson/cJSON.h") else "a C compiler with czmq and cJSON"

    @classmethod
    def build(cls):
        return [compiled("observe_czmq.c", "czmq", "zmq", "cjson")]


class Perl(Tests, unittest.TestCase):
    key = "perl"

    @classmethod
    def missing(cls):
        perl = shutil.which("perl")
        if perl and not subprocess.run(
                [perl, "-MZMQ::FFI", "-MJSON::PP", "-e", "1"], capture_output=True,
                timeout=60).returncode:
            return None
        return "Perl with ZMQ::FFI"

    @classmethod
    def build(cls):
        return "perl", os.path.join(HERE, "observe.pl")


class Java(Tests, unittest.TestCase):
    key = "java"
    jars = [
        os.path.join(os.environ.get("JARS", "/usr/share/java"), name)
        for name in ("jeromq.jar", "gson.jar")]

    @classmethod
    def missing(cls):
        if shutil.which("javac") and all(map(os.path.exists, cls.jars)):
            return None
        return "a JDK with JeroMQ and Gson"

    @classmethod
    def build(cls):
        return "java", "-cp", ":".join(cls.jars), os.path.join(HERE, "Observe.java")


class Length(unittest.TestCase):
    def test_no_example_has_more_than_30_lines(self):
        for name in os.listdir(HERE):
            if name.lower().startswith("observe") and "." in name:
                with open(os.path.join(HERE, name), encoding="utf-8") as file:
                    self.assertLessEqual(len(file.readlines()), 30, name)


if __name__ == "__main__":
    unittest.main()
