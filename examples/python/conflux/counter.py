"""The state `counter`: a whole number of 64 bits, counted up and down."""

from .coding import Invalid, canonical, decode

LOWEST, HIGHEST = -(2**63), 2**63 - 1


class Refused(Exception):
    """An action that changes nothing, in every replica. Its text says why."""


class Counter:
    """A replica of a counter.

    Every state has the members of this one: a `name`, a `version` of its schema, `load` and `encode`
    for the whole state, and `apply` for one action.
    """

    name = "counter"
    version = 1

    def __init__(self, count=0):
        self.count = count

    def encode(self):
        """The state in canonical JSON. Equal states have the same octets."""
        return canonical({"count": self.count})

    def load(self, octets, coding):
        value = decode(octets, coding)
        count = whole(value.get("count")) if isinstance(value, dict) and len(value) == 1 else None
        if count is None:
            raise Invalid(f"{value!r} is no counter")
        self.count = count

    def apply(self, payload, coding):
        """Applies an action, or refuses it and changes nothing.

        Raises:
            Refused: It is not an action of a counter, or the count would not fit into 64 bits.
        """
        try:
            amount = amount_of(decode(payload, coding))
        except Invalid as error:
            raise Refused(str(error)) from None
        if not LOWEST <= self.count + amount <= HIGHEST:
            raise Refused(
                f"adding {amount} to {self.count} would leave the range from {LOWEST} to {HIGHEST}")
        self.count += amount


def amount_of(action):
    """What an action adds. The action is an object with one member, and has only its own fields."""
    if isinstance(action, dict) and len(action) == 1:
        (name, fields), = action.items()
        if name in ("increment", "decrement") and fields == {}:
            return 1 if name == "increment" else -1
        if name == "add" and isinstance(fields, dict) and list(fields) == ["amount"]:
            amount = whole(fields["amount"])
            if amount is not None:
                return amount
    raise Refused("expected one of: add, decrement, increment")


def whole(value):
    """A whole number of 64 bits, even if it is written as 5.0 or 5e0; None for anything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and LOWEST <= value <= HIGHEST else None
