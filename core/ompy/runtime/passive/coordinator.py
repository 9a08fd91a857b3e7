"""The coordinator of a job that another launcher has started: what the launcher is otherwise.

It lives in the passive agent of one host. It makes the map, resolves the parameters, routes
between the agents, and says once why the job ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from ompy import __version__
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.job import App, Job, Placement
from ompy.frameworks.sealing import insist_on_seal
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.registry import Registry
from ompy.mca.reporting import Finding
from ompy.mca.settings import gather_settings
from ompy.runtime.channel import Channel
from ompy.runtime.comm_methods import COLLECTING, LostPaths
from ompy.runtime.control import Frame, Kind
from ompy.runtime.credentials import CredentialError, Credentials
from ompy.runtime.heartbeat import Heartbeat
from ompy.runtime.launchers import Membership
from ompy.runtime.passive.meeting import (
    PROOF_TIMEOUT,
    SALT_SIZE,
    MeetingError,
    listen,
    prove_as_coordinator,
)
from ompy.runtime.passive.step_watch import (
    PATIENCE,
    StepWatch,
    cancel_step,
    gone_early,
    tasks_by_host,
    watched,
)
from ompy.runtime.passive.telling import Teller
from ompy.runtime.pipes import Connection
from ompy.runtime.rail_report import RailTally
from ompy.runtime.ranks import Stage
from ompy.runtime.report import failure_block, fields_of
from ompy.runtime.verdict import Failure, Verdict

OVERDUE: Final = 30.0  # s; arbitrary: ranks of one job rarely start so far apart
HALF_OPEN_MAX: Final = 256  # arbitrary: more agents than connect at the same moment
SILENT: Final = "Nothing was heard of it for {:g} s: its host is down, or the way to it."
UNUSABLE: Final = 1  # exit code of ranks of a job that cannot begin


class _Agent:
    """An agent, and the part of the job it has."""

    def __init__(self, part: dict[str, Any], *, remote: bool) -> None:
        self.host = str(part["host"])
        self.ranks = [
            (int(rank), int(local), int(pid), tuple(map(str, argv)))
            for rank, local, pid, argv in part["ranks"]
        ]
        self.cores = int(part["cores"])
        self.node = str(part.get("node", ""))  # as Slurm calls its host
        self.remote = remote
        self.channel: Channel | None = None
        self.heartbeat: Heartbeat | None = None
        self.done = False


class PassiveCoordinator:
    """One job, from its first agent to its last.

    Attributes:
        key: of the job.
        done: no agent is left but the one of this host.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        member: Membership,
        proof: Credentials | None,
        teller: Teller,
        on_done: Callable[[], object],
    ) -> None:
        """Begin to listen, if there are other hosts.

        Args:
            loop: of the agent of this host.
            member: what the launcher's variables say.
            proof: by which agents of other hosts prove themselves; None without other hosts.
            teller: speaks for this host.
            on_done: called when `done` has become true.

        Raises:
            MeetingError: there is no port to listen at.
        """
        self._loop = loop
        self._member = member
        self._proof = proof
        self._teller = teller
        self._on_done = on_done
        self._salt = os.urandom(SALT_SIZE)
        self.key = proof.key(self._salt) if proof is not None else self._salt
        self.done = False
        self._agents: list[_Agent] = []
        self._verdict: Verdict | None = None
        self._ending = False
        self._fenced: set[int] = set()
        self._lost_paths = LostPaths()
        self._rails = RailTally()
        self._vanished: set[int] = set()
        self._finalized: set[int] = set()
        self._proving: set[asyncio.Task[None]] = set()
        self._listener = listen(member.job) if proof is not None else None
        if self._listener is not None:
            self._listener.setblocking(False)
            loop.add_reader(self._listener, self._admit)
        self._overdue = loop.call_later(OVERDUE, self._tell_overdue)
        self._watch: asyncio.Task[None] | None = None
        if self._listener is not None and watched(member):
            self._watch = loop.create_task(self._watch_the_others())

    # agents come

    def _admit(self) -> None:
        assert self._listener is not None
        with suppress(OSError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            if len(self._proving) >= HALF_OPEN_MAX:
                connection.close()  # an agent tries again
                return
            task = self._loop.create_task(self._prove(connection))
            self._proving.add(task)
            task.add_done_callback(self._proving.discard)

    async def _prove(self, connection: socket.socket) -> None:
        """Take an agent of another host, if it is one."""
        assert self._proof is not None
        try:
            async with asyncio.timeout(PROOF_TIMEOUT):
                hello, sealed = await prove_as_coordinator(
                    connection, self._proof, self._member.job, self._salt
                )
        except (OSError, TimeoutError, MeetingError):
            connection.close()  # a stranger, or one that will try again
        except CredentialError as problem:
            connection.close()
            self.fail(Failure(UNUSABLE, f"No host can prove that it is of this job: {problem}."))
        else:
            if hello["version"] != __version__:
                host = hello["part"]["host"]
                self.fail(
                    Failure(
                        UNUSABLE,
                        f"ompy is {hello['version']} on host {host} and {__version__} on host "
                        f"{os.uname().nodename}; install the same on all hosts.",
                    )
                )
            self.add(sealed, hello["part"], remote=True)

    def add(self, connection: Connection, part: dict[str, Any], *, remote: bool) -> None:
        """An agent has come; with the last the job begins."""
        agent = _Agent(part, remote=remote)
        self._agents.append(agent)
        agent.channel = Channel(
            self._loop,
            connection,
            lambda frame: self._on_frame(agent, frame),
            lambda reason: self._gone(agent, reason),
        )
        if self._ending:
            agent.channel.send(Kind.END, {"code": UNUSABLE})
        elif sum(len(there.ranks) for there in self._agents) >= self._member.size:
            self._start()

    async def _watch_the_others(self) -> None:
        """Under Slurm: have a look at hosts whose ranks do not come; they may have ended."""
        await asyncio.sleep(PATIENCE)
        here = {agent.node for agent in self._agents}
        hosts = {host: n for host, n in tasks_by_host(os.environ).items() if host not in here}
        await StepWatch(hosts, self._host_gone).run()

    def _host_gone(self, host: str) -> None:
        """If its agent has come meanwhile, that knows better."""
        if all(agent.node != host for agent in self._agents):
            self.fail(Failure(UNUSABLE, f"{gone_early(host)}."))
            cancel_step()

    def _stop_watching(self) -> None:
        self._overdue.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _tell_overdue(self) -> None:
        here = {rank for agent in self._agents for rank, *_ in agent.ranks}
        missing = [rank for rank in range(self._member.size) if rank not in here]
        shown = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        self._teller.say(
            f"after {OVERDUE:g} s nothing is known of rank {shown}: not all ranks of their hosts "
            "have begun MPI; the job waits"
        )

    # the job begins

    def _start(self) -> None:
        """All are here."""
        self._stop_watching()
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
        self._agents.sort(key=lambda agent: min(agent.ranks))
        ranks = sorted(rank for agent in self._agents for rank, *_ in agent.ranks)
        if ranks != list(range(self._member.size)):
            text = f"{self._member.launcher} has given ranks {ranks}: one twice, or another job's."
            self.fail(Failure(UNUSABLE, text))
            return
        try:
            registry = self._registry()
            job = self._job(registry)
            values = registry.values("plm")
        except UsageError as problem:
            self.fail(Failure(problem.exit_code, "\n".join(problem.problems)))
            return
        except ComponentError as problem:
            self.fail(Failure(problem.exit_code, str(problem)))
            return
        self._teller.speak_for(job.job_id)
        self._verdict = Verdict(job)
        for agent in self._agents:
            for rank, _, pid, _ in agent.ranks:
                self._verdict.started(rank, pid)
        body = json.dumps(job.to_dict(), separators=(",", ":")).encode()
        for node, agent in enumerate(self._agents):
            header = {
                "node": node,
                "grace_ms": values.kill_grace_ms,
                "heartbeat_ms": values.heartbeat_ms if agent.remote else 0,
                "heartbeat_misses": values.heartbeat_misses,
            }
            self._send(agent, Kind.START, header, body)
            if agent.remote and values.heartbeat_ms:
                self._listen_to(agent, values.heartbeat_ms / 1000, values.heartbeat_misses)

    def _registry(self) -> Registry:
        """The parameters, as environment and files of the first host have them."""
        registry = Registry(CATALOG, gather_settings([], os.environ))
        registry.check()
        insist_on_seal(registry)
        for notice in registry.notices():
            self._teller.say(f"warning: {notice}")
        registry.insist()
        registry.tell_warnings(self._teller.say)
        return registry

    def _job(self, registry: Registry) -> Job:
        """What the ranks are told, as `ompy-run` would."""
        programs = list(dict.fromkeys(argv for agent in self._agents for *_, argv in agent.ranks))
        placements = [
            Placement(rank, programs.index(argv), node, local)
            for node, agent in enumerate(self._agents)
            for rank, local, _, argv in agent.ranks
        ]
        counts = [sum(place.app == app for place in placements) for app in range(len(programs))]
        return Job(
            job_id=os.urandom(8).hex(),
            apps=tuple(App(argv, count) for argv, count in zip(programs, counts, strict=True)),
            hosts=tuple(agent.host for agent in self._agents),
            placements=tuple(sorted(placements)),
            mca=registry.snapshot(),
            stdin_rank=-1,
            mpi4py=False,
            oversubscribed=any(len(agent.ranks) > agent.cores for agent in self._agents),
        )

    def _listen_to(self, agent: _Agent, interval_s: float, misses: int) -> None:
        agent.heartbeat = Heartbeat(
            self._loop,
            interval_s,
            misses,
            lambda: self._send(agent, Kind.ALIVE),
            lambda: self._gone(agent, SILENT.format(interval_s * misses)),
        )
        agent.heartbeat.watch(on=True)
        agent.heartbeat.begin()

    # the job runs

    def _send(
        self, agent: _Agent, kind: Kind, header: dict[str, Any] | None = None, body: bytes = b""
    ) -> None:
        if agent.channel is not None:
            agent.channel.send(kind, header, body)

    def _tell_all(self, kind: Kind, header: dict[str, Any] | None = None) -> None:
        for agent in self._agents:
            self._send(agent, kind, header)

    def _on_frame(self, agent: _Agent, frame: Frame) -> None:
        if agent.heartbeat is not None:
            agent.heartbeat.heard()
        if frame.kind is Kind.FINISHED:
            self._settle(agent)
        elif self._verdict is not None and not self._ending:
            self._judge(self._verdict, agent, frame)

    def _judge(self, verdict: Verdict, agent: _Agent, frame: Frame) -> None:
        header = frame.header
        match frame.kind:
            case Kind.MODEX | Kind.FENCED | Kind.LEFT:
                self._relay(agent, frame)
            case Kind.STAGE:
                stage, calls = Stage(header["stage"]), header.get("calls")
                self._advanced(verdict, header["rank"], stage, calls)
            case Kind.PATHS:
                if self._lost_paths.add(header["rank"], header, json.loads(frame.body)):
                    self._loop.call_later(COLLECTING, self._show_lost_paths)
            case Kind.RAIL:
                self._rails.told(header)
            case Kind.LOST:
                self._vanished.add(header["rank"])
                launcher, orphan = self._member.launcher, bool(header.get("orphan"))
                verdict.vanished(header["rank"], header["pid"], launcher, orphan=orphan)
            case Kind.ABORTED:
                reason = frame.body.decode(errors="replace")
                verdict.aborted(header["rank"], header["pid"], header["code"], reason)
        if verdict.failure is not None:
            self.fail(verdict.failure)

    def _relay(self, agent: _Agent, frame: Frame) -> None:
        """Tell the other hosts of a rank's commit or end, or all that all are at the fence."""
        if frame.kind is not Kind.FENCED:
            for other in self._agents:
                if other is not agent:
                    self._send(other, frame.kind, frame.header, frame.body)
            return
        self._fenced.add(id(agent))
        if len(self._fenced) == len(self._agents):
            self._fenced.clear()
            self._tell_all(Kind.FENCED)

    def _advanced(
        self, verdict: Verdict, rank: int, stage: Stage, calls: dict[str, Any] | None
    ) -> None:
        verdict.advanced(rank, stage, calls)
        if stage is Stage.FINALIZED:
            self._finalized.add(rank)
            if len(self._finalized) == self._member.size:
                self._show_rails()
                self._tell_all(Kind.FINISHED)

    # the job ends

    def _show_lost_paths(self) -> None:
        text = self._lost_paths.text(frozenset(self._vanished))
        if text:
            self._teller.tell(Finding("path lost", text, "warning"))

    def _show_rails(self) -> None:
        lines = self._rails.lines()
        if lines:
            text = "".join(f"ompy: {line}\n" for line in lines)
            self._teller.tell(Finding("rails", text))

    def fail(self, failure: Failure) -> None:
        """End the job, and say why, once."""
        if self._ending:
            return
        self._ending = True
        self._stop_watching()
        self._show_lost_paths()
        self._show_rails()
        text = failure_block(failure)
        self._teller.tell(Finding("job failed", text, "error", fields_of(failure)))
        self._tell_all(Kind.END, {"code": failure.code or UNUSABLE})

    def _gone(self, agent: _Agent, reason: str) -> None:
        """The connection to an agent has ended; before it has finished that ends the job."""
        finished = agent.done or len(self._finalized) == self._member.size
        if agent.channel is not None:
            agent.channel.close()
            agent.channel = None
        if agent.heartbeat is not None:
            agent.heartbeat.end()
        if not finished and not self._ending:
            facts = (("host", agent.host),)
            headline = "The process that serves the ranks of a host is gone. The job was ended."
            advice = reason or "Something killed it, or its host is down."
            self.fail(Failure(UNUSABLE, headline, facts, advice))
        self._settle(agent)

    def _settle(self, agent: _Agent) -> None:
        agent.done = True
        known = sum(len(there.ranks) for there in self._agents) >= self._member.size
        if not self.done and known and all(there.done for there in self._agents):
            self.done = True
            self._loop.call_soon(self._on_done)
