"""Windows: each call that moves data, in each way of making it visible."""

# ruff: noqa: ARG001 - all take the same arguments

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mpi4py import MPI

from tools.bench.surface_rows.rows import Row, Step, doubles, repeat, room

LARGEST: Final = 1 << 20  # bytes of a window; larger sizes are moved through the same start of it
Access = Callable[[Any, int, int], Callable[[], Any]]  # of a window, a peer and a size


def _put(win: Any, peer: int, size: int) -> Callable[[], Any]:
    data = room(doubles(size), float)
    return lambda: win.Put(data, peer)


def _get(win: Any, peer: int, size: int) -> Callable[[], Any]:
    data = room(doubles(size), float)
    return lambda: win.Get(data, peer)


def _accumulate(win: Any, peer: int, size: int) -> Callable[[], Any]:
    data = room(doubles(size), float)
    return lambda: win.Accumulate(data, peer, op=MPI.SUM)


def _get_accumulate(win: Any, peer: int, size: int) -> Callable[[], Any]:
    data, back = room(doubles(size), float), room(doubles(size), float)
    return lambda: win.Get_accumulate(data, back, peer, op=MPI.SUM)


def _fetch(win: Any, peer: int, size: int) -> Callable[[], Any]:
    data, back = room(1, float), room(1, float)
    return lambda: win.Fetch_and_op(data, back, peer, 0, MPI.SUM)


def _swap(win: Any, peer: int, size: int) -> Callable[[], Any]:
    data, back = room(1, int), room(1, int)
    given, taken = [data, MPI.INT64_T], [back, MPI.INT64_T]
    return lambda: win.Compare_and_swap(given, given, taken, peer, 0)


def _later(name: str) -> Access:
    def access(win: Any, peer: int, size: int) -> Callable[[], Any]:
        data, back = room(doubles(size), float), room(doubles(size), float)
        given = {"Rput": (data,), "Rget": (data,), "Raccumulate": (data,)}.get(name, (data, back))
        more = {} if name in ("Rput", "Rget") else {"op": MPI.SUM}
        method = getattr(win, name)
        return lambda: method(*given, peer, **more).Wait()

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
    """All of them."""
    for name, access in MOVES.items():
        for way, make in (("Lock", _locked), ("Fence", _fenced), ("Flush", _flushed)):
            yield _row(comm, f"Win.{name}", f"{way}, {name}", access, make, name not in SINGLE)
    yield _row(comm, "Win.Start", "Post, Start, Put, Complete, Wait", _put, _posted, True)
    for name in LATER:
        yield _row(comm, f"Win.{name}", f"{name}, Wait", _later(name), _flushed, True)
    for name in ("Fence", "Lock", "Lock_all", "Flush_local", "Flush_all", "Sync"):
        yield Row(f"Win.{name}", name, lambda _, name=name: _alone(comm, name), False)
    for name in ("Create", "Allocate", "Create_dynamic", "Allocate_shared"):
        yield Row(f"Win.{name}", f"{name}, Free", lambda _, name=name: _made(comm, name), False)


def _row(
    comm: Any, method: str, name: str, access: Access, way: Callable[..., Step], sized: bool
) -> Row:
    def make(size: int) -> Step:
        win = MPI.Win.Allocate(max(size, 8), 8, comm=comm)
        return way(comm, win, access(win, 1 - comm.rank if comm.rank < 2 else 0, size))

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
