"""A sequence diagram as SVG: plain shapes and text, no script, no font of its own."""

from __future__ import annotations

from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from ompy.trace.amounts import duration
from ompy.trace.messages import Kind
from ompy.trace.sequence import Diagram, Line, Point

# all in pixels; arbitrary: what looked right
ROW: Final = 30
TOP: Final = 132  # arbitrary: title and the heads of the life lines
LANE: Final = 380  # arbitrary: between two life lines, the longest label fits
SIDE: Final = 250  # arbitrary: room for times and notes beside the outer life lines
FOOT: Final = 70  # arbitrary: room for the legend
RADIUS: Final = 10  # arbitrary: of a letter's circle
LOOP: Final = 44  # arbitrary: width of an arrow to oneself
THICK, THIN = 3.5, 1.6  # arbitrary: arrows of put and get, and others

INK: Final = "#1f2933"
PALE: Final = "#7b8794"
LIFE: Final = "#cbd2d9"
BAR: Final = "#e4ecf7"
COLOURS: Final = {Kind.DATA: "#1d4ed8", Kind.CONTROL: "#64748b", Kind.RDMA: "#c2410c"}
FONT: Final = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


# along an arrow, where its label may be; arbitrary: the middle is best
PLACES: Final = (0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.72, 0.22, 0.78)


class _Box(NamedTuple):
    """A label's room: its middle and width."""

    x: float
    y: float
    width: float

    def meets(self, other: _Box) -> bool:
        """Whether the two would lie on each other."""
        apart = abs(self.x - other.x) >= (self.width + other.width) / 2
        return not apart and abs(self.y - other.y) < 19


def svg(diagram: Diagram) -> str:
    """The SVG document."""
    return _Drawing(diagram).text()


class _Drawing:
    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        self._column = {rank: index for index, (rank, _) in enumerate(diagram.ranks)}
        self._width = 2 * SIDE + LANE * max(1, len(diagram.ranks) - 1)
        self._height = TOP + ROW * (diagram.rows + 1) + FOOT
        self._root = ET.Element(
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            width=str(self._width),
            height=str(self._height),
            viewBox=f"0 0 {self._width} {self._height}",
        )
        self._labels: list[_Box] = []
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
        for row, what in self._diagram.gaps:
            self._gap(row, what)
        for line in self._diagram.lines:  # above all arrows
            self._label(line)
        points = {
            (p.rank, p.row): p for line in self._diagram.lines for p in (line.start, line.end)
        }
        points |= {(point.rank, point.row): point for point in self._diagram.points}
        for point in points.values():
            self._point(point)
        self._legend()
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"

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
        return SIDE + LANE * self._column[rank]

    def _y(self, row: int) -> float:
        return TOP + ROW * (row + 0.5)

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
                "rect", x=x - 80, y=78, width=160, height=32, rx=6, fill="#f5f7fa", stroke=LIFE
            )
            self._write(x, 99, head, font_weight=600, text_anchor="middle")

    def _life_lines(self) -> None:
        bottom = TOP + ROW * self._diagram.rows
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
        x, y = self._place(line)
        colour = COLOURS[line.kind]
        self._write(x, y + 5, line.text, fill=colour, text_anchor="middle", font_size=13)

    def _place(self, line: Line) -> tuple[float, float]:
        """The middle of an arrow's label: on the arrow, where no other label is, if it can be."""
        x1, x2 = self._x(line.start.rank), self._x(line.end.rank)
        y1, y2 = self._y(line.start.row), self._y(line.end.row)
        width = _width(line.text)
        if line.start.rank == line.end.rank:
            x1 = x2 = x1 + RADIUS + LOOP + width / 2
        for part in PLACES:
            box = _Box(x1 + part * (x2 - x1), y1 + part * (y2 - y1), width)
            if not any(box.meets(other) for other in self._labels):
                break
        else:
            box = _Box((x1 + x2) / 2, (y1 + y2) / 2, width)
        self._ground(box)
        return box.x, box.y

    def _ground(self, box: _Box) -> None:
        """White under a label."""
        self._labels.append(box)
        left = box.x - box.width / 2
        self._shape("rect", x=left, y=box.y - 9, width=box.width, height=18, rx=4, fill="#ffffff")

    def _gap(self, row: int, what: str) -> None:
        y = self._y(row)
        left, right = self._x(self._diagram.ranks[0][0]), self._x(self._diagram.ranks[-1][0])
        middle = (left + right) / 2
        text = f"... {what} ..."
        self._ground(_Box(middle, y, _width(text)))
        self._write(middle, y + 5, text, fill=PALE, font_style="italic", text_anchor="middle")

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
            (-1, "end", 14, "start") if leftmost else (1, "start", self._width - 14, "end")
        )
        if point.text:
            self._write(x + side * 18, y + 5, point.text, text_anchor=anchor)
        when = duration(point.time)
        self._write(margin, y + 5, when, text_anchor=outer, fill=PALE, font_size=12)

    def _legend(self) -> None:
        y = self._height - 30
        x = self._width / 2 - 270
        for kind, text in zip(
            COLOURS, ("fragment with data", "control message", "put or get"), strict=True
        ):
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
        note = "Letters: the steps of ob1's protocols. Down the page is later, to no scale."
        self._write(self._width / 2, y + 24, note, fill=PALE, font_size=11, text_anchor="middle")


def _width(text: str) -> float:
    return 7.2 * len(text) + 10  # px; arbitrary: a little more than letters take


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
