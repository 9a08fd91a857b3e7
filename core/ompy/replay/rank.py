"""Begins to record a rank, or to replay it: when it is up, before the program's first call."""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import outputs
from ompy.replay.entries import EVENTS, Header

if TYPE_CHECKING:
    from ompy.frameworks.pml import Pml
    from ompy.replay.recorder import Recorder
    from ompy.runtime.process import RankProcess


def begin_recording(process: RankProcess, directory: str, *, data: bool) -> None:
    """Record this rank from now on.

    Args:
        process: the rank.
        directory: of the recording.
        data: write what it receives, too.
    """
    from ompy.replay.events import NEVER
    from ompy.replay.recorder import Recorder
    from ompy.replay.recorded_calls import begin_recording_calls
    from ompy.replay.recording_pml import RecordingPml

    context = process.context
    header = Header(EVENTS, context.rank, len(context.world), context.job_id)
    try:
        recorder = Recorder(directory, header, data=data)
    except OSError as problem:
        text = f"--record {directory}: {problem.strerror}; this rank is not recorded"
        outputs.warn(text, ("ompy", f"rank {context.rank}"))
        return
    put_around(process, RecordingPml(process.pml, recorder))
    if context.recovery is not None:
        recorder.note(NEVER, "mpi_ft_enable: when ranks die, no recording says")
    begin_recording_calls(recorder)
    _finish_with(process, recorder)


def _finish_with(process: RankProcess, recorder: Recorder) -> None:
    """The end of the events is where the rank begins to finalize; bytes come until it is over."""
    process.before_finalize.append(recorder.finish)
    process.before_finalize.insert(0, recorder.close)


def put_around(process: RankProcess, pml: Pml) -> None:
    """Have a rank use a PML that is around its own.

    Args:
        process: the rank, which has sent nothing yet.
        pml: around `process.pml`.
    """
    from ompy.mpi import life

    process.pml = pml
    for communicator in process.communicators.values():
        communicator.pml = pml
    for state in life.predefined_states():
        state.pml = pml
