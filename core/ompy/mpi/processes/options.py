"""`mpi4py.rc`: options set before `MPI` is imported, or MPI4PY_RC_<OPTION> in the environment.

Importing this module does not start MPI.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

PREFIX: Final = "MPI4PY_RC_"
THREAD_LEVELS: Final = ("single", "funneled", "serialized", "multiple")
ERROR_KINDS: Final = ("default", "exception", "abort", "fatal")


class Options:
    """What the start of MPI can be told.

    Attributes:
        initialize: initialise MPI at import.
        threads: ask for threads at all.
        thread_level: the thread level asked for.
        finalize: finalise at the end of the interpreter; None means: if we initialised.
        fast_reduce: reduce objects along a tree.
        recv_mprobe: receive objects after a matched probe. Of no effect: the PML grows the
            memory of a receive, so that no probe is needed.
        irecv_bufsz: memory `irecv` receives objects into. Of no effect: it grows.
        errors: error handler of new communicators.
    """

    initialize: bool = True
    threads: bool = True
    thread_level: str = "multiple"
    finalize: bool | None = None
    fast_reduce: bool = True
    recv_mprobe: bool = True
    irecv_bufsz: int = 32768
    errors: str = "exception"

    def __init__(self, **options: Any) -> None:
        self(**options)

    def __call__(self, **options: Any) -> None:
        """Set options.

        Raises:
            TypeError: there is no such option; none is set then.
        """
        for name in options:
            _check_name(name)
        for name, value in options.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        pairs = ", ".join(f"{name}={getattr(self, name)!r}" for name in NAMES)
        return f"<mpi4py.rc: {pairs}>"


NAMES: Final = tuple(Options.__annotations__)


def _check_name(name: str) -> None:
    if name not in NAMES:
        raise TypeError(f"mpi4py.rc has no option {name!r}; there are {', '.join(NAMES)}")


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, RuntimeWarning, stacklevel=4)


def _flag(text: str) -> bool:
    """A yes or no as people write it."""
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on", "y", "t"}:
        return True
    if lowered in {"0", "false", "no", "off", "n", "f"}:
        return False
    raise ValueError(text)


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip().lower() not in words:
            raise ValueError(text)
        return text.strip().lower()

    return parse


_PARSERS: Final[dict[str, Callable[[str], Any]]] = {
    "initialize": _flag,
    "threads": _flag,
    "thread_level": _one_of(*THREAD_LEVELS),
    "finalize": _flag,
    "fast_reduce": _flag,
    "recv_mprobe": _flag,
    "irecv_bufsz": int,
    "errors": _one_of(*ERROR_KINDS),
}


def _boolean(value: Any) -> bool:
    return value is True or value is False or value in (0, 1)


_ACCEPTED: Final[dict[str, Callable[[Any], bool]]] = {
    "initialize": _boolean,
    "threads": _boolean,
    "thread_level": lambda value: value in THREAD_LEVELS,
    "finalize": lambda value: value is None or _boolean(value),
    "fast_reduce": _boolean,
    "recv_mprobe": _boolean,
    "irecv_bufsz": lambda value: isinstance(value, int) and value >= 0,
    "errors": lambda value: value in ERROR_KINDS,
}

# mpi4py 4.1.2 takes these two words for a flag of `rc`, and no others
WORDS: Final = {"yes": True, "no": False}
FLAGS: Final = tuple(name for name, parse in _PARSERS.items() if parse is _flag)

rc: Final = Options()


def settle_options() -> None:
    """Take in the environment, and put the default in the place of what is of no use.

    What is of no use is warned about (RuntimeWarning). Importing `MPI` calls this once; from
    then on `rc` says what holds.
    """
    for name in NAMES:
        text = os.environ.get(PREFIX + name.upper())
        if text is not None:
            try:
                setattr(rc, name, _PARSERS[name](text))
            except ValueError:
                _warn(f"environment variable {PREFIX}{name.upper()}: unexpected value {text!r}")
        value = getattr(rc, name)
        if name in FLAGS and value in WORDS:
            value = WORDS[value]
            setattr(rc, name, value)
        if not _ACCEPTED[name](value):
            _warn(f"mpi4py.rc.{name}: unexpected value {value!r}")
            setattr(rc, name, getattr(Options, name))
