"""Address vectors, and names of endpoints: where a domain listens, and which endpoint it is."""

from __future__ import annotations

import errno
from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple

from ompy.frameworks.nic.fabric import AddressVector
from ompy.net.base import Address

from ompy_components.nic.ofi_emulated.errors import refusal

NAME: Final = Struct("<IHI")  # rank, port, endpoint; the address of the interface follows
HOST_MAX: Final = 255  # bytes; arbitrary: longer than any address


class Name(NamedTuple):
    """An endpoint's address.

    Attributes:
        rank: whose it is.
        listener: of its domain.
        endpoint: its number in the domain.
    """

    rank: int
    listener: Address
    endpoint: int

    def packed(self) -> bytes:
        """For peers."""
        host, port = self.listener
        return NAME.pack(self.rank, port, self.endpoint) + host.encode()


def parse_name(data: bytes, ranks: int) -> Name:
    """The inverse of `packed`.

    Raises:
        FabricError: it is no name of an endpoint in a job of so many ranks.
    """
    host = data[NAME.size :]
    if not host.isascii() or not 0 < len(host) <= HOST_MAX:
        raise refusal(errno.EINVAL, f"{data!r} is no name of an emulated endpoint")
    rank, port, endpoint = NAME.unpack_from(data)
    if rank >= ranks or not port:
        raise refusal(errno.EINVAL, f"{data!r} names rank {rank} in a job of {ranks}")
    return Name(rank, Address(host.decode(), port), endpoint)


class EmulatedVector(AddressVector):
    """Peers by number."""

    def __init__(
        self,
        ranks: int,
        removed: Callable[[Address], None],
        closed: Callable[[EmulatedVector], None],
    ) -> None:
        """Of nobody yet.

        Args:
            ranks: of the job.
            removed: hears where a peer's domain listens that was forgotten.
            closed: hears that it is.
        """
        self._ranks = ranks
        self._removed = removed
        self._closed = closed
        self._names: dict[int, Name] = {}
        self._next = 0

    def insert(self, name: bytes) -> int:
        """The next number."""
        self._names[self._next] = parse_name(name, self._ranks)
        self._next += 1
        return self._next - 1

    def find(self, address: int) -> Name:
        """Who it is. Raises FabricError when nobody is."""
        found = self._names.get(address)
        if found is None:
            raise refusal(errno.EINVAL, f"the address vector has no address {address}")
        return found

    def remove(self, address: int) -> None:
        """Forget a peer; a link to its domain that nothing uses is closed."""
        name = self.find(address)
        del self._names[address]
        self._removed(name.listener)

    def close(self) -> None:
        """Forget all."""
        self._names.clear()
        self._closed(self)

    def reaches(self, listener: Address) -> bool:
        """Whether one of them is in the domain that listens there."""
        return any(name.listener == listener for name in self._names.values())
