"""The parameters of the API as its stubs declare them, and something that may stand for each."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

STUBS = Path(MPI.__file__).with_suffix(".pyi")
# they end or start something; their parameters are those of others
LEFT_OUT = {
    *("Abort", "Accept", "Close", "Connect", "Delete", "Disconnect", "Finalize", "Free", "Init"),
    *("Init_thread", "Join", "Spawn", "Spawn_multiple"),
}
VALUES = {"int": 0, "float": 0.0, "bool": False, "str": "x"}
NONE_MADE = {"Session", "Grequest", "Intercomm"}  # asked for their static methods alone


class Parameter(NamedTuple):
    owner: str
    method: str
    name: str
    others: dict[str, str]  # the parameters and what the stubs call them
    unnamed: int  # how many of them are given by their place alone

    @property
    def kinds(self) -> set[str]:
        """What the stubs call it."""
        return {word.strip() for word in self.others[self.name].split("|")}


def declared() -> Iterator[Parameter]:
    """Every one, of every class and function."""
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
    for name in every:
        unnamed = max(len(node.args.posonlyargs) - (not static), 0)
        yield Parameter(owner, node.name, name, every, unnamed)


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


def owner_of(owner: str, comm: Any, folder: Path) -> Any:
    """What has the methods of a class: one of it, or the class; MPI itself for functions."""
    if not owner:
        return MPI
    made = objects(comm, folder)
    return made[owner] if owner in made else getattr(MPI, owner)


def call_with(call: Any, parameter: Parameter, comm: Any, value: Any) -> None:
    """Make a call with a value for one of its parameters."""
    words = {name: fitting(kind, comm) for name, kind in parameter.others.items()}
    words[parameter.name] = value
    placed = [words.pop(name) for name in list(words)[: parameter.unnamed]]
    call(*placed, **words)


def check_answers(
    owner: str,
    parameters: Iterable[Parameter],
    folder: Path,
    answer: Callable[[Any, Parameter, Any], str],
) -> None:
    """Ask all calls of a class; what they answer is why it is wrong, or nothing.

    Args:
        owner: name of the class; empty: the module.
        parameters: of all classes.
        folder: for files.
        answer: of a call, for one of its parameters; the last is a communicator to call it with.
    """

    def program(process: RankProcess) -> dict[str, str]:
        comm = world_of(process).Dup()
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        target = owner_of(owner, comm, folder)
        return {
            f"{owner}.{each.method}({each.name})": answer(getattr(target, each.method), each, comm)
            for each in parameters
            if each.owner == owner
        }

    (said,) = virtual(1, program).results  # type: ignore[attr-defined]
    assert said
    assert {call: why for call, why in said.items() if why} == {}
