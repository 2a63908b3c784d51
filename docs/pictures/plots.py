# SPDX-License-Identifier: Apache-2.0
"""The plots of docs/pictures. Every number is read from a file of docs/measured/h200, none is written here."""
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
from boxes_svg import document, tag  # noqa: E402

MEASURED = TOP / "docs/measured/h200"
WIDTH, LEFT, RIGHT, TOP_EDGE, BOTTOM = 940, 70, 30, 64, 64
KINDS = ("gantry", "driver", "hardware")  # the colours of the series


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"[-+]?\d+(?:\.\d+)?", text)]


def line_with(name: str, beginning: str) -> str:
    found = [line for line in (MEASURED / name).read_text().splitlines() if line.startswith(beginning)]
    if len(found) != 1:
        raise ValueError(f"{name} has {len(found)} lines that begin with {beginning!r}, not one")
    return found[0]


class Axes:
    """A frame with a vertical axis from `low` to `high`, in steps."""

    def __init__(self, height: int, low: float, high: float, step: float, unit: str) -> None:
        self.height, self.low, self.high = height, low, high
        self.parts: list[str] = [tag("h", 16, 26, unit)]
        value = low
        while value <= high + step / 2:
            y = self.y(value)
            self.parts += [f'<path class="grid" d="M{LEFT} {y:g}H{WIDTH - RIGHT}"/>', tag("s e", LEFT - 8, y + 4, f"{value:g}")]
            value += step

    def y(self, value: float) -> float:
        return round(self.height - BOTTOM - (value - self.low) / (self.high - self.low) * (self.height - TOP_EDGE - BOTTOM), 1)

    def column(self, number: int, count: int) -> float:
        """The middle of a column."""
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (number + 0.5) / count, 1)

    def limit(self, value: float, text: str) -> None:
        y = self.y(value)
        self.parts += [f'<path class="limit" d="M{LEFT} {y:g}H{WIDTH - RIGHT}"/>', tag("s e", WIDTH - RIGHT - 4, y - 6, text)]

    def below(self, x: float, text: str, row: int = 0) -> None:
        self.parts.append(tag("s m", x, self.height - BOTTOM + 18 + 16 * row, text))

    def bar(self, x: float, width: float, value: float, kind: str) -> None:
        y, ground = self.y(value), self.y(0)
        if value == 0:
            self.parts.append(f'<path class="{kind}" d="M{x - width / 2:g} {ground:g}h{width:g}"/>')
        else:
            self.parts.append(f'<rect class="{kind}" x="{x - width / 2:g}" y="{y:g}" width="{width:g}" height="{ground - y:g}"/>')

    def dot(self, x: float, value: float, kind: str) -> None:
        self.parts.append(f'<circle class="{kind}" cx="{x:g}" cy="{self.y(value):g}" r="5"/>')

    def key(self, names: list[str]) -> None:
        x = float(LEFT)
        for name, kind in zip(names, KINDS):
            self.parts += [f'<rect class="{kind}" x="{x:g}" y="36" width="14" height="12"/>', tag("s", x + 20, 46, name)]
            x += 40 + 7 * len(name)

    def svg(self, title: str, about: str, source: str, note: str = "") -> str:
        self.parts += [tag("s e", WIDTH - RIGHT, self.height - 8, f"docs/measured/h200/{source}"), tag("s", 16, self.height - 8, note)]
        return document(title, about, WIDTH, self.height, self.parts)


def time_over_time() -> str:
    """What a share with a cap of 50 % had in each second, while its daemon was away."""
    source = "lost-daemon.txt"
    events = [match[1] for match in re.finditer(r"^(.*): longest time", (MEASURED / source).read_text(), re.M)]
    series = {event: numbers(line_with(source, f"{event}: longest").split("per second")[1]) for event in events}
    seconds = max(len(values) for values in series.values())
    axes = Axes(420, 0, 60, 10, "% of the GPU's time in each second")
    axes.key([f"share daemon {event}" for event in series])
    axes.limit(50, "the share's hard cap: 50 %")
    for second in range(seconds):
        axes.below(axes.column(second, seconds), str(second + 1))
        for number, (values, kind) in enumerate(zip(series.values(), KINDS)):
            if second < len(values):
                axes.bar(axes.column(second, seconds) + (number - 1) * 24, 20, values[second], kind)
    axes.below((LEFT + WIDTH - RIGHT) / 2, "second after the event", 1)
    about = ("GPU time of one share with a hard cap of 50 %, second by second: " +
             "; ".join(f"share daemon {event}: {', '.join(f'{value:g}' for value in values)} %" for event, values in series.items()) + ".")
    return axes.svg("A cap of 50 % holds while the share daemon is away", about, source)


