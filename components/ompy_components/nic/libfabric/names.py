"""Names of endpoints over IP version 4: Linux's sockaddr_in, 16 bytes."""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy.net.base import Address

FAMILY: Final = 2  # Linux: AF_INET
_FAMILY: Final = Struct("=H")  # the host's order; what follows is in the network's
_REST: Final = Struct(">H4B8x")


def pack_name(address: Address) -> bytes:
    """The name of the endpoint at an address."""
    numbers = [int(part) for part in address.host.split(".")]
    return _FAMILY.pack(FAMILY) + _REST.pack(address.port, *numbers)


def unpack_name(name: bytes) -> Address:
    """The address in the name of an endpoint.

    Raises:
        ValueError: it is none of IP version 4.
    """
    if len(name) != _FAMILY.size + _REST.size or _FAMILY.unpack_from(name) != (FAMILY,):
        raise ValueError(f"{name!r} is no address of IP version 4")
    port, *numbers = _REST.unpack_from(name, _FAMILY.size)
    return Address(".".join(map(str, numbers)), port)
