"""Taking a broken path back: when it is asked about, when it is mended, when it is left alone.

A module that keeps the failover obligations has a `Mender` for each path that broke. The machine:

    SOUND     the path is in use
    HOLDING   it broke again too soon after it was healed: it is left alone for a while
    ASKING    the agents of both hosts ask each other over it, until so many answers came in a row
    MENDING   the module makes a fresh connection
    PAUSING   that failed: the next try waits, longer each time up to a limit, for ever

That a device or the kernel says "link up" leads nowhere by itself: such news come before packets
get through (a switch port still learns, the other end is still down). Answers of the other host's
agent and a connection that both ends have agreed to are what counts, and `healed` is said after
both. An end that the other one was quicker than goes to SOUND from wherever it is.

*Storms.* Only the end with the lower rank mends at first; the other one waits `late` longer, for
the case that the first has not noticed anything. Pauses have jitter, and asking costs the agents
ten small datagrams a second.

*Flapping.* Each break adds one to a penalty that halves every `decay`. The hold-down is
`hold * (2 ** (penalty - 1) - 1)`: nothing for the first break, `hold` for a second one at once,
three times that for a third, at most `hold_max` (after RFC 2439's route flap damping).

Source: what went wrong elsewhere: a link announced too early (kvcache-ai/Mooncake#2960 on GitHub),
storms of connections after an outage (#3299 there).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.paths import MS, PathVerdict, PathWatch

if TYPE_CHECKING:
    from random import Random

    from ompy.engine.timers import Timer
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.proc import Proc

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
    """Where a path is."""

    SOUND = "sound"
    HOLDING = "holding"
    ASKING = "asking"
    MENDING = "mending"
    PAUSING = "pausing"


class HealEvent(Enum):
    """What happens to it."""

    BROKE = "broke"
    WAITED = "waited"  # the hold-down or the pause is over
    PROVEN = "proven"  # enough answers came
    REFUSED = "refused"  # no connection came of it
    MENDED = "mended"  # by this end or by the other one


_P, _E = Phase, HealEvent

TABLE: Final[Mapping[tuple[Phase, HealEvent], Phase]] = {
    (_P.SOUND, _E.BROKE): _P.HOLDING,
    (_P.HOLDING, _E.WAITED): _P.ASKING,
    (_P.ASKING, _E.PROVEN): _P.MENDING,
    (_P.MENDING, _E.REFUSED): _P.PAUSING,
    (_P.PAUSING, _E.WAITED): _P.ASKING,
    (_P.HOLDING, _E.MENDED): _P.SOUND,
    (_P.ASKING, _E.MENDED): _P.SOUND,
    (_P.MENDING, _E.MENDED): _P.SOUND,
    (_P.PAUSING, _E.MENDED): _P.SOUND,
}


class WrongPhase(AssertionError):
    """A path was told something that cannot happen where it is."""


def follow(phase: Phase, event: HealEvent) -> Phase:
    """The phase after `event`.

    Raises:
        WrongPhase: it cannot happen in `phase`.
    """
    after = TABLE.get((phase, event))
    if after is None:
        raise WrongPhase(f"a path that is {phase.value} cannot be told {event.value}")
    return after


class Healing:
    """The machine of one path: no timer, no watch, no connection.

    Attributes:
        phase: where it is.
        breaks: so far.
        tries: to mend it, since it broke last.
    """

    __slots__ = ("_damping", "breaks", "phase", "tries")

    def __init__(self, limits: HealingLimits, random: Random) -> None:
        self._damping = Damping(limits, random)
        self.phase = Phase.SOUND
        self.breaks = 0
        self.tries = 0

    def penalty(self, now: int) -> float:
        """What the breaks until `now` (ns) add up to, the older ones less."""
        return self._damping.penalty(now)

    def broke(self, now: int) -> int:
        """The path broke. Returns for how many ns it is left alone."""
        self.phase = follow(self.phase, HealEvent.BROKE)
        self.breaks += 1
        self.tries = 0
        return self._damping.broke(now)

    def waited(self) -> None:
        """The time that `broke` or `refused` named is over: ask."""
        self.phase = follow(self.phase, HealEvent.WAITED)

    def proven(self) -> None:
        """Enough answers came: mend."""
        self.phase = follow(self.phase, HealEvent.PROVEN)
        self.tries += 1

    def refused(self) -> int:
        """No connection came of it. Returns for how many ns to wait."""
        self.phase = follow(self.phase, HealEvent.REFUSED)
        return self._damping.pause(self.tries)

    def mended(self) -> None:
        """It is in use again."""
        self.phase = follow(self.phase, HealEvent.MENDED)


class Mender:
    """Drives the machine of one path: timers, the agents, and the module's `mend`.

    The module says `broke`, `refused` and `mended`, and `end` when it is closed.

    Attributes:
        healing: the machine.
    """

    def __init__(
        self,
        context: RankContext,
        proc: Proc,
        addresses: tuple[str, str],
        rail: str,
        mend: Callable[[], object],
    ) -> None:
        """Prepare; the path is sound.

        Args:
            context: of the rank; its `healing` has the limits.
            proc: the peer.
            addresses: of this rank's interface and of the peer's.
            rail: name of this rank's interface.
            mend: begins to make a fresh connection; called from a timer with the rank's lock held.
        """
        self._context = context
        self._limits = context.healing
        self._proc = proc
        self._addresses = addresses
        self._rail = rail
        self._mend = mend
        self._timer: Timer | None = None
        self._watch: PathWatch | None = None
        self._answers = 0
        self._hold = 0
        self.healing = Healing(self._limits, context.engine.random)

    @property
    def phase(self) -> Phase:
        """Where the path is."""
        return self.healing.phase

    @property
    def left_alone(self) -> bool:
        """It broke too often, or is never to be mended: nor when the other end asks for it."""
        return self.phase is Phase.HOLDING and bool(self._hold or not self._limits.answers)

    def broke(self) -> None:
        """The path broke: see that it is mended some time."""
        self._hold = self.healing.broke(self._context.engine.now())
        self._tell()
        if self._limits.answers:
            self._later(self._hold, self._ask_anew)

    def refused(self) -> None:
        """What `mend` began has failed."""
        self._later(self.healing.refused(), self._ask_anew)
        self._tell()

    def mended(self) -> None:
        """The path is in use again, whoever has mended it."""
        self.healing.mended()
        self._tell()
        self.end()

    def end(self) -> None:
        """Do nothing more by itself. Harmless the second time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._look_away()

    def _tell(self) -> None:
        """Who watches rails is told in which phase this one is."""
        self._context.tell_phase(self._proc.rank, self._rail, self.phase.value)

    # -- asking

    def _ask_anew(self) -> None:
        self.healing.waited()
        self._tell()
        self._answers = 0
        self._ask()

    def _ask(self) -> None:
        if self._proc.departed:
            return
        source, target = self._addresses
        if not source or not target:  # it goes over no network: there is nothing to ask about
            self._agreed()
            return
        self._watch = self._context.paths.watch(
            self._proc, source, target, self._rail, self._changed, failover=True
        )
        if not self._watch.asked:  # nobody finds out: a connection is all there is to try
            self._look_away()
            self._agreed()
        elif self._watch.verdict is not PathVerdict.UNKNOWN:
            self._changed()

    def _changed(self) -> None:
        """There is a verdict; it may come from within another module's poll, so only take note."""
        if self._watch is not None:
            self._later(0, self._look)

    def _look(self) -> None:
        watch = self._watch
        assert watch is not None, "who has ended a watch has ended its timer"
        if watch.verdict is not PathVerdict.ALIVE:
            self._answers = 0  # it is asked on, until it is
            return
        self._answers += 1
        self._look_away()
        if self._answers < self._limits.answers:
            self._later(self._limits.ask_pause, self._ask)
        else:
            self._agreed()

    def _agreed(self) -> None:
        """The path carries packets: mend it, if that is ours to do by now."""
        late = self._context.rank > self._proc.rank and not self.healing.tries
        self._later(self._limits.late if late else 0, self._go)

    def _go(self) -> None:
        if not self._proc.departed:
            self.healing.proven()
            self._tell()
            self._mend()

    def _look_away(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()

    def _later(self, delay: int, call: Callable[[], None]) -> None:
        """Call after `delay` ns; there is one such call at a time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._context.engine.call_later(delay, call)
