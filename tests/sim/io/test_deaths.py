"""A rank dies in a collective call on a file: all others get on, and the file is in order."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from ompy import MPI

from tests.sim.mpi.test_survival import DEAD, EVERY_STEP, FAILED, REVOKED, Die, turns_of, world
from tests.support.effort import THOROUGH

RANKS: Final = 3
ROWS: Final = 700
WORD: Final = 8
COLUMNS: Final = RANKS + 1  # nobody sees the last one
HINTS: Final = {
    "romio_cb_read": "enable",
    "cb_buffer_size": "4096",
    "cb_nodes": "2",
}  # some cycles, some aggregators
TIME_MAX: Final = 20_000_000_000  # ns; arbitrary: as of other calls that meet a death


def old(row: int, column: int) -> int:
    return -1 - row * COLUMNS - column


def new(row: int, column: int) -> int:
    return row * COLUMNS + column


def fill(path: Path) -> None:
    """What is in the file before."""
    words = [old(row, column) for row in range(ROWS) for column in range(COLUMNS)]
    path.write_bytes(array("q", words).tobytes())


def see(path: Path, whole: set[int]) -> None:
    """Each word is the old one or the new one; columns of `whole` are new, the last one is old."""
    words = array("q", path.read_bytes())
    assert len(words) == ROWS * COLUMNS
    for place, word in enumerate(words):
        row, column = divmod(place, COLUMNS)
        allowed = {new(row, column)} if column in whole else {old(row, column)}
        if column not in whole and column < RANKS:
            allowed.add(new(row, column))
        assert word in allowed, (row, column, word)


def opened(comm: Any, path: Path) -> Any:
    """The file, of which each rank sees its column."""
    file = MPI.File.Open(comm, str(path), MPI.MODE_RDWR, MPI.Info.Create(HINTS))
    column = MPI.INT64_T.Create_vector(1, 1, 1).Create_resized(0, WORD * COLUMNS).Commit()
    file.Set_view(WORD * comm.rank, MPI.INT64_T, column)
    return file


def split(file: Any, mine: array[int]) -> None:
    file.Write_at_all_begin(0, mine)
    file.Write_at_all_end(mine)


def read(file: Any, mine: array[int]) -> None:
    room = array("q", bytes(WORD * len(mine)))
    file.Read_at_all(0, room)


def sized(file: Any, mine: array[int]) -> None:
    file.Preallocate(WORD * ROWS * COLUMNS)
    file.Set_size(WORD * ROWS * COLUMNS)
    file.Sync()
    file.Set_atomicity(True)


WRITES: dict[str, Callable[[Any, array[int]], object]] = {
    "Write_at_all": lambda file, mine: file.Write_at_all(0, mine),
    "Write_all": lambda file, mine: file.Write_all(mine),
    "Iwrite_at_all": lambda file, mine: file.Iwrite_at_all(0, mine).Wait(),
    "split": split,
}
CALLS = {**WRITES, "read": read, "sized": sized}


def body_of(name: str, path: Path) -> Callable[[Any, Die], Any]:
    """What each rank does: the call; if that fails, what survivors of a death do."""

    def body(comm: Any, die: Die) -> Any:
        problem, done, file = None, False, MPI.FILE_NULL
        mine = array("q", [new(row, comm.rank) for row in range(ROWS)])
        try:
            file = opened(comm, path)
            CALLS[name](file, mine)
            done = name in WRITES
        except MPI.Exception as raised:
            problem = raised.Get_error_class()
            if not file:
                comm.Revoke()  # others may have it, and wait in the next call
        if file:
            try:
                file.Close()
            except MPI.Exception as raised:
                problem = problem or raised.Get_error_class()
        return problem, done, again(comm, path)

    return body


def again(comm: Any, path: Path) -> bool:
    """Whether those who are left can go on with the file; also if one has died meanwhile."""
    comm.Ack_failed()
    shrunk = comm.Shrink()
    room = array("q", bytes(WORD * ROWS))
    try:
        file = opened(shrunk, path)
        file.Read_at_all(0, room)
        file.Close()
    except MPI.Exception:
        shrunk.Revoke()
        return bool(shrunk.size == RANKS)
    rank = shrunk.rank
    return all(word in (old(row, rank), new(row, rank)) for row, word in enumerate(room))


@pytest.mark.parametrize("pml", ["ob1", "bfo"])
@pytest.mark.parametrize("name", CALLS)
def test_a_rank_dies_in_a_collective_call(name: str, pml: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    body = body_of(name, path)
    fill(path)
    turns = turns_of(RANKS, body, 5)
    failures = 0
    for victim, most in enumerate(turns):
        step = 1 if EVERY_STEP else max(1, most // (40 if THOROUGH else 10))
        first = step // 2 if pml == "bfo" else 0  # the two take the steps in turn
        for turn in range(first, most, step):
            fill(path)
            job, results = world(RANKS, body, deaths={victim: turn}, seed=5, pml=pml)
            living = {rank: found for rank, found in enumerate(results) if found != DEAD}
            assert len(living) == RANKS - len(job.killed)
            assert all(found[0] in {None, FAILED, REVOKED} for found in living.values()), results
            assert all(found[2] for found in living.values()), (victim, turn, results)
            assert job.scheduler.time < TIME_MAX, (victim, turn)
            see(path, {rank for rank, found in living.items() if found[1]})
            failures += any(found[0] is not None for found in living.values())
    assert failures, "no death was in time"


@pytest.mark.parametrize("victim", range(RANKS))
def test_a_file_of_somebody_who_died_is_deleted_on_close(victim: int, tmp_path: Path) -> None:
    path = tmp_path / "x"

    def body(comm: Any, die: Die) -> Any:
        amode = MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE
        file = MPI.File.Open(comm, str(path), amode)
        file.Write_at_all(WORD * comm.rank, bytes(WORD))
        if comm.rank == victim:
            die()
        try:
            file.Close()
        except MPI.Exception as raised:
            assert raised.Get_error_class() in {FAILED, REVOKED}
        assert not file
        comm.Shrink().Barrier()
        return path.exists()

    _, results = world(RANKS, body, seed=victim)
    assert [found for found in results if found != DEAD] == [False] * (RANKS - 1)
