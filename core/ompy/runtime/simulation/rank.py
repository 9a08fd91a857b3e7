"""A rank's process in a simulated world: from the fork to the end of the user's program."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from traceback import walk_stack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

from ompy import outputs
from ompy.data.request import Waitable
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.registry import Registry
from ompy.net.base import Interface
from ompy.runtime.cluster.model import Described
from ompy.runtime.cluster.rank_end import MeteredWorld, TimedEngine, TimedLine
from ompy.runtime.diagnosis.rank_report import (
    SHORT_SIGNAL,
    line_of_program,
    place_in_world,
    place_of_program,
)
from ompy.runtime.exploration.rank_line import DirectEngine, RankLine
from ompy.runtime.faults.disturbance import BEGINS, Disturbance
from ompy.runtime.probes.client import AgentPaths
from ompy.runtime.probes.parameters import probing_of
from ompy.runtime.ranks import ending
from ompy.runtime.ranks.environment import rank_environment
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.ranks.rank_start import give, procs_of
from ompy.runtime.ranks.tracing import capture_wire
from ompy.runtime.simulation import stand_ins
from ompy.runtime.simulation.conducted import ENDED, Conducted, RemoteEngine
from ompy.runtime.simulation.host_memory import HostMemory
from ompy.runtime.simulation.line import Line, LineClosed
from ompy.runtime.simulation.program import execute
from ompy.runtime.simulation.remote import RemoteNetwork
from ompy.runtime.simulation.remote_wireup import RemoteWireUp
from ompy.runtime.simulation.twins import die_with_parent
from ompy.trace.sink import Trace

if TYPE_CHECKING:
    from types import FrameType

    from ompy.frameworks.job import Job
    from ompy.runtime.simulation.debugger import Debugger

SHOWN: Final = 8  # entries of the flight recorder; arbitrary: enough to see what a rank was at


class Part(NamedTuple):
    """What a rank needs to know of its world.

    Attributes:
        job: the program, the parameters, the faults.
        rank: which one this is.
        seed: of the world.
        key: of the job.
        interfaces: of this rank.
        trace_directory: where its events go; empty for nowhere.
        record: keep which packets faults have struck.
        memory: descriptor of what the ranks of its host share; -1 where it is alone there.
        buffers: of a world that is explored, whether standard sends buffer; None of another.
        debugger: looks at this rank; None where nobody does.
        cluster: that is described, and what computing takes there; None in another world.
    """

    job: Job
    rank: int
    seed: int
    key: bytes
    interfaces: Sequence[Interface]
    trace_directory: str
    record: bool
    memory: int = -1
    buffers: bool | None = None
    debugger: Debugger | None = None
    cluster: Described | None = None


def run_rank(part: Part, line: Line) -> NoReturn:
    """Be a rank: wait for the first turn, run the program, tell how it went. Never returns."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the scheduler, and that ends us
    code = ENDED
    try:
        code = _Rank(part, _world_of(part, line)).run()
    except LineClosed:  # the world has ended
        pass
    finally:
        os._exit(code)


def _world_of(part: Part, line: Line) -> Conducted:
    described = part.cluster
    if described is not None and described.compute_scale:
        return MeteredWorld(line, described.compute_scale)
    return Conducted(line)


def _looked_at(program: Callable[[], tuple[int, str]], debugger: Debugger) -> tuple[int, str]:
    """Run a program under a debugger. Returns its exit code, and what it raised."""
    code, why = debugger.run_program(program)
    if why:
        debugger.failed()
    return code, why


def _others_in_mpi() -> bool:
    """Whether another thread of this process is in a call of MPI."""
    others = sys._current_frames()  # noqa: SLF001 - there is no other way to ask
    others.pop(threading.get_ident(), None)
    return any(
        frame.f_globals.get("__name__", "").startswith("ompy.mpi.")
        for innermost in others.values()
        for frame, _ in walk_stack(innermost)
    )


