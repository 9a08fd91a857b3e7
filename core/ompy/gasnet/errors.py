"""GASNet's errors: its codes, as exceptions.

Source: reference gasnet.md 1 (Errors).
"""

from __future__ import annotations

from typing import ClassVar, Final

OK: Final = 0
ERR_NOT_INIT: Final = 10001  # reference gasnet.md 1: the base is 10000
ERR_RESOURCE: Final = 10002  # reference gasnet.md 1
ERR_BAD_ARG: Final = 10003  # reference gasnet.md 1
ERR_NOT_READY: Final = 10004  # reference gasnet.md 1
ERR_BARRIER_MISMATCH: Final = 10005  # reference gasnet.md 1


class GasnetError(RuntimeError):
    """A GASNet call failed.

    Attributes:
        code: GASNet's number for it.
        name: GASNet's name for it.
    """

    code: ClassVar[int] = ERR_RESOURCE
    name: ClassVar[str] = "GASNET_ERR_RESOURCE"

    def __str__(self) -> str:
        return f"{self.name}: {super().__str__()}"


class NotInitialised(GasnetError):
    """The call needs `init`, or `attach`, before it; or the rank has left."""

    code = ERR_NOT_INIT
    name = "GASNET_ERR_NOT_INIT"


class ResourceError(GasnetError):
    """Something has run out, or a peer is gone."""


class BadArgument(GasnetError):
    """An argument is wrong, or the call is not allowed here."""

    code = ERR_BAD_ARG
    name = "GASNET_ERR_BAD_ARG"


class NotReady(GasnetError):
    """It is not complete."""

    code = ERR_NOT_READY
    name = "GASNET_ERR_NOT_READY"


class BarrierMismatch(GasnetError):
    """Ranks gave a barrier different names, or one of them said there is a mismatch."""

    code = ERR_BARRIER_MISMATCH
    name = "GASNET_ERR_BARRIER_MISMATCH"
