"""Sessions: begun and ended, and what is made of their process sets."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows.rows import Row, repeat

WORLD: Final = "mpi://WORLD"
TAG: Final = "org.ompy.surface"  # arbitrary


def rows(_: Any) -> Iterator[Row]:
    """All of them."""
    for name, make in _made().items():
        made = name.partition(", ")[0]
        yield Row(made, name.partition(".")[2], lambda _, make=make: repeat(make()), False)


@cache
def session() -> Any:
    """One that stays until the program ends: Open MPI wants it to be finalized then."""
    found = MPI.Session.Init()
    atexit.register(found.Finalize)
    return found


def _made() -> dict[str, Callable[[], Callable[[], Any]]]:
    """What makes what is called, by the row's name."""
    return {
        "Session.Init, Finalize": lambda: lambda: MPI.Session.Init().Finalize(),
        "Session.Create_group, Free": lambda: _group_of(session()),
        "Group.Create_from_session_pset, Free": lambda: _group_by_class(session()),
        "Session.Get_nth_pset": lambda: _first_set(session()),
        "Session.Get_pset_info, Free": lambda: _hints_of(session()),
        "Intracomm.Create_from_group, Free": lambda: _communicator_of(session()),
    }


def _group_of(begun: Any) -> Callable[[], Any]:
    return lambda: begun.Create_group(WORLD).Free()


def _group_by_class(begun: Any) -> Callable[[], Any]:
    return lambda: MPI.Group.Create_from_session_pset(begun, WORLD).Free()


def _first_set(begun: Any) -> Callable[[], Any]:
    return lambda: begun.Get_nth_pset(0)


def _hints_of(begun: Any) -> Callable[[], Any]:
    return lambda: begun.Get_pset_info(WORLD).Free()


def _communicator_of(begun: Any) -> Callable[[], Any]:
    group = begun.Create_group(WORLD)
    return lambda: MPI.Intracomm.Create_from_group(group, TAG).Free()
