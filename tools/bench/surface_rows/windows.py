"""Windows: each call that moves data, in each way of making it visible, in each kind of memory."""

# ruff: noqa: ARG001 - all take the same arguments

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows.rows import Row, Step, doubles, repeat, room

LARGEST: Final = 1 << 20  # bytes of a window; larger sizes are moved through the same start of it
KEPT: Final[list[Any]] = []  # windows do not keep it
Window = tuple[Any, list[int]]  # and where each member's part begins, if that has to be said
Access = Callable[[Window, int, int], Callable[[], Any]]  # of a window, a peer and a size


def _put(window: Window, peer: int, size: int) -> Callable[[], Any]:
    win, data = window[0], room(doubles(size), float)
    there = window[1][peer : peer + 1]
    return lambda: win.Put(data, peer, *there)


def _get(window: Window, peer: int, size: int) -> Callable[[], Any]:
    win, data = window[0], room(doubles(size), float)
    there = window[1][peer : peer + 1]
    return lambda: win.Get(data, peer, *there)


def _accumulate(window: Window, peer: int, size: int) -> Callable[[], Any]:
    win, data = window[0], room(doubles(size), float)
    there = window[1][peer : peer + 1]
    return lambda: win.Accumulate(data, peer, *there, op=MPI.SUM)


def _get_accumulate(window: Window, peer: int, size: int) -> Callable[[], Any]:
    win, data, back = window[0], room(doubles(size), float), room(doubles(size), float)
    there = window[1][peer : peer + 1]
    return lambda: win.Get_accumulate(data, back, peer, *there, op=MPI.SUM)


def _fetch(window: Window, peer: int, size: int) -> Callable[[], Any]:
    win, data, back = window[0], room(1, float), room(1, float)
    there = window[1][peer] if window[1] else 0
    return lambda: win.Fetch_and_op(data, back, peer, there, MPI.SUM)


def _swap(window: Window, peer: int, size: int) -> Callable[[], Any]:
    win, data, back = window[0], room(1, int), room(1, int)
    given, taken = [data, MPI.INT64_T], [back, MPI.INT64_T]
    there = window[1][peer] if window[1] else 0
    return lambda: win.Compare_and_swap(given, given, taken, peer, there)


def _later(name: str) -> Access:
    def access(window: Window, peer: int, size: int) -> Callable[[], Any]:
        data, back = room(doubles(size), float), room(doubles(size), float)
        given = {"Rput": (data,), "Rget": (data,), "Raccumulate": (data,)}.get(name, (data, back))
        more = {} if name in ("Rput", "Rget") else {"op": MPI.SUM}
        method, there = getattr(window[0], name), window[1][peer : peer + 1]
        return lambda: method(*given, peer, *there, **more).Wait()

    return access


MOVES: Final[dict[str, Access]] = {
    "Put": _put,
    "Get": _get,
    "Accumulate": _accumulate,
    "Get_accumulate": _get_accumulate,
    "Fetch_and_op": _fetch,
    "Compare_and_swap": _swap,
}
LATER: Final = ("Rput", "Rget", "Raccumulate", "Rget_accumulate")
SINGLE: Final = ("Fetch_and_op", "Compare_and_swap")  # of one element


def rows(comm: Any) -> Iterator[Row]:
    """All of them, in memory that windows allocate."""
    yield from _moves(comm, "", _allocated)
    for name in ("Fence", "Lock", "Lock_all", "Flush_local", "Flush_all", "Sync"):
        yield Row(f"Win.{name}", name, lambda _, name=name: _alone(comm, name), False)
    for name in ("Create", "Allocate", "Create_dynamic", "Allocate_shared"):
        yield Row(f"Win.{name}", f"{name}, Free", lambda _, name=name: _made(comm, name), False)


def created_rows(comm: Any) -> Iterator[Row]:
    """What moves data, in memory of the program's own."""
    yield from _moves(comm, "Create: ", _created)


def dynamic_rows(comm: Any) -> Iterator[Row]:
    """The same in memory that is attached."""
    yield from _moves(comm, "Create_dynamic: ", _attached)


