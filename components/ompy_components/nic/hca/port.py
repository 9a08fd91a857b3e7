"""The device's port: its socket, what waits to be sent, and whether the link is up.

Neighbouring packets of one size to one peer go to the kernel in one call, and come from it so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from ompy.frameworks.nic.stations import Stations
from ompy.net.base import RUN_MAX, RUN_PACKETS, Address, Datagram, LinkError, Network

# arbitrary: a run stays below what one send has room for, 65507 bytes
RUN_BYTES: Final = RUN_MAX - 4096
NEVER: Final = 1 << 63  # ns; arbitrary: later than anything


class Port:
    """A socket with a queue in front of it.

    Attributes:
        address: of the socket.
        blocked: the socket takes nothing more now.
        refused: whom the last packet was for that the network refused, or None if it took it.
    """

    def __init__(
        self,
        network: Network,
        host: str,
        told: Callable[[LinkError | None], object],
        stations: Stations,
    ) -> None:
        """Bind to an interface.

        Args:
            network: of the rank.
            host: address of the interface.
            told: called when a packet was refused, with the reason, and with None when the
                next one was taken.
            stations: of the device.

        Raises:
            LinkError: there is no socket to be had.
        """
        self._socket: Datagram = network.datagram(host, link=stations.link)
        self._socket.carries("nic.hca")
        self._stations = stations
        self._closed = False
        self.address = self._socket.address
        self.blocked = False
        self.refused: Address | None = None
        self._told = told
        self._waiting: deque[tuple[memoryview, Address, int]] = deque()
        self._room = memoryview(bytearray(RUN_MAX))
        self._readiness = network.readiness()
        self._readiness.add(self._socket, self)

    def put(self, packet: memoryview, to: Address, leaves: int = 0) -> None:
        """Send with the first `flush` from `leaves` on, ns; the clock sees to one then."""
        self._waiting.append((packet, to, leaves))
        if self._stations.runs:
            self._stations.at(leaves, self.flush)

    def flush(self, *, at_once: bool = False) -> None:
        """Hand the socket what waits, in runs, as long as it takes it.

        Only what has left the device by now, but with `at_once`.
        """
        blocked = False
        now = NEVER if at_once or not self._stations.runs else self._stations.now()
        while self._waiting and not blocked and not self._closed:
            if self._waiting[0][2] > now:
                break
            run, to = self._next_run(now)
            try:
                taken = self._socket.send_run(run, to)
            except LinkError as problem:
                self.refused = to
                self._drop(len(run))
                self._told(problem)
                continue
            if taken and self.refused is not None:
                self.refused = None
                self._told(None)
            self._drop(taken)
            blocked = taken < len(run)
        if blocked is not self.blocked:
            self.blocked = blocked
            self._readiness.want_write(self._socket, wanted=blocked)

    def _drop(self, count: int) -> None:
        for _ in range(min(count, len(self._waiting))):
            self._waiting.popleft()

    def _next_run(self, now: int) -> tuple[list[memoryview], Address]:
        first, to, _ = self._waiting[0]
        size = len(first)
        most = min(RUN_PACKETS, max(1, RUN_BYTES // size))
        run: list[memoryview] = []
        for packet, target, leaves in self._waiting:
            if len(run) == most or target != to or len(packet) > size or leaves > now:
                break
            run.append(packet)
            if len(packet) < size:
                break
        return run, to

    def take(self) -> Iterator[tuple[memoryview, Address]]:
        """Packets that have arrived in one run, which are there until the next call."""
        try:
            found = self._socket.receive_run_into(self._room)
        except LinkError as problem:
            self._told(problem)
            return
        if found is None:
            return
        total, size, sender = found
        for begin in range(0, total, size or 1):
            yield self._room[begin : min(begin + size, total)], sender

    def ready(self) -> bool:
        """Whether there is something to take, or room for what waits."""
        return self._sends() or bool(self._readiness.poll())

    def _sends(self) -> bool:
        """Whether `flush` would hand something over."""
        if not self._waiting or self.blocked:
            return False
        return not self._stations.runs or self._waiting[0][2] <= self._stations.now()

    def clear(self) -> None:
        """What waits is lost."""
        self._waiting.clear()

    def close(self) -> None:
        """Close the socket."""
        self._closed = True
        self._readiness.remove(self._socket)
        self._readiness.close()
        self._socket.close()
