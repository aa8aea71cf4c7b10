"""The frames of the protocol, as tables: sections 3, 5 and 6 of `docs/protocol.md`.

A kind is added by a line of `KINDS` and the form of its fields, an event by a line of `EVENT`.
"""

from collections import namedtuple

from .forms import (
    BLOB, COUNT, DIGEST, FLAG, FRAME_BYTES_MAX, I64, ID, LIST_MAX, NAMED, NUMBER, NUMBER_MAX,
    POSITIVE, STORE, TARGET, TEXT, U8, U16, U32, U64, VARINT, Choice, Code, Form, List, Malformed,
    Optional, Reader, Record, Sized, Unsupported, extensions, octets_of,
    skip_extensions,
)

MAGIC = b"CFLX"
VERSION = 1
ROWS_MAX = 256
BATCH_ENTRIES_MAX = 65_536

# `session`: that of a node, or 0 if it has none. The sequencer has none.
Frame = namedtuple("Frame", "kind epoch value session", defaults=(0,))
Kind = namedtuple("Kind", "name speaker form")


class OtherVersion(Exception):
    """A frame of another version that is not a `bye`."""


# Parts of several messages.

SUBJECT = Choice({1: ("store", STORE), 2: ("state", NAMED)})
CODING = Choice({0: "json", 1: "compact"})
STATE = Record(coding=CODING, bytes=BLOB)
BYE_CODE = Code(
    {
        1: "leaving", 2: "rejoin", 3: "forgotten", 4: "nameTaken", 5: "version",
        6: "unsupported", 7: "malformed", 8: "tableFull", 9: "superseded", 10: "keyTaken",
        11: "notAllowed", 12: "notServing",
    },
    U16,
)
REJECTION_CODE = Code(
    {
        1: "unknownTarget", 2: "payloadTooLarge", 3: "malformed", 4: "unrecorded",
        5: "otherLife", 6: "schemaVersion", 7: "tableFull", 8: "unsupported", 9: "withdrawn",
        10: "frozen", 11: "passed", 12: "damaged", 13: "notAllowed", 14: "upgradeFailed",
        15: "conflict", 16: "noSuchTimer", 17: "leaseLost", 18: "locked",
    },
    U16,
)
FAILURE = Code(
    {
        1: "notHosted", 2: "unknownNode", 3: "timedOut", 4: "tableFull", 5: "effectUnknown",
        7: "tooLarge", 8: "notAllowed", 9: "reloadFailed", 10: "noStandby",
    },
    U8,
)
REJECTED = Record(("0", REJECTION_CODE), ("message", TEXT))
PLACE = Record(store=STORE, life=POSITIVE, sequence=POSITIVE)
REFERENCE = Record(sequence=NUMBER, schemaVersion=U32, digest=DIGEST, byteCount=POSITIVE)


