"""Hears of what ends a program: an exception that nobody catches, or a call of Abort."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ompy.check.interposing import Observer, interpose_class

COMMS = ("Intracomm", "Cartcomm", "Graphcomm", "Distgraphcomm", "Intercomm")


def tell_of_end(observer: Observer, tell: Callable[[str, TracebackType | None], object]) -> None:
    """Have the end of the program told, for good.

    Args:
        observer: whose handler of Abort it is.
        tell: called with what ends it, before it does, and the traceback if there is one.
    """
    import ompy.MPI as MPI  # noqa: PLR0402 - as programs name it

    previous = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, traceback: Any) -> None:
        previous(kind, value, traceback)
        if issubclass(kind, Exception):
            tell(kind.__name__, traceback)

    def abort(_observer: Any, _at: Any, _call: str, original: Any, comm: Any, *args: Any) -> Any:
        tell("Abort", None)
        return original(comm, *args)

    sys.excepthook = hook
    for name in COMMS:
        interpose_class(observer, getattr(MPI, name), "comm.", {"Abort": abort}, None)
