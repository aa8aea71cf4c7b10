"""A node of Conflux: a session with a sequencer, replicas that follow the log, and dispatching.

Everything happens in the thread of the caller: `step` waits for a message or a timer and handles it,
and the functions that wait (`open`, `wait`) call it. Call one of them at least every few seconds, since
a node that is silent for long has left.

    client = Client("tcp://127.0.0.1:7400", name="python")
    counter = client.open("counter/shared", Counter())
    added = client.dispatch("counter/shared", {"add": {"amount": 5}})
    client.wait(lambda: added.outcome is not None)
    client.close()

Facts about a connection hold until the next one. A session outlives connections and terms of the
sequencer, and every batch without an outcome is submitted again after each welcome.
"""

import os
import re
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

from . import wire
from .coding import Invalid, canonical, read_json
from .following import BrokenOrder, Follower, entries_of
from .outbox import Outbox
from .replica import Replica
from .snapshots import Load, first_difference, part_of

SECOND = 1_000_000_000
NOBODY = "00" * 16
#: A connection is writable, but nothing has arrived by it yet.
CONNECTED = zmq.EVENT_HANDSHAKE_SUCCEEDED
RETRY_SECONDS, RETRY_SECONDS_MAX = 1.0, 8.0
REDIRECT_SECONDS = 0.25
#: How long an address may bring no welcome before the next one is tried.
SEEK_SECONDS = 2.0
FETCH_BYTES = 1 << 20
PART_BYTES = 256 << 10
#: The largest snapshot that is loaded, and the most octets that are kept aside for a store.
SNAPSHOT_BYTES_MAX = 256 << 20
QUESTIONS_MAX = 256


