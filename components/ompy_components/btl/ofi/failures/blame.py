"""What an error of the fabric says about: the operation, the path to the peer, or the device."""

from __future__ import annotations

import errno
from enum import Enum
from typing import Final

FI_ENOKEY: Final = 266  # libfabric: fi_errno.h


class Blame(Enum):
    """What an error says about."""

    ARGUMENT = "the operation"
    PATH = "the path to the peer"
    DEVICE = "the device"


_ARGUMENT: Final = frozenset(
    (
        errno.EACCES,
        errno.EKEYREJECTED,
        errno.EINVAL,
        errno.EPERM,
        errno.EFAULT,
        errno.ENOKEY,
        errno.EMSGSIZE,
        FI_ENOKEY,
    )
)
_PATH: Final = frozenset(
    (
        errno.EREMOTEIO,  # reference ofi.md A6, as the next six
        errno.EHOSTUNREACH,
        errno.ECONNABORTED,
        errno.ECONNRESET,
        errno.ENOTCONN,
        errno.EHOSTDOWN,
        errno.EIO,
        errno.ECONNREFUSED,  # what connecting ends with, and what is flushed with it
        errno.ETIMEDOUT,
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.ESHUTDOWN,
        errno.EPIPE,
        errno.ECANCELED,
        errno.ENOENT,
    )
)


def blame(number: int) -> Blame:
    """What an operation's errno is about."""
    if number in _ARGUMENT:
        return Blame.ARGUMENT
    return Blame.PATH if number in _PATH else Blame.DEVICE
