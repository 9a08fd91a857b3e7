"""`ompy sim --explore --check`: what is wrong in any world, and what exploring decides of it.

The checker of one run guesses at other orders: that a receive could have taken another message,
that sends only end because they are buffered. Here these orders are run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.check.analysis import findings_of
from ompy.check.findings import EXIT, Found, as_json, expected, lines_of, merged
from ompy.check.logs import Record
from ompy.cli.simulating.sim import tell_user

if TYPE_CHECKING:
    from ompy.runtime.exploration.events import Event
    from ompy.runtime.exploration.explorer import Explored, Failure

RACE: Final = "message-race"
BUFFERING: Final = "buffering-dependent"


class WorldChecker:
    """Looks at the calls of each world of one mode of buffering.

    Attributes:
        found: what is wrong, each once.
        worlds: that were looked at.
    """

    def __init__(self, *, buffers: bool) -> None:
        self.found: list[Found] = []
        self.worlds = 0
        self._synchronous = not buffers

    def __call__(self, records: Sequence[Sequence[tuple[Any, ...]]], went_well: bool) -> None:
        """Look at one: what its ranks have recorded, and whether it ended well."""
        read = {}
        for rank, events in enumerate(records):
            read[rank] = record = Record(rank)
            for event in events:
                record.take_event(event)
        found = findings_of(read, None, went_well=went_well, synchronous=self._synchronous)
        self.found = merged([*self.found, *found])
        self.worlds += 1


def tell_checked(explored: Mapping[bool, Explored], failure: Failure | None, code: int) -> int:
    """Say what was found. Returns the exit code: `code`, or the checker's."""
    every = merged(one for found in explored.values() for one in found.found)
    if failure is not None:
        every += _race_of(failure, every)
    every = [one for one in every if not expected(one)]
    said = [(one, decision_of(one, explored, failure)) for one in every]
    lines = lines_of(every)[:1] if every or failure is None else ["check: nothing else was found"]
    for one, decision in said:
        lines += [*lines_of([one])[1:], *([f"  {decision}"] if decision else [])]
    bad = [one for one, decision in said if not decision.endswith(WELL)]
    level = "error" if bad else "info"
    tell_user("\n".join(lines), "check", level, **as_json(every))
    return code or (EXIT if bad else 0)


WELL: Final = "end well"  # how a decision ends that leaves nothing wrong


def decision_of(one: Found, explored: Mapping[bool, Explored], failure: Failure | None) -> str:
    """What the exploration says of a finding that is about another order; empty of any other."""
    if one.kind not in {RACE, BUFFERING}:
        return ""
    waits = explored.get(False)
    turn = failure.turn if failure is not None else None
    if turn is not None and one.kind == RACE and turn.site in _places(one):
        return f"decided: order B fails, in which {_said(turn)}"
    if failure is not None and one.kind == BUFFERING and waits is not None:
        return "decided: it fails where standard sends wait"
    whole = all(each.left == 0 and not (each.shallow or each.heeded) for each in explored.values())
    if failure is not None or not whole or len(explored) < 2:
        return "not decided: not all schedules were tried"
    return f"decided: both orders {WELL}" if one.kind == RACE else f"decided: both modes {WELL}"


def _race_of(failure: Failure, found: Sequence[Found]) -> list[Found]:
    """The race that a failure proves, if its deciding choice is one and no finding has it.

    The checker of one run says nothing of orders that seem to make no difference.
    """
    from ompy.runtime.exploration.events import FROM, MATCH, PROBE

    turn, instead = failure.turn, failure.instead
    if turn is None or instead is None or turn.kind not in {MATCH, PROBE}:
        return []
    if turn.value[0] != FROM or instead.value[0] != FROM:
        return []
    if any(one.kind == RACE and turn.site in _places(one) for one in found):
        return []
    call = "a probe" if turn.kind == PROBE else "a receive"
    does = "found" if turn.kind == PROBE else "took"
    message = (
        f"{call} from any source {does} the message of rank {turn.value[1]}; that of rank "
        f"{instead.value[1]} could have come first, and then the program ends well. MPI 4.1, 3.5: "
        "which is taken is not determined; name the source, or give messages that are no "
        "alternatives tags of their own"
    )
    ends = (
        (turn.key[0], turn.site, call),
        (turn.value[1], turn.sent, "a send"),
        (instead.value[1], instead.site, "a send"),
    )
    return [Found(RACE, message, tuple(_site(*end) for end in ends))]


def _site(rank: int, where: str, call: str) -> dict[str, Any]:
    file, _, line = where.rpartition(":")
    return {"rank": rank, "file": os.path.abspath(file), "line": int(line or 0), "call": call}


def _places(one: Found) -> set[str]:
    return {f"{os.path.abspath(site['file'])}:{site['line']}" for site in one.sites} | {
        f"{os.path.relpath(site['file'])}:{site['line']}" for site in one.sites
    }


def _said(turn: Event) -> str:
    from ompy.cli.simulating.sim_failure import said_of

    return said_of(turn)
