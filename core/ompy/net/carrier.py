"""What the kernel says about an interface when it is asked."""

from __future__ import annotations

import fcntl
import socket
import struct
import sys
from typing import Final

_GET_FLAGS: Final = 0x8913  # Linux SIOCGIFFLAGS
_UP: Final = 0x1  # Linux IFF_UP
_RUNNING: Final = 0x40  # Linux IFF_RUNNING


def interface_value(
    probe: socket.socket, name: str, request: int, offset: int = 20
) -> bytes | None:
    """Four bytes of what an ioctl answers about an interface; None where it has none.

    By default the IPv4 address in it.
    """
    try:
        answer = fcntl.ioctl(probe.fileno(), request, struct.pack("256s", name.encode()[:15]))
    except OSError:
        return None
    return answer[offset : offset + 4]


def _flags(name: str) -> int | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        value = interface_value(probe, name, _GET_FLAGS, 16)
    return None if value is None else int.from_bytes(value[:2], sys.byteorder)


def is_running(name: str) -> bool:
    """Whether an interface is there and up, with something at the other end of its cable."""
    return (_flags(name) or 0) & (_UP | _RUNNING) == _UP | _RUNNING


def has_no_carrier(name: str) -> bool:
    """Whether an interface is there, and down or without anything at the other end of its cable."""
    flags = _flags(name)
    return flags is not None and flags & (_UP | _RUNNING) != _UP | _RUNNING
