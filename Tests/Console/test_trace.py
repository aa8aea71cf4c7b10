"""An editing trace, replayed at 1,000 operations a second, is followed in the browser, and then stepped back."""

import json
import pathlib
import subprocess
import sys
import time
import unittest

from cluster import CONFLUX, ROOT, Browser, Cluster, ask
from playwright.sync_api import expect

sys.path.append(str(pathlib.Path(ROOT) / "examples/gateway"))
from editing import Text, text as text_of, trace  # noqa: E402

STORE = "document/paper"
RATE = 1_000
SECONDS_MAX = 120


class Trace(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster()
        self.addCleanup(self.cluster.close)
        self.gateway = self.cluster.gateway(STORE)
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def replay(self, actions):
        """Dispatches the actions at a rate, and waits for the last one."""
        program = subprocess.Popen(
            [CONFLUX, "dispatch", STORE, "-", "--connect", self.cluster.address], stdin=subprocess.PIPE, text=True, stderr=subprocess.PIPE)
        began = time.monotonic()
        for number, action in enumerate(actions):
            late = began + number / RATE - time.monotonic()
            if late > 0.01:
                program.stdin.flush()
                time.sleep(late)
            program.stdin.write(json.dumps(action) + "\n")
        _, words = program.communicate(timeout=SECONDS_MAX)
        self.assertEqual(program.returncode, 0, words)
        return len(actions) / (time.monotonic() - began)

    def number_of(self, operation):
        """The number of the entry of an operation."""
        after, seen = 0, 0
        while True:
            status, page = ask(self.gateway["http"], f"/stores/{STORE}/entries?after={after}&limit=1000")
            self.assertEqual(status, 200, page)
            entries = page["entries"]
            if operation < seen + len(entries):
                return entries[operation - seen]["sequence"]
            seen += len(entries)
            after = entries[-1]["sequence"]

    def test_it_is_followed_and_stepped_back(self):
        text, actions, counts = Text(), [], []
        operations = list(trace())
        middle, known = len(operations) // 2, None
        for patches in operations:
            changes = {}
            for patch in patches:
                changes.update(text.edit(*patch))
            actions.append({"merge": {"at": "/lines", "value": changes}})
            counts.append(len(text.lines))
            if len(counts) == middle + 1:
                known = (str(text), text.lines[0])
        page = self.browser.page(self.gateway["http"], f"#/stores/{STORE}")
        expect(page.get_by_role("tree")).to_be_visible()
        page.evaluate("""() => {
            window.longest = 0; let last = performance.now();
            const look = (now) => { window.longest = Math.max(window.longest, now - last); last = now; requestAnimationFrame(look); };
            requestAnimationFrame(look);
        }""")
        rate = self.replay(actions)
        lines = page.get_by_role("treeitem").filter(has_text="lines:").first
        expect(lines).to_contain_text(f"{{ {counts[-1]:,} }}", timeout=SECONDS_MAX * 1000)
        longest = page.evaluate("window.longest")
        print(f"{len(actions)} operations at {rate:.0f} a second; the longest time without a frame was {longest:.0f} ms", file=sys.stderr)
        self.assertLess(longest, 2_000)
        number = self.number_of(middle)
        page.goto(f"http://{self.gateway['http']}/#/stores/{STORE}?at={number}")
        expect(page.locator(".where[role]")).to_contain_text("At entry")
        expect(lines).to_contain_text(f"{{ {counts[middle]:,} }}")
        if known[1]:  # the text that the page shows, as far as its first line
            lines.click()
            expect(page.get_by_role("treeitem").nth(1)).to_contain_text(known[1])
        status, past = ask(self.gateway["http"], f"/stores/{STORE}?at={number}")
        self.assertEqual((status, text_of(past["state"])), (200, known[0]))
