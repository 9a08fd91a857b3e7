"""One rank of a recorded job, run in this process without the others."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from ompy import outputs
from ompy.data.errors import ERR_SPAWN, MPIError
from ompy.engine.real import RealEngine
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Modex, Proc
from ompy.frameworks.wireup import Inquiry
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry
from ompy.net.real import RealNetwork
from ompy.replay import rank as ranks
from ompy.replay.data_log import Streams
from ompy.replay.follower import Follower
from ompy.replay.job_file import RecordedJob, ranks_in
from ompy.replay.launcher_answers import AnswersAlone
from ompy.replay.recorded_line import RecordedLine
from ompy.replay.recording import RankRecording
from ompy.replay.replaying.debuggers import NoDebugger
from ompy.replay.replaying.outcomes import DIVERGED, leave_now
from ompy.runtime.diagnosis.shortage import shortage
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.runtime.ranks.environment import rank_environment
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.ranks.rank_start import give, procs_of
from ompy.runtime.ranks.tracing import open_trace
from ompy.runtime.simulation.program import execute

FAILED: Final = 1  # as an uncaught exception of Python
# settings of the job that say how it reached others, or what it wrote; here, or nothing
OWN: Final = {
    "pml": "direct",
    "btl": "self",
    "coll": "basic,inter",
    "record_base_directory": "",
    "trace_base_directory": "",
    "check_base_directory": "",
}
LEFT_OUT: Final = ("bml", "plm", "mca_base_pvars", "mpi_ft_enable", "pml_base_ft_enable")


class AloneWireUp(SingletonWireUp):
    """The wire-up of a rank that has none of its job."""

    def lookup(self, rank: int) -> Modex:
        """Nobody asks whom it has to reach; what is asked of the others is not known."""
        return {}

    def __init__(self, ranks: int) -> None:
        """Know of so many ranks, those that were started later, too."""
        super().__init__()
        self._ranks = ranks

    def procs_from(self, rank: int) -> Sequence[Proc]:
        """Processes that were started later, by name: where they were is not recorded."""
        return [Proc(number, 0, number, "nowhere", number) for number in range(rank, self._ranks)]

    def ask_launcher(self, what: str, header: Any, body: bytes = b"") -> Inquiry:
        """There is no launcher.

        Raises:
            MPIError: always.
        """
        raise MPIError(ERR_SPAWN, f"a rank that is replayed alone has no launcher to ask: {what}")


class AloneOutcome:
    """What becomes of it when it cannot go on."""

    def __init__(self, debugger: NoDebugger, code: int) -> None:
        """Nothing has happened yet; `code` is what the job ended with."""
        self.debugger = debugger
        self._code = code
        self.follower: Follower | None = None

    def diverged(self, text: str) -> NoReturn:
        """Say it; a debugger may look."""
        self._end(text, DIVERGED)

    def ended(self, text: str) -> NoReturn:
        """Likewise; the exit code is the job's, which has ended this rank here."""
        self._end(text, self._code)

    def mended(self, text: str) -> NoReturn:
        """Likewise."""
        self._end(text, 0)

    def missing(self) -> NoReturn:
        """The rank waits for what it never got."""
        assert self.follower is not None, "it runs"
        self.follower.stands_at("a wait for a message that never came")

    def stop_before_event(self) -> None:
        """The user wants to look at the event that comes now."""
        follower = self.follower
        assert follower is not None, "it runs"
        frame = follower.lines.frame_of_caller()
        event = follower.recording.events[follower.position]
        said = follower.recording.said_of(event)
        name = "no line of the program"
        if frame is not None:
            name = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        text = f"rank {follower.recording.rank} is at event {follower.position + 1}: {name}: {said}"
        outputs.tell(f"ompy replay: {text}\n", "event")
        if not self.debugger.stop_in_frame(frame):
            leave_now(0)

    def _end(self, text: str, code: int) -> NoReturn:
        name = "diverged" if code == DIVERGED else "recording ends"
        outputs.tell(f"ompy replay: {text}\n", name)
        assert self.follower is not None, "it runs"
        self.debugger.stop_in_frame(self.follower.lines.frame_of_caller())
        leave_now(code)


def run_alone(
    recorded: RecordedJob,
    recording: RankRecording,
    streams: Streams,
    debugger: NoDebugger,
    until: int = 0,
) -> int:
    """Be a rank of a recorded job. Once in a process.

    Args:
        recorded: the job.
        recording: of the rank.
        streams: what it received.
        debugger: looks at it.
        until: stop at this event; 0 for none.

    Returns:
        The exit code of its program.
    """
    job, rank = recorded.job, recording.rank
    placement = job.placements[rank]
    os.chdir(recorded.folder)
    os.environ.update(rank_environment(job, placement, os.environ, recorded.size))
    outcome = AloneOutcome(debugger, recorded.exit_code or 0)
    follower = outcome.follower = Follower(recording, outcome)
    follower.stop_at, follower.on_stop = until, outcome.stop_before_event
    follower.lines.outermost = execute.__code__
    ranks.follower_of_this_process = follower
    line = RecordedLine(streams, outcome.missing)
    give(partial(_bring_up_or_leave, recorded, rank, line), _abort)
    program: Callable[[], tuple[int, str]] = partial(
        execute, job.apps[placement.app], mpi4py=job.mpi4py
    )
    code, why = debugger.run_program(program)
    if why:
        debugger.failed(getattr(sys, "last_traceback", None))
    return code


def _abort(code: int, reason: str) -> NoReturn:
    outputs.tell(f"ompy replay: {reason}\n", "error", "error")
    leave_now(code or FAILED)


def _bring_up_or_leave(recorded: RecordedJob, rank: int, line: RecordedLine) -> RankProcess:
    """As `_bring_up`; if there is too little of something, it is said, and the process ends."""
    try:
        return _bring_up(recorded, rank, line)
    except (OSError, MemoryError, ImportError) as problem:
        short = shortage(problem)
        if not short:
            raise
        _abort(FAILED, f"error: rank {rank} cannot begin: {short}")


def _bring_up(recorded: RecordedJob, rank: int, line: RecordedLine) -> RankProcess:
    """The rank: with the processes of its job by name, and no way to any of them."""
    job = recorded.job
    pairs = {name: raw for name, raw, *_ in job.mca["settings"] if name not in LEFT_OUT}
    pairs |= {**OWN, "record_base_replay": recorded.directory}
    registry = Registry(CATALOG, gather_settings(list(pairs.items()), {}))
    registry.check_settings()
    procs = procs_of(job, recorded.size)
    me = procs[rank]
    registry.speak_for(job=job.job_id, host=me.hostname, rank=rank)
    wireup = AloneWireUp(ranks_in(recorded.directory))
    engine = RealEngine(1, 0)
    context = RankContext(
        rank,
        procs,
        engine=engine,
        network=RealNetwork(engine, 0, wireup),
        wireup=wireup,
        trace=open_trace(registry, me),
        job_id=bytes.fromhex(job.job_id),
        job_key=os.urandom(32),
        oversubscribed=job.oversubscribed,
        hosts=len(job.hosts),
    )
    context.direct = line
    context.expects_others = True  # there is nothing to bring up for whom it meets
    engine.add_poller(line)
    process = RankProcess(context, registry)
    assert ranks.follower_of_this_process is not None, "it is made before the rank"
    process.answers_in_front = AnswersAlone(ranks.follower_of_this_process)
    return process
