# SPDX-License-Identifier: Apache-2.0
"""Draws boxes, groups and arrows from a text, as SVG that is readable on light and dark pages.

A line of the text is one thing; coordinates are in cells of 20 pixels, from the upper left corner:

    title TEXT                            what the picture shows, for people who cannot see it
    about TEXT                            the same in a sentence or two
    group X Y WIDTH HEIGHT | HEADING      a frame around others
    box NAME X Y WIDTH HEIGHT [KIND] | HEADING | LINE | ...
    arrow NAME NAME [dashed] | LABEL      from border to border: straight if it can be, otherwise with one bend
    text X Y | WORDS
    # a comment

KIND says whose thing a box is: gantry, driver, kernel or hardware. A box whose text does not fit is an error, and so is
an arrow through another box."""
import html

CELL, MARGIN, MAX_WIDTH = 20, 20, 1000
KINDS = {"gantry": "Gantry", "driver": "NVIDIA's driver, user space", "kernel": "kernel", "hardware": "hardware"}
SIZES = {"h": 14, "t": 13, "s": 12}  # headings, lines, labels: in pixels
STYLE = """
  text { font-family: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2328 }
  .h { font-size: 14px; font-weight: 600 } .t { font-size: 13px } .s { font-size: 12px; fill: #59636e; stroke: #ffffff; stroke-width: 4px; paint-order: stroke }
  .m { text-anchor: middle } .e { text-anchor: end }
  .page { fill: #ffffff } .plain { fill: #f6f8fa; stroke: #8c959f } .gantry { fill: #dafbe1; stroke: #1a7f37 }
  .driver { fill: #ddf4ff; stroke: #0969da } .kernel { fill: #fff8c5; stroke: #9a6700 } .hardware { fill: #fbefff; stroke: #8250df }
  .group { fill: none; stroke: #8c959f; stroke-dasharray: 6 4 } .arrow { fill: none; stroke: #59636e; stroke-width: 1.5 }
  .dashed { stroke-dasharray: 5 4 } .head { fill: #59636e } .grid { stroke: #d1d9e0 } .limit { stroke: #cf222e; stroke-dasharray: 6 4 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .s { fill: #9198a1; stroke: #0d1117 } .page { fill: #0d1117 } .plain { fill: #161b22; stroke: #656c76 }
    .gantry { fill: #12261e; stroke: #3fb950 } .driver { fill: #121d2f; stroke: #4493f8 } .kernel { fill: #272115; stroke: #d29922 }
    .hardware { fill: #1f1630; stroke: #ab7df8 } .group { stroke: #656c76 } .arrow { stroke: #9198a1 } .head { fill: #9198a1 }
    .grid { stroke: #30363d } .limit { stroke: #f85149 }
  }
"""


class DrawingError(Exception):
    pass


def text_width(text: str, size: int) -> float:
    """At most this wide in the usual fonts."""
    narrow = sum(letter in " .,:;'|ilIjt()[]/-" for letter in text)
    wide = sum(letter in "mwMW@%" or letter.isupper() for letter in text)
    return size * (0.59 * (len(text) - narrow) + 0.38 * narrow + 0.2 * wide)


def tag(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{html.escape(text, quote=False)}</text>'


def rectangle(kind: str, x: float, y: float, width: float, height: float, radius: int = 6) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>'


def document(title: str, about: str, width: float, height: float, body: list[str]) -> str:
    if width > MAX_WIDTH:
        raise DrawingError(f"the picture is {width:g} pixels wide, at most {MAX_WIDTH} are readable on a page")
    if not title or not about:
        raise DrawingError("`title` and `about` are missing")
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" role="img" '
            f'aria-labelledby="title about">\n<title id="title">{html.escape(title)}</title>\n<desc id="about">{html.escape(about)}</desc>\n'
            f"<style>{STYLE}</style>\n")
    return head + "\n".join([rectangle("page", 0, 0, width, height, 8), *body, "</svg>\n"])


class Box:
    def __init__(self, place: list[int], kind: str, lines: list[str]) -> None:
        x, y, width, height = place
        self.left, self.top = MARGIN + x * CELL, MARGIN + y * CELL
        self.right, self.bottom = self.left + width * CELL, self.top + height * CELL
        self.kind, self.lines = kind, lines
        for number, line in enumerate(lines):
            if text_width(line, SIZES["t" if number else "h"]) > width * CELL - 8:
                raise DrawingError(f"{line!r} does not fit into {width} cells")
        if len(lines) * 18 + 4 > height * CELL:
            raise DrawingError(f"{len(lines)} lines do not fit into {height} cells: {lines[0]!r}")

    @property
    def middle(self) -> tuple[float, float]:
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def svg(self) -> list[str]:
        x, y = self.middle
        first = y - (len(self.lines) - 1) * 9 + 5
        texts = [tag("t m" if number else "h m", x, first + 18 * number, line) for number, line in enumerate(self.lines)]
        return [rectangle(self.kind, self.left, self.top, self.right - self.left, self.bottom - self.top), *texts]


def overlap(low: float, high: float, other_low: float, other_high: float) -> float | None:
    """The middle of what two ranges have in common, if that is enough for a line."""
    start, end = max(low, other_low), min(high, other_high)
    return (start + end) / 2 if end - start >= 8 else None


