"""Every collective call of the API, by its name in `call_kinds.py`, on a communicator of two.

Each makes the call as a program would, and returns what came of it in values that can be compared.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from ompy import MPI
from ompy.frameworks.collectives.call_kinds import KINDS

COUNT = 4
Call = Callable[[Any], Any]
# see tests/sim/coll/test_between.py, tests/sim/io, tests/proc/launch/test_spawn.py
BETWEEN_GROUPS = frozenset({"Create_intercomm", "Merge", "Spawn", "Accept", "Connect"}) | {
    name for name in KINDS if name.lower().startswith("file.")
}


def _mine(comm: Any, count: int = COUNT) -> np.ndarray:
    return np.arange(count, dtype="i8") + 10 * (comm.rank + 1)


def _room(count: int = COUNT) -> np.ndarray:
    return np.full(count, -1, "i8")


def _at_root(comm: Any, root: int, count: int) -> np.ndarray | None:
    return _room(count) if comm.rank == root else None


def _arguments(comm: Any, name: str, root: int) -> tuple[tuple, dict, np.ndarray | None]:
    """Arguments of a call on buffers, and where its result is."""
    size, mine, room = comm.size, _mine(comm), _room()
    counts = [COUNT] * size
    whole, all_room = _mine(comm, COUNT * size), _room(COUNT * size)
    at_root = _at_root(comm, root, COUNT * size)
    places = list(range(0, COUNT * size * 8, COUNT * 8))
    rooted = {"root": root}
    if name == "Barrier":
        return (), {}, None
    if name == "Bcast":
        return (mine,), rooted, mine
    if name in {"Gather", "Gatherv"}:
        return (mine, at_root), rooted, at_root
    if name in {"Scatter", "Scatterv"}:
        return (whole if comm.rank == root else None, room), rooted, room
    if name in {"Allgather", "Allgatherv"}:
        return (mine, all_room), {}, all_room
    if name == "Alltoall":
        return (whole, all_room), {}, all_room
    if name == "Alltoallv":
        return ([whole, counts], [all_room, counts]), {}, all_room
    if name == "Alltoallw":
        types = [MPI.INT64_T] * size
        return ([whole, (counts, places), types], [all_room, (counts, places), types]), {}, all_room
    if name.startswith("Neighbor_"):
        return _neighbours(comm, name)
    if name == "Reduce":
        room = _at_root(comm, root, COUNT)
        return (mine, room), rooted, room
    if name == "Reduce_scatter_block":
        return (whole, room), {}, room
    if name == "Reduce_scatter":
        return (whole, room, counts), {}, room
    assert name in {"Allreduce", "Scan", "Exscan"}, name
    return (mine, room), {}, room


def _neighbours(comm: Any, name: str) -> tuple[tuple, dict, np.ndarray]:
    """As `_arguments`; in a line of two each has one neighbour and one that is PROC_NULL."""
    counts, whole, room = [COUNT] * 2, _mine(comm, COUNT * 2), _room(COUNT * 2)
    if name == "Neighbor_allgather":
        return (_mine(comm), room), {}, room
    if name == "Neighbor_allgatherv":
        return (_mine(comm), [room, counts]), {}, room
    if name == "Neighbor_alltoall":
        return (whole, room), {}, room
    if name == "Neighbor_alltoallv":
        return ([whole, counts], [room, counts]), {}, room
    assert name == "Neighbor_alltoallw", name
    places, types = (counts, [0, COUNT * 8]), [MPI.INT64_T] * 2
    return ([whole, places, types], [room, places, types]), {}, room


def _values(room: np.ndarray | None) -> Any:
    return None if room is None else room.tolist()


def _blocking(name: str, root: int, comm: Any) -> Any:
    positional, named, room = _arguments(comm, name, root)
    getattr(comm, name)(*positional, **named)
    return _values(room)


def _nonblocking(name: str, root: int, comm: Any) -> Any:
    positional, named, room = _arguments(comm, name, root)
    getattr(comm, f"I{name.lower()}")(*positional, **named).Wait()
    return _values(room)


def _persistent(name: str, root: int, comm: Any) -> Any:
    positional, named, room = _arguments(comm, name, root)
    request = getattr(comm, f"{name}_init")(*positional, **named)
    request.Start()
    request.Wait()
    request.Free()
    return _values(room)


def _objects(name: str, root: int, comm: Any) -> Any:
    mine = f"of {comm.rank}"
    if name in {"scatter", "alltoall", "neighbor_alltoall"}:
        mine = [f"{comm.rank} to {other}" for other in range(comm.size)]
    named = {"root": root} if name in {"bcast", "gather", "scatter", "reduce"} else {}
    return getattr(comm, name)(mine, **named)


def _made(name: str, comm: Any) -> Any:
    other = [1 - comm.rank]
    calls: dict[str, Callable[[], Any]] = {
        "Create_graph": lambda: comm.Create_graph([1, 2], [1, 0]),
        "Create_dist_graph_adjacent": lambda: comm.Create_dist_graph_adjacent(other, other),
        "Create_dist_graph": lambda: comm.Create_dist_graph([comm.rank], [1], other),
        "Dup": comm.Dup,
        "Idup": lambda: _waited(comm.Idup()),
        "Create": lambda: comm.Create(comm.group),
        "Split": lambda: comm.Split(0, -comm.rank),
        "Split_type": lambda: comm.Split_type(MPI.COMM_TYPE_SHARED),
        "Create_cart": lambda: comm.Create_cart([comm.size]),
        "Sub": lambda: comm.Sub([True]),
        "Shrink": comm.Shrink,
        "Ishrink": lambda: _waited(comm.Ishrink()),
    }
    made = calls[name]()
    found = made.size, made.rank
    made.Free()
    return found


def _waited(begun: tuple[Any, Any]) -> Any:
    made, request = begun
    request.Wait()
    return made


def _agreed(name: str, comm: Any) -> Any:
    flag = array("i", [6 | comm.rank])
    if name == "Agree":
        return comm.Agree(flag[0])
    comm.Iagree(flag).Wait()
    return flag[0]


def _window(name: str, comm: Any) -> Any:
    calls: dict[str, Callable[[], Any]] = {
        "Win.Create": lambda: MPI.Win.Create(bytearray(8), comm=comm),
        "Win.Create_dynamic": lambda: MPI.Win.Create_dynamic(comm=comm),
        "Win.Allocate": lambda: MPI.Win.Allocate(8, comm=comm),
        "Win.Allocate_shared": lambda: MPI.Win.Allocate_shared(8, comm=comm),
    }
    made = calls[name]()
    made.Free()
    return None


def _in_window(name: str, comm: Any) -> Any:
    window = MPI.Win.Create(bytearray(8), comm=comm)
    getattr(window, name)()
    return None


def every_call() -> dict[str, Call]:
    """What has to be called, by its name in `call_kinds.py`; also with another root."""
    made: dict[str, Call] = {}
    for name in (each for each in KINDS if each not in BETWEEN_GROUPS):
        plain = name.removesuffix("_init")
        if name.startswith("Win."):
            way = _in_window if name in {"Win.Fence", "Win.Free"} else _window
            made[name] = partial(way, name.removeprefix("Win.") if way is _in_window else name)
        elif name in {"Agree", "Iagree"}:
            made[name] = partial(_agreed, name)
        elif name in {"Dup", "Idup", "Sub", "Shrink", "Ishrink"} or name.startswith(
            ("Create", "Split")
        ):
            made[name] = partial(_made, name)
        elif name[0].islower():
            _both_roots(made, name, partial(_objects, name))
        elif name.endswith("_init"):
            _both_roots(made, name, partial(_persistent, plain))
        elif name.startswith("I"):
            _both_roots(made, name, partial(_nonblocking, name[1:].capitalize()))
        else:
            _both_roots(made, name, partial(_blocking, name))
    return made


def _both_roots(made: dict[str, Call], name: str, call: Callable[..., Any]) -> None:
    plain = name.removeprefix("I").removesuffix("_init").lower()
    made[name] = partial(call, 0)
    if plain in {"bcast", "gather", "gatherv", "scatter", "scatterv", "reduce"}:
        made[f"{name} from 1"] = partial(call, 1)


# what may meet: a window's own calls are in its own communicator
IN_WINDOWS = frozenset({"Win.Fence", "Win.Free"})


def pairs() -> list[tuple[str, str]]:
    """All pairs of different calls that members of one communicator can make at a time."""
    names = list(every_call())
    return [
        (left, right)
        for left in names
        for right in names
        if left != right and (left in IN_WINDOWS) == (right in IN_WINDOWS)
    ]
