"""The passive agent of a host: serves ranks that another launcher has started.

`python -m ompy.runtime.passive.agent`, with a listening Unix socket as standard input. It ends
when the ranks of its host have, and they end when it does. What it decides is in
`machines/joining.py`; here it hears who comes, and finds the coordinator or has it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from ompy.runtime.control import ControlError, Decoder, Kind, encode
from ompy.runtime.credentials import CredentialError, Credentials, credentials
from ompy.runtime.descendants import control_process
from ompy.runtime.driver import ENDING, Driver
from ompy.runtime.launchers import LauncherError, Membership, membership
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
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
    Welcome,
)
from ompy.runtime.machines.agent_table import AgentPhase
from ompy.runtime.machines.events import Seen
from ompy.runtime.machines.joining import OVERDUE, JoiningMachine, Step
from ompy.runtime.passive.coordinator import PassiveCoordinator
from ompy.runtime.passive.meeting import PROOF_TIMEOUT, MeetingError, connect, prove_as_agent
from ompy.runtime.passive.step_watch import (
    PATIENCE,
    StepWatch,
    cancel_step,
    gone_early,
    tasks_by_host,
    watched,
)
from ompy.runtime.passive.tasks import count_tasks, step_name
from ompy.runtime.passive.telling import Teller
from ompy.runtime.pipes import Connection
from ompy.runtime.rank_server import RankServer, peer_credentials
from ompy.runtime.ranks import AttachedRank

LOOK: Final = 0.25  # s; arbitrary: twice that is far below two seconds
RETRY: Final = 0.1  # s; arbitrary: how often the coordinator is looked for
HELLO_TIMEOUT: Final = 5.0  # s; arbitrary: a rank says it as soon as it has connected
_SET_NAME: Final = 15  # Linux PR_SET_NAME


class PassiveAgent(Driver):
    """The agent of one host, from its first rank to its last."""

    def __init__(self, listener: socket.socket, member: Membership) -> None:
        """Prepare; `run` runs.

        Args:
            listener: where ranks of this host connect; belongs to the agent.
            member: what the variables of its first rank say.
        """
        self._tasks_loop = asyncio.new_event_loop()
        super().__init__(self._tasks_loop)
        self._tasks_loop.set_exception_handler(self._failed)
        self._listener = listener
        self._member = member
        self._teller = Teller()
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
        self._came = 0
        self._greeted: dict[int, tuple[socket.socket, AttachedRank]] = {}  # that are not served
        self._kept: dict[int, int] = {}  # of these, by rank
        self._running: dict[int, int] = {}  # pidfds of ranks whose process has not ended
        self._server: RankServer | None = None
        self._coordinator: PassiveCoordinator | None = None
        self._met: Connection | None = None
        self._key = b""
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Run until no rank of this host is left."""
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)  # meant for the ranks, after which we end
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._admit)
        self.see(Seen.BEGUN)
        self._tasks_loop.run_forever()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end, the ranks with us."""
        loop.default_exception_handler(context)
        loop.stop()

    def _begin(self, task: Any) -> None:
        made = self._tasks_loop.create_task(task)
        self._tasks.add(made)
        made.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._failed(self._tasks_loop, {"message": "a mistake in ompy", "exception": problem})

    def perform(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case ToRank() if self._server is not None:
                self._server.say(act.rank, act.kind, act.header, act.body)
            case Welcome() if self._server is not None:
                self._server.welcome(act.rank)
            case Hang() if self._server is not None:
                self._server.hang_up(act.rank)
            case Terminate():
                self._signal(signal.SIGTERM, act.but)
                self._signal(signal.SIGCONT, act.but)  # a stopped process takes no SIGTERM
            case Kill():
                self._signal(signal.SIGKILL, act.but)
            case Keep():
                self._keep(act)
            case TurnAway():
                self._turn_away(act)
            case Adopt():
                self._adopt(act.body)
            case _:
                self._perform_meeting(act)

    def _perform_meeting(self, act: Act) -> None:
        match act:
            case WatchTasks():
                self._begin(self._look_for_tasks())
            case Meet():
                self._begin(self._meet(act.part, leads=act.leads))
            case TakeMeeting():
                self._take_meeting(act.take)
            case Say():
                self._teller.say(act.text)
            case CancelStep():
                cancel_step()
            case _:
                super().perform(act)

    # ranks of this host come

    def _admit(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            connection.setblocking(False)
            if peer_credentials(connection)[1] == os.geteuid():
                self._begin(self._greet(connection))
            else:
                connection.close()

    async def _greet(self, connection: socket.socket) -> None:
        """Hear who it is."""
        decoder = Decoder()
        frame = None
        try:
            async with asyncio.timeout(HELLO_TIMEOUT):
                while (frame := decoder.next()) is None:
                    data = await self._tasks_loop.sock_recv(connection, 4096)
                    if not data:
                        break
                    decoder.feed(data)
        except (OSError, TimeoutError, ControlError):
            frame = None
        if frame is None or frame.kind is not Kind.HELLO:
            connection.close()
            return
        hello = {**frame.header, "pid": peer_credentials(connection)[0]}
        who, self._came = self._came, self._came + 1
        self._greeted[who] = connection, AttachedRank(hello["rank"], hello["local_rank"])
        self.see(Seen.CAME, who, **hello)

    def _keep(self, act: Keep) -> None:
        connection, _ = self._greeted[act.who]
        with suppress(OSError):
            connection.send(encode(Kind.ALIVE))  # from now on our end is the job's
        self._kept[act.rank] = act.who
        if act.starter:
            self._watch_process(act.starter, Seen.STARTER_GONE, act.rank)
        self._loop.add_reader(connection, self._newcomer_gone, act.rank)

    def _newcomer_gone(self, rank: int) -> None:
        """It says nothing before it is welcomed, so this is its end."""
        connection, _ = self._greeted.pop(self._kept.pop(rank))
        self._loop.remove_reader(connection)
        connection.close()
        self.see(Seen.CLIENT_GONE, rank)

    def _turn_away(self, act: TurnAway) -> None:
        connection, rank = self._greeted.pop(act.who)
        if self._kept.get(rank.rank) == act.who:
            del self._kept[rank.rank]
            self._loop.remove_reader(connection)
        with connection, suppress(OSError):
            if act.code is not None:
                connection.send(encode(Kind.REFUSED, {"code": act.code}, act.text.encode()))

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
        self._teller.speak_for(json.loads(body)["job_id"])
        several = bool(self._member.meeting)
        self._server = RankServer(self._loop, self.tell, self._key + body, several)
        for number, who in self._kept.items():
            connection, rank = self._greeted.pop(who)
            self._loop.remove_reader(connection)
            pid = peer_credentials(connection)[0]
            descriptor = self._watch_process(pid, Seen.EXITED, number)
            if descriptor >= 0:  # its process ends after its connection has
                self._running[number] = descriptor
            self._server.let_in(rank, connection)
        self._kept.clear()

    def _signal(self, number: int, but: int) -> None:
        for rank, descriptor in self._running.items():
            if rank != but:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)

    async def _look_for_tasks(self) -> None:
        """Under Slurm: whether a task of this host has ended that has not begun MPI.

        Twice in a row, as one may have begun just before it was looked for.
        """
        few = 0
        while self._gathering and few < 2:
            await asyncio.sleep(LOOK)
            count = await asyncio.to_thread(count_tasks, step_name(os.environ))
            if count is None:  # a container hides them: then there is no more to be known
                return
            few = few + 1 if count < self._member.local_size else 0
        self.see(Seen.MISSING, body=gone_early(os.uname().nodename).encode())

    @property
    def _gathering(self) -> bool:
        return self._joining.phase is AgentPhase.GATHERING

    # the coordinator

    async def _meet(self, part: Mapping[str, Any], *, leads: bool) -> None:
        """Get the job from the coordinator, which may be here."""
        ours = {**part, "node": os.environ.get("SLURMD_NODENAME", "")}
        member = self._member
        try:
            proof = credentials(member.secret) if member.meeting else None
            if leads:
                self._met = self._coordinate(proof, ours)
            else:
                assert proof is not None, "ranks on several hosts, so there is a meeting"
                self._met = await self._find(proof, ours)
        except (CredentialError, MeetingError) as problem:
            self.see(Seen.UNMET, body=str(problem).encode())
        else:
            self.see(Seen.MET, leads=leads)

    def _take_meeting(self, take: bool) -> None:
        met, self._met = self._met, None
        if met is None:
            self.disconnect(PARENT)
        elif take:
            self.connect(PARENT, met)
        else:
            met.close()

    def _coordinate(self, proof: Credentials | None, part: dict[str, Any]) -> socket.socket:
        """Be the host with the coordinator."""
        self._coordinator = PassiveCoordinator(
            self._tasks_loop,
            self._member,
            proof,
            self._teller,
            lambda: self.see(Seen.COORDINATED),
        )
        self._key = self._coordinator.key
        ours, theirs = socket.socketpair()
        self._coordinator.add(theirs, part, remote=False)
        return ours

    async def _find(self, proof: Credentials, part: dict[str, Any]) -> Connection:
        """Ask until the coordinator answers: its host may be slower than ours."""
        begun, told, why = self._tasks_loop.time(), False, "nobody listens there"
        self._begin(self._watch_meeting())
        while self._meeting:
            found = await connect(self._member.meeting, self._member.job)
            for number, connection in enumerate(found):
                try:
                    async with asyncio.timeout(PROOF_TIMEOUT):
                        met = await prove_as_agent(connection, proof, self._member.job, part)
                except (OSError, TimeoutError, MeetingError) as problem:
                    why = str(problem) or "it does not answer"
                    connection.close()
                else:
                    for other in found[number + 1 :]:
                        other.close()
                    self._key = met.key
                    return met.connection
            if not told and self._tasks_loop.time() - begun > OVERDUE:
                told = True
                self._teller.say(
                    f"host {part['host']} waits for the ranks of host {self._member.meeting} to "
                    f"begin MPI ({why}); a firewall may be in the way"
                )
            await asyncio.sleep(RETRY)
        raise MeetingError("given up")

    async def _watch_meeting(self) -> None:
        """The tasks of the coordinator's host may all end before one of them begins MPI.

        One host looks, the second: a thousand of them need not ask the same thing.
        """
        hosts = tasks_by_host(os.environ)
        await asyncio.sleep(PATIENCE)
        second = os.environ.get("SLURM_NODEID") == "1" and watched(self._member)
        if second and self._meeting and self._member.meeting in hosts:
            wanted = {self._member.meeting: hosts[self._member.meeting]}
            watch = asyncio.create_task(StepWatch(wanted, self._meeting_gone).run())
            while self._meeting:
                await asyncio.sleep(RETRY)
            watch.cancel()

    def _meeting_gone(self, host: str) -> None:
        self.see(Seen.MISSING, body=gone_early(host).encode())

    @property
    def _meeting(self) -> bool:
        return self._joining.phase is AgentPhase.MEETING


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
