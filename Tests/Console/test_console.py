"""The console in a real browser, on a real cluster."""

import json
import re
import threading
import unittest

from cluster import Browser, Cluster, ask
from playwright.sync_api import expect

TOKEN = "a-token-of-the-tests-0123456789"
PREFS = "document/prefs"


def setUpModule():
    global cluster, browser, open_gateway, closed_gateway
    cluster = Cluster()
    unittest.addModuleCleanup(cluster.close)
    cluster.worker("alpha", "counter", PREFS)
    cluster.worker("beta", "counter", PREFS)
    open_gateway = cluster.gateway("counter", PREFS, name="open")
    closed_gateway = cluster.gateway("counter", PREFS, name="closed", token=TOKEN)
    browser = Browser()
    unittest.addModuleCleanup(browser.close)


class ConsoleTest(unittest.TestCase):
    def open(self, hash="#/", gateway=None, **options):
        page = browser.page((gateway or open_gateway)["http"], hash, **options)
        self.addCleanup(page.context.close)
        return page

    def unlock(self, hash="#/", gateway=None, token=TOKEN):
        page = self.open(hash, gateway or closed_gateway)
        page.get_by_label("Token", exact=True).fill(token)
        page.get_by_role("button", name="Open").click()
        return page


class Reading(ConsoleTest):
    def test_the_first_view_says_whether_it_is_well(self):
        page = self.open()
        expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        expect(page.locator(".tiles")).to_contain_text("Entries a second")
        expect(page.get_by_label("Sequencer", exact=True)).to_contain_text(cluster.address)
        self.assertEqual(page.faults, [])

    def test_nodes_stand_side_by_side(self):
        page = self.open("#/nodes")
        for name in ("alpha", "beta", "open"):
            card = page.get_by_role("article", name=name, exact=True)
            expect(card).to_contain_text("current")
            expect(card).to_contain_text(PREFS)
        self.assertEqual(page.faults, [])

    def test_a_state_changes_as_soon_as_somebody_dispatches(self):
        cluster.dispatch(PREFS, {"set": {"at": "/theme", "value": "light"}})
        page = self.open(f"#/stores/{PREFS}")
        row = page.get_by_role("treeitem").filter(has_text="theme")
        expect(row).to_contain_text('"light"')
        cluster.dispatch(PREFS, {"set": {"at": "/theme", "value": "dark"}})
        expect(row).to_contain_text('"dark"')
        expect(row).to_contain_text('was "light"')
        self.assertEqual(page.faults, [])

    def test_entries_are_filtered_paused_and_linked(self):
        page = self.open("#/entries?action=remove")
        expect(page.get_by_label("Action")).to_have_value("remove")
        cluster.dispatch(PREFS, {"set": {"at": "/gone", "value": 1}}, {"remove": {"at": "/gone"}})
        rows = page.locator(".entry")
        expect(rows.first).to_contain_text("remove")
        expect(rows.filter(has_text="/gone")).to_have_count(1)
        page.get_by_label("Action").fill("set")
        expect(rows.filter(has_text="/gone").first).to_contain_text("value: 1")
        self.assertIn("action=set", page.url)
        page.get_by_role("button", name="Pause").click()
        cluster.dispatch(PREFS, {"set": {"at": "/later", "value": 2}})
        expect(page.locator("#entries-note")).to_contain_text("newer entr")
        expect(rows.filter(has_text="/later")).to_have_count(0)
        page.get_by_role("button", name="Resume").click()
        expect(rows.filter(has_text="/later")).to_have_count(1)
        page.get_by_label("Store").fill("counter/shared")
        expect(rows.filter(has_text="/later")).to_have_count(0)
        cluster.dispatch("counter/shared", {"increment": {}})
        page.get_by_label("Action").fill("")
        expect(rows.first).to_contain_text("increment")
        self.assertEqual(page.faults, [])

    def test_a_refused_action_is_shown_with_its_reason(self):
        page = self.open("#/entries")
        expect(page.locator(".entry").first).to_be_visible()
        cluster.run("dispatch", PREFS, '{"remove":{"at":"/nowhere"}}', "--wait", "applied")
        row = page.locator(".entry").filter(has_text="/nowhere")
        expect(row).to_contain_text("refused")
        expect(row).to_contain_text("nothing is at")

    def test_a_state_without_code_is_shown_as_its_snapshot(self):
        worker = cluster.worker("w", "ledger", program="VaryingWorker")
        self.addCleanup(cluster.run, "drop", "ledger", "--yes")
        cluster.dispatch("ledger", {"add": {"amount": 7}})
        page = self.open("#/stores/ledger/shared")
        notice = page.get_by_role("alert")
        expect(notice).to_contain_text("This program does not have the code of ledger. There is no snapshot of it yet")
        expect(page.get_by_role("treeitem").filter(has_text="total")).to_contain_text("0")
        # A planned stop leaves a snapshot.
        cluster.stop(worker)
        expect(notice).to_contain_text("This is its snapshot at")
        expect(notice).to_contain_text("later entries are not applied")
        expect(page.get_by_role("treeitem").filter(has_text="total")).to_contain_text("7")
        expect(page.get_by_label("Time travel")).not_to_be_visible()
        page.goto(page.url.split("?")[0] + "?at=1")
        expect(page.get_by_role("alert")).to_contain_text("keeps no state of ledger/shared at or before 1")
        expect(page.get_by_role("tree")).not_to_be_visible()

    def test_the_sequencers_disk_and_its_bounds_are_shown(self):
        page = self.open()
        sequencer = page.get_by_label("Sequencer", exact=True)
        expect(sequencer).to_contain_text(re.compile(r"Free on its disk.*GiB"))
        expect(sequencer.get_by_role("meter", name="The log's size")).to_be_visible()
        expect(page.get_by_label("Bounds", exact=True)).to_contain_text("Bounds of the sequencer")
        self.assertEqual(page.faults, [])

    def test_alarms_of_the_sequencer_lead_to_the_runbook(self):
        def ail(route):
            answer = route.fetch()
            overview = answer.json()
            health = {"bounds": [{"name": "storesMax", "level": 19_000, "limit": 20_000}], "clockBehind": True, "freeBytes": 2**20, "held": "counter/shared holds the log", "limitBytes": 2**30, "slowed": True, "usedBytes": 2**30}
            overview["sequencer"]["health"] = health
            route.fulfill(response=answer, json=overview)

        page = self.open()
        page.route("**/api/v1/status", ail)
        for text, chapter in [
            ("The log is nearly full", "disk-full"), ("The log's disk is nearly full", "disk-full"), ("Actions are admitted slowly", "slow-nodes"),
            ("The sequencer's clock is wrong", "wrong-clock"), ("storesMax is nearly reached", "sizing"),
        ]:
            alarm = page.get_by_role("listitem").filter(has_text=text)
            expect(alarm.get_by_role("link", name="Runbook")).to_have_attribute("href", f"#/runbook/{chapter}")
        page.get_by_role("listitem").filter(has_text="The log is nearly full").get_by_role("link", name="Runbook").click()
        expect(page.get_by_role("heading", name="Disk full")).to_be_in_viewport()

    def test_an_entry_has_a_way(self):
        number = cluster.dispatch(PREFS, {"set": {"at": "/way", "value": True}})
        page = self.open("#/entries")
        page.locator(".entry").filter(has_text="/way").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"{number:,}")
        way = page.get_by_label("Its way")
        for step in ("Dispatched", "Ordered", "Durable", "Applied"):
            expect(way).to_contain_text(step)
        for name in ("alpha", "beta", "open"):
            expect(way.get_by_role("row").filter(has=page.get_by_text(name, exact=True))).to_contain_text("applied")

    def test_alarms_lead_to_the_runbook(self):
        done = cluster.run("freeze", "counter/shared")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.addCleanup(cluster.run, "thaw", "counter/shared")
        page = self.open()
        alarm = page.get_by_role("listitem").filter(has_text="counter/shared is frozen")
        alarm.get_by_role("link", name="Runbook").click()
        heading = page.get_by_role("heading", name="What to watch")
        expect(heading).to_be_in_viewport()
        expect(heading).to_be_focused()

    def test_what_is_not_there_is_said(self):
        page = self.open("#/stores/document/none")
        expect(page.get_by_role("alert").first).to_contain_text("There is no store document/none")
        page.goto(page.url.split("#")[0] + "#/nothing")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Nothing here")
        page.goto(page.url.split("#")[0] + "#/entries/x")
        expect(page.get_by_role("heading", level=1)).to_contain_text("No such entry")

    def test_a_page_comes_back_after_its_gateway(self):
        gateway = cluster.gateway("counter", PREFS, name="passing")
        http = gateway["http"]
        cluster.dispatch(PREFS, {"set": {"at": "/theme", "value": "before"}})
        page = self.open(f"#/stores/{PREFS}", gateway)
        expect(page.get_by_role("tree")).to_contain_text("theme")
        cluster.stop(gateway)
        expect(page.locator(".pulse")).to_contain_text("No answer")
        cluster.dispatch(PREFS, {"set": {"at": "/theme", "value": "after"}})
        again = cluster.gateway("counter", PREFS, name="passing", http=http)
        self.addCleanup(cluster.stop, again)
        expect(page.locator(".pulse")).to_contain_text("All is well")
        expect(page.get_by_role("treeitem").filter(has_text="theme")).to_contain_text('"after"')
        cluster.dispatch(PREFS, {"set": {"at": "/theme", "value": "live again"}})
        expect(page.get_by_role("treeitem").filter(has_text="theme")).to_contain_text('"live again"')

    def test_many_pages_share_one_sample(self):
        for _ in range(5):
            times = []
            threads = [threading.Thread(target=lambda: times.append(ask(open_gateway["http"], "/status")[1]["time"])) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            # They may fall on both sides of the end of a second.
            self.assertLessEqual(len(set(times)), 2)

    def test_under_load_the_page_samples_and_says_so(self):
        page = self.open("#/entries")
        expect(page.locator(".entry").first).to_be_visible()
        page.evaluate("""() => {
            window.gaps = []; let last = performance.now();
            const look = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(look); };
            requestAnimationFrame(look);
        }""")
        cluster.pour(PREFS, [{"increment": {"at": "/load", "by": 1}}] * 20_000)
        expect(page.locator("#entries-note")).to_contain_text("left out")
        self.assertLessEqual(page.locator(".entry").count(), 500)
        self.assertLess(max(page.evaluate("window.gaps")), 1500)
        # Once the load is over, every entry is shown. Until then, each may be among those that are left out.
        after = page.locator(".entry").filter(has_text="/after-load")
        for value in range(10):
            cluster.dispatch(PREFS, {"set": {"at": "/after-load", "value": value}})
            try:
                expect(after.first).to_be_visible(timeout=2_000)
                break
            except AssertionError:
                continue
        expect(after.first).to_be_visible()
        self.assertEqual(page.faults, [])


class Past(ConsoleTest):
    """A store whose every state is known: entry by entry, the count is 0, 1, 11, 111, and then an action is refused."""

    @classmethod
    def setUpClass(cls):
        cls.numbers = [cluster.dispatch(PREFS, {"set": {"at": "/past", "value": {"count": 0}}})]
        for amount in (1, 10, 100):
            cls.numbers.append(cluster.dispatch(PREFS, {"increment": {"at": "/past/count", "by": amount}}))

    def count(self, page):
        return page.get_by_role("treeitem").filter(has_text="count")

    def test_the_address_has_the_place_in_time(self):
        for number, value in zip(self.numbers, (0, 1, 11, 111)):
            page = self.open(f"#/stores/{PREFS}?at={number}")
            expect(self.count(page)).to_contain_text(f"count: {value}")
            expect(page.locator(".where[role]")).to_contain_text(f"At entry {number:,}")
            self.assertEqual(page.faults, [])

    def test_steps_go_from_entry_to_entry(self):
        page = self.open(f"#/stores/{PREFS}?at={self.numbers[2]}")
        expect(self.count(page)).to_contain_text("count: 11")
        expect(self.count(page)).to_contain_text("was 1")
        page.get_by_role("button", name="One entry back").click()
        expect(self.count(page)).to_contain_text("count: 1was 0")
        self.assertIn(f"at={self.numbers[1]}", page.url)
        page.keyboard.press("ArrowRight")
        expect(self.count(page)).to_contain_text("count: 11")
        page.get_by_role("button", name="One entry forward").click()
        expect(self.count(page)).to_contain_text("count: 111")
        expect(page.locator(".changes")).to_contain_text("/past/count")
        # A number between, and the end: the state is that of the entry before.
        page.keyboard.press("l")
        expect(page.locator(".where[role]")).to_contain_text("Live")
        self.assertNotIn("at=", page.url)
        cluster.dispatch(PREFS, {"set": {"at": "/other", "value": 1}})
        expect(page.get_by_role("tree")).to_contain_text("other")

    def test_the_slider_goes_to_any_entry(self):
        page = self.open(f"#/stores/{PREFS}")
        expect(page.locator(".moment").first).to_be_visible()
        page.get_by_label("Entry", exact=True).evaluate(
            "(slider, number) => { slider.value = number; slider.dispatchEvent(new Event('input')); }", self.numbers[1])
        expect(self.count(page)).to_contain_text("count: 1")
        expect(page.locator(".moment[aria-current=step]")).to_contain_text("increment")

    def test_without_an_entry_the_state_would_be_another(self):
        page = self.open(f"#/stores/{PREFS}?at={self.numbers[2]}")
        page.get_by_role("button", name="What would it be without this entry?").click()
        expect(page.get_by_role("heading", name="Without entry")).to_be_visible()
        expect(self.count(page)).to_contain_text("count: 101is 111")
        expect(page.locator(".effect")).to_contain_text("differ at one place")
        self.assertIn(f"without={self.numbers[2]}", page.url)
        self.assertEqual(page.faults, [])

    def test_an_entry_has_what_it_changed(self):
        page = self.open(f"#/entries/{self.numbers[2]}?store={PREFS}")
        expect(page.get_by_label("What it changed")).to_contain_text("/past/count")
        expect(page.get_by_label("What it changed")).to_contain_text("1")
        page.get_by_role("link", name="The state then").click()
        expect(self.count(page)).to_contain_text("count: 11")

    def test_a_place_that_is_not_there_is_said(self):
        page = self.open(f"#/stores/{PREFS}?at=999999999")
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.get_by_role("tree")).not_to_be_visible()
        page.get_by_role("button", name="Live").click()
        expect(page.get_by_role("tree")).to_contain_text("past")
        expect(page.get_by_role("alert")).to_have_count(0)
        page = self.open(f"#/stores/{PREFS}?without=999999999")
        expect(page.get_by_role("alert")).to_be_visible()


