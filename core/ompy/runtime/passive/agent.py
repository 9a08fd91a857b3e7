"""The passive agent of a host: serves ranks that another launcher has started.

`python -m ompy.runtime.passive.agent`, with a listening Unix socket as standard input. It ends
when the ranks of its host have, and they end when it does.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from typing import Any, Final, NoReturn

from ompy.runtime.channel import Channel
from ompy.runtime.control import ControlError, Decoder, Frame, Kind, encode
from ompy.runtime.credentials import CredentialError, Credentials, credentials
from ompy.runtime.descendants import control_process
from ompy.runtime.heartbeat import Heartbeat
from ompy.runtime.launchers import LauncherError, Membership, membership
from ompy.runtime.leaving import News
from ompy.runtime.modex import ModexStore
from ompy.runtime.passive.coordinator import PassiveCoordinator
from ompy.runtime.passive.farewell import FarewellServer
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
from ompy.runtime.rank_server import peer_credentials
from ompy.runtime.ranks import AttachedRank

GRACE_MS: Final = 1000  # reference openmpi.md 2.4.2; before the coordinator has said another
OVERDUE: Final = 30.0  # s; arbitrary: hosts of one job rarely start so far apart
LOOK: Final = 0.25  # s; arbitrary: twice that is far below two seconds
RETRY: Final = 0.1  # s; arbitrary: how often the coordinator is looked for
HELLO_TIMEOUT: Final = 5.0  # s; arbitrary: a rank says it as soon as it has connected
NOBODY: Final = 3.0  # s; arbitrary: who started us connects at once, and starts another if not
ORPHAN_GRACE: Final = 0.2  # s; arbitrary: for a rank that is on its way out, which tells more
LINGER: Final = 2.0  # s; arbitrary: how long ranks that come late are told that the job has failed
FAILED: Final = 1  # exit code of ranks that cannot be brought up
_SET_NAME: Final = 15  # Linux PR_SET_NAME


class Phase(Enum):
    """How far a passive agent is."""

    GATHERING = "gathering"  # not all ranks of this host have come
    MEETING = "meeting"  # asks for the coordinator
    WAITING = "waiting"  # for the other hosts
    RUNNING = "running"
    RELEASED = "released"  # all ranks of the job have finalized
    ENDING = "ending"


class PassiveAgent:
    """The agent of one host, from its first rank to its last."""

    def __init__(self, listener: socket.socket, member: Membership) -> None:
        """Prepare; `run` runs.

        Args:
            listener: where ranks of this host connect; belongs to the agent.
            member: what the variables of its first rank say.
        """
        self._listener = listener
        self._member = member
        self._teller = Teller()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._failed)
        self._phase = Phase.GATHERING
        self._newcomers: dict[int, tuple[AttachedRank, socket.socket, dict[str, Any]]] = {}
        self._ranks: dict[int, AttachedRank] = {}
        self._running: dict[int, int] = {}  # pidfds of ranks whose process has not ended
        self._modex = ModexStore(frozenset())
        self._server: FarewellServer | None = None
        self._coordinator: PassiveCoordinator | None = None
        self._link: Channel | None = None
        self._heartbeat: Heartbeat | None = None
        self._key = b""
        self._grace_ms = GRACE_MS
        self._code = FAILED
        self._came: set[int] = set()
        self._aborting: AttachedRank | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Run until no rank of this host is left."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # meant for the ranks, after which we end
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._admit)
        self._loop.call_later(NOBODY, self._see_whether_one_came)
        self._loop.call_later(OVERDUE, self._see_whether_all_came)
        self._loop.run_forever()

    def _failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A mistake of ours: say it and end, the ranks with us."""
        loop.default_exception_handler(context)
        loop.stop()

    def _begin(self, task: Any) -> None:
        made = self._loop.create_task(task)
        self._tasks.add(made)
        made.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._failed(self._loop, {"message": "a mistake in ompy", "exception": problem})

    def _see_whether_one_came(self) -> None:
        if not self._came:
            self._loop.stop()

    async def _look_for_tasks(self) -> None:
        """Under Slurm: whether a task of this host has ended that has not begun MPI.

        Twice in a row, as one may have begun just before it was looked for.
        """
        few = 0
        while self._phase is Phase.GATHERING and few < 2:
            await asyncio.sleep(LOOK)
            count = await asyncio.to_thread(count_tasks, step_name(os.environ))
            if count is None:  # a container hides them: then there is no more to be known
                return
            few = few + 1 if count < self._member.local_size else 0
        if self._phase is Phase.GATHERING:
            self._teller.say(gone_early(os.uname().nodename))
            self._end(FAILED)
            cancel_step()

    def _see_whether_all_came(self) -> None:
        if self._phase is Phase.GATHERING:
            host, count = os.uname().nodename, self._member.local_size - len(self._newcomers)
            self._teller.say(
                f"{count} ranks of host {host} have not begun MPI after {OVERDUE:g} s; it waits"
            )

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
                    data = await self._loop.sock_recv(connection, 4096)
                    if not data:
                        break
                    decoder.feed(data)
        except (OSError, TimeoutError, ControlError):
            frame = None
        if frame is None or frame.kind is not Kind.HELLO:
            connection.close()
            return
        self._take(connection, frame.header)

    def _take(self, connection: socket.socket, hello: dict[str, Any]) -> None:
        """Keep it until all ranks are here. One that is late for this job is another's."""
        rank = AttachedRank(hello["rank"], hello["local_rank"])
        self._came.add(rank.rank)
        here = self._ranks.get(rank.rank)
        gone = here is not None and here.client is None
        if self._phase is Phase.ENDING:
            _refuse(connection, self._code, "")
            self._see()
        elif self._phase is Phase.RELEASED or gone:
            connection.close()  # it tries again, and then finds the agent of its own job
        elif rank.rank in self._newcomers or here is not None:
            text = f"rank {rank.rank} is another process already: one may use MPI"
            _refuse(connection, FAILED, text)
        elif self._phase is not Phase.GATHERING:
            text = (
                f"{self._member.launcher} said that {self._member.local_size} ranks are on this "
                f"host, and they are here without rank {rank.rank}"
            )
            _refuse(connection, FAILED, text)
        else:
            with suppress(OSError):
                connection.send(encode(Kind.ALIVE))  # from now on our end is the job's
            rank.client_pid = peer_credentials(connection)[0]
            if not self._newcomers and watched(self._member):
                self._begin(self._look_for_tasks())
            self._newcomers[rank.rank] = (rank, connection, hello)
            self._watch_parent(rank, hello["parent"])
            self._loop.add_reader(connection, self._newcomer_gone, rank)
            if len(self._newcomers) == self._member.local_size:
                self._phase = Phase.MEETING
                self._begin(self._meet())

    def _watch_parent(self, rank: AttachedRank, parent: int) -> None:
        """Slurm leaves tasks alone when their step daemon is killed; others start by hand."""
        if self._member.launcher != "srun":
            return
        try:
            descriptor = os.pidfd_open(parent)
        except ProcessLookupError:
            self._loop.call_soon(self._parent_gone, rank)
        else:
            self._loop.add_reader(descriptor, self._parent_gone, rank, descriptor)

    def _parent_gone(self, rank: AttachedRank, descriptor: int = -1) -> None:
        if descriptor >= 0:
            self._loop.remove_reader(descriptor)
            os.close(descriptor)
        if self._phase is Phase.RUNNING and rank.rank in self._running:
            header = {"rank": rank.rank, "pid": rank.client_pid, "orphan": True}
            self._loop.call_later(ORPHAN_GRACE, self._tell, Kind.LOST, header)
        elif rank.rank in self._newcomers and self._phase is not Phase.ENDING:
            self._teller.say(
                f"the process that started rank {rank.rank} is gone; its host ends its ranks"
            )
            self._end(FAILED)

    def _newcomer_gone(self, rank: AttachedRank) -> None:
        """It says nothing before it is welcomed, so this is its end."""
        _, connection, _ = self._newcomers.pop(rank.rank)
        self._loop.remove_reader(connection)
        connection.close()
        if self._phase is not Phase.ENDING:
            self._teller.say(f"rank {rank.rank} ended while it waited for the others to begin MPI")
            self._end(FAILED)
        self._see()

    # the coordinator

    async def _meet(self) -> None:
        """Get the job from the coordinator, which may be here."""
        member = self._member
        part = {
            "host": os.uname().nodename,
            "node": os.environ.get("SLURMD_NODENAME", ""),
            "ranks": [
                [rank.rank, rank.local_rank, rank.client_pid, hello["argv"]]
                for rank, _, hello in self._newcomers.values()
            ],
            "cores": len(
                {core for *_, hello in self._newcomers.values() for core in hello["cores"]}
            ),
        }
        leads = 0 in self._newcomers if member.leads is None else member.leads
        try:
            proof = credentials(member.secret) if member.meeting else None
            connection: Connection
            if leads:
                connection = self._coordinate(proof, part)
            else:
                assert proof is not None, "ranks on several hosts, so there is a meeting"
                connection = await self._find(proof, part)
        except (CredentialError, MeetingError) as problem:
            self._teller.say(f"host {part['host']}: {problem}")
            self._end(FAILED)
            return
        if self._phase is Phase.MEETING:
            self._phase = Phase.WAITING
            self._link = Channel(self._loop, connection, self._obey, self._coordinator_gone)
        else:
            connection.close()

    def _coordinate(self, proof: Credentials | None, part: dict[str, Any]) -> socket.socket:
        """Be the host with the coordinator."""
        self._coordinator = PassiveCoordinator(
            self._loop, self._member, proof, self._teller, self._see
        )
        self._key = self._coordinator.key
        ours, theirs = socket.socketpair()
        self._coordinator.add(theirs, part, remote=False)
        return ours

    async def _find(self, proof: Credentials, part: dict[str, Any]) -> Connection:
        """Ask until the coordinator answers: its host may be slower than ours."""
        begun, told, why = self._loop.time(), False, "nobody listens there"
        self._begin(self._watch_meeting())
        while self._phase is Phase.MEETING:
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
            if not told and self._loop.time() - begun > OVERDUE:
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
        if second and self._phase is Phase.MEETING and self._member.meeting in hosts:
            wanted = {self._member.meeting: hosts[self._member.meeting]}
            watch = asyncio.create_task(StepWatch(wanted, self._meeting_gone).run())
            while self._phase is Phase.MEETING:
                await asyncio.sleep(RETRY)
            watch.cancel()

    def _meeting_gone(self, host: str) -> None:
        if self._phase is Phase.MEETING:
            self._teller.say(gone_early(host))
            self._end(FAILED)
            cancel_step()

    def _obey(self, frame: Frame) -> None:
        """What the coordinator says."""
        if self._heartbeat is not None:
            self._heartbeat.heard()
        header = frame.header
        match frame.kind:
            case Kind.START:
                self._start(frame)
            case Kind.MODEX:
                self._modex.commit(header["rank"], frame.body)
            case Kind.FENCED:
                self._modex.fenced()
            case Kind.LEFT if self._server is not None:
                self._server.tell_leaving(header["ranks"])
            case Kind.FINISHED if self._server is not None:
                if self._phase is Phase.RUNNING:
                    self._phase = Phase.RELEASED
                self._server.release()
            case Kind.END:
                self._end(header["code"])

    def _start(self, frame: Frame) -> None:
        """All are here: the ranks of this host get to know their job."""
        self._phase = Phase.RUNNING
        self._grace_ms = frame.header["grace_ms"]
        self._modex = ModexStore(frozenset(self._newcomers))
        welcome = self._key + frame.body
        self._teller.speak_for(json.loads(frame.body)["job_id"])
        self._server = FarewellServer(
            self._loop,
            self,
            self._modex,
            self._member.size,
            welcome,
            bool(self._member.meeting),
        )
        for rank, connection, _ in self._newcomers.values():
            self._loop.remove_reader(connection)
            self._ranks[rank.rank] = rank
            self._watch(rank)
            self._server.let_in(rank, connection)
        self._newcomers.clear()
        interval_ms = frame.header["heartbeat_ms"]
        if interval_ms and self._link is not None:
            self._heartbeat = Heartbeat(
                self._loop,
                interval_ms / 1000,
                frame.header["heartbeat_misses"],
                lambda: self._tell(Kind.ALIVE),
                lambda: self._coordinator_gone("nothing was heard of it"),
            )
            self._heartbeat.watch(on=True)
            self._heartbeat.begin()

    def _watch(self, rank: AttachedRank) -> None:
        """Know when its process has ended, which is after its connection has."""
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(rank.client_pid)
            self._running[rank.rank] = descriptor
            self._loop.add_reader(descriptor, self._process_gone, rank)

    def _process_gone(self, rank: AttachedRank) -> None:
        descriptor = self._running.pop(rank.rank)
        self._loop.remove_reader(descriptor)
        os.close(descriptor)
        self._see()

    def _tell(self, kind: Kind, header: dict[str, Any] | None = None, body: bytes = b"") -> None:
        if self._link is not None:
            self._link.send(kind, header, body)

    def _coordinator_gone(self, reason: str) -> None:
        """Its host may be taken down as soon as all are released."""
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._phase not in {Phase.RELEASED, Phase.ENDING}:
            where = self._member.meeting or "this host"
            self._teller.say(
                f"the job's coordinator on host {where} is gone"
                f"{': ' if reason else ''}{reason}; host {os.uname().nodename} ends its ranks"
            )
            self._end(FAILED)

    # what the ranks say (rank_server.RankEvents)

    def advanced(self, rank: AttachedRank) -> None:
        """A rank has reached another stage."""
        said = {"rank": rank.rank, "stage": rank.stage, "calls": rank.calls}
        self._tell(Kind.STAGE, said)

    def committed(self, rank: AttachedRank, packed: bytes) -> None:
        """A rank has published: agents of other hosts need it too."""
        if self._member.meeting:
            self._tell(Kind.MODEX, {"rank": rank.rank}, packed)

    def left(self, news: News) -> None:
        """Ranks of this host finalize: those of other hosts hear of it too."""
        if self._member.meeting:
            self._tell(Kind.LEFT, {"ranks": news})

    def fence_complete(self) -> None:
        """All ranks of this host wait at the fence."""
        if self._member.meeting:
            self._tell(Kind.FENCED)
        else:
            self._modex.fenced()

    def aborted(self, rank: AttachedRank, code: int, reason: str) -> None:
        """A rank ends the job; it may end with its own code."""
        if self._aborting is None:
            self._aborting = rank
            header = {"rank": rank.rank, "pid": rank.client_pid, "code": code}
            self._tell(Kind.ABORTED, header, reason.encode())

    def disturbed(self, rank: AttachedRank, delivered: Sequence[int]) -> None:
        """There are no fault scripts without `ompy-run`."""

    def path_lost(self, rank: AttachedRank, report: Frame) -> None:
        """A rank has lost a path to another."""
        self._tell(Kind.PATHS, {**report.header, "rank": rank.rank}, report.body)

    def rail_event(self, rank: AttachedRank, event: Frame) -> None:
        """A rail of a rank has broken, or is healed."""
        self._tell(Kind.RAIL, {**event.header, "rank": rank.rank})

    def rails_carried(self, rank: AttachedRank, sample: Frame) -> None:
        """There is nobody who shows it without `ompy-run`."""

    def stands(self, rank: AttachedRank, where: Frame) -> None:
        """A rank says where it is: nobody asks, the launcher is another's."""

    def unexecutable(self, rank: AttachedRank, code: int, reason: str) -> None:
        """Programs are started by others."""

    def lost(self, rank: AttachedRank) -> None:
        """A rank's connection has ended, whatever the reason."""
        if self._phase is Phase.RUNNING and rank is not self._aborting:
            self._tell(Kind.LOST, {"rank": rank.rank, "pid": rank.client_pid})

    # ends

    def _see(self) -> None:
        """Whether nobody of this host is left, and nobody needs the coordinator here."""
        over = self._phase in {Phase.RELEASED, Phase.ENDING}
        if not over or self._running or self._newcomers:
            return
        self._tell(Kind.FINISHED)
        served = len(self._came) >= self._member.local_size
        if served and (self._coordinator is None or self._coordinator.done):
            self._loop.stop()

    def _end(self, code: int) -> None:
        """End the ranks of this host: SIGTERM, and SIGKILL to what is left after the grace."""
        if self._phase is Phase.ENDING:
            return
        self._phase, self._code = Phase.ENDING, code
        for _, connection, _ in self._newcomers.values():
            self._loop.remove_reader(connection)
            _refuse(connection, code, "")  # the reason has been told
        self._newcomers.clear()
        if self._aborting is not None and self._aborting.client is not None:
            self._aborting.client.close()  # so it ends, with its own code
            self._aborting.client = None
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process takes no SIGTERM
        self._loop.call_later(self._grace_ms / 1000, self._signal, signal.SIGKILL)
        # then what is left dies by its lifeline
        self._loop.call_later(self._grace_ms / 1000 + LINGER, self._loop.stop)
        self._see()

    def _signal(self, number: int) -> None:
        for rank, descriptor in self._running.items():
            if self._aborting is None or rank != self._aborting.rank:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)


def _refuse(connection: socket.socket, code: int, text: str) -> None:
    with connection, suppress(OSError):
        connection.send(encode(Kind.REFUSED, {"code": code}, text.encode()))


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
