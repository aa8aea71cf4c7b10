"""What needs somebody, on real clusters: differing and stopped replicas, standbys, and what the page lets decide."""

import json
import shutil
import unittest

from cluster import Browser, Cluster
from playwright.sync_api import expect

TOKEN = "a-token-of-the-tests-0123456789"


def setUpModule():
    global browser
    browser = Browser()
    unittest.addModuleCleanup(browser.close)


class Trouble(unittest.TestCase):
    def cluster(self, **options):
        cluster = Cluster(**options)
        self.addCleanup(cluster.close)
        return cluster

    def open(self, gateway, hash="#/"):
        page = browser.page(gateway["http"], hash)
        self.addCleanup(page.context.close)
        return page

    def unlock(self, gateway, hash="#/"):
        page = self.open(gateway, hash)
        page.get_by_label("Token", exact=True).fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        return page

    def decide(self, page, button):
        """Presses a button, refuses what it asks, and then confirms it."""
        for answer in ("Cancel", button.inner_text()):
            button.click()
            page.get_by_role("dialog").get_by_role("button", name=answer).click()

    def alarm(self, page, text, chapter):
        alarm = page.get_by_role("listitem").filter(has_text=text)
        expect(alarm.get_by_role("link", name="Runbook")).to_have_attribute("href", f"#/runbook/{chapter}")
        return alarm

    def test_a_replica_that_differs_is_shown_with_the_path(self):
        cluster = self.cluster()
        for name in ("alpha", "unordered"):
            cluster.worker(name, "wordlist", program="VaryingWorker")
        gateway = cluster.gateway("counter")
        page = self.open(gateway)
        expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        cluster.pour("wordlist", [{"add": {"padding": "x" * 8192, "word": f"w{index}"}} for index in range(80)])
        alarm = self.alarm(page, "wordlist/shared diverged", "divergence")
        expect(alarm).to_contain_text("first at /chosen/0")
        expect(alarm).to_contain_text("unordered")
        page.goto(f"http://{gateway['http']}/#/nodes")
        expect(page.get_by_role("article", name="unordered", exact=True)).to_contain_text("/chosen/0")
        self.assertEqual(page.faults, [])
        page.goto(f"http://{gateway['http']}/#/stores/wordlist/shared")
        expect(page.locator(".conditions")).to_contain_text("diverged")

    def test_a_stopped_store_is_shown_and_its_entry_skipped(self):
        cluster = self.cluster()
        gateway = cluster.gateway("counter", token=TOKEN)

        def mine(event="ready"):
            return cluster.worker("w", "mine", "tally", program="TrappingWorker", options=["--journal", cluster.path("journal")], event=event)

        worker = mine()
        done = cluster.run("dispatch", "mine", "explode")
        number = json.loads(done.stdout)["sequence"]
        cluster.await_end(worker)
        cluster.await_end(mine(event=None))
        worker = mine()
        page = self.unlock(gateway)
        alarm = self.alarm(page, "mine/shared stopped in w", "poisoned-entry")
        expect(alarm).to_contain_text(f"before entry {number}")
        self.decide(page, alarm.get_by_role("button", name="Skip the entry"))
        expect(page.locator(".toast")).to_contain_text("Done, with entry")
        entries = [json.loads(line) for line in cluster.run("log").stdout.splitlines()]
        self.assertEqual([entry["skipped"] for entry in entries if entry.get("kind") == "skipped"], [number])
        page.goto(f"http://{gateway['http']}/#/nodes")
        expect(page.get_by_role("article").filter(has_text=f"mine/shared stopped before entry {number}")).to_have_count(1)
        page.goto(f"http://{gateway['http']}/#/")
        cluster.stop(worker)
        mine()
        expect(page.get_by_role("heading", name="All is well")).to_be_visible()

    def test_a_store_is_dropped_behind_its_name(self):
        cluster = self.cluster()
        cluster.worker("alpha", "document/old", "counter")
        page = self.unlock(cluster.gateway("counter", token=TOKEN), "#/stores/document/old")
        page.get_by_role("button", name="Drop").click()
        page.get_by_label("Type document/old to go on").fill("document/old")
        page.get_by_role("dialog").get_by_role("button", name="Drop").click()
        expect(page.locator(".toast")).to_contain_text("Done, with entry")
        stores = [store["store"] for store in json.loads(cluster.run("status").stdout)["stores"]]
        self.assertEqual(stores, ["counter/shared"])

    @unittest.skipUnless(shutil.which("etcd"), "etcd is not installed: script/bootstrap --etcd")
    def test_a_standby_is_shown_and_takes_over(self):
        cluster = self.cluster(etcd=True)
        gateway = cluster.gateway("counter", token=TOKEN)
        page = self.unlock(gateway)
        self.alarm(page, "No standby", "standbys")
        first, standby = cluster.address, cluster.standby()
        place = page.locator(".places li").filter(has_text=standby)
        expect(place).to_contain_text("stands by")
        expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        self.decide(page, place.get_by_role("button", name="Hand over"))
        expect(page.locator(".toast")).to_contain_text("takes over")
        expect(place).to_contain_text("serves")
        expect(page.locator(".places li").filter(has_text=first)).to_contain_text("stands by")


if __name__ == "__main__":
    unittest.main()