def route(start: Box, end: Box) -> tuple[list[tuple[float, float]], tuple[float, float, str]]:
    """The points of an arrow, and where its label stands."""
    if (x := overlap(start.left, start.right, end.left, end.right)) is not None:
        down = end.top >= start.bottom
        points = [(x, start.bottom if down else start.top), (x, end.top if down else end.bottom)]
        return points, (x + 7, sum(y for _, y in points) / 2 + 4, "s")
    if (y := overlap(start.top, start.bottom, end.top, end.bottom)) is not None:
        right = end.left >= start.right
        points = [(start.right if right else start.left, y), (end.left if right else end.right, y)]
        return points, (sum(x for x, _ in points) / 2, y - 6, "s m")
    x, y = end.middle[0], start.middle[1]
    side = start.right if x > start.right else start.left
    points = [(side, y), (x, y), (x, end.top if end.top >= y else end.bottom)]
    return points, ((side + x) / 2, y - 6, "s m")


def crosses(box: Box, points: list[tuple[float, float]]) -> bool:
    """Whether a part of the line goes through the inside of the box."""
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if max(x0, x1) > box.left and min(x0, x1) < box.right and max(y0, y1) > box.top and min(y0, y1) < box.bottom:
            return True
    return False


def arrow_head(points: list[tuple[float, float]]) -> str:
    (x0, y0), (x, y) = points[-2:]
    along = ((x > x0) - (x < x0), (y > y0) - (y < y0))
    back = (x - 9 * along[0], y - 9 * along[1])
    sides = [(back[0] + 5 * turn * along[1], back[1] + 5 * turn * along[0]) for turn in (1, -1)]
    return f'<path class="head" d="M{x:g} {y:g}L{sides[0][0]:g} {sides[0][1]:g}L{sides[1][0]:g} {sides[1][1]:g}z"/>'


def arrow(start: Box, end: Box, dashed: bool, label: str) -> list[str]:
    points, (x, y, kind) = route(start, end)
    path = "L".join(f"{px:g} {py:g}" for px, py in points)
    drawn = [f'<path class="arrow{" dashed" if dashed else ""}" d="M{path}"/>', arrow_head(points)]
    return drawn + ([tag(kind, x, y, label)] if label else [])


class Drawing:
    def __init__(self) -> None:
        self.title = self.about = ""
        self.boxes: dict[str, Box] = {}
        self.under: list[str] = []  # frames and arrows
        self.lines: list[tuple[str, list[tuple[float, float]]]] = []  # of the arrows, with their names
        self.right = self.bottom = 0.0

    def grow(self, right: float, bottom: float) -> None:
        self.right, self.bottom = max(self.right, right), max(self.bottom, bottom)

    def add(self, line: str) -> None:
        words, *parts = [part.strip() for part in line.split("|")]
        what, *rest = words.split()
        if what in ("title", "about"):
            setattr(self, what, line.split(None, 1)[1].strip())
        elif what == "box":
            kind = rest[5] if len(rest) > 5 else "plain"
            if kind not in (*KINDS, "plain"):
                raise DrawingError(f"no kind of box: {kind}")
            box = self.boxes[rest[0]] = Box([int(word) for word in rest[1:5]], kind, parts)
            self.grow(box.right, box.bottom)
        elif what == "group":
            x, y, width, height = (int(word) * CELL for word in rest)
            self.under += [rectangle("group", MARGIN + x, MARGIN + y, width, height, 10), tag("h", MARGIN + x + 10, MARGIN + y + 20, parts[0])]
            self.grow(MARGIN + x + width, MARGIN + y + height)
        elif what == "arrow":
            if missing := [name for name in rest[:2] if name not in self.boxes]:
                raise DrawingError(f"no box {missing[0]} above this line")
            ends = self.boxes[rest[0]], self.boxes[rest[1]]
            self.under += arrow(*ends, "dashed" in rest[2:], parts[0] if parts else "")
            self.lines.append((f"{rest[0]} to {rest[1]}", route(*ends)[0]))
        elif what == "text":
            x, y = MARGIN + int(rest[0]) * CELL, MARGIN + int(rest[1]) * CELL
            self.under.append(tag("s", x, y, parts[0]))
            self.grow(x + text_width(parts[0], SIZES["s"]), y)
        else:
            raise DrawingError(f"no such thing: {what}")

    def legend(self) -> list[str]:
        used = [kind for kind in KINDS if any(box.kind == kind for box in self.boxes.values())]
        drawn, x, y = [], float(MARGIN), self.bottom + 24
        for kind in used:
            drawn += [rectangle(kind, x, y - 11, 16, 14, 3), tag("s", x + 22, y, KINDS[kind])]
            x += 40 + text_width(KINDS[kind], SIZES["s"])
        self.grow(x - 20, y)
        return drawn

    def svg(self) -> str:
        for name, points in self.lines:
            if through := [box.lines[0] for box in self.boxes.values() if crosses(box, points)]:
                raise DrawingError(f"the arrow from {name} goes through {through[0]!r}")
        legend = self.legend()
        boxes = [part for box in self.boxes.values() for part in box.svg()]
        return document(self.title, self.about, self.right + MARGIN, self.bottom + MARGIN, [*boxes, *self.under, *legend])


def draw(text: str) -> str:
    drawing = Drawing()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            drawing.add(line)
        except (DrawingError, ValueError, IndexError) as error:
            raise DrawingError(f"line {number}: {error}") from error
    return drawing.svg()
