"""How the MPI processes of one host make themselves known, and what they ask of their agent.

A rank inherits one end of a socket pair, its *door*, which may have passed through wrappers. An
MPI process sends the agent a socket of its own through it and never reads from it, so two
processes of one rank cannot take each other's answers. The first is welcomed, others refused.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from ompy.data.errors import ERR_ARG, ERR_NO_MEM, ERR_OTHER, ERR_PROC_FAILED, ERR_RANK
from ompy.engine.reactor import Loop
from ompy.frameworks.departures import FINALIZED
from ompy.runtime.channel import Channel
from ompy.runtime.control import KEY_SIZE, Frame, Kind, encode
from ompy.runtime.descendants import is_ending
from ompy.runtime.leaving import LeavingNews, News, for_rank
from ompy.runtime.modex import Answer, ModexStore
from ompy.runtime.ranks import AttachedRank, LocalRank, Stage
from ompy.runtime.segments import SharedDescriptors

if TYPE_CHECKING:
    from ompy.runtime.probes.prober import Prober

WRAPPER_GRACE: Final = 1.0  # s; arbitrary: for a wrapper to exit after its MPI process died
_CREDENTIALS: Final = struct.Struct("3i")  # Linux struct ucred


class RankEvents(Protocol):
    """What the agent wants to hear about its ranks."""

    def advanced(self, rank: AttachedRank) -> None:
        """It has reached another stage."""

    def committed(self, rank: AttachedRank, packed: bytes) -> None:
        """It has made `packed` visible."""

    def fence_complete(self) -> None:
        """All ranks of this host have come to the fence."""

    def aborted(self, rank: AttachedRank, code: int, reason: str) -> None:
        """It ends the job."""

    def disturbed(self, rank: AttachedRank, delivered: Sequence[int]) -> None:
        """It has told how often each fault has struck there."""

    def path_lost(self, rank: AttachedRank, report: Frame) -> None:
        """It has lost a path to another rank."""

    def rail_event(self, rank: AttachedRank, event: Frame) -> None:
        """A rail of its has broken, or is healed."""

    def rails_carried(self, rank: AttachedRank, sample: Frame) -> None:
        """It says what its rails have carried."""

    def stands(self, rank: AttachedRank, where: Frame) -> None:
        """It says where it is."""

    def unexecutable(self, rank: AttachedRank, code: int, reason: str) -> None:
        """Its program could not be executed."""

    def left(self, news: News) -> None:
        """Ranks of this host finalize; the others here know."""

    def lost(self, rank: AttachedRank) -> None:
        """Its MPI process went without finalizing, its wrapper lives on."""


class RankServer:
    """Serves the doors and connections of the ranks of one host."""

    def __init__(
        self,
        loop: Loop,
        events: RankEvents,
        modex: ModexStore,
        size: int,
        welcome: bytes,
        several_hosts: bool = False,
    ) -> None:
        """Serve.

        Args:
            loop: watches the sockets.
            events: is told.
            modex: what has been published.
            size: processes of the job.
            welcome: the job's key and the job.
            several_hosts: agents of other hosts may want to ask about paths.
        """
        self._loop = loop
        self._events = events
        self._modex = modex
        self._size = size
        self._welcome = welcome
        self._several_hosts = several_hosts
        self._prober: Prober | None = None
        self._shared = SharedDescriptors()
        self._leaving_news = LeavingNews(loop, self._pass_on)
        self._ranks: list[AttachedRank] = []
        self._doors: dict[int, Channel] = {}
        self._handlers: dict[Kind, Callable[[_Call], None]] = {
            Kind.COMMIT: self._commit,
            Kind.LOOKUP: self._lookup,
            Kind.FENCE: self._fence,
            Kind.MEMORY: self._memory,
            Kind.DOORBELL: self._doorbell,
            Kind.LEAVING: self._leaving_begun,
            Kind.FINALIZED: self._finalized,
            Kind.ABORT: self._abort,
            Kind.FAULTS: self._faults,
            Kind.WATCH: self._watch,
            Kind.UNWATCH: self._unwatch,
            Kind.OUTAGES: self._outages,
            Kind.PATHS: self._path_lost,
            Kind.RAIL: self._rail,
            Kind.CARRIED: self._carried,
            Kind.LEAVES: self._leaves,
            Kind.WHERE: self._where,
        }

    def add(self, rank: LocalRank) -> None:
        """Open the door of a rank that was started."""
        self._ranks.append(rank)
        self._doors[rank.rank] = Channel(
            self._loop,
            rank.process.door,
            lambda frame: self._knock(rank, frame),
            lambda _reason: None,  # nobody holds the other end any more, or nonsense came in
        )

    def hear_out(self, rank: LocalRank) -> None:
        """Handle all a rank has said until now."""
        while self._doors[rank.rank].read():
            pass
        while rank.client is not None and rank.client.read():
            pass

    def tell_departure(self, rank: int, reason: str) -> None:
        """Tell the MPI processes that `rank` has gone."""
        for other in self._ranks:
            if other.client is not None and other.rank != rank:
                other.client.send(Kind.DEPARTED, {"rank": rank}, reason.encode())

    def _pass_on(self, news: News) -> None:
        self.tell_leaving(news)
        self._events.left(news)

    def tell_leaving(self, news: News) -> None:
        """Tell the MPI processes that are not done themselves of ranks that finalize."""
        for rank, done, _ in news:
            if done:
                self._modex.depart(rank, FINALIZED)
        for other in self._ranks:
            if other.client is not None and other.stage is not Stage.FINALIZED:
                theirs = for_rank(news, other.rank)
                if theirs:
                    other.client.send(Kind.LEFT, {"ranks": theirs})

    def _knock(self, rank: LocalRank, frame: Frame) -> None:
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
            self._events.unexecutable(rank, frame.header["code"], reason)

    def let_in(self, rank: AttachedRank, connection: socket.socket) -> None:
        """Welcome an MPI process as a rank, and serve it over a connection that is ours now."""
        rank.client_pid = peer_credentials(connection)[0]
        client = Channel(
            self._loop,
            connection,
            lambda frame: self._serve(rank, client, frame),
            lambda _reason: self._client_gone(rank),
        )
        rank.client = client
        lifeline, rank.lifeline = os.pipe()
        header = {"rank": rank.rank}
        if self._several_hosts:
            header["probes"] = self._paths.port()
        client.send(Kind.WELCOME, header, self._welcome, (lifeline,))
        os.close(lifeline)
        for departed, reason in self._modex.departed.items():
            client.send(Kind.DEPARTED, {"rank": departed}, reason.encode())
        self._advance(rank, Stage.ATTACHED)

    def _advance(self, rank: AttachedRank, stage: Stage) -> None:
        rank.stage = stage
        if stage is Stage.FINALIZED:
            self._leaving_news.finalized(rank.rank)
        self._events.advanced(rank)

    @property
    def _paths(self) -> Prober:
        """Asks over paths and answers; most jobs of one host never need it."""
        if self._prober is None:
            from ompy.runtime.probes.prober import Prober

            def rules() -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = json.loads(self._welcome[KEY_SIZE:])["faults"]
                return found

            self._prober = Prober(
                self._loop, self._welcome[:KEY_SIZE], rules, one_host=not self._several_hosts
            )
        return self._prober

    def _client_gone(self, rank: AttachedRank) -> None:
        self._forget_paths(rank)
        rank.client = None
        clean_up_after(rank)
        if rank.stage is not Stage.FINALIZED:
            self._loop.call_later(WRAPPER_GRACE, self._miss, rank)

    def _miss(self, rank: AttachedRank) -> None:
        if rank.exit_status is None and rank.stage is Stage.INITIALIZED:
            self._events.lost(rank)

    def _serve(self, rank: AttachedRank, client: Channel, frame: Frame) -> None:
        _close_descriptors(frame.descriptors)
        handler = self._handlers.get(frame.kind)
        if handler is None:
            client.close()
            self._client_gone(rank)
        else:
            handler(_Call(rank, client, frame))

    def _commit(self, call: _Call) -> None:
        if call.rank.stage is Stage.ATTACHED:
            self._advance(call.rank, Stage.INITIALIZED)
        self._modex.commit(call.rank.rank, call.frame.body)
        self._events.committed(call.rank, call.frame.body)
        call.reply()

    def _lookup(self, call: _Call) -> None:
        wanted = call.header["rank"]
        if 0 <= wanted < self._size:
            self._modex.lookup(wanted, call.later(f"rank {wanted} "))
        else:
            call.refuse(ERR_RANK, f"there is no rank {wanted} in a job of {self._size}")

    def _fence(self, call: _Call) -> None:
        if self._modex.fence(call.rank.rank, call.later("the fence cannot complete: ")):
            self._events.fence_complete()

    def _memory(self, call: _Call) -> None:
        name, size = call.header["name"], call.header["size"]
        try:
            descriptor = self._shared.memory(name, size)
        except ValueError as problem:
            call.refuse(ERR_ARG, str(problem))
        except (OSError, OverflowError) as problem:
            call.refuse(ERR_NO_MEM, f"shared memory of {size} bytes: {problem}")
        else:
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

    def _leaving_begun(self, call: _Call) -> None:
        self._leaving_news.begun(call.rank.rank, call.header["told"])

    def _finalized(self, call: _Call) -> None:
        call.rank.calls = call.header.get("calls") or {}
        self._advance(call.rank, Stage.FINALIZED)
        call.reply()

    def _faults(self, call: _Call) -> None:
        self._events.disturbed(call.rank, call.header["delivered"])

    def _watch(self, call: _Call) -> None:
        client = call.client
        self._paths.watch(call.rank.rank, call.header, lambda said: client.send(Kind.PATH, said))

    def _unwatch(self, call: _Call) -> None:
        self._paths.unwatch(call.rank.rank, call.header["watch"])

    def _outages(self, call: _Call) -> None:
        self._paths.outages(call.rank.rank, call.header)

    def _forget_paths(self, rank: AttachedRank) -> None:
        if self._prober is not None:
            self._prober.gone(rank.rank)

    def _path_lost(self, call: _Call) -> None:
        self._events.path_lost(call.rank, call.frame)

    def _rail(self, call: _Call) -> None:
        self._events.rail_event(call.rank, call.frame)

    def _carried(self, call: _Call) -> None:
        self._events.rails_carried(call.rank, call.frame)

    def _where(self, call: _Call) -> None:
        self._events.stands(call.rank, call.frame)

    def _leaves(self, call: _Call) -> None:
        call.rank.leaves = True

    def _abort(self, call: _Call) -> None:
        reason = call.frame.body.decode(errors="replace")
        self._events.aborted(call.rank, call.header["code"], reason)


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

    def later(self, subject: str) -> Answer:
        """For the modex, which answers when it can; `subject` begins a refusal."""

        def answer(packed: bytes | None, why: str) -> None:
            if packed is None:
                self.refuse(ERR_PROC_FAILED, subject + why)
            else:
                self.reply(packed)

        return answer


def clean_up_after(rank: AttachedRank) -> None:
    """Remove what an MPI process has left that has ended; one that lives does so itself."""
    if rank.leaves and is_ending(rank.client_pid):
        from ompy.runtime.leftovers import remove_left  # late: few ranks leave anything

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