def _moves(comm: Any, kind: str, window: Callable[[Any, int], Window]) -> Iterator[Row]:
    for name, access in MOVES.items():
        for way, make in (("Lock", _locked), ("Fence", _fenced), ("Flush", _flushed)):
            row = f"{kind}{way}, {name}"
            yield _row(comm, f"Win.{name}", row, access, make, name not in SINGLE, window)
    row = f"{kind}Post, Start, Put, Complete, Wait"
    yield _row(comm, "Win.Start", row, _put, _posted, True, window)
    for name in LATER:
        row = f"{kind}{name}, Wait"
        yield _row(comm, f"Win.{name}", row, _later(name), _flushed, True, window)


def _allocated(comm: Any, size: int) -> Window:
    return MPI.Win.Allocate(size, 8, comm=comm), []


def _created(comm: Any, size: int) -> Window:
    memory = room(size)
    KEPT.append(memory)
    return MPI.Win.Create(memory, 8, comm=comm), []


def _attached(comm: Any, size: int) -> Window:
    win, memory = MPI.Win.Create_dynamic(comm=comm), room(size)
    win.Attach(memory)
    KEPT.append(memory)
    return win, comm.allgather(MPI.Get_address(memory))


def _row(
    comm: Any,
    method: str,
    name: str,
    access: Access,
    way: Callable[..., Step],
    sized: bool,
    window: Callable[[Any, int], Window],
) -> Row:
    def make(size: int) -> Step:
        made = window(comm, max(size, 8))
        return way(comm, made[0], access(made, 1 - comm.rank if comm.rank < 2 else 0, size))

    return Row(method, name, make, sized)


def _locked(comm: Any, win: Any, move: Callable[[], Any]) -> Step:
    """One rank reaches into the other's, which does nothing."""

    def once() -> None:
        win.Lock(1, MPI.LOCK_SHARED)
        move()
        win.Unlock(1)

    return repeat(once) if comm.rank == 0 else _idle


def _idle(count: int) -> None:
    """What the others do."""


def _fenced(comm: Any, win: Any, move: Callable[[], Any]) -> Step:
    win.Fence()

    def once() -> None:
        if comm.rank == 0:
            move()
        win.Fence()

    return repeat(once)


def _flushed(comm: Any, win: Any, move: Callable[[], Any]) -> Step:
    """Within one epoch over all, flushed for each."""

    def step(count: int) -> None:
        if comm.rank:
            return
        win.Lock_all()
        for _ in range(count):
            move()
            win.Flush(1)
        win.Unlock_all()

    return step


def _posted(comm: Any, win: Any, move: Callable[[], Any]) -> Step:
    everyone = comm.Get_group()
    other = everyone.Incl([1 - comm.rank]) if comm.rank < 2 else None

    def once() -> None:
        if comm.rank == 0:
            win.Start(other)
            move()
            win.Complete()
        elif comm.rank == 1:
            win.Post(other)
            win.Wait()

    return repeat(once)


def _alone(comm: Any, name: str) -> Step:
    win = MPI.Win.Allocate(64, 8, comm=comm)
    if name == "Fence":
        return repeat(win.Fence)
    if comm.rank:
        return _idle
    if name == "Lock":
        return repeat(lambda: (win.Lock(1), win.Unlock(1)))
    if name == "Lock_all":
        return repeat(lambda: (win.Lock_all(), win.Unlock_all()))
    method = getattr(win, name)
    given = (1,) if name == "Flush_local" else ()

    def step(count: int) -> None:
        win.Lock_all()
        for _ in range(count):
            method(*given)
        win.Unlock_all()

    return step


def _made(comm: Any, name: str) -> Step:
    data = room(64)
    given: dict[str, tuple[Any, ...]] = {
        "Create": (data, 8),
        "Allocate": (64, 8),
        "Allocate_shared": (64, 8),
        "Create_dynamic": (),
    }
    method = getattr(MPI.Win, name)
    return repeat(lambda: method(*given[name], comm=comm).Free())
