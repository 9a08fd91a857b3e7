"""Nonblocking and persistent calls on memory: many under way, in any order, with little room."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from random import Random
from typing import Any
from weakref import ref

import pytest
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED, ERR_TRUNCATE
from ompy.mpi.collectives.operation import SUM
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.runtime.ranks.process import RankProcess
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.nonblocking import PERSISTENT

from tests.support.effort import effort
from tests.support.worlds import virtual

SM = {"coll": "sm,tuned,basic", "btl": "self,sm"}
# two calls under way, most of them too large for a slot
NARROW = {
    "coll_sm_nonblocking_size": 64,
    "coll_sm_comm_num_segments": 2,
    "coll_sm_single_copy": 0,
}
LENT = {"coll_sm_lend_least": 1, "coll_sm_comm_num_segments": 2}
# of which some are lent because they have no room
MIXED = {"coll_sm_nonblocking_size": 300, "coll_sm_lend_least": 400}
SETTINGS = {"default": {}, "narrow": NARROW, "lent": LENT, "mixed": MIXED}
COUNTS = (0, 1, 5, 60, 3000)
Check = Callable[[], None]


def numbers(count: int, value: int = 0) -> array[int]:
    return array("q", [value + place for place in range(count)])


def zeros(count: int) -> array[int]:
    return array("q", [0] * count)


def sums(count: int, ranks: range, step: int) -> list[int]:
    """What `SUM` makes of the numbers of some ranks."""
    return [sum(1000 * rank + step + place for rank in ranks) for place in range(count)]


class Calls:
    """Draws calls alike on all ranks; each is begun or prepared, with what has to come of it."""

    def __init__(self, comm: Any, seed: int) -> None:
        self.comm = comm
        self.random = Random(seed)

    def draw(self, suffix: str) -> tuple[Any, Check]:
        comm, rank, size = self.comm, self.comm.rank, self.comm.size
        count, root = self.random.choice(COUNTS), self.random.randrange(size)
        step = self.random.randrange(1 << 20)
        mine = numbers(count, 1000 * rank + step)
        blocks = [numbers(count, 1000 * rank + step + 7 * other) for other in range(size)]
        whole = array("q", [number for block in blocks for number in block])
        all_of = [number for other in range(size) for number in numbers(count, 1000 * other + step)]
        room, rooms = zeros(count), zeros(count * size)
        here = rank == root

        def is_now(buffer: array[int], wanted: list[int] | array[int], when: bool = True) -> Check:
            def check() -> None:
                assert not when or list(buffer) == list(wanted)

            return check

        total = sums(count, range(size), step)
        from_root = numbers(count, 1000 * root + step)
        told = mine if here else room
        mine_of = [
            number
            for other in range(size)
            for number in numbers(count, 1000 * other + step + 7 * rank)
        ]
        parts = [
            sum(1000 * other + step + 7 * rank + place for other in range(size))
            for place in range(count)
        ]
        table: dict[str, tuple[tuple[Any, ...], Check]] = {
            "barrier": ((), lambda: None),
            "bcast": ((told, root), is_now(told, from_root)),
            "gather": ((mine, rooms if here else None, root), is_now(rooms, all_of, here)),
            "scatter": (
                (whole if here else None, room, root),
                is_now(room, numbers(count, 1000 * root + step + 7 * rank)),
            ),
            "allgather": ((mine, rooms), is_now(rooms, all_of)),
            "alltoall": ((whole, rooms), is_now(rooms, mine_of)),
            "reduce": ((mine, room if here else None, SUM, root), is_now(room, total, here)),
            "allreduce": ((mine, room, SUM), is_now(room, total)),
            "scan": ((mine, room, SUM), is_now(room, sums(count, range(rank + 1), step))),
            "exscan": ((mine, room, SUM), is_now(room, sums(count, range(rank), step), rank > 0)),
            "reduce_scatter_block": ((whole, room, SUM), is_now(room, parts)),
        }
        persistent = suffix == "_init"
        offered = [name for name in table if not persistent or "scan" not in name]
        name = self.random.choice(offered)
        arguments, check = table[name]
        method = f"{name.capitalize()}_init" if persistent else f"I{name}"

        def spoil() -> None:
            """A member whose call is complete does with its data what it likes."""
            check()
            for buffer in (mine, whole):
                buffer[:] = array("q", [-1] * len(buffer))

        return getattr(comm, method)(*arguments), check if persistent else spoil


def rounds(process: RankProcess, seed: int) -> None:
    """Calls are begun together, some blocking ones between them, and waited for in any order."""
    comm = world_of(process)
    calls, own = Calls(comm, seed), Random(f"{seed}, {comm.rank}")
    for _ in range(6):
        under_way = []
        for _ in range(calls.random.randrange(1, 7)):
            under_way.append(calls.draw(""))
            if calls.random.random() < 0.3:
                got = zeros(1)
                comm.Allreduce(numbers(1, comm.rank), got)
                assert got[0] == sum(range(comm.size))
        own.shuffle(under_way)
        for request, check in under_way:
            request.Wait()
            check()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("size", [2, 3, 5])
def test_calls_complete_in_any_order(size: int, settings: dict[str, int]) -> None:
    for seed in range(effort(4)):
        virtual(size, lambda process, seed=seed: rounds(process, seed), seed=seed, **SM, **settings)


def starts(process: RankProcess, seed: int, several: int) -> None:
    """Persistent requests, more than have slots, are started in another order by each member."""
    comm = world_of(process)
    calls, own = Calls(comm, seed), Random(f"{seed}, {comm.rank}")
    made = [calls.draw("_init") for _ in range(several)]
    for _ in range(4):
        own.shuffle(made)
        for request, _ in made:
            request.Start()
        calls.draw("")[0].Wait()
        for request, check in reversed(made):
            request.Wait()
            check()
    for request, _ in made:
        request.Free()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("several", [3, PERSISTENT + 3])
def test_persistent_calls_start_in_any_order(several: int, settings: dict[str, int]) -> None:
    for seed in range(effort(3)):
        virtual(
            3,
            lambda process, seed=seed: starts(process, seed, several),
            seed=seed,
            **SM,
            **settings,
        )


class Refusing(Lending):
    """Reads what others lend, and lends nothing."""

    def possible(self) -> bool:
        return False


def refuse_to_lend(process: RankProcess, comm: Any) -> None:
    """From now on this member sends what it would have lent, while the others lend."""
    board = comm._inner.coll._beginners["bcast"]._nonblocking._board
    board.lending = Refusing(board, process.context.network.process_copy())


@pytest.mark.parametrize("who", [0, 1, 2])
def test_one_member_sends_what_the_others_lend(who: int) -> None:
    """Each decides for itself, and the readers do as it says; also in a call begun again."""

    def program(process: RankProcess) -> None:
        comm = world_of(process)
        for _ in range(3):  # until all have tried to read all
            comm.Iallgather(numbers(5000, comm.rank), zeros(5000 * comm.size)).Wait()
        if comm.rank == who:
            refuse_to_lend(process, comm)
        calls = Calls(comm, 11)
        made = [calls.draw("_init") for _ in range(12)]
        for _ in range(3):
            for request, check in made:
                request.Start()
                request.Wait()
                check()
            rounds(process, who)

    virtual(3, program, **SM)


def test_a_persistent_call_is_begun_again_with_the_same_object() -> None:
    """But not one that failed; and nothing of it, nor of its buffers, is kept when it is freed."""

    def program(process: RankProcess) -> None:
        comm = world_of(process)
        comm.Ibarrier().Wait()
        mine, room = numbers(2, comm.rank), zeros(2 * comm.size)
        request = comm.Allgather_init(mine, room)
        seen = set()
        for step in range(5):
            mine[0] = 100 * step + comm.rank
            request.Start()
            seen.add(id(request._inner.operation))
            request.Wait()
            assert room.tolist()[::2] == [100 * step + rank for rank in range(comm.size)]
            comm.Ibarrier().Wait()
        assert len(seen) == 1
        gone = ref(request._inner.operation)
        request.Free()
        comm.Ibarrier().Wait()  # the engine and the board have the last one in hand
        assert gone() is None
        short = comm.Bcast_init(zeros(3 - comm.rank), 0)
        for _ in range(3):
            short.Start()
            if comm.rank:
                with pytest.raises(MPIException) as caught:
                    short.Wait()
                assert caught.value.Get_error_class() == ERR_TRUNCATE
            else:
                short.Wait()
            comm.Ibarrier().Wait()

    virtual(2, program, **SM)


def test_they_are_on_memory_and_not_messages() -> None:
    def program(process: RankProcess) -> None:
        comm = world_of(process)
        comm.Ibarrier().Wait()
        module = comm._inner.coll._beginners["bcast"]
        assert module._nonblocking._board is not None

    virtual(3, program, **SM)


@pytest.mark.parametrize(("who", "what"), [(0, "region"), (2, "map"), (1, "copy"), (0, "copy")])
def test_without_memory_they_are_messages(who: int, what: str) -> None:
    from tests.sim.coll.test_sm import broken

    def program(process: RankProcess) -> None:
        broken(process, who, what)
        comm = world_of(process)
        calls = Calls(comm, 5)
        under_way = [calls.draw("") for _ in range(6)]  # begun before anybody knows
        for request, check in under_way:
            request.Wait()
            check()
        assert comm._inner.coll._beginners["bcast"]._nonblocking._refused
        rounds(process, 3)

    virtual(3, program, **SM)


ENDS: dict[str, Callable[[Any], Any]] = {
    "barrier": lambda comm: comm.Ibarrier(),
    "bcast": lambda comm: comm.Ibcast(zeros(1), 1),
    "gather": lambda comm: comm.Igather(zeros(1), zeros(3), 0),
    "scatter": lambda comm: comm.Iscatter(None, zeros(1), 1),
    "allgather": lambda comm: comm.Iallgather(zeros(1), zeros(3)),
    "alltoall": lambda comm: comm.Ialltoall(zeros(3), zeros(3)),
    "reduce": lambda comm: comm.Ireduce(zeros(1), zeros(1), SUM, 0),
    "allreduce": lambda comm: comm.Iallreduce(zeros(1), zeros(1)),
    "large allreduce": lambda comm: comm.Iallreduce(zeros(9000), zeros(9000)),
    "scan": lambda comm: comm.Iscan(zeros(1), zeros(1)),
}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("call", ENDS)
def test_a_member_that_has_ended_is_an_error(call: str, known: bool) -> None:
    def program(process: RankProcess) -> str:
        comm = world_of(process)
        if known:
            comm.Ibarrier().Wait()
        if comm.rank == 1:
            return "left"
        waits = comm.rank == (2 if call == "scan" else 0) or call not in (
            "scan",
            "gather",
            "reduce",
        )
        try:
            ENDS[call](comm).Wait()
        except MPIException as problem:
            assert problem.Get_error_class() in (ERR_PROC_FAILED, ERR_OTHER)
            return "told"
        return "told" if not waits else "not told"

    assert virtual(3, program, **SM).results == ["told", "left", "told"]


LENDING: dict[str, Callable[[Any, array[int]], Any]] = {
    "bcast": lambda comm, mine: comm.Ibcast(mine, 0),
    "scatter": lambda comm, mine: comm.Iscatter(
        array("q", mine * comm.size) if comm.rank == 0 else None, mine, 0
    ),
    "allgather": lambda comm, mine: comm.Iallgather(mine, zeros(len(mine) * comm.size)),
    "reduce": lambda comm, mine: comm.Ireduce(mine, zeros(len(mine)), SUM, 1),
    "scan": lambda comm, mine: comm.Iscan(mine, zeros(len(mine))),
}
IN_SLOTS = ("reduce", "scan")  # where these have room


@pytest.mark.parametrize(
    ("call", "count"),
    [(call, count) for call in LENDING for count in (2500, 5000)[call in IN_SLOTS :]],
)
def test_what_was_lent_by_a_call_that_failed_is_not_read(call: str, count: int) -> None:
    """Its owner may have written over it; who comes late gets an error."""

    def program(process: RankProcess) -> str:
        comm = world_of(process)
        for _ in range(3):  # until all have tried to read all
            comm.Iallgather(numbers(count, comm.rank), zeros(count * comm.size)).Wait()
        if comm.rank == 2:
            return "left"
        mine = numbers(count, comm.rank)
        if comm.rank == 1:
            comm.Recv(zeros(1), 0)
        try:
            LENDING[call](comm, mine).Wait()
        except MPIException as problem:
            assert problem.Get_error_class() == ERR_PROC_FAILED
        else:
            return "not told"
        mine[:] = zeros(count)
        if comm.rank == 0:
            comm.Send(zeros(1), 1)
        return "told"

    settings = {**SM, "coll_sm_lend_least": 16 * 1024, "coll_sm_nonblocking_size": 32 * 1024}
    assert virtual(3, program, **settings).results == ["told", "told", "left"]


def test_other_calls_and_other_amounts_are_errors() -> None:
    def program(process: RankProcess) -> list[int]:
        comm = world_of(process)
        comm.Ibarrier().Wait()
        codes = []
        for odd in (
            lambda: comm.Iallreduce(zeros(1), zeros(1)) if comm.rank else comm.Ibarrier(),
            lambda: comm.Iallreduce(zeros(1 + comm.rank), zeros(1 + comm.rank)),
            lambda: comm.Ibcast(zeros(2 - comm.rank), 0),
        ):
            try:
                odd().Wait()
                codes.append(0)
            except MPIException as problem:
                codes.append(problem.Get_error_class())
            comm.Ibarrier().Wait()
        return codes

    found = virtual(2, program, **SM).results
    assert ERR_OTHER in (found[0][0], found[1][0])
    assert found[0][1] == found[1][1] == ERR_TRUNCATE
    assert [each[2] for each in found] == [0, ERR_TRUNCATE]


def test_memory_is_given_back_with_the_communicator() -> None:
    def program(process: RankProcess) -> None:
        comm = world_of(process)
        fabric = process.context.network._fabric
        for _ in range(10):
            made = comm.Dup()
            made.Ibarrier().Wait()
            comm.Ibarrier().Wait()
            made.Free()
            comm.Ibarrier().Wait()
            # COMM_WORLD's two, and the next one's if rank 0 is ahead
            assert len(fabric.memory.regions) <= 4

    virtual(3, program, **SM)
