"""The codec: golden frames in both directions, and bytes that are not frames."""

import json
import random
import unittest

from conflux import wire
from conflux.forms import FRAME_BYTES_MAX, Malformed, Reader, Unsupported, extensions

from .test_document import golden_frames

SPEAKERS = ("node", "sequencer", "feed")
FAILURES = (Malformed, Unsupported, wire.OtherVersion)


def in_digits(value):
    """A value with its octets as hexadecimal digits, as the golden frames have it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: in_digits(part) for name, part in value.items()}
    return [in_digits(part) for part in value] if isinstance(value, list) else value


def header(kind, version=1, epoch=3, session=0):
    return b"CFLX" + bytes((version, kind, 0, 0)) + epoch.to_bytes(8, "little") + (
        session.to_bytes(8, "little"))


class GoldenTests(unittest.TestCase):
    def test_every_golden_frame_is_its_value(self):
        for golden in golden_frames():
            with self.subTest(golden["name"]):
                frame = wire.decode(bytes.fromhex(golden["frame"]), golden["speaker"])
                self.assertEqual(
                    (frame.kind, frame.epoch, frame.session),
                    (golden["kind"], golden["epoch"], golden["session"]))
                self.assertEqual(in_digits(frame.value), golden["value"])

    def test_every_golden_value_is_its_frame(self):
        for golden in golden_frames():
            with self.subTest(golden["name"]):
                octets = wire.encode(
                    golden["kind"], golden["epoch"], golden["value"], golden["session"])
                frame = bytes.fromhex(golden["frame"])
                self.assertEqual(octets.hex(), frame[:len(octets)].hex())
                # Extensions are not part of values.
                tags = [tag for tag, _ in extensions(Reader(frame[len(octets):]))]
                expected = [
                    {tag} for words, tag in (("with shapes", 1), ("with older versions", 4))
                    if words in golden["name"]]
                self.assertEqual(set(tags), expected[0] if expected else set())

    def test_every_kind_that_is_spoken_has_a_golden_frame(self):
        spoken = {kind.name for kind in wire.KINDS.values() if kind.form is not None}
        self.assertEqual({golden["kind"] for golden in golden_frames()}, spoken)

    def test_commits_of_entries_are_read(self):
        for golden in golden_frames():
            for octets in golden["value"].get("commits", ()):
                commit = wire.decode_commit(bytes.fromhex(octets))
                self.assertEqual((commit["first"], commit["count"]), (1, 1))

    def test_a_frame_is_heard_from_its_own_speaker_alone(self):
        for golden in golden_frames():
            others = [speaker for speaker in SPEAKERS if speaker != golden["speaker"]]
            with self.subTest(golden["name"]), self.assertRaises(Unsupported):
                wire.decode(bytes.fromhex(golden["frame"]), *others)


class HostileTests(unittest.TestCase):
    def test_every_frame_that_is_cut_is_malformed(self):
        for golden in golden_frames():
            octets = bytes.fromhex(golden["frame"])
            value = golden["value"]
            if golden["kind"] == "expected":
                value = value | {"message": None}
            if golden["kind"] == "rejection":
                value = value | {"version": None}
            if "earlier" in value:
                value = value | {"earlier": None}
            fields = len(wire.encode(golden["kind"], golden["epoch"], value, golden["session"]))
            # Before an extension, a frame is complete.
            whole, rest = set(), Reader(octets[fields:])
            while rest.left:
                whole.add(fields + rest.at)
                next(extensions(rest))
            for end in set(range(len(octets))) - whole:
                with self.subTest(golden["name"], end=end), self.assertRaises(Malformed):
                    wire.decode(octets[:end], *SPEAKERS)

    def test_what_stands_behind_a_frame_is_an_extension_or_malformed(self):
        beat = bytes.fromhex(next(g for g in golden_frames() if g["kind"] == "beat")["frame"])
        known = wire.decode(beat, "feed")
        optional, critical = b"\xff\x7f\x01\0\0\0x", b"\x00\x80\x00\0\0\0"
        self.assertEqual(wire.decode(beat + optional * 3, "feed"), known)
        with self.assertRaises(Unsupported):
            wire.decode(beat + optional + critical, "feed")
        for rest in (b"\0", optional[:-1], b"\xff\x7f\xff\xff\xff\xff"):
            with self.assertRaises(Malformed):
                wire.decode(beat + rest, "feed")

    def test_octets_that_were_changed_end_in_a_value_or_a_failure(self):
        seed = random.randrange(2**32)
        choose = random.Random(seed)
        frames = [bytes.fromhex(golden["frame"]) for golden in golden_frames()]
        for turn in range(6_000):
            octets = bytearray(choose.choice(frames))
            for _ in range(choose.randrange(1, 4)):
                place = choose.randrange(len(octets))
                change = choose.randrange(3)
                if change == 0:
                    telling = (0, 1, 2, 0x7F, 0x80, 0xFF, choose.randrange(256))
                    octets[place] = choose.choice(telling)
                elif change == 1:
                    del octets[place : place + choose.randrange(1, 5)]
                else:
                    octets[place:place] = choose.randbytes(choose.randrange(1, 5))
                if not octets:
                    octets = bytearray(b"C")
            with self.subTest(seed=seed, turn=turn, octets=octets.hex()):
                try:
                    frame = wire.decode(bytes(octets), *SPEAKERS)
                except FAILURES:
                    continue
                # A decoded frame can be encoded, and then decodes to the same value.
                again = wire.encode(frame.kind, frame.epoch, frame.value, frame.session)
                self.assertEqual(wire.decode(again, *SPEAKERS), frame)

    def test_random_octets_behind_each_header_end_in_a_value_or_a_failure(self):
        seed = random.randrange(2**32)
        choose = random.Random(seed)
        for turn in range(4_000):
            octets = header(choose.choice(list(wire.KINDS)))
            octets += choose.randbytes(choose.randrange(80))
            with self.subTest(seed=seed, turn=turn, octets=octets.hex()):
                try:
                    wire.decode(octets, *SPEAKERS)
                except FAILURES:
                    pass

    def test_a_count_that_the_rest_can_not_hold_is_refused_at_once(self):
        for body in (
            header(0x43) + b"\xff\xff\xff\xff", header(0x43) + b"\xff\xff\0\0" + bytes(64),
            header(0x46) + bytes(24) + b"\xff\xff\0\0",
            header(0x46) + bytes(24) + b"\1\0\0\0" + b"\xff" * 4,
        ):
            with self.assertRaises(Malformed):
                wire.decode(body, "sequencer")

    def test_a_list_has_at_most_so_many_elements(self):
        names = wire.List(wire.NAMED)
        for count, is_read in ((65_536, True), (65_537, False)):
            reader = Reader(count.to_bytes(4, "little") + b"\x01a" * count)
            if is_read:
                self.assertEqual(len(names.read(reader)), count)
            else:
                with self.assertRaises(Malformed):
                    names.read(reader)

    def commit(self, **changes):
        """A commit of one batch with two actions, some fields of which are changed."""
        row = {"target": "counter/*", "life": 0, "schemaVersion": 1, "coding": "json"}
        batch = {
            "firstCounter": 1, "settled": 0, "kind": "separate", "count": 2, "targets": [row],
            "entries": [
                {"target": 0, "payload": b"{}"}, {"target": changes.get("row", 0), "payload": b""}],
        }
        if changes.get("void"):
            batch.update(kind="void", targets=[], entries=[])
        inner = bytearray(bytes(8))
        wire.BATCH.write(batch, inner)
        inner += changes.get("rest", b"")
        out = bytearray()
        wire.Commit.HEAD.write({
            "log": "00" * 16, "epoch": 1, "predecessor": 0, "first": changes.get("first", 5),
            "timestamp": 0, "count": changes.get("count", 2)}, out)
        return bytes(out) + b"\1\0\0\0\1" + len(inner).to_bytes(4, "little") + bytes(inner)

    def test_a_commit_is_what_its_blocks_are(self):
        self.assertEqual(wire.decode_commit(self.commit())["count"], 2)
        self.assertEqual(wire.decode_commit(self.commit(first=2**63 - 2))["first"], 2**63 - 2)
        for changes in (
            {"count": 3}, {"count": 1}, {"first": 2**63 - 1}, {"row": 1}, {"rest": b"\0"},
            {"void": True},
        ):
            with self.subTest(changes), self.assertRaises(Malformed):
                wire.decode_commit(self.commit(**changes))
        with self.assertRaises(Unsupported):
            octets = bytearray(self.commit())
            octets[octets.index(b"\1\0\0\0\1", 50) + 4] = 3
            wire.decode_commit(bytes(octets))

    def test_a_frame_that_is_too_large_is_refused(self):
        with self.assertRaises(Malformed):
            wire.decode(bytes(FRAME_BYTES_MAX + 1), "feed")

    def test_another_version_is_told_from_a_frame_that_is_none_and_its_bye_is_read(self):
        bye = header(0x4E, version=9) + bytes(8) + b"\x05\0\x02\0ab" + b"whatever"
        self.assertEqual(
            wire.decode(bye, "sequencer").value, {"request": 0, "code": "version", "message": "ab"})
        with self.assertRaises(wire.OtherVersion):
            wire.decode(header(0x41, version=9), "sequencer")
        with self.assertRaises(Malformed):
            wire.decode(b"GET / HTTP/1.1\r\n\r\n", "sequencer")

    def test_flags_that_are_not_known_are_ignored(self):
        octets = bytearray.fromhex(golden_frames()[0]["frame"])
        known = wire.decode(bytes(octets), "node")
        octets[6:8] = b"\xff\xff"
        self.assertEqual(wire.decode(bytes(octets), "node"), known)

    def test_kinds_and_events_that_are_reserved_are_not_supported(self):
        for number, kind in wire.KINDS.items():
            if kind.form is None:
                with self.subTest(kind.name), self.assertRaises(Unsupported):
                    wire.decode(header(number), *SPEAKERS)
        for number in set(range(256)) - set(wire.EVENT.by_number):
            with self.subTest(event=number), self.assertRaises(Unsupported):
                wire.EVENT.read(Reader(bytes((number,))))

    def test_numbers_are_held_to_63_bits_and_sums_too(self):
        run = {
            "firstCounter": 1, "count": 2, "firstSequence": 2**63 - 2, "epoch": 1, "timestamp": -1}
        octets = wire.encode("receipts", 1, {"runs": [run]})
        self.assertEqual(wire.decode(octets, "sequencer").value, {"runs": [run]})
        octets = wire.encode("receipts", 1, {"runs": [dict(run, firstSequence=2**63 - 1)]})
        with self.assertRaises(Malformed):
            wire.decode(octets, "sequencer")
        with self.assertRaises(Malformed):
            wire.decode(header(0x82) + bytes(16) + b"\xff" * 16, "feed")
        for value in (-1, 2**63, True, 1.0):
            with self.assertRaises(ValueError):
                wire.encode("beat", 0, {"log": "00" * 16, "last": value, "floor": 1})

    def test_a_varint_has_its_shortest_form(self):
        most = (b"\xff\xff\xff\xff\x0f", 2**32 - 1)
        for octets, value in ((b"\x00", 0), (b"\x80\x01", 128), most):
            self.assertEqual(wire.VARINT.read(Reader(octets)), value)
        for octets in (
            b"\x80\x00", b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x01", b"\x80", b"",
        ):
            with self.subTest(octets.hex()), self.assertRaises(Malformed):
                wire.VARINT.read(Reader(octets))

    def test_names_and_texts_are_checked(self):
        for octets in (b"\x00", b"\x01A", b"\x01/", b"\x41" + b"a" * 65, b"\x02a\n", b"\x01\xe9"):
            with self.subTest(octets.hex()), self.assertRaises(Malformed):
                wire.NAMED.read(Reader(octets))
        for octets in (b"\x01\x00\xff", b"\x01\x10" + b"a" * 4097, b"\x03\x00\xed\xa0\x80"):
            with self.subTest(octets.hex()), self.assertRaises(Malformed):
                wire.TEXT.read(Reader(octets))


if __name__ == "__main__":
    unittest.main()
