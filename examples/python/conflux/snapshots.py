"""Parts for snapshots and digest points: the digest, the load of a snapshot, where states differ.

Nothing here uses sockets.
"""

import hashlib


class Digest:
    """BLAKE2b with 32 octets and no key, of octets that arrive in pieces. The result does not depend on how they
    are divided."""

    def __init__(self, octets=b""):
        self.hash = hashlib.blake2b(octets, digest_size=32)

    def update(self, octets):
        self.hash.update(octets)

    def digits(self):
        """The digest of everything so far, as 64 hexadecimal digits."""
        return self.hash.hexdigest()


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
