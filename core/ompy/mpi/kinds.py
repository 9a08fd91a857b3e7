"""Arguments that are handles: what is of another kind is refused before anything is done."""

from __future__ import annotations

from typing import Final

_fitting: Final[set[tuple[type, str]]] = set()  # classes that were asked for their bases, and fit


def check_kind(value: object, kind: str, name: str) -> None:
    """See that an argument is a handle of some kind.

    Args:
        value: the argument.
        kind: name of the class, which others may have been derived from.
        name: of the parameter.

    Raises:
        TypeError: it is something else; in mpi4py's words.
    """
    found = type(value)
    if (found, kind) in _fitting:
        return
    if all(each.__name__ != kind for each in found.__mro__):
        expected, got = f"mpi4py.MPI.{kind}", found.__name__
        text = f"Argument '{name}' has incorrect type (expected {expected}, got {got})"
        raise TypeError(text)
    _fitting.add((found, kind))
