"""The measurements in docs/figures.json."""
import json
import os
import pathlib
import platform
import subprocess
import time


class Mistake(Exception):
    """Something is missing or wrong: what, and what to do."""


class Results:
    def __init__(self, root=None):
        self.root = pathlib.Path(root) if root else pathlib.Path(__file__).resolve().parents[2]
        self.path = self.root / "docs/figures.json"
        data = json.loads(self.path.read_text())
        self.runs, self.pictures, self.quotes = data["runs"], data["pictures"], data["quotes"]

    def relative(self, path):
        return path.relative_to(self.root)

    def run(self, name):
        if name not in self.runs:
            raise Mistake(f"docs/figures.json has no run {name}; it has {', '.join(sorted(self.runs))}")
        return self.runs[name]

    def quote(self, name):
        """The value of a quote, in the unit of its text."""
        if name not in self.quotes:
            raise Mistake(f"docs/figures.json has no quote {name}; add it to its quotes")
        quote = self.quotes[name]
        rows = [row for row in self.run(quote["run"])["rows"] if row["name"] == quote["row"]]
        if len(rows) != 1:
            raise Mistake(f"the quote {name} names {len(rows)} rows of {quote['run']}, not one: {quote['row']}; "
                          "correct the quote, or measure that row again")
        value = rows[0][quote.get("side", "conflux")]
        if value is None:
            raise Mistake(f"the row of the quote {name} has no {quote['side']}")
        return value["median"] / quote.get("divisor", 1)

    def record(self, name, method, lines):
        """Replaces a run by the rows of `conflux-bench --json`."""
        rows = [json.loads(line) for line in lines if line.strip()]
        if not rows:
            raise Mistake("nothing was measured, so nothing is recorded")
        for row in rows:
            row.pop("isHigherBetter", None)
            row.setdefault("partner", None)
            row.setdefault("ratio", None)
            for side in ("conflux", "partner", "ratio"):
                if row[side]:
                    row[side] = {key: float(f"{value:.4g}") for key, value in row[side].items()}
        self.runs[name] = {
            "date": time.strftime("%Y-%m-%d"), "revision": self.revision(), "machine": machine(),
            "method": method, "rows": rows,
        }
        self.path.write_text(self.text())

    def revision(self):
        def git(*words):
            return subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, text=True, check=True).stdout
        changed = "-changed" if git("status", "--porcelain", "Sources", "Benchmarks").strip() else ""
        return git("rev-parse", "--short=8", "HEAD").strip() + changed

    def text(self):
        """The file, with a line for each row, so that changes can be read."""
        def line(value):
            return json.dumps(value, ensure_ascii=False)
        runs = []
        for name, run in self.runs.items():
            facts = "".join(f"\n   {line(key)}: {line(value)}," for key, value in run.items() if key != "rows")
            rows = ",\n".join(f"    {line(row)}" for row in run["rows"])
            runs.append(f'  {line(name)}: {{{facts}\n   "rows": [\n{rows}\n   ]}}')
        def table(values):
            return ",\n".join(f"  {line(name)}: {line(value)}" for name, value in values.items())
        return ('{\n "runs": {\n' + ",\n".join(runs) + '\n },\n "pictures": {\n' + table(self.pictures)
                + '\n },\n "quotes": {\n' + table(self.quotes) + "\n }\n}\n")


def machine():
    """This machine, in words."""
    model = next((line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines()
                  if line.startswith("model name")), platform.processor())
    version = subprocess.run(["swift", "--version"], capture_output=True, text=True).stdout
    swift = version.split("Swift version ")[1].split()[0] if "Swift version " in version else "?"
    return f"{os.cpu_count()} processors ({model}); {platform.system()} {platform.release()}, Swift {swift}"


def read(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
