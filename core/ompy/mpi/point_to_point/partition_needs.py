"""What a partitioned message waits for, for who proves deadlocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from ompy.data.request import Request, Waitable
from ompy.frameworks.needs import Need, Needing

PARTITIONS: Final = "partitions"
SHOWN: Final = 4  # partitions that are named; arbitrary: a line has room


class PartsNeeded(Waitable, Needing):
    """Complete when the message is; asked what it needs until then."""

    __slots__ = ("_state",)

    def __init__(self, state: Any) -> None:
        """Ask `state`, of either side."""
        Waitable.__init__(self)
        self._state = state

    def need(self) -> Need | None:
        """What others have to call, or this rank itself."""
        found: Need | None = self._state.need()
        return found


def unready(state: Any, ready: Sequence[int]) -> Need | None:
    """That this rank's own program makes the other partitions ready; None if all are.

    Args:
        state: of the sender.
        ready: of each partition, whether it is.
    """
    missing = [each for each, is_ready in enumerate(ready) if not is_ready]
    if not missing:
        return None
    which = ", ".join(map(str, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
    text = f"Pready of partition {which} of its own message to rank {state.peer}"
    return _need(state, text, state.communicator_state.communicator.rank)


def unprepared(state: Any, call: str) -> Need:
    """That the peer's program makes its side of the message, by the call named."""
    return _need(state, f"{call} of rank {state.peer} with tag {state.tag}", state.peer)


def missing_parts(state: Any, posted: Iterable[Request]) -> Need | None:
    """That the peer makes partitions ready for one of these receives; None if all are under way."""
    pml = state.communicator_state.pml
    if all(each.complete or pml.need(each) is None for each in posted):
        return None
    text = f"partitions of the message with tag {state.tag} from rank {state.peer}"
    return _need(state, text, state.peer)


def untaken(state: Any, sent: Iterable[Request]) -> Need | None:
    """That the peer starts its receive, for one of these sends; None if all are under way."""
    pml = state.communicator_state.pml
    wanted = (pml.need(each) for each in sent if not each.complete)
    return next(filter(None, wanted), None)


def _need(state: Any, text: str, rank: int) -> Need:
    communicator = state.communicator_state.communicator
    return Need(PARTITIONS, communicator, (rank,), tag=state.tag, detail=text)
