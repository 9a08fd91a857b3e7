"""What comes later than it has to.

An effect is done at once, or joins those that are late. Each round of the device does one late
effect or more, drawn by chance from those that nothing holds back: the first of each lane, and all
of those without one. Between two rounds some time passes, so that other ranks see what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ompy.engine.base import Engine

Effect = Callable[[], object]

STEP: Final = 1000  # ns between rounds; arbitrary: longer than a poll of another rank
# looks without a round, for who polls while the virtual clock stands still
LOOKS: Final = 16  # arbitrary: enough to notice that something is late


class Lateness:
    """The late effects of one device.

    Attributes:
        percent: how many of a hundred are late.
    """

    def __init__(self, engine: Engine, percent: int) -> None:
        """Have `percent` of a hundred effects come late, by the engine's clock and chance."""
        self._engine = engine
        self._random = engine.random
        self.percent = percent
        self._waiting: list[tuple[object, Effect]] = []
        self._next = 0
        self._looks = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def happens(self) -> bool:
        """Whether the next thing is to be late."""
        return bool(self.percent) and self._random.randrange(100) < self.percent

    def do(self, effect: Effect, lane: object = None) -> None:
        """Do something now or later; what has a lane comes after what is in it already."""
        held = lane is not None and any(other is lane for other, _ in self._waiting)
        if held or self.happens():
            if not self._waiting:
                self._next, self._looks = self._engine.now() + STEP, 0
            self._waiting.append((lane, effect))
        else:
            effect()

    def round(self) -> int:
        """Do some of what is late if it is time, at least one. Returns how many."""
        now = self._engine.now()
        self._looks += 1
        if now < self._next and self._looks < LOOKS:
            return 0
        self._next, self._looks = now + STEP, 0
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
