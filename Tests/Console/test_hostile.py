"""Names and values of people who mean ill, and values that are large."""

import json
import unittest

from cluster import SECONDS, Browser, Cluster, ask
from playwright.sync_api import expect

STORE = "document/hostile"
SCRIPT = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>"
# Turns the order of what follows it.
OVERRIDE = "\u202egnp.exe\u2066\u200b"


def setUpModule():
    global cluster, browser, gateway
    cluster = Cluster()
    unittest.addModuleCleanup(cluster.close)
    gateway = cluster.gateway(STORE, "document/large")
    browser = Browser()
    unittest.addModuleCleanup(browser.close)


class Hostile(unittest.TestCase):
    def open(self, hash, **options):
        page = browser.page(gateway["http"], hash, **options)
        self.addCleanup(page.context.close)
        return page

    def check(self, page):
        self.assertIsNone(page.evaluate("window.hacked ?? null"))
        self.assertEqual(page.locator("main img, main script, main iframe").count(), 0)
        self.assertEqual(page.faults, [])

    def test_names_and_values_are_text_and_nothing_else(self):
        value = {SCRIPT: SCRIPT, OVERRIDE: OVERRIDE, "__proto__": {"polluted": True}, "a" * 5_000: "b" * 5_000, "": None}
        cluster.dispatch(STORE, {"set": {"at": "", "value": value}})
        refused = cluster.run("dispatch", STORE, json.dumps({"remove": {"at": "/" + SCRIPT.replace("~", "~0").replace("/", "~1") + "2"}}), "--wait", "applied")
        self.assertNotEqual(refused.returncode, 0)
        page = self.open(f"#/stores/{STORE}")
        tree = page.get_by_role("tree")
        expect(tree).to_contain_text("<img src=x onerror=")
        # What would be invisible is shown by its number.
        expect(tree).to_contain_text("⟨U+202E⟩gnp.exe⟨U+2066⟩⟨U+200B⟩")
        expect(tree).to_contain_text("__proto__")
        expect(tree).to_contain_text("(5,000 characters)")
        self.assertIsNone(page.evaluate("({}).polluted ?? null"))
        # Changes at such names, and to them.
        cluster.dispatch(STORE, {"set": {"at": "/__proto__/polluted", "value": "<b>yes</b>"}}, {"set": {"at": "/constructor", "value": SCRIPT}})
        expect(tree).to_contain_text("<b>yes</b>")
        expect(tree).to_contain_text("constructor")
        self.assertIsNone(page.evaluate("({}).polluted ?? null"))
        self.check(page)
        page.goto(page.url.split("#")[0] + "#/entries")
        expect(page.locator(".entry").filter(has_text="<img src=x").first).to_be_visible()
        self.check(page)
        page.goto(page.url.split("#")[0] + "#/")
        expect(page.get_by_label("Newest actions")).to_contain_text("<img src=x")
        self.check(page)

    def test_an_address_is_only_an_address(self):
        for hash in (f"#/stores/{SCRIPT}", "#/stores/%E0%A4%A", f"#/entries?store={SCRIPT}&q={SCRIPT}", f"#/runbook/{SCRIPT}", "#/entries/999999999999999999", f"#/stores/{STORE}?at=-1&without={SCRIPT}"):
            page = self.open(hash)
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            self.assertIsNone(page.evaluate("window.hacked ?? null"), hash)
            self.assertEqual(page.locator("main img, main script").count(), 0, hash)
            self.assertEqual([fault for fault in page.faults if "Failed to load resource" not in fault], [], hash)

    def test_a_large_state_is_shown_in_a_bounded_page(self):
        # 10 MB, in parts, since an action has at most 1 MiB.
        for part in range(12):
            cluster.pour("document/large", [{"set": {"at": f"/part{part}", "value": {f"k{index}": "v" * 80 for index in range(9_000)}}}])
        page = self.open("#/stores/document/large")
        tree = page.get_by_role("tree")
        # The gateway compares 10 MB for each change.
        expect(tree).to_contain_text("part11", timeout=6 * SECONDS * 1000)
        for part in range(12):
            page.get_by_role("treeitem").filter(has_text=f"part{part}:").first.click()
        expect(tree).to_contain_text("8,900 more: show 500")
        self.assertLess(page.locator(".row").count(), 1_600)
        for _ in range(3):
            page.get_by_role("treeitem").filter(has_text="more: show 500").first.click()
        expect(tree).to_contain_text("The tree shows 1,500 rows")
        self.assertLess(page.locator(".row").count(), 1_600)
        before = page.evaluate("performance.now()")
        cluster.dispatch("document/large", {"set": {"at": "/first", "value": 1}})
        expect(page.get_by_label("State").first).to_contain_text("MiB")
        self.assertLess(page.evaluate("performance.now()") - before, 15_000)
        self.check(page)

    def test_a_page_has_no_other_origin_and_no_inline_script(self):
        page = self.open("#/")
        policy = page.request.get(f"http://{gateway['http']}/").headers
        for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"):
            self.assertIn(part, policy["content-security-policy"])
        self.assertEqual(policy["x-content-type-options"], "nosniff")
        # The policy works: the browser refuses what it forbids.
        refused = page.evaluate("""() => { try { document.body.innerHTML = '<b>x</b>'; return false; } catch { return true; } }""")
        self.assertTrue(refused)
        self.assertEqual(page.evaluate("fetch('http://127.0.0.1:1/').then(() => 'sent', (error) => error.name)"), "TypeError")

    def test_pages_of_other_names_get_nothing(self):
        import urllib.request

        request = urllib.request.Request(f"http://{gateway['http']}/api/v1/status", headers={"Host": "attacker.example"})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        self.assertEqual(refused.exception.code, 421)
        request = urllib.request.Request(f"http://{gateway['http']}/api/v1/entries", headers={"Sec-Fetch-Site": "cross-site"})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        self.assertEqual(refused.exception.code, 403)
        self.assertEqual(ask(gateway["http"], "/entries?target=x/y/z")[0], 400)


if __name__ == "__main__":
    unittest.main()
