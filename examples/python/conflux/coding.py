"""The two codings of actions and states: JSON, read strictly, and the compact one.

Both have the same values. Every replica must accept the same payloads, so nothing is repaired here:
a payload that another implementation would refuse is `Invalid`.
"""

import json
import math
import struct

#: The deepest nesting of arrays and objects. A counter has two levels, and deeper values are never counters.
NESTING_MAX = 512


class Invalid(Exception):
    """A payload that is not a value."""


class Single(float):
    """A number of 32 bits, which only the compact coding has. It is never taken for a whole number."""


def decode(octets, coding):
    return read_json(octets) if coding == "json" else read_compact(octets)


def read_json(octets):
    """Reads JSON (RFC 8259): each key once, whole numbers from -2^63 to 2^64 - 1, UTF-8."""
    try:
        value = json.loads(
            octets.decode("utf-8"), object_pairs_hook=members, parse_int=whole,
            parse_float=fraction, parse_constant=nothing)
        # A lone surrogate is not a text.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except (ValueError, RecursionError) as error:
        raise Invalid(str(error)) from None


def members(pairs):
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Invalid("a key stands twice")
    return value


def whole(digits):
    # Longer ones are not converted, since the time grows with the square of the length.
    value = int(digits) if len(digits) <= 20 else 2**64
    if not -(2**63) <= value < 2**64:
        raise Invalid("a whole number is beyond 64 bits")
    return value


def fraction(digits):
    value = float(digits)
    if not math.isfinite(value):
        raise Invalid("a number is beyond a double")
    return value


def nothing(word):
    raise Invalid(f"{word} is no JSON")


def canonical(value):
    """JSON without blanks and with sorted keys: one text for each value, of whole numbers and texts."""
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), sort_keys=True
    ).encode("utf-8")


def read_compact(octets):
    """Reads the compact coding."""
    reader = CompactReader(octets)
    if reader.take(1) != b"\x01":
        raise Invalid("the compact coding begins with 1")
    try:
        value = reader.value(0)
    except RecursionError:
        raise Invalid("arrays or objects lie too deep") from None
    if reader.at != len(octets):
        raise Invalid("octets behind the value")
    return value


class CompactReader:
    def __init__(self, octets):
        self.octets, self.at, self.keys = octets, 0, []

    def take(self, count):
        if count > len(self.octets) - self.at:
            raise Invalid("the payload ends too early")
        self.at += count
        return self.octets[self.at - count : self.at]

    def varint(self):
        value = 0
        for shift in range(0, 70, 7):
            octet = self.take(1)[0]
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                if (octet == 0 and shift) or value >= 2**64:
                    break
                return value
        raise Invalid("a varint is not the shortest, or too large")

    def value(self, depth):
        head = self.take(1)[0]
        kind, argument = head >> 4, head & 15
        if argument == 15:
            argument += self.varint()
            if argument >= 2**64:
                raise Invalid("an argument is beyond 64 bits")
        if kind == 0 and argument < 3:
            return (None, False, True)[argument]
        if kind == 1:
            return argument
        if kind == 2 and argument < 2**63:
            return -1 - argument
        if kind in (3, 4) and argument == 0:
            is_double = kind == 3
            value, = struct.unpack("<d" if is_double else "<f", self.take(8 if is_double else 4))
            if math.isfinite(value):
                return value if is_double else Single(value)
        if kind == 5:
            return self.text(argument)
        if kind == 6:
            return bytes(self.take(argument))
        if kind in (7, 8) and depth < NESTING_MAX:
            # Each element takes an octet, and each member two.
            if argument * (kind - 6) > len(self.octets) - self.at:
                raise Invalid("the payload ends too early")
            if kind == 7:
                return [self.value(depth + 1) for _ in range(argument)]
            return members([(self.key(), self.value(depth + 1)) for _ in range(argument)])
        raise Invalid(f"{head:#04x} begins no value")

    def key(self):
        number = self.varint()
        if number % 2:
            if number // 2 >= len(self.keys):
                raise Invalid("a key that was not read")
            return self.keys[number // 2]
        key = self.text(number // 2)
        if len(self.keys) < 32:
            self.keys.append(key)
        return key

    def text(self, count):
        try:
            return self.take(count).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Invalid(str(error)) from None
