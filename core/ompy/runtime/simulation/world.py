"""A simulated world of processes: forks the ranks, conducts them, says how it ended."""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

from ompy import outputs
from ompy.engine.virtual import Conductor, Deadlock, RankFailed, VirtualEngine
from ompy.frameworks.job import Job
from ompy.net.fault_rules import FaultRule
from ompy.net.virtual import Fabric, Rail
from ompy.runtime.call_account import complaint
from ompy.runtime.control import KEY_SIZE
from ompy.runtime.probes.virtual import VirtualAgents
from ompy.runtime.rank_spans import ranks_in_words
from ompy.runtime.simulation.host_memory import Segments, make_file
from ompy.runtime.simulation.line import Line
from ompy.runtime.simulation.rank import Part, run_rank
from ompy.runtime.simulation.stub import RankEnded, RankStub, ServedNetwork, Stuck
from ompy.runtime.verdict import IMPROPER
from ompy.runtime.virtual import NEWS, Board, VirtualWireUp

DEADLOCK: Final = 4  # exit code; arbitrary: none of a program's usual ones, nor another of ours
BEYOND: Final = 5  # exit code: the world has taken too long; arbitrary, as above
INTERRUPTED: Final = 130  # exit code: 128 and SIGINT, as a shell has it


class Scenario(NamedTuple):
    """Everything a world is made of; the same scenario gives the same world.

    Attributes:
        job: program, ranks, where they are, parameters and faults.
        seed: decides all that the program does not.
        rails: the networks.
        trace_directory: where the events go; empty for nowhere.
        limit: ns of virtual time after which the world is ended.
        patience: seconds of real time a rank may compute without a call.
        output: descriptor that replaces the ranks' standard streams; -1 leaves them.
        record: keep which packets faults have struck.
    """

    job: Job
    seed: int
    rails: Sequence[Rail]
    trace_directory: str = ""
    limit: int = 3_600_000_000_000
    patience: float = 60.0
    output: int = -1
    record: bool = False


class Outcome(NamedTuple):
    """How a world ended.

    Attributes:
        kind: `ended`, `failed`, `aborted`, `deadlock`, `limit`, `stuck` or `interrupted`.
        code: exit code.
        text: what happened, for people; empty when it ended well.
        time: ns of virtual time.
        turns: how often a rank was given its turn.
        messages: the program has begun.
        bytes: in them.
        counters: what the transports counted, summed over ranks.
        conduit: what GASNet's conduit did; empty where it was not used.
        delivered: how often each fault has struck.
        injections: packets that were struck, as `Injection` tuples, if they were recorded.
        rails: what became of rails, as `rail_report.plain` has it.
    """

    kind: str
    code: int
    text: str
    time: int
    turns: int
    messages: int
    bytes: int
    counters: dict[str, int]
    conduit: dict[str, int]
    delivered: list[int]
    injections: list[tuple[Any, ...]]
    rails: list[dict[str, Any]]


class _Conductor(Conductor):
    """A conductor that ends a world which goes on for too long, or is interrupted.

    Each kind of decision at each place has a generator of its own, made of the seed and its name.
    So what a fault adds to one flow, or takes from it, changes no draw of another, and a world
    without that fault is otherwise the same until its effects are felt.

    Attributes:
        interrupted: SIGINT has come. The exception alone may come where it is lost, as in what is
            done when an object dies.
    """

    def __init__(self, seed: int, limit: int) -> None:
        super().__init__(seed)
        self._limit = limit
        self._streams: dict[tuple[object, ...], Random] = {}
        self._turns: dict[int, float] = {}
        self.interrupted = False

    def stream(self, *decision: object) -> Random:
        """One for each."""
        found = self._streams.get(decision)
        if found is None:
            name = "/".join(map(str, (self.seed, *decision)))
            found = self._streams[decision] = Random(name)  # noqa: S311 - chance is the point
        return found

    def choose(self, ready: Sequence[VirtualEngine]) -> int:
        """The one with the lowest number, which each draws once for each turn it is to have."""
        for engine in ready:
            if engine.rank not in self._turns:
                self._turns[engine.rank] = self.stream("turn", engine.rank).random()
        chosen = min(range(len(ready)), key=lambda index: self._turns[ready[index].rank])
        del self._turns[ready[chosen].rank]
        return chosen

    def interrupt(self, *_: object) -> None:
        """The handler of SIGINT."""
        self.interrupted = True
        raise KeyboardInterrupt

    def _step(self) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        super()._step()
        if self.time > self._limit:
            raise TimeoutError(f"no end after {self._limit / 1e9:g} s of virtual time")


