"""The coordinator of a job that another launcher has started: what the launcher is otherwise.

It lives in the passive agent of one host. It lets agents prove themselves, makes the map and
resolves the parameters; what it decides is in `machines/launcher/assembly.py`.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from ompy import __version__
from ompy.engine.reactor import Loop
from ompy.frameworks.btl_base.sealing import insist_on_seal
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.job import App, Job, Placement
from ompy.mca.errors import ComponentError, UsageError
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry
from ompy.runtime.connections.blocking_calls import BlockingCalls
from ompy.runtime.connections.credentials import CredentialError, Credentials
from ompy.runtime.connections.driver import Driver
from ompy.runtime.connections.pipes import Connection
from ompy.runtime.connections.sealed_connection import SealedConnection
from ompy.runtime.launching.launchers import Membership
from ompy.runtime.machines.acts import Act, CancelStep, Find, MakeJob, Released, Say
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.assembly import UNUSABLE, JoinedJobMachine
from ompy.runtime.machines.launcher.job_table import JobPhase
from ompy.runtime.passive.coordinator_address import listen_for_agents
from ompy.runtime.passive.handshake_driver import HandshakeDriver
from ompy.runtime.passive.host_reporter import HostReporter
from ompy.runtime.passive.meeting import NONCE_SIZE, SALT_SIZE, Joined, prove_as_coordinator
from ompy.runtime.passive.step_watch import (
    PATIENCE,
    StepWatch,
    cancel_step,
    gone_early,
    tasks_by_host,
    watched,
)

HALF_OPEN_MAX: Final = 256  # arbitrary: more agents than connect at the same moment


class _Part:
    """The part of the job that an agent has."""

    def __init__(self, part: Mapping[str, Any]) -> None:
        self.host = str(part["host"])
        self.ranks = [
            (int(rank), int(local), int(pid), tuple(map(str, argv)))
            for rank, local, pid, argv in part["ranks"]
        ]
        self.cores = int(part["cores"])


class PassiveCoordinator(Driver):
    """One job, from its first agent to its last.

    Attributes:
        key: of the job.
    """

    def __init__(
        self,
        loop: Loop,
        calls: BlockingCalls,
        member: Membership,
        proof: Credentials | None,
        reporter: HostReporter,
        on_done: Callable[[], object],
    ) -> None:
        """Begin to listen, if there are other hosts.

        Args:
            loop: of the agent of this host.
            calls: for seals, which wait.
            member: what the launcher's variables say.
            proof: by which agents of other hosts prove themselves; None without other hosts.
            reporter: speaks for this host.
            on_done: called when no agent needs it any longer.

        Raises:
            MeetingError: there is no port to listen at.
        """
        super().__init__(loop)
        self._calls = calls
        self._member = member
        self._proof = proof
        self._reporter = reporter
        self._on_done = on_done
        self._salt = os.urandom(SALT_SIZE)
        self.key = proof.key(self._salt) if proof is not None else self._salt
        self._job_machine = self.machine = JoinedJobMachine(member.launcher, member.size)
        self._came = 0
        self._proving: set[HandshakeDriver[Joined]] = set()
        self._listener = listen_for_agents(member.job) if proof is not None else None
        if self._listener is not None:
            self._listener.setblocking(False)
            loop.add_reader(self._listener, self._admit)
        self._watch: StepWatch | None = None
        if self._listener is not None and watched(member):
            loop.call_later(PATIENCE, self._watch_the_others)
        self.see(Seen.BEGUN)

    def tell(self, event: Event) -> None:
        """Something has happened."""
        super().tell(event)
        if self._job_machine.phase is not JobPhase.GATHERING and self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def perform(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case MakeJob():
                self._make([_Part(part) for part in act.parts])
            case Find():
                self._reporter.report_finding(act.finding)
            case Say():
                self._reporter.warn_user(act.text)
            case CancelStep():
                cancel_step()
            case Released():
                self._loop.call_soon(self._on_done)
            case _:
                super().perform(act)

    # agents come

    def _admit(self) -> None:
        assert self._listener is not None
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it has gone again
            return
        if len(self._proving) >= HALF_OPEN_MAX:
            connection.close()  # an agent tries again
            return
        self._prove(connection)

    def _prove(self, connection: socket.socket) -> None:
        """Take an agent of another host, if it is one."""
        assert self._proof is not None, "there is a listener, so there are other hosts"

        def joined(proven: socket.socket, agent: Joined) -> None:
            self._proving.discard(driver)
            self._admit_proven(proven, agent)

        def failed(problem: Exception) -> None:
            self._proving.discard(driver)
            if isinstance(problem, CredentialError):
                text = f"No host can prove that it is of this job: {problem}."
                self._unusable(UNUSABLE, text)
            # else it was a stranger, or one that will try again

        nonce = os.urandom(NONCE_SIZE)
        steps = prove_as_coordinator(self._proof, self._member.job, self._salt, nonce)
        driver = HandshakeDriver(self._loop, self._calls, connection, steps, joined, failed)
        self._proving.add(driver)

    def _admit_proven(self, connection: socket.socket, agent: Joined) -> None:
        """It is of this job; that it is of any use is still to be seen."""
        hello = agent.hello
        if hello["version"] != __version__:
            host = hello["part"]["host"]
            self._unusable(
                UNUSABLE,
                f"ompy is {hello['version']} on host {host} and {__version__} on host "
                f"{os.uname().nodename}; install the same on all hosts.",
            )
        self.admit_agent(SealedConnection(connection, agent.keys), hello["part"], remote=True)

    def _unusable(self, code: int, text: str) -> None:
        self.see(Seen.UNUSABLE, code, text.encode())

    def admit_agent(self, connection: Connection, part: dict[str, Any], *, remote: bool) -> None:
        """An agent has come; with the last the job begins."""
        who, self._came = self._came, self._came + 1
        self.connect(who, connection)
        self.see(Seen.CAME, who, part=part, remote=remote)

    def _watch_the_others(self) -> None:
        """Under Slurm: have a look at hosts whose ranks do not come; they may have ended."""
        if self._job_machine.phase is JobPhase.GATHERING:
            here = self._job_machine.nodes
            hosts = {host: n for host, n in tasks_by_host(os.environ).items() if host not in here}
            self._watch = StepWatch(self._loop, hosts, self._host_gone)

    def _host_gone(self, host: str) -> None:
        self.see(Seen.MISSING, body=f"{gone_early(host)}.".encode(), host=host)

    # the job begins

    def _make(self, parts: list[_Part]) -> None:
        """All are here."""
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
        try:
            registry = self._registry()
            job = self._job(registry, parts)
            values = registry.values("plm")
        except UsageError as problem:
            self._unusable(problem.exit_code, "\n".join(problem.problems))
            return
        except ComponentError as problem:
            self._unusable(problem.exit_code, str(problem))
            return
        self._reporter.set_job(job.job_id)
        self.see(
            Seen.MADE,
            body=json.dumps(job.to_dict(), separators=(",", ":")).encode(),
            job=job,
            grace_ms=values.kill_grace_ms,
            heartbeat_ms=values.heartbeat_ms,
            heartbeat_misses=values.heartbeat_misses,
        )

    def _registry(self) -> Registry:
        """The parameters, as environment and files of the first host have them."""
        registry = Registry(CATALOG, gather_settings([], os.environ))
        registry.check_settings()
        insist_on_seal(registry)
        for notice in registry.notices():
            self._reporter.warn_user(f"warning: {notice}")
        registry.insist()
        registry.tell_warnings(self._reporter.warn_user)
        return registry

    def _job(self, registry: Registry, parts: list[_Part]) -> Job:
        """What the ranks are told, as `ompy-run` would."""
        programs = list(dict.fromkeys(argv for agent in parts for *_, argv in agent.ranks))
        placements = [
            Placement(rank, programs.index(argv), node, local)
            for node, agent in enumerate(parts)
            for rank, local, _, argv in agent.ranks
        ]
        counts = [sum(place.app == app for place in placements) for app in range(len(programs))]
        return Job(
            job_id=os.urandom(8).hex(),
            apps=tuple(App(argv, count) for argv, count in zip(programs, counts, strict=True)),
            hosts=tuple(agent.host for agent in parts),
            placements=tuple(sorted(placements)),
            mca=registry.snapshot(),
            stdin_rank=-1,
            mpi4py=False,
            oversubscribed=any(len(agent.ranks) > agent.cores for agent in parts),
        )
