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

# code: GASNet's name for it, and what it means
_KNOWN: Final = {
    OK: ("GASNET_OK", "all is well"),
    ERR_NOT_INIT: ("GASNET_ERR_NOT_INIT", "init or attach has to be called first"),
    ERR_RESOURCE: ("GASNET_ERR_RESOURCE", "something has run out, or a peer is gone"),
    ERR_BAD_ARG: ("GASNET_ERR_BAD_ARG", "an argument is wrong, or the call is not allowed here"),
    ERR_NOT_READY: ("GASNET_ERR_NOT_READY", "the operation is not complete yet"),
    ERR_BARRIER_MISMATCH: ("GASNET_ERR_BARRIER_MISMATCH", "ranks gave a barrier different names"),
}
_UNKNOWN: Final = ("*unknown*", "no error of GASNet has this number")


def error_name(code: int) -> str:
    """GASNet's name for a code, as `GASNET_ERR_BAD_ARG`."""
    return _KNOWN.get(code, _UNKNOWN)[0]


def error_desc(code: int) -> str:
    """What a code means, in a few words."""
    return _KNOWN.get(code, _UNKNOWN)[1]


class GasnetError(RuntimeError):
    """A GASNet call failed.

    Attributes:
        code: GASNet's number for it.
        name: GASNet's name for it.
    """

    code: ClassVar[int] = ERR_RESOURCE
    name: ClassVar[str] = error_name(ERR_RESOURCE)

    def __str__(self) -> str:
        return f"{self.name}: {super().__str__()}"


class NotInitialised(GasnetError):
    """The call needs `init`, or `attach`, before it; or the rank has left."""

    code = ERR_NOT_INIT
    name = error_name(ERR_NOT_INIT)


class ResourceError(GasnetError):
    """Something has run out, or a peer is gone."""


class BadArgument(GasnetError):
    """An argument is wrong, or the call is not allowed here."""

    code = ERR_BAD_ARG
    name = error_name(ERR_BAD_ARG)


class CollectiveMismatch(BadArgument):
    """Members of a team make different calls, which the text names; the team is broken."""


class NotReady(GasnetError):
    """It is not complete."""

    code = ERR_NOT_READY
    name = error_name(ERR_NOT_READY)


class BarrierMismatch(GasnetError):
    """Ranks gave a barrier different names, or one of them said there is a mismatch."""

    code = ERR_BARRIER_MISMATCH
    name = error_name(ERR_BARRIER_MISMATCH)