class Batch(Form):
    """Actions of one session, or, if it is void, only a number of counters. It fills the octets that contain it."""

    least = 27
    KINDS = ("separate", "atomic", "void")
    CONDITIONS = 0x8001
    CONDITION = Record(row=U16, sequence=NUMBER, epoch=NUMBER)
    ROW = Record(target=TARGET, life=NUMBER, schemaVersion=U32, coding=CODING)
    ROWS = List(ROW, ROWS_MAX, U16)

    def read(self, reader):
        first, settled = POSITIVE.read(reader), NUMBER.read(reader)
        kind = U8.read(reader)
        if kind >= len(self.KINDS):
            raise Malformed(f"{kind} is no kind of batch")
        count = COUNT.read(reader)
        if count > BATCH_ENTRIES_MAX or first > NUMBER_MAX - (count - 1):
            raise Malformed(f"a batch of {count} from {first}")
        rows = self.ROWS.read(reader)
        if (self.KINDS[kind] == "void") != (not rows):
            raise Malformed("a batch has rows exactly if it has actions")
        self.read_conditions(reader.part(U32.read(reader)), rows)
        entries = []
        while self.KINDS[kind] != "void" and len(entries) < count:
            row = VARINT.read(reader)
            if row >= len(rows):
                raise Malformed(f"there is no row {row}")
            entries.append({"target": row, "payload": reader.take(VARINT.read(reader))})
        reader.finish()
        return {
            "firstCounter": first, "settled": settled, "kind": self.KINDS[kind],
            "count": count, "targets": rows, "entries": entries,
        }

    def read_conditions(self, reader, rows):
        """The versions that rows name: their entries are taken only if their store has not changed since."""
        for tag, body in extensions(reader, self.CONDITIONS):
            if tag != self.CONDITIONS:
                continue
            last = -1
            while last < 0 or body.left:
                condition = self.CONDITION.read(body)
                row = condition.pop("row")
                if not last < row < len(rows) or "/" not in rows[row]["target"] or (
                    rows[row]["target"].endswith("/*")
                ):
                    raise Malformed(f"a condition of row {row}")
                rows[row]["unchangedSince"] = condition
                last = row

    def write_conditions(self, rows, out):
        inner = bytearray()
        for index, row in enumerate(rows):
            if "unchangedSince" in row:
                self.CONDITION.write(row["unchangedSince"] | {"row": index}, inner)
        U32.write(len(inner) + 6 if inner else 0, out)
        if inner:
            U16.write(self.CONDITIONS, out)
            U32.write(len(inner), out)
            out += inner

    def write(self, batch, out):
        POSITIVE.write(batch["firstCounter"], out)
        NUMBER.write(batch["settled"], out)
        U8.write(self.KINDS.index(batch["kind"]), out)
        COUNT.write(batch["count"], out)
        plain = [
            {name: row[name] for name in row if name != "unchangedSince"}
            for row in batch["targets"]
        ]
        self.ROWS.write(plain, out)
        self.write_conditions(batch["targets"], out)
        if batch["kind"] != "void" and len(batch["entries"]) != batch["count"]:
            raise ValueError("a batch has as many entries as it says")
        for entry in batch["entries"]:
            payload = octets_of(entry["payload"])
            VARINT.write(entry["target"], out)
            VARINT.write(len(payload), out)
            out += payload


class Event(Choice):
    """An event of the log."""

    def unknown(self, number):
        raise Unsupported(f"the event {number} of the log")


BATCH = Batch()
EVENT = Event(
    {
        1: ("claim", Record(epoch=NUMBER, nonce=ID)),
        2: (
            "joined",
            Record(nonce=ID, name=Optional(NAMED), rejoining=NUMBER, isKeyed=FLAG),
        ),
        3: ("left", NUMBER),
        4: ("forgotten", NUMBER),
        5: ("created", Record(("0", STORE), schemaVersion=U32, initial=STATE)),
        6: ("dropped", Record(("0", STORE), life=POSITIVE)),
        7: (
            "upgraded",
            Record(("0", STORE), life=POSITIVE, schemaVersion=U32, base=POSITIVE),
        ),
        8: (
            "frozen",
            Record(
                ("0", STORE), life=POSITIVE,
                reason=Choice({1: "abandoned", 2: "unconfirmed", 3: "asked"})),
        ),
        9: ("thawed", Record(("0", STORE), life=POSITIVE)),
        10: ("digestPoint", Record(("0", STORE), life=POSITIVE)),
        15: ("skipped", Record(("0", POSITIVE), ("1", TARGET))),
        17: ("visited", Record(nonce=ID)),
        18: ("handles", Record(("0", NAMED), events=List(NAMED))),
        19: ("forked", Record(("from", ID))),
    }
)


class Caused(Form):
    """An event, and the key that caused it, which an extension names. They fill their block."""

    OWNER = 1
    least = EVENT.least

    def read(self, reader):
        value = {"0": EVENT.read(reader), "by": None}
        for tag, body in extensions(reader):
            if tag == self.OWNER:
                value["by"] = NAMED.read(body)
        return value

    def write(self, value, out):
        EVENT.write(value["0"], out)
        if value["by"] is not None:
            U16.write(self.OWNER, out)
            Sized(NAMED).write(value["by"], out)


SIZED_EVENT = Sized(Caused())


