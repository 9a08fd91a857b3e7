"""Begins to trace a rank's calls: called when it is up, before the program makes its first call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ompy.calls.caller import Caller
from ompy.calls.handlers import COMM_CALLS, FILE_CALLS, REQUEST_CALLS, WINDOW_CALLS, handler
from ompy.check.interposing import interpose_class

if TYPE_CHECKING:
    from ompy.runtime.ranks.process import RankProcess


def begin_tracing_calls(process: RankProcess) -> None:
    """Write each call of this rank that communicates from now on."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    caller = Caller(process.context.trace)
    kinds = (MPI.Intracomm, MPI.Cartcomm, MPI.Graphcomm, MPI.Distgraphcomm, MPI.Intercomm)
    for kind in kinds:
        interpose_class(caller, kind, "", _handlers(COMM_CALLS), None)
    for other in (MPI.Request, MPI.Prequest):
        interpose_class(caller, other, "Request.", _handlers(REQUEST_CALLS), None)
    interpose_class(caller, MPI.Message, "Message.", _handlers(("Recv", "Irecv", "recv")), None)
    interpose_class(caller, MPI.Win, "Win.", _handlers(WINDOW_CALLS), None)
    interpose_class(caller, MPI.File, "File.", _handlers(FILE_CALLS), None)


def _handlers(names: tuple[str, ...]) -> dict[str, Callable[..., Any]]:
    return {name: handler() for name in names}