def memory_exactness() -> str:
    source = "share-memory.txt"
    rows = [line.split(", ") for line in (MEASURED / source).read_text().splitlines()[1:] if line.count(", ") == 3]
    axes = Axes(400, 0, 35, 5, "MiB of the limit that stay unused")
    axes.limit(32, "the step in which the driver's pools grow: 32 MiB")
    for number, (family, _, unused, _) in enumerate(rows):
        x = axes.column(number, len(rows))
        axes.bar(x, 40, float(unused), "gantry")
        axes.parts.append(tag("s m", x, axes.y(float(unused)) - 8, f"{float(unused):g}"))
        axes.below(x, family)
    axes.below((LEFT + WIDTH - RIGHT) / 2, "how the memory is allocated", 1)
    about = "Unused MiB when the share's limit refuses the next allocation: " + ", ".join(f"{row[0]} {float(row[2]):g}" for row in rows) + "."
    return axes.svg("A memory limit is exact to the driver's own step", about, source)


def launch_cost() -> str:
    source = "share-table-h.txt"
    limits = {"a memory limit": "memory limit", "memory and time limits": "memory, time limits", "a second native process": "a native one again"}
    names = [f"launch, {where}, {what}" for where in ("in bursts", "queue full") for what in limits]
    axes = Axes(440, -200, 300, 100, "ns added to a launch")
    axes.limit(100, "the goal: 100 ns")
    seen = []
    for number, name in enumerate(names):
        said, rounds = re.match(r"launch, .*? ([-+]\d+) ns \(median of \d+: ([^)]*)\)", line_with(source, name)).groups()
        x = axes.column(number, len(names))
        for value in numbers(rounds):
            axes.dot(x, min(max(value, axes.low), axes.high), KINDS[number % 3])
        axes.parts.append(f'<path class="arrow" d="M{x - 26:g} {axes.y(float(said)):g}h52"/>')
        axes.below(x, limits[name.split(", ")[2]])
        axes.below(x, name.split(", ")[1], 1)
        seen.append(f"{name}: median {said} ns")
    note = "A dot is a round, a dash the median. A round beyond the axis is at its edge."
    return axes.svg("What limits add to a kernel launch of about 4 µs", f"{note} {'; '.join(seen)}.", source, note)


def request_latency() -> str:
    source = "share-table-h.txt"
    rows = {"alone, no share": "1 ms request each 4 ms, alone, native", "alone, in a share": "1 ms request each 4 ms, alone, fenced",
            "beside a trainer, no shares": "1 ms request each 4 ms, beside a greedy trainer", "beside a trainer, 50:50": "the same 50:50"}
    axes = Axes(420, 0, 4, 0.5, "ms for a request of 1 ms")
    axes.key(["median", "99th percentile"])
    seen = []
    for number, (name, beginning) in enumerate(rows.items()):
        middle, slow = (float(value) for value in re.search(r"p50 ([\d.]+) p99 ([\d.]+) ms", line_with(source, beginning)).groups())
        x = axes.column(number, len(rows))
        for at, value, kind in ((x - 34, middle, KINDS[0]), (x + 34, slow, KINDS[1])):
            axes.bar(at, 56, value, kind)
            axes.parts.append(tag("s m", at, axes.y(value) - 8, f"{value:g}"))
        axes.below(x, name)
        seen.append(f"{name}: median {middle:g} ms, 99th percentile {slow:g} ms")
    return axes.svg("A request beside a trainer", "A request of 1 ms each 4 ms. " + "; ".join(seen) + ".", source)


PLOTS = {"plot-time": time_over_time, "plot-memory": memory_exactness, "plot-launch": launch_cost, "plot-latency": request_latency}