class Commit(Form):
    """What the log stores: consecutive entries. Its extensions are in the remaining octets."""

    HEAD = Record(
        log=ID, epoch=NUMBER, predecessor=NUMBER, first=POSITIVE, timestamp=I64, count=COUNT
    )
    least = HEAD.least + 4

    def read(self, reader):
        commit = self.HEAD.read(reader)
        if commit["first"] > NUMBER_MAX - (commit["count"] - 1):
            raise Malformed("the numbers of a commit are too high")
        blocks = U32.read(reader)
        if blocks > LIST_MAX or blocks * 5 > reader.left:
            raise Malformed(f"{blocks} blocks are too many")
        commit["blocks"] = [self.read_block(reader) for _ in range(blocks)]
        counts = sum(block["batch"]["1"]["count"] if "batch" in block else 1
                     for block in commit["blocks"])
        if counts != commit["count"]:
            raise Malformed(f"a commit of {commit['count']} has {counts} entries")
        skip_extensions(reader)
        return commit

    def read_block(self, reader):
        kind = U8.read(reader)
        if kind == 2:
            return {"event": SIZED_EVENT.read(reader)}
        if kind != 1:
            raise Unsupported(f"the block {kind} of the log")
        part = reader.part(U32.read(reader))
        incarnation = NUMBER.read(part)
        batch = BATCH.read(part)
        if batch["kind"] == "void":
            raise Malformed("no log holds a void batch")
        return {"batch": {"0": incarnation, "1": batch}}

    def write(self, commit, out):
        self.HEAD.write({name: commit[name] for name, _ in self.HEAD.fields}, out)
        U32.write(len(commit["blocks"]), out)
        for block in commit["blocks"]:
            if "event" in block:
                out.append(2)
                SIZED_EVENT.write(block["event"], out)
            else:
                inner = bytearray()
                NUMBER.write(block["batch"]["0"], inner)
                BATCH.write(block["batch"]["1"], inner)
                out.append(1)
                BLOB.write(inner, out)


COMMIT = Commit()
SIZED_COMMIT = Sized(COMMIT)

# Messages, in the order of section 5.

HISTORY = Record(log=ID, sequence=NUMBER, epoch=NUMBER, claim=ID)
HELLO = Record(
    request=U64,
    nonce=ID,
    name=Optional(NAMED),
    role=Choice({0: "member", 1: "observer"}),
    process=Optional(ID),
    session=Optional(Record(log=ID, incarnation=NUMBER)),
    history=Optional(HISTORY),
    hosted=List(Record(store=STORE, life=NUMBER, schemaVersion=U32)),
    bridged=List(Record(state=NAMED, schemaVersion=U32)),
)
OPEN = Record(
    request=U64, subject=SUBJECT, schemaVersion=U32, events=List(NAMED), initial=STATE
)
CLOSE = Record(subject=SUBJECT)
SUBMIT = Sized(BATCH)
FETCH = Record(
    ("request", U64), ("from", NUMBER), ("limitBytes", U32), ("acknowledged", U64))
PROGRESS = Record(applied=NUMBER, settled=NUMBER, stopped=List(PLACE))
LOAD = Record(request=U64, place=PLACE, offset=NUMBER, limitBytes=U32, acknowledged=U64)
DIGESTED = Choice(
    {
        1: (
            "vote",
            Record(place=PLACE, schemaVersion=U32, digest=DIGEST, refusals=DIGEST,
                   byteCount=POSITIVE),
        ),
        2: ("located", Record(place=PLACE, path=TEXT)),
    }
)


class Part(Form):
    """A part of a whole, with its place in it."""

    RECORD = Record(place=PLACE, offset=NUMBER, byteCount=NUMBER, bytes=BLOB)
    least = RECORD.least

    def read(self, reader):
        value = self.RECORD.read(reader)
        if value["offset"] + len(value["bytes"]) > value["byteCount"]:
            raise Malformed("a part is not within the whole")
        return value

    def write(self, value, out):
        self.RECORD.write(value, out)


PART = Part()
OFFER = Choice(
    {
        1: ("whole", Record(sequence=NUMBER, schemaVersion=U32, state=STATE)),
        2: ("saved", REFERENCE),
    })
