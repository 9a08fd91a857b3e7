"""Begins to record a rank, or to replay it: when it is up, before the program's first call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import outputs
from ompy.replay.entries import EVENTS, Header

if TYPE_CHECKING:
    from ompy.frameworks.pml import Pml
    from ompy.replay.follower import Follower
    from ompy.replay.recorder import Recorder
    from ompy.runtime.process import RankProcess


# of a process that is one rank without the others (`alone.py`); None in a job
follower_of_this_process: Follower | None = None


def begin_recording(process: RankProcess, directory: str, *, data: bool) -> None:
    """Record this rank from now on.

    Args:
        process: the rank.
        directory: of the recording.
        data: write what it receives, too.
    """
    from ompy.replay.events import NEVER
    from ompy.replay.recorded_calls import begin_recording_calls
    from ompy.replay.recorder import Recorder
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
        recorder.note_unreplayable(NEVER, "mpi_ft_enable: when ranks die, no recording says")
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


def begin_replaying(process: RankProcess, directory: str) -> None:
    """Give this rank of a job the answers of its recording from now on.

    Args:
        process: the rank.
        directory: of the recording.

    Raises:
        MPIError: it cannot be read, or is of a job of another size; the text says why.
    """
    from ompy.data.errors import ERR_OTHER, MPIError
    from ompy.replay.entries import RecordingError
    from ompy.replay.follower import Follower
    from ompy.replay.job_file import read_job
    from ompy.replay.outcomes import JobOutcome
    from ompy.replay.recording import read_rank

    if follower_of_this_process is not None:
        follow(process, follower_of_this_process)
        return
    context = process.context
    try:
        recorded = read_job(directory)
        if context.me.world == 0 and recorded.size != len(context.world):
            raise RecordingError(f"{directory}: it is of {recorded.size} ranks")
        recording = read_rank(recorded, context.rank)
    except RecordingError as problem:
        raise MPIError(ERR_OTHER, f"no replay: {problem}") from None
    follow(process, Follower(recording, JobOutcome(process, directory)))


def follow(process: RankProcess, follower: Follower) -> None:
    """Have a rank get its answers from a recording."""
    from ompy.replay.replayed_calls import begin_replaying_calls
    from ompy.replay.replayed_pml import ReplayedPml

    pml = ReplayedPml(process.pml, follower)
    put_around(process, pml)
    begin_replaying_calls(follower, pml)
    process.before_finalize.append(follower.finish)
