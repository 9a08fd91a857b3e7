"""How long a broken path is left alone, and the numbers of taking it back.

The machine is in `path_life.py`; what watchers of rails are shown of it is a `Phase`.

*Flapping.* Each break adds one to a penalty that halves every `decay`. The hold-down is
`hold * (2 ** (penalty - 1) - 1)`: nothing for the first break, `hold` for a second one at once,
three times that for a third, at most `hold_max` (after RFC 2439's route flap damping).

*Storms.* Only the end with the lower rank goes first; the other one waits `late` longer. Pauses
have jitter, and asking costs the agents ten small datagrams a second.

Source: what went wrong elsewhere: a link announced too early (kvcache-ai/Mooncake#2960 on GitHub),
storms of connections after an outage (#3299 there).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.paths.path_watch import MS

if TYPE_CHECKING:
    from random import Random

# arbitrary: with 30 % of what goes each way lost, three answers in a row come in a few tries; and
# all of it, from the first packet that gets through, takes a third of a second
ANSWERS: Final = 3
ASK_PAUSE_MS: Final = 20  # arbitrary: between two of these answers
PAUSE_MS: Final = 20  # arbitrary: as btl/tcp's first pause between attempts to connect
# arbitrary: with jitter, asking and connecting a rail that works again is in use within a second
PAUSE_MAX_MS: Final = 300
LATE_MS: Final = 200  # arbitrary: longer than the quicker end takes
HOLD_MS: Final = 1_000  # arbitrary: the second break within the decay costs a second
HOLD_MAX_MS: Final = 30_000  # arbitrary: a rail that flaps all the time is tried twice a minute
DECAY_MS: Final = 10_000  # arbitrary: ten seconds in order make half good what a break has cost


class HealingLimits(NamedTuple):
    """Numbers of the machine; times in ns.

    Attributes:
        answers: good ones in a row before a path is mended; 0: broken paths are never mended.
        ask_pause: between two of them.
        pause: before a second try to mend; doubled each time.
        pause_max: what that leads to at most.
        late: how much later than the lower rank the higher one mends.
        hold: of the second break in a row.
        hold_max: of any.
        decay: in which the penalty of a break halves.
    """

    answers: int = ANSWERS
    ask_pause: int = ASK_PAUSE_MS * MS
    pause: int = PAUSE_MS * MS
    pause_max: int = PAUSE_MAX_MS * MS
    late: int = LATE_MS * MS
    hold: int = HOLD_MS * MS
    hold_max: int = HOLD_MAX_MS * MS
    decay: int = DECAY_MS * MS


class Damping:
    """What the breaks of one path add up to, and how long it waits for that."""

    __slots__ = ("_limits", "_penalty", "_penalty_at", "_random")

    def __init__(self, limits: HealingLimits, random: Random) -> None:
        self._limits = limits
        self._random = random
        self._penalty = 0.0
        self._penalty_at = 0

    def penalty(self, now: int) -> float:
        """What the breaks until `now` (ns) add up to, the older ones less."""
        left: float = 0.5 ** ((now - self._penalty_at) / max(1, self._limits.decay))
        return self._penalty * left

    def broke(self, now: int) -> int:
        """One more break. Returns for how many ns the path is left alone."""
        self._penalty = self.penalty(now) + 1
        self._penalty_at = now
        # beyond some breaks the power is larger than any limit
        factor = 2 ** min(self._penalty - 1, 40.0) - 1
        return min(round(self._limits.hold * factor), self._limits.hold_max)

    def pause(self, tries: int) -> int:
        """For how many ns to wait after so many tries to mend it in vain."""
        pause = min(self._limits.pause << min(tries - 1, 40), self._limits.pause_max)
        return pause + self._random.randrange(pause // 2 + 1)


class Phase(Enum):
    """Where a path is, as watchers of rails have it."""

    SOUND = "sound"
    HOLDING = "holding"
    ASKING = "asking"
    MENDING = "mending"
    PAUSING = "pausing"
