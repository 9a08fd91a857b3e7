"""A simulated world of processes: forks the ranks, schedules them, says how it ended."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

from ompy.data.errors import ERR_SPAWN
from ompy.engine.virtual_engine import Deadlock, RankFailed, Scheduler
from ompy.frameworks.collectives.patience import TAG_INQUIRY
from ompy.frameworks.direct import DEATHS
from ompy.frameworks.job import Job, JobWorld, app_of
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.virtual.virtual_network import Fabric, Rail
from ompy.runtime.cluster.model import Described
from ompy.runtime.cluster.timed_exchange import TimedExchange
from ompy.runtime.cluster.timed_stub import TimedStub
from ompy.runtime.connections.control import KEY_SIZE
from ompy.runtime.diagnosis.autopsy import DEADLOCK
from ompy.runtime.diagnosis.call_account import complaint
from ompy.runtime.diagnosis.rank_spans import ranks_in_words
from ompy.runtime.diagnosis.survey import Survey, survey_lines
from ompy.runtime.diagnosis.verdict import BY_SIGNAL, IMPROPER
from ompy.runtime.exploration.call_journal import CallJournal, ComparedCalls
from ompy.runtime.exploration.events import Diverged
from ompy.runtime.exploration.exchange import Exchange
from ompy.runtime.exploration.exploring import Exploring
from ompy.runtime.exploration.fence import Fence
from ompy.runtime.launching.kills import Kill
from ompy.runtime.machines.launcher.asking import Answer, Asked, Growth, Reply
from ompy.runtime.probes.virtual_agents import VirtualAgents
from ompy.runtime.simulation.debugger import Debugger
from ompy.runtime.simulation.host_memory import Segments, make_file
from ompy.runtime.simulation.line import Line
from ompy.runtime.simulation.program import problem_of
from ompy.runtime.simulation.rank import Part, run_rank
from ompy.runtime.simulation.seeded_scheduler import SeededScheduler
from ompy.runtime.simulation.stub import (
    THREADS,
    RankEnded,
    RankStub,
    ServedNetwork,
    Stuck,
    Unfit,
)
from ompy.runtime.simulation.virtual_job import NEWS, Board, VirtualWireUp
from ompy.runtime.simulation.world_trace import begin_trace

BEYOND: Final = 5  # exit code: the world has taken too long; arbitrary, as above
EVENTS_SHOWN: Final = 4  # ranks whose last events are told; arbitrary: a terminal has room
LEFT: Final = "left"  # kind of a world whose user has seen enough
GUESTS: Final = "it comes to a port that another has come to: whose turn it is is not explored"
UNFIT: Final = "unfit"  # kind of one that no virtual world can be of
UNHURRIED: Final = 1e6  # s that a rank in a debugger may take; arbitrary: eleven days
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
        kills: who is killed on purpose, and when.
        survives: the world goes on when a rank dies (mpi_ft_enable).
        exploring: its choices are made, not drawn; None in a world of packets.
        debugger: looks at one of the ranks, which may take its time; None where nobody does.
        cluster: it is a described cluster, whose messages take the time that is said of it.
    """

    job: Job
    seed: int
    rails: Sequence[Rail]
    trace_directory: str = ""
    limit: int = 3_600_000_000_000
    patience: float = 60.0
    output: int = -1
    record: bool = False
    kills: Sequence[Kill] = ()
    survives: bool = False
    exploring: Exploring | None = None
    debugger: Debugger | None = None
    cluster: Described | None = None


