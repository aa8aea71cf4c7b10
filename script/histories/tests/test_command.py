"""The command: what it reads, what it prints, and how it ends."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

COMMAND = Path(__file__).resolve().parent.parent / "check-history"


def run(text, *arguments):
    return subprocess.run(
        [sys.executable, str(COMMAND), *(arguments or ("-",))],
        input=text, capture_output=True, text=True, check=False,
    )


def line(**fields):
    return json.dumps({"process": "p", "begin": 1, "end": 2, "outcome": "ok", **fields}) + "\n"


class CommandTests(unittest.TestCase):
    def test_the_sample_of_the_document_is_true(self):
        page = (COMMAND.parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
        lines = [text.strip() for text in page.splitlines() if text.startswith("    ")]
        history = [text for text in lines if text.startswith('{"process"')]
        shown = lines[lines.index("$ script/histories/check-history history.ndjson") + 1]
        self.assertEqual(run("\n".join(history)).stdout, shown + "\n")

    def test_an_orderly_history_ends_with_0(self):
        outcome = run(line(appends={"a": [1]}) + "\n" + line(reads={"a": []}))
        self.assertEqual((outcome.returncode, outcome.stderr), (0, ""))
        self.assertEqual(
            outcome.stdout, "2 operations (2 ok, 0 fail, 0 unknown): no anomaly\n")

    def test_an_anomaly_is_explained_and_ends_with_1(self):
        outcome = run(
            line(appends={"a": [1]}) + line(begin=3, end=4, reads={"a": []}, kind="read"))
        self.assertEqual(outcome.returncode, 1)
        for part in (
            "lost append:\n",
            "line 2: read of p (3–4): read a []\n",
            "line 1 must be before line 2: the former had ended when the latter began (process)",
        ):
            self.assertIn(part, outcome.stdout)

    def test_what_is_no_history_ends_with_65(self):
        for text, reason in (
            ("{", "line 1 is no JSON"),
            ("[]", "line 1 is no object"),
            (line(outcome="maybe"), "the outcome is ok, fail or unknown"),
            (line(begin=5), "line 1 ends before it begins"),
            (line(begin=True), "line 1 has no begin, or a wrong one: True"),
            (line(reads={"a": 1}), "the reads of a are no list"),
            (line(appends={"a": [1]}) * 2, "lines 1 and 2 both append 1 to a"),
        ):
            outcome = run(text)
            self.assertEqual((outcome.returncode, outcome.stdout), (65, ""), text)
            self.assertIn(reason, outcome.stderr)

    def test_it_needs_one_file(self):
        self.assertEqual(run("", "a", "b").returncode, 64)
        self.assertEqual(run("", "/nowhere/at/all").returncode, 65)


if __name__ == "__main__":
    unittest.main()
