"""Whether everybody can use the console: by keys, with a screen reader, on a phone, in both themes."""

import unittest

from axe_core_python.sync_playwright import Axe
from cluster import Browser, Cluster
from playwright.sync_api import expect

TOKEN = "a-token-of-the-tests-0123456789"
PREFS = "document/prefs"
VIEWS = ["#/", "#/nodes", "#/entries", "#/stores", f"#/stores/{PREFS}", "#/runbook/divergence"]


def setUpModule():
    global cluster, browser, gateway
    cluster = Cluster()
    unittest.addModuleCleanup(cluster.close)
    cluster.worker("alpha", PREFS)
    gateway = cluster.gateway(PREFS, "counter", token=TOKEN)
    cluster.dispatch(PREFS, {"set": {"at": "/theme", "value": {"name": "dark", "size": 12, "on": True, "none": None}}})
    cluster.run("dispatch", PREFS, '{"remove":{"at":"/nowhere"}}', "--wait", "applied")
    cluster.run("freeze", "counter/shared")
    browser = Browser()
    unittest.addModuleCleanup(browser.close)


class Access(unittest.TestCase):
    def open(self, hash, **options):
        # Axe is put into the page, which the page's own policy forbids.
        page = browser.page(gateway["http"], "#/", bypass_csp=True, **options)
        self.addCleanup(page.context.close)
        page.get_by_label("Token", exact=True).fill(TOKEN)
        page.get_by_role("button", name="Open").click()
        expect(page.locator(".pulse")).to_contain_text("warning")
        page.goto(f"http://{gateway['http']}/{hash}")
        expect(page.locator("main h1")).to_be_visible()
        if hash == "#/entries":
            expect(page.locator(".entry").first).to_be_visible()
        if hash == f"#/stores/{PREFS}":
            expect(page.get_by_role("tree")).to_contain_text("dark")
        return page

    def test_axe_finds_nothing(self):
        for theme in ("dark", "light"):
            for width in (1280, 375):
                for hash in VIEWS:
                    with self.subTest(view=hash, theme=theme, width=width):
                        page = self.open(hash, theme=theme, width=width)
                        found = Axe().run(page)["violations"]
                        words = [f"{rule['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}" for rule in found for node in rule["nodes"][:4]]
                        self.assertEqual(words, [])
                        page.context.close()

    def test_a_phone_needs_no_scrolling_to_the_side(self):
        for hash in VIEWS + [f"#/stores/{PREFS}?at=5"]:
            page = self.open(hash, width=375, height=812)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 375, hash)
            self.assertLessEqual(page.evaluate("document.getElementById('main').scrollWidth"), 375, hash)
            page.context.close()

    def test_everything_is_reached_by_keys(self):
        page = self.open("#/")
        page.evaluate("document.activeElement.blur()")
        page.keyboard.press("Tab")
        expect(page.get_by_text("Skip to the content")).to_be_focused()
        names = []
        for _ in range(7):
            page.keyboard.press("Tab")
            names.append(page.evaluate("document.activeElement.textContent.trim()"))
        self.assertEqual(names[:6], ["Conflux", "Health", "Nodes", "Entries", "Stores", "Runbook"])
        page.keyboard.press("g")
        page.keyboard.press("s")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Stores")
        page.keyboard.press("/")
        expect(page.get_by_label("Filter stores by name")).to_be_focused()

    def test_the_focus_stays_while_figures_change(self):
        page = self.open("#/stores")
        link = page.get_by_role("link", name="prefs")
        link.focus()
        for value in range(3):
            cluster.dispatch(PREFS, {"set": {"at": "/focus", "value": value}})
            page.wait_for_function("document.activeElement.textContent.trim() === 'prefs'")
        for _ in range(2):
            with page.expect_response("**/api/v1/status"):
                pass
        expect(link).to_be_focused()

    def test_a_tree_is_walked_by_keys(self):
        page = self.open(f"#/stores/{PREFS}")
        theme = page.get_by_role("treeitem").filter(has_text="theme").first
        page.get_by_role("treeitem").first.focus()
        page.keyboard.press("End")
        page.keyboard.press("Home")
        while "theme" not in page.evaluate("document.activeElement.textContent"):
            page.keyboard.press("ArrowDown")
        expect(theme).to_have_attribute("aria-expanded", "true")
        page.keyboard.press("ArrowLeft")
        expect(theme).to_have_attribute("aria-expanded", "false")
        page.keyboard.press("ArrowRight")
        expect(theme).to_have_attribute("aria-expanded", "true")
        expect(theme).to_be_focused()

    def test_the_theme_follows_the_system_until_somebody_chooses(self):
        page = self.open("#/", theme="light")
        expect(page.locator("html")).to_have_attribute("data-theme", "light")
        page.get_by_role("button", name="Dark theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")


if __name__ == "__main__":
    unittest.main()
