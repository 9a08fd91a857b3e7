"""Arguments that are handles: what is of another kind is refused before anything is done."""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall

_fitting: Final[set[tuple[type, str]]] = set()  # classes that were asked for their bases, and fit


@ccall
def check_kind(value: Any, kind: str, name: str) -> None:
    """See that an argument is a handle of some kind.

    Args:
        value: the argument.
        kind: name of the class, which others may have been derived from.
        name: of the parameter.

    Raises:
        TypeError: it is something else; in mpi4py's words.
    """
    if (type(value), kind) not in _fitting:
        _check_bases(type(value), kind, name)


def _check_bases(found: type, kind: str, name: str) -> None:
    """The same of a value of a class that nobody has asked for yet."""
    if all(each.__name__ != kind for each in found.__mro__):
        expected, got = f"mpi4py.MPI.{kind}", found.__name__
        text = f"Argument '{name}' has incorrect type (expected {expected}, got {got})"
        raise TypeError(text)
    _fitting.add((found, kind))
