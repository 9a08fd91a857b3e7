"""Names that exist and say NotImplementedError: parts of MPI that ompy does not have yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# the classes a communicator is put together from, which users know by one name
PARTS = frozenset(("PointToPoint", "Collectives", "Communicators"))


def not_available(name: str, what: str) -> NotImplementedError:
    """The error for a call that is not there.

    Args:
        name: of the call.
        what: the part of MPI it belongs to.
    """
    return NotImplementedError(f"MPI.{name}: {what} are not available in this version of ompy")


def absent(owner: type, names: str, what: str, *, on_class: str = "") -> None:
    """Give a class methods that say they are not available.

    Args:
        owner: the class.
        names: of methods, separated by blanks.
        what: the part of MPI they belong to.
        on_class: those that are called on the class.
    """
    public = "Comm" if owner.__name__ in PARTS else owner.__name__
    for name in names.split():
        setattr(owner, name, _method(f"{public}.{name}", name, what))
    for name in on_class.split():
        method = _method(f"{public}.{name}", name, what)
        setattr(owner, name, classmethod(method))


def absent_function(name: str, what: str) -> Callable[..., Any]:
    """A function that says it is not available."""

    def call(*_: Any, **__: Any) -> Any:
        raise not_available(name, what)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Not available: {what} come later."
    return call


def _method(qualified: str, name: str, what: str) -> Callable[..., Any]:
    def call(_: Any, *__: Any, **___: Any) -> Any:
        raise not_available(qualified, what)

    call.__name__ = name
    call.__qualname__ = qualified
    call.__doc__ = f"Not available: {what} come later."
    return call