OPEN_OUTCOME = Choice(
    {
        1: (
            "opened",
            Record(
                life=NUMBER, schemaVersion=U32, last=NUMBER, floor=NUMBER,
                snapshot=Optional(OFFER),
                aside=Optional(REFERENCE), skipped=List(NUMBER),
            ),
        ),
        2: ("failed", REJECTED),
    })
OPENED = Record(request=U64, outcome=OPEN_OUTCOME)


class Extended(Form):
    """A record, and one more member that an extension with this tag may have."""

    def __init__(self, record, tag, name, form):
        self.record, self.tag, self.name, self.form = record, tag, name, form
        self.least = record.least

    def read(self, reader):
        value = self.record.read(reader) | {self.name: None}
        for tag, body in extensions(reader):
            if tag == self.tag:
                value[self.name] = self.form.read(body)
        return value

    def write(self, value, out):
        self.record.write({name: value[name] for name in value if name != self.name}, out)
        if value[self.name] is not None:
            U16.write(self.tag, out)
            Sized(self.form).write(value[self.name], out)


QUESTION = Record(
    number=U64,
    patience=NUMBER,
    acknowledged=U64,
    body=Choice(
        {
            1: "status",
            2: ("observe", Record(("0", STORE), ("node", Optional(NAMED)), ("after", NUMBER))),
            3: ("applied", Record(("0", NUMBER), ("1", TARGET))),
            4: "alive",
            5: "reload",
            6: "sequencers",
            7: ("handOver", Record(to=Optional(TEXT))),
            8: ("start", STORE),
            9: ("timers", Record(behind=NUMBER)),
        }
    ),
)
TIMER = Record(
    number=NUMBER, owner=Optional(NAMED), key=Optional(TEXT), targets=List(TARGET), due=I64,
    interval=Optional(NUMBER))
STATUS = Record(
    log=ID,
    epoch=NUMBER,
    last=NUMBER,
    floor=NUMBER,
    checkpoint=NUMBER,
    sessions=List(
        Record(
            incarnation=NUMBER, name=Optional(NAMED), owner=Optional(NAMED), isLive=FLAG,
            applied=NUMBER, lastCounter=NUMBER, hosted=List(STORE), bridged=List(NAMED),
        )
    ),
    stores=List(
        Record(
            store=STORE, life=NUMBER, schemaVersion=U32, hosts=U32, snapshot=NUMBER, isFrozen=FLAG,
            divergence=Optional(
                Record(
                    lastEqual=NUMBER, firstUnequal=NUMBER, nodes=List(NUMBER), isMajority=FLAG,
                    path=Optional(TEXT))),
            stopped=List(Record(node=NUMBER, sequence=NUMBER))),
    ),
)
#: An answer to `start` may have what a reader needs that begins earlier.
ANSWER = Extended(
    Record(
        number=U64,
        isLast=FLAG,
        node=Optional(NAMED),
        deliveryTag=U64,
        body=Choice(
            {
                1: ("status", STATUS),
                2: ("state", Record(("0", STORE), ("1", NUMBER), ("2", BLOB))),
                3: "applied",
                4: ("refused", Record(message=TEXT)),
                5: ("failed", Record(("0", FAILURE), ("message", TEXT))),
                6: "alive",
                7: ("stopped", Record(at=NUMBER, message=TEXT)),
                8: "concernedNobody",
                9: ("reloaded", Record(count=U32)),
                10: ("sequencers", List(Record(address=TEXT, isServing=FLAG, last=NUMBER))),
                11: ("handingOver", Record(to=TEXT)),
                12: ("start", Record(("0", STORE), ("1", OPEN_OUTCOME))),
                13: ("timers", List(TIMER)),
            }
        ),
    ),
    7, "earlier", Record(snapshot=Optional(REFERENCE), skipped=List(NUMBER)))
