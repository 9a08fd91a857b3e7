"""Begins to record a rank, or to replay it: when it is up, before the program's first call."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ompy import outputs
from ompy.replay.entries import EVENTS, Header

if TYPE_CHECKING:
    from ompy.check.interposing import Observer
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.context import RankContext
    from ompy.frameworks.fault_tolerance.recovery import Recovery
    from ompy.frameworks.pml import Pml
    from ompy.frameworks.proc import Proc
    from ompy.replay.follower import Follower
    from ompy.replay.job_file import RecordedJob
    from ompy.replay.recorder import Recorder
    from ompy.replay.replaying.received_bytes import ReceivedBytes
    from ompy.runtime.ranks.process import RankProcess


# of a process that is one rank without the others (`replaying/alone.py`); None in a job
follower_of_this_process: Follower | None = None


def begin_recording(process: RankProcess, directory: str, *, data: bool) -> None:
    """Record this rank from now on.

    Args:
        process: the rank.
        directory: of the recording.
        data: write what it receives, too.
    """
    from ompy.replay.launcher_answers import RecordedAnswers
    from ompy.replay.recorded_calls import begin_recording_calls
    from ompy.replay.recorder import Recorder
    from ompy.replay.recording_pml import RecordingPml
    from ompy.replay.windows.service import RecordedService

    context = process.context
    header = Header(EVENTS, context.rank, len(context.world), context.job_id)
    try:
        recorder = Recorder(directory, header, data=data)
    except OSError as problem:
        text = f"--record {directory}: {problem.strerror}; this rank is not recorded"
        outputs.warn(text, ("ompy", f"rank {context.rank}"))
        return
    put_around(process, RecordingPml(process.pml, recorder))
    if len({proc.node for proc in context.world}) > 1:
        recorder.locks = "hosts have clocks of their own, so the order of locks is not known"
    if data:
        recorder.service = context.service = RecordedService(recorder)
    if context.recovery is not None:
        _note_deaths(context, context.recovery, recorder)
    begin_recording_calls(recorder)
    process.answers_in_front = RecordedAnswers(recorder)
    _finish_with(process, recorder)


def _note_deaths(context: RankContext, recovery: Recovery, recorder: Recorder) -> None:
    """What calls say after a death, or after a Revoke, hangs on when a rank hears of it."""
    from ompy.replay.events import NEVER

    def heard(proc: Proc, _silent: bool) -> None:
        if proc in recovery.dead:
            text = f"rank {proc.rank} has died: when this one heard of it is not recorded"
            recorder.note_unreplayable(NEVER, text)

    def revoked(communicator: Communicator) -> None:
        text = f"{communicator.name} is revoked: when this rank heard of it is not recorded"
        recorder.note_unreplayable(NEVER, text)

    context.departures.add_listener(heard)
    recovery.on_revoked = revoked


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
    from ompy.mpi.processes import life

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
    from ompy.replay.launcher_answers import AnswersAgain
    from ompy.replay.recording import read_rank, read_streams
    from ompy.replay.replaying.outcomes import MEETING, JobOutcome
    from ompy.replay.replaying.received_bytes import ReceivedBytes
    from ompy.replay.threads.calls import MADE
    from ompy.replay.windows.service import THREADED, OrderedService
    from ompy.replay.windows.steps import begin_counting

    if follower_of_this_process is not None:
        _serve_alone(process, follow(process, follower_of_this_process))
        return
    context = process.context
    try:
        recorded = read_job(directory)
        if context.me.world == 0 and recorded.size != len(context.world):
            raise RecordingError(f"{directory}: it is of {recorded.size} ranks")
        recording = read_rank(recorded, context.rank)
        streams = None
        if recorded.data and not any(note.text.endswith(MADE) for note in recording.notes):
            streams = read_streams(recorded, context.rank)
    except RecordingError as problem:
        raise MPIError(ERR_OTHER, f"no replay: {problem}") from None
    follower = Follower(recording, JobOutcome(process, directory))
    received = None if streams is None else ReceivedBytes(streams, follower)
    meeting = os.path.join(recorded.directory, f"{MEETING}-{context.job_id.hex()}")
    process.answers_in_front = AnswersAgain(follower, context.engine, Path(meeting))
    observer = follow(process, follower, received)
    _lock_in_order(process, recorded, meeting, observer, follower)
    if streams is not None and not any(note.text.endswith(THREADED) for note in recording.notes):
        service = OrderedService(streams.served, context.engine, follower)
        context.service = service
        begin_counting(observer, service)


def _serve_alone(process: RankProcess, observer: Observer) -> None:
    """Have done in the windows of a rank without others what these had done there.

    Args:
        process: the rank.
        observer: whose handlers are in front.
    """
    from ompy.replay.recorded_line import RecordedLine
    from ompy.replay.windows.locks import begin_replaying_locks
    from ompy.replay.windows.service import AloneService
    from ompy.replay.windows.steps import begin_counting

    line, follower = process.context.direct, follower_of_this_process
    assert follower is not None, "it is alone"
    assert isinstance(line, RecordedLine), "it is fed from a recording"
    service = AloneService(line.streams, process.context.engine)
    process.context.service, line.serve = service, service.serve
    begin_replaying_locks(observer, follower, {}, None)
    begin_counting(observer, service)


def _lock_in_order(
    process: RankProcess, recorded: RecordedJob, path: str, observer: Observer, follower: Follower
) -> None:
    """Have windows locked in the order of the recording, where one clock has told it.

    Args:
        process: the rank.
        recorded: the job.
        path: of the folder where ranks of the replay meet.
        observer: whose handlers are in front.
        follower: of the rank.

    Raises:
        MPIError: the recording of another rank cannot be read, or nothing written beside it.
    """
    from ompy.data.errors import ERR_OTHER, MPIError
    from ompy.replay.entries import RecordingError
    from ompy.replay.events import Locked
    from ompy.replay.job_file import ranks_in
    from ompy.replay.recording import read_rank
    from ompy.replay.windows.lock_order import Waits, waits_of
    from ompy.replay.windows.locks import GrantedLocks, begin_replaying_locks

    waits: dict[int, Waits] = {}
    granted = None
    context = process.context
    try:
        if any(isinstance(event, Locked) for event in follower.recording.events):
            size = max(recorded.size, ranks_in(recorded.directory))
            every = {rank: read_rank(recorded, rank) for rank in range(size)}
            os.makedirs(path, exist_ok=True)
            granted = GrantedLocks(os.path.join(path, "locks"), context.rank, size)
            if len(recorded.job.hosts) == 1:
                waits = waits_of(every, context.rank)
    except (RecordingError, OSError) as problem:
        raise MPIError(ERR_OTHER, f"no replay: {problem}") from None
    begin_replaying_locks(observer, follower, waits, granted)


def follow(
    process: RankProcess, follower: Follower, received: ReceivedBytes | None = None
) -> Observer:
    """Have a rank get its answers from a recording.

    Args:
        process: the rank.
        follower: has the answers.
        received: compares what it receives; None where nothing is compared.

    Returns:
        Whose handlers are in front.
    """
    from ompy.replay.replaying.replayed_calls import begin_replaying_calls
    from ompy.replay.replaying.replayed_pml import ReplayedPml

    pml = ReplayedPml(process.pml, follower, received)
    put_around(process, pml)
    process.before_finalize.append(follower.finish)
    follower.watch_threads(process.registry.values("record").thread_patience)
    return begin_replaying_calls(follower, pml, process.context.engine)
