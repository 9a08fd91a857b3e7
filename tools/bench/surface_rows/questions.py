"""What every kind of object answers without an argument: found by its name, so what is new enters.

A method that only asks begins with `Get_` or `Is_`. A handle in its answer is freed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows import files, handles, local_calls
from tools.bench.surface_rows.rows import KEPT, Row, repeat
from tools.bench.surface_rows.sessions import session
from tools.bench.surface_rows.untimed import untimed_names

TOPOLOGIES: Final = ("Cartcomm", "Graphcomm", "Distgraphcomm")
QUESTIONS: Final = ("Get_", "Is_")


def rows(comm: Any) -> Iterator[Row]:
    """Of each kind, what no other family has."""
    timed = {row.method for family in (handles, files, local_calls) for row in family.rows(comm)}
    for kind, make in _subjects(comm).items():
        for name in questions(getattr(MPI, kind)):
            method = f"{kind}.{name}"
            if method in timed or (kind in TOPOLOGIES and hasattr(MPI.Comm, name)):
                continue
            yield Row(method, method, lambda _, make=make, name=name: _asked(make, name), False)


def questions(kind: type) -> list[str]:
    """The methods of a class that only ask, and want no argument."""
    names = [name for name in dir(kind) if name.startswith(QUESTIONS)]
    return [name for name in names if name not in untimed_names() and _wants_nothing(kind, name)]


def _wants_nothing(kind: type, name: str) -> bool:
    method = inspect.getattr_static(kind, name)
    if isinstance(method, (classmethod, staticmethod)):
        return False
    try:
        _, *parameters = inspect.signature(method).parameters.values()
    except ValueError:  # one that tells nothing of itself
        return False
    return all(each.default is not inspect.Parameter.empty for each in parameters)


def _subjects(comm: Any) -> Mapping[str, Callable[[], Any]]:
    return {
        "Comm": lambda: comm,
        "Cartcomm": lambda: comm.Create_cart([comm.size], periods=[True]),
        "Graphcomm": lambda: comm.Create_graph(range(1, comm.size + 1), range(comm.size)),
        "Distgraphcomm": lambda: comm.Create_dist_graph_adjacent([comm.rank], [comm.rank]),
        "Group": comm.Get_group,
        "Datatype": lambda: MPI.DOUBLE,
        "Op": lambda: MPI.SUM,
        "Info": MPI.Info.Create,
        "Status": MPI.Status,
        "Errhandler": lambda: MPI.ERRORS_RETURN,
        "Win": lambda: MPI.Win.Allocate(64, comm=comm),
        "File": lambda: files.nameless_file(comm),
        "Session": session,
    }


def _asked(make: Callable[[], Any], name: str) -> Callable[[int], None]:
    subject = make()
    KEPT.append(subject)
    ask = getattr(subject, name)

    def once() -> None:
        found = ask()
        if isinstance(found, (MPI.Info, MPI.Group)):
            found.Free()

    return repeat(once)
