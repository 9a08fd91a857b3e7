"""Acts for a rank in the scheduler's process.

A stub is a program of the virtual world: it does what a process at the other end of a line asks, on
the simulated network of `ompy.net.virtual.virtual_network`. Each is a greenlet of the scheduler.
While its rank's process runs the stub waits for it, and with it the whole world: that is why one
rank runs at a time. A call that lets time pass gives the core away, and another rank's process
runs.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from ompy.data.errors import MPIError
from ompy.engine.virtual_engine import VirtualEngine
from ompy.frameworks.wireup import WireUp
from ompy.net.base import Address, Link, LinkError, Stream
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.outages import Outages
from ompy.net.virtual.virtual_network import (
    VirtualDatagram,
    VirtualListener,
    VirtualNetwork,
    VirtualReadiness,
    VirtualSource,
    VirtualStream,
)
from ompy.runtime.diagnosis.rank_report import SHORT_SIGNAL
from ompy.runtime.probes.machine import PathProbe
from ompy.runtime.probes.virtual_agents import VirtualAgents, VirtualWatch
from ompy.runtime.simulation.host_memory import Segments
from ompy.runtime.simulation.line import Line, LineClosed
from ompy.runtime.simulation.told_calls import ToldCalls

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.runtime.exploration.exchange import Exchange

_Link = tuple[int, int, int, int] | None  # a `Link`'s numbers


def _named(link: _Link) -> Link | None:
    return Link(*link) if link is not None else None


THREADS: Final = "several threads of it are in calls of MPI: a virtual world runs one of each rank"
ANSWERS: Final = 1.0  # s of real time; arbitrary: C code of a program's answers no signal


class RankEnded(Exception):
    """A rank's process has ended the world.

    Attributes:
        code: the exit code of the job.
        aborted: it was on purpose.
        killed: its process has gone without a word.
    """

    def __init__(
        self, code: int, text: str, *, aborted: bool = False, killed: bool = False
    ) -> None:
        super().__init__(text)
        self.code = code
        self.aborted = aborted
        self.killed = killed


class Unfit(Exception):
    """A rank does what no virtual world can be of."""


class Launcher(Protocol):
    """Who answers what ranks ask of one."""

    @property
    def job(self) -> Job:
        """What runs, with the worlds that came later."""

    def asked(self, rank: int, header: Mapping[str, Any], body: bytes) -> None:
        """A rank asks; the answer comes with its news."""


class Stuck(Exception):
    """A rank's process has run for too long without a call: time cannot go on."""


