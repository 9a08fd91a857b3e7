"""Puts handlers in front of the API's methods: as a profiling library does (MPI 4.1, 15.2).

A handler gets the observer (the checker, or who traces calls), the site of the call, its name, the
method and the call's arguments; it makes the call, writes it down, and gives what the call gave.
What a call calls itself goes straight to the methods. What a callback of the program calls
meanwhile does not, if the observer `sees_callbacks`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from functools import update_wrapper
from types import FrameType
from typing import Any, Final, Protocol

from ompy import raw
from ompy.check.record import is_ours
from ompy.compiled import U64, cclass
from ompy.mpi.errors import MPIException

Handler = Callable[..., Any]
_frame = sys._getframe  # noqa: SLF001 - its only name
_CHECKER: Final = "ompy.check."
OURS: Final = ("ompy.mpi", "ompy.MPI", "mpi4py.MPI")  # modules that our classes say they are of


class Inside(Protocol):
    """Whether the calling thread is in a call already.

    Attributes:
        on: it is.
        began_in: the innermost frame of Python's when the call began, or None.
        quiet: nothing that is called meanwhile is the program's.
    """

    on: bool
    began_in: FrameType | None
    quiet: bool


class _OfThread(threading.local):
    on = False
    began_in: FrameType | None = None


@cclass
class Within:
    """The same, without the cost of a thread's own attributes in the thread that makes it.

    Attributes:
        main: of that thread.
        quiet: nothing that is called meanwhile is the program's.
    """

    _caller: Any
    _others: Any
    _thread: U64
    main: bool
    quiet: bool
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        """Of the calling thread, and of all others."""
        self._thread = raw.thread()
        self.main = False
        self._caller = None
        self.quiet = False
        self._others = _OfThread()

    @property
    def on(self) -> bool:
        """Whether the calling thread is in a call."""
        return self.main if raw.thread() == self._thread else bool(self._others.on)

    @on.setter
    def on(self, value: bool) -> None:
        if raw.thread() == self._thread:
            self.main = value
        else:
            self._others.on = value

    @property
    def began_in(self) -> FrameType | None:
        """Where the calling thread was in Python when it began the call it is in."""
        if raw.thread() != self._thread:
            return self._others.began_in  # type: ignore[no-any-return]
        return self._caller  # type: ignore[no-any-return]

    @began_in.setter
    def began_in(self, frame: FrameType | None) -> None:
        if raw.thread() == self._thread:
            self._caller = frame
        else:
            self._others.began_in = frame


class Observer(Protocol):
    """Whose handlers they are.

    Attributes:
        inside: of the calling thread.
        mark: of methods that have a handler of this observer's in front.
    """

    @property
    def inside(self) -> Inside:
        """Of the calling thread."""

    @property
    def mark(self) -> str:
        """Of methods that have a handler of this observer's in front."""

    def site(self, frame: FrameType | None) -> Any:
        """The line of the program that a call was made in."""

    def failed(self, at: Any, call: str, problem: MPIException) -> None:
        """A call has ended with an error."""

    def raised(self, at: Any, call: str, problem: Exception) -> None:
        """A call has raised an error of Python's."""


def plain(_checker: Observer, _at: Any, _call: str, original: Any, *args: Any, **named: Any) -> Any:
    """The handler of a call of which only errors matter."""
    return original(*args, **named)


def _is_of_checker(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__")
    return isinstance(name, str) and name.startswith(_CHECKER)


def interposed(checker: Observer, call: str, original: Any, handler: Handler) -> Any:
    """A function that has a handler make a call."""
    inside, site = checker.inside, checker.site
    sees_callbacks = getattr(checker, "sees_callbacks", False)

    def method(*args: Any, **named: Any) -> Any:
        within = inside.on
        caller: FrameType | None = _frame()
        while caller is not None and _is_of_checker(caller):  # compiled, they have no frames
            caller = caller.f_back
        if within and not (sees_callbacks and caller is not None and not is_ours(caller)):
            return original(*args, **named)
        outer = inside.began_in
        if within and (inside.quiet or caller is outer):
            return original(*args, **named)  # compiled code of ours has no frame: it is its call
        inside.on = True
        inside.began_in = caller
        at = site(caller)
        try:
            return handler(checker, at, call, original, *args, **named)
        except MPIException as problem:
            checker.failed(at, call, problem)
            raise
        except Exception as problem:
            checker.raised(at, call, problem)
            raise
        finally:
            inside.on = within
            inside.began_in = outer

    return update_wrapper(method, original)


def interpose_class(
    checker: Observer,
    kind: type,
    prefix: str,
    handlers: Mapping[str, Handler],
    others: Handler | None = plain,
) -> None:
    """Put handlers in front of the public methods of a class, and of what it is made of.

    Args:
        checker: the rank's.
        kind: a class of handles.
        prefix: of the names that calls have in reports, as "comm.".
        handlers: by method.
        others: of the other methods, whose errors only are looked at; None to leave them alone.
    """
    for base in kind.__mro__:
        if not base.__module__.startswith(OURS) or base.__name__ == "Handle":
            continue
        for name, value in list(vars(base).items()):
            handler = handlers.get(name, others)
            if name.startswith("_") or handler is None:
                continue
            made = _method(checker, prefix + name, value, handler)
            if made is not None:
                setattr(base, name, made)
    inherited = getattr(kind, "free", None)  # of all handles, so their base has it
    if "free" in handlers and not getattr(inherited, "ompy_checked", False):
        kind.free = _method(checker, f"{prefix}free", inherited, handlers["free"])  # type: ignore[attr-defined]


def _method(checker: Observer, call: str, value: Any, handler: Handler) -> Any:
    if isinstance(value, (property, staticmethod, type)):
        return None
    inner = value.__func__ if isinstance(value, classmethod) else value
    if not callable(inner) or getattr(inner, checker.mark, False):
        return None
    made = interposed(checker, call, inner, handler)
    setattr(made, checker.mark, True)
    return classmethod(made) if isinstance(value, classmethod) else made


def interpose_functions(checker: Observer, module: Any, handlers: Mapping[str, Handler]) -> None:
    """Put handlers in front of functions of the module `MPI`."""
    for name, handler in handlers.items():
        setattr(module, name, interposed(checker, f"MPI.{name}", getattr(module, name), handler))
