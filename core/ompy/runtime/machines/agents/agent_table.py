"""Where an agent is, and what can happen to it there.

An agent that has started ranks:

    RUNNING    they start, run and end
    ENDING     their processes have been asked to end
    KILLING    they are killed, until none is left
    FINISHED   none is left; the parent has been told, and is waited for
    OVER       nothing is left to be decided

A relay, which has agents below it:

    READY      those are ready, too, and nobody has been told the job
    PASSING    messages are passed on
    SWEEPING   so they are, but the agent of this host is dead, and its ranks are killed

An agent of passive mode:

    GATHERING  ranks of this host come by themselves
    MEETING    all are here: the coordinator is looked for
    WAITING    it is found, and waits for other hosts
    RUNNING    the ranks run
    RELEASED   all ranks of the job have finalized
    ENDING     those of this host have been told to end
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.events import Seen


class AgentPhase(Enum):
    """Where an agent is."""

    READY = "ready"
    PASSING = "passing on"
    SWEEPING = "sweeping"
    GATHERING = "gathering"
    MEETING = "meeting"
    WAITING = "waiting"
    RUNNING = "running"
    RELEASED = "released"
    ENDING = "ending"
    KILLING = "killing"
    FINISHED = "finished"
    OVER = "over"


_P, _S = AgentPhase, Seen
Pair = tuple[AgentPhase, Seen, Kind | None]
Rows = dict[Pair, tuple[AgentPhase, ...]]
Table = Mapping[Pair, tuple[AgentPhase, ...]]

# what a rank says of its wire-up and its leaving
WIREUP: Final = frozenset(
    {Kind.COMMIT, Kind.LOOKUP, Kind.FENCE, Kind.LEAVING, Kind.FINALIZED, Kind.EXPENDABLE}
)
# what it says that only the launcher needs to know
REPORTS: Final = frozenset(
    {
        Kind.FAULTS,
        Kind.PATHS,
        Kind.RAIL,
        Kind.CARRIED,
        Kind.COUNTED,
        Kind.WHERE,
        Kind.STILL,
        Kind.UNREACHABLE,
    }
)
WITH_BODY: Final = frozenset({Kind.PATHS, Kind.CARRIED, Kind.STILL, Kind.WHERE})  # of these
RANK_WORDS: Final = WIREUP | REPORTS | {Kind.ABORT, Kind.ASK}
# what every host has to know
TO_ALL: Final = frozenset(
    {
        Kind.FENCED,
        Kind.LEFT,
        Kind.DEPARTED,
        Kind.END,
        Kind.SIGNAL,
        Kind.REPORT,
        Kind.STAND,
        Kind.GROW,
        Kind.DISCARD,
    }
)
TO_ONE: Final = frozenset(
    {Kind.CREDIT, Kind.INPUT, Kind.INPUT_END, Kind.ANSWER, Kind.KILL, Kind.MODEX}
)
FROM_AGENTS: Final = frozenset(
    {
        Kind.ALIVE,
        Kind.STARTED,
        Kind.OUTPUT,
        Kind.STAGE,
        Kind.EXITED,
        Kind.LOST,
        Kind.ABORTED,
        Kind.UNSTARTED,
        Kind.INPUT_TAKEN,
        Kind.INPUT_CLOSED,
        Kind.FINISHED,
        Kind.AGENT_GONE,
        Kind.MODEX,
        Kind.FETCH,
        Kind.FENCED,
        Kind.LEFT,
        Kind.ASK,
        *REPORTS,
    }
)


def _to(
    phases: Iterable[AgentPhase],
    what: Seen,
    then: tuple[AgentPhase, ...] = (),
    kinds: Iterable[Kind | None] = (None,),
) -> Rows:
    """The phases that may follow; if none is given, the same."""
    kinds = tuple(kinds)
    return {(phase, what, kind): then or (phase,) for phase in phases for kind in kinds}


_LIVES: Final = (_P.RUNNING, _P.ENDING, _P.KILLING)
_ALL: Final = (*_LIVES, _P.FINISHED, _P.OVER)
_MOSTLY: Final = (*TO_ALL - {Kind.END, Kind.GROW}, *TO_ONE - {Kind.KILL}, Kind.ALIVE)
_COMMON: Final[Rows] = {
    **_to(_P, _S.PARENT_GONE, (_P.OVER,)),
    **_to(_P, _S.TOLD_TO_END, (_P.OVER,)),
    **_to([_P.OVER], _S.TIME),
}

# an agent that has started ranks
STARTED_RANKS: Final[Table] = {
    **{pair: then for pair, then in _COMMON.items() if pair[0] in _ALL},
    **_to([_P.RUNNING], _S.BEGUN),
    **_to(_ALL, _S.ABOVE, (), _MOSTLY),
    **_to([_P.RUNNING], _S.ABOVE, (_P.RUNNING, _P.OVER), [Kind.KILL]),
    **_to([*_ALL[1:]], _S.ABOVE, (), [Kind.KILL]),
    **_to([*_LIVES, _P.OVER], _S.ABOVE, (), [Kind.GROW]),
    **_to([_P.FINISHED], _S.ABOVE, (_P.FINISHED, _P.RUNNING), [Kind.GROW]),
    **_to([_P.RUNNING, _P.OVER], _S.FORKED),
    **_to([_P.RUNNING, _P.OVER], _S.UNFORKED),
    **_to([_P.RUNNING], _S.ABOVE, (_P.ENDING, _P.KILLING), [Kind.END]),
    **_to([_P.ENDING], _S.ABOVE, (_P.ENDING, _P.KILLING), [Kind.END]),
    **_to([_P.KILLING, _P.FINISHED, _P.OVER], _S.ABOVE, (), [Kind.END]),
    **_to(_ALL, _S.RANK, (), RANK_WORDS),
    **_to(_ALL, _S.ATTACHED),
    **_to(_ALL, _S.UNEXECUTABLE),
    **_to(_ALL, _S.CLIENT_GONE),
    **_to([*_LIVES, _P.OVER], _S.EXITED),
    **_to([_P.RUNNING], _S.REAPED, (_P.RUNNING, _P.ENDING, _P.FINISHED)),
    **_to([_P.ENDING], _S.REAPED, (_P.ENDING, _P.FINISHED)),
    **_to([_P.KILLING], _S.REAPED, (_P.KILLING, _P.FINISHED)),
    **_to([_P.FINISHED, _P.OVER], _S.REAPED),
    **_to(_ALL, _S.OUTLOOK),
    **_to([_P.RUNNING], _S.TIME, (_P.RUNNING, _P.OVER)),
    **_to([_P.ENDING], _S.TIME, (_P.ENDING, _P.KILLING, _P.OVER)),
    **_to([_P.KILLING], _S.TIME, (_P.KILLING, _P.OVER)),
    **_to([_P.FINISHED], _S.TIME, (_P.FINISHED, _P.OVER)),
}

_RELAYING: Final = (_P.PASSING, _P.SWEEPING)
RELAY: Final[Table] = {
    **{p: then for p, then in _COMMON.items() if p[0] in {_P.READY, *_RELAYING, _P.OVER}},
    **_to([_P.READY], _S.BEGUN),
    **_to([_P.READY], _S.ABOVE, (_P.PASSING,), [Kind.START]),
    **_to([_P.READY, *_RELAYING, _P.OVER], _S.ABOVE, (), [Kind.ALIVE]),
    **_to([*_RELAYING, _P.OVER], _S.ABOVE, (), [*TO_ALL, *TO_ONE]),
    **_to([_P.SWEEPING, _P.OVER], _S.ABOVE, (), [Kind.START]),
    **_to([*_RELAYING, _P.OVER], _S.BELOW, (), FROM_AGENTS),
    **_to([_P.READY], _S.CHILD_GONE, (_P.READY, _P.SWEEPING)),
    **_to([_P.PASSING], _S.CHILD_GONE, (_P.PASSING, _P.SWEEPING)),
    **_to([_P.SWEEPING, _P.OVER], _S.CHILD_GONE),
    **_to([_P.READY], _S.TIME, (_P.READY, _P.OVER)),
    **_to([_P.PASSING], _S.TIME, (_P.PASSING, _P.OVER)),
    **_to([_P.SWEEPING], _S.TIME, (_P.SWEEPING, _P.OVER)),
}

_EARLY: Final = (_P.GATHERING, _P.MEETING, _P.WAITING)
_JOINED: Final = (_P.RUNNING, _P.RELEASED, _P.ENDING, _P.OVER)
_NOW_ENDING: Final = (_P.ENDING, _P.OVER)
# an agent of passive mode
PASSIVE: Final[Table] = {
    **_to([_P.GATHERING], _S.BEGUN),
    **_to([_P.GATHERING], _S.CAME, (_P.GATHERING, _P.MEETING)),
    **_to([_P.MEETING, _P.WAITING, _P.RUNNING, _P.RELEASED, _P.OVER], _S.CAME),
    **_to([_P.ENDING], _S.CAME, _NOW_ENDING),
    **_to(_EARLY, _S.CLIENT_GONE, _NOW_ENDING),
    **_to(_JOINED, _S.CLIENT_GONE),
    **_to(_EARLY, _S.STARTER_GONE, _NOW_ENDING),
    **_to(_JOINED, _S.STARTER_GONE),
    **_to([_P.GATHERING, _P.MEETING], _S.MISSING, _NOW_ENDING),
    **_to([_P.WAITING, *_JOINED], _S.MISSING),
    **_to([_P.MEETING], _S.MET, (_P.WAITING,)),
    **_to([_P.ENDING, _P.OVER], _S.MET),
    **_to([_P.MEETING], _S.UNMET, _NOW_ENDING),
    **_to([_P.ENDING, _P.OVER], _S.UNMET),
    **_to([_P.GATHERING, _P.MEETING, _P.WAITING, _P.RUNNING, _P.OVER], _S.COORDINATED),
    **_to([_P.RELEASED], _S.COORDINATED, (_P.RELEASED, _P.OVER)),
    **_to([_P.ENDING], _S.COORDINATED, _NOW_ENDING),
    **_to([_P.WAITING], _S.ABOVE, (_P.RUNNING,), [Kind.START]),
    **_to([_P.ENDING, _P.OVER], _S.ABOVE, (), [Kind.START]),
    **_to([_P.WAITING, *_JOINED], _S.ABOVE, (), [Kind.ALIVE]),
    **_to(_JOINED, _S.ABOVE, (), [Kind.MODEX, Kind.FENCED, Kind.LEFT, Kind.STAND]),
    **_to([_P.RUNNING, _P.RELEASED], _S.ABOVE, (_P.RELEASED, _P.OVER), [Kind.FINISHED]),
    **_to([_P.ENDING], _S.ABOVE, _NOW_ENDING, [Kind.FINISHED]),
    **_to([_P.OVER], _S.ABOVE, (), [Kind.FINISHED]),
    **_to([_P.WAITING, _P.RUNNING, _P.RELEASED], _S.ABOVE, _NOW_ENDING, [Kind.END]),
    **_to([_P.ENDING, _P.OVER], _S.ABOVE, (), [Kind.END]),
    **_to([_P.WAITING, _P.RUNNING], _S.PARENT_GONE, _NOW_ENDING),
    **_to([_P.RELEASED, _P.ENDING, _P.OVER], _S.PARENT_GONE),
    **_to(_JOINED, _S.ATTACHED),
    **_to(_JOINED, _S.RANK, (), RANK_WORDS),
    **_to([_P.RUNNING, _P.OVER], _S.EXITED),
    **_to([_P.RELEASED], _S.EXITED, (_P.RELEASED, _P.OVER)),
    **_to([_P.ENDING], _S.EXITED, _NOW_ENDING),
    **_to([_P.GATHERING], _S.TIME, (_P.GATHERING, _P.OVER)),
    **_to([_P.MEETING, _P.RELEASED, _P.OVER], _S.TIME),
    **_to([_P.WAITING], _S.TIME, (_P.WAITING, *_NOW_ENDING)),
    **_to([_P.RUNNING], _S.TIME, (_P.RUNNING, *_NOW_ENDING)),
    **_to([_P.ENDING], _S.TIME, _NOW_ENDING),
}
