"""The forms of octets: numbers, texts, lists, alternatives.

A form reads a value from octets, and writes it. Values are in the value form of `docs/protocol.md`,
except that octets are `bytes`. To write octets, their hexadecimal digits may be given, too.
A violation of the grammar is `Malformed` on reading, and `ValueError` on writing, since it is our
own defect then.
"""

import re


class Malformed(Exception):
    """Octets that break the grammar."""


class Unsupported(Exception):
    """Octets that keep to the grammar, but have something that this program is too old to understand."""


NUMBER_MAX = 2**63 - 1
FRAME_BYTES_MAX = 67_108_864
LIST_MAX = 65_536
TEXT_BYTES_MAX = 4_096
NAME = re.compile(r"[a-z0-9._-]{1,64}", re.ASCII)
#: An extension with this tag or a higher one must be understood.
CRITICAL_TAG = 0x8000


class Reader:
    """Octets, and the position of the reader. It never reads past the end."""

    def __init__(self, octets, at=0, end=None):
        self.octets, self.at, self.end = octets, at, len(octets) if end is None else end

    @property
    def left(self):
        return self.end - self.at

    def take(self, count):
        if count > self.left:
            raise Malformed(f"{count} octets are wanted, {self.left} are left")
        self.at += count
        return bytes(self.octets[self.at - count : self.at])

    def part(self, count):
        """A reader of the next octets, which must all be read: see `finish`."""
        if count > self.left:
            raise Malformed(f"{count} octets are wanted, {self.left} are left")
        self.at += count
        return Reader(self.octets, self.at - count, self.at)

    def finish(self):
        if self.left:
            raise Malformed(f"{self.left} octets too many")


class Form:
    """A form of values. `least` is the smallest number of octets in a value."""

    least = 1

    def read(self, reader):
        raise NotImplementedError

    def write(self, value, out):
        raise NotImplementedError


class Number(Form):
    """An unsigned number of a fixed number of octets, within bounds, or a signed one."""

    def __init__(self, size, low=0, high=None, signed=False):
        self.least, self.low, self.signed = size, low, signed
        self.high = high if high is not None else 2 ** (8 * size - (1 if signed else 0)) - 1

    def read(self, reader):
        value = int.from_bytes(reader.take(self.least), "little", signed=self.signed)
        if not self.low <= value <= self.high:
            raise Malformed(f"{value} is not from {self.low} to {self.high}")
        return value

    def write(self, value, out):
        if type(value) is not int or not self.low <= value <= self.high:
            raise ValueError(f"{value!r} is not from {self.low} to {self.high}")
        out += value.to_bytes(self.least, "little", signed=self.signed)


class Variable(Form):
    """A number of at most 32 bits in groups of 7 bits. Only the shortest form is valid."""

    def read(self, reader):
        value = 0
        for shift in range(0, 35, 7):
            octet = reader.take(1)[0]
            value |= (octet & 0x7F) << shift
            if octet < 0x80:
                if (octet == 0 and shift) or value >= 2**32:
                    raise Malformed("a varint is not the shortest, or has more than 32 bits")
                return value
        raise Malformed("a varint has more than 5 octets")

    def write(self, value, out):
        if not 0 <= value < 2**32:
            raise ValueError(f"{value} has more than 32 bits")
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)


class Flag(Form):
    def read(self, reader):
        octet = reader.take(1)[0]
        if octet > 1:
            raise Malformed(f"{octet} is neither no nor yes")
        return octet == 1

    def write(self, value, out):
        out.append(1 if value else 0)


class Identifier(Form):
    """16 octets, as 32 hexadecimal digits."""

    least = 16

    def read(self, reader):
        return reader.take(16).hex()

    def write(self, value, out):
        octets = bytes.fromhex(value)
        if len(octets) != 16:
            raise ValueError(f"{value!r} does not have 32 hexadecimal digits")
        out += octets


class DigestForm(Form):
    """A hash of 32 octets, as hexadecimal digits."""

    least = 32

    def read(self, reader):
        return reader.take(self.least).hex()

    def write(self, value, out):
        octets = bytes.fromhex(value)
        if len(octets) != self.least:
            raise ValueError(f"{value!r} does not have 64 hexadecimal digits")
        out += octets


class Blob(Form):
    """Octets after their number."""

    least = 4

    def read(self, reader):
        return reader.take(U32.read(reader))

    def write(self, value, out):
        octets = octets_of(value)
        U32.write(len(octets), out)
        out += octets


class Text(Form):
    """At most 4,096 octets of UTF-8 after their number."""

    least = 2

    def read(self, reader):
        count = U16.read(reader)
        if count > TEXT_BYTES_MAX:
            raise Malformed(f"a text has {count} octets")
        try:
            return reader.take(count).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Malformed(f"a text is not UTF-8: {error}") from None

    def write(self, value, out):
        octets = value.encode("utf-8")
        if len(octets) > TEXT_BYTES_MAX:
            raise ValueError(f"a text has {len(octets)} octets")
        U16.write(len(octets), out)
        out += octets


class Name(Form):
    least = 2

    def read(self, reader):
        octets = reader.take(U8.read(reader))
        value = octets.decode("latin-1")
        if not NAME.fullmatch(value):
            raise Malformed(f"{octets!r} is no name")
        return value

    def write(self, value, out):
        if not NAME.fullmatch(value):
            raise ValueError(f"{value!r} is no name: 1 to 64 of a-z 0-9 . _ -")
        out.append(len(value))
        out += value.encode("ascii")


class Store(Form):
    """A state and an instance of it: `counter/shared`."""

    least = 4

    def read(self, reader):
        return f"{NAMED.read(reader)}/{NAMED.read(reader)}"

    def write(self, value, out):
        state, _, instance = value.partition("/")
        NAMED.write(state, out)
        NAMED.write(instance, out)


