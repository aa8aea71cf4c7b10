"""Parts for snapshots and digest points: the digest, the load of a snapshot, where states differ.

Nothing here uses sockets.
"""

import struct

MASK = 2**64 - 1
PRIMES = (
    0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5)
STRIPE = 32


def rotate(value, count):
    return (value << count | value >> (64 - count)) & MASK


def round_of(lane, word):
    return rotate((lane + word * PRIMES[1]) & MASK, 31) * PRIMES[0] & MASK


class Digest:
    """XXH64 with the seed 0, of octets that arrive in pieces. The result does not depend on how they are
    divided."""

    def __init__(self, octets=b""):
        self.lanes = [(PRIMES[0] + PRIMES[1]) & MASK, PRIMES[1], 0, -PRIMES[0] & MASK]
        self.rest, self.count = b"", 0
        self.update(octets)

    def update(self, octets):
        self.count += len(octets)
        octets = self.rest + octets
        end = len(octets) - len(octets) % STRIPE
        self.rest = octets[end:]
        a, b, c, d = self.lanes
        for one, two, three, four in struct.iter_unpack("<4Q", octets[:end]):
            a, b = round_of(a, one), round_of(b, two)
            c, d = round_of(c, three), round_of(d, four)
        self.lanes = [a, b, c, d]

    def digits(self):
        """The digest of everything so far, as 16 hexadecimal digits."""
        one, two, three, four, five = PRIMES
        if self.count >= STRIPE:
            turns = zip(self.lanes, (1, 7, 12, 18))
            value = sum(rotate(lane, turn) for lane, turn in turns) & MASK
            for lane in self.lanes:
                value = ((value ^ round_of(0, lane)) * one + four) & MASK
        else:
            value = five
        value = (value + self.count) & MASK
        rest = self.rest
        while len(rest) >= 8:
            word, = struct.unpack_from("<Q", rest)
            value = (rotate(value ^ round_of(0, word), 27) * one + four) & MASK
            rest = rest[8:]
        if len(rest) >= 4:
            word, = struct.unpack_from("<I", rest)
            value = (rotate(value ^ word * one & MASK, 23) * two + three) & MASK
            rest = rest[4:]
        for octet in rest:
            value = rotate(value ^ octet * five & MASK, 11) * one & MASK
        value = (value ^ value >> 33) * two & MASK
        value = (value ^ value >> 29) * three & MASK
        return f"{value ^ value >> 32:016x}"


class Load:
    """A snapshot that is being loaded, or entries kept aside. The parts are requested one by one.

    `done` is called once, with the octets, or with None if they are not available.
    """

    def __init__(self, store, life, reference, done):
        self.place = {"store": store, "life": life, "sequence": reference["sequence"]}
        self.reference, self.done = reference, done
        self.octets, self.digest = bytearray(), Digest()
        self.asked_at, self.pause = 0.0, 0.0

    @property
    def left(self):
        return self.reference["byteCount"] - len(self.octets)

    def take(self, part):
        """Takes a part, if it is the next one. A part that was requested twice arrives twice.

        Returns: whether the load continues. It ends when it is complete, or can't be completed.
        """
        if part["place"] != self.place:
            return True
        if part["byteCount"] != self.reference["byteCount"]:
            self.done(None)
            return False
        if part["offset"] != len(self.octets) or not part["bytes"]:
            return True
        # It grows with the received octets, not with the announced size.
        self.octets += part["bytes"]
        self.digest.update(part["bytes"])
        self.asked_at = self.pause = 0.0
        if self.left:
            return True
        is_intact = self.digest.digits() == self.reference["digest"]
        self.done(bytes(self.octets) if is_intact else None)
        return False


def part_of(octets, request):
    """The requested part of an encoding; an empty one if there is no encoding."""
    offset = request["offset"]
    if octets is None or offset >= len(octets):
        return {"place": request["place"], "offset": 0, "byteCount": 0, "bytes": b""}
    return {
        "place": request["place"], "offset": offset, "byteCount": len(octets),
        "bytes": octets[offset : offset + request["limitBytes"]]}


def first_difference(one, other):
    """The first place at which two values of JSON differ, as a JSON pointer; None if none does."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other}, key=lambda key: key.encode("utf-8"))
        pairs = [(key, one.get(key, Missing), other.get(key, Missing)) for key in keys]
    elif isinstance(one, list) and isinstance(other, list):
        pairs = [
            (str(place), *(value[place] if place < len(value) else Missing
                           for value in (one, other)))
            for place in range(max(len(one), len(other)))]
    else:
        return None if type(one) is type(other) and one == other else ""
    for key, left, right in pairs:
        path = first_difference(left, right)
        if path is not None:
            return "/" + key.replace("~", "~0").replace("/", "~1") + path
    return None


class Missing:
    """Stands for the value that one of two values does not have."""
