"""The passive agent of a host: serves ranks that another launcher has started.

`python -m ompy.runtime.passive.agent`, with a listening Unix socket as standard input. It ends
when the ranks of its host have, and they end when it does. What it decides is in
`machines/agents/joining.py`; here it hears who comes, and finds the coordinator or has it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NoReturn

from ompy.engine.reactor import Reactor
from ompy.runtime.connections.blocking_calls import BlockingCalls
from ompy.runtime.connections.credentials import CredentialError, Credentials, credentials
from ompy.runtime.connections.driver import ENDING, Driver
from ompy.runtime.connections.pipes import Connection
from ompy.runtime.launching.launchers import LauncherError, Membership, membership
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
    Admit,
    Adopt,
    CancelStep,
    Hang,
    Keep,
    Kill,
    Meet,
    Say,
    TakeMeeting,
    Terminate,
    ToRank,
    TurnAway,
    WatchTasks,
)
from ompy.runtime.machines.agents.agent_table import AgentPhase
from ompy.runtime.machines.agents.joining import JoiningMachine, Step
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.passive.coordinator import PassiveCoordinator
from ompy.runtime.passive.coordinator_search import CoordinatorSearch, Found
from ompy.runtime.passive.host_reporter import HostReporter
from ompy.runtime.passive.meeting import MeetingError
from ompy.runtime.passive.step_watch import (
    StepWatch,
    TaskWatch,
    cancel_step,
    gone_early,
    tasks_by_host,
    watch_after,
    watched,
)
from ompy.runtime.passive.waiting_ranks import WaitingRanks
from ompy.runtime.ranks.descendants import control_process
from ompy.runtime.ranks.rank_server import RankServer, peer_credentials

if TYPE_CHECKING:
    from concurrent.futures import Future

_SET_NAME: Final = 15  # Linux PR_SET_NAME


class PassiveAgent(Driver):
    """The agent of one host, from its first rank to its last."""

    def __init__(self, listener: socket.socket, member: Membership) -> None:
        """Prepare; `run` runs.

        Args:
            listener: where ranks of this host connect; belongs to the agent.
            member: what the variables of its first rank say.
        """
        self._reactor = Reactor()
        super().__init__(self._reactor)
        self._reactor.set_exception_handler(self._failed)
        self._member = member
        self._reporter = HostReporter()
        self._calls = BlockingCalls(self._loop)
        self._joining = self.machine = JoiningMachine(
            Step(
                member.launcher,
                member.size,
                member.local_size,
                member.meeting,
                member.leads,
                os.uname().nodename,
                watched=watched(member),
                orphans=member.launcher == "srun",
            )
        )
        self._waiting_ranks = WaitingRanks(self._loop, listener, self.tell)
        self._running: dict[int, int] = {}  # pidfds of ranks whose process has not ended
        self._server: RankServer | None = None
        self._coordinator: PassiveCoordinator | None = None
        self._met: Connection | None = None
        self._key = b""
        self._task_watch: TaskWatch | None = None  # while ranks of this host come
        self._search: CoordinatorSearch | None = None  # while the coordinator is looked for
        self._step_watch: StepWatch | None = None  # meanwhile, on its host

    def run(self) -> None:
        """Run until no rank of this host is left."""
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)  # meant for the ranks, after which we end
        self.see(Seen.BEGUN)
        self._reactor.run_forever()

    def _failed(self, loop: Reactor, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end, the ranks with us."""
        loop.default_exception_handler(context)
        loop.stop()

    def tell(self, event: Event) -> None:
        """Something has happened; what was only for a phase that is over is ended."""
        super().tell(event)
        if self._joining.phase is not AgentPhase.GATHERING and self._task_watch is not None:
            self._task_watch.cancel()
            self._task_watch = None
        if self._joining.phase is not AgentPhase.MEETING:
            if self._search is not None:
                self._search.cancel()
                self._search = None
            if self._step_watch is not None:
                self._step_watch.cancel()
                self._step_watch = None

    def perform(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case ToRank() if self._server is not None:
                self._server.say(act.rank, act.kind, act.header, act.body)
            case Admit() if self._server is not None:
                self._server.admit_rank(act.rank)
            case Hang() if self._server is not None:
                self._server.hang_up(act.rank)
            case Terminate():
                self._signal(signal.SIGTERM, act.but)
                self._signal(signal.SIGCONT, act.but)  # a stopped process takes no SIGTERM
            case Kill():
                self._signal(signal.SIGKILL, act.but)
            case Keep():
                self._waiting_ranks.keep_rank(act)
                if act.starter:
                    self._watch_process(act.starter, Seen.STARTER_GONE, act.rank)
            case TurnAway():
                self._waiting_ranks.turn_away(act)
            case Adopt():
                self._adopt(act.body)
            case _:
                self._perform_meeting(act)

    def _perform_meeting(self, act: Act) -> None:
        match act:
            case WatchTasks():
                wanted = self._member.local_size
                self._task_watch = TaskWatch(self._loop, self._calls, wanted, self._task_gone)
            case Meet():
                self._loop.call_soon(self._meet, act.part, act.leads)
            case TakeMeeting():
                self._take_meeting(act.take)
            case Say():
                self._reporter.warn_user(act.text)
            case CancelStep():
                cancel_step()
            case _:
                super().perform(act)

    # ranks of this host come

    def _watch_process(self, process: int, gone: Seen, rank: int) -> int:
        """Say so when a process has ended. Its descriptor; -1 if it has ended already."""
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            self._loop.call_soon(self.see, gone, rank)
            return -1
        self._loop.add_reader(descriptor, self._process_gone, descriptor, gone, rank)
        return descriptor

    def _process_gone(self, descriptor: int, gone: Seen, rank: int) -> None:
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
        if gone is Seen.EXITED:
            del self._running[rank]
        self.see(gone, rank)

    def _adopt(self, body: bytes) -> None:
        """All are here: the ranks of this host get to know their job."""
        self._reporter.set_job(json.loads(body)["job_id"])
        several = bool(self._member.meeting)
        self._server = RankServer(self._loop, self.tell, self._key + body, several)
        for connection, rank in self._waiting_ranks.hand_over():
            pid = peer_credentials(connection)[0]
            descriptor = self._watch_process(pid, Seen.EXITED, rank.rank)
            if descriptor >= 0:  # its process ends after its connection has
                self._running[rank.rank] = descriptor
            self._server.let_in(rank, connection)

    def _signal(self, number: int, but: int) -> None:
        for rank, descriptor in self._running.items():
            if rank != but:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)

    def _task_gone(self) -> None:
        """Under Slurm: a task of this host has ended that has not begun MPI."""
        self.see(Seen.MISSING, body=gone_early(os.uname().nodename).encode())

    # the coordinator

    def _meet(self, part: Mapping[str, Any], leads: bool) -> None:
        """Get the job from the coordinator, which may be here."""
        ours = {**part, "node": os.environ.get("SLURMD_NODENAME", "")}
        if not self._member.meeting:
            assert leads, "ranks on several hosts, or there is nobody else to meet"
            self._coordinate(None, ours)
            return

        def proven(future: Future[Credentials]) -> None:
            try:
                proof = future.result()
            except CredentialError as problem:
                self._unmet(problem)
                return
            if leads:
                self._coordinate(proof, ours)
            else:
                self._find_coordinator(proof, ours)

        self._calls.start_call(proven, credentials, self._member.secret)

    def _unmet(self, problem: Exception) -> None:
        self.see(Seen.UNMET, body=str(problem).encode())

    def _take_meeting(self, take: bool) -> None:
        met, self._met = self._met, None
        if met is None:
            self.disconnect(PARENT)
        elif take:
            self.connect(PARENT, met)
        else:
            met.close()

    def _coordinate(self, proof: Credentials | None, part: dict[str, Any]) -> None:
        """Be the host with the coordinator, even if all is over here: others have to be told."""
        try:
            self._coordinator = PassiveCoordinator(
                self._loop,
                self._calls,
                self._member,
                proof,
                self._reporter,
                lambda: self.see(Seen.COORDINATED),
            )
        except MeetingError as problem:
            self._unmet(problem)
            return
        self._key = self._coordinator.key
        self._met, theirs = socket.socketpair()
        self._coordinator.admit_agent(theirs, part, remote=False)
        self.see(Seen.MET, leads=True)

    def _find_coordinator(self, proof: Credentials, part: dict[str, Any]) -> None:
        """Ask until it answers: its host may be slower than ours."""
        if self._joining.phase is not AgentPhase.MEETING:
            self._unmet(MeetingError("given up"))
            return
        self._search = CoordinatorSearch(
            self._loop,
            self._calls,
            proof,
            (self._member.meeting, self._member.job),
            part,
            self._found,
            self._unmet,
            self._overdue,
        )
        if watched(self._member):
            node = int(os.environ["SLURM_NODEID"])
            self._loop.call_later(watch_after(node), self._watch_meeting)

    def _found(self, found: Found) -> None:
        self._search = None
        self._key = found.key
        self._met = found.connection
        self.see(Seen.MET, leads=False)

    def _overdue(self, why: str) -> None:
        self._reporter.warn_user(
            f"host {os.uname().nodename} waits for the ranks of host {self._member.meeting} to "
            f"begin MPI ({why}); a firewall may be in the way"
        )

    def _watch_meeting(self) -> None:
        """The tasks of the coordinator's host may all end before one of them begins MPI."""
        hosts = tasks_by_host(os.environ)
        host = self._member.meeting
        if self._joining.phase is AgentPhase.MEETING and host in hosts:
            self._step_watch = StepWatch(self._loop, {host: hosts[host]}, self._meeting_gone)

    def _meeting_gone(self, host: str) -> None:
        self.see(Seen.MISSING, body=gone_early(host).encode())


def main() -> NoReturn:
    """Be the agent of this host. Never returns."""
    if os.fork():
        os._exit(0)  # whoever started it waits for this, and has no child then
    control_process(_SET_NAME, b"ompy-agent")
    try:
        member = membership(os.environ)
    except LauncherError as problem:
        sys.exit(str(problem))
    if member is None or os.isatty(0):
        sys.exit("this is started by ranks that srun and the like have started")
    listener = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    PassiveAgent(listener, member).run()
    os._exit(0)


if __name__ == "__main__":
    main()
