"""Operations: put, get, accumulate and what fetches, of every size and kind."""

from __future__ import annotations

from array import array
from typing import ClassVar, Final

import pytest

from ompy.conformance.mpi_worlds import Rank
from ompy.conformance.osc.osc_suite import (
    COUNT,
    ELEMENT,
    KINDS,
    PLACES,
    OscSuite,
    OscWorlds,
    element,
    elements,
    numbers,
)
from ompy.mpi.buffers.memory import Get_address
from ompy.mpi.collectives.operation import OPERATIONS
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.windows.windows import Win

LARGE: Final = 40_000  # elements; arbitrary: more than any message's first fragment has room for
SIZES: Final = (0, 1, 2, 100, 4000, LARGE)
TURNS: Final = 10  # arbitrary

every_window = pytest.mark.parametrize("place", PLACES)
every_kind = pytest.mark.parametrize("kind", KINDS)


class OperationSuite(OscSuite):
    """What is stored, loaded and combined, and that nothing else changes."""

    title: ClassVar[str] = "operations"

    @every_window
    @every_kind
    def test_put_and_get(self, worlds: OscWorlds, kind: str, place: str) -> None:
        """Sizes from nothing to many fragments, to the own rank too."""

        def program(rank: Rank, win: Win) -> None:
            me, size = rank.comm.rank, rank.comm.size
            for step in range(size):
                target = (me + step) % size
                for count in SIZES:
                    data = array("q", range(me, me + count))
                    win.Fence()
                    win.Put(data, target)
                    win.Fence()
                    source = (me - step) % size
                    found = elements(win)[:count]
                    assert found == list(range(source, source + count)), f"put of {count}"
                    back = array("q", [0]) * count
                    win.Get(back, target)
                    win.Fence()
                    assert back == data, f"get of {count}"

        worlds.play_windows(kind, program, place=place, count=LARGE)

    @every_kind
    def test_places(self, worlds: OscWorlds, kind: str) -> None:
        """At a displacement, and with gaps at either end: nothing between is touched."""

        def program(rank: Rank, win: Win) -> None:
            me, size = rank.comm.rank, rank.comm.size
            after, before = (me + 1) % size, (me - 1) % size
            odd = DATATYPES["INT64_T"].Create_vector(4, 1, 2).Commit()
            win.Fence()
            win.Put(numbers(10 + me, 20 + me), after, 5)
            win.Put([numbers(1, 2, 3, 4), 4, DATATYPES["INT64_T"]], after, [10, 1, odd])
            win.Fence()
            due = [0] * COUNT
            due[5:7] = [10 + before, 20 + before]
            due[10:18:2] = [1, 2, 3, 4]
            assert elements(win) == due
            back = numbers(*[-1] * 8)
            win.Get([back, 1, odd], after, [10, 1, odd])
            win.Fence()
            assert back == numbers(1, -1, 2, -1, 3, -1, 4, -1)
            odd.Free()

        worlds.play_windows(kind, program)

    @every_window
    @every_kind
    def test_accumulate(self, worlds: OscWorlds, kind: str, place: str) -> None:
        """Everybody adds to everybody at once, little and much: no addition is lost."""

        def program(rank: Rank, win: Win) -> None:
            me, size = rank.comm.rank, rank.comm.size
            for count in (1, LARGE):
                win.Fence()
                for turn in range(TURNS if count == 1 else 2):
                    for target in range(size):
                        win.Accumulate(array("q", [me + turn]) * count, target)
                win.Fence()
            turns = [*range(TURNS), *range(2)]
            due = sum(other + turn for turn in turns for other in range(size))
            assert element(win, 0) == due
            due = sum(other + turn for turn in range(2) for other in range(size))
            assert element(win, LARGE - 1) == due

        worlds.play_windows(kind, program, place=place, count=LARGE)

    @every_kind
    def test_operations(self, worlds: OscWorlds, kind: str) -> None:
        """Each predefined operation on numbers, and what was there before."""
        made = {"SUM": 12 + 10, "PROD": 120, "MAX": 12, "MIN": 10, "BAND": 8, "BOR": 14}
        made |= {"BXOR": 6, "LAND": 1, "LOR": 1, "LXOR": 0, "REPLACE": 10, "NO_OP": 12}

        def program(rank: Rank, win: Win) -> None:
            after = (rank.comm.rank + 1) % rank.comm.size
            for name, due in made.items():
                win.Fence()
                win.Put(numbers(12), after)
                win.Fence()
                was = numbers(-1)
                win.Get_accumulate(numbers(10), was, after, op=OPERATIONS[name])
                win.Fence()
                assert was == numbers(12), f"{name}: {was[0]} was fetched, 12 was there"
                assert element(win, 0) == due, f"{name} of 12 and 10 made {element(win, 0)}"

        worlds.play_windows(kind, program)

    @every_window
    @every_kind
    def test_numbers_are_had_once(
        self, worlds: OscWorlds, kind: str, place: str, seed: int
    ) -> None:
        """Fetch-and-add and compare-and-swap by all at once: each answer is one rank's."""

        def program(_rank: Rank, win: Win) -> tuple[list[int], int]:
            had, won, was = [], 0, numbers(-1)
            win.Lock_all()
            for _ in range(TURNS):
                win.Fetch_and_op(numbers(1), was, 0)
                win.Flush(0)
                had.append(was[0])
            for turn in range(TURNS):
                win.Compare_and_swap(numbers(turn + 1), numbers(turn), was, 0, 1)
                win.Flush(0)
                won += was[0] == turn
            win.Unlock_all()
            return had, won

        results = worlds.play_windows(kind, program, place=place, seed=seed)
        had = sorted(number for numbers_, _ in results for number in numbers_)
        assert had == list(range(3 * TURNS)), f"a counter gave {had}"
        assert sum(won for _, won in results) == TURNS, "each swap is won by one rank"

    @every_kind
    def test_order(self, worlds: OscWorlds, kind: str, seed: int) -> None:
        """Accumulates of one rank take effect in the order of their calls, large or small."""

        def program(rank: Rank, win: Win) -> None:
            if rank.comm.rank == 1:
                win.Lock(0)
                for turn in range(TURNS):
                    win.Accumulate(array("q", [turn]) * LARGE, 0, op=OPERATIONS["REPLACE"])
                    win.Accumulate(numbers(100), 0)
                win.Unlock(0)
            rank.comm.Barrier()
            if rank.comm.rank == 0:
                win.Lock(0)
                last = TURNS - 1
                assert (element(win, 0), element(win, 1)) == (last + 100, last)
                assert element(win, LARGE - 1) == last
                win.Unlock(0)

        worlds.play_windows(kind, program, count=LARGE, seed=seed)

    def test_requests(self, worlds: OscWorlds) -> None:
        """Operations with requests: complete when the memory may be used, or has come."""

        def program(rank: Rank, win: Win) -> None:
            after = (rank.comm.rank + 1) % rank.comm.size
            data, back = array("q", [7]) * LARGE, array("q", [0]) * LARGE
            win.Lock_all()
            request = win.Rput(data, after)
            request.Wait()
            data[:] = array("q", [0]) * LARGE  # it is the program's again
            win.Flush(after)
            win.Rget(back, after).Wait()
            assert back[0] == back[-1] == 7
            win.Raccumulate(array("q", [1]) * LARGE, after).Wait()
            win.Flush(after)
            win.Unlock_all()
            rank.comm.Barrier()
            assert element(win, LARGE - 1) == 8

        worlds.play_windows("created", program, count=LARGE)

    @every_window
    def test_dynamic(self, worlds: OscWorlds, place: str) -> None:
        """A window of memory that is attached, addressed by what its owner says."""

        def body(rank: Rank) -> None:
            comm = rank.comm
            win, memory = Win.Create_dynamic(comm=comm), numbers(*range(10))
            win.Attach(memory)
            addresses = comm.allgather(Get_address(memory))
            after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            win.Lock_all()
            win.Put(numbers(comm.rank), after, addresses[after] + 3 * ELEMENT)
            win.Flush(after)
            win.Unlock_all()
            comm.Barrier()
            assert memory == numbers(0, 1, 2, before, 4, 5, 6, 7, 8, 9)
            win.Detach(memory)
            win.Free()

        if not worlds.play(body, 3, hosts=PLACES[place]).used:
            pytest.skip(f"capability off: dynamic windows, {place}")

    def test_shared(self, worlds: OscWorlds) -> None:
        """A window whose parts all members load from and store into."""

        def body(rank: Rank) -> None:
            comm = rank.comm
            win = Win.Allocate_shared(COUNT * ELEMENT, ELEMENT, comm=comm)
            win.Lock_all()
            memoryview(win.tomemory()).cast("B").cast("q")[0] = comm.rank
            win.Sync()
            comm.Barrier()
            for other in range(comm.size):
                part, unit = win.Shared_query(other)
                assert unit == ELEMENT
                assert memoryview(part).cast("B").cast("q")[0] == other
            comm.Barrier()
            win.Unlock_all()
            win.Free()

        try:
            played = worlds.play(body, 3)
        except AssertionError as problem:
            if "MPI_ERR_RMA_SHARED" not in str(problem):
                raise
            pytest.skip("capability off: shared windows")
        if not played.used:
            pytest.skip("capability off: shared windows")
