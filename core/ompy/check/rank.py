"""Begins to check a rank: called when it is up, before the program makes its first call."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ompy import outputs
from ompy.check import collectives, files, handles, messages, partitions, requests, windows
from ompy.check.again.nonblocking import remember_waits
from ompy.check.again.repeats import remember_repeats
from ompy.check.buffers import Buffers
from ompy.check.callees import program_files
from ompy.check.checker import Checker, watch_uncaught
from ompy.check.interposing import interpose_class, interpose_functions
from ompy.check.recorder import Recorder, ToldRecorder
from ompy.check.under_way import Requests

if TYPE_CHECKING:
    from ompy.runtime.ranks.process import RankProcess


def begin_checking(
    process: RankProcess, directory: str, limit: int, *, synchronous: bool = False
) -> None:
    """Check this rank from now on.

    Args:
        process: the rank.
        directory: of the job's records.
        limit: entries of a record at most.
        synchronous: standard sends wait for their receives.
    """
    rank = process.context.rank
    world = process.context.direct
    if world is not None:
        check_rank(process, ToldRecorder(world.record_call, limit))
        return
    try:
        recorder = Recorder(os.path.join(directory, f"rank-{rank}.calls"), limit)
    except OSError as problem:
        text = f"check_base_directory {directory}: {problem.strerror}; this rank is not checked"
        outputs.warn(text, ("ompy", f"rank {rank}"))
        return
    check_rank(process, recorder, synchronous=synchronous)


def check_rank(process: RankProcess, recorder: Recorder, *, synchronous: bool = False) -> Checker:
    """Put the checker in front of the API of this process, for good.

    Args:
        process: the rank.
        recorder: of its calls.
        synchronous: standard sends wait for their receives.
    """
    checker = Checker(recorder, process.context.rank)
    checker.synchronous = synchronous
    checker.buffers = Buffers(checker)
    checker.requests = Requests(checker)
    _interpose(checker)
    watch_uncaught(checker)
    process.before_finalize.append(lambda: finish(checker))
    return checker


def _interpose(checker: Checker) -> None:
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    checker.comm(MPI.COMM_WORLD)  # also of a rank that never uses it something can be said
    of_comms = {
        **messages.HANDLERS,
        **partitions.COMM_HANDLERS,
        **collectives.HANDLERS,
        **handles.COMM_HANDLERS,
    }
    kinds = (MPI.Intracomm, MPI.Cartcomm, MPI.Graphcomm, MPI.Distgraphcomm, MPI.Intercomm)
    for kind in kinds:
        interpose_class(checker, kind, "comm.", of_comms)
        if not checker.synchronous:  # else the handler makes another call
            remember_repeats(checker, kind)
    interpose_class(checker, MPI.Request, "request.", requests.HANDLERS)
    of_prepared = {**requests.HANDLERS, **partitions.REQUEST_HANDLERS}
    interpose_class(checker, MPI.Prequest, "request.", of_prepared)
    remember_waits(checker, MPI.Request)
    requests.watch_awaiting(checker, MPI.Request)
    interpose_class(checker, MPI.Message, "message.", messages.MESSAGE_HANDLERS)
    interpose_class(checker, MPI.Datatype, "datatype.", handles.DATATYPE_HANDLERS)
    interpose_class(checker, MPI.Session, "session.", handles.SESSION_HANDLERS)
    for other in (MPI.Group, MPI.Op, MPI.Info):
        interpose_class(checker, other, f"{other.__name__.lower()}.", {})
    interpose_functions(checker, MPI, handles.FUNCTION_HANDLERS)
    windows.begin(checker)
    files.watch_files(checker)


def begin_anew(checker: Checker) -> None:
    """Begin the record again; what there is of requests, windows and files is unknown then."""
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    windows.forget_all(checker)
    files.forget_all(checker)
    checker.begin_anew()
    checker.comm(MPI.COMM_WORLD)


def finish(checker: Checker) -> None:
    """The rank begins to finalize: what is left is left for good."""
    checker.requests.finish()
    files.finish(checker)
    handles.finish(checker)
    windows.finish(checker)
    checker.write_event("files", program_files())
    checker.write_event("end")