class World:
    """One world. Call `run` once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._conductor = _Conductor(scenario.seed, scenario.limit)
        size = len(scenario.job.placements)
        nodes = [placement.node for placement in scenario.job.placements]
        fabric = Fabric(self._conductor, scenario.rails, nodes)
        self._segments = [Segments() for _ in scenario.job.hosts]
        self._board = Board(size)
        self._board.engines = [self._conductor.engine() for _ in range(size)]
        self._board.leaving = self._leaving
        self._networks = [
            ServedNetwork(fabric, rank, engine) for rank, engine in enumerate(self._board.engines)
        ]
        self._stubs: list[RankStub] = []
        self._agents = VirtualAgents(fabric, self._stubs)
        self._rules = [FaultRule.from_dict(dict(rule)) for rule in scenario.job.faults]
        self._lines: list[Line] = []
        self._processes: list[int] = []

    def run(self) -> Outcome:
        """Fork the ranks, run them to the end, leave none."""
        if self._scenario.trace_directory:
            self._begin_trace()
        interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if interruptible:
            signal.signal(signal.SIGINT, self._conductor.interrupt)
        try:
            self._fork()
            kind, code, text = self._conduct()
        finally:
            if interruptible:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            self._leave_none()
        return self._outcome(kind, code, text)

    def _fork(self) -> None:
        files = self._memory_files()
        key = Random(self._scenario.seed).randbytes(KEY_SIZE)  # noqa: S311 - the same for the same seed
        for rank, (engine, network) in enumerate(
            zip(self._board.engines, self._networks, strict=True)
        ):
            ours, theirs = socket.socketpair()
            part = Part(
                self._scenario.job,
                rank,
                self._scenario.seed,
                key,
                network.interfaces(),
                self._scenario.trace_directory,
                self._scenario.record,
                files.get(self._node(rank), -1),
            )
            process = os.fork()
            if not process:
                self._become(part, ours, theirs)
            theirs.close()
            self._processes.append(process)
            line = Line(ours)
            self._lines.append(line)
            wireup = VirtualWireUp(self._board, rank, engine)
            patience = self._scenario.patience
            self._stubs.append(
                RankStub(
                    line,
                    process,
                    engine,
                    network,
                    wireup,
                    patience,
                    self._agents,
                    self._rules,
                    self._segments[self._node(rank)],
                )
            )
        for file in files.values():
            os.close(file)

    def _node(self, rank: int) -> int:
        return self._scenario.job.placements[rank].node

    def _memory_files(self) -> dict[int, int]:
        """Descriptors of the memory of hosts that have several ranks."""
        ranks = Counter(placement.node for placement in self._scenario.job.placements)
        return {node: make_file() for node, count in ranks.items() if count > 1}

    def _become(self, part: Part, ours: socket.socket, theirs: socket.socket) -> None:
        """In the child: no end of any other rank's line stays open."""
        ours.close()
        for line in self._lines:
            line.close()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        if self._scenario.output >= 0:
            os.dup2(self._scenario.output, 1)
            os.dup2(self._scenario.output, 2)
        run_rank(part, Line(theirs))

    def _conduct(self) -> tuple[str, int, str]:
        """Run the stubs. Returns how it ended."""
        try:
            self._conductor.run_engines([partial(self._serve, stub) for stub in self._stubs])
        except RankFailed as failure:
            return self._failed(failure)
        except KeyboardInterrupt:
            return "interrupted", INTERRUPTED, f"interrupted\n{self._where()}"
        except Deadlock as problem:
            if not problem.waits:  # turns without end
                return "limit", BEYOND, str(problem) + "\n" + self._where()
            waits = "wait" if len(problem.waits) > 1 else "waits"
            who = ranks_in_words(problem.waits)
            text = f"deadlock: nothing can happen any more, and {who} {waits}"
            return "deadlock", DEADLOCK, f"{text}\n{self._where()}"
        except TimeoutError as problem:
            return "limit", BEYOND, f"{problem}\n{self._where()}"
        return self._compared()

    def _compared(self) -> tuple[str, int, str]:
        """How a world ended in which all ranks came to their end: were their calls the same."""
        accounts = {stub.rank: stub.calls for stub in self._stubs if stub.calls}
        found = complaint(accounts) if len(accounts) == len(self._stubs) else ""
        if not found:
            return "ended", 0, ""
        return "failed", IMPROPER, f"the ranks did not make the same collective calls: {found}"

    def _failed(self, failure: RankFailed) -> tuple[str, int, str]:
        """How a world ended in which a stub's work for its rank was cut short."""
        cause = failure.__cause__
        if isinstance(cause, RankEnded):
            kind = "aborted" if cause.aborted else "failed"
            return kind, cause.code or 1, f"rank {failure.rank}: {cause}"
        if isinstance(cause, Stuck):
            return "stuck", BEYOND, f"{cause}\n{self._where()}"
        if isinstance(cause, KeyboardInterrupt):  # it came while a stub waited for its rank
            return "interrupted", INTERRUPTED, f"interrupted\n{self._where()}"
        raise failure

    def _serve(self, stub: RankStub) -> None:
        stub.serve()
        self._conductor.after(NEWS, partial(self._tell_departure, stub.rank))

    def _tell_departure(self, rank: int) -> None:
        """The others hear what a host's agent would tell them."""
        for stub, engine in zip(self._stubs, self._board.engines, strict=True):
            if stub.rank != rank and not stub.done:
                stub.news.append(("ended", rank, "has ended"))
                engine.wake()

    def _leaving(self, rank: int, told: Sequence[int]) -> None:
        self._conductor.after(NEWS, partial(self._tell_leaving, rank, frozenset(told)))

    def _tell_leaving(self, rank: int, told: frozenset[int]) -> None:
        """The others hear that a rank has begun to finalize."""
        for stub, engine in zip(self._stubs, self._board.engines, strict=True):
            if stub.rank != rank and not stub.done:
                stub.news.append(("left", rank, stub.rank not in told))
                engine.wake()

    def _where(self) -> str:
        return "".join(stub.ask() for stub in self._stubs if not stub.done).rstrip("\n")

    def _leave_none(self) -> None:
        for stub in self._stubs:
            stub.stop()
        for line in self._lines:
            line.close()
        for stub, process in zip(self._stubs, self._processes, strict=False):
            if not stub.done:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)

    def _outcome(self, kind: str, code: int, text: str) -> Outcome:
        reports = [stub.report for stub in self._stubs]
        counters, conduit = Counter[str](), Counter[str]()
        for said in reports:
            counters.update(said.get("counters", {}))
            conduit.update(said.get("conduit", {}))
        delivered = [0] * len(self._scenario.job.faults)
        for said in reports:
            for index, count in enumerate(said.get("delivered", ())):
                delivered[index] += count
        return Outcome(
            kind,
            code,
            text,
            self._conductor.time,
            self._conductor.steps,
            sum(said.get("messages", 0) for said in reports),
            sum(said.get("bytes", 0) for said in reports),
            dict(sorted(counters.items())),
            dict(sorted(conduit.items())),
            delivered,
            [tuple(injection) for said in reports for injection in said.get("injections", ())],
            [event for said in reports for event in said.get("rails", ())],
        )

    def _begin_trace(self) -> None:
        """The facts of the job; nothing in them differs from run to run."""
        from ompy.trace.files import prepare_directory, write_job

        job = self._scenario.job
        facts = {
            "world": "virtual",
            "seed": self._scenario.seed,
            "hosts": list(job.hosts),
            "program": list(job.apps[0].argv),
            "ranks": [{"rank": p.rank, "node": p.node} for p in job.placements],
            "rails": [rail.name for rail in self._scenario.rails],
            "faults": [rule["text"] for rule in job.faults],
        }
        directory = self._scenario.trace_directory
        try:
            prepare_directory(directory)
            write_job(directory, facts)
        except OSError as problem:  # a trace only observes
            why = f"{problem.strerror}; nothing is traced"
            outputs.warn(f"--trace {directory}: {why}", ("ompy sim",))
            self._scenario = self._scenario._replace(trace_directory="")
