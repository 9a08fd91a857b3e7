"""What comes later than it has to.

An effect is done at once, or joins those that are late. Each round of the device does one late
effect or more, drawn by chance from those that nothing holds back: the first of each lane, and all
of those without one.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Effect = Callable[[], object]


class Lateness:
    """The late effects of one device.

    Attributes:
        percent: how many of a hundred are late.
    """

    def __init__(self, random: Random, percent: int) -> None:
        """Have `percent` of a hundred effects come late, as `random` has it."""
        self._random = random
        self.percent = percent
        self._waiting: list[tuple[object, Effect]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def happens(self) -> bool:
        """Whether the next thing is to be late."""
        return bool(self.percent) and self._random.randrange(100) < self.percent

    def do(self, effect: Effect, lane: object = None) -> None:
        """Do something now or later; what has a lane comes after what is in it already."""
        held = lane is not None and any(other is lane for other, _ in self._waiting)
        if held or self.happens():
            self._waiting.append((lane, effect))
        else:
            effect()

    def round(self) -> int:
        """Do some of what is late, at least one. Returns how many."""
        count = 0
        while self._waiting:
            free = self._free()
            _, effect = self._waiting.pop(self._random.choice(free))
            effect()
            count += 1
            if self.happens():
                break
        return count

    def finish(self) -> None:
        """Do all of it, each lane in its order."""
        while self._waiting:
            self._waiting.pop(0)[1]()

    def _free(self) -> list[int]:
        seen: list[object] = []
        places = []
        for place, (lane, _) in enumerate(self._waiting):
            if lane is not None and any(other is lane for other in seen):
                continue
            seen.append(lane)
            places.append(place)
        return places
