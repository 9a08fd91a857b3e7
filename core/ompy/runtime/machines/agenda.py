"""The moments that a machine wants to be told of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Name = TypeVar("Name")


def earliest(*moments: float | None) -> float | None:
    """The first of some moments, of which each may be there or not."""
    return min((moment for moment in moments if moment is not None), default=None)


class Agenda(Generic[Name]):
    """Names, each with one moment at most."""

    def __init__(self) -> None:
        self._moments: dict[Name, float] = {}

    @property
    def due(self) -> float | None:
        """The first of them, s; None when there is none."""
        return min(self._moments.values(), default=None)

    def set(self, name: Name, moment: float) -> None:
        """Want `name` at a moment, in place of another one."""
        self._moments.pop(name, None)
        self._moments[name] = moment

    def drop(self, name: Name) -> None:
        """Want it no more."""
        self._moments.pop(name, None)

    def clear(self) -> None:
        """Want nothing more."""
        self._moments.clear()

    def __contains__(self, name: Name) -> bool:
        return name in self._moments

    def take(self, now: float) -> Iterator[Name]:
        """Those whose moment has come, the earliest first; what is set meanwhile comes later."""
        come = [(moment, name) for name, moment in self._moments.items() if moment <= now]
        for moment, name in sorted(come, key=lambda entry: entry[0]):
            if self._moments.get(name) == moment:
                del self._moments[name]
                yield name
