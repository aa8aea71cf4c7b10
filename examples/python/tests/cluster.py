"""A sequencer and workers in separate processes, for tests."""

import ctypes
import json
import os
import select
import signal
import subprocess
import tempfile
import time

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
EXECUTABLE = os.environ.get("CONFLUX_EXECUTABLE", os.path.join(TOP, ".build/debug/conflux"))
READY_SECONDS = 10


def die_with_parent():
    """Ends the process even if this one is killed. Only Linux can do it."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except AttributeError:
        pass


class Process:
    """A process that prints a line when it is ready."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [EXECUTABLE, *arguments, "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        try:
            self.ready = json.loads(self.first_line())
        except BaseException:
            self.kill()
            raise

    def first_line(self):
        end, octets = time.monotonic() + READY_SECONDS, b""
        while not octets.endswith(b"\n"):
            left = max(0, end - time.monotonic())
            if not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError(f"not ready within {READY_SECONDS} s")
            octet = os.read(self.process.stdout.fileno(), 1)
            if not octet:
                raise RuntimeError(self.process.stderr.read().decode())
            octets += octet
        return octets

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class Cluster:
    """A sequencer with its log in a new folder, and what joins it. Use it in `with`."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="conflux-python-")
        self.log = os.path.join(self.folder.name, "log")
        self.workers = []
        self.sequencer = None
        self.start("tcp://127.0.0.1:0", "tcp://127.0.0.1:0")
        return self

    def start(self, address, feed):
        self.sequencer = Process(
            "sequencer", "--bind", address, "--feed", feed, "--data", self.log,
            *self.options)
        self.address, self.feed = self.sequencer.ready["address"], self.sequencer.ready["feed"]

    def restart(self):
        self.start(self.address, self.feed)

    def work(self, name, store="counter"):
        self.workers.append(Process(
            "worker", "--connect", self.address, "--name", name, "--store", store))

    def run(self, client, *arguments, text=None, timeout=10):
        """Runs `conflux` to its end, while a client steps. Returns the values that it printed."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
            given.write((text or "").encode())
            given.seek(0)
            process = subprocess.Popen(
                [EXECUTABLE, *arguments, "--connect", self.address, "--json"], stdin=given,
                stdout=printed, stderr=subprocess.PIPE, preexec_fn=die_with_parent)
            try:
                client.wait(lambda: process.poll() is not None, timeout)
            except BaseException:
                process.kill()
                raise
            finally:
                errors = process.stderr.read().decode() if process.poll() is not None else ""
                process.stderr.close()
                process.wait()
            if process.returncode:
                raise RuntimeError(f"conflux {arguments} ended with {process.returncode}: {errors}")
            printed.seek(0)
            return [json.loads(line) for line in printed]

    def observe(self, client, nodes, store="counter", timeout=10):
        """The states of these nodes, once all of them are at the same number."""
        end = time.monotonic() + timeout
        while True:
            lines = {
                line["node"]: (line["sequence"], line["state"])
                for line in self.run(client, "observe", store)}
            if set(nodes) <= set(lines) and len({lines[node][0] for node in nodes}) == 1:
                return [lines[node][1] for node in nodes]
            if time.monotonic() > end:
                raise TimeoutError(f"not everybody is at the same number: {lines}")

    def __exit__(self, *_):
        for process in (*self.workers, self.sequencer):
            if process is not None:
                process.kill()
        self.folder.cleanup()
