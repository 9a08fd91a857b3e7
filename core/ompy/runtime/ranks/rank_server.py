"""How the MPI processes of one host make themselves known, and what they ask of their agent.

A rank inherits one end of a socket pair, its *registration socket*, which may have passed through
wrappers. An MPI process sends the agent a socket of its own through it and never reads from it, so
two processes of one rank cannot take each other's answers. The first is admitted, others refused.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_ARG, ERR_NO_MEM, ERR_OTHER, ERR_RANK
from ompy.engine.reactor import Loop
from ompy.runtime.connections.channel import Channel
from ompy.runtime.connections.control import KEY_SIZE, Frame, Kind, encode
from ompy.runtime.machines.agents.agent_table import RANK_WORDS
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.ranks.descendants import is_ending
from ompy.runtime.ranks.ranks import AttachedRank, LocalRank
from ompy.runtime.ranks.segments import SharedDescriptors

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.runtime.probes.prober import Prober

_CREDENTIALS: Final = struct.Struct("3i")  # Linux struct ucred


class RankServer:
    """Serves the registration sockets and connections of the ranks of one host."""

    def __init__(
        self,
        loop: Loop,
        tell: Callable[[Event], object],
        job_data: bytes,
        several_hosts: bool = False,
        job: Job | None = None,
    ) -> None:
        """Serve.

        Args:
            loop: watches the sockets.
            tell: gets what the agent's machine has to know.
            job_data: the job's key and the job.
            several_hosts: agents of other hosts may want to ask about paths.
            job: what runs, where it may grow.
        """
        self._job = job
        self._loop = loop
        self._tell = tell
        self._job_data = job_data
        self._several_hosts = several_hosts
        self._prober: Prober | None = None
        self._shared = SharedDescriptors()
        self._ranks: dict[int, AttachedRank] = {}
        self._registrations: dict[int, Channel] = {}
        self._users: dict[str, set[int]] = {}  # ranks that have asked for a memory, by its name
        self._ended: set[int] = set()  # ranks of worlds that came later
        self._handlers: dict[Kind, Callable[[_Call], None]] = {
            Kind.MEMORY: self._memory,
            Kind.DOORBELL: self._doorbell,
            Kind.WATCH: self._watch,
            Kind.UNWATCH: self._unwatch,
            Kind.OUTAGES: self._outages,
            Kind.LEAVES: self._leaves,
            Kind.PLACED: self._placed,
        }

    def add(self, rank: LocalRank) -> None:
        """Open the registration socket of a rank that was started."""
        self._ranks[rank.rank] = rank
        self._registrations[rank.rank] = Channel(
            self._loop,
            rank.process.registration,
            lambda frame: self._register(rank, frame),
            lambda _reason: None,  # nobody holds the other end any more, or nonsense came in
        )

    def widen_job(self, job: Job, job_data: bytes) -> None:
        """The job has one world more; those who come hear so."""
        self._job, self._job_data = job, job_data

    def forget_rank(self, rank: LocalRank) -> None:
        """Nothing is left of a rank of a world that came later, of which there may be many."""
        if self._job is None or rank.rank < self._job.worlds[0].size:
            return
        self._registrations.pop(rank.rank).close()
        self.hang_up(rank.rank)
        if rank.lifeline >= 0:
            os.close(rank.lifeline)
            rank.lifeline = -1
        self._shared.forget_doorbell(rank.local_rank)
        self._ended.add(rank.rank)
        world, node = self._job.world_of(rank.rank), self._job.placements[rank.rank].node
        members = range(world.first, world.first + world.size)
        here = {member for member in members if self._job.placements[member].node == node}
        if here <= self._ended:  # one that lives may not have asked yet for what the others had
            self._ended -= here
            self._forget_memory_of(here)

    def _forget_memory_of(self, world: set[int]) -> None:
        """Memory between two worlds is for both or none: one of them has ended."""
        for name in [name for name, users in self._users.items() if users & world]:
            self._shared.forget_memory(name)
            del self._users[name]

    def hear_out(self, rank: LocalRank) -> None:
        """Handle all a rank has said until now."""
        while self._registrations[rank.rank].read():
            pass
        while rank.client is not None and rank.client.read():
            pass

    def say(self, rank: int, kind: Kind, header: Mapping[str, Any], body: bytes = b"") -> None:
        """Say a word to an MPI process; nothing happens if it is not connected."""
        client = self._ranks[rank].client
        if client is not None:
            client.send(kind, header, body)

    def hang_up(self, rank: int) -> None:
        """Close the connection to an MPI process."""
        client, self._ranks[rank].client = self._ranks[rank].client, None
        if client is not None:
            client.close()

    def _register(self, rank: LocalRank, frame: Frame) -> None:
        if frame.kind is Kind.HELLO and len(frame.descriptors) == 1:
            connection = socket.socket(fileno=frame.descriptors[0])
            if rank.client_pid:
                _refuse_entry(connection, rank)
            else:
                self.let_in(rank, connection)
            return
        _close_descriptors(frame.descriptors)
        if frame.kind is Kind.UNEXECUTABLE:
            reason = frame.body.decode(errors="replace")
            code = {"code": frame.header["code"]}
            self._tell(Event(Seen.UNEXECUTABLE, rank.rank, None, code, reason.encode()))

    def let_in(self, rank: AttachedRank, connection: socket.socket) -> None:
        """Serve an MPI process as a rank, over a connection that is ours now."""
        self._ranks[rank.rank] = rank
        rank.client_pid = peer_credentials(connection)[0]
        rank.client = client = Channel(
            self._loop,
            connection,
            lambda frame: self._serve(rank, client, frame),
            lambda _reason: self._client_gone(rank),
        )
        self._tell(Event(Seen.ATTACHED, rank.rank, None, {"pid": rank.client_pid}))

    def admit_rank(self, number: int) -> None:
        """Make it a rank: the key, the job, and a lifeline."""
        rank = self._ranks[number]
        assert rank.client is not None, "it has just come"
        lifeline, rank.lifeline = os.pipe()
        header = {"rank": number}
        if self._several_hosts:
            header["probes"] = self._paths.port()
        rank.client.send(Kind.ADMITTED, header, self._job_data, (lifeline,))
        os.close(lifeline)

    @property
    def _paths(self) -> Prober:
        """Asks over paths and answers; most jobs of one host never need it."""
        if self._prober is None:
            from ompy.runtime.probes.prober import Prober

            def rules() -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = json.loads(self._job_data[KEY_SIZE:])["faults"]
                return found

            self._prober = Prober(
                self._loop, self._job_data[:KEY_SIZE], rules, one_host=not self._several_hosts
            )
        return self._prober

    def _client_gone(self, rank: AttachedRank) -> None:
        if self._prober is not None:
            self._prober.gone(rank.rank)
        rank.client = None
        clean_up_after(rank)
        self._tell(Event(Seen.CLIENT_GONE, rank.rank))

    def _serve(self, rank: AttachedRank, client: Channel, frame: Frame) -> None:
        _close_descriptors(frame.descriptors)
        if frame.kind in RANK_WORDS:
            self._tell(Event(Seen.RANK, rank.rank, frame.kind, frame.header, frame.body))
        elif frame.kind in self._handlers:
            self._handlers[frame.kind](_Call(rank, client, frame))
        else:
            client.close()
            self._client_gone(rank)

    def _memory(self, call: _Call) -> None:
        name, size = call.header["name"], call.header["size"]
        try:
            descriptor = self._shared.memory(name, size)
        except ValueError as problem:
            call.refuse(ERR_ARG, str(problem))
        except (OSError, OverflowError) as problem:
            call.refuse(ERR_NO_MEM, f"shared memory of {size} bytes: {problem}")
        else:
            self._users.setdefault(name, set()).add(call.rank.rank)
            call.reply(descriptors=(descriptor,))

    def _doorbell(self, call: _Call) -> None:
        wanted = call.header["local_rank"]
        if not 0 <= wanted < len(self._ranks):
            text = f"there is no local rank {wanted}, {len(self._ranks)} are on this host"
            call.refuse(ERR_RANK, text)
            return
        try:
            call.reply(descriptors=(self._shared.doorbell(wanted),))
        except OSError as problem:
            call.refuse(ERR_OTHER, f"doorbell: {problem}")

    def _watch(self, call: _Call) -> None:
        client = call.client
        self._paths.watch(call.rank.rank, call.header, lambda said: client.send(Kind.PATH, said))

    def _unwatch(self, call: _Call) -> None:
        self._paths.unwatch(call.rank.rank, call.header["watch"])

    def _outages(self, call: _Call) -> None:
        self._paths.outages(call.rank.rank, call.header)

    def _leaves(self, call: _Call) -> None:
        call.rank.leaves = True

    def _placed(self, call: _Call) -> None:
        rows = self._job.rows_from(call.header["rank"]) if self._job is not None else []
        call.reply(json.dumps(rows).encode())


class _Call:
    """Something an MPI process asks, and the way to answer it."""

    def __init__(self, rank: AttachedRank, client: Channel, frame: Frame) -> None:
        self.rank = rank
        self.frame = frame
        self.header = frame.header
        self.client = client

    def reply(self, body: bytes = b"", descriptors: Sequence[int] = ()) -> None:
        self.client.send(Kind.REPLY, {"call": self.header["call"]}, body, descriptors)

    def refuse(self, code: int, text: str) -> None:
        header = {"call": self.header["call"], "code": code}
        self.client.send(Kind.REFUSED, header, text.encode())


def clean_up_after(rank: AttachedRank) -> None:
    """Remove what an MPI process has left that has ended; one that lives does so itself."""
    if rank.leaves and is_ending(rank.client_pid):
        from ompy.runtime.diagnosis.leftovers import remove_left  # late: few ranks leave anything

        rank.leaves = False
        remove_left(rank.client_pid)


def peer_credentials(connection: socket.socket) -> tuple[int, int]:
    """Process and user at the other end: who connected, listened or made the socket pair."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(credentials)
    return int(process), int(user)


def _refuse_entry(connection: socket.socket, rank: LocalRank) -> None:
    text = (
        f"rank {rank.rank} is process {rank.client_pid} already. A launched program may start one "
        "MPI process: start several programs with several ranks, separated by ':'"
    )
    with connection:
        connection.setblocking(False)
        connection.send(encode(Kind.REFUSED, {"code": ERR_OTHER}, text.encode()))


def _close_descriptors(descriptors: tuple[int, ...]) -> None:
    for number in descriptors:
        os.close(number)