class ServedNetwork(VirtualNetwork):
    """A network that remembers who is at the other end of an accepted connection."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.peers: dict[Stream, Address] = {}

    def _wrap_stream(self, stream: Stream, peer: Address) -> Stream:
        self.peers[stream] = peer
        return stream


class RankStub(ToldCalls):
    """One rank, as the scheduler's process has it.

    Attributes:
        rank: which.
        news: ranks that have left or ended, and verdicts on paths, to be told with the next answer.
        outages: the lasting faults of the rank.
        report: what the rank said at its end: counts and strikes.
        calls: the account of its collective calls (`call_account.py`), once it has finalized.
        asks: the batch of calls that it has made last.
        checked: entries of the record of its calls, where the program is checked.
        done: its process has come to its end.
        in_exchange: it waits for a message, in a world that is explored.
    """

    def __init__(
        self,
        line: Line,
        process: int,
        engine: VirtualEngine,
        network: ServedNetwork,
        wireup: WireUp,
        patience: float,
        agents: VirtualAgents,
        rules: Sequence[FaultRule],
        segments: Segments,
        launcher: Launcher | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        """Act for the process at the other end of `line`.

        Args:
            line: to it.
            process: its number.
            engine: the rank's.
            network: the rank's.
            wireup: the rank's.
            patience: seconds of real time it may run without a call.
            agents: of the world.
            rules: of its fault script.
            segments: of its host.
            launcher: who answers what a rank asks of one.
            exchange: matches its messages, in a world that is explored.
        """
        self._launcher = launcher
        self._exchange = exchange
        self.in_exchange = False
        self.rank = engine.rank
        self.news: list[tuple[Any, ...]] = []
        self.standing: dict[str, Any] = {}
        self.threads = False  # several of the rank's are in calls of MPI, as it said when asked
        self.outages: Outages | None = None
        self.report: dict[str, Any] = {}
        self.calls: dict[str, Any] = {}
        self.asks: list[tuple[Any, ...]] = []
        self.checked: list[tuple[Any, ...]] = []
        self.done = False
        self._in_question = False
        self._line = line
        self._process = process
        self._engine = engine
        self._network = network
        self._wireup = wireup
        self._patience = patience
        self._agents = agents
        self._rules = rules
        self._segments = segments
        self._watches: dict[int, VirtualWatch] = {}
        self._sources: dict[int, VirtualSource] = {}
        self._sets: dict[int, VirtualReadiness] = {}
        self._last = 0

    def serve(self) -> None:
        """Let the rank's process run and do what it asks, until it ends.

        Raises:
            RankEnded: it has ended the world.
            Stuck: it does not come back.
        """
        kind, value = "ok", None
        while not self.done:
            news, self.news = self.news, []
            try:
                batch = self._question(kind, value, news, self._ready())
            except LineClosed:
                raise RankEnded(1, "its process has gone", killed=True) from None
            except TimeoutError:
                raise Stuck(f"rank {self.rank} has computed for {self._patience:g} s") from None
            kind, value = self._run(batch)

    def kill_process(self) -> None:
        """Kill it, while it waits for an answer; nothing is heard of it any more."""
        self.done = True
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        self._network.end_connections()

    def ask(self) -> dict[str, Any]:
        """Where the rank's process is; empty when it does not say. The world is at its end.

        One that computes is asked by a signal, which it answers wherever it is.
        """
        said: Any = None
        try:
            if self._in_question:
                os.kill(self._process, SHORT_SIGNAL)
                with suppress(TimeoutError):  # it waits: an exception came when it had just called
                    said = self._line.receive(ANSWERS)
            if said is None or said[0][0] != "here":
                self._send("where")
            while said is None or said[0][0] != "here":  # its call may come before
                said = self._line.receive(ANSWERS)
        except (LineClosed, ProcessLookupError, TimeoutError):
            return {}
        self.standing = said[0][2]
        found = dict(said[0][1])
        self.threads = found.pop("threads", False)
        return found

    @property
    def line(self) -> Line:
        """To the rank's process."""
        return self._line

    def ask_fork(self) -> None:
        """Have the rank's process fork; it waits for an answer, and so will the other."""
        self._line.ask_fork()

    def forked(self) -> tuple[socket.socket, int]:
        """The line to the new process, and its number; 0 if it could not."""
        return self._line.receive_end()

    def adopt(self, line: socket.socket, process: int) -> None:
        """Act for the new one from now on."""
        self._line.close()
        self._line = Line(line)
        self._process = process

    def stop(self) -> None:
        """Have the rank's process end, if it waits for an answer.

        Where an exception came in mid-question its next word would be about that one.
        """
        if not self.done and not self._in_question:
            try:
                self._run(self._question("stop"))
            except (LineClosed, TimeoutError, Unfit):
                return

    def _question(
        self,
        kind: str,
        value: Any = None,
        news: list[tuple[Any, ...]] | None = None,
        ready: dict[int, list[tuple[Any, bool, bool]]] | None = None,
    ) -> list[tuple[Any, ...]]:
        """Answer the rank's process, and wait for what it asks next."""
        self._send(kind, value, news or [], ready or {})
        self._in_question = True
        batch: list[tuple[Any, ...]] = self._line.receive(self._patience)
        self._in_question = False
        return batch

    def _send(self, kind: str, value: Any = None, news: Any = (), ready: Any = None) -> None:
        self._line.send((self._engine.now(), kind, value, news, ready or {}))

    def _run(self, batch: list[tuple[Any, ...]]) -> tuple[str, Any]:
        value = None
        self.asks = batch
        try:
            for name, *arguments in batch:
                call: Callable[..., Any] = getattr(self, f"do_{name}")
                value = call(*arguments)
        except LinkError as problem:
            return "link", str(problem)
        except MPIError as problem:
            return "refused", (problem.code, problem.detail)
        return "ok", value

    def _ready(self) -> dict[int, list[tuple[Any, bool, bool]]]:
        """What is ready in each set; nothing changes that before the rank's next call."""
        found = {}
        for number, members in self._sets.items():
            ready = members.poll()
            if ready:
                found[number] = [(one.owner, one.readable, one.writable) for one in ready]
        return found

    # -- engine and wire-up

    def do_nothing(self) -> None:
        """Take a batch in."""

    def do_after(self, delay: int) -> None:
        """Wake the rank later."""
        self._engine.scheduler.after(delay, self._engine.wake)

    def do_spend(self, duration: int) -> None:
        """Let time pass."""
        self._engine.spend(duration)

    def do_pause(self) -> None:
        """Let others run until there is news for the rank."""
        if not self.news:
            self._engine.pause("news")

    def do_ring(self, local_rank: int) -> None:
        """Wake a rank of this host."""
        self._network.doorbell(local_rank).ring()

    def do_segment(self, name: str, size: int) -> int:
        """Where a segment lies in the host's file."""
        return self._segments.place(name, size)

    def do_commit(self, entries: dict[str, bytes]) -> None:
        """Put on the board."""
        for key, entry in entries.items():
            self._wireup.publish(key, entry)
        self._wireup.commit()

    def do_lookup(self, rank: int) -> dict[str, bytes]:
        """Wait for a rank's entry."""
        return dict(self._wireup.lookup(rank))

    def do_fence(self) -> None:
        """Wait for everybody."""
        self._wireup.fence()

    def do_leaving(self, told: list[int]) -> None:
        """The rank has begun to finalize."""
        self._wireup.leaving(told)

    def do_placed(self, rank: int) -> list[tuple[int, int, int, str, int]]:
        """The ranks from this one on, as a `Proc` takes them."""
        assert self._launcher is not None, "of a whole world"
        return self._launcher.job.rows_from(rank)

    def do_ask(self, header: dict[str, Any], body: bytes) -> None:
        """Something that a launcher would be asked."""
        assert self._launcher is not None, "of a whole world"
        self._launcher.asked(self.rank, header, body)

    def do_finalized(self, calls: dict[str, Any]) -> None:
        """The rank has finalized: an account of its collective calls."""
        self.calls = calls

    def do_threads(self) -> None:
        """Several threads of the rank are in MPI."""
        raise Unfit(THREADS)

    def do_abort(self, code: int, reason: str) -> None:
        """End the world."""
        raise RankEnded(code % 256, reason, aborted=True)

    def do_end(self, code: int, report: dict[str, Any]) -> None:
        """The program has come to its end."""
        self.report = report
        self.done = True
        if self._exchange is not None:
            self._exchange.end_rank(self.rank)
        if code:
            why = report["why"]
            raise RankEnded(code, f"it ended with exit code {code}{why and ', ' + why}")

    def do_report(self, report: dict[str, Any]) -> None:
        """What the rank has to say before it ends the world."""
        self.report = report

    # -- messages of a world that is explored

    @property
    def exchange(self) -> Exchange:
        """What matches them."""
        assert self._exchange is not None, "the world is explored"
        return self._exchange

    def do_direct_send(
        self,
        number: int,
        to: tuple[int, int],
        source: int,
        tag: int,
        data: bytes,
        synchronous: bool,
        served: bool,
        buffered: bool,
        site: str,
        ready: bool = False,
    ) -> None:
        """A message."""
        how = {"synchronous": synchronous, "served": served, "buffered": buffered, "ready": ready}
        self.exchange.send_message((self.rank, number), to, source, tag, data, site=site, **how)

    def do_direct_receive(
        self, number: int, context: int, source: int, tag: int, served: bool, site: str
    ) -> None:
        """A receive."""
        self.exchange.post_receive((self.rank, number), context, source, tag, site, served=served)

    def do_checked(self, events: list[tuple[Any, ...]]) -> None:
        """Entries of the record of calls."""
        self.checked += events

    def do_direct_cancel(self, number: int, receive: int, site: str) -> bool | None:
        """Cancel a receive. False: it is matched already; else news say what became of it."""
        if not self.exchange.cancel_receive((self.rank, number), receive, site):
            return False
        self._await_choice()
        return None

    def do_direct_wait(self, number: int, wanted: list[int], others: bool, site: str) -> None:
        """Wait for operations, or for others that it does not name, or for news.

        Where there is no choice it may be woken for nothing: it looks at the time, and waits again.
        """
        self.exchange.await_operations((self.rank, number), wanted, inner=others, site=site)
        if not self.news or wanted:
            self._block_in_exchange()
        while number and self.exchange.waits(self.rank):
            self._block_in_exchange()
        self.exchange.end_wait(self.rank)
        self._take_news()

    def do_direct_poll(self, number: int, site: str, further: bool, only: int = 0) -> None:
        """Look what is complete."""
        self.exchange.poll_operations((self.rank, number), site, further=further, only=only)
        self._await_choice()

    def do_direct_look(
        self,
        number: int,
        context: int,
        source: int,
        tag: int,
        takes: bool,
        waits: bool,
        site: str,
    ) -> None:
        """Probe."""
        asks = (self.rank, number), context, source, tag
        self.exchange.probe_message(*asks, takes=takes, waits=waits, site=site)
        self._await_choice()

    def _await_choice(self) -> None:
        while self.exchange.waits(self.rank):
            self._block_in_exchange()
        self._take_news()

    def _block_in_exchange(self) -> None:
        self.in_exchange = True
        self._engine.pause("a message")
        self.in_exchange = False

    def _take_news(self) -> None:
        self.news += [("direct", *told) for told in self.exchange.news(self.rank)]

    # -- paths

    def sending_blocked(self, receiver: int, rail: str) -> bool:
        """Whether a lasting fault swallows all that the rank sends to another over a rail."""
        now = self._engine.now()
        return self.outages is not None and self.outages.blocks_sending(receiver, rail, now)

    def receiving_blocked(self, rail: str) -> bool:
        """Whether a lasting fault swallows all that comes in over a rail."""
        return self.outages is not None and self.outages.blocks_receiving(rail, self._engine.now())

    def do_outages(self, began: int, fired: dict[int, int]) -> None:
        """The lasting faults of the rank, and which have begun."""
        self.outages = Outages(self._rules, self.rank, began, fired)

    def do_watch_path(self, header: dict[str, Any]) -> None:
        """Have the agents ask over a path."""
        number = header["watch"]

        def tell() -> None:
            self.news.append(("path", number, watch.verdict.value, watch.probe.unanswered))
            self._engine.wake()

        probe = PathProbe(header["interval"], header["turns"])
        ends, addresses = (self.rank, header["peer"]), (header["source"], header["target"])
        watch = self._agents.begin(ends, addresses, probe, tell)
        self._watches[number] = watch

    def do_unwatch_path(self, number: int) -> None:
        """Have them ask no more."""
        self._watches.pop(number).end()

    # -- network

    def _keep(self, source: VirtualSource) -> int:
        self._last += 1
        self._sources[self._last] = source
        return self._last

    def _stream(self, number: int) -> VirtualStream:
        source = self._sources[number]
        assert isinstance(source, VirtualStream)
        return source

    def _datagram(self, number: int) -> VirtualDatagram:
        source = self._sources[number]
        assert isinstance(source, VirtualDatagram)
        return source

    def do_listen(self, host: str, ports: tuple[int, ...], link: _Link) -> tuple[int, int]:
        """Number and port of a listener."""
        listener = self._network.listen(host, ports, link=_named(link))
        assert isinstance(listener, VirtualListener)
        return self._keep(listener), listener.address.port

    def do_accept(self, number: int) -> tuple[int, str, int] | None:
        """Number and peer of a connection."""
        listener = self._sources[number]
        assert isinstance(listener, VirtualListener)
        stream = listener.accept()
        if stream is None:
            return None
        assert isinstance(stream, VirtualStream)
        return self._keep(stream), *self._network.peers[stream]

    def do_connect(
        self, address: tuple[str, int], source: str, link: _Link
    ) -> tuple[int, str, int]:
        """Number of a connection that is being made, and where its own end is."""
        stream = self._network.connect(Address(*address), source, link=_named(link))
        assert isinstance(stream, VirtualStream)
        return self._keep(stream), *stream.address

    def do_datagram(self, host: str, port: int, link: _Link) -> tuple[int, int]:
        """Number and port of a datagram socket."""
        socket = self._network.datagram(host, port, link=_named(link))
        assert isinstance(socket, VirtualDatagram)
        return self._keep(socket), socket.address.port

    def do_send(self, number: int, data: bytes) -> int:
        """Bytes taken."""
        return self._stream(number).send([memoryview(data)])

    def do_receive(self, number: int, size: int) -> bytes | None:
        """Bytes that have arrived; None for none, empty at the end."""
        room = bytearray(size)
        count = self._stream(number).receive_into(memoryview(room))
        return None if count < 0 else bytes(room[:count])

    def do_fail(self, number: int, why: str) -> None:
        """Break a connection."""
        self._stream(number).fail(why)

    def do_transmit(self, number: int, packet: bytes, address: tuple[str, int]) -> None:
        """Send a packet."""
        self._datagram(number).send(memoryview(packet), Address(*address))

    def do_take(self, number: int, size: int) -> tuple[bytes, str, int, int] | None:
        """A packet, its sender, and how many the port had no room for."""
        room = bytearray(size)
        socket = self._datagram(number)
        found = socket.receive_into(memoryview(room))
        if found is None:
            return None
        count, sender = found
        return bytes(room[:count]), *sender, socket.overrun()

    def do_close(self, number: int) -> None:
        """Close a source; no set watches it any more."""
        source = self._sources.pop(number)
        for members in self._sets.values():
            members.remove(source)
        source.close()

    def do_readiness(self, number: int) -> None:
        """A set of sources."""
        self._sets[number] = VirtualReadiness()

    def do_watch(self, number: int, source: int) -> None:
        """Add to a set."""
        self._sets[number].add(self._sources[source], source)

    def do_want_write(self, number: int, source: int, wanted: bool) -> None:
        """Watch for room, or no longer."""
        self._sets[number].want_write(self._sources[source], wanted=wanted)

    def do_unwatch(self, number: int, source: int) -> None:
        """Take out of a set."""
        self._sets[number].remove(self._sources[source])

    def do_unwatch_all(self, number: int) -> None:
        """Empty a set."""
        self._sets[number].close()