class Ended(Exception):
    """The sequencer ended the session, and to say hello again would not help. `code` says why."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class TooOld(Exception):
    """The log has something that this client does not know, and must not ignore."""


class Rejected(Exception):
    """The sequencer did not open a store."""


class Stopped(Exception):
    """A replica stopped while it caught up: an entry is newer than this program."""


class Client:
    def __init__(self, address, name=None, hears=None):
        """Makes a client. It sends nothing before the first step.

        Args:
            address: Where the sequencer listens. Several addresses are separated by commas.
            name: The node's name, which no other live node may have.
            hears: Called with each message of the feed, as octets. A message for which it returns false is
            lost. It is for tests of a lossy feed.
        """
        self.given = address.split(",")
        self.address, self.name, self.hears = self.given[0], name, hears
        self.context = zmq.Context()
        self.dealer = self.dealer_monitor = self.feed = self.feed_monitor = None
        self.redirected_at = 0.0
        self.nonce = os.urandom(16).hex()
        self.log = self.incarnation = self.history = self.welcome = None
        self.epoch = 0
        self.awaits_welcome = True
        #: The last hello, and when it was sent. Only its answer counts.
        self.hello, self.hello_at = {"request": 0}, 0.0
        self.follower = Follower()
        self.outbox = Outbox()
        self.replicas = {}
        #: The snapshots that are being loaded, by request.
        self.loads = {}
        self.request = 0
        self.questions = []
        # The feed: its address, whether a message proved the connection, whether it was connected before.
        self.feed_address = None
        self.is_proven = self.was_connected = False
        self.heard_at = 0.0
        self.fetched_at, self.fetch_pause = 0.0, RETRY_SECONDS
        #: The delivery tag of the last answer that was read.
        self.acknowledged = 0
        self.opened_at = self.full_since = 0.0
        self.told, self.told_at = None, 0.0
        #: Counts of events, by name: `hellos`, `welcomes`, `fetches`, `submits`, `unreadable` …
        self.counts = dict.fromkeys(
            ("hellos", "welcomes", "fetches", "submits", "unreadable", "lost", "opens", "loads",
             "votes", "parts", "reloads"), 0)
        self.connect()

    # The functions for programs.

    def open(self, store, state, observer=None, timeout=10):
        """Hosts an existing store, or a new one with this state. It is current when this returns.

        Args:
            observer: Called with the replica and the entry, after each entry that concerned the store.

        Raises:
            Rejected: The sequencer does not have the store, or its content is not of this state.
            Stopped: The log has entries for it that are newer than this program.
        """
        replica = self.replicas[store] = Replica(store, state, observer)
        self.opened_at = 0.0
        self.wait(lambda: replica.is_open or replica.failure, timeout)
        if replica.failure:
            del self.replicas[store]
            raise Rejected(replica.failure)
        self.wait(lambda: self.is_proven and self.follower.wanted is None, timeout)
        if replica.stopped is not None:
            self.end(store)
            raise Stopped(replica.stopped[1])
        return replica

    def end(self, store):
        """Ends hosting a store."""
        if self.replicas.pop(store, None) is not None and not self.awaits_welcome:
            self.say("close", {"subject": {"store": store}})

    def dispatch(self, target, action, **options):
        """Dispatches an action, which is submitted by the next step.

        Args:
            target: A store such as `counter/shared`, or every store of a state such as `counter/*`.
            action: A value to be encoded as JSON, or the octets of an action.
            Returns: An object that gets the outcome.
        """
        return self.outbox.dispatch(target, self.payload(action), **options)

    def dispatch_atomically(self, target, actions, **options):
        """Dispatches actions that take effect together or not at all. Returns a list of their outcomes."""
        payloads = [self.payload(action) for action in actions]
        return self.outbox.dispatch(target, payloads, is_atomic=True, **options)

    def payload(self, action):
        octets = action if isinstance(action, bytes) else canonical(action)
        most = self.welcome["limits"]["payloadBytesMax"] if self.welcome else 1 << 20
        if len(octets) > most:
            raise ValueError(f"an action has {len(octets)} octets of at most {most}")
        return octets

    def wait(self, condition, timeout=10):
        """Steps until a condition holds.

        Raises:
            TimeoutError: It was not true within this many seconds.
            Ended: The sequencer ended the session.
        """
        end = time.monotonic() + timeout
        while not condition():
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"nothing came of it within {timeout} s")
            self.step(left)

    def close(self):
        """Says bye, and ends. Actions without an outcome get none, and a settled session is forgotten."""
        if not self.awaits_welcome:
            self.tell_progress()
            self.say("bye", {"request": 0, "code": "leaving", "message": "done"})
        self.disconnect(linger=1_000)
        self.context.term()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Sockets.

    def connect(self):
        self.dealer, self.dealer_monitor = self.socket(zmq.DEALER)
        # Nothing is queued while there is no connection: everything that matters is sent again.
        self.dealer.setsockopt(zmq.IMMEDIATE, 1)
        # The window limits what is in transit.
        self.dealer.setsockopt(zmq.SNDHWM, 0)
        self.dealer.connect(self.address)
        self.heard_at = self.sought_at = time.monotonic()

    def seek(self):
        """Continues with the next given address, also after a redirect that led nowhere."""
        if self.given == [self.address]:
            return
        self.given = self.given[1:] + self.given[:1]
        self.disconnect()
        self.address = self.given[0]
        self.connect()

    def connect_feed(self):
        """Connects to the feed that the welcome names, unless it is connected already."""
        # The last address is the sequencer's own; those before it are of relays. A path may have spaces.
        own = re.split(r" (?=tcp://|ipc://)", self.welcome["feed"])[-1]
        scheme, _, rest = own.partition("://")
        host, _, port = rest.rpartition(":")
        if host == "*":
            host = self.address.partition("://")[2].rpartition(":")[0]
        address = f"{scheme}://{host}:{port}"
        if self.feed is not None and self.feed_address == address:
            return
        self.disconnect_feed()
        self.feed, self.feed_monitor = self.socket(zmq.SUB)
        self.feed.setsockopt(zmq.SUBSCRIBE, b"")
        self.feed.connect(address)
        self.feed_address, self.was_connected = address, False
        self.heard_at = time.monotonic()

    def socket(self, kind):
        socket = self.context.socket(kind)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.MAXMSGSIZE, wire.FRAME_BYTES_MAX)
        socket.setsockopt(zmq.RECONNECT_IVL, 50)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1_000)
        return socket, socket.get_monitor_socket(CONNECTED | zmq.EVENT_DISCONNECTED)

    def disconnect_feed(self):
        if self.feed is not None:
            self.feed.disable_monitor()
            self.feed_monitor.close(0)
            self.feed.close(0)
        self.feed = self.feed_monitor = self.feed_address = None

    def disconnect(self, linger=0):
        self.disconnect_feed()
        self.dealer.disable_monitor()
        self.dealer_monitor.close(0)
        self.dealer.close(linger)

    def say(self, kind, value):
        """Sends a message. Without a connection it is dropped, and is sent again after a welcome."""
        try:
            octets = wire.encode(kind, self.epoch, value, self.incarnation or 0)
            self.dealer.send(octets, zmq.DONTWAIT)
            return True
        except zmq.Again:
            return False

    # One step.

    def step(self, timeout):
        """Waits for a message or a timer, for at most this many seconds, and handles everything that is due."""
        self.keep_up(time.monotonic())
        poller = zmq.Poller()
        for socket in (self.dealer, self.dealer_monitor, self.feed, self.feed_monitor):
            if socket is not None:
                poller.register(socket, zmq.POLLIN)
        # Timers have a resolution of some tens of milliseconds.
        poller.poll(max(0, min(timeout, 0.02)) * 1_000)
        self.hear_dealer()
        self.hear_feed()
        self.keep_up(time.monotonic())

    def hear_dealer(self):
        for event in self.events(self.dealer_monitor):
            # Hello is the first message on every connection.
            if event == CONNECTED:
                self.say_hello()
            else:
                self.awaits_welcome = True
        while (octets := self.receive(self.dealer)) is not None:
            self.read(octets, "sequencer")

    def hear_feed(self):
        while self.feed is not None and (octets := self.receive(self.feed)) is not None:
            # A new connection is reported before the first message that arrives by it. Messages that are read now
            # may be from it, and count only after a new welcome.
            self.watch_feed()
            if self.hears is not None and not self.hears(octets):
                self.counts["lost"] += 1
                continue
            self.read(octets, "feed")
        self.watch_feed()

    def watch_feed(self):
        for event in self.events(self.feed_monitor):
            if event == CONNECTED and self.was_connected:
                self.is_proven = False
                self.say_hello()
            self.was_connected = True

    @staticmethod
    def receive(socket):
        try:
            return socket.recv(zmq.DONTWAIT)
        except zmq.Again:
            return None

    @staticmethod
    def events(monitor):
        while monitor is not None and monitor.poll(0):
            yield recv_monitor_message(monitor)["event"]

    def read(self, octets, speaker):
        try:
            frame = wire.decode(octets, speaker)
        except wire.Unsupported as error:
            if speaker == "feed" and octets[5] == wire.NUMBERS["commit"]:
                raise TooOld(str(error)) from None
            self.counts["unreadable"] += 1
            return
        except wire.Malformed:
            self.counts["unreadable"] += 1
            return
        except wire.OtherVersion as error:
            raise Ended("version", str(error)) from None
        getattr(self, f"hear_{frame.kind}")(frame)

    def is_current(self, frame):
        """Whether a message is of the welcome's term. A later term is a reason to say hello."""
        if frame.epoch > self.epoch and not self.awaits_welcome:
            self.say_hello()
        return frame.epoch == self.epoch and not self.awaits_welcome

    # The session.

    def say_hello(self, is_same=False):
        """Says hello: a new one, or the same one again if its content is still correct.

        The same hello has the same number, since its answer may be in transit.
        """
        self.awaits_welcome, self.is_proven = True, False
        hosted = [
            {"store": replica.store, "life": replica.life, "schemaVersion": replica.state.version}
            for replica in self.replicas.values() if replica.is_open
        ]
        session = self.incarnation and {"log": self.log, "incarnation": self.incarnation}
        hello = {
            "request": self.hello["request"], "nonce": self.nonce, "name": self.name,
            "role": "member", "process": None, "session": session, "history": self.history,
            "hosted": hosted, "bridged": [],
        }
        if not is_same or hello != self.hello:
            self.cancel_loads()
            hello["request"] += 1
        self.hello = hello
        said = self.say("hello", hello)
        self.counts["hellos"] += said
        # A connection that was just made may not accept it yet.
        self.hello_at = time.monotonic() - (0 if said else RETRY_SECONDS - 0.02)

    def is_answer(self, request):
        """Whether this is the first answer to the last hello."""
        return self.awaits_welcome and request == self.hello["request"]

    def hear_welcome(self, frame):
        welcome = frame.value
        if not self.is_answer(welcome["request"]):
            return
        # Nothing else was received since that hello, so the agreement covers everything that is here.
        is_lost = self.history is not None and (
            welcome["log"] != self.history["log"]
            or welcome["agreed"] < self.history["sequence"])
        self.welcome, self.awaits_welcome = welcome, False
        self.log, self.epoch, self.incarnation = (
            welcome["log"], frame.epoch, welcome["incarnation"])
        self.counts["welcomes"] += 1
        if is_lost:
            self.load_anew()
        self.opened_at = self.fetched_at = 0.0
        # This comes before anything is submitted, so that reported rejections are not judged again.
        self.tell_progress()
        self.outbox.again()
        if self.replicas:
            self.connect_feed()
        self.follower.learn(welcome["last"])

    def load_anew(self):
        """The history is not that of this log: replicas start from what the log has now."""
        self.history = None
        self.follower.forget()
        for replica in self.replicas.values():
            self.reopen(replica)

    def hear_farewell(self, frame):
        code, message = frame.value["code"], frame.value["message"]
        if code == "rejoin":
            # Several may be in transit, one for each message that was sent meanwhile.
            if not self.awaits_welcome:
                self.say_hello()
        elif frame.value["request"] and not self.is_answer(frame.value["request"]):
            pass
        elif code == "forgotten":
            # The process starts from the beginning, like a new one.
            self.incarnation, self.nonce = None, os.urandom(16).hex()
            self.outbox.lose()
            self.say_hello()
        elif code in ("leaving", "superseded", "tableFull"):
            # Hellos are sent until one is answered.
            self.awaits_welcome, self.hello_at = True, time.monotonic()
        elif code == "notServing":
            # The next hello, which is due anyway, asks again.
            if not self.awaits_welcome:
                self.awaits_welcome, self.hello_at = True, time.monotonic() + 1
        else:
            raise Ended(code, message)

    def hear_redirect(self, frame):
        # A hint: what counts is who answers there. Sequencers that redirect to each other are not followed fast.
        now = time.monotonic()
        if not self.is_answer(frame.value["request"]) or now < self.redirected_at + REDIRECT_SECONDS:
            return
        self.redirected_at = now
        self.disconnect()
        self.address = frame.value["address"]
        self.connect()

    def tell_progress(self):
        told = self.progress()
        if self.say("progress", told):
            self.told, self.told_at = told, time.monotonic()

    def progress(self):
        return {
            "applied": self.follower.position, "settled": self.outbox.settled,
            "stopped": [
                replica.place(replica.stopped[0]) for replica in self.replicas.values()
                if replica.is_open and replica.stopped is not None]}

    def note(self, sequence, epoch=None):
        """The node knows this number from an entry, a receipt or a snapshot, so its history has it."""
        if self.history is None or sequence > self.history["sequence"]:
            is_later = epoch is not None and epoch > self.epoch
            self.history = {
                "log": self.log, "sequence": sequence,
                "epoch": epoch if is_later else self.epoch,
                "claim": NOBODY if is_later else self.welcome["claim"],
            }

    # Timers.

    def keep_up(self, now):
        """Sends everything that is due."""
        if self.awaits_welcome:
            if now - self.sought_at >= SEEK_SECONDS:
                self.seek()
            if now - self.hello_at >= RETRY_SECONDS:
                self.say_hello(is_same=True)
            return
        self.sought_at = now
        limits = self.welcome["limits"]
        beat, silence = limits["beatInterval"] / SECOND, limits["silenceMax"] / SECOND
        if self.feed is not None and now - self.heard_at > max(1.0, 10 * beat):
            # The sequencer is silent, so the node looks for it again.
            self.disconnect()
            self.connect()
            self.awaits_welcome, self.hello_at = True, now
            return
        if now - self.opened_at >= RETRY_SECONDS:
            self.opened_at = now
            self.ask_open()
        self.fetch(now)
        self.ask_parts(now)
        self.submit(now, beat)
        is_told = self.told == self.progress()
        if now - self.told_at >= (silence / 4 if is_told else beat):
            self.tell_progress()
        self.answer_questions(now)

    def submit(self, now, beat):
        # A node without a feed gets no beats, and uses their interval.
        if self.outbox.full_at is None:
            self.full_since = now
        elif now - self.full_since >= beat:
            self.outbox.beat()
        for batch in self.outbox.due(self.welcome["limits"]["windowBytes"]):
            self.say("submit", batch)
            self.counts["submits"] += 1

    # Outcomes.

    def hear_receipts(self, frame):
        if self.is_current(frame):
            for run in frame.value["runs"]:
                self.outbox.receipt(run)
                self.note(run["firstSequence"] + run["count"] - 1, run["epoch"])

    def hear_rejection(self, frame):
        if self.is_current(frame):
            self.outbox.reject(frame.value)

    def hear_expected(self, frame):
        if self.is_current(frame):
            self.outbox.expect(frame.value["counter"], frame.value["reason"])

    # Stores.

    def ask_open(self):
        for replica in self.replicas.values():
            if (
                replica.is_open or replica.is_loading or replica.is_over
                or replica.failure is not None
            ):
                continue
            self.request += 1
            replica.request = self.request
            self.counts["opens"] += 1
            self.say("open", {
                "request": self.request, "subject": {"store": replica.store},
                "schemaVersion": replica.state.version, "events": [],
                "initial": {"coding": "json", "bytes": replica.initial},
            })

    def hear_opened(self, frame):
        if not self.is_current(frame):
            return
        for replica in list(self.replicas.values()):
            if (
                replica.request != frame.value["request"] or replica.is_open or replica.is_loading
            ):
                continue
            outcome = frame.value["outcome"]
            if "failed" in outcome:
                failed = outcome["failed"]
                self.fail(replica, f"{failed['0']}: {failed['message']}")
            else:
                # The events about the store are known up to there.
                self.note(outcome["opened"]["last"])
                self.begin(replica, outcome["opened"])

    def fail(self, replica, failure):
        """The store can't be opened, so the sequencer need not count on it."""
        replica.failure, replica.is_loading = failure, False
        self.say("close", {"subject": {"store": replica.store}})

    def begin(self, replica, opened):
        """Takes what a store starts from: its snapshot, and then the entries that were kept aside."""
        offer = opened["snapshot"]
        if offer is None:
            self.fail(replica, f"{replica.store} was offered no state")
            return
        for reference in (offer.get("saved"), opened["aside"]):
            if reference is not None and reference["byteCount"] > SNAPSHOT_BYTES_MAX:
                self.fail(replica, f"{replica.store}: {reference['byteCount']} octets are to be "
                                   f"loaded, and this program takes {SNAPSHOT_BYTES_MAX}")
                return
        replica.is_loading = True
        if "whole" in offer:
            self.follow_up(replica, opened, offer["whole"])
            return
        saved = offer["saved"]

        def loaded(octets):
            if octets is None:
                # There is a newer snapshot by now, which is requested.
                replica.is_loading = False
            else:
                self.follow_up(replica, opened, {
                    "sequence": saved["sequence"], "schemaVersion": saved["schemaVersion"],
                    "state": {"coding": "json", "bytes": octets}})

        self.load(replica, opened["life"], saved, loaded)

    def follow_up(self, replica, opened, snapshot):
        if opened["aside"] is None:
            self.restore(replica, opened, snapshot, b"")
            return

        def loaded(octets):
            if octets is None:
                replica.is_loading = False
            else:
                self.restore(replica, opened, snapshot, octets)

        self.load(replica, opened["life"], opened["aside"], loaded)

    def restore(self, replica, opened, snapshot, aside):
        replica.is_loading = False
        try:
            replica.begin(opened["life"], snapshot, opened["skipped"])
            commits = list(wire.decode_aside(aside))
        except wire.Unsupported as error:
            raise TooOld(str(error)) from None
        except (Invalid, wire.Malformed) as error:
            self.fail(replica, f"{replica.store}: {error}")
            return
        entries = [entry for commit in commits for entry in entries_of(commit)]
        # An entry without effect may be kept aside together with the event that says so.
        replica.skip([entry.event for entry in entries if hasattr(entry, "event")])
        for entry in entries:
            replica.take(entry)
        # The discarded entries after these did not concern the store.
        begins = max(opened["floor"] - 1, (opened["aside"] or snapshot)["sequence"])
        if replica.stopped is None:
            replica.position = begins
        is_first = not any(other.is_open for other in self.replicas.values())
        replica.is_open = True
        # All follow one position: that of the store that is furthest behind. The others skip what they have.
        if is_first or begins < self.follower.position:
            self.follower.begin(begins)
        self.follower.learn(self.welcome["last"])
        self.connect_feed()

    def reopen(self, replica):
        """A replica starts again, from what is available by then."""
        if replica.is_open:
            self.counts["reloads"] += 1
        replica.is_open, replica.request, replica.stopped = False, None, None
        # A comparison in progress is of its former state.
        self.loads = {
            request: load for request, load in self.loads.items()
            if load.place["store"] != replica.store}
        replica.is_loading = False
        self.opened_at = 0.0

    # Snapshots: see section 7, Stores and Digests.

    def load(self, replica, life, reference, done):
        """Loads a snapshot, part by part. `done` gets its octets, or None.

        Each store has one load at a time: either to start from it, or to compare it after a report.
        """
        self.loads = {
            request: other for request, other in self.loads.items()
            if other.place["store"] != replica.store}
        self.request += 1
        self.counts["loads"] += 1
        self.loads[self.request] = Load(replica.store, life, reference, done)
        self.ask_parts(time.monotonic())

    def ask_parts(self, now):
        """Requests the next parts, and repeats unanswered requests, less and less often."""
        for request, load in self.loads.items():
            if now - load.asked_at < load.pause:
                continue
            load.asked_at = now
            load.pause = min(load.pause * 2 or RETRY_SECONDS, RETRY_SECONDS_MAX)
            self.say("load", {
                "request": request, "place": load.place, "offset": len(load.octets),
                "limitBytes": PART_BYTES, "acknowledged": self.acknowledged})

    def hear_snapshotServed(self, frame):
        self.acknowledged = frame.value["deliveryTag"]
        load = self.loads.get(frame.value["request"])
        if load is None or not self.is_current(frame):
            return
        # The function that gets it may request another one.
        del self.loads[frame.value["request"]]
        if load.take(frame.value["chunk"]):
            self.loads[frame.value["request"]] = load
            self.ask_parts(time.monotonic())

    def cancel_loads(self):
        loads, self.loads = self.loads, {}
        for load in loads.values():
            load.done(None)

    def replica_of(self, store, life):
        replica = self.replicas.get(store)
        return replica if replica and replica.is_open and replica.life == life else None

    def encoding_at(self, place):
        replica = self.replica_of(place["store"], place["life"])
        return replica and replica.points.get(place["sequence"])

    def hear_snapshotRequest(self, frame):
        if self.is_current(frame):
            self.counts["parts"] += 1
            self.say("snapshot", part_of(self.encoding_at(frame.value["place"]), frame.value))

    def hear_divergence(self, frame):
        """Replicas of a store differ: this one is compared with the sequencer's snapshot."""
        divergence = frame.value
        replica = self.replica_of(divergence["store"], divergence["life"])
        if replica is None or not self.is_current(frame):
            return
        place = replica.place(divergence["reference"]["sequence"])

        def loaded(octets):
            own, path = self.encoding_at(place), None
            if octets is not None and own is not None:
                path = first_difference(read_json(own), read_json(octets))
            replica.divergence = {
                "lastEqual": divergence["lastEqual"], "firstUnequal": place["sequence"],
                "isMajority": divergence["isMajority"], "path": path}
            if path is not None:
                self.say("digest", {"located": {"place": place, "path": path}})
            if divergence["mustReload"] and self.replica_of(place["store"], place["life"]):
                self.reopen(replica)

        if divergence["reference"]["byteCount"] > SNAPSHOT_BYTES_MAX:
            loaded(None)
        else:
            self.load(replica, replica.life, divergence["reference"], loaded)

    def hear_migrate(self, frame):
        """Migrates a snapshot of a store that is hosted or opened here, and says what comes of it. Nothing changes."""
        asked = frame.value
        replica = next((r for r in self.replicas.values() if r.store == asked["store"]), None)
        if not self.is_current(frame) or replica is None:
            return
        offer = asked["snapshot"]
        known = offer.get("whole") or offer["saved"]

        def answer(octets, coding="json"):
            outcome = replica.migrated(octets, coding, known["schemaVersion"], asked["schemaVersion"])
            self.say("migrated", {
                "place": {
                    "store": asked["store"], "life": asked["life"], "sequence": known["sequence"]},
                "schemaVersion": asked["schemaVersion"], "outcome": outcome})

        if "whole" in offer:
            answer(known["state"]["bytes"], known["state"]["coding"])
        else:
            self.load(replica, asked["life"], known, answer)

    def hear_reload(self, frame):
        """A replica that stopped starts again, after the entry that it could not apply."""
        place = frame.value["place"]
        replica = self.replica_of(place["store"], place["life"])
        if (
            self.is_current(frame) and replica is not None and replica.stopped is not None
            and replica.stopped[0] <= place["sequence"]
        ):
            self.reopen(replica)

    # The log.

    def hear_beat(self, frame):
        if self.hear_of_feed(frame):
            self.follower.learn(frame.value["last"])
            self.outbox.beat()

    def hear_commit(self, frame):
        if self.hear_of_feed(frame):
            self.take([frame.value])

    def hear_of_feed(self, frame):
        """Whether a message of the feed counts: it must be of the welcome's log and term."""
        if frame.value["log"] != self.log or not self.is_current(frame):
            return False
        self.is_proven, self.heard_at = True, time.monotonic()
        return True

    def fetch(self, now):
        wanted = self.follower.wanted
        is_following = self.is_proven and any(r.is_open for r in self.replicas.values())
        if wanted is None or not is_following:
            self.fetch_pause, self.fetched_at = RETRY_SECONDS, 0.0
        elif now - self.fetched_at >= self.fetch_pause:
            if self.fetched_at:
                self.fetch_pause = min(self.fetch_pause * 2, RETRY_SECONDS_MAX)
            self.fetched_at = now
            self.request += 1
            self.counts["fetches"] += 1
            self.say("fetch", {
                "request": self.request, "from": wanted, "limitBytes": FETCH_BYTES,
                "acknowledged": self.acknowledged})

    def hear_entries(self, frame):
        if not self.is_current(frame):
            return
        self.acknowledged = frame.value["deliveryTag"]
        position = self.follower.position
        self.follower.learn(frame.value["last"])
        floor, damage = frame.value["floor"], frame.value["damage"]
        if damage:
            floor = max(floor, damage["last"] + 1)
        if floor > position + 1:
            # The log no longer has the next entry, or can't read it. Only newer snapshots help.
            for replica in self.replicas.values():
                self.reopen(replica)
            return
        try:
            commits = [wire.decode_commit(octets) for octets in frame.value["commits"]]
        except wire.Unsupported as error:
            raise TooOld(str(error)) from None
        except wire.Malformed:
            self.counts["unreadable"] += 1
            return
        self.take(commits)
        if self.follower.position > position:
            self.fetched_at, self.fetch_pause = 0.0, RETRY_SECONDS

    def take(self, commits):
        if not any(replica.is_open for replica in self.replicas.values()):
            return
        for commit in commits:
            if commit["log"] != self.log:
                continue
            if commit["epoch"] > self.epoch:
                # Nothing of an epoch is applied before its welcome.
                self.say_hello()
                return
            try:
                entries = self.follower.take(commit)
            except BrokenOrder:
                self.load_anew()
                self.say_hello()
                return
            for entry in entries:
                self.apply(entry)
            if entries:
                self.note(self.follower.position)

    def apply(self, entry):
        for replica in self.replicas.values():
            outcome = replica.take(entry) if replica.is_open else None
            if outcome == "over":
                replica.is_open = False
            elif outcome == "reload":
                self.reopen(replica)
            elif outcome is not None:
                self.counts["votes"] += self.say("digest", outcome)

    # Questions of others to this node.

    def hear_questionAsked(self, frame):
        if self.is_current(frame) and len(self.questions) < QUESTIONS_MAX:
            end = time.monotonic() + frame.value["patience"] / SECOND
            self.questions.append((end, frame.value))
            self.answer_questions(time.monotonic())

    def answer_questions(self, now):
        waiting = []
        for end, question in self.questions:
            answer = self.answer(question["body"])
            if answer is None and now < end:
                waiting.append((end, question))
            elif answer is not None:
                self.say("answer", {
                    "number": question["number"], "isLast": True, "node": self.name,
                    "deliveryTag": 0, "body": answer, "earlier": None})
        self.questions = waiting

    def answer(self, body):
        """The answer to a question; None if the question has to wait."""
        if body == "alive":
            return "alive"
        if body == "status":
            return {"failed": {"0": "notHosted", "message": "a node has no status"}}
        if "observe" in body:
            return self.answer_observe(body["observe"])
        return self.answer_applied(body["applied"]["0"], body["applied"]["1"])

    def answer_observe(self, observe):
        replica = self.replicas.get(observe["0"])
        if replica is None or not replica.is_open:
            return {"failed": {"0": "notHosted", "message": f"{observe['0']} is not hosted"}}
        if replica.last <= observe["after"]:
            return None
        return {"state": {"0": replica.store, "1": replica.last, "2": replica.state.encode()}}

    def answer_applied(self, sequence, target):
        hosts = [
            replica for replica in self.replicas.values()
            if replica.is_open and replica.is_meant(target)]
        if not hosts:
            return {"failed": {"0": "notHosted", "message": f"{target} is not hosted"}}
        for replica in hosts:
            if replica.stopped is not None and replica.stopped[0] <= sequence:
                return {"stopped": {"at": replica.stopped[0], "message": replica.stopped[1]}}
        if any(replica.position < sequence for replica in hosts):
            return None
        for replica in hosts:
            if sequence in replica.refusals:
                return {"refused": {"message": replica.refusals[sequence]}}
        if all(sequence <= replica.refusals_from for replica in hosts):
            return {"failed": {"0": "effectUnknown", "message": "it was too long ago"}}
        return "applied"

    # Answers to questions that this client does not ask.

    def hear_confirmed(self, frame):
        pass

    def hear_answerGiven(self, frame):
        pass
