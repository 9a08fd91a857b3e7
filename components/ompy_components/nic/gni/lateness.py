"""What comes later than it has to.

An effect is done at once, or joins those that are late. Each round of the device does one late
effect or more, drawn by chance from those that nothing holds back: the first of each lane, and all
of those without one. Between two rounds some time passes, so that other ranks see what there is.
A put may be late in thousands of packets, so to draw one takes a few steps and not as many as there
are (`places.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ompy.engine.base import Engine

from ompy_components.nic.gni.places import FreePlaces

Effect = Callable[[], object]

STEP: Final = 1000  # ns between rounds; arbitrary: longer than a poll of another rank
# looks without a round, for who polls while the virtual clock stands still
LOOKS: Final = 16  # arbitrary: enough to notice that something is late
GAPS: Final = 64  # arbitrary: places of what is done that are kept before all are made anew


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
        self._line: list[tuple[object, Effect] | None] = []  # by place; None: it is done
        self._places = FreePlaces()
        self._lanes: dict[int, deque[int]] = {}  # places of each lane, by its identity
        self._count = 0
        self._next = 0
        self._looks = 0

    def __len__(self) -> int:
        return self._count

    def happens(self) -> bool:
        """Whether the next thing is to be late."""
        return bool(self.percent) and self._random.randrange(100) < self.percent

    def do(self, effect: Effect, lane: object = None) -> None:
        """Do something now or later; what has a lane comes after what is in it already."""
        if (lane is not None and id(lane) in self._lanes) or self.happens():
            if not self._count:
                self._next, self._looks = self._engine.now() + STEP, 0
            self._append((lane, effect))
            self._count += 1
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
        while self._count:
            self._take(self._random.choice(range(self._places.free)))()
            count += 1
            if self.happens():
                break
        return count

    def finish(self) -> None:
        """Do all of it, each lane in its order."""
        while self._count:
            self._take(0)()

    def _append(self, entry: tuple[object, Effect]) -> None:
        """Give an effect the last place; it is free if it is the first of its lane."""
        lane = entry[0]
        known = self._lanes.get(id(lane)) if lane is not None else None
        place = self._places.append(free=known is None)
        if known is not None:
            known.append(place)
        elif lane is not None:
            self._lanes[id(lane)] = deque((place,))
        self._line.append(entry)

    def _take(self, number: int) -> Effect:
        """Take out the effect that has so many free ones before it."""
        place = self._places.find(number)
        entry = self._line[place]
        assert entry is not None, "only what is late has a free place"
        self._line[place] = None
        self._places.change(place, free=False)
        self._count -= 1
        lane, effect = entry
        if lane is not None:
            places = self._lanes[id(lane)]
            places.popleft()
            if places:
                self._places.change(places[0], free=True)
            else:
                del self._lanes[id(lane)]
        if len(self._line) > 2 * self._count + GAPS:
            self._close_gaps()
        return effect

    def _close_gaps(self) -> None:
        """Number what is left anew: as often as half of the places have been given up."""
        left = [entry for entry in self._line if entry is not None]
        self._line, self._places, self._lanes = [], FreePlaces(), {}
        for entry in left:
            self._append(entry)
