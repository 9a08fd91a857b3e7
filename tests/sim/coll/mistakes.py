"""Random jobs in which now and then one member's arguments of a collective call are wrong.

Each call is given as what makes it rightly, and as several ways to make it wrongly. A job is a
sequence of them, which all members draw alike; of a wrong call one member makes it wrongly.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from ompy import MPI

Call = Callable[[Any], Any]  # told the communicator, or what else it is made with
ROOT = 1  # of the calls that have one
LARGE = 50_000  # numbers; more than a fragment of shared memory


class Unsendable:
    """An object that cannot be pickled."""

    def __reduce__(self) -> str:
        raise ValueError("this object cannot be sent")


def numbers(count: int) -> array[int]:
    """Room for numbers, all 1."""
    return array("i", [1] * count)


class Step(NamedTuple):
    """A call of a job.

    Attributes:
        right: makes it.
        wrong: make it wrongly.
        kept: it is made with a grid, a file, a window or two halves (`run_plan`).
    """

    right: Call
    wrong: tuple[Call, ...]
    kept: str = ""


def _sum_of(comm: Any, count: int) -> list[int]:
    room = numbers(count)
    comm.Allreduce(MPI.IN_PLACE, room)
    return room[:2].tolist()


def _freed(made: Any) -> bool:
    if made:
        made.Free()
    return True


def _waited(request: Any) -> bool:
    request.Wait()
    return True


def _started(request: Any) -> bool:
    request.Start()
    request.Wait()
    request.Free()
    return True


def _written_split(file: Any, room: array[int]) -> None:
    file.Write_all_begin(room)
    file.Write_all_end(room)


BLOCKING: dict[str, Step] = {
    "Barrier": Step(lambda c: c.Barrier(), ()),
    "Bcast": Step(
        lambda c: c.Bcast(numbers(4), root=ROOT),
        (
            lambda c: c.Bcast(None, root=ROOT),
            lambda c: c.Bcast(numbers(4), root=77),
            lambda c: c.Bcast(numbers(4), root="x"),
            lambda c: c.Bcast([numbers(4), 9, MPI.INT], root=ROOT),
        ),
    ),
    "Bcast, large": Step(
        lambda c: c.Bcast(numbers(LARGE), root=ROOT),
        (lambda c: c.Bcast(None, root=ROOT), lambda c: c.Bcast([numbers(4), 9, MPI.INT], ROOT)),
    ),
    "Gather": Step(
        lambda c: c.Gather(numbers(4), numbers(4 * c.size), ROOT),
        (
            lambda c: c.Gather(None, numbers(4 * c.size - 1), ROOT),
            lambda c: c.Gather(numbers(4), numbers(4 * c.size), -9),
        ),
    ),
    "Scatter": Step(
        lambda c: c.Scatter(numbers(4 * c.size), numbers(4), ROOT),
        (lambda c: c.Scatter(7, 8, ROOT), lambda c: c.Scatter(numbers(4), numbers(4), 99)),
    ),
    "Scatterv": Step(
        lambda c: c.Scatterv([numbers(4 * c.size), [4] * c.size], numbers(4), ROOT),
        (lambda c: c.Scatterv([numbers(4), [4] * (c.size - 1)], None, ROOT),),
    ),
    "Allgather": Step(
        lambda c: c.Allgather(numbers(4), numbers(4 * c.size)),
        (
            lambda c: c.Allgather(numbers(4), numbers(4 * c.size - 1)),
            lambda c: c.Allgather(None, None),
        ),
    ),
    "Allgather, large": Step(
        lambda c: c.Allgather(numbers(LARGE), numbers(LARGE * c.size)),
        (lambda c: c.Allgather(numbers(4), numbers(4 * c.size - 1)),),
    ),
    "Alltoallv": Step(
        lambda c: c.Alltoallv([numbers(c.size), [1] * c.size], [numbers(c.size), [1] * c.size]),
        (lambda c: c.Alltoallv([numbers(c.size), [1]], numbers(c.size)),),
    ),
    "Alltoallw": Step(
        lambda c: c.Alltoallw(
            [numbers(c.size), [1] * c.size, [4 * i for i in range(c.size)], [MPI.INT] * c.size],
            [numbers(c.size), [1] * c.size, [4 * i for i in range(c.size)], [MPI.INT] * c.size],
        ),
        (lambda c: c.Alltoallw(numbers(c.size), numbers(c.size)),),
    ),
    "Reduce": Step(
        lambda c: c.Reduce(numbers(4), numbers(4), root=ROOT),
        (
            lambda c: c.Reduce(None, None, root=ROOT),
            lambda c: c.Reduce(numbers(4), numbers(4), op=None, root=ROOT),
            lambda c: c.Reduce(numbers(4), numbers(4), root=50),
            lambda c: c.Reduce(numbers(4), numbers(4), root=None),
        ),
    ),
    "Allreduce": Step(
        lambda c: _sum_of(c, 4),
        (
            lambda c: c.Allreduce(numbers(4), numbers(5)),
            lambda c: c.Allreduce(numbers(4), numbers(4), op="+"),
            lambda c: c.Allreduce(numbers(4), [numbers(4), MPI.DATATYPE_NULL]),
        ),
    ),
    "Allreduce, large": Step(
        lambda c: _sum_of(c, LARGE),
        (lambda c: c.Allreduce(numbers(4), numbers(5)),),
    ),
    "Reduce_scatter": Step(
        lambda c: c.Reduce_scatter(numbers(2 * c.size), numbers(2)),
        (
            lambda c: c.Reduce_scatter(numbers(2 * c.size), numbers(2), [1] * (c.size + 1)),
            lambda c: c.Reduce_scatter(None, None),
        ),
    ),
    "Reduce_scatter_block": Step(
        lambda c: c.Reduce_scatter_block(numbers(2 * c.size), numbers(2)),
        (lambda c: c.Reduce_scatter_block(numbers(2), numbers(9)),),
    ),
    "Scan": Step(
        lambda c: c.Scan(numbers(4), numbers(4)),
        (
            lambda c: c.Scan(numbers(4), numbers(5)),
            lambda c: c.Scan(numbers(4), numbers(4), op=7),
        ),
    ),
    "Exscan, large": Step(
        lambda c: c.Exscan(numbers(LARGE), numbers(LARGE)),
        (lambda c: c.Exscan(numbers(4), numbers(5)),),
    ),
}
OBJECTS: dict[str, Step] = {
    "bcast": Step(
        lambda c: c.bcast(7, root=ROOT), (lambda c: c.bcast(7, 31), lambda c: c.bcast(7, "x"))
    ),
    "gather": Step(
        lambda c: c.gather(7, root=ROOT),
        (lambda c: c.gather(7, 31), lambda c: c.gather(7, None)),
    ),
    "scatter": Step(
        lambda c: c.scatter([7] * c.size, root=ROOT), (lambda c: c.scatter([7] * c.size, 31),)
    ),
    "allgather": Step(lambda c: c.allgather(3), (lambda c: c.allgather(Unsendable()),)),
    "alltoall": Step(lambda c: c.alltoall([3] * c.size), (lambda c: c.alltoall([3]),)),
    "reduce": Step(
        lambda c: c.reduce(1, root=ROOT),
        (lambda c: c.reduce(1, root=-4), lambda c: c.reduce(1, root="x")),
    ),
    "allreduce": Step(lambda c: c.allreduce(1), (lambda c: c.allreduce(Unsendable()),)),
    "scan": Step(lambda c: c.scan(1), (lambda c: c.scan(Unsendable()),)),
}
BACKGROUND: dict[str, Step] = {
    "Ibarrier": Step(lambda c: _waited(c.Ibarrier()), ()),
    "Ibcast": Step(
        lambda c: _waited(c.Ibcast(numbers(4), ROOT)),
        (
            lambda c: _waited(c.Ibcast(None, ROOT)),
            lambda c: _waited(c.Ibcast(numbers(4), 81)),
            lambda c: _waited(c.Ibcast(numbers(4), "x")),
        ),
    ),
    "Iallreduce": Step(
        lambda c: _waited(c.Iallreduce(numbers(4), numbers(4))),
        (
            lambda c: _waited(c.Iallreduce(numbers(4), numbers(5))),
            lambda c: _waited(c.Iallreduce(numbers(4), numbers(4), op=None)),
        ),
    ),
    "Ialltoall": Step(
        lambda c: _waited(c.Ialltoall(numbers(c.size), numbers(c.size))),
        (lambda c: _waited(c.Ialltoall(numbers(c.size - 1), None)),),
    ),
    "Igather": Step(
        lambda c: _waited(c.Igather(numbers(1), numbers(c.size), ROOT)),
        (lambda c: _waited(c.Igather(None, 1, ROOT)),),
    ),
    "Bcast_init": Step(
        lambda c: _started(c.Bcast_init(numbers(4), ROOT)),
        (lambda c: c.Bcast_init(None, ROOT), lambda c: c.Bcast_init(numbers(4), ROOT, info=3)),
    ),
    "Allreduce_init": Step(
        lambda c: _started(c.Allreduce_init(numbers(4), numbers(4))),
        (
            lambda c: c.Allreduce_init(numbers(4), numbers(5)),
            lambda c: c.Allreduce_init(numbers(4), numbers(4), op=None),
        ),
    ),
}
MAKING: dict[str, Step] = {
    "Dup": Step(lambda c: _freed(c.Dup()), (lambda c: c.Dup(info=7),)),
    "Idup": Step(
        lambda c: [(r.Wait(), _freed(d)) for d, r in [c.Idup()]], (lambda c: c.Idup(info="x"),)
    ),
    "Create": Step(
        lambda c: _freed(c.Create(c.Get_group())),
        (lambda c: c.Create(None), lambda c: c.Create(MPI.GROUP_NULL)),
    ),
    "Split": Step(
        lambda c: _freed(c.Split(c.rank % 2)),
        (lambda c: c.Split(-7), lambda c: c.Split("x"), lambda c: c.Split(0, None)),
    ),
    "Split_type": Step(
        lambda c: _freed(c.Split_type(MPI.COMM_TYPE_SHARED)),
        (lambda c: c.Split_type(-99), lambda c: c.Split_type(MPI.COMM_TYPE_SHARED, info=3)),
    ),
    "Create_cart": Step(
        lambda c: _freed(c.Create_cart([c.size])),
        (
            lambda c: c.Create_cart([99]),
            lambda c: c.Create_cart(["x"]),
            lambda c: c.Create_cart([c.size], [True, False]),
            lambda c: c.Create_cart(None),
        ),
    ),
    "Create_graph": Step(
        lambda c: _freed(c.Create_graph([1, *([2] * (c.size - 1))], [1, 0])),
        (lambda c: c.Create_graph([1], [99]), lambda c: c.Create_graph("x", [0])),
    ),
    "Create_dist_graph_adjacent": Step(
        lambda c: _freed(c.Create_dist_graph_adjacent([c.rank], [c.rank])),
        (
            lambda c: c.Create_dist_graph_adjacent([99], [0]),
            lambda c: c.Create_dist_graph_adjacent([0], [0], info=1),
            lambda c: c.Create_dist_graph_adjacent(3, 4),
        ),
    ),
    "Create_dist_graph": Step(
        lambda c: _freed(c.Create_dist_graph([c.rank], [1], [0])),
        (
            lambda c: c.Create_dist_graph([99], [1], [0]),
            lambda c: c.Create_dist_graph([0], [3], [0]),
        ),
    ),
    "Win.Allocate": Step(
        lambda c: _freed(MPI.Win.Allocate(8, comm=c)),
        (
            lambda c: MPI.Win.Allocate(-5, comm=c),
            lambda c: MPI.Win.Allocate("x", comm=c),
            lambda c: MPI.Win.Allocate(8, info=3, comm=c),
        ),
    ),
    "Win.Allocate_shared": Step(
        lambda c: _freed(MPI.Win.Allocate_shared(8, comm=c)),
        (lambda c: MPI.Win.Allocate_shared(-5, comm=c),),
    ),
    "Win.Create": Step(
        lambda c: _freed(MPI.Win.Create(numbers(4), comm=c)),
        (
            lambda c: MPI.Win.Create(b"read only", comm=c),
            lambda c: MPI.Win.Create(numbers(4), 0, comm=c),
        ),
    ),
    "Win.Create_dynamic": Step(
        lambda c: _freed(MPI.Win.Create_dynamic(comm=c)),
        (lambda c: MPI.Win.Create_dynamic(info=3, comm=c),),
    ),
}
GRID: dict[str, Step] = {
    "Neighbor_allgather": Step(
        lambda c: c.Neighbor_allgather(numbers(4), numbers(8)),
        (lambda c: c.Neighbor_allgather(numbers(4), numbers(9)),),
        "grid",
    ),
    "Neighbor_alltoall": Step(
        lambda c: c.Neighbor_alltoall(numbers(8), numbers(8)),
        (lambda c: c.Neighbor_alltoall(None, numbers(9)),),
        "grid",
    ),
    "neighbor_allgather": Step(
        lambda c: c.neighbor_allgather(1), (lambda c: c.neighbor_allgather(Unsendable()),), "grid"
    ),
    "neighbor_alltoall": Step(
        lambda c: c.neighbor_alltoall([1, 2]), (lambda c: c.neighbor_alltoall([1]),), "grid"
    ),
    "Ineighbor_allgather": Step(
        lambda c: _waited(c.Ineighbor_allgather(numbers(4), numbers(8))),
        (lambda c: _waited(c.Ineighbor_allgather(numbers(4), numbers(9))),),
        "grid",
    ),
    "Sub": Step(lambda c: _freed(c.Sub([True])), (lambda c: c.Sub([True, True]),), "grid"),
}
WINDOW: dict[str, Step] = {
    "Win.Fence": Step(lambda w: w.Fence(), (lambda w: w.Fence("x"),), "window"),
}
FILE: dict[str, Step] = {
    "File.Set_view": Step(
        lambda f: f.Set_view(0, MPI.INT),
        (
            lambda f: f.Set_view(-3, MPI.INT),
            lambda f: f.Set_view("x", MPI.INT),
            lambda f: f.Set_view(0, None),
            lambda f: f.Set_view(0, MPI.INT, datarep="nothing"),
            lambda f: f.Set_view(0, MPI.INT, info=3),
        ),
        "file",
    ),
    "File.Set_size": Step(
        lambda f: f.Set_size(64), (lambda f: f.Set_size(-1), lambda f: f.Set_size("x")), "file"
    ),
    "File.Preallocate": Step(
        lambda f: f.Preallocate(64),
        (lambda f: f.Preallocate(-1), lambda f: f.Preallocate("x")),
        "file",
    ),
    "File.Write_at_all": Step(
        lambda f: f.Write_at_all(4 * f.group_rank, numbers(4)),
        (
            lambda f: f.Write_at_all(-1, numbers(4)),
            lambda f: f.Write_at_all("x", numbers(4)),
            lambda f: f.Write_at_all(0, None),
            lambda f: f.Write_at_all(0, [numbers(4), 9, MPI.INT]),
        ),
        "file",
    ),
    "File.Read_all": Step(
        lambda f: f.Read_all(numbers(4)),
        (lambda f: f.Read_all(b"read only"), lambda f: f.Read_all(7)),
        "file",
    ),
    "File.Read_ordered": Step(
        lambda f: f.Read_ordered(numbers(4)), (lambda f: f.Read_ordered(7),), "file"
    ),
    "File.Iwrite_all": Step(
        lambda f: _waited(f.Iwrite_all(numbers(4))), (lambda f: f.Iwrite_all(7),), "file"
    ),
    "File.Write_all_begin": Step(
        lambda f: _written_split(f, numbers(4)),
        (lambda f: f.Write_all_begin(7),),
        "file",
    ),
    "File.Seek_shared": Step(
        lambda f: f.Seek_shared(0),
        (lambda f: f.Seek_shared(-5), lambda f: f.Seek_shared("x"), lambda f: f.Seek_shared(0, 77)),
        "file",
    ),
    "File.Sync": Step(lambda f: f.Sync(), (), "file"),
    "File.Set_info": Step(
        lambda f: f.Set_info(MPI.Info.Create()), (lambda f: f.Set_info(3),), "file"
    ),
}


class Halves(NamedTuple):
    """The even ranks and the odd ones.

    Attributes:
        own: a communicator of this rank's half.
        comm: of all.
        other: rank in `comm` of the first of the other half.
    """

    own: Any
    comm: Any
    other: int


class Between(NamedTuple):
    """A communicator of these halves.

    Attributes:
        comm: the communicator.
        root: what this rank says where rank 0 is the root.
    """

    comm: Any
    root: int


class Neither:
    """Neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError("neither true nor false")


