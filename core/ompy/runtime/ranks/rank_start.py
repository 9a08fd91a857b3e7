"""The real world: this process becomes a rank, alone or as part of a launched job."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from ompy import outputs
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.engine.real import RealEngine
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.context import RankContext
from ompy.frameworks.fault_tolerance.departures import FINALIZED, Departures
from ompy.frameworks.proc import Proc
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.performance import PVARS
from ompy.mca.registry import Registry
from ompy.net.real import RealNetwork
from ompy.runtime.connections.control import PLACE
from ompy.runtime.diagnosis.call_account import account
from ompy.runtime.diagnosis.long_sleeps import tell_long_sleeps
from ompy.runtime.diagnosis.rank_report import report_when_asked
from ompy.runtime.launching.singleton import SingletonWireUp
from ompy.runtime.ranks import ending
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.ranks.tracing import capture_wire, open_trace

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.frameworks.paths.path_watch import Paths
    from ompy.frameworks.paths.rail_events import RailEvent
    from ompy.runtime.faults.disturbance import Disturbance
    from ompy.runtime.rails.rail_samples import RailSampler
    from ompy.runtime.ranks.client import AgentClient

T = TypeVar("T")
START_FAILED: Final = 1  # arbitrary: what an uncaught exception of Python ends with


class _Shared:
    """The rank that this process is.

    Attributes:
        process: once it has been brought up.
        client: its agent, if it has one.
        users: APIs that need it.
    """

    def __init__(self) -> None:
        self.process: RankProcess | None = None
        self.client: AgentClient | None = None
        self.users = 0


_shared: Final = _Shared()
# how this process becomes a rank of a simulated world, and ends that world with a code and a text
_given: tuple[Callable[[], RankProcess], Callable[[int, str], None]] | None = None


def give(make: Callable[[], RankProcess], abort: Callable[[int, str], None]) -> None:
    """Say how this process becomes a rank when it is no launched one: in a simulated world.

    Args:
        make: brings the rank up.
        abort: ends the world with an exit code and a text, when the rank cannot be brought up.
    """
    global _given  # noqa: PLW0603 - the process is given to one world, once
    _given = (make, abort)


def start() -> RankProcess:
    """Bring this process up as a rank: of the job that launched it, or of a world of one.

    Call once. The caller finalizes the returned process before the interpreter ends.

    Raises:
        As `bring_up`.
    """
    return bring_up(_itself)


def _itself(process: RankProcess) -> RankProcess:
    return process


def bring_up(make: Callable[[RankProcess], T]) -> T:
    """Bring this process up as a rank, and make what the program works with.

    Called once by each API of the program: they share the rank, and each calls `leave`.

    Args:
        make: what is made of the rank; its components may still turn out not to work.

    Returns:
        What `make` returned.

    Raises:
        MPIError: it cannot be brought up; the text says why and what to do (a process started
            by hand; one of a job ends the job and says why, as for the following).
        UsageError: a parameter is wrong, or a component that has to work does not.
        ComponentError: a component asked for by name does not work.
    """
    client = _shared.client
    try:
        if _shared.process is None:
            client = _shared.client = _find_client()
            _shared.process = _new(client)
        elif _shared.process.finalized:
            raise MPIError(ERR_OTHER, "this process has left its job already")
        made = make(_shared.process)
    except (ComponentError, UsageError, MPIError) as problem:
        if _given is not None:
            _, abort = _given
            abort(*_said_of(problem))
        if client is None:
            raise
        if _is_survived(problem):
            outputs.tell(f"ompy: {problem}\n", "warning", "warning")
            raise SystemExit(START_FAILED) from None
        client.abort(*_said_of(problem))
    _shared.users += 1
    return made


def _is_survived(problem: Exception) -> bool:
    """Whether it is only this process that cannot begin.

    It is so if who spawned it has died, or was spawned with it, and ranks may die. If they may
    not, the job ends with the one that has died, or with this one's exit code.
    """
    process = _shared.process
    if process is None or not isinstance(problem, MPIError) or problem.code != ERR_PROC_FAILED:
        return False
    context = process.context
    job = getattr(context.wireup, "job", None)
    return context.recovery is not None or bool(job and job.world_of(context.rank).parents)


def _said_of(problem: ComponentError | UsageError | MPIError) -> tuple[int, str]:
    """The exit code and the text with which a rank that cannot be brought up ends its job."""
    if isinstance(problem, UsageError):
        return problem.exit_code, "\n".join(problem.problems)
    if isinstance(problem, ComponentError):
        return problem.exit_code, str(problem)
    return START_FAILED, f"MPI cannot be started: {problem.detail or problem}"


def leave(process: RankProcess) -> None:
    """One of the APIs that brought this process up needs it no more: the last one ends it.

    Raises:
        MPIError: what was accepted cannot be delivered.
    """
    _shared.users -= 1
    if _shared.users:
        return
    calls = {}
    others = process.other_calls()
    if others is not None and process.context.recovery is None:  # who survives has made others
        ended, groups = others
        communicators = list(process.communicators.values())
        gave_up = process.context.gave_up
        calls = account(communicators, process.calls_ended + ended, groups, gave_up=gave_up)
    if process.context.me.local_rank == 0 and not ending.twin:  # whose other has said so, or will
        from ompy.runtime.ranks.foreign import warn_of_foreign_library

        warn_of_foreign_library(process.context.rank)
    process.finalize()
    if not ending.twin:  # which ends at once
        process.registry.close()
    if process.context.recovery is not None:
        process.context.wireup.set_expendable(False)  # what it ends with counts
    tell_finalized = getattr(process.context.wireup, "finalized", None)
    if tell_finalized is not None:
        tell_finalized(calls)


def _find_client() -> AgentClient | None:
    """Who has made this process one of a job, if somebody has."""
    from ompy.runtime.ranks.client import attach

    return None if _given is not None else attach() or _join()


def _new(client: AgentClient | None) -> RankProcess:
    if _given is not None:
        make, _ = _given
        return make()
    return _alone() if client is None else _launched(client)


def _join() -> AgentClient | None:
    """The job that another launcher has made of this process and others, if one has.

    Raises:
        MPIError: ERR_OTHER: it cannot be made one job; the text says what to do.
    """
    from ompy.runtime.launching.launchers import LauncherError, membership

    try:
        member = membership(os.environ)
    except LauncherError as problem:
        raise MPIError(ERR_OTHER, str(problem)) from None
    if member is None:
        return None
    from ompy.runtime.passive.rank_joining import join

    return join(member)


def _alone() -> RankProcess:
    from ompy.mca.parameters.settings import gather_settings

    registry = Registry(CATALOG, gather_settings([], os.environ))
    registry.check_settings()
    procs = [Proc(0, 0, 0, os.uname().nodename)]
    wireup = SingletonWireUp()
    engine = _engine(registry, 1, 0)
    network = RealNetwork(engine, 0, wireup)
    context = RankContext(
        0,
        procs,
        engine=engine,
        network=network,
        wireup=wireup,
        trace=open_trace(registry, procs[0]),
        job_id=os.urandom(8),
        job_key=os.urandom(32),
    )
    capture_wire(context, registry)
    wireup.on_founded = partial(_founded, context, network)
    registry.speak_for(host=procs[0].hostname, rank=0)
    process = RankProcess(context, registry, _warn)
    report_when_asked(process)
    return process


def _launched(client: AgentClient) -> RankProcess:
    job = client.job
    registry = Registry.from_snapshot(CATALOG, dict(job.mca))
    world = job.world_of(client.rank)
    procs = procs_of(job, world.first + world.size)
    me = procs[client.rank]
    registry.speak_for(job=job.job_id, host=me.hostname, rank=me.rank)
    place = _told_place() or (sum(proc.node == me.node for proc in procs), me.local_rank)
    engine = _engine(registry, *place)
    context = RankContext(
        client.rank,
        procs,
        engine=engine,
        network=RealNetwork(engine, me.local_rank, client),
        wireup=client,
        trace=open_trace(registry, me),
        job_id=bytes.fromhex(job.job_id),
        job_key=client.job_key,
        oversubscribed=job.oversubscribed,
        hosts=job.machines,
    )
    context.expects_others = bool(world.parents)

    _listen(client, context)
    if client.agent_port:
        from ompy.runtime.probes.client import KEY

        client.publish(KEY, str(client.agent_port).encode())
    context.find_paths = partial(_paths, client, context, registry)
    engine.wakeup.watch_descriptor(client.fileno(), client.on_readable)
    capture_wire(context, registry)  # below the faults, and so is the next
    sampler = _sample_rails(client, context, registry)
    disturbance = _disturb(client, context) if job.faults else None
    process = RankProcess(context, registry, _warn if me.rank == me.world else None)
    if disturbance is not None:
        disturbance.process = process
    report_when_asked(process)
    _tell_of_itself(process, engine, client)
    _tell_of_rails(client, context)
    if sampler is not None:
        sampler.begin()
    _tell_of_peers(client, process, hosts=job.machines)
    return process


def _tell_of_peers(client: AgentClient, process: RankProcess, *, hosts: int) -> None:
    """The launcher hears of paths that are lost, and of peers that are not reached any more."""
    context = process.context
    if hosts > 1:
        context.path_lost = partial(_tell_of_lost_path, client, process)
    if context.recovery is not None:
        context.recovery.on_unreachable = client.tell_unreachable


def _tell_of_itself(process: RankProcess, engine: RealEngine, client: AgentClient) -> None:
    """What the launcher wants to hear of this rank."""
    tell_long_sleeps(process, engine, client)
    if process.registry.value(PVARS):
        from ompy.runtime.ranks.performance import tell_at_end

        tell_at_end(process, client)


def _listen(client: AgentClient, context: RankContext) -> None:
    """Have what the agent tells of others taken in, whenever it is read."""
    client.on_departure = context.departures.ended
    client.on_death = context.departures.died
    client.on_left = partial(_left, context.departures)
    client.on_abort = partial(context.trace.finish, "abort")


def _founded(context: RankContext, network: RealNetwork, client: AgentClient) -> None:
    """A process that nobody launched is rank 0 of a job now."""
    context.job_id, context.job_key = bytes.fromhex(client.job.job_id), client.job_key
    network.forget_doorbells()
    assert isinstance(context.engine, RealEngine), "of the real world"
    context.engine.wakeup.watch_descriptor(client.fileno(), client.on_readable)
    _listen(client, context)
    _shared.client = client


def procs_of(job: Job, count: int) -> list[Proc]:
    """The first processes of a job, as its ranks know them."""
    return [
        Proc(p.rank, p.node, p.local_rank, job.hosts[p.node], world.first)
        for world in job.worlds
        for p in job.placements[world.first : min(world.first + world.size, count)]
    ]


def _left(departures: Departures, rank: int, done: bool, silent: bool) -> None:
    """A rank finalizes, or is done with that: its agent says so."""
    departures.left(rank, silent=silent)
    if done:
        departures.ended(rank, FINALIZED)


def _paths(client: AgentClient, context: RankContext, registry: Registry) -> Paths:
    """The agent, as who finds out about paths."""
    from ompy.runtime.probes.client import AgentPaths
    from ompy.runtime.probes.parameters import probing_of

    made = AgentPaths(client, context, probing_of(registry), client.on_readable)
    client.on_path = made.told
    return made


def _tell_of_lost_path(
    client: AgentClient, process: RankProcess, proc: Proc | None, reason: str
) -> None:
    """The first time: the launcher shows which rails there were."""
    from ompy.runtime.rails.comm_methods import lost_path

    tell = lost_path(process, client.tell_lost_path)
    process.context.path_lost = tell
    tell(proc, reason)


def _tell_of_rails(client: AgentClient, context: RankContext) -> None:
    """Where the PML fails over: the launcher hears what becomes of rails."""
    began = context.engine.now()

    def tell(event: RailEvent) -> None:
        from ompy.runtime.rails.rail_report import RailTeller  # late: in most jobs nothing breaks

        before = client.before_end
        reporter = RailTeller(context.rail_events, began, client.tell_rail)

        def end() -> None:
            reporter.tell_all()
            if before is not None:
                before()

        client.before_end = end
        context.tell_rail = reporter.tell
        reporter.tell(event)

    context.tell_rail = tell


def _sample_rails(
    client: AgentClient, context: RankContext, registry: Registry
) -> RailSampler | None:
    """Where somebody watches rails: the launcher hears what they carry."""
    values = registry.values("bml")
    if not values.sample_rails:
        return None
    from ompy.runtime.rails.rail_samples import RailSampler

    made = RailSampler(context, values.sample_interval_ms, client.tell_carried)

    def end() -> None:
        made.tell()
        if before is not None:
            before()

    before, client.before_end = client.before_end, end
    return made


def _disturb(client: AgentClient, context: RankContext) -> Disturbance:
    """Put the job's fault script to work in this rank."""
    from ompy.runtime.faults.disturbance import Disturbance

    made = Disturbance(client.job.faults, context, client.tell_faults)
    made.tell_outages_to(client.tell_outages)
    before = client.before_end

    def end() -> None:
        made.tell_now()
        if before is not None:
            before()

    client.before_end = end
    return made


def _warn(sentence: str) -> None:
    outputs.tell(f"ompy: {sentence}\n", "warning", "warning")


def _told_place() -> tuple[int, int] | None:
    """Of a rank that is bound: how many share its hardware threads, and which of these it is."""
    place, _, sharers = os.environ.get(PLACE, "").partition("/")
    return (int(sharers), int(place)) if sharers.isdecimal() and place.isdecimal() else None


def _engine(registry: Registry, ranks_here: int, place: int) -> RealEngine:
    values = registry.values("engine")
    return RealEngine(
        ranks_here, place, spin_us=values.spin_us, park_ms=values.park_ms, loop=values.loop
    )
