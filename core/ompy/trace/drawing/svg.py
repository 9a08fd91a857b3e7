"""A sequence diagram as SVG: plain shapes and text, no script, no font of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

from ompy.trace.amounts import duration
from ompy.trace.drawing.diagram import Diagram, Line, Point
from ompy.trace.drawing.labels import CLEAR, Box, Layout, width_of
from ompy.trace.message_events import Kind

# all in pixels; arbitrary: what looked right
ROW: Final = 30
TOP: Final = 132  # arbitrary: title and the heads of the life lines
LANE: Final = 380  # arbitrary: between two life lines; more where a label needs it
SIDE: Final = 250  # arbitrary: room for times and notes beside the outer life lines; or more
AIR: Final = 4  # arbitrary: half of what `width_of` adds to a text
MARGIN: Final = 14  # arbitrary: from the edge to the times
BESIDE: Final = 18  # arbitrary: from a life line to the text of a point there
STRETCHES: Final = (1, 1.5, 2, 3, 5)  # arbitrary: rows are so much higher where labels need room
HEAD: Final = 160  # arbitrary: width of the head of a life line, or more
FOOT: Final = 70  # arbitrary: room for the legend
LETTERS: Final = 16  # arbitrary: of a line of the legend that says what letters are
RADIUS: Final = 10  # arbitrary: of a letter's circle
LOOP: Final = 44  # arbitrary: width of an arrow to oneself
THICK, THIN = 3.5, 1.6  # arbitrary: arrows of put and get, and others

INK: Final = "#1f2933"
PALE: Final = "#7b8794"
LIFE: Final = "#cbd2d9"
BAR: Final = "#e4ecf7"
COLOURS: Final = {Kind.DATA: "#1d4ed8", Kind.CONTROL: "#64748b", Kind.RDMA: "#c2410c"}
FONT: Final = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


def svg(diagram: Diagram) -> str:
    """The SVG document. No label lies on a life line, or on another label."""
    for stretch in STRETCHES:
        drawing = _Drawing(diagram, stretch)
        text = drawing.text()
        if not drawing.crowded:
            break
    return text


class _Drawing:
    def __init__(self, diagram: Diagram, stretch: float) -> None:
        self._diagram = diagram
        self._row = ROW * stretch
        self._column = {rank: index for index, (rank, _) in enumerate(diagram.ranks)}
        self._head = max([HEAD, *(width_of(head, 14) + 10 for _, head in diagram.ranks)])
        self._lane = max(LANE, self._head + 20, _widest_label(diagram) + 2 * CLEAR)
        lanes = self._lane * max(1, len(diagram.ranks) - 1)
        titles = max(width_of(diagram.title, 19), width_of(diagram.subtitle, 14))
        self._side = max(SIDE, _widest_side(diagram), (titles - lanes) / 2)
        self._width = 2 * self._side + lanes
        self._letters = _wrapped(diagram.letters, self._width - 2 * MARGIN)
        below = FOOT + LETTERS * len(self._letters)
        self._height = TOP + self._row * (diagram.rows + 1) + below
        self._latest = _latest(diagram)
        self._layout = Layout([self._x(rank) for rank, _ in diagram.ranks], self._width)
        self._root = ET.Element(
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            width=_number(self._width),
            height=_number(self._height),
            viewBox=f"0 0 {_number(self._width)} {_number(self._height)}",
        )
        self._root.set("font-family", FONT)
        self._root.set("font-size", "14")

    def text(self) -> str:
        self._shape("title").text = f"{self._diagram.title}: {self._diagram.subtitle}"
        self._markers()
        self._shape("rect", width="100%", height="100%", fill="#ffffff")
        self._heading()
        self._life_lines()
        for line in self._diagram.lines:
            self._arrow(line)
        for point in _points(self._diagram):
            self._point(point)
        for row, what in self._diagram.gaps:
            self._gap(row, what)
        for line in self._diagram.lines:  # above all arrows
            self._label(line)
        self._legend()
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"

    @property
    def crowded(self) -> bool:
        """Whether labels found no room."""
        return self._layout.crowded

    def _shape(
        self, tag: str, parent: ET.Element | None = None, /, **attributes: object
    ) -> ET.Element:
        values = {name.replace("_", "-"): _number(value) for name, value in attributes.items()}
        return ET.SubElement(self._root if parent is None else parent, tag, values)

    def _write(self, x: float, y: float, what: str, **attributes: object) -> None:
        self._shape("text", x=x, y=y, **{"fill": INK, **attributes}).text = what

    def _x(self, rank: int) -> float:
        if len(self._column) == 1:
            return self._width / 2
        return self._side + self._lane * self._column[rank]

    def _y(self, row: int) -> float:
        return TOP + self._row * (row + 0.5)

    def _markers(self) -> None:
        """Arrow heads, one per colour: a marker does not take its line's colour everywhere."""
        defs = self._shape("defs")
        for kind, colour in COLOURS.items():
            marker = self._shape(
                "marker",
                defs,
                id=f"head-{kind.name.lower()}",
                viewBox="0 0 10 10",
                refX=9,
                refY=5,
                markerWidth=9,
                markerHeight=9,
                markerUnits="userSpaceOnUse",
                orient="auto-start-reverse",
            )
            self._shape("path", marker, d="M0,0.5 L10,5 L0,9.5 z", fill=colour)

    def _heading(self) -> None:
        middle = self._width / 2
        self._write(
            middle, 32, self._diagram.title, font_size=19, font_weight=600, text_anchor="middle"
        )
        self._write(middle, 56, self._diagram.subtitle, fill=PALE, text_anchor="middle")
        for rank, head in self._diagram.ranks:
            x = self._x(rank)
            self._shape(
                "rect",
                x=x - self._head / 2,
                y=78,
                width=self._head,
                height=32,
                rx=6,
                fill="#f5f7fa",
                stroke=LIFE,
            )
            self._write(x, 99, head, font_weight=600, text_anchor="middle")

    def _life_lines(self) -> None:
        bottom = TOP + self._row * self._diagram.rows
        for rank, _ in self._diagram.ranks:
            x = self._x(rank)
            self._shape("line", x1=x, y1=110, x2=x, y2=bottom, stroke=LIFE, stroke_width=1.5)
        for bar in self._diagram.bars:
            top = self._y(bar.first) - RADIUS
            height = self._y(bar.last) + RADIUS - top
            x = self._x(bar.rank) - 5
            self._shape("rect", x=x, y=top, width=10, height=height, rx=5, fill=BAR)

    def _arrow(self, line: Line) -> None:
        x1, x2 = self._x(line.start.rank), self._x(line.end.rank)
        y1, y2 = self._y(line.start.row), self._y(line.end.row)
        colour = COLOURS[line.kind]
        style: dict[str, object] = {
            "stroke": colour,
            "stroke_width": 3.5 if line.kind is Kind.RDMA else 1.6,
        }
        if line.kind is Kind.CONTROL:
            style["stroke_dasharray"] = "6 4"
        head = f"url(#head-{line.kind.name.lower()})"
        if line.start.rank == line.end.rank:  # a message to oneself
            path = f"M{x1 + RADIUS},{y1} h{LOOP} v{_number(y2 - y1)} h-{LOOP}"
            self._shape("path", d=path, fill="none", marker_end=head, **style)
            return
        step = 1 if x2 > x1 else -1
        begin = x1 + step * (RADIUS if line.start.letter else 4)
        end = x2 - step * (RADIUS + 1 if line.end.letter else 5)
        self._shape("line", x1=begin, y1=y1, x2=end, y2=y2, marker_end=head, **style)

    def _label(self, line: Line) -> None:
        start = self._x(line.start.rank), self._y(line.start.row)
        end = self._x(line.end.rank), self._y(line.end.row)
        width = width_of(line.text)
        if line.start.rank == line.end.rank:  # beside the loop
            x = start[0] + RADIUS + LOOP + width / 2
            start, end = (x, start[1]), (x, end[1])
        box = self._layout.place(start, end, width)
        self._ground(box)
        colour = COLOURS[line.kind]
        self._write(box.x, box.y + 5, line.text, fill=colour, text_anchor="middle", font_size=13)

    def _ground(self, box: Box) -> None:
        """White under a label."""
        left, top = box.x - box.width / 2, box.y - box.height / 2
        self._shape("rect", x=left, y=top, width=box.width, height=box.height, rx=4, fill="#ffffff")

    def _gap(self, row: int, what: str) -> None:
        y = self._y(row)
        left, right = self._x(self._diagram.ranks[0][0]), self._x(self._diagram.ranks[-1][0])
        text = f"... {what} ..."
        box = self._layout.place((left, y), (right, y), width_of(text))
        self._ground(box)
        self._write(
            box.x, y + 5 + box.y - y, text, fill=PALE, font_style="italic", text_anchor="middle"
        )

    def _point(self, point: Point) -> None:
        x, y = self._x(point.rank), self._y(point.row)
        if point.letter:
            self._shape("circle", cx=x, cy=y, r=RADIUS, fill=INK)
            self._write(
                x,
                y + 4.5,
                point.letter,
                fill="#ffffff",
                font_size=12,
                font_weight=700,
                text_anchor="middle",
            )
        else:
            self._shape("circle", cx=x, cy=y, r=3.5, fill=PALE)
        if not point.letter and not point.text:
            return
        leftmost = self._column[point.rank] == 0 and len(self._column) > 1
        side, anchor, margin, outer = (
            (-1, "end", MARGIN, "start") if leftmost else (1, "start", self._width - MARGIN, "end")
        )
        if point.text:
            at, width = x + side * BESIDE, width_of(point.text, 14)
            box = Box(at + side * (width / 2 - AIR), y, width)
            self._layout.place_box(box)
            self._ground(box)
            self._write(at, y + 5, point.text, text_anchor=anchor)
        when = duration(point.time, self._latest)
        width = width_of(when, 12)
        self._layout.place_box(Box(margin - side * width / 2, y, width))
        self._write(margin, y + 5, when, text_anchor=outer, fill=PALE, font_size=12)

    def _legend(self) -> None:
        y = self._height - 30 - LETTERS * len(self._letters)
        x = self._width / 2 - 270
        for kind, text in zip(COLOURS, self._diagram.legend, strict=True):
            dash: dict[str, object] = {"stroke_dasharray": "6 4"} if kind is Kind.CONTROL else {}
            self._shape(
                "line",
                x1=x,
                y1=y,
                x2=x + 36,
                y2=y,
                stroke=COLOURS[kind],
                stroke_width=THICK if kind is Kind.RDMA else THIN,
                **dash,
            )
            self._write(x + 44, y + 5, text, fill=PALE, font_size=12)
            x += 180
        for line in (self._diagram.note, *self._letters):
            y += 24 if line is self._diagram.note else LETTERS
            self._write(self._width / 2, y, line, fill=PALE, font_size=11, text_anchor="middle")


