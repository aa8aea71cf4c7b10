#!/usr/bin/env python3
"""A counter that is the same in every process.

    python3 counter.py --connect tcp://127.0.0.1:7400 add 5
    python3 counter.py increment
    python3 counter.py follow
"""

import argparse
import json
import sys

from conflux.client import Client, Ended, Rejected, Stopped, TooOld
from conflux.counter import Counter

STORE = "counter/shared"
ACTIONS = {"increment": {"increment": {}}, "decrement": {"decrement": {}}}

# Like those of `conflux`: see docs/command-line.md.
REJECTED, REFUSED, UNKNOWN, TIMED_OUT, TURNED_AWAY = 80, 81, 82, 83, 85


def tell(counter):
    print(json.dumps({"count": counter.state.count, "sequence": counter.last}), flush=True)


def dispatch(client, action, timeout):
    """Dispatches, and waits until the action has its outcome and is applied here."""
    counter = client.open(STORE, Counter(), timeout=timeout)
    added = client.dispatch(STORE, action)
    client.wait(lambda: added.outcome is not None, timeout)
    if added.outcome == "unknown":
        print("the sequencer forgot the session: it may be in the log, or not", file=sys.stderr)
        return UNKNOWN
    if added.sequence is None:
        rejection = added.outcome["rejection"]
        print(f"rejected: {rejection['code']}: {rejection['message']}", file=sys.stderr)
        return REJECTED
    client.wait(lambda: counter.position >= added.sequence or counter.stopped, timeout)
    if counter.stopped:
        raise Stopped(counter.stopped[1])
    if added.sequence in counter.refusals:
        print(f"refused: {counter.refusals[added.sequence]}", file=sys.stderr)
        return REFUSED
    tell(counter)
    return 0


def follow(client, timeout):
    counter = client.open(STORE, Counter(), lambda replica, _: tell(replica), timeout)
    tell(counter)
    while not counter.is_over:
        client.step(1.0)
        if counter.stopped:
            raise Stopped(counter.stopped[1])
        if counter.failure:
            raise Rejected(counter.failure)
    return 0


def main():
    parser = argparse.ArgumentParser(description="A counter that is the same in every process.")
    parser.add_argument("--connect", metavar="ADDRESS", default="tcp://127.0.0.1:7400")
    parser.add_argument("--name", help="the node's name, which no other live node may have")
    parser.add_argument("--timeout", type=float, default=5.0, metavar="SECONDS")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ACTIONS:
        commands.add_parser(name)
    commands.add_parser("add").add_argument("amount", type=int)
    commands.add_parser("follow")
    arguments = parser.parse_args()

    try:
        with Client(arguments.connect, arguments.name) as client:
            if arguments.command == "follow":
                return follow(client, arguments.timeout)
            action = ACTIONS.get(arguments.command) or {"add": {"amount": arguments.amount}}
            return dispatch(client, action, arguments.timeout)
    except TimeoutError as error:
        print(error, file=sys.stderr)
        return TIMED_OUT
    except (Ended, Rejected, Stopped, TooOld) as error:
        print(error, file=sys.stderr)
        return TURNED_AWAY
    except KeyboardInterrupt:
        return 0 if arguments.command == "follow" else 130


if __name__ == "__main__":
    sys.exit(main())
