"""A store that is hosted here: its state, its position, and its votes at digest points.

    opened ──▶ snapshot ──▶ entries kept aside ──▶ entries … ──▶ stopped
       ▲                                                 │
       └──────── starts again with what is available ◀───┘

    A replica takes entries in order, each once. It does not use sockets.
"""

import copy
from collections import OrderedDict

from .coding import Invalid
from .counter import Refused
from .following import Action
from .snapshots import Digest

#: How many refusals a replica remembers, to answer questions about them.
REFUSALS_MAX = 4_096
#: For how many digest points it keeps the encodings: a snapshot of one may be requested while the
#: next one arrives.
POINTS_MAX = 2


class Replica:
    """A store that is hosted here.

    `position` is the number up to which entries are in the state, and `last` is the number of the last
    entry that concerned the store. `began` is the number of its snapshot.
    """

    def __init__(self, store, state, observer):
        self.store, self.state, self.observer = store, state, observer
        self.initial = state.encode()
        self.life = self.position = self.last = self.began = 0
        self.is_open = self.is_over = self.is_frozen = self.is_loading = False
        #: Why it can't be opened.
        self.failure = None
        self.request = None
        #: The entry at which it stopped, and why. It applies no further ones.
        self.stopped = None
        self.skips = set()
        self.refusals = OrderedDict()
        self.refusals_from = 0
        #: The numbers of the entries without effect since the last digest point.
        self.refused = Digest()
        #: The encodings at the last digest points.
        self.points = OrderedDict()
        #: The last report about replicas that differ: `lastEqual`, `firstUnequal`, `path` …
        self.divergence = None

    def begin(self, life, snapshot, skipped):
        """Takes a snapshot: `sequence`, `schemaVersion` and `state`.

        Raises:
            Invalid: It is not a snapshot of this state.
        """
        version, encoded = snapshot["schemaVersion"], snapshot["state"]
        if version == self.state.version:
            self.state.load(encoded["bytes"], encoded["coding"])
        elif version < self.state.version and hasattr(self.state, "migrate"):
            self.state.migrate(encoded["bytes"], encoded["coding"], version)
        else:
            raise Invalid(
                f"the state has version {version}, of which this program makes no version "
                f"{self.state.version}")
        self.life = life
        self.began = self.position = self.last = self.refusals_from = snapshot["sequence"]
        self.skips, self.stopped, self.is_frozen = set(skipped), None, False
        self.refusals.clear()
        self.points.clear()
        self.refused = Digest()

    def migrated(self, octets, coding, version, target):
        """What a snapshot becomes in another version: its digest, or why it can't be migrated."""
        if octets is None:
            return {"failed": "the snapshot is damaged, or gone"}
        if target != self.state.version:
            return {"failed": f"this program has version {self.state.version}"}
        state = copy.deepcopy(self.state)
        try:
            state.migrate(octets, coding, version)
            return {"migrated": Digest(state.encode()).digits()}
        except (Invalid, AttributeError) as error:
            return {"failed": f"it can't be migrated: {error}"}

    def is_meant(self, target):
        state, _, _ = self.store.partition("/")
        _, _, states = target.removeprefix("event:").partition(":")
        return target in (self.store, state + "/*") or state in states.split(",")

    def take(self, entry):
        """Takes the next entry.

        Returns: What else follows from it: `over`, `reload`, a vote, or None.
        """
        if entry.sequence <= self.position:
            return None
        if isinstance(entry, Action):
            outcome = self.apply(entry)
        else:
            (name, fields), = entry.event.items()
            outcome = self.note(entry.sequence, name, fields)
        if self.stopped is None:
            self.position = entry.sequence
        return outcome

    def apply(self, entry):
        is_concerned = self.is_meant(entry.target) and entry.life in (0, self.life)
        if not is_concerned or self.is_frozen or self.stopped is not None:
            return
        if entry.sequence in self.skips:
            self.refuse(entry.sequence, "it is skipped")
        elif entry.target.startswith("event:"):
            self.stopped = (
                entry.sequence,
                f"{self.store} stopped at {entry.sequence}: it is an event, and this program "
                "handles none; run one that does")
            return
        elif entry.version > self.state.version:
            # A replica never skips an entry that is newer than its program knows.
            self.stopped = (
                entry.sequence,
                f"{self.store} stopped at {entry.sequence}: the entry has schema version "
                f"{entry.version} and this program knows {self.state.version}; "
                "run a newer program")
            return
        else:
            try:
                self.state.apply(entry.payload, entry.coding)
            except Refused as refusal:
                self.refuse(entry.sequence, str(refusal))
        self.last = entry.sequence
        if self.observer:
            self.observer(self, entry)

    def refuse(self, sequence, reason):
        self.refused.update(sequence.to_bytes(8, "little"))
        self.refusals[sequence] = reason
        if len(self.refusals) > REFUSALS_MAX:
            self.refusals_from, _ = self.refusals.popitem(last=False)

    def note(self, sequence, name, fields):
        """Takes an event of the log."""
        if name == "skipped":
            skipped, target = fields["0"], fields["1"]
            if not self.is_meant(target) or skipped <= self.life or skipped in self.skips:
                return None
            self.skips.add(skipped)
            stopped_at, _ = self.stopped or (None, None)
            return "reload" if self.last >= skipped or stopped_at == skipped else None
        if name not in ("dropped", "frozen", "thawed", "digestPoint", "upgraded"):
            return None
        if (fields["0"], fields["life"]) != (self.store, self.life):
            return None
        if name == "dropped":
            self.is_over = True
            return "over"
        if name == "upgraded":
            if fields["schemaVersion"] > self.state.version and self.stopped is None:
                self.stopped = (
                    sequence,
                    f"{self.store} stopped at {sequence}: it has schema version "
                    f"{fields['schemaVersion']} and this program knows {self.state.version}; "
                    "run a newer program")
            return None
        if name in ("frozen", "thawed"):
            self.is_frozen = name == "frozen"
            return None
        return self.vote(sequence) if self.stopped is None else None

    def skip(self, events):
        """Takes the numbers of entries without effect from events that come after these entries."""
        for event in events:
            if "skipped" in event and self.is_meant(event["skipped"]["1"]):
                self.skips.add(event["skipped"]["0"])

    def vote(self, sequence):
        """The vote at a digest point. Its encoding is kept, since it may be requested."""
        octets = self.state.encode()
        self.points[sequence] = octets
        if len(self.points) > POINTS_MAX:
            self.points.popitem(last=False)
        refusals, self.refused = self.refused.digits(), Digest()
        return {"vote": {
            "place": self.place(sequence), "schemaVersion": self.state.version,
            "digest": Digest(octets).digits(), "refusals": refusals, "byteCount": len(octets)}}

    def place(self, sequence):
        return {"store": self.store, "life": self.life, "sequence": sequence}
