"""Who waits for whom as a picture: ranks on a circle, arrows to those that they wait for (SVG)."""

from __future__ import annotations

import math
from typing import Final
from xml.etree import ElementTree as ET

from ompy.runtime.diagnosis.autopsy import line_text, need_text
from ompy.runtime.machines.diagnosis.deadlock import Deadlock, Waits

# all in pixels; arbitrary: what looked right
RADIUS: Final = 24  # of a rank
NEAREST: Final = 84  # between two ranks on the circle
LEAST: Final = 110  # radius of the circle, at least
MARGIN: Final = 48
LINE: Final = 22  # height of a line of text
LETTER: Final = 8  # width of a letter of the text
HEAD: Final = 9  # of an arrow
SHOWN: Final = 32  # ranks; arbitrary: more are a tangle, and the text has them
INDENT: Final = 24  # of what a rank waits for
TEXT: Final = 110  # letters of a line of the program; arbitrary
KEY: Final = "An arrow leads to a rank that is waited for. Red: a circle of these."

INK: Final = "#1f2933"
PALE: Final = "#9aa5b1"
IN_CIRCLE: Final = "#c2410c"
BACK: Final = "#e4ecf7"
FONT: Final = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"


def wait_graph(found: Deadlock) -> str:
    """The SVG document."""
    return _Picture(found).text()


class _Picture:
    def __init__(self, found: Deadlock) -> None:
        first = [each for each in found.waits if each.rank in found.cycle]
        rest = [each for each in found.waits if each.rank not in found.cycle]
        order = sorted(first, key=lambda each: found.cycle.index(each.rank))
        self._waits = [*order, *rest][:SHOWN]
        self._left_out = len(found.waits) - len(self._waits)
        pairs = zip(found.cycle, (*found.cycle[1:], *found.cycle[:1]), strict=True)
        self._circle = set(pairs)
        radius = max(LEAST, NEAREST * len(self._waits) / (2 * math.pi))
        self._centre = MARGIN + RADIUS + radius
        self._places = {
            each.rank: self._place(index, radius) for index, each in enumerate(self._waits)
        }
        self._texts = [(0, KEY)]
        for each in self._waits:
            self._texts.append((0, _sentence(each)))
            if each.needs:
                self._texts.append((INDENT, _needed(each)))
        if self._left_out:
            self._texts.append((0, f"and {self._left_out} more ranks"))
        size = 2 * self._centre
        longest = max(aside + LETTER * len(text) for aside, text in self._texts)
        width = max(size, 2 * MARGIN + longest)
        self._top = size + MARGIN / 2
        height = self._top + LINE * (len(self._texts) + 1)
        self._root = ET.Element(
            "svg",
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width:.0f} {height:.0f}",
            width=f"{width:.0f}",
            height=f"{height:.0f}",
        )
        self._draw(width, height)

    def _place(self, index: int, radius: float) -> tuple[float, float]:
        turn = 2 * math.pi * index / max(1, len(self._waits)) - math.pi / 2
        return (
            self._centre + radius * math.cos(turn),
            self._centre + radius * math.sin(turn),
        )

    def text(self) -> str:
        """The document."""
        ET.indent(self._root)
        return ET.tostring(self._root, encoding="unicode") + "\n"

    def _draw(self, width: float, height: float) -> None:
        self._add("rect", width=f"{width:.0f}", height=f"{height:.0f}", fill="white")
        for each in self._waits:
            for other in each.ranks:
                if other in self._places:
                    self._arrow(each.rank, other)
        for rank, (x, y) in self._places.items():
            edge = IN_CIRCLE if any(rank in pair for pair in self._circle) else PALE
            shape = {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": str(RADIUS)}
            self._add("circle", fill=BACK, stroke=edge, **{"stroke-width": "2"}, **shape)
            self._write(x, y + 6, str(rank), anchor="middle", size=17)
        for number, (aside, text) in enumerate(self._texts):
            y = self._top + LINE * number
            self._write(MARGIN + aside, y, text, anchor="start", size=14)

    def _arrow(self, rank: int, other: int) -> None:
        inside = (rank, other) in self._circle
        colour, thick = (IN_CIRCLE, "2.5") if inside else (PALE, "1.3")
        (x, y), (to_x, to_y) = self._places[rank], self._places[other]
        if rank == other:
            way = f"M {x - 12:.1f} {y - 20:.1f} C {x - 50:.1f} {y - 80:.1f}"
            way += f" {x + 50:.1f} {y - 80:.1f} {x + 12:.1f} {y - 20:.1f}"
            end, turn = (x + 12, y - 20), math.atan2(60, -38)
        else:
            turn = math.atan2(to_y - y, to_x - x)
            aside = 5 if (other, rank) in self._circle or inside else 0  # there and back are two
            dx, dy = -aside * math.sin(turn), aside * math.cos(turn)
            start = (x + RADIUS * math.cos(turn) + dx, y + RADIUS * math.sin(turn) + dy)
            end = (to_x - RADIUS * math.cos(turn) + dx, to_y - RADIUS * math.sin(turn) + dy)
            way = f"M {start[0]:.1f} {start[1]:.1f} L {end[0]:.1f} {end[1]:.1f}"
        self._add("path", d=way, stroke=colour, fill="none", **{"stroke-width": thick})
        corners = [end]
        for side in (2.7, -2.7):
            angle = turn + side
            corners.append((end[0] + HEAD * math.cos(angle), end[1] + HEAD * math.sin(angle)))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        self._add("polygon", points=points, fill=colour)

    def _write(self, x: float, y: float, text: str, *, anchor: str, size: int) -> None:
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}
        style = {"font-family": FONT, "font-size": str(size), "fill": INK}
        self._add("text", **place, **style).text = text

    def _add(self, tag: str, **attributes: str) -> ET.Element:
        return ET.SubElement(self._root, tag, attributes)


def _sentence(waits: Waits) -> str:
    line = line_text(waits.place)
    text = line if len(line) <= TEXT else f"...{line[len(line) - TEXT :]}"
    return f"rank {waits.rank}: {text}"


def _needed(waits: Waits) -> str:
    """The first that would end the wait."""
    text = need_text(waits.needs[0])
    more = f", or {len(waits.needs) - 1} more" if len(waits.needs) > 1 else ""
    return f"{text if len(text) <= TEXT else text[:TEXT] + '...'}{more}"
