"""Makes pictures of the console: Tests/Console/screenshots FOLDER."""

import json
import os
import random
import sys
import threading

from cluster import Browser, Cluster
from playwright.sync_api import expect

TOKEN = "a-token-of-the-pictures-0123456789"
SHOP, STOCK = "document/shop", "document/stock"


def live(cluster, over):
    """A shop whose day goes on until it is over."""
    generator = random.Random(7)
    people = ["ada", "grace", "edsger", "barbara", "tony"]
    goods = ["lamp", "chair", "desk", "shelf"]
    number = 0
    while not over.is_set():
        number += 1
        who, what = generator.choice(people), generator.choice(goods)
        actions = [
            (STOCK, {"increment": {"at": f"/{what}/left", "by": -1}}),
            (SHOP, {"append": {"at": "/orders", "value": {"by": who, "item": what, "number": number}}}),
            (SHOP, {"set": {"at": f"/customers/{who}", "value": {"orders": number // 3 + 1, "premium": who == "ada"}}}),
            ("counter", {"increment": {}}),
        ]
        if number % 6 == 0:
            actions.append((SHOP, {"remove": {"at": f"/customers/nobody{number}"}}))
        for store, action in actions:
            cluster.run("dispatch", store, json.dumps(action))


def main(folder):
    cluster = Cluster()
    over = threading.Event()
    try:
        for name in ("alpha", "beta", "gamma"):
            cluster.worker(name, "counter", SHOP, STOCK)
        gateway = cluster.gateway("counter", SHOP, STOCK, token=TOKEN)
        cluster.dispatch(STOCK, *[{"set": {"at": f"/{name}", "value": {"left": left, "price": price}}} for name, left, price in
                                  (("lamp", 40, 29.5), ("chair", 25, 119), ("desk", 9, 349), ("shelf", 60, 89))])
        thread = threading.Thread(target=live, args=(cluster, over))
        thread.start()
        browser = Browser()
        views = {"health": "#/", "nodes": "#/nodes", "entries": "#/entries", "stores": "#/stores", "store": f"#/stores/{SHOP}", "runbook": "#/runbook/divergence"}
        for theme in ("dark", "light"):
            for width in (1280, 375):
                page = browser.page(gateway["http"], width=width, height=900 if width > 400 else 812, theme=theme)
                page.get_by_label("Token", exact=True).fill(TOKEN)
                page.get_by_role("button", name="Open").click()
                expect(page.get_by_role("heading", name="All is well")).to_be_visible()
                # For the lines of the last minute.
                page.wait_for_timeout(20_000 if width > 400 else 5_000)
                for name, hash in views.items():
                    page.goto(f"http://{gateway['http']}/{hash}")
                    page.wait_for_timeout(2_500)
                    page.screenshot(path=os.path.join(folder, f"{name}-{theme}-{width}.png"))
                page.goto(f"http://{gateway['http']}/#/stores/{SHOP}")
                moments = page.locator(".moment")
                expect(moments.nth(12)).to_be_visible()
                moments.filter(has_text="customers").nth(4).click()
                expect(page.locator(".changes")).to_be_visible()
                page.wait_for_timeout(500)
                page.screenshot(path=os.path.join(folder, f"past-{theme}-{width}.png"))
                page.get_by_role("link", name="Its way").click()
                page.wait_for_timeout(2_500)
                page.screenshot(path=os.path.join(folder, f"entry-{theme}-{width}.png"))
                page.go_back()
                page.get_by_role("button", name="What would it be without").click()
                expect(page.get_by_role("heading", name="Without entry")).to_be_visible()
                page.wait_for_timeout(500)
                page.screenshot(path=os.path.join(folder, f"without-{theme}-{width}.png"))
                # The browser notes that there was no token at first.
                faults = [fault for fault in page.faults if "401" not in fault]
                if faults:
                    print(f"{theme} {width}: {faults}", file=sys.stderr)
                page.context.close()
        browser.close()
    finally:
        over.set()
        cluster.close()


if __name__ == "__main__":
    main(sys.argv[1])
