"""The sequence diagram's labels: none lies on another, or on a life line."""

from __future__ import annotations

from itertools import combinations
from random import Random
from xml.etree import ElementTree as ET

import pytest
from ompy.trace.drawing.diagram import Diagram, Line, Point
from ompy.trace.drawing.labels import AIRY, CLEAR, STEP, Layout, width_of
from ompy.trace.drawing.sequence_diagram import arrange
from ompy.trace.drawing.svg import svg
from ompy.trace.message_events import Kind, Message
from ompy.trace.sink import Event

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


def drawn_at_random(seed: int, ranks: int) -> Diagram:
    """Arrows between any two ranks, each point in a row of its own, as `arrange` has it."""
    random = Random(seed)
    hosts = [random.choice(("n1", "node-17.cluster")) for _ in range(ranks)]
    heads = [(rank, f"rank {rank} on {host}") for rank, host in enumerate(hosts)]
    title = f"{random.randint(2, 20)} messages"
    diagram = Diagram(title, "Eager Send (Immediate), RDMA Pipeline", heads)
    count = random.randint(1, 20)
    rows = random.sample(range(3 * count), 3 * count)
    for number in range(count):
        first, last = sorted((rows.pop(), rows.pop()))
        sender, receiver = random.randrange(ranks), random.randrange(ranks)
        text = random.choice(("FIN", "MATCH 12 B #3", "get 512 KiB over tcp[1] #12"))
        said = random.choice(("", "receive posted #7", "send complete"))
        start = Point(sender, number * 10**6, random.choice(("", "A")), said, first)
        end = Point(receiver, number * 10**6, text=random.choice(("", "not received")), row=last)
        diagram.lines.append(Line(start, end, random.choice(list(Kind)), text))
        if random.random() < 0.3:
            diagram.gaps.append((rows.pop(), "120 more FRAG, 4 MiB"))
    diagram.rows = 3 * count
    return diagram


def boxes(document: str) -> dict[str, list[tuple[float, float, float, float]]]:
    """Left, right, top and bottom of all texts but letters in circles, and of life lines."""
    found: dict[str, list[tuple[float, float, float, float]]] = {"texts": [], "lives": []}
    for shape in ET.fromstring(document).iter():
        at = {name: shape.get(name, "") for name in shape.attrib}
        if shape.tag == f"{NAMESPACE}text" and len(shape.text or "") > 1:
            size = float(at.get("font-size", 14))
            # em; Helvetica's mean, which is less than the room the picture takes for a letter
            width, x, y = 0.5 * size * len(shape.text or ""), float(at["x"]), float(at["y"])
            left = x - {"middle": width / 2, "end": width}.get(at.get("text-anchor", ""), 0)
            found["texts"].append((left, left + width, y - 0.75 * size, y + 0.1 * size))
        elif shape.tag == f"{NAMESPACE}line" and at["x1"] == at["x2"]:
            x = float(at["x1"])
            found["lives"].append((x - 1, x + 1, float(at["y1"]), float(at["y2"])))
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 8])
def test_no_label_lies_on_a_life_line_or_on_another(ranks: int) -> None:
    for seed in range(12):
        document = svg(drawn_at_random(seed, ranks))
        found = boxes(document)
        assert len(found["lives"]) == ranks
        width = float(ET.fromstring(document).get("width", ""))
        for index, one in enumerate(found["texts"]):
            assert one[0] >= 0, (seed, one)
            assert one[1] <= width, (seed, one)
            for other in [*found["texts"][:index], *found["lives"]]:
                apart = one[1] <= other[0] or other[1] <= one[0]
                assert apart or one[3] <= other[2] or other[3] <= one[2], (seed, one, other)


def test_the_name_of_a_long_arrow_stays_beside_the_life_lines_it_crosses() -> None:
    heads = [(rank, f"rank {rank}") for rank in range(3)]
    line = Line(Point(0, 0, row=0), Point(2, 0, row=1), Kind.DATA, "MATCH 8 B")
    document = svg(Diagram("a message", "Eager Send", heads, [line], rows=2))
    ((x, _),) = label_places(document, {"MATCH 8 B"}).values()
    lives = [(left + right) / 2 for left, right, *_ in boxes(document)["lives"]]
    half = width_of("MATCH 8 B") / 2
    assert all(abs(x - life) - half > AIRY - STEP for life in lives)


def test_a_label_that_is_exactly_as_wide_as_its_lane() -> None:
    """It had no room, by a rounding error (seen in a trace of GASNet: 802.3 - 411.14)."""
    width = 363.16
    layout = Layout([411.14, 802.3], 1200)
    box = layout.place((802.3, 1137.0), (411.14, 2187.0), width)
    assert 411.14 + CLEAR - 1 < box.x - width / 2 < box.x + width / 2 < 802.3 - CLEAR + 1


def texts(diagram: Diagram) -> list[str]:
    return [text.text or "" for text in ET.fromstring(svg(diagram)).iter(f"{NAMESPACE}text")]


@pytest.mark.parametrize(("last", "unit"), [(9_999_999, "us"), (46_617_935, "ms")])
def test_all_times_of_a_picture_have_one_unit(last: int, unit: str) -> None:
    diagram = Diagram("a message", "Eager", [(0, "rank 0"), (1, "rank 1")], rows=2)
    start, end = Point(0, 91_100, "A", row=0), Point(1, last, "C", row=1)
    diagram.lines.append(Line(start, end, Kind.DATA, "MATCH"))
    times = [text for text in texts(diagram) if text.endswith((" us", " ms"))]
    assert len(times) == 2
    assert all(time.endswith(unit) for time in times), times


def test_what_letters_stand_for_is_within_the_picture() -> None:
    diagram = Diagram("a message", "Eager", [(0, "rank 0"), (1, "rank 1")], rows=2)
    diagram.letters = [f"{letter}: FRAG sent, send complete" for letter in "ABCDEFGHIJK"]
    root = ET.fromstring(svg(diagram))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    lines = [text for text in root.iter(f"{NAMESPACE}text") if "FRAG sent" in (text.text or "")]
    assert " · ".join(line.text or "" for line in lines) == " · ".join(diagram.letters)
    assert all(width_of(line.text or "", 11) <= width for line in lines)
    places = [float(line.get("y", "")) for line in lines]
    assert max(places) < height
    assert len(set(places)) == len(places)


def test_a_message_whose_sender_was_killed_adds_no_empty_name_to_the_heading() -> None:
    some = []
    for number, protocol in enumerate(("Eager Send (Immediate)", "")):
        message = Message(0, 1, number)
        message.sender = 0
        fields = {"side": "receive", "peer": 0, "tag": 5}
        message.add_event(Event(number, 1, "pml.ob1", "MATCH", tuple(fields.items())), fields)
        message.protocol = protocol
        some.append(message)
    assert arrange(some, {}).subtitle == "Eager Send (Immediate)"
