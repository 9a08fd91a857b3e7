"""Arguments that are handles: what is of another kind is refused before anything is done."""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall

# by class the kinds that it was asked for and is of
_fitting: Final[dict[type, set[str]]] = {}


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
    known = _fitting.get(type(value))
    if known is None or kind not in known:
        _check_bases(type(value), kind, name)


def _check_bases(found: type, kind: str, name: str) -> None:
    """The same of a value of a class that nobody has asked for yet."""
    if all(each.__name__ != kind for each in found.__mro__):
        expected, got = f"mpi4py.MPI.{kind}", found.__name__
        text = f"Argument '{name}' has incorrect type (expected {expected}, got {got})"
        raise TypeError(text)
    _fitting.setdefault(found, set()).add(kind)
