"""The sequence diagram's labels: none lies on another."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree as ET

from ompy.trace.messages import Kind
from ompy.trace.sequence import Diagram, Line, Point
from ompy.trace.svg import svg

NAMESPACE = "{http://www.w3.org/2000/svg}"


def label_places(document: str, wanted: set[str]) -> dict[str, tuple[float, float]]:
    found = {}
    for text in ET.fromstring(document).iter(f"{NAMESPACE}text"):
        if text.text in wanted:
            found[text.text] = (float(text.get("x", "")), float(text.get("y", "")))
    return found


def test_arrows_that_cross_in_their_middles_keep_their_names() -> None:
    """As PUT and get do, where both ranks copy."""
    diagram = Diagram("a message", "RDMA Direct Get", [(0, "rank 0"), (1, "rank 1")], rows=6)
    for text, sender, first, last in (
        ("PUT", 1, 0, 4),
        ("get 512 KiB over sm", 0, 1, 3),
        ("FIN", 1, 2, 2),
    ):
        start, end = Point(sender, 0, row=first), Point(1 - sender, 0, row=last)
        diagram.lines.append(Line(start, end, Kind.CONTROL, text))
    diagram.gaps.append((5, "9 more FRAG"))
    names = {"PUT", "get 512 KiB over sm", "FIN", "... 9 more FRAG ..."}
    places = label_places(svg(diagram), names)
    assert set(places) == names
    for one, other in combinations(places, 2):
        (x1, y1), (x2, y2) = places[one], places[other]
        room = 7 * (len(one) + len(other)) / 2
        assert abs(y1 - y2) >= 18 or abs(x1 - x2) >= room, (one, other)
