"""Every parameter that the API's stubs call an int takes what has `__int__`, as mpi4py's do.

Asked of the calls themselves: a value whose conversion raises. mpi4py 4.1.2 converts all of them
before it looks at anything else, so the other arguments need not fit.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

STUBS = Path(MPI.__file__).with_suffix(".pyi")
# they end or start something; their integers are those of others
LEFT_OUT = {
    *("Abort", "Accept", "Close", "Connect", "Delete", "Disconnect", "Finalize", "Free", "Init"),
    *("Init_thread", "Join", "Spawn", "Spawn_multiple"),
}
SEQUENCES = {("Compute_dims", "dims")}  # or a number; mpi4py itself wants `__index__` there
VALUES = {"int": 0, "float": 0.0, "bool": False, "str": "x"}
NONE_MADE = {"Session", "Grequest", "Intercomm"}  # asked for their static methods alone


class Asked(Exception):
    """The value was converted."""


class Poison:
    """A number nobody gets. It has no `__index__`, as a float has none."""

    def __int__(self) -> int:
        raise Asked


class Parameter(NamedTuple):
    owner: str
    method: str
    name: str
    others: dict[str, str]  # the parameters and what the stubs call them
    unnamed: int  # how many of them are given by their place alone


def declared() -> Iterator[Parameter]:
    """What the stubs call an int, of every class and function."""
    tree = ast.parse(STUBS.read_text())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from _of(node, "", static=True)
        elif isinstance(node, ast.ClassDef):
            for each in node.body:
                if isinstance(each, ast.FunctionDef):
                    marks = {ast.unparse(mark) for mark in each.decorator_list}
                    static = "staticmethod" in marks
                    if marks <= {"staticmethod", "classmethod"} and (
                        static or "classmethod" in marks or node.name not in NONE_MADE
                    ):
                        yield from _of(each, node.name, static=static)


def _of(node: ast.FunctionDef, owner: str, *, static: bool) -> Iterator[Parameter]:
    if node.name in LEFT_OUT or node.name.startswith("_"):
        return
    places = [*node.args.posonlyargs, *node.args.args][0 if static else 1 :]
    every = {
        each.arg: ast.unparse(each.annotation) if each.annotation else ""
        for each in [*places, *node.args.kwonlyargs]
    }
    for name, kind in every.items():
        wanted = "int" in (word.strip() for word in kind.split("|"))
        if wanted and (node.name, name) not in SEQUENCES:
            unnamed = max(len(node.args.posonlyargs) - (not static), 0)
            yield Parameter(owner, node.name, name, every, unnamed)


PARAMETERS = list(declared())
CLASSES = sorted({each.owner for each in PARAMETERS})


def fitting(kind: str, comm: Any) -> Any:
    """Something that may stand there."""
    words = {
        "BufSpec": bytearray(8), "Buffer": bytearray(8), "Sequence": [0], "omm": comm,
        "Datatype": MPI.INT, "Info": MPI.INFO_NULL, "Group": comm.group, "PathLike": "x",
    }  # fmt: skip
    if kind in VALUES:
        return VALUES[kind]
    if kind == "Op":
        return MPI.SUM
    return next((made for word, made in words.items() if word in kind), None)


def objects(comm: Any, folder: Path) -> dict[str, Any]:
    """One of each class."""
    cart = comm.Create_cart([1])
    memory = MPI.buffer(bytearray(8))
    mode = MPI.MODE_RDWR | MPI.MODE_CREATE
    return {
        "Comm": comm, "Intracomm": comm, "Topocomm": cart, "Cartcomm": cart,
        "Graphcomm": comm.Create_graph([1], [0]),
        "Distgraphcomm": comm.Create_dist_graph_adjacent([0], [0]),
        "Group": comm.group, "Datatype": MPI.INT.Dup(), "Op": MPI.SUM, "Info": MPI.Info.Create(),
        "Status": MPI.Status(), "Request": MPI.Request(), "Message": MPI.Message(),
        "Prequest": comm.Psend_init(bytearray(8), 1, 0, 0), "Errhandler": MPI.ERRORS_RETURN,
        "Win": MPI.Win.Create(bytearray(8), 1, MPI.INFO_NULL, comm), "buffer": memory,
        "File": MPI.File.Open(comm, str(folder / "file"), mode), "Pickle": MPI.pickle,
    }  # fmt: skip


def answer(call: Any, parameter: Parameter, comm: Any, value: Any) -> str:
    """What a call says to the value; nothing where it is what it has to say."""
    words = {name: fitting(kind, comm) for name, kind in parameter.others.items()}
    words[parameter.name] = value
    placed = [words.pop(name) for name in list(words)[: parameter.unnamed]]
    try:
        call(*placed, **words)
    except Asked:
        return ""
    except TypeError as problem:
        text = str(problem)
        return "" if isinstance(value, str) and text == "an integer is required" else text
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return "it was not looked at"


@pytest.mark.filterwarnings("ignore:the 'buf' argument is not used")
@pytest.mark.parametrize("value", [Poison(), "0"], ids=["number", "text"])
@pytest.mark.parametrize("owner", CLASSES, ids=lambda name: name or "MPI")
def test_it_is_converted(owner: str, value: Any, tmp_path: Path) -> None:
    def program(process: RankProcess) -> dict[str, str]:
        comm = world_of(process).Dup()
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        target = objects(comm, tmp_path).get(owner) or getattr(MPI, owner) if owner else MPI
        return {
            f"{owner}.{each.method}({each.name})": answer(
                getattr(target, each.method), each, comm, value
            )
            for each in PARAMETERS
            if each.owner == owner
        }

    (said,) = virtual(1, program).results  # type: ignore[attr-defined]
    assert said
    assert {call: why for call, why in said.items() if why} == {}


def test_there_are_many() -> None:
    assert len(PARAMETERS) > 250