class Outcome(NamedTuple):
    """How a world ended.

    Attributes:
        kind: `ended`, `failed`, `aborted`, `deadlock`, `limit`, `stuck`, `interrupted`, `left` or
            `unfit`.
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
        dead: ranks that died while the world went on.
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
    dead: tuple[int, ...] = ()


class World:
    """One world. Call `run` once."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._scheduler = SeededScheduler(scenario.seed, scenario.limit)
        size = len(scenario.job.placements)
        nodes = [placement.node for placement in scenario.job.placements]
        fabric = Fabric(self._scheduler, scenario.rails, nodes)
        self._fabric = fabric
        self._asked = Asked(scenario.job)
        self._called: set[str] = set()  # ports that somebody has come to
        self._files: dict[int, int] = {}  # of the hosts' memory
        self._ended: list[tuple[Any, ...]] = []  # news that ranks get which come later
        self._segments = [Segments() for _ in scenario.job.hosts]
        self._board = Board(size)
        self._board.engines = [self._scheduler.engine() for _ in range(size)]
        self._board.leaving = self._leaving
        self._networks = [
            ServedNetwork(fabric, rank, engine) for rank, engine in enumerate(self._board.engines)
        ]
        self._stubs: list[RankStub] = []
        self.exchange = self._make_exchange(size)
        self.timed = self._make_timed(nodes)
        self._adopted = False
        self._agents = VirtualAgents(fabric, self._stubs)
        self._rules = [FaultRule.from_dict(dict(rule)) for rule in scenario.job.faults]
        self._lines: list[Line] = []
        self._processes: list[int] = []
        self._dead: list[int] = []
        self._discarded: set[int] = set()  # ranks of worlds that have not come about

    def _make_exchange(self, size: int) -> Exchange | None:
        exploring = self._scenario.exploring
        if exploring is None:
            return None
        made = Exchange(
            size,
            exploring.script,
            buffers=exploring.buffers,
            polls=exploring.polls,
            unheeded=frozenset({TAG_INQUIRY}),
            parts=exploring.parts,
        )
        calls, lines = exploring.calls, exploring.lines
        made.journal = CallJournal(size) if calls is None else ComparedCalls(calls, lines=lines)
        self._scheduler.fence = Fence(made, self._board.engines, self._stubs)
        return made

    def _make_timed(self, nodes: Sequence[int]) -> TimedExchange | None:
        described = self._scenario.cluster
        if described is None:
            return None
        self._scheduler.in_turn = True
        return TimedExchange(described.cluster, nodes, self._scheduler, self._wake)

    def _wake(self, rank: int) -> None:
        self._board.engines[rank].wake()

    @property
    def at_first_choice(self) -> Callable[[], object] | None:
        """Called before the first choice is made."""
        fence = self._scheduler.fence
        return fence.at_first_choice if fence is not None else None

    @at_first_choice.setter
    def at_first_choice(self, call: Callable[[], object]) -> None:
        assert self._scheduler.fence is not None, "the world is explored"
        self._scheduler.fence.at_first_choice = call

    @property
    def described(self) -> Described | None:
        """The cluster that it is."""
        return self._scenario.cluster

    @property
    def scheduler(self) -> Scheduler:
        """Its clock."""
        return self._scheduler

    @property
    def stubs(self) -> Sequence[RankStub]:
        """Of its ranks."""
        return self._stubs

    # a world that is explored, and goes on from its first choice more than once

    def fork_ranks(self) -> list[tuple[socket.socket, int]] | None:
        """Have each rank's process fork. Returns the lines to the new ones, and their numbers.

        None if one of them has more than one thread; none is left of those that were forked.
        """
        for stub in self._stubs:
            if not stub.done:
                stub.ask_fork()
        made = [stub.forked() if not stub.done else (socket.socket(), -1) for stub in self._stubs]
        if all(process for _, process in made):
            return made
        for line, _ in made:  # who waits for an answer there ends by that
            line.close()
        return None

    def adopt(self, lines: Sequence[tuple[socket.socket, int]], script: Any) -> None:
        """Go on with the ranks that were forked; this process has been, too."""
        assert self.exchange is not None, "the world is explored"
        self.exchange.script = script
        self._adopted = True
        for stub, (line, process) in zip(self._stubs, lines, strict=True):
            stub.adopt(line, process)
        self._processes = [process for _, process in lines]

    def kill_ranks(self) -> None:
        """End their processes where they are."""
        for process in self._processes:
            if process > 0:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def run(self) -> Outcome:
        """Fork the ranks, run them to the end, leave none."""
        if self._scenario.trace_directory:
            self._scenario = begin_trace(self._scenario)
        debugger = self._scenario.debugger
        interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        self._scheduler.debugged = debugger is not None
        if interruptible:
            signal.signal(signal.SIGINT, self._scheduler.interrupt)
        try:
            self._fork()
            kind, code, text = self._run_world()
            if debugger is not None:
                debugger.world_ends(text)
        finally:
            if interruptible:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            self._leave_none()
        return self._outcome(kind, code, text)

    def _fork(self) -> None:
        self._files = {node: make_file() for node in range(len(self._scenario.job.hosts))}
        for rank in range(len(self._board.engines)):
            self._fork_rank(rank)

    def _fork_rank(self, rank: int) -> RankStub:
        """Start the process of a rank, whose engine and network are there."""
        scenario, job = self._scenario, self._asked.job
        engine, network = self._board.engines[rank], self._networks[rank]
        node = job.placements[rank].node
        key = Random(scenario.seed).randbytes(KEY_SIZE)  # noqa: S311 - the same for the same seed
        ours, theirs = socket.socketpair()
        part = Part(
            job,
            rank,
            scenario.seed,
            key,
            network.interfaces(),
            scenario.trace_directory,
            scenario.record,
            self._files[node] if scenario.exploring is None else -1,
            scenario.exploring.buffers if scenario.exploring is not None else None,
            scenario.debugger if self._is_debugged(rank) else None,
            scenario.cluster,
        )
        process = os.fork()
        if not process:
            self._become(part, ours, theirs)
        theirs.close()
        self._processes.append(process)
        line = Line(ours)
        self._lines.append(line)
        wireup = VirtualWireUp(self._board, rank, engine)
        make = RankStub if self.timed is None else partial(TimedStub, self.timed)
        made = make(
            line,
            process,
            engine,
            network,
            wireup,
            UNHURRIED if self._is_debugged(rank) else scenario.patience,
            self._agents,
            self._rules,
            self._segments[node],
            self,
            self.exchange,
        )
        self._stubs.append(made)
        return made

    def _is_debugged(self, rank: int) -> bool:
        debugger = self._scenario.debugger
        return debugger is not None and debugger.rank == rank

    # what ranks ask

    @property
    def job(self) -> Job:
        """What runs, with the worlds that came later."""
        return self._asked.job

    def asked(self, rank: int, header: Mapping[str, Any], body: bytes) -> None:
        """A rank asks what it would ask a launcher; the answers take a while.

        Raises:
            Unfit: several have come to a port of a world that is explored.
        """
        if header["what"] == "connect" and self.exchange is not None:
            if header["port"] in self._called:
                raise Unfit(GUESTS)
            self._called.add(header["port"])
        if header["what"] == "spawn":
            apps = map(app_of, json.loads(body)["apps"])
            wrong = next(filter(None, map(problem_of, apps)), "")
            if wrong:
                answer = Answer(rank, header["ask"], ERR_SPAWN, wrong.encode())
                self._answer_later(answer)
                return
        self._reply(self._asked.heard(rank, header, body))

    def _reply(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Answer):
                self._answer_later(reply)
            elif isinstance(reply, Growth):
                # where no rank runs: a fork is of this process, not of what a stub is doing
                self._scheduler.after(NEWS, partial(self._grow, reply.world))
            else:
                world = reply.world
                self._discarded.update(range(world.first, world.first + world.size))
                self._scheduler.after(NEWS, partial(self._discard, world))

    def _answer_later(self, answer: Answer) -> None:
        """Answer a rank. In a world that is explored no choice is made before."""
        if self._scheduler.fence is not None:
            self._scheduler.fence.coming += 1
        self._scheduler.after(NEWS, partial(self._answer, answer))

    def _answer(self, answer: Answer) -> None:
        if self._scheduler.fence is not None:
            self._scheduler.fence.coming -= 1
        stub = self._stubs[answer.rank]
        stub.news.append(("answer", answer.ask, answer.code, answer.body))
        self._board.engines[answer.rank].wake()

    def _grow(self, world: JobWorld) -> None:
        """Start the ranks of a world."""
        for place in self.job.placements[world.first : world.first + world.size]:
            self._fabric.add_rank(place.node)
            engine = self._scheduler.engine()
            if self.exchange is not None:
                self.exchange.add_rank()
            self._board.engines.append(engine)
            self._networks.append(ServedNetwork(self._fabric, place.rank, engine))
            stub = self._fork_rank(place.rank)
            stub.news += self._ended
            self._scheduler.begin_engine(engine, partial(self._serve, stub))
            self._reply(self._asked.attached(place.rank))

    def _discard(self, world: JobWorld) -> None:
        """End the ranks of a world that is not to be; nobody waits for them."""
        for rank in range(world.first, world.first + world.size):
            stub = self._stubs[rank]
            if not stub.done:
                stub.kill_process()
                self._scheduler.end_engine(self._board.engines[rank])
            self._board.dead.add(rank)
            self._tell(("ended", rank, "is ended with its world, which has not come about"))
        self._board.changed()

    def _ended_early(self, rank: int, how: str) -> bool:
        """A rank has ended. True: its world was being made, and so is not to be."""
        replies = self._asked.ended(rank, how)
        self._reply(replies or ())
        return replies is not None or rank in self._discarded

    def _become(self, part: Part, ours: socket.socket, theirs: socket.socket) -> None:
        """In the child: no end of any other rank's line stays open."""
        ours.close()
        for line in self._lines:
            line.close()
        if part.debugger is None:
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.close(null)
        if self._scenario.output >= 0:
            os.dup2(self._scenario.output, 1)
            os.dup2(self._scenario.output, 2)
        run_rank(part, Line(theirs))

    def _run_world(self) -> tuple[str, int, str]:
        """Run the stubs. Returns how it ended."""
        for kill in self._scenario.kills:
            self._scheduler.after(int(kill.after_s * 1e9), partial(self._kill, kill))
        try:
            self._scheduler.run_engines([partial(self._serve, stub) for stub in self._stubs])
        except RankFailed as failure:
            return self._failed(failure)
        except KeyboardInterrupt:
            return "interrupted", INTERRUPTED, f"interrupted\n{self._autopsy()}"
        except Deadlock as problem:
            return self._stands(problem)
        except TimeoutError as problem:
            return "limit", BEYOND, f"{problem}\n{self._autopsy()}"
        return self._compared()

    def _stands(self, problem: Deadlock) -> tuple[str, int, str]:
        """How a world ended in which nothing happens any more, or only the same again."""
        story = self._autopsy(proven=bool(problem.waits))
        if not problem.waits:  # turns without end
            return "limit", BEYOND, f"{problem}\n{story}"
        crowded = next((stub.rank for stub in self._stubs if stub.threads), None)
        if crowded is not None:  # the thread that does not wait might have gone on
            return UNFIT, 1, f"rank {crowded}: {THREADS}"
        waits = "wait" if len(problem.waits) > 1 else "waits"
        who = ranks_in_words(problem.waits)
        text = f"deadlock: nothing can happen any more, and {who} {waits}"
        return "deadlock", DEADLOCK, f"{text}\n{story}"

    def _compared(self) -> tuple[str, int, str]:
        """How a world ended in which all ranks came to their end: were their calls the same."""
        accounts = {stub.rank: stub.calls for stub in self._stubs if stub.calls}
        found = complaint(accounts) if len(accounts) == len(self._stubs) else ""
        if not found:
            wrong = self.exchange.complaint() if self.exchange is not None else ""
            return ("failed", IMPROPER, wrong) if wrong else ("ended", 0, "")
        return "failed", IMPROPER, f"the ranks did not make the same collective calls: {found}"

    def _failed(self, failure: RankFailed) -> tuple[str, int, str]:
        """How a world ended in which a stub's work for its rank was cut short."""
        cause = failure.__cause__
        if isinstance(cause, RankEnded) and cause.killed and self._is_debugged(failure.rank):
            return LEFT, 0, ""  # its user has quit
        if isinstance(cause, RankEnded):
            kind = "aborted" if cause.aborted else "failed"
            return kind, cause.code or 1, f"rank {failure.rank}: {cause}"
        if isinstance(cause, Unfit):
            return UNFIT, 1, f"rank {failure.rank}: {cause}"
        if isinstance(cause, Diverged):
            raise cause
        if isinstance(cause, Stuck):
            return "stuck", BEYOND, f"{cause}\n{self._autopsy()}"
        if isinstance(cause, KeyboardInterrupt):  # it came while a stub waited for its rank
            return "interrupted", INTERRUPTED, f"interrupted\n{self._autopsy()}"
        raise failure

    def _kill(self, kill: Kill) -> None:
        """Ranks are killed on purpose; all of them wait now."""
        for stub in list(self._stubs):
            on_it = self.job.placements[stub.rank].node == kill.node
            if not stub.done and (stub.rank == kill.rank or (kill.rank < 0 and on_it)):
                stub.kill_process()
                self._scheduler.end_engine(self._board.engines[stub.rank])
                self._died(stub.rank)
        if kill.rank < 0:
            self._reply(self._asked.lose_hosts([kill.node]))

    def _died(self, rank: int) -> None:
        """A rank has died: the world ends with it, or the others hear of it."""
        if self._ended_early(rank, "was killed"):
            return
        if not self._scenario.survives:
            ended = RankEnded(BY_SIGNAL + signal.SIGKILL, "it was killed")
            failure = RankFailed(rank, ended)
            failure.__cause__ = ended
            raise failure
        self._dead.append(rank)
        if self.exchange is not None:
            self.exchange.note_untried(DEATHS)
        self._scheduler.after(NEWS, partial(self._tell_death, rank))

    def _tell_death(self, rank: int) -> None:
        self._board.dead.add(rank)
        self._reply(self._asked.gone(rank))
        self._tell(("died", rank, "was killed"))
        self._board.changed()

    def _tell(self, news: tuple[str, int, str]) -> None:
        """All others hear of the end of a rank, also those that come later."""
        self._ended.append(news)
        for stub, engine in zip(self._stubs, self._board.engines, strict=True):
            if stub.rank != news[1] and not stub.done:
                stub.news.append(news)
                engine.wake()

    def _serve(self, stub: RankStub) -> None:
        try:
            stub.serve()
        except RankEnded as ended:
            if self._ended_early(stub.rank, str(ended)):
                stub.kill_process()
                return
            if not ended.killed or not self._scenario.survives:
                raise
            stub.kill_process()
            self._died(stub.rank)
            return
        if not self._ended_early(stub.rank, "has ended before it initialized MPI"):
            self._scheduler.after(NEWS, partial(self._tell_departure, stub.rank))

    def _tell_departure(self, rank: int) -> None:
        """The others hear what a host's agent would tell them."""
        self._reply(self._asked.gone(rank))
        self._tell(("ended", rank, "has ended"))

    def _leaving(self, rank: int, told: Sequence[int]) -> None:
        self._scheduler.after(NEWS, partial(self._tell_leaving, rank, frozenset(told)))

    def _tell_leaving(self, rank: int, told: frozenset[int]) -> None:
        """The others hear that a rank has begun to finalize."""
        for stub, engine in zip(self._stubs, self._board.engines, strict=True):
            if stub.rank != rank and not stub.done:
                stub.news.append(("left", rank, stub.rank not in told))
                engine.wake()

    def _autopsy(self, *, proven: bool = False) -> str:
        """Who waits for whom, of the ranks that are not at their end."""
        here = {stub.rank: stub.ask() for stub in self._stubs if not stub.done}
        where = {rank: said for rank, said in here.items() if said}
        said = {stub.rank: stub.standing for stub in self._stubs if stub.standing}
        for exchange in (self.exchange, self.timed):
            if exchange is not None:
                exchange.fill_in(said)
        survey = Survey(said, where, frozenset(here.keys() - where.keys()))
        return "\n".join(survey_lines(survey, proven=proven, events=EVENTS_SHOWN))

    def _leave_none(self) -> None:
        if self._adopted:  # they are no children of this process
            self.kill_ranks()
            return
        for stub in self._stubs:
            stub.stop()
        for line in self._lines:
            line.close()
        for stub, process in zip(self._stubs, self._processes, strict=False):
            if not stub.done:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        for file in self._files.values():
            os.close(file)

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
            self._scheduler.time,
            self._scheduler.steps,
            sum(said.get("messages", 0) for said in reports),
            sum(said.get("bytes", 0) for said in reports),
            dict(sorted(counters.items())),
            dict(sorted(conduit.items())),
            delivered,
            [tuple(injection) for said in reports for injection in said.get("injections", ())],
            [event for said in reports for event in said.get("rails", ())],
            tuple(self._dead),
        )
