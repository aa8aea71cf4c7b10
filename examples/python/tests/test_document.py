"""`docs/protocol.md` is complete, and describes the frames correctly."""

import json
import os
import re
import unittest

from conflux import wire

from .cluster import TOP
from .grammar import CORE, Matcher, Parser, document, names_in, rule_texts

ROW = re.compile(r"^\| (0x[0-9A-F]{2}|\d+) \| `(\w+)` \|(.*)\|$", re.MULTILINE)


def golden_frames():
    with open(os.path.join(TOP, "docs/golden-frames.json"), encoding="utf-8") as file:
        return json.load(file)


class DocumentTests(unittest.TestCase):
    def setUp(self):
        self.text = document()
        self.list = [Parser(text).rule() for text in rule_texts(self.text)]
        self.rules = dict(self.list)

    def kinds(self):
        """The tables of kinds: number, name, whether it is reserved."""
        return [
            (int(number, 16), name, "reserved" in rest)
            for number, name, rest in ROW.findall(self.text) if number.startswith("0x")]

    def test_every_rule_that_is_named_is_defined_once(self):
        self.assertEqual(len(self.list), len(self.rules))
        for name, node in self.list:
            with self.subTest(rule=name):
                self.assertEqual(names_in(node) - set(self.rules) - set(CORE), set())

    def test_every_rule_is_a_part_of_a_frame_of_a_payload_or_of_what_is_loaded(self):
        reached, open_ = set(), ["frame", "compact", "aside", "timer-request", "lease-request"]
        while open_:
            name = open_.pop()
            if name not in reached and name in self.rules:
                reached.add(name)
                open_ += names_in(self.rules[name])
        self.assertEqual(set(self.rules) - reached, set())

    def test_every_kind_that_is_not_reserved_has_a_rule_and_is_a_message(self):
        spoken = {name.lower() for _, name, is_reserved in self.kinds() if not is_reserved}
        messages = names_in(self.rules["message"])
        self.assertEqual(
            set().union(*(names_in(self.rules[group]) for group in messages)), spoken)

    def test_the_client_has_the_kinds_of_the_tables(self):
        self.assertEqual(
            [(number, kind.name, kind.form is None) for number, kind in wire.KINDS.items()],
            self.kinds())

    def test_the_client_has_the_codes_of_the_tables(self):
        columns = {}
        for title, body in re.findall(r"^\| code \| (\w+) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)",
                                      self.text, re.MULTILINE):
            columns[title] = {int(number): name for number, name, _ in ROW.findall(body)}
        for title, form in (
            ("bye", wire.BYE_CODE), ("rejection", wire.REJECTION_CODE), ("failure", wire.FAILURE)
        ):
            self.assertEqual(
                {number: name for number, (name, _) in form.by_number.items()}, columns[title])

    def test_the_client_has_the_events_of_the_table(self):
        body = re.search(r"^\| number \| event \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", self.text,
                         re.MULTILINE)[1]
        rows = [(int(number), name, "reserved" in rest) for number, name, rest in ROW.findall(body)]
        self.assertEqual(
            [(number, name) for number, (name, _) in wire.EVENT.by_number.items()],
            [(number, name) for number, name, is_reserved in rows if not is_reserved])
        # A rule has the name of its kind.
        alternatives, extensions = self.rules["event"][1][0][1]
        self.assertEqual(extensions, ("repeat", 0, None, ("rule", "extension")))
        self.assertEqual(
            names_in(alternatives),
            {name.lower() for _, name, is_reserved in rows if not is_reserved})

    def test_every_golden_frame_is_one_of_the_grammar(self):
        for golden in golden_frames():
            with self.subTest(golden["name"]):
                octets = bytes.fromhex(golden["frame"])
                matcher = Matcher(self.rules, octets)
                self.assertEqual(matcher.ends(("rule", "header"), 0), {24})
                message = ("all", [
                    ("rule", golden["kind"].lower()), ("repeat", 0, None, ("rule", "extension"))])
                self.assertIn(len(octets), matcher.ends(message, 24))
                cut = Matcher(self.rules, octets[:-1])
                self.assertNotIn(len(octets) - 1, cut.ends(message, 24))

    def test_a_rule_that_is_missing_is_found(self):
        text = "    a = 1*b\n      / c\n    b = OCTET"
        rules = dict(Parser(rule).rule() for rule in rule_texts(text))
        named = set().union(*map(names_in, rules.values()))
        self.assertEqual(named - set(rules) - set(CORE), {"c"})


if __name__ == "__main__":
    unittest.main()
