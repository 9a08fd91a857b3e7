"""Where the labels of a sequence diagram go: beside life lines and other labels, never on them.

Labels are boxes. What has its place (texts at points, times) is taken first; the label of an arrow
then goes as near to the middle of its arrow as there is room. A *lane* is the room between two
neighbouring life lines: no label is wider than one, and each lies within one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

HEIGHT: Final = 18  # px; arbitrary: of a line of text with some air
CLEAR: Final = 14  # px; arbitrary: from a life line, beside which are letters in circles
STEP: Final = 12  # px; arbitrary: between two places that are tried
AWAY: Final = 10  # arbitrary: so much worse than along its arrow is a pixel away from it
AIRY: Final = 40  # px; arbitrary: nearer to a life line a label seems to belong to its points
TIGHT: Final = 4  # arbitrary: so much worse than along its arrow is a pixel nearer than that
ROUNDING: Final = 0.001  # px; arbitrary: a lane that is as wide as its label has room for it
REACH: Final = 60  # px; arbitrary: farther from its arrow nobody would know whose it is
# em; about those of DejaVu Sans, the widest font that systems take for ours
_WIDE, _DIGIT, _OTHER, _NARROW = 0.8, 0.64, 0.62, 0.36
_THIN: Final = frozenset(" .,:;'|!()[]ijlt")


class Box(NamedTuple):
    """A label's room: its middle and size."""

    x: float
    y: float
    width: float
    height: float = HEIGHT

    def meets(self, other: Box) -> bool:
        """Whether the two would lie on each other."""
        apart = abs(self.x - other.x) >= (self.width + other.width) / 2
        return not apart and abs(self.y - other.y) < (self.height + other.height) / 2


def width_of(text: str, size: float = 13) -> float:
    """Pixels that a text takes at most, in letters of `size`, with some air on both sides."""
    return 8 + size * sum(
        _NARROW
        if letter in _THIN
        else _WIDE
        if letter.isupper() or letter in "mw@#%"
        else _DIGIT
        if letter.isdigit()
        else _OTHER
        for letter in text
    )


class Layout:
    """The boxes of a picture.

    Attributes:
        taken: boxes that have their place.
    """

    def __init__(self, lives: Sequence[float], side: float) -> None:
        """Nothing is placed yet.

        Args:
            lives: where the life lines are, from left to right.
            side: where the picture ends on the right; a label may lie beyond the last life line.
        """
        self._lanes = [*pairwise(lives), (lives[-1], side)]
        self.taken: list[Box] = []

    def place_box(self, box: Box) -> None:
        """A box has its place."""
        self.taken.append(box)

    def place(self, start: tuple[float, float], end: tuple[float, float], width: float) -> Box:
        """Take room for the label of an arrow.

        Args:
            start: of the arrow; the same x as the end's for a label beside a point, to the right.
            end: of the arrow.
            width: of the label; it fits into a lane.

        Returns:
            The box, as near to the arrow's middle as there is room. Where there is none within
            reach it is the middle of a lane, on another label.
        """
        places = sorted(self._places(start, end, width))
        for _, x, y in places:
            box = Box(x, y, width)
            if not any(box.meets(other) for other in self.taken):
                break
        else:
            box = Box(*places[0][1:], width)
        self.taken.append(box)
        return box

    def _places(
        self, start: tuple[float, float], end: tuple[float, float], width: float
    ) -> Iterable[tuple[float, float, float]]:
        """Where the middle of a label may be, and how bad each place is."""
        (x1, y1), (x2, y2) = start, end
        left, right = min(x1, x2), max(x1, x2)
        for first, last in self._lanes:
            lowest, highest = first + CLEAR + width / 2, last - CLEAR - width / 2
            touches = first < right and last > left if left < right else first <= left < last
            if not touches or lowest > highest + ROUNDING:
                continue
            count = int((highest - lowest) // STEP) + 1
            middle = min(max((x1 + x2) / 2, lowest), highest)
            for x in {middle, highest, *(lowest + STEP * n for n in range(count))}:
                along = (x - x1) / (x2 - x1) if left < right else 0.5
                on = y1 + along * (y2 - y1)
                air = min(x - first, last - x) - width / 2
                tight = TIGHT * max(0.0, min(AIRY, (last - first - width) / 2) - air)
                for away in range(0, REACH + 1, STEP // 2):
                    for y in {on - away, on + away}:
                        yield abs(x - (x1 + x2) / 2) + AWAY * away + tight, x, y

    @property
    def crowded(self) -> bool:
        """Whether any two boxes lie on each other."""
        return any(
            box.meets(other) for index, box in enumerate(self.taken) for other in self.taken[:index]
        )
