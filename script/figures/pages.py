"""The documents and pictures that have figures."""
import re

from drawing import draw
from results import Mistake

TABLE = re.compile(r"(<!-- figures: (\S+?)( beside)? -->\n).*?(<!-- /figures -->)", re.S)
RUN = re.compile(r"(<!-- run: (\S+) -->).*?(<!-- /run -->)", re.S)
QUOTE = re.compile(r"(<!--=(\S+?)-->)(.*?)(<!--/-->)")
MARK = re.compile("|".join(pattern.pattern for pattern in (TABLE, RUN, QUOTE)), re.S)
# The pages whose figures of speed must be quotes. The measurements themselves also have texts about what was tried.
QUOTING = ["README.md", "docs/performance.md", "docs/operating.md", "docs/compared.md", "docs/faq.md", "docs/service.md",
           "docs/tutorial.md", "docs/concepts.md", "docs/coming-from.md", "docs/coming-from/*.md"]
RATE = re.compile(
    r"\d[\d.,]*( (million|thousand|M|k))? ([a-z0-9-]+ ){0,2}(actions|appends|entries|messages)( ?/ ?s\b| a second\b)")
TIME = re.compile(r"\d[\d.,]* ?(ms|µs|ns)\b")
# There, each time is a measurement.
TIMED = {"README.md", "docs/performance.md", "docs/compared.md"}


class Pages:
    def __init__(self, results):
        self.results = results

    def differing(self):
        """The files that are not as they should be, with the texts that they should have."""
        texts = {path: self.marked(path.read_text()) for path in self.documents()}
        for name, picture in self.results.pictures.items():
            path = self.results.root / "docs/performance" / f"{name}.svg"
            texts[path] = draw(picture, self.results.run(picture["run"])["rows"])
        return {path: text for path, text in texts.items() if not path.exists() or path.read_text() != text}

    def documents(self):
        root = self.results.root
        return [path for path in [root / "README.md", *sorted((root / "docs").rglob("*.md"))] if path.exists()]

    def marked(self, text):
        """The text with what its marks stand for."""
        text = TABLE.sub(lambda m: m[1] + (self.beside if m[3] else self.table)(m[2]) + m[4], text)
        text = RUN.sub(lambda m: m[1] + self.origin(m[2]) + m[3], text)
        return QUOTE.sub(lambda m: m[1] + short(self.results.quote(m[2])) + m[4], text)

    def origin(self, name):
        run = self.results.run(name)
        return f"{run['date']}, revision {run['revision']}, `{run['method']}`, {run['machine']}"

    def table(self, name):
        run = self.results.run(name)
        lines = [f"| workload | what | unit | Conflux | {run.get('partner', 'partner')} | ratio |", "|---|---|---|---|---|---|"]
        for row in run["rows"]:
            cells = [row["workload"], row["name"], row["unit"], spread(row["conflux"]), spread(row["partner"]),
                     spread(row["ratio"], 2)]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines) + f"\n\n*{self.origin(name)}*\n"

    def beside(self, name):
        """Rows named `WHAT; partner: RIVAL` as a table with a column for each WHAT, and a row for each rival."""
        rows = self.results.run(name)["rows"]
        whats, rivals, cells = [], ["Conflux"], {}
        for row in rows:
            what, rival = row["name"].split("; partner: ")
            what = f"{what}, {row['unit']}"
            whats += [what] if what not in whats else []
            rivals += [rival] if rival not in rivals else []
            cells[what, "Conflux"] = three(row["conflux"]["median"])
            cells[what, rival] = three(row["partner"]["median"])
        lines = ["| | " + " | ".join(whats) + " |", "|---" * (len(whats) + 1) + "|"]
        for rival in rivals:
            lines.append(f"| {rival} | " + " | ".join(cells.get((what, rival), "–") for what in whats) + " |")
        return "\n".join(lines) + "\n"

    def bare_figures(self):
        """The places with figures of speed that are not marked."""
        places = []
        for path in [path for pattern in QUOTING for path in sorted(self.results.root.glob(pattern))]:
            name = str(self.results.relative(path))
            # Lines keep their numbers.
            text = MARK.sub(lambda m: "\n" * m[0].count("\n"), path.read_text())
            for index, line in enumerate(text.split("\n"), 1):
                if RATE.search(line) or (name in TIMED and TIME.search(line)):
                    places.append(f"{name}:{index}")
        return places


def number(value, digits=None):
    """As `conflux-bench` prints it."""
    if digits is None:
        digits = 2 if value < 10 else 1 if value < 1000 else 0
    return f"{value:.{digits}f}"


def spread(values, digits=None):
    if values is None:
        return "–"
    if values["min"] == values["max"]:
        return number(values["median"], digits)
    median, least, most = (number(values[key], digits) for key in ("median", "min", "max"))
    return f"{median} [{least}–{most}]"


def three(value):
    """Three digits that count."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:#.3g}"


def short(value):
    """Two digits that count."""
    if value >= 10:
        return f"{float(f'{value:.2g}'):,.0f}"
    return f"{value:#.2g}"
