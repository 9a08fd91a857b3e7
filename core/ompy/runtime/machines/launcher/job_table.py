"""Where a job is, and what can happen to it there.

GATHERING  passive mode: agents come by themselves, and the job is made when all are here
RUNNING    ranks start, run and end
RELEASED   passive mode: all ranks have finalized, and may end with their hosts
ASKING     it is to be ended, and the ranks say first where they are
ENDING     the agents have been told to end their ranks
CLOSING    no agent has a process left, or answers: what there is to say is said
OVER       nothing is left to be decided
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.events import Seen


class JobPhase(Enum):
    """Where a job is."""

    GATHERING = "gathering"
    RUNNING = "running"
    RELEASED = "released"
    ASKING = "asking"
    ENDING = "ending"
    CLOSING = "closing"
    OVER = "over"


class Moment(Enum):
    """What a job waits for."""

    TIMEOUT = "it has run for too long"
    GIVE_UP = "agents do not end"
    PATHS = "both ends of a lost path have told of it"
    OVERDUE = "agents do not come"
    KILL = "somebody is to be killed on purpose"
    LEAVING = "ranks that leave at the same time are told of together"
    CUT = "others have said that they do not reach each other"


_P, _S = JobPhase, Seen
Pair = tuple[JobPhase, Seen, Kind | None]
Rows = dict[Pair, tuple[JobPhase, ...]]

# what agents say of their ranks, and need not lead to anything
NEWS: Final = (
    Kind.ALIVE,
    Kind.OUTPUT,
    Kind.INPUT_TAKEN,
    Kind.INPUT_CLOSED,
    Kind.MODEX,
    Kind.FETCH,
    Kind.FENCED,
    Kind.LEFT,
    Kind.FAULTS,
    Kind.PATHS,
    Kind.RAIL,
    Kind.CARRIED,
    Kind.COUNTED,
    Kind.UNREACHABLE,
    Kind.STARTED,
    Kind.ASK,
)
# what may be the reason that a job ends
FATEFUL: Final = (
    Kind.STAGE,
    Kind.UNSTARTED,
    Kind.EXITED,
    Kind.LOST,
    Kind.ABORTED,
    Kind.AGENT_GONE,
    Kind.FINISHED,
)
# what ranks tell that is kept, and bears on no exit code by itself
TOLD: Final = frozenset(
    {Kind.FAULTS, Kind.PATHS, Kind.RAIL, Kind.CARRIED, Kind.COUNTED, Kind.UNREACHABLE, Kind.LEFT}
)
ENDS: Final = frozenset({Kind.EXITED, Kind.LOST, Kind.ABORTED})  # of ranks that had started
# of its ranks a passive agent says these
PASSIVE_NEWS: Final = (
    Kind.ALIVE,
    Kind.MODEX,
    Kind.FETCH,
    Kind.FENCED,
    Kind.LEFT,
    Kind.PATHS,
    Kind.RAIL,
    Kind.UNREACHABLE,
)


def _to(
    phases: Iterable[JobPhase],
    what: Seen,
    then: tuple[JobPhase, ...],
    kinds: Iterable[Kind | None] = (None,),
) -> Rows:
    return {(phase, what, kind): then or (phase,) for phase in phases for kind in kinds}


_UP: Final = (_P.RUNNING, _P.ASKING, _P.ENDING, _P.CLOSING)  # of a launcher
_LAUNCHER: Final[Rows] = {
    **_to([_P.RUNNING], _S.BEGUN, (_P.RUNNING,)),
    **_to([*_UP, _P.OVER], _S.BELOW, (), NEWS),
    **_to([_P.RUNNING], _S.BELOW, (_P.RUNNING, _P.ENDING, _P.CLOSING), FATEFUL),
    **_to([_P.ASKING], _S.BELOW, (_P.ASKING, _P.ENDING, _P.CLOSING), FATEFUL),
    **_to([_P.ENDING], _S.BELOW, (_P.ENDING, _P.CLOSING), FATEFUL),
    **_to([_P.CLOSING, _P.OVER], _S.BELOW, (), FATEFUL),
    **_to([_P.RUNNING, _P.ENDING, _P.CLOSING, _P.OVER], _S.BELOW, (), [Kind.WHERE]),
    **_to([_P.ASKING], _S.BELOW, (_P.ASKING, _P.ENDING), [Kind.WHERE, Kind.STILL]),
    **_to([_P.RUNNING], _S.BELOW, (_P.RUNNING, _P.ENDING), [Kind.STILL]),
    **_to([_P.ENDING, _P.CLOSING, _P.OVER], _S.BELOW, (), [Kind.STILL]),
    **_to([_P.RUNNING], _S.CHILD_GONE, (_P.RUNNING, _P.ENDING, _P.CLOSING)),
    **_to([_P.ASKING], _S.CHILD_GONE, (_P.ASKING, _P.CLOSING)),
    **_to([_P.ENDING], _S.CHILD_GONE, (_P.ENDING, _P.CLOSING)),
    **_to([_P.CLOSING, _P.OVER], _S.CHILD_GONE, ()),
    **_to([_P.RUNNING], _S.TIME, (_P.RUNNING, _P.ASKING, _P.ENDING, _P.CLOSING)),
    **_to([_P.ASKING], _S.TIME, (_P.ASKING, _P.ENDING, _P.CLOSING)),
    **_to([_P.ENDING], _S.TIME, (_P.ENDING, _P.CLOSING)),
    **_to([_P.CLOSING, _P.OVER], _S.TIME, ()),
    **_to([_P.RUNNING], _S.TOLD_TO_END, (_P.ASKING, _P.ENDING)),
    **_to([_P.ASKING], _S.TOLD_TO_END, (_P.ASKING, _P.OVER)),
    **_to([_P.ENDING], _S.TOLD_TO_END, (_P.ENDING, _P.OVER)),
    **_to([_P.CLOSING], _S.TOLD_TO_END, (_P.CLOSING, _P.OVER)),
    **_to([_P.OVER], _S.TOLD_TO_END, ()),
    **_to([*_UP, _P.OVER], _S.STOPPED, ()),
    **_to([*_UP, _P.OVER], _S.CONTINUED, ()),
    **_to([*_UP, _P.OVER], _S.FORWARDED, ()),
    **_to([*_UP, _P.OVER], _S.READ, ()),
    **_to([*_UP, _P.OVER], _S.WRITTEN, ()),
    **_to([*_UP, _P.OVER], _S.INQUIRED, ()),
    **_to([_P.RUNNING], _S.BROKEN, (_P.RUNNING, _P.ENDING)),
    **_to([_P.ASKING, _P.ENDING, _P.CLOSING, _P.OVER], _S.BROKEN, ()),
    **_to([_P.CLOSING], _S.IDLE, (_P.OVER,)),
    **_to([_P.OVER], _S.IDLE, ()),
}

_THEN_ENDING: Final = (_P.RUNNING, _P.ENDING)
_PASSIVE: Final[Rows] = {
    **_to([_P.GATHERING], _S.BEGUN, (_P.GATHERING,)),
    **_to([_P.GATHERING], _S.CAME, (_P.GATHERING,)),
    **_to([_P.RUNNING, _P.RELEASED, _P.ENDING, _P.OVER], _S.CAME, ()),
    **_to([_P.GATHERING], _S.MADE, (_P.RUNNING,)),
    **_to([_P.ENDING], _S.MADE, ()),
    **_to([_P.GATHERING, _P.RUNNING], _S.UNUSABLE, (_P.ENDING, _P.OVER)),
    **_to([_P.RELEASED, _P.ENDING, _P.OVER], _S.UNUSABLE, ()),
    **_to([_P.GATHERING], _S.MISSING, (_P.GATHERING, _P.ENDING)),
    **_to([_P.RUNNING, _P.RELEASED, _P.ENDING, _P.OVER], _S.MISSING, ()),
    **_to([_P.GATHERING], _S.BELOW, (), [Kind.ALIVE]),
    **_to([_P.GATHERING], _S.BELOW, (_P.ENDING,), [Kind.FINISHED]),
    **_to([_P.RELEASED, _P.ENDING, _P.OVER], _S.BELOW, (), PASSIVE_NEWS),
    **_to([_P.RELEASED], _S.BELOW, (_P.RELEASED, _P.ENDING), [Kind.STAGE, Kind.LOST, Kind.ABORTED]),
    **_to([_P.ENDING, _P.OVER], _S.BELOW, (), [Kind.STAGE, Kind.LOST, Kind.ABORTED]),
    **_to([_P.RELEASED], _S.BELOW, (_P.RELEASED, _P.OVER), [Kind.FINISHED]),
    **_to([_P.ENDING], _S.BELOW, (_P.ENDING, _P.OVER), [Kind.FINISHED]),
    **_to([_P.GATHERING], _S.CHILD_GONE, (_P.ENDING,)),
    **_to([_P.RELEASED], _S.CHILD_GONE, (_P.RELEASED, _P.OVER)),
    **_to([_P.ENDING], _S.CHILD_GONE, (_P.ENDING, _P.OVER)),
    **_to([_P.GATHERING], _S.TIME, (_P.GATHERING, _P.ENDING)),
    **_to([_P.RELEASED], _S.TIME, (_P.RELEASED, _P.OVER)),
}
_PASSIVE_RUNNING: Final[Rows] = {
    **_to([_P.RUNNING], _S.BELOW, (_P.RUNNING,), PASSIVE_NEWS),
    **_to([_P.RUNNING], _S.BELOW, _THEN_ENDING, [Kind.STILL]),
    **_to([_P.RELEASED, _P.ENDING, _P.OVER], _S.BELOW, (), [Kind.STILL]),
    **_to([_P.RUNNING], _S.BELOW, (_P.RUNNING, _P.ENDING, _P.RELEASED), [Kind.STAGE]),
    **_to([_P.RUNNING], _S.BELOW, _THEN_ENDING, [Kind.LOST, Kind.ABORTED]),
    **_to([_P.RUNNING], _S.BELOW, (_P.RUNNING, _P.OVER), [Kind.FINISHED]),
    **_to([_P.RUNNING], _S.CHILD_GONE, (_P.RUNNING, _P.ENDING, _P.OVER)),
    **_to([_P.RUNNING], _S.TIME, (_P.RUNNING, _P.ENDING, _P.OVER)),
    **_to([_P.ENDING], _S.TIME, (_P.ENDING, _P.OVER)),
    **_to([_P.OVER], _S.BELOW, (), [Kind.FINISHED]),
    **_to([_P.OVER], _S.CHILD_GONE, ()),
    **_to([_P.OVER], _S.TIME, ()),
}

# where several may follow, what is known of the job decides; what is not here cannot happen
LAUNCHED: Final[Mapping[Pair, tuple[JobPhase, ...]]] = _LAUNCHER
JOINABLE: Final[Mapping[Pair, tuple[JobPhase, ...]]] = {
    **_LAUNCHER,
    **_to([_P.RUNNING], _S.JOINED, (_P.RUNNING,)),
}
JOINED: Final[Mapping[Pair, tuple[JobPhase, ...]]] = {**_PASSIVE, **_PASSIVE_RUNNING}
