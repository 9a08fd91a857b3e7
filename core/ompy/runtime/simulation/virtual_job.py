"""A job in the virtual world: all ranks in this process, on one seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.engine.virtual_engine import Scheduler, VirtualEngine
from ompy.frameworks.context import RankContext
from ompy.frameworks.fault_tolerance.departures import Departures
from ompy.frameworks.proc import Modex, Proc
from ompy.frameworks.wireup import WireUp
from ompy.net.virtual.virtual_network import Fabric, Rail, VirtualNetwork
from ompy.runtime.probes.parameters import probing_of
from ompy.runtime.probes.virtual_agents import VirtualAgents, VirtualPaths
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.ranks.tracing import capture_wire
from ompy.trace.sink import Event, Trace

if TYPE_CHECKING:
    from ompy.mca.registry import Registry

# ns until the others hear that a rank has ended; arbitrary: an agent takes its time too
NEWS: Final = 1_000_000

Program = Callable[[Any], Any]  # gets what `bring_up` made, a RankProcess by default


class Aborted(RuntimeError):
    """A rank ended the job."""


class Board:
    """What the ranks of one world have published, and who waits for it."""

    def __init__(self, size: int) -> None:
        self.entries: dict[int, dict[str, bytes]] = {}
        self.engines: list[VirtualEngine] = []
        self.fenced = 0
        self.size = size
        self.dead: set[int] = set()
        self.leaving: Callable[[int, Sequence[int]], object] = lambda _rank, _told: None

    def changed(self) -> None:
        """Wake all who may be waiting for it."""
        for engine in self.engines:
            engine.wake()


class VirtualWireUp(WireUp):
    """put, fence and get through the common board."""

    def __init__(self, board: Board, rank: int, engine: VirtualEngine) -> None:
        self._board = board
        self._rank = rank
        self._engine = engine
        self._mine: dict[str, bytes] = {}

    def publish(self, key: str, value: bytes) -> None:
        """Keep until `commit`."""
        self._mine[key] = value

    def commit(self) -> None:
        """Put on the board."""
        self._board.entries[self._rank] = dict(self._mine)
        self._board.changed()

    def lookup(self, rank: int) -> Modex:
        """Wait for a rank's entry."""
        board = self._board
        self._wait(lambda: rank in board.entries or rank in board.dead)
        if rank not in board.entries:
            raise MPIError(ERR_PROC_FAILED, f"rank {rank} was killed before it initialized MPI")
        return board.entries[rank]

    def fence(self) -> None:
        """Wait for everybody."""
        self._board.fenced += 1
        goal = -(-self._board.fenced // self._board.size) * self._board.size
        self._board.changed()
        self._wait(lambda: self._board.fenced >= goal)

    def leaving(self, told: Sequence[int]) -> None:
        """The others hear of it a little later."""
        self._board.leaving(self._rank, told)

    def abort(self, code: int, reason: str) -> None:
        """End the world."""
        raise Aborted(f"rank {self._rank} aborted with code {code}: {reason}")

    def _wait(self, ready: Callable[[], bool]) -> None:
        # no polling here: a BTL may be asking from within its own poll
        while not ready():
            self._engine.pause("what another rank publishes")


class VirtualJob:
    """Runs one function per rank on the simulated network.

    Attributes:
        scheduler: clock and seed.
        traces: the events of each rank, after `run`.
        networks: each rank's network, to install middleware in before `run`.
        known: the processes as each rank knows them.
        failed: ranks to be taken for failed, whatever their programs return: nobody is told that
            they have left. A program adds its own.
        killed: ranks that have died.
        news_after: asked how many ns a piece of news of a departure takes; `NEWS` by default.
    """

    def __init__(
        self,
        ranks: int,
        registry: Registry,
        *,
        seed: int = 0,
        rails: Sequence[Rail] = (Rail("rail0"),),
        hosts: Sequence[int] | None = None,
        bring_up: Callable[[RankContext, Registry], Any] = RankProcess,
    ) -> None:
        """Describe a world.

        Args:
            ranks: how many.
            registry: components and parameters, the same for all ranks.
            seed: decides everything that is not decided by the programs.
            rails: the networks.
            hosts: host number of each rank; all on one by default.
            bring_up: what each rank is made of; its result goes to the program and is
                finalized after it. By default all frameworks.
        """
        self._bring_up = bring_up
        self._registry = registry
        self.scheduler = Scheduler(seed)
        where = list(hosts) if hosts is not None else [0] * ranks
        self._procs = _placements(where)
        fabric = Fabric(self.scheduler, rails, where)
        self._board = Board(ranks)
        self._board.engines = [self.scheduler.engine() for _ in range(ranks)]
        self._board.leaving = self._leaving
        self._departures: dict[int, Departures] = {}
        self._early: dict[int, list[Callable[[Departures], object]]] = {}
        self.networks = [
            VirtualNetwork(fabric, rank, engine) for rank, engine in enumerate(self._board.engines)
        ]
        self.traces = [Trace(rank, engine.now) for rank, engine in enumerate(self._board.engines)]
        self.news_after: Callable[[], int] = lambda: NEWS
        self.known: list[list[Proc]] = [[] for _ in range(ranks)]
        self.failed: set[int] = set()
        self.killed: list[int] = []
        self._agents = VirtualAgents(fabric, self.networks)
        self._probing = probing_of(registry)
        self._secret = Random(seed)  # noqa: S311 - a key that is the same for the same seed

    def run(self, programs: Sequence[Program] | Program, *, trace: bool = False) -> list[Any]:
        """Run to the end; one program for all ranks, or one for each.

        Returns:
            What the programs returned, by rank.

        Raises:
            RankFailed: a program raised.
            Deadlock: all wait for each other.
        """
        size = len(self._procs)
        each = list(programs) if isinstance(programs, Sequence) else [programs] * size
        key = self._secret.randbytes(32)
        job_id = self._secret.randbytes(8)

        def body(rank: int) -> Any:
            if trace:
                self.traces[rank].start()
            process = self._process(rank, job_id, key)
            result = each[rank](process)
            process.finalize()
            self.finalized(rank)
            return result

        return self.scheduler.run_engines([partial(body, rank) for rank in range(size)])

    def finalized(self, rank: int) -> None:
        """A rank is done with finalizing, whatever its program does then: the others hear of it."""
        ended = partial(self._tell_departure, rank, failed=rank in self.failed)
        self.scheduler.after(self.news_after(), ended)

    def _tell_departure(self, rank: int, *, failed: bool) -> None:
        """The other ranks hear what a host's agent would tell them."""

        def tell(known: Departures) -> None:
            (known.failed if failed else known.ended)(rank, "has ended")

        for engine in self._board.engines:
            if engine.rank != rank:
                self._tell(engine, tell)

    def kill(self, rank: int) -> None:
        """A rank dies where it stands, as by SIGKILL, and the job goes on without it.

        What it has sent is on its way; its connections end; the others hear of it later. The rank
        itself may call it, which does not return then.
        """
        engine = self._board.engines[rank]
        if engine._done or rank in self.killed:  # noqa: SLF001 - of our own world
            return
        self.killed.append(rank)
        self._end_of(rank)
        self.scheduler.end_engine(engine)

    def kill_at(self, deaths: Mapping[int, int]) -> None:
        """Have ranks die in the place of their so many-th turn from now on.

        Args:
            deaths: turns by rank, from 0 on.
        """
        left = dict(deaths)

        def dies(engine: VirtualEngine) -> bool:
            turns = left.get(engine.rank)
            if turns is None:
                return False
            left[engine.rank] = turns - 1
            if turns:
                return False
            del left[engine.rank]
            self.killed.append(engine.rank)
            self._end_of(engine.rank)
            return True

        self.scheduler.dies = dies

    def _end_of(self, rank: int) -> None:
        self.networks[rank].end_connections()
        self.scheduler.after(self.news_after(), partial(self._tell_death, rank))

    def _tell_death(self, rank: int) -> None:
        self._board.dead.add(rank)
        self._board.changed()
        for engine in self._board.engines:
            if engine.rank not in self.killed:
                self._tell(engine, lambda known: known.died(rank, "was killed"))

    def _leaving(self, rank: int, told: Sequence[int]) -> None:
        known = frozenset(told)
        for engine in self._board.engines:
            if engine.rank != rank:
                news = partial(_has_left, rank, engine.rank not in known)
                self.scheduler.after(self.news_after(), partial(self._tell, engine, news))

    def _tell(self, engine: VirtualEngine, news: Callable[[Departures], object]) -> None:
        found = self._departures.get(engine.rank)
        if found is None:  # it has not begun yet
            self._early.setdefault(engine.rank, []).append(news)
            return
        news(found)
        engine.wake()

    def _process(self, rank: int, job_id: bytes, key: bytes) -> Any:
        engine = self._board.engines[rank]
        procs = [Proc(p.rank, p.node, p.local_rank, p.hostname) for p in self._procs]
        context = RankContext(
            rank,
            procs,
            engine=engine,
            network=self.networks[rank],
            wireup=VirtualWireUp(self._board, rank, engine),
            trace=self.traces[rank],
            job_id=job_id,
            job_key=key,
        )
        if self._registry is not None:  # a world without frameworks has the default
            context.seal = self._registry.values("btl").seal
            capture_wire(context, self._registry)
        self.known[rank] = procs
        self._departures[rank] = context.departures
        for news in self._early.pop(rank, ()):
            news(context.departures)
        context.find_paths = lambda: VirtualPaths(self._agents, rank, self._probing, engine.wake)
        return self._bring_up(context, self._registry)

    def events(self) -> list[Event]:
        """All ranks' events in the order of time, ties by rank."""
        return sorted((event for trace in self.traces for event in trace), key=lambda e: e[:2])

    def write_trace(self, directory: str) -> None:
        """Write the events for `ompy trace`; the same bytes for the same seed and programs.

        Raises:
            OSError: it cannot be written there.
        """
        from ompy.trace.trace_files import RankHeader, TraceWriter, prepare_directory, write_job

        prepare_directory(directory)
        hosts = dict.fromkeys(proc.hostname for proc in self._procs)
        ranks = [{"rank": proc.rank, "node": proc.node} for proc in self._procs]
        facts = {"seed": self.scheduler.seed, "hosts": list(hosts), "ranks": ranks}
        write_job(directory, {"world": "virtual", **facts})
        for proc, trace in zip(self._procs, self.traces, strict=True):
            # all ranks of a world are on its one clock
            events = list(trace)
            writer = TraceWriter(directory, RankHeader(proc.rank, 0, proc.hostname), len(events))
            writer.write(events)
            writer.close("finalize")


def _has_left(rank: int, silent: bool, known: Departures) -> None:
    known.left(rank, silent=silent)


def _placements(hosts: Sequence[int]) -> list[Proc]:
    counts: dict[int, int] = {}
    procs = []
    for rank, host in enumerate(hosts):
        local = counts.get(host, 0)
        counts[host] = local + 1
        procs.append(Proc(rank, host, local, f"host{host}"))
    return procs