class _Rank:
    """The rank of this process."""

    def __init__(self, part: Part, world: Conducted) -> None:
        self._part = part
        self._world = world
        self._chance = f"{part.seed}/{part.rank}"
        self._process: RankProcess | None = None
        self._disturbance: Disturbance | None = None
        self._messages = [0, 0]  # how many, and bytes
        self._begun = False  # the program has had its first turn
        chance = (Random(f"{self._chance}/{name}") for name in ("engine", "breaks"))  # noqa: S311
        self._line: RankLine | None = None
        self._engine: RemoteEngine
        if part.cluster is not None:
            hosts = [placement.node for placement in part.job.placements]
            self._line = TimedLine(world, part.cluster.cluster, hosts, part.rank)
            self._engine = TimedEngine(world, self._line, next(chance))
        elif part.buffers is None:
            self._engine = RemoteEngine(world, *chance)
        else:
            self._line = RankLine(world, buffers=part.buffers)
            self._engine = DirectEngine(world, self._line, *chance)
        world.where = self._where
        world.standing = self._standing
        world.on_stop = self._stopped
        signal.signal(SHORT_SIGNAL, self._tell_where)

    def run(self) -> int:
        part = self._part
        placement = part.job.placements[part.rank]
        os.environ.update(
            rank_environment(part.job, placement, os.environ, part.job.worlds[0].size)
        )
        give(self._bring_up, RemoteWireUp(self._world, part.job).abort)
        self._world.answer()
        stand_ins.adopt(self._world, self._engine, self._chance)
        self._begun = True
        program = partial(execute, part.job.apps[placement.app], mpi4py=part.job.mpi4py)
        code, why = program() if part.debugger is None else _looked_at(program, part.debugger)
        if self._process is not None:
            self._process.context.trace.finish("exit")  # unless it has finalized
        self._world.end(code, {**self._report(), "why": why})
        return code

    def _bring_up(self) -> RankProcess:
        part, world = self._part, self._world
        registry = Registry.from_snapshot(CATALOG, dict(part.job.mca))
        own = part.job.world_of(part.rank)
        procs = procs_of(part.job, own.first + own.size)
        me = procs[part.rank]
        registry.speak_for(job=part.job.job_id, host=me.hostname, rank=part.rank)
        entropy = Random(f"{self._chance}/entropy")  # noqa: S311
        shared = HostMemory(world, part.memory) if part.memory >= 0 else None
        network = RemoteNetwork(world, part.rank, part.interfaces, entropy, shared)
        context = RankContext(
            part.rank,
            procs,
            engine=self._engine,
            network=network,
            wireup=RemoteWireUp(world, part.job),
            trace=self._trace(registry, me),
            job_id=bytes.fromhex(part.job.job_id),
            job_key=part.key,
            hosts=len(part.job.hosts),
        )
        capture_wire(context, registry)
        context.direct = self._line
        context.expects_others = bool(own.parents)
        departures = context.departures
        world.on_news = departures.ended
        world.on_death = departures.died
        world.on_left = lambda rank, silent: departures.left(rank, silent=silent)
        paths = AgentPaths(world, context, probing_of(registry))
        context.find_paths = lambda: paths
        world.on_path = paths.told
        if part.job.faults:
            self._disturbance = Disturbance(part.job.faults, context, None, seed=part.seed)
            self._disturbance.faults.record = part.record
            self._disturbance.tell_outages_to(world.tell_outages)
        self._process = RankProcess(context, registry)
        if self._disturbance is not None:
            self._disturbance.process = self._process
        return self._process

    def _trace(self, registry: Registry, me: Proc) -> Trace:
        trace = Trace(me.rank, self._engine.now, registry.values("trace").recent)
        if self._part.trace_directory:
            from ompy.trace.trace_files import RankHeader, TraceWriter

            limit = registry.values("trace").limit
            header = RankHeader(me.rank, me.node, me.hostname)
            try:
                trace.start(TraceWriter(self._part.trace_directory, header, limit))
            except OSError as problem:
                text = f"--trace {self._part.trace_directory}: {problem.strerror}; nothing of it"
                outputs.warn(f"{text} is traced", ("ompy sim", f"rank {me.rank}"))
        trace.listen(self._note)
        return trace

    def _note(
        self, what: str, context_id: int, target: int, tag: int, sequence: int, size: int
    ) -> None:
        """Count the messages that begin; collectives' are not the program's."""
        del context_id, target, sequence
        if what == BEGINS and tag >= 0:
            self._messages[0] += 1
            self._messages[1] += size

    def _where(self, frame: FrameType | None = None) -> dict[str, Any]:
        """Where this rank is, for an autopsy; `frame` is what it executes."""
        frame = frame or sys._getframe()  # noqa: SLF001 - the program's frames are below
        if not self._begun:
            return {"line": "", "waits": "its beginning"}
        if self._process is None:
            line, place = line_of_program(frame), place_of_program(frame)
            return {"line": line, "waits": "the initialisation of MPI", "at": place}
        return {**place_in_world(self._process, frame), "threads": _others_in_mpi()}

    def _standing(self) -> dict[str, Any]:
        """How it stands, if it waits."""
        from ompy.runtime.diagnosis.standing import standing_of

        reason = self._engine.reason
        if self._process is None or not isinstance(reason, Waitable):
            return {}
        return standing_of(self._process, {threading.get_ident(): (reason, 0)})

    def _tell_where(self, _number: int, frame: FrameType | None) -> None:
        """The scheduler has waited for too long for what this rank does next."""
        self._world.say_where(self._where(frame))

    def _stopped(self) -> dict[str, Any]:
        if self._part.debugger is not None:
            self._part.debugger.stop_in_call()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if self._process is not None:
            self._process.context.trace.finish("the world ended")
        return self._report()

    def _report(self) -> dict[str, Any]:
        """Plain values for the scheduler; none of one of many worlds, which has no packets."""
        if ending.twin:
            return {}
        counters: dict[str, int] = {}
        if self._process is not None:
            for module in self._process.context.btls:
                for name, count in module.counters().items():
                    counters[name] = counters.get(name, 0) + count
        conduit = self._process.conduit if self._process is not None else None
        faults = self._disturbance.faults if self._disturbance is not None else None
        return {
            "messages": self._messages[0],
            "bytes": self._messages[1],
            "counters": counters,
            "conduit": conduit.counters() if conduit is not None else {},
            "delivered": list(faults.delivered) if faults is not None else [],
            "rails": self._rails(),
            "injections": [tuple(injection) for injection in faults.injections]
            if faults is not None
            else [],
        }

    def _rails(self) -> list[dict[str, Any]]:
        """What became of rails; virtual time begins at 0."""
        from ompy.runtime.rails.rail_report import plain

        if self._process is None:
            return []
        return [plain(event, 0) for event in self._process.context.rail_events]