HALVES: dict[str, Step] = {
    "Create_intercomm": Step(
        lambda h: _freed(h.own.Create_intercomm(0, h.comm, h.other, 3)),
        (
            lambda h: h.own.Create_intercomm(99, h.comm, h.other, 3),
            lambda h: h.own.Create_intercomm("x", h.comm, h.other, 3),
            lambda h: h.own.Create_intercomm(0, 7, h.other, 3),
            lambda h: h.own.Create_intercomm(0, h.comm, "x", 3),
            lambda h: h.own.Create_intercomm(0, h.comm, h.other, -3),
        ),
        "halves",
    ),
    "Create_group": Step(
        lambda h: _freed(h.comm.Create_group(h.comm.Get_group(), 3)),
        (
            lambda h: h.comm.Create_group(None, 3),
            lambda h: h.comm.Create_group(MPI.GROUP_NULL, 3),
            lambda h: h.comm.Create_group(h.comm.Get_group(), -3),
            lambda h: h.comm.Create_group(h.comm.Get_group(), "x"),
        ),
        "halves",
    ),
    "Create_from_group": Step(
        lambda h: _freed(MPI.Intracomm.Create_from_group(h.comm.Get_group(), "a tag")),
        (
            lambda h: MPI.Intracomm.Create_from_group(h.comm.Get_group(), 7),
            lambda h: MPI.Intracomm.Create_from_group(h.comm.Get_group(), "a tag", 7),
        ),
        "halves",
    ),
}
BETWEEN: dict[str, Step] = {
    "Merge": Step(
        lambda b: _freed(b.comm.Merge(True)), (lambda b: b.comm.Merge(Neither()),), "between"
    ),
    "Create between": Step(
        lambda b: _freed(b.comm.Create(b.comm.Get_group())),
        (lambda b: b.comm.Create(None), lambda b: b.comm.Create(b.comm.Get_remote_group())),
        "between",
    ),
    "Split between": Step(
        lambda b: _freed(b.comm.Split(0)),
        (lambda b: b.comm.Split(-7), lambda b: b.comm.Split("x")),
        "between",
    ),
    "Bcast between": Step(
        lambda b: b.comm.Bcast(numbers(4), b.root),
        (lambda b: b.comm.Bcast(numbers(4), 99), lambda b: b.comm.Bcast(numbers(4), "x")),
        "between",
    ),
    "allgather between": Step(
        lambda b: b.comm.allgather(1), (lambda b: b.comm.allgather(Unsendable()),), "between"
    ),
}
STEPS: dict[str, Step] = {
    **BLOCKING, **OBJECTS, **BACKGROUND, **MAKING, **GRID, **WINDOW, **FILE, **HALVES, **BETWEEN,
}  # fmt: skip


