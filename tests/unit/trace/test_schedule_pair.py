"""Two schedules side by side: what is shown, and that no label lies on another."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from ompy.trace.drawing.labels import width_of
from ompy.trace.drawing.schedule_pair import Pair, Panel, Step, pair_svg, pair_text, shortened

SVG = "{http://www.w3.org/2000/svg}"
FIRST = Step(0, "app.py:4", 2, "app.py:9", decides=True)
OTHER = Step(0, "app.py:4", 1, "app.py:9", decides=True)
SAME = Step(2, "app.py:20", 1, "app.py:17")
WAITS = Step(0, "app.py:5", text="waits at", fails=True)
SOURCE = [("app.py:4", "first = comm.recv(source=MPI.ANY_SOURCE)"), ("app.py:9", "comm.send(1)")]


def pair_with(before: int, after: int, name: str = "app.py") -> Pair:
    def named(step: Step) -> Step:
        return step._replace(
            site=step.site.replace("app.py", name), sent=step.sent.replace("app.py", name)
        )

    common, rest = [SAME] * before, [SAME] * after
    good = [*common, FIRST, *rest]
    bad = [*common, OTHER, *rest, WAITS]
    return Pair(
        "app: two schedules",
        [0, 1, 2],
        Panel("it ends well", [named(step) for step in good]),
        Panel("deadlock", [named(step) for step in bad]),
        [(site.replace("app.py", name), line) for site, line in SOURCE],
    )


def test_as_text():
    assert pair_text(pair_with(1, 0)).splitlines() == [
        "app: two schedules",
        "",
        "it ends well                 deadlock",
        "  1 -> 2  app.py:17 -> 20      1 -> 2  app.py:17 -> 20",
        "> 2 -> 0  app.py:9 -> 4      > 1 -> 0  app.py:9 -> 4",
        "                             ! rank 0 waits at app.py:5",
        "",
        "app.py:4  first = comm.recv(source=MPI.ANY_SOURCE)",
        "app.py:9  comm.send(1)",
    ]


def test_what_both_have_in_common_is_left_out():
    short = shortened(pair_with(30, 30))
    for panel in (short.good, short.bad):
        assert panel.steps[0].text == "... 26 more, the same in both ..."
        assert sum(step.decides for step in panel.steps) == 1
        assert len(panel.steps) < 20
    assert short.bad.steps[-1] == WAITS
    assert shortened(pair_with(1, 1)) == pair_with(1, 1)


@pytest.mark.parametrize("name", ["a.py", "a_name_that_is_very_long_for_a_program_of_its_kind.py"])
def test_no_label_lies_on_another_or_beyond_the_edge(name):
    root = ET.fromstring(pair_svg(shortened(pair_with(9, 9, name))))
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    boxes = []
    for text in root.iter(f"{SVG}text"):
        size = float(text.get("font-size", "12"))
        wide = width_of(text.text or "", size)
        x, y = float(text.get("x", "0")), float(text.get("y", "0"))
        left = x if text.get("text-anchor") == "start" else x - wide / 2
        boxes.append((left, y - size, left + wide, y, text.text))
    assert len(boxes) > 20
    for left, top, right, bottom, text in boxes:
        assert left >= 0, text
        assert right <= width, text
        assert bottom <= height, text
        over = [
            other[4]
            for other in boxes
            if other[4] is not text
            and other[0] < right
            and left < other[2]
            and other[1] < bottom
            and top < other[3]
        ]
        assert not over, (text, over)