BARRIER = Record(request=U64)
DROP = Record(request=U64, store=STORE, life=POSITIVE)
SKIP = Record(request=U64, sequence=POSITIVE, target=TARGET)
FREEZE = Record(request=U64, store=STORE, life=POSITIVE, isFrozen=FLAG)
UPGRADE = Record(request=U64, store=STORE, life=POSITIVE, schemaVersion=U32, mayReplay=FLAG)
MIGRATED = Record(
    place=PLACE, schemaVersion=U32, outcome=Choice({1: ("migrated", DIGEST), 2: ("failed", TEXT)}))
LEAVING = Record(request=U64)
BYE = Record(request=U64, code=BYE_CODE, message=TEXT)

WELCOME = Record(
    request=U64, log=ID, claim=ID, incarnation=NUMBER, last=NUMBER, floor=NUMBER,
    agreed=NUMBER, settled=NUMBER, lastCounter=NUMBER, feed=TEXT,
    limits=Record(
        windowBytes=U32, batchBytesMax=U32, payloadBytesMax=U32,
        beatInterval=NUMBER, silenceMax=NUMBER,
    ),
)


class Spans(Form):
    """A record with counters and numbers of entries, none of which exceeds the highest number."""

    def __init__(self, record, *firsts):
        self.record, self.firsts, self.least = record, firsts, record.least

    def read(self, reader):
        value = self.record.read(reader)
        if any(value[first] > NUMBER_MAX - (value["count"] - 1) for first in self.firsts):
            raise Malformed("numbers run past the highest one")
        return value

    def write(self, value, out):
        self.record.write(value, out)


RECEIPTS = Record(
    runs=List(
        Spans(
            Record(firstCounter=POSITIVE, count=COUNT, firstSequence=POSITIVE, epoch=NUMBER,
                   timestamp=I64),
            "firstCounter", "firstSequence",
        )
    )
)

#: The version is that of the store, if it contradicts a condition.
REJECTION = Extended(
    Spans(
        Record(firstCounter=POSITIVE, count=COUNT, code=REJECTION_CODE, message=TEXT),
        "firstCounter",
    ),
    6, "version", Record(sequence=NUMBER, epoch=NUMBER))
#: A batch was discarded. The message says for people what holds it up.
EXPECTED = Extended(
    Record(counter=POSITIVE, reason=Choice({0: "gap", 1: "full"})), 3, "message", TEXT)
CONFIRMED = Record(
    request=U64, outcome=Choice({1: ("confirmed", NUMBER), 2: ("failed", REJECTED)})
)
DAMAGE = Record(first=POSITIVE, last=POSITIVE, message=TEXT)
ENTRIES = Record(
    request=U64, last=NUMBER, floor=NUMBER, deliveryTag=U64, commits=List(BLOB),
    damage=Optional(DAMAGE))
SERVED = Record(request=U64, deliveryTag=U64, chunk=PART)
PART_REQUEST = Record(place=PLACE, offset=NUMBER, limitBytes=U32)
DIVERGENCE = Record(
    store=STORE, life=POSITIVE, lastEqual=NUMBER, reference=REFERENCE, isMajority=FLAG,
    mustReload=FLAG,
)
RELOAD = Record(place=PLACE)
MIGRATE = Record(store=STORE, life=POSITIVE, schemaVersion=U32, snapshot=OFFER)
REDIRECT = Record(request=U64, address=TEXT)
BEAT = Record(log=ID, last=NUMBER, floor=NUMBER)

