"""The agent's side: asks over paths for its ranks, and answers the agents of other hosts."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

from ompy.engine.reactor import Cancellable, Loop
from ompy.frameworks.paths.path_watch import PathVerdict
from ompy.net.carrier import has_no_carrier
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.outages import Outages
from ompy.runtime.probes.machine import PathProbe
from ompy.runtime.probes.probe_datagrams import (
    ANSWER,
    NONCE_SIZE,
    QUESTION,
    BadProbe,
    Message,
    ProbeSeal,
)

BURST: Final = 64  # arbitrary: bounded work for each turn of the loop
ROOM: Final = 2048  # bytes; arbitrary: more than a question has
S: Final = 1_000_000_000  # ns; Linux counts so
_PKTINFO: Final = struct.Struct("=i4s4s")  # Linux struct in_pktinfo: interface, source, target
_IP_PKTINFO: Final = 8  # Linux; the socket module has no name for it

Tell = Callable[[dict[str, Any]], object]


class _Watch(NamedTuple):
    """A path that a rank of this host wants to know about."""

    rank: int
    peer: int
    source: str
    target: tuple[str, int]
    rail: str
    probe: PathProbe
    tell: Tell


class Prober:
    """Asks and answers for one host of a job.

    Sockets are opened when they are first needed: `port` opens the one of all addresses, where
    other hosts are to ask. In a job of one host the agent asks itself, and listens at the addresses
    of its ranks' paths alone, which are loopback's unless somebody wants others.
    """

    def __init__(
        self,
        loop: Loop,
        job_key: bytes,
        rules: Callable[[], list[dict[str, Any]]],
        *,
        one_host: bool = False,
    ) -> None:
        """Prepare.

        Args:
            loop: of the agent.
            job_key: of the job.
            rules: the faults of the job's script, asked for when a rank says that it has some.
            one_host: nobody else asks.
        """
        self._loop = loop
        self._job_key = job_key
        self._rules = rules
        self._one_host = one_host
        self._seal: ProbeSeal | None = None
        self._sockets: dict[str, socket.socket] = {}  # by the address they are bound to
        self._nonce = os.urandom(NONCE_SIZE)
        self._numbers: dict[int, tuple[int, int]] = {}  # rank and its watch, by our number
        self._watches: dict[tuple[int, int], _Watch] = {}
        self._timers: dict[tuple[int, int], Cancellable] = {}
        self._outages: dict[int, Outages] = {}
        self._names: dict[str, str] = {}
        self._last = 0

    def port(self) -> int:
        """Where agents of other hosts ask; 0 if there is none."""
        return self._port("")

    def _port(self, address: str) -> int:
        try:
            bound: int = self._open(address).getsockname()[1]
        except OSError:
            return 0
        return bound

    def _open(self, address: str) -> socket.socket:
        """The socket bound to an address; empty is all of them."""
        if address not in self._sockets:
            made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            try:
                made.setblocking(False)
                made.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
                made.bind((address, 0))  # what is not of this job is dropped by its MAC
            except OSError:
                made.close()
                raise
            if self._seal is None:
                self._seal = ProbeSeal(self._job_key, self._nonce)
            self._sockets[address] = made
            self._loop.add_reader(made, partial(self._readable, made))
        return self._sockets[address]

    # -- what ranks want

    def watch(self, rank: int, header: dict[str, Any], tell: Tell) -> None:
        """A rank wants a path watched; `tell` gets what to tell it.

        Where there is no socket to be had, or the path is not one between two addresses of IP,
        nothing is ever told.
        """
        source, host = str(header["source"]), str(header["target"])
        if not (_is_address(source) and _is_address(host)):
            return
        at = self._port(self._bound(source)), self._port(self._bound(host))
        if not all(at):
            return
        key = rank, int(header["watch"])
        probe = PathProbe(header["interval"], header["turns"])
        target = host, int(header["port"]) or at[1]
        self._watches[key] = _Watch(
            rank, header["peer"], source, target, str(header["rail"]), probe, tell
        )
        self._last += 1
        self._numbers[self._last] = key
        self._turn(key, self._last, self._loop.time())

    def unwatch(self, rank: int, watch: int) -> None:
        """It does not need to know any more."""
        key = rank, watch
        if self._watches.pop(key, None) is not None:
            self._numbers = {n: other for n, other in self._numbers.items() if other != key}
            self._timers.pop(key).cancel()

    def gone(self, rank: int) -> None:
        """A rank has ended."""
        for owner, watch in list(self._watches):
            if owner == rank:
                self.unwatch(rank, watch)

    def close(self) -> None:
        """Ask and answer no more."""
        for rank, watch in list(self._watches):
            self.unwatch(rank, watch)
        for opened in self._sockets.values():
            self._loop.remove_reader(opened)
            opened.close()
        self._sockets.clear()

    def outages(self, rank: int, header: dict[str, Any]) -> None:
        """A rank has lasting faults, or one more has begun there."""
        rules = [FaultRule.from_dict(dict(values)) for values in self._rules()]
        fired = {int(index): at for index, at in header["fired"].items()}
        self._outages[rank] = Outages(rules, rank, header["began"], fired)

    # -- asking

    def _turn(self, key: tuple[int, int], number: int, at: float) -> None:
        watch = self._watches[key]
        before = watch.probe.verdict
        question = watch.probe.turn()
        message = Message(QUESTION, watch.rank, watch.peer, self._nonce, number, question)
        if question and not self._sending_blocked(watch.rank, watch.peer, watch.rail):
            self._ask(message, watch)
        pause = watch.probe.pause / S
        # in step, so that many turns take no longer than they should; but none is made up for
        at = max(at, self._loop.time() - pause / 2) + pause
        self._timers[key] = self._loop.call_at(at, self._turn, key, number, at)
        self._note(watch, key, before)

    def _ask(self, message: Message, watch: _Watch) -> None:
        """Send a question, unless there is no cable.

        What is offered to an interface without a carrier has the kernel ask for the neighbour in
        vain, and ask again a second later only: by then the cable may long be back.
        """
        if not has_no_carrier(watch.rail):
            self._send(message, watch.source, watch.target)

    def _note(self, watch: _Watch, key: tuple[int, int], before: PathVerdict) -> None:
        verdict = watch.probe.verdict
        if verdict is not before:
            header = {"watch": key[1], "verdict": verdict.value}
            watch.tell({**header, "unanswered": watch.probe.unanswered})

    def _send(self, message: Message, source: str, target: tuple[str, int]) -> None:
        """From an address of this host. What the kernel does not send has no answer."""
        assert self._seal is not None
        info = _PKTINFO.pack(0, socket.inet_aton(source), bytes(4))
        to = socket.inet_aton(target[0]), target[1]
        with suppress(OSError):
            self._open(self._bound(source)).sendmsg(
                [self._seal.pack(message, to)], [(socket.IPPROTO_IP, _IP_PKTINFO, info)], 0, target
            )

    # -- what comes in

    def _bound(self, address: str) -> str:
        """What the socket is bound to that has the traffic of an address of ours."""
        return address if self._one_host else ""

    def _readable(self, opened: socket.socket) -> None:
        for _ in range(BURST):
            try:
                data, ancillary, _, sender = opened.recvmsg(ROOM, socket.CMSG_SPACE(_PKTINFO.size))
            except BlockingIOError:
                return
            except OSError:  # what an ICMP message said about an earlier question
                continue
            for level, kind, content in ancillary:
                if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                    here = socket.inet_ntoa(_PKTINFO.unpack(content[: _PKTINFO.size])[1])
                    self._arrived(data, here, sender)

    def _arrived(self, data: bytes, here: str, sender: tuple[str, int]) -> None:
        assert self._seal is not None
        try:
            port = self._port(self._bound(here))
            message = self._seal.unpack(data, (socket.inet_aton(here), port))
        except BadProbe:
            return
        if message.kind == QUESTION:
            rail = self._rail(here) if self._outages else ""
            if not (
                self._receiving_blocked(message.peer, rail)
                or self._sending_blocked(message.peer, message.asker, rail)
            ):
                self._send(message._replace(kind=ANSWER), here, sender)
        elif message.nonce == self._nonce:
            self._answered(message, here, sender[0])

    def _answered(self, message: Message, here: str, sender: str) -> None:
        key = self._numbers.get(message.watch)
        if key is None:
            return
        watch = self._watches[key]
        if (here, sender) != (watch.source, watch.target[0]):
            return  # by another way than it was asked
        if self._receiving_blocked(watch.rank, watch.rail):
            return
        before = watch.probe.verdict
        watch.probe.answer(message.number)
        self._note(watch, key, before)

    # -- faults of the script

    def _sending_blocked(self, rank: int, receiver: int, rail: str) -> bool:
        outages = self._outages.get(rank)
        return outages is not None and outages.blocks_sending(receiver, rail, time.monotonic_ns())

    def _receiving_blocked(self, rank: int, rail: str) -> bool:
        outages = self._outages.get(rank)
        return outages is not None and outages.blocks_receiving(rail, time.monotonic_ns())

    def _rail(self, address: str) -> str:
        """The interface with an address."""
        if address not in self._names:
            from ompy.net.real import host_interfaces

            self._names = {found.address: found.name for found in host_interfaces()}
        return self._names.get(address, "")


def _is_address(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET, text)
    except OSError:
        return False
    return True
