"""Two schedules of one program side by side, which differ in one decision: as text and as SVG.

One ends well and one fails. Each has a panel: a life line for each rank, an arrow for each message
from where it was sent to the receive that took it. Rows are the order in which they met. What both
have in common before the decision is left out but for its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from ompy.trace.drawing.labels import width_of

BEFORE: Final = 4  # rows that both have before the decision; arbitrary: what is near it
AFTER: Final = 8  # rows from the decision on; arbitrary: a picture of a screen's height

# all in pixels; arbitrary: what looked right
ROW: Final = 40
HEAD: Final = 30  # height of a rank's head
TOP: Final = 120  # title, the panels' titles, heads
SIDE: Final = 60  # beside the outer life lines of a panel, or more
LANE: Final = 120  # between two life lines, or more
GAP: Final = 48  # between the panels
FOOT: Final = 34  # above the first line of source
LINE: Final = 20  # height of a line of source

INK: Final = "#1f2933"
PALE: Final = "#7b8794"
LIFE: Final = "#cbd2d9"
PLAIN: Final = "#64748b"
GOOD: Final = "#15803d"
BAD: Final = "#b91c1c"
FONT: Final = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
CODE: Final = "ui-monospace, Menlo, Consolas, monospace"


class Step(NamedTuple):
    """What happens in one row.

    Attributes:
        rank: that receives, or that waits at the end.
        site: where in the program, as file:line.
        sender: rank; -1 where there is no message.
        sent: where it sent.
        text: what happens where there is no message.
        decides: this is where the schedules part.
        fails: this is what fails.
    """

    rank: int
    site: str
    sender: int = -1
    sent: str = ""
    text: str = ""
    decides: bool = False
    fails: bool = False

    @property
    def says(self) -> str:
        """In words, without the receiving rank."""
        if self.sender < 0:
            return f"{self.text} {self.site}".strip()
        path, _, line = self.site.rpartition(":")
        same = path == self.sent.rpartition(":")[0]
        return f"{self.sent} -> {line if same else self.site}"


class Panel(NamedTuple):
    """One of the schedules."""

    title: str
    steps: Sequence[Step]


class Pair(NamedTuple):
    """Both, and the lines of source that they name.

    Attributes:
        title: of the whole.
        ranks: those that have a part in it, in order.
        good, bad: the schedules.
        source: a site, and the line of the program there.
    """

    title: str
    ranks: Sequence[int]
    good: Panel
    bad: Panel
    source: Sequence[tuple[str, str]]


def shortened(pair: Pair) -> Pair:
    """Without most of what both have in common before they part, and of what comes long after."""
    place = max(0, *(_decision(panel) for panel in (pair.good, pair.bad)))
    cut = max(0, min(place, *(_decision(panel) for panel in (pair.good, pair.bad))) - BEFORE)
    good, bad = (panel._replace(steps=_cut(panel.steps, cut)) for panel in (pair.good, pair.bad))
    steps = [*good.steps, *bad.steps]
    named = {site for step in steps for site in (step.site, step.sent)}
    ranks = {rank for step in steps for rank in (step.rank, step.sender) if rank >= 0}
    source = [(site, line) for site, line in pair.source if site in named]
    return Pair(pair.title, [one for one in pair.ranks if one in ranks], good, bad, source)


def _decision(panel: Panel) -> int:
    return next((place for place, step in enumerate(panel.steps) if step.decides), 0)


def _cut(steps: Sequence[Step], cut: int) -> list[Step]:
    kept = list(steps[cut:])
    end = [step for step in kept if step.fails]
    rest = [step for step in kept if not step.fails]
    most = BEFORE + AFTER
    shown = rest[:most]
    if cut:
        shown.insert(0, Step(-1, "", text=f"... {cut} more, the same in both ..."))
    if len(rest) > most:
        shown.append(Step(-1, "", text=f"... {len(rest) - most} more messages ..."))
    return shown + end


def pair_text(pair: Pair) -> str:
    """Both in two columns; what differs first is marked."""
    columns = [[panel.title, *map(_line, panel.steps)] for panel in (pair.good, pair.bad)]
    rows = max(map(len, columns))
    left, right = (column + [""] * (rows - len(column)) for column in columns)
    width = max(map(len, left)) + 4
    lines = [pair.title, ""]
    lines += [f"{one:{width}}{other}".rstrip() for one, other in zip(left, right, strict=True)]
    sites = max((len(site) for site, _ in pair.source), default=0)
    lines += ["", *(f"{site:{sites}}  {line}".rstrip() for site, line in pair.source)]
    return "\n".join(lines) + "\n"


def _line(step: Step) -> str:
    mark = "> " if step.decides else "! " if step.fails else "  "
    if step.rank < 0:
        return f"  {step.text}"
    if step.sender < 0:
        return f"{mark}rank {step.rank} {step.says}"
    return f"{mark}{step.sender} -> {step.rank}  {step.says}"


def pair_svg(pair: Pair) -> str:
    """The SVG document: plain shapes and text, no script, no font of its own."""
    return _Drawing(pair).text()


class _Drawing:
    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        steps = [*pair.good.steps, *pair.bad.steps]
        labels = [width_of(one.says, 12) + 24 for one in steps if one.sender >= 0]
        notes = [width_of(one.says or one.text, 12) / 2 + 8 for one in steps if one.sender < 0]
        self._lane = max([LANE, *labels])
        self._side = max([SIDE, *notes])
        lanes = self._lane * (len(pair.ranks) - 1)
        titles = [width_of(panel.title, 15) + 16 for panel in (pair.good, pair.bad)]
        self._panel = max(2 * self._side + lanes, *titles)
        self._margin = (self._panel - lanes) / 2  # left of a panel's first life line
        self._rows = max(len(pair.good.steps), len(pair.bad.steps))
        code = [width_of(f"{site}  {line}", 14) + 2 * GAP for site, line in pair.source]
        self._width = max([2 * self._panel + GAP, width_of(pair.title, 18) + GAP, *code])
        self._bottom = TOP + ROW * self._rows
        self._height = self._bottom + FOOT + LINE * (len(pair.source) + 1)
        size = {"width": _number(self._width), "height": _number(self._height)}
        box = f"0 0 {size['width']} {size['height']}"
        self._root = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": box})
        self._root.attrib.update(size)
        self._root.set("font-family", FONT)
        self._root.set("font-size", "12")

    def text(self) -> str:
        self._shape("title").text = self._pair.title
        self._markers()
        self._shape("rect", width="100%", height="100%", fill="#ffffff")
        middle = self._width / 2
        self._write(middle, 28, self._pair.title, font_size=18, font_weight=600)
        left = (self._width - 2 * self._panel - GAP) / 2
        self._panel_at(left, self._pair.good, GOOD)
        self._panel_at(left + self._panel + GAP, self._pair.bad, BAD)
        self._shape(
            "line",
            x1=middle,
            y1=46,
            x2=middle,
            y2=self._bottom,
            stroke=LIFE,
            stroke_dasharray="2 4",
        )
        self._source()
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"

    def _shape(
        self, tag: str, parent: ET.Element | None = None, /, **attributes: object
    ) -> ET.Element:
        values = {name.replace("_", "-"): _number(value) for name, value in attributes.items()}
        return ET.SubElement(self._root if parent is None else parent, tag, values)

    def _write(self, x: float, y: float, what: str, **attributes: object) -> None:
        style: dict[str, object] = {"fill": INK, "text_anchor": "middle", **attributes}
        self._shape("text", x=x, y=y, **style).text = what

    def _markers(self) -> None:
        """Arrow heads, one per colour."""
        defs = self._shape("defs")
        for colour in (PLAIN, GOOD, BAD):
            marker = self._shape(
                "marker",
                defs,
                id=f"head-{colour[1:]}",
                viewBox="0 0 10 10",
                refX=9,
                refY=5,
                markerWidth=9,
                markerHeight=9,
                markerUnits="userSpaceOnUse",
                orient="auto",
            )
            self._shape("path", marker, d="M0,0.5 L10,5 L0,9.5 z", fill=colour)

    def _panel_at(self, left: float, panel: Panel, colour: str) -> None:
        self._write(
            left + self._panel / 2, 58, panel.title, fill=colour, font_size=15, font_weight=600
        )
        where = {
            rank: left + self._margin + self._lane * column
            for column, rank in enumerate(self._pair.ranks)
        }
        for rank, x in where.items():
            self._shape("line", x1=x, y1=72 + HEAD, x2=x, y2=self._bottom, stroke=LIFE)
            self._shape(
                "rect", x=x - 32, y=72, width=64, height=HEAD, rx=6, fill="#f5f7fa", stroke=LIFE
            )
            self._write(x, 72 + HEAD / 2 + 4, f"rank {rank}", font_weight=600)
        for row, step in enumerate(panel.steps):
            y = TOP + ROW * (row + 0.6)
            own = colour if step.decides or step.fails else PLAIN
            if step.sender >= 0:
                self._arrow(where[step.sender], where[step.rank], y, step, own)
                continue
            x = where[step.rank] if step.rank >= 0 else left + self._panel / 2
            self._note(x, y, step, own)

    def _arrow(self, begin: float, end: float, y: float, step: Step, colour: str) -> None:
        style = {"stroke": colour, "stroke_width": 2.6 if step.decides else 1.4}
        head = f"url(#head-{colour[1:]})"
        if begin == end:  # a message to oneself
            path = f"M{_number(begin)},{_number(y - 8)} h26 v12 h-22"
            self._shape("path", d=path, fill="none", marker_end=head, **style)
            self._label(begin, y - 14, step.says, colour, bold=step.decides)
            return
        stop = end - 3 if end > begin else end + 3
        self._shape("line", x1=begin, y1=y, x2=stop, y2=y, marker_end=head, **style)
        self._shape("circle", cx=begin, cy=y, r=3, fill=colour)
        self._label((begin + end) / 2, y - 7, step.says, colour, bold=step.decides)

    def _note(self, x: float, y: float, step: Step, colour: str) -> None:
        """A row without a message."""
        if step.rank >= 0 and not step.fails:
            self._shape("circle", cx=x, cy=y + 6, r=4, fill=colour)
        elif step.rank >= 0:
            cross = f"M{_number(x - 5)},{_number(y + 1)} l10,10 m0,-10 l-10,10"
            self._shape("path", d=cross, fill="none", stroke=colour, stroke_width=2)
        self._label(x, y - 5, step.says or step.text, colour, bold=step.fails or step.decides)

    def _label(self, x: float, y: float, what: str, colour: str, *, bold: bool) -> None:
        width = width_of(what, 12)
        self._shape("rect", x=x - width / 2, y=y - 11, width=width, height=14, rx=3, fill="#ffffff")
        self._write(x, y, what, fill=colour, font_weight=600 if bold else 400)

    def _source(self) -> None:
        y = self._bottom + FOOT
        for site, line in self._pair.source:
            self._write(GAP, y, site, fill=PALE, text_anchor="start", font_family=CODE)
            widest = max(width_of(one, 13) for one, _ in self._pair.source)
            self._write(GAP + widest + 12, y, line, text_anchor="start", font_family=CODE)
            y += LINE


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
