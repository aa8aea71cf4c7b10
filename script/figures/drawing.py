"""Curves as pictures: SVG with two logarithmic axes, for light and dark pages."""
import math
from html import escape

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 80.0, 500.0, 50.0, 340.0
# Colours that everybody can tell apart, on light and on dark pages.
COLOURS = ["#d1495b", "#3477c5", "#2f8f6b", "#b5831d", "#8a5cc2", "#6f7d8c", "#c2628f"]
STYLE = """<style>
svg { background: #ffffff; font: 12px sans-serif; }
text { fill: #24292f; } .title { font-size: 15px; font-weight: bold; }
.grid { stroke: #d0d7de; } .line { fill: none; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; } text { fill: #e6edf3; } .grid { stroke: #30363d; }
}
</style>"""


class Axis:
    """A logarithmic scale that covers the values. Both ends are 1, 2 or 5 times a power of ten."""

    def __init__(self, values, begin, end):
        steps = [step * 10.0 ** power for power in range(-6, 13) for step in (1, 2, 5)]
        self.low = max(step for step in steps if step <= min(values) * 1.000001)
        self.high = max(min(step for step in steps if step >= max(values) * 0.999999), self.low * 10)
        self.begin, self.end = begin, end

    def place(self, value):
        return self.begin + (self.end - self.begin) * math.log10(value / self.low) / math.log10(self.high / self.low)

    def marks(self):
        """The values that have a line and a number."""
        steps = [1] if math.log10(self.high / self.low) > 3.0000001 else [1, 2, 5]
        marks = [step * 10.0 ** power for power in range(-6, 13) for step in steps]
        return [mark for mark in marks if self.low * 0.999 <= mark <= self.high * 1.001]


def draw(picture, rows):
    """Rows named `TITLE: SERIES, X QUANTITY` as one picture."""
    begin, end = picture["title"] + ": ", " " + picture["quantity"]
    series = {}
    for row in rows:
        if row["name"].startswith(begin) and row["name"].endswith(end):
            name, x = row["name"][len(begin):-len(end)].rsplit(", ", 1)
            series.setdefault(name, []).append((float(x), row["conflux"]["median"]))
    x = Axis([point[0] for points in series.values() for point in points], LEFT, RIGHT)
    y = Axis([point[1] for points in series.values() for point in points], BOTTOM, TOP)
    middle = 'text-anchor="middle"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(picture["title"])}">', STYLE, text(LEFT, 24, picture["title"], 'class="title"')]
    lines += [line(x.place(m), TOP, x.place(m), BOTTOM) + text(x.place(m), BOTTOM + 18, scaled(m), middle)
              for m in x.marks()]
    lines += [line(LEFT, y.place(m), RIGHT, y.place(m))
              + text(LEFT - 8, y.place(m) + 4, scaled(m), 'text-anchor="end"') for m in y.marks()]
    lines += [text((LEFT + RIGHT) / 2, HEIGHT - 20, picture["quantity"], middle), text(LEFT, 42, picture["figure"])]
    for index, (name, points) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        places = [(f"{x.place(a):.1f}", f"{y.place(b):.1f}") for a, b in points]
        row = TOP + 10 + index * 20
        lines.append(
            f'<polyline class="line" stroke="{colour}" points="{" ".join(",".join(place) for place in places)}"/>'
            + "".join(f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in places)
            + f'<circle cx="{RIGHT + 20:.0f}" cy="{row - 4:.1f}" r="5" fill="{colour}"/>' + text(RIGHT + 32, row, name))
    return "\n".join(lines) + "\n</svg>\n"


def line(x, y, to_x, to_y):
    return f'<line class="grid" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def text(x, y, words, attributes=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(words, quote=False)}</text>'


def scaled(value):
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if value >= unit * 0.999:
            return f"{value / unit:g}{name}"
    return f"{value:g}"
