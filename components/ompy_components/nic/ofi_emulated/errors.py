"""Error numbers, and what they say. Those from 256 on are libfabric's own."""

from __future__ import annotations

import errno
from typing import Final

from ompy.frameworks.nic.fabric import FabricError

# reference: libfabric 1.17, fi_errno.h; these and the next three
ENOKEY: Final = 266
ETRUNC: Final = 265
EOPBADSTATE: Final = 258
EOVERRUN: Final = 268
ENOSYS: Final = errno.ENOSYS

_WORDS: Final = {
    errno.EIO: "Input/output error",
    errno.EACCES: "Permission denied",
    errno.EINVAL: "Invalid argument",
    errno.ENODEV: "No such device",
    errno.EADDRNOTAVAIL: "Cannot assign requested address",
    errno.ENOSYS: "Function not implemented",
    errno.EMSGSIZE: "Message too long",
    errno.EREMOTEIO: "Remote I/O error",
    errno.EHOSTDOWN: "Host is down",
    errno.EHOSTUNREACH: "No route to host",
    errno.ENOTCONN: "Transport endpoint is not connected",
    errno.ECONNABORTED: "Software caused connection abort",
    errno.ECONNRESET: "Connection reset by peer",
    errno.ETIMEDOUT: "Connection timed out",
    ENOKEY: "Required key not available",
    ETRUNC: "Truncation error",
    EOPBADSTATE: "Operation not permitted in current state",
    EOVERRUN: "Queue has been overrun",
}


def words(number: int) -> str:
    """What an error number says."""
    return _WORDS.get(number, f"error {number}")


def refusal(number: int, why: str) -> FabricError:
    """The exception for it."""
    return FabricError(number, f"{words(number)}: {why}")