class Target(Form):
    """`counter/shared`, a store; `counter/*`, every store of a state; `event:reset`, an event;
    `event:reset:counter,document`, an event with the states that handle it."""

    least = 3

    def read(self, reader):
        kind = U8.read(reader)
        if kind == 1:
            return STORE.read(reader)
        if kind == 2:
            return NAMED.read(reader) + "/*"
        if kind == 3:
            return "event:" + NAMED.read(reader)
        if kind == 4:
            event, states = NAMED.read(reader), List(NAMED).read(reader)
            if states:
                return f"event:{event}:{','.join(states)}"
        raise Malformed(f"{kind} is no kind of target")

    def write(self, value, out):
        if value.startswith("event:"):
            _, event, *states = value.split(":")
            out.append(4 if states else 3)
            NAMED.write(event, out)
            if states:
                List(NAMED).write(states[0].split(","), out)
        elif value.endswith("/*"):
            out.append(2)
            NAMED.write(value.removesuffix("/*"), out)
        else:
            out.append(1)
            STORE.write(value, out)


class Optional(Form):
    """Nothing, or a value."""

    def __init__(self, form):
        self.form = form

    def read(self, reader):
        return self.form.read(reader) if FLAG.read(reader) else None

    def write(self, value, out):
        FLAG.write(value is not None, out)
        if value is not None:
            self.form.write(value, out)


class List(Form):
    """Values after their number, which is a `u32` by default."""

    def __init__(self, form, most=LIST_MAX, count=None):
        self.form, self.most = form, most
        self.count = count or U32
        self.least = self.count.least

    def read(self, reader):
        count = self.count.read(reader)
        if count > self.most or count * self.form.least > reader.left:
            raise Malformed(f"{count} elements are too many")
        return [self.form.read(reader) for _ in range(count)]

    def write(self, values, out):
        if len(values) > self.most:
            raise ValueError(f"{len(values)} elements are too many")
        self.count.write(len(values), out)
        for value in values:
            self.form.write(value, out)


class Record(Form):
    """Consecutive fields: `Record(life=NUMBER, version=U32)`.

    A field without a name is called by its position: `Record(("0", STORE), ("node", NAMED))`.
    """

    def __init__(self, *fields, **named):
        self.fields = (*fields, *named.items())
        self.least = sum(form.least for _, form in self.fields)

    def read(self, reader):
        return {name: form.read(reader) for name, form in self.fields}

    def write(self, value, out):
        names = [name for name, _ in self.fields]
        if sorted(value) != sorted(names):
            raise ValueError(f"the fields {sorted(value)} are not {names}")
        for name, form in self.fields:
            form.write(value[name], out)


class Choice(Form):
    """One of several, by a number: `{1: "status", 2: ("observe", FORM)}`.

    An alternative without a value is its name; any other one is `{"observe": value}`.
    """

    def __init__(self, alternatives, tag=None):
        self.tag = tag or U8
        self.least = self.tag.least
        pairs = {
            number: pair if isinstance(pair, tuple) else (pair, None)
            for number, pair in alternatives.items()
        }
        self.by_number = pairs
        self.by_name = {name: (number, form) for number, (name, form) in pairs.items()}

    def read(self, reader):
        number = self.tag.read(reader)
        if number not in self.by_number:
            return self.unknown(number)
        name, form = self.by_number[number]
        return name if form is None else {name: form.read(reader)}

    def unknown(self, number):
        raise Malformed(f"{number} is none of {sorted(self.by_number)}")

    def write(self, value, out):
        name = value if isinstance(value, str) else next(iter(value), None)
        if name not in self.by_name:
            raise ValueError(f"{name!r} is none of {sorted(self.by_name)}")
        number, form = self.by_name[name]
        self.tag.write(number, out)
        if form is not None:
            form.write(value[name], out)


class Code(Choice):
    """A number with a meaning. An unknown one stays a number, since later versions have more."""

    def unknown(self, number):
        return number

    def write(self, value, out):
        if type(value) is int:
            self.tag.write(value, out)
        else:
            super().write(value, out)


class Sized(Form):
    """A value after its length in octets, all of which belong to it."""

    least = 4

    def __init__(self, form):
        self.form = form

    def read(self, reader):
        part = reader.part(U32.read(reader))
        value = self.form.read(part)
        part.finish()
        return value

    def write(self, value, out):
        inner = bytearray()
        self.form.write(value, inner)
        U32.write(len(inner), out)
        out += inner


def octets_of(value):
    return bytes.fromhex(value) if isinstance(value, str) else bytes(value)


def extensions(reader, known=None):
    """The extensions in the remaining octets, with the tag and the reader of each. One that must be
    understood is `Unsupported`, unless its tag is known."""
    while reader.left:
        tag = U16.read(reader)
        body = reader.part(U32.read(reader))
        if tag >= CRITICAL_TAG and tag != known:
            raise Unsupported(f"the extension {tag:#06x}")
        yield tag, body


def skip_extensions(reader):
    """Reads extensions to the end, and ignores their contents."""
    for _ in extensions(reader):
        pass


U8, U16, U32, U64 = Number(1), Number(2), Number(4), Number(8)
I64 = Number(8, low=-(2**63), signed=True)
NUMBER = Number(8, high=NUMBER_MAX)
POSITIVE = Number(8, low=1, high=NUMBER_MAX)
COUNT = Number(4, low=1)
VARINT, FLAG, ID, BLOB, TEXT, NAMED = Variable(), Flag(), Identifier(), Blob(), Text(), Name()
DIGEST = DigestForm()
STORE, TARGET = Store(), Target()