#: All kinds. One without a form is reserved.
KINDS = {
    0x01: Kind("hello", "node", HELLO),
    0x02: Kind("open", "node", OPEN),
    0x03: Kind("close", "node", CLOSE),
    0x04: Kind("drop", "node", DROP),
    0x05: Kind("upgrade", "node", UPGRADE),
    0x06: Kind("submit", "node", SUBMIT),
    0x07: Kind("fetch", "node", FETCH),
    0x08: Kind("load", "node", LOAD),
    0x09: Kind("progress", "node", PROGRESS),
    0x0A: Kind("digest", "node", DIGESTED),
    0x0B: Kind("snapshot", "node", PART),
    0x0C: Kind("question", "node", QUESTION),
    0x0D: Kind("answer", "node", ANSWER),
    0x0E: Kind("lock", "node", None),
    0x0F: Kind("barrier", "node", BARRIER),
    0x10: Kind("skip", "node", SKIP),
    0x11: Kind("activity", "node", None),
    0x12: Kind("bye", "node", BYE),
    0x13: Kind("freeze", "node", FREEZE),
    0x15: Kind("migrated", "node", MIGRATED),
    0x16: Kind("leaving", "node", LEAVING),
    0x41: Kind("welcome", "sequencer", WELCOME),
    0x42: Kind("opened", "sequencer", OPENED),
    0x43: Kind("receipts", "sequencer", RECEIPTS),
    0x44: Kind("rejection", "sequencer", REJECTION),
    0x45: Kind("expected", "sequencer", EXPECTED),
    0x46: Kind("entries", "sequencer", ENTRIES),
    0x47: Kind("snapshotServed", "sequencer", SERVED),
    0x48: Kind("snapshotRequest", "sequencer", PART_REQUEST),
    0x49: Kind("questionAsked", "sequencer", QUESTION),
    0x4A: Kind("answerGiven", "sequencer", ANSWER),
    0x4B: Kind("lockOutcome", "sequencer", None),
    0x4C: Kind("confirmed", "sequencer", CONFIRMED),
    0x4D: Kind("redirect", "sequencer", REDIRECT),
    0x4E: Kind("farewell", "sequencer", BYE),
    0x4F: Kind("divergence", "sequencer", DIVERGENCE),
    0x50: Kind("reload", "sequencer", RELOAD),
    0x51: Kind("migrate", "sequencer", MIGRATE),
    0x81: Kind("commit", "feed", COMMIT),
    0x82: Kind("beat", "feed", BEAT),
    0x83: Kind("activityPublished", "feed", None),
}
NUMBERS = {kind.name: number for number, kind in KINDS.items()}
BYES = {NUMBERS["bye"], NUMBERS["farewell"]}


def decode(octets, *speakers):
    """Reads a frame.

    Args:
        octets: One ZeroMQ message.
        speakers: The possible speakers, of `node`, `sequencer` and `feed`.

    Raises:
        Malformed: It breaks the grammar.
        Unsupported: Its kind is reserved, unknown or another speaker's, or a part of it is unknown but critical.
        OtherVersion: It is of another version, and not a `bye`.
    """
    if len(octets) > FRAME_BYTES_MAX:
        raise Malformed(f"a frame has {len(octets)} octets")
    reader = Reader(octets)
    if reader.take(4) != MAGIC:
        raise Malformed("a frame begins with CFLX")
    version, number = reader.take(2)
    reader.take(2)  # The flags, none of which is known.
    epoch, session = NUMBER.read(reader), NUMBER.read(reader)
    if version != VERSION and number not in BYES:
        raise OtherVersion(f"version {version}")
    kind = KINDS.get(number)
    if kind is None or kind.form is None or kind.speaker not in speakers:
        raise Unsupported(f"the kind {number:#04x}")
    value = kind.form.read(reader)
    if version == VERSION:
        skip_extensions(reader)
    return Frame(kind.name, epoch, value, session)


def encode(kind, epoch, value, session=0):
    """Writes a frame of a kind, by its name. A node states the session for which it speaks."""
    number = NUMBERS[kind]
    out = bytearray(MAGIC)
    out += bytes((VERSION, number, 0, 0))
    NUMBER.write(epoch, out)
    NUMBER.write(session, out)
    KINDS[number].form.write(value, out)
    if len(out) > FRAME_BYTES_MAX:
        raise ValueError(f"a frame of {len(out)} octets")
    return bytes(out)


def decode_commit(octets):
    """Reads a commit, as `entries` contains it."""
    reader = Reader(octets)
    commit = COMMIT.read(reader)
    reader.finish()
    return commit


def decode_aside(octets):
    """Reads the entries that are kept aside for a store: commits, each after its length."""
    reader = Reader(octets)
    while reader.left:
        yield SIZED_COMMIT.read(reader)


def encode_batch(batch):
    out = bytearray()
    BATCH.write(batch, out)
    return bytes(out)
