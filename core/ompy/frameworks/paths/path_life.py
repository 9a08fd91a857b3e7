"""The life of a path to a peer: one machine for every BTL that keeps the failover obligations.

    FRESH     nobody has wanted the path yet
    OPENING   this end is in a new generation, and has not heard of the other one there
    AGREEING  both are in it; whether the other end knows of this one is not known
    WORKING   the path is in use
    DOUBTED   it is, and has been silent for long: the hosts' agents are asked
    DRAINING  it was given up, and something of it is still under way at this end
    HOLDING   it broke again too soon after it was taken back: it is left alone
    ASKING    the agents ask each other over it, until so many answers came in a row
    WAITING   they came, and the other end is to go first
    PAUSING   a try has failed: the next one waits, longer each time up to a limit, for ever
    OVER      the peer has left, or this end does not take it back

*Generations.* Whatever belongs to a path that was given up must not be taken for what is sent
later. So a path begins a new generation each time; its number only grows, and no number is used
twice. An end may send in a generation once it knows that the other one has given up all before
it. For that the ends say *words*: the number, and where the sender is in it (`Stage`). An end that
is OPENING or AGREEING says its word again and again; one that works only answers. A higher number
than its own tells an end that the other one has given up everything before. A late word brings
nobody to WORKING: that takes an answer to what one has said in the same generation. This is TCP's
exchange (RFC 9293 3.5), where both may begin, too.

*Connections.* Where words are attempts to connect (`connects`), being connected is the agreement:
an OPENING word of the peer is an offer, which is taken or refused at once. Of two that cross with
one number that of the lower rank is made. What was only attempted is no generation: an offer counts
as new that is higher than the last one that worked. An attempt ends when its maker says so, or when
the agents say that the path is dead: a peer that computes takes a connection as late as it likes.
The first one is attempted several times before anybody is told, also by an end that takes nothing
back any more; if by then nobody needs it, nobody is told at all.

*Storms.* The end with the lower rank goes first; the other one waits `late` longer, for the case
that the first has not noticed anything. Pauses have jitter.

*Flapping.* Breaks in a row are damped as `healing.py` says.

The machine knows no clock, no timer, no socket: `handle(event, now)` says what is to be done, and
`due` when it wants to be told `TIME`. What drives it is in `path_keeper.py`.

Source: seed bfo (9); reference openmpi.md 4.15.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.paths.healing import Damping, HealingLimits

if TYPE_CHECKING:
    from random import Random


class Life(Enum):
    """Where a path is in its life."""

    FRESH = "fresh"
    OPENING = "opening"
    AGREEING = "agreeing"
    WORKING = "working"
    DOUBTED = "doubted"
    DRAINING = "draining"
    HOLDING = "holding"
    ASKING = "asking"
    WAITING = "waiting"
    PAUSING = "pausing"
    OVER = "over"


class Stage(Enum):
    """Where the sender of a word is in its generation; the values go over the wire."""

    OPENING = 0
    AGREEING = 1
    UP = 2


class Kind(Enum):
    """What happens to a path."""

    WANTED = "something is to be sent"
    SILENT = "nothing has got through for long"
    HEARD = "something has got through"
    ALIVE = "the agents reach each other"
    DEAD = "the agents do not reach each other"
    PROVEN = "nobody can be asked: trying is all there is"
    BROKE = "an error, or the end of an attempt"
    DRAINED = "nothing of it is under way at this end any more"
    TIME = "the time that the machine asked for has come"
    NEWER = "the peer is in a higher generation"
    ASKED = "the peer is in this one, and has not heard of this end there"
    ANSWERED = "the peer is in this one, and has"
    LEFT = "the peer has left"
    ENDING = "this end takes nothing back any more"


class Do(Enum):
    """What is to be done about an event, in the order of the list."""

    FAIL = "give the path up, and tell"
    DROP = "give up what an attempt has made; nobody was told that it worked"
    RENEW = "begin with fresh numbers, windows and queues"
    LEARN = "use what came with the peer's word"
    TAKE = "use the connection that the peer offers"
    REFUSE = "refuse it"
    SAY = "say the own word"
    READY = "the path can be used"
    ASK = "have the agents ask each other"
    UNASK = "they need not any more"


class Act(NamedTuple):
    """One thing to do.

    Attributes:
        what: it is.
        reason: of FAIL and DROP, in words.
        tell_peer: of FAIL: it has not said so itself.
        unopened: of FAIL: the path was being opened.
    """

    what: Do
    reason: str = ""
    tell_peer: bool = True
    unopened: bool = False


class Opening(NamedTuple):
    """How an end opens a generation.

    Attributes:
        connects: words are attempts to connect.
        repeat: ns until an unanswered word is said again, doubled each time; of connections, until
            the agents are asked: 0 for never.
        repeat_max: ns that this leads to at most.
        tries: repetitions without an answer, and without the agents' word that the path is alive,
            after which the attempt has failed; of connections, the attempts for the first one.
        pause: ns between these attempts, doubled each time; 0: as when a path is taken back.
        pause_max: ns that this leads to at most.
    """

    connects: bool
    repeat: int
    repeat_max: int
    tries: int
    pause: int = 0
    pause_max: int = 0


class WrongLife(AssertionError):
    """A path was told something that cannot happen where it is."""


_L, _K = Life, Kind
DOWN: Final = frozenset({_L.DRAINING, _L.HOLDING, _L.ASKING, _L.WAITING, _L.PAUSING, _L.OVER})
IN_USE: Final = frozenset({_L.WORKING, _L.DOUBTED})
QUIET: Final = frozenset({_L.FRESH, _L.DRAINING, _L.OVER})
TRYING: Final = frozenset({_L.OPENING, _L.AGREEING})
SAID: Final[Mapping[Life, Stage]] = {
    _L.OPENING: Stage.OPENING,
    _L.AGREEING: Stage.AGREEING,
    _L.WORKING: Stage.UP,
    _L.DOUBTED: Stage.UP,
}
_ALL: Final = tuple(Life)


def _stays(kind: Kind, *lives: Life) -> dict[tuple[Life, Kind], tuple[Life, ...]]:
    return {(life, kind): (life,) for life in lives}


# where several may follow, the machine's numbers decide; what is not here cannot happen
TABLE: Final[Mapping[tuple[Life, Kind], tuple[Life, ...]]] = {
    **_stays(_K.WANTED, *_ALL),
    (_L.FRESH, _K.WANTED): (_L.OPENING,),
    (_L.WORKING, _K.SILENT): (_L.DOUBTED,),
    (_L.DOUBTED, _K.HEARD): (_L.WORKING,),
    **_stays(_K.ALIVE, _L.OPENING, _L.AGREEING, _L.DOUBTED),
    (_L.ASKING, _K.ALIVE): (_L.ASKING, _L.WAITING),
    (_L.ASKING, _K.PROVEN): (_L.WAITING,),
    **_stays(_K.PROVEN, _L.OPENING, _L.AGREEING, _L.DOUBTED),
    **_stays(_K.DEAD, _L.ASKING),
    (_L.OPENING, _K.DEAD): (_L.DRAINING,),
    (_L.AGREEING, _K.DEAD): (_L.DRAINING,),
    (_L.DOUBTED, _K.DEAD): (_L.DRAINING,),
    **_stays(_K.BROKE, *DOWN),
    **{(life, _K.BROKE): (_L.DRAINING,) for life in (_L.FRESH, *TRYING, *IN_USE)},
    (_L.DRAINING, _K.DRAINED): (_L.HOLDING, _L.PAUSING, _L.OVER, _L.FRESH),  # nobody needed it
    (_L.HOLDING, _K.TIME): (_L.ASKING,),
    (_L.PAUSING, _K.TIME): (_L.ASKING, _L.OPENING),  # the latter before the first connection
    **_stays(_K.TIME, _L.ASKING),
    (_L.WAITING, _K.TIME): (_L.OPENING,),
    (_L.OPENING, _K.TIME): (_L.OPENING, _L.DRAINING),
    (_L.AGREEING, _K.TIME): (_L.AGREEING, _L.DRAINING),
    **_stays(_K.NEWER, _L.DRAINING, _L.OVER),
    (_L.HOLDING, _K.NEWER): (_L.HOLDING, _L.AGREEING, _L.WORKING),
    **{
        (life, _K.NEWER): (_L.AGREEING, _L.WORKING)  # the latter by a connection
        for life in (_L.FRESH, _L.ASKING, _L.WAITING, _L.PAUSING)
    },
    **{(life, _K.NEWER): (_L.DRAINING, _L.WORKING) for life in TRYING},
    **{(life, _K.NEWER): (_L.DRAINING,) for life in IN_USE},
    (_L.OPENING, _K.ASKED): (_L.AGREEING, _L.WORKING, _L.OPENING),
    **_stays(_K.ASKED, _L.AGREEING, *IN_USE),
    (_L.OPENING, _K.ANSWERED): (_L.WORKING,),
    (_L.AGREEING, _K.ANSWERED): (_L.WORKING,),
    **_stays(_K.ANSWERED, *IN_USE),
    **_stays(_K.LEFT, _L.FRESH, *TRYING, *IN_USE, _L.DRAINING, _L.OVER),
    **_stays(_K.ENDING, _L.FRESH, *TRYING, *IN_USE, _L.DRAINING, _L.OVER),
    **{
        (life, kind): (_L.OVER,)
        for life in (_L.HOLDING, _L.ASKING, _L.WAITING)
        for kind in (_K.LEFT, _K.ENDING)
    },
    (_L.PAUSING, _K.LEFT): (_L.OVER, _L.PAUSING),  # the latter before the first connection
    (_L.PAUSING, _K.ENDING): (_L.OVER, _L.PAUSING),
}


class PathLife:
    """One end of one path.

    Attributes:
        life: where it is.
        number: of the generation it is in, or was in last; 0 before the first.
        told_broken: those above know that the path cannot be used.
        parting: the peer has left; what it has taken it may still acknowledge.
        due: when `TIME` is to be told, ns; None: not by itself.
        tries: to take it back, since it broke last.
    """

    __slots__ = (
        "_alive",
        "_answers",
        "_asked",
        "_damping",
        "_ended",
        "_held",
        "_learned",
        "_limits",
        "_opening",
        "_proposed",
        "_repeated",
        "_senior",
        "_used",
        "due",
        "life",
        "number",
        "parting",
        "told_broken",
        "tries",
    )

    def __init__(
        self,
        limits: HealingLimits,
        opening: Opening,
        random: Random,
        *,
        senior: bool,
        number: int = 0,
    ) -> None:
        """A path that nobody has wanted yet, or that works from the beginning.

        Args:
            limits: of healing.
            opening: how generations are opened.
            random: what jitter is drawn from.
            senior: this end has the lower rank.
            number: of the generation that works from the beginning; 0 if none does.
        """
        self._limits = limits
        self._opening = opening
        self._senior = senior
        self._damping = Damping(limits, random)
        self._held = 0
        self._answers = 0
        self._repeated = 0
        self._used = self._proposed = number
        self._asked = self._alive = self._ended = False
        self._learned = bool(number)
        self.life = Life.WORKING if number else Life.FRESH
        self.number = number
        self.told_broken = False
        self.parting = False
        self.due: int | None = None
        self.tries = 0

    # -- what it is told

    def handle(
        self,
        kind: Kind,
        now: int,
        reason: str = "",
        *,
        told: bool = False,
        final: bool = False,
        wanted: bool = True,
    ) -> list[Act]:
        """Something happens that is no word of the peer.

        Args:
            kind: what.
            now: ns.
            reason: why it broke, in words.
            told: the peer says itself that it broke.
            final: of BROKE, another attempt to make the first connection is of no use.
            wanted: of BROKE, somebody needs the first connection.

        Raises:
            WrongLife: it cannot happen where the path is.
        """
        self._look_up(kind)
        before, used = self.life, self._used
        acts: list[Act] = []
        match kind:
            case Kind.BROKE | Kind.DEAD:
                final = final or kind is Kind.DEAD
                acts = self._try_failed(reason, final=final, wanted=wanted)
                acts = acts or self._broke(now, reason, told=told)
            case Kind.DRAINED:
                self._drained(now)
            case Kind.TIME:
                acts = self._time(now)
            case Kind.ALIVE | Kind.PROVEN:
                acts = self._good_news(kind, now)
            case Kind.WANTED if self.life is Life.FRESH:
                acts = self._open(now, self._proposed + 1)
            case Kind.SILENT:
                self.life, acts = Life.DOUBTED, self._ask()
            case Kind.HEARD:
                self.life, acts = Life.WORKING, self._unask()
            case Kind.LEFT | Kind.ENDING:
                acts = self._over(kind)
        self._check(before, kind, used)
        return acts

    def word(self, number: int, stage: Stage, now: int) -> list[Act]:
        """The peer says where it is.

        After FAIL or DROP, drained, it may be told again: what it asks for may then be possible.
        """
        if self._opening.connects:
            kind = self._connection(number, stage)
        else:
            kind = self._classify(number, stage)
        if kind is None or self.life is Life.OVER:
            return self._refuse()
        self._look_up(kind)
        before, used = self.life, self._used
        acts = self._heard(kind, number, stage, now)
        self._check(before, kind, used)
        return acts

    def _check(self, before: Life, kind: Kind, used: int) -> None:
        """What cannot be, whatever has happened; `used` is the last generation before it."""
        assert self.life in TABLE[before, kind], (before, kind, self.life)
        assert self._used >= used, f"generation {self._used} is used again after {used}"
        assert self._proposed >= self.number, f"{self.number} was never proposed"
        if self.life in IN_USE:
            assert self.number == self._used > 0, f"{self.number} is used and not agreed on"
            assert not self.told_broken, "those above know that it can be used"
            assert not self.tries, "tries are counted from a break to the next success"
        elif self.life in TRYING:
            assert self.number > self._used, f"{self.number} was used before"
        elif self.life in QUIET:
            assert self.due is None, "no moment of it is waited for"
            assert not self._asked, "no agent is asked about it"
        assert self.life is not Life.FRESH or not self.told_broken, "a break is never forgotten"

    def _heard(self, kind: Kind, number: int, stage: Stage, now: int) -> list[Act]:
        """What a word of the peer that may come here asks for."""
        if kind is Kind.NEWER and self.life in IN_USE:
            return self._broke(now, "the other end has given the path up", told=True)
        ended = self._ended and self.told_broken and self.life in DOWN
        if self.life is Life.DRAINING or self._left_alone or ended:
            return self._refuse()
        if self._opening.connects:
            return self._up() if kind is Kind.ANSWERED else self._taken(number)
        if kind is Kind.NEWER:
            return self._follow(number, now)
        return self._agree(kind, stage, now)

    def data(self, now: int) -> list[Act]:
        """The peer sends in this generation, which it is in, and knows this end to be."""
        self._look_up(Kind.ANSWERED)
        return self._up() if self.life in TRYING else []

    def notice(self, number: int, reason: str, now: int) -> list[Act]:
        """The peer says over another rail that a generation has failed at its end."""
        if number != self.number or self.life in DOWN or self.life is Life.FRESH:
            return []
        return self.handle(Kind.BROKE, now, reason, told=True)

    @property
    def stage(self) -> Stage | None:
        """What the own word says; None: there is nothing to say."""
        return SAID.get(self.life)

    # -- agreeing

    def _connection(self, number: int, stage: Stage) -> Kind | None:
        """What an offer of the peer means, or that it has taken ours; None: it is refused."""
        if stage is not Stage.OPENING:
            return Kind.ANSWERED if number == self.number and self.life in TRYING else None
        if self.life in TRYING and number == self.number:
            return None if self._senior else Kind.NEWER
        least = self.number if self.life in TRYING else self._used
        return Kind.NEWER if number > least else None

    def _classify(self, number: int, stage: Stage) -> Kind | None:
        """What a word means here; None: its generation is over, which this end's own will say."""
        if number > self.number:
            return Kind.NEWER
        if number < self.number or self.life in DOWN or self.life is Life.FRESH:
            return None
        return Kind.ASKED if stage is Stage.OPENING else Kind.ANSWERED

    def _follow(self, number: int, now: int) -> list[Act]:
        """The peer is in a later generation: go there, or first get rid of the one not agreed on.

        What was made for that may have taken the peer's data already, so it is drained as others.
        """
        if self.life not in TRYING:
            return [*self._open(now, number, Life.AGREEING), *self._learn(), Act(Do.SAY)]
        acts = self._unask()
        self.life, self.due = Life.DRAINING, None
        self.tries = max(self.tries, 1)  # then a pause, in which the peer's word counts
        return [*acts, Act(Do.DROP, "the peer has moved on")]

    def _agree(self, kind: Kind, stage: Stage, now: int) -> list[Act]:
        """The peer is in the same generation."""
        acts = self._learn()
        if kind is Kind.ANSWERED and self.life in TRYING:
            answer = [] if stage is Stage.UP else [Act(Do.SAY)]
            up = self._up()
            return [*acts, *answer, *up]
        if kind is Kind.ASKED and self.life is Life.OPENING:
            self.life = Life.AGREEING
            self._repeat(now)
        return [*acts, Act(Do.SAY)] if stage is not Stage.UP else acts

    def _taken(self, number: int) -> list[Act]:
        """Use a connection that the peer offers."""
        acts = self._unask()
        if self.life in TRYING:
            acts.append(Act(Do.DROP, "the peer's own connection goes before"))
        self.number, self._learned = number, True
        self._proposed = max(self._proposed, number)
        return [*acts, Act(Do.RENEW), Act(Do.TAKE), *self._up()]

    def _refuse(self) -> list[Act]:
        return [Act(Do.REFUSE)] if self._opening.connects else []

    def _learn(self) -> list[Act]:
        if self._learned:
            return []
        self._learned = True
        return [Act(Do.LEARN)]

    def _open(self, now: int, number: int, life: Life = Life.OPENING) -> list[Act]:
        """Be in a generation where this end has not been."""
        assert number > self._used, "a generation is never used again"
        assert self.life not in TRYING, "an attempt is drained before the next one"
        acts = self._unask()
        self.number, self.life = number, life
        self._proposed = max(self._proposed, number)
        self._learned = self._alive = False
        self._repeated = 0
        self._repeat(now)
        acts.append(Act(Do.RENEW))
        return [*acts, Act(Do.SAY)] if life is Life.OPENING else acts

    def _repeat(self, now: int) -> None:
        pause = min(self._opening.repeat << min(self._repeated, 40), self._opening.repeat_max)
        self.due = now + pause if self._opening.repeat else None

    def _up(self) -> list[Act]:
        acts = self._unask()
        self.life, self.due, self.told_broken, self.tries = Life.WORKING, None, False, 0
        self._used = self.number
        return [*acts, Act(Do.READY)]

    # -- breaking

    def _try_failed(self, reason: str, *, final: bool, wanted: bool) -> list[Act]:
        """What to do when the first connection was being made and nobody has to hear of it yet."""
        first = self._opening.connects and self.life in TRYING and not self.told_broken
        again = self.tries + 1 < self._opening.tries and not self.parting
        if not first or final or (wanted and not again):
            return []
        return self._give_up_attempt(reason, self.tries + 1 if again else 0)

    def _give_up_attempt(self, reason: str, tries: int) -> list[Act]:
        acts = self._unask()
        self.life, self.due, self.tries = Life.DRAINING, None, tries
        return [*acts, Act(Do.DROP, reason)]

    def _broke(self, now: int, reason: str, *, told: bool) -> list[Act]:
        if self.life in DOWN:
            return []
        if self.told_broken:
            # also one that followed the peer: a pause, not what the break before it has cost again
            return self._give_up_attempt(reason, max(self.tries, 1))
        acts, trying = self._unask(), self.life in TRYING
        self.life, self.due = Life.DRAINING, None
        self.told_broken = True
        self.tries = 0
        self._held = self._damping.broke(now)
        return [*acts, Act(Do.FAIL, reason, not told, trying)]

    def _drained(self, now: int) -> None:
        if self.parting or (self._ended and self.told_broken):
            self.life, self.due = Life.OVER, None
        elif self.tries:
            self.life = Life.PAUSING
            self.due = now + self._pause()
        elif not self.told_broken:
            self.life, self.due = Life.FRESH, None
        else:
            self.life = Life.HOLDING
            self.due = now + self._held if self._limits.answers else None

    def _pause(self) -> int:
        """For how long to wait before the next try."""
        opening = self._opening
        if self.told_broken or not opening.pause:
            return self._damping.pause(self.tries)
        return min(opening.pause << min(self.tries - 1, 40), opening.pause_max)

    def _over(self, kind: Kind) -> list[Act]:
        if kind is Kind.LEFT:
            self.parting = True
        else:
            self._ended = True
        first = self.life is Life.PAUSING and not self.told_broken
        if self.life in DOWN - {_L.DRAINING} and not first:
            acts = self._unask()
            self.life, self.due = Life.OVER, None
            return acts
        return []

    @property
    def _left_alone(self) -> bool:
        """It broke too often, or is never taken back: nor when the other end asks for it."""
        return self.life is Life.HOLDING and bool(self._held or not self._limits.answers)

    # -- taking it back

    def _time(self, now: int) -> list[Act]:
        self.due = None
        if self.life is Life.PAUSING and not self.told_broken:
            return self._open(now, self._proposed + 1)
        if self.life is Life.HOLDING or self.life is Life.PAUSING:
            self.life, self._answers = Life.ASKING, 0
            return self._ask()
        if self.life is Life.ASKING:
            return self._ask()
        if self.life is Life.WAITING:
            self.tries += 1
            return self._open(now, self._proposed + 1)
        self._repeated += 1
        limited = not self._opening.connects and not self._alive
        if limited and self._repeated > self._opening.tries:
            return self._broke(now, "no answer", told=False)
        self._repeat(now)
        return [*self._ask(), *([] if self._opening.connects else [Act(Do.SAY)])]

    def _good_news(self, kind: Kind, now: int) -> list[Act]:
        self._alive = kind is Kind.ALIVE
        if self.life is not Life.ASKING:
            return []
        acts = self._unask()
        self._answers += 1
        if kind is Kind.ALIVE and self._answers < self._limits.answers:
            self.due = now + self._limits.ask_pause
            return acts
        self.life = Life.WAITING
        self.due = now if self._senior or self.tries else now + self._limits.late
        return acts

    def _ask(self) -> list[Act]:
        if self._asked:
            return []
        self._asked = True
        return [Act(Do.ASK)]

    def _unask(self) -> list[Act]:
        if not self._asked:
            return []
        self._asked = False
        return [Act(Do.UNASK)]

    def _look_up(self, kind: Kind) -> None:
        if (self.life, kind) not in TABLE:
            raise WrongLife(f"a path that is {self.life.value} cannot be told: {kind.value}")