class Command(unittest.TestCase):
    def test_it_shows_what_there_is_and_creates_nothing(self):
        fresh = Cluster()
        self.addCleanup(fresh.close)
        console = fresh.start("console", "--connect", fresh.address)
        self.assertEqual(console["stores"], [])
        status = ask(console["http"], "/status")[1]
        self.assertEqual(status["sequencer"]["stores"], [])
        page = browser.page(console["http"], "#/entries")
        self.addCleanup(page.context.close)
        # It is given the entries, although it hosts nothing.
        fresh.worker("alpha", PREFS)
        fresh.dispatch(PREFS, {"set": {"at": "/theme", "value": "dark"}})
        expect(page.locator(".entry").filter(has_text="/theme")).to_have_count(1)
        fresh.stop(console)
        again = fresh.start("console", "--connect", fresh.address)
        self.assertEqual(again["stores"], [PREFS])
        self.assertRegex(again["http"], r"^127\.0\.0\.1:\d+$")


class Changing(ConsoleTest):
    def test_without_a_token_the_page_only_reads(self):
        page = self.open(f"#/stores/{PREFS}")
        expect(page.get_by_role("tree")).to_be_visible()
        expect(page.locator(".side")).to_contain_text("Read-only")
        expect(page.get_by_role("button", name="Freeze")).to_have_count(0)
        expect(page.get_by_role("button", name="Dispatch")).not_to_be_visible()
        status, problem = ask(open_gateway["http"], "/decisions", body=json.dumps({"freeze": PREFS}))
        self.assertEqual((status, problem["code"]), (403, "notPermitted"))

    def test_the_page_has_no_contents_before_the_token(self):
        page = self.open("#/stores", closed_gateway)
        expect(page.get_by_role("dialog")).to_contain_text("needs a token")
        self.assertNotIn("prefs", page.locator("main").inner_text())
        for path in ("/status", "/entries", f"/stores/{PREFS}", f"/stores/{PREFS}/events"):
            self.assertEqual(ask(closed_gateway["http"], path)[0], 401, path)
        self.assertEqual(ask(closed_gateway["http"], "/decisions", body="{}")[0], 401)

    def test_a_wrong_token_is_asked_for_again(self):
        page = self.unlock(token="no-token-of-this-gateway")
        expect(page.get_by_role("dialog")).to_contain_text("not accepted")
        page.get_by_label("Token", exact=True).fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        # It is kept for this tab, and for no other.
        page.reload()
        expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        self.assertEqual(page.evaluate("JSON.stringify(localStorage)").count(TOKEN), 0)

    def test_a_revoked_token_is_asked_for_again(self):
        gateway = cluster.gateway("counter", name="revoking", token=TOKEN)
        page = self.unlock(gateway=gateway)
        expect(page.get_by_role("heading", name="All is well")).to_be_visible()
        cluster.stop(gateway)
        again = cluster.gateway("counter", name="revoking", token="another-token-0123456789", http=gateway["http"])
        self.addCleanup(cluster.stop, again)
        expect(page.get_by_role("dialog")).to_contain_text("not accepted any more")

    def test_the_form_dispatches_and_tells_the_outcome(self):
        page = self.unlock(f"#/stores/{PREFS}")
        form = page.get_by_role("form", name="Dispatch an action")
        form.get_by_label("Action").select_option("set")
        form.get_by_label("at", exact=True).fill("/big")
        form.get_by_label("value").fill("not JSON")
        form.get_by_role("button", name="Dispatch").click()
        expect(form).to_contain_text("this is not any JSON")
        expect(form.get_by_label("value")).to_be_focused()
        form.get_by_label("value").fill("9007199254740993")
        form.get_by_role("button", name="Dispatch").click()
        expect(form).to_contain_text("Applied as entry")
        # No digit is lost, there and back.
        expect(page.get_by_role("treeitem").filter(has_text="big")).to_contain_text("9007199254740993")
        form.get_by_label("Action").select_option("remove")
        form.get_by_label("at", exact=True).fill("/not/there")
        form.get_by_role("button", name="Dispatch").click()
        expect(form).to_contain_text("refused")
        expect(form).to_contain_text("nothing is at")

    def test_the_way_of_an_action_from_this_page_has_its_times(self):
        page = self.unlock(f"#/stores/{PREFS}")
        form = page.get_by_role("form", name="Dispatch an action")
        form.get_by_label("Action").select_option("set")
        form.get_by_label("at", exact=True).fill("/sent")
        form.get_by_label("value").fill("1")
        form.get_by_role("button", name="Dispatch").click()
        form.get_by_role("link").click()
        way = page.get_by_label("Its way")
        expect(way).to_contain_text(re.compile(r"From this page, at \d\d:\d\d:\d\d\.\d{3} of this browser's clock"))
        expect(way).to_contain_text(re.compile(r"At \d\d:\d\d:\d\d\.\d{3} of the sequencer's clock"))
        expect(way).to_contain_text(re.compile(r"At the latest .* after the dispatch"))
        expect(way).to_contain_text("up to two seconds late")
        for name in ("alpha", "beta"):
            expect(way.get_by_role("row").filter(has=page.get_by_text(name, exact=True))).to_contain_text(re.compile(r"applied.* later"))
        # Of another action, this page does not know when it was dispatched.
        number = cluster.dispatch(PREFS, {"set": {"at": "/sent", "value": 2}})
        page.goto(page.url.split("#")[0] + f"#/entries/{number}?store={PREFS}")
        expect(way).to_contain_text("The log does not keep when")

    def test_a_decision_is_behind_a_question(self):
        page = self.unlock("#/stores/counter/shared")
        page.get_by_role("button", name="Freeze").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        self.assertFalse(self.is_frozen())
        page.get_by_role("button", name="Freeze").click()
        page.get_by_role("dialog").get_by_role("button", name="Freeze").click()
        expect(page.locator(".toast")).to_contain_text("Done, with entry")
        expect(page.locator(".conditions")).to_contain_text("frozen")
        self.assertTrue(self.is_frozen())
        page.get_by_role("button", name="Thaw").click()
        page.get_by_role("dialog").get_by_role("button", name="Thaw").click()
        expect(page.locator(".conditions")).not_to_contain_text("frozen")
        # A drop must be typed.
        page.get_by_role("button", name="Drop").click()
        drop = page.get_by_role("dialog").get_by_role("button", name="Drop")
        expect(drop).to_be_disabled()
        page.get_by_label("Type counter/shared to go on").fill("counter/shared")
        expect(drop).to_be_enabled()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)

    def is_frozen(self):
        stores = json.loads(cluster.run("status").stdout)["stores"]
        return next(store["frozen"] for store in stores if store["store"] == "counter/shared")


if __name__ == "__main__":
    unittest.main()