class Turn(NamedTuple):
    """A step of a job: its name, who makes it wrongly (-1: nobody), and in which way."""

    name: str
    who: int
    way: int


def plan(seed: int, ranks: int, length: int, names: list[str] | None = None) -> list[Turn]:
    """A job."""
    chance = Random(seed)
    turns = []
    for _ in range(length):
        name = chance.choice(names or list(STEPS))
        ways = len(STEPS[name].wrong)
        is_wrong = ways and chance.random() < 0.4
        turns.append(
            Turn(name, chance.randrange(ranks) if is_wrong else -1, chance.randrange(ways or 1))
        )
    return turns


def outcome(call: Call, given: Any) -> str:
    """What comes of a call: `ok`, an error class of MPI, or the name of another exception."""
    try:
        call(given)
    except MPI.Exception as problem:
        return f"MPI {problem.Get_error_class()}: {problem}"
    except (TypeError, ValueError, OverflowError, IndexError, BufferError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return "ok"


def run_plan(comm: Any, turns: list[Turn], path: Path) -> list[str]:
    """Take part in a job. Returns what came of each step."""
    kept: dict[str, Any] = {"": comm}
    if any(STEPS[turn.name].kept == "grid" for turn in turns):
        kept["grid"] = comm.Create_cart([comm.size], [True])
    if any(STEPS[turn.name].kept == "window" for turn in turns):
        kept["window"] = MPI.Win.Allocate(8, comm=comm)
    if any(STEPS[turn.name].kept == "file" for turn in turns):
        kept["file"] = MPI.File.Open(comm, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    if any(STEPS[turn.name].kept in {"halves", "between"} for turn in turns):
        side = comm.rank % 2
        halves = kept["halves"] = Halves(comm.Split(side, comm.rank), comm, 1 - side)
        between = halves.own.Create_intercomm(0, comm, halves.other, 2)
        root = 0 if side else MPI.PROC_NULL if comm.rank else MPI.ROOT
        kept["between"] = Between(between, root)
    found = []
    for turn in turns:
        step = STEPS[turn.name]
        call = step.wrong[turn.way] if turn.who == comm.rank else step.right
        found.append(outcome(call, kept[step.kept]))
        if step.kept == "halves":
            comm.Barrier()  # else a leader that knew nobody to tell could go on to the next one
    for name in ("grid", "window", "file"):
        if name in kept:
            with suppress(MPI.Exception):
                kept[name].Close() if name == "file" else kept[name].Free()
    return found


def faults(turns: list[Turn], outcomes: list[list[str]]) -> list[str]:
    """What is not as it should be: steps by name, and what came of them.

    Who makes a call wrongly gets an error, others an error of MPI or the right result. A step that
    all make rightly is right, also behind wrong ones. But who is wrong in `Sub` does not know
    whether the others were to go on alone, so that the next call of the grid may be an error.
    """
    found = []
    excused = False
    for at, turn in enumerate(turns):
        came = [each[at] for each in outcomes]
        is_on_grid = STEPS[turn.name].kept == "grid"
        for rank, said in enumerate(came):
            right = said == "ok"
            if rank == turn.who:
                fine = not right
            elif turn.who < 0:
                fine = right or (excused and is_on_grid)
            else:
                fine = right or said.startswith("MPI")
            if not fine:
                found.append(f"step {at} {turn} rank {rank}: {said}")
        if is_on_grid:
            excused = turn.name == "Sub" and turn.who >= 0
    return found
