"""A sequencer, workers and gateways, and a browser that looks at them."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFLUX = os.environ.get("CONFLUX_EXECUTABLE", str(ROOT / ".build/debug/conflux"))
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
SECONDS = 20


class Cluster:
    """Ends every program that it has started."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="conflux-console-")
        self.programs = []
        self.address = self.start("sequencer", "--data", self.path("log"), "--bind", "tcp://127.0.0.1:0")["address"]

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *arguments):
        """Starts a program, and returns what it says once it is ready."""
        program = subprocess.Popen([CONFLUX, *arguments, "--json"], stdout=subprocess.PIPE, text=True)
        self.programs.append(program)
        timer = threading.Timer(SECONDS, program.kill)
        timer.start()
        for line in program.stdout:
            said = json.loads(line)
            if said.get("event") == "ready":
                timer.cancel()
                # Nothing may wait for somebody who reads.
                threading.Thread(target=program.stdout.read, daemon=True).start()
                return {**said, "program": program}
        timer.cancel()
        raise AssertionError(f"{arguments[0]} did not get ready")

    def worker(self, name, *stores):
        return self.start("worker", "--connect", self.address, "--name", name, *self.named(stores))

    def gateway(self, *stores, http="127.0.0.1:0", token=None, name="gateway"):
        options = ["--http-token", self.token_file(token)] if token else []
        return self.start("gateway", "--connect", self.address, "--name", name, "--http", http, *options, *self.named(stores))

    @staticmethod
    def named(stores):
        return [word for store in stores for word in ("--store", store)]

    def token_file(self, text):
        path = self.path(f"token-{abs(hash(text))}")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text + "\n")
        return path

    def stop(self, started):
        program = started["program"]
        program.terminate()
        program.wait(SECONDS)
        self.programs.remove(program)

    def run(self, *arguments, stdin=None):
        return subprocess.run(
            [CONFLUX, *arguments, "--connect", self.address, "--json"], input=stdin, text=True, capture_output=True, timeout=120)

    def dispatch(self, store, *actions):
        """Dispatches actions one after the other, and returns the number of the last one."""
        for action in actions:
            done = self.run("dispatch", store, json.dumps(action), "--wait", "applied")
            if done.returncode != 0:
                raise AssertionError(done.stderr or done.stdout)
            number = json.loads(done.stdout.splitlines()[-1])["sequence"]
        return number

    def pour(self, store, actions):
        """Dispatches many actions."""
        done = self.run("dispatch", store, "-", stdin="".join(json.dumps(action) + "\n" for action in actions))
        if done.returncode != 0:
            raise AssertionError(done.stderr or done.stdout)

    def close(self):
        for program in reversed(self.programs):
            program.terminate()
        for program in self.programs:
            program.wait(SECONDS)
        shutil.rmtree(self.folder)


def ask(http, path, token=None, body=None):
    """Asks the API: the status and the JSON."""
    request = urllib.request.Request(f"http://{http}/api/v1{path}", data=body.encode() if body else None)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    if body:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class Browser:
    """Headless Chromium."""

    def __init__(self):
        from playwright.sync_api import expect, sync_playwright

        expect.set_options(timeout=SECONDS * 1000)
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    def page(self, http, hash="#/", width=1280, height=900, theme="dark", **options):
        """Opens the console. The page notes what goes wrong in it."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion="reduce", **options)
        page = context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on("console", lambda line: page.faults.append(line.text) if line.type in ("error", "warning") else None)
        page.on("dialog", lambda dialog: (page.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(f"http://{http}/{hash}")
        return page

    def close(self):
        self.browser.close()
        self.playwright.stop()
