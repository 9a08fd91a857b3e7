"""Ports, and the names under which they are published: the launcher's. Does no input or output.

Who accepts and who connects are paired in order, for each port apart. Both are told each other's
ranks, and a bridge by which their leaders meet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ompy.data.errors import ERR_NAME, ERR_PORT, ERR_SERVICE


class Refused(Exception):
    """What was asked cannot be.

    Attributes:
        code: error class.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Caller(NamedTuple):
    """Who waits for the other side.

    Attributes:
        rank: in the job.
        ask: number of its question.
        ranks: of the group that it leads, in the job.
    """

    rank: int
    ask: int
    ranks: Sequence[int]


class _Port:
    """One that is open: at most one of the two queues has anybody."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.accepting: deque[Caller] = deque()
        self.connecting: deque[Caller] = deque()


class Ports:
    """Those of one job."""

    def __init__(self, job_id: str) -> None:
        """None is open.

        Args:
            job_id: begins their names, so that another job's is known for one.
        """
        self._job_id = job_id
        self._opened = 0
        self._ports: dict[str, _Port] = {}
        self._names: dict[str, tuple[str, int]] = {}

    def open_port(self, owner: int) -> str:
        """A name that no other port has."""
        self._opened += 1
        name = f"ompy:{self._job_id}:{self._opened}"
        self._ports[name] = _Port(owner)
        return name

    def close_port(self, name: str) -> list[Caller]:
        """Nobody meets there any more. Those who wait there.

        Raises:
            Refused: ERR_PORT, there is none of that name.
        """
        port = self._port(name)
        del self._ports[name]
        return [*port.accepting, *port.connecting]

    def accept_at(self, name: str, caller: Caller) -> Caller | None:
        """Wait for somebody who connects, or take who does.

        Raises:
            Refused: ERR_PORT, there is none of that name.
        """
        port = self._port(name)
        return _pair(port.connecting, port.accepting, caller)

    def connect_to(self, name: str, caller: Caller) -> Caller | None:
        """Wait for somebody who accepts, or take who does.

        Raises:
            Refused: ERR_PORT, there is none of that name.
        """
        port = self._port(name)
        return _pair(port.accepting, port.connecting, caller)

    def withdraw(self, name: str, rank: int, ask: int) -> bool:
        """Who connects waits no longer.

        Returns:
            Whether it did: if not, somebody has accepted meanwhile, or the port has been closed.
        """
        connecting = self._ports[name].connecting if name in self._ports else ()
        for caller in connecting:
            if (caller.rank, caller.ask) == (rank, ask):
                self._ports[name].connecting.remove(caller)
                return True
        return False

    def _port(self, name: str) -> _Port:
        if name not in self._ports:
            ours = name.startswith(f"ompy:{self._job_id}:")
            why = "it has been closed, or never was open" if ours else "it is no port of this job"
            raise Refused(ERR_PORT, f"port {name!r}: {why}")
        return self._ports[name]

    def publish_name(self, service: str, port: str, owner: int) -> None:
        """Have a service name stand for a port, whether that is open or not.

        Raises:
            Refused: ERR_SERVICE, it does already.
        """
        if service in self._names:
            raise Refused(ERR_SERVICE, f"service {service!r} has been published already")
        self._names[service] = port, owner

    def unpublish_name(self, service: str, port: str) -> None:
        """It stands for it no longer.

        Raises:
            Refused: ERR_SERVICE, it does not.
        """
        if self._names.get(service, ("", 0))[0] != port:
            raise Refused(ERR_SERVICE, f"service {service!r} is not published for that port")
        del self._names[service]

    def lookup_name(self, service: str) -> str:
        """The port of a service.

        Raises:
            Refused: ERR_NAME, there is none.
        """
        if service not in self._names:
            raise Refused(ERR_NAME, f"no service {service!r} is published in this job")
        return self._names[service][0]

    def gone(self, rank: int) -> list[Caller]:
        """A rank has ended, with its ports and names. Those who wait at these."""
        for service in [name for name, (_, owner) in self._names.items() if owner == rank]:
            del self._names[service]
        for port in self._ports.values():
            for queue in (port.accepting, port.connecting):
                for caller in [one for one in queue if one.rank == rank]:
                    queue.remove(caller)
        return list(self._closed_with(rank))

    def _closed_with(self, rank: int) -> Iterator[Caller]:
        for name in [name for name, port in self._ports.items() if port.owner == rank]:
            yield from self.close_port(name)


def _pair(theirs: deque[Caller], ours: deque[Caller], caller: Caller) -> Caller | None:
    if theirs:
        return theirs.popleft()
    ours.append(caller)
    return None