def _points(diagram: Diagram) -> list[Point]:
    """Each place once, those at arrows too."""
    points = {(p.rank, p.row): p for line in diagram.lines for p in (line.start, line.end)}
    points |= {(point.rank, point.row): point for point in diagram.points}
    return list(points.values())


def _widest_label(diagram: Diagram) -> float:
    """Of those that stand in a lane."""
    labels = [
        width_of(line.text) + (line.start.rank == line.end.rank) * (RADIUS + LOOP)
        for line in diagram.lines
    ]
    labels += [width_of(f"... {what} ...") for _, what in diagram.gaps]
    return max([0.0, *labels, *(width_of(point.text, 14) for point in _points(diagram))])


def _widest_side(diagram: Diagram) -> float:
    """What stands beside the outer life lines, with its time."""
    loops = [line.text for line in diagram.lines if line.start.rank == line.end.rank]
    texts = [width_of(point.text, 14) + BESIDE for point in _points(diagram)]
    texts += [width_of(text) + RADIUS + LOOP + CLEAR for text in loops]
    latest = _latest(diagram)
    times = [width_of(duration(point.time, latest), 12) for point in _points(diagram)]
    return max([0.0, *texts]) + max([0.0, *times]) + 2 * MARGIN


def _latest(diagram: Diagram) -> int:
    """The time of the last point, which decides the unit of all."""
    return max((point.time for point in _points(diagram)), default=0)


def _wrapped(texts: Sequence[str], width: float) -> list[str]:
    """Lines of texts, none wider than the picture where it can be helped."""
    lines: list[str] = []
    for text in texts:
        longer = f"{lines[-1]} · {text}" if lines else text
        if lines and width_of(longer, 11) <= width:
            lines[-1] = longer
        else:
            lines.append(text)
    return lines


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
