"""A sequencer, workers and gateways, and a browser that looks at them."""

import json
import os
import pathlib
import shutil
import socket
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

    def __init__(self, etcd=False):
        self.folder = tempfile.mkdtemp(prefix="conflux-console-")
        self.programs = []
        self.log = ["--log", f"etcd://{self.etcd()}/console"] if etcd else ["--data", self.path("log")]
        self.address = self.sequencer("ready")

    def sequencer(self, event):
        return self.start("sequencer", *self.log, "--bind", "tcp://127.0.0.1:0", event=event)["address"]

    def standby(self):
        """Starts another sequencer on the log, and returns its address once it stands by."""
        return self.sequencer("standby")

    def etcd(self):
        """Starts an etcd, and returns its address."""
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            client, peer = (f"127.0.0.1:{taken.getsockname()[1]}" for taken in (one, other))
        program = subprocess.Popen(
            ["etcd", "--name", "m", "--data-dir", self.path("etcd"), "--logger", "zap", "--listen-client-urls", f"http://{client}", "--advertise-client-urls", f"http://{client}",
             "--listen-peer-urls", f"http://{peer}", "--initial-advertise-peer-urls", f"http://{peer}", "--initial-cluster", f"m=http://{peer}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.programs.append(program)
        self.read(program, program.stderr, lambda line: "serving" in line and "client" in line)
        return client

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *arguments, program=CONFLUX, event="ready"):
        """Starts a program, and returns what it says with an event; without one, at once."""
        process = subprocess.Popen(
            [program, *arguments, "--json"], stdout=subprocess.PIPE if event else subprocess.DEVNULL, text=True,
            env={**os.environ, "SWIFT_BACKTRACE": "enable=no"})
        self.programs.append(process)
        said = self.read(process, process.stdout, lambda line: json.loads(line).get("event") == event) if event else "{}"
        return {**json.loads(said), "program": process}

    def read(self, program, stream, is_wanted):
        """Reads the lines of a program up to one, and goes on to read, since nothing may wait for somebody who reads."""
        timer = threading.Timer(SECONDS, program.kill)
        timer.start()
        line = next((line for line in stream if is_wanted(line)), None)
        timer.cancel()
        threading.Thread(target=stream.read, daemon=True).start()
        if line is None:
            raise AssertionError(f"{program.args[:2]} did not get ready")
        return line

    def worker(self, name, *stores, program=None, options=[], event="ready"):
        """Starts a worker of this program, or of one of the tests' own, in which the state needs no other name."""
        line = ["--connect", self.address, "--name", name, *options, *self.named(stores)]
        return self.start(*line, program=pathlib.Path(CONFLUX).with_name(program), event=event) if program else self.start("worker", *line, event=event)

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
        started["program"].terminate()
        self.await_end(started)

    def await_end(self, started):
        started["program"].wait(SECONDS)
        self.programs.remove(started["program"])

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
