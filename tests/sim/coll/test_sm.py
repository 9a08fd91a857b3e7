"""coll sm: its operations against the reference, ranks apart from each other, and what fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from ompy.data.errors import ERR_PROC_FAILED, ERR_TRUNCATE, MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.message import Blocks
from ompy.engine.base import Poller
from ompy.frameworks.communicator import Communicator
from ompy.net.base import LinkError
from ompy.runtime.ranks.process import RankProcess
from ompy_components.coll.sm.board import NUMBER
from ompy_components.coll.sm.leaving import LeavableBoard as SharedBoard
from ompy_components.coll.sm.module import SmColl
from ompy_components.coll.sm.slots import HEAD

from tests.sim.coll import programs
from tests.sim.coll.operations import COMPOSE, compose, fold
from tests.sim.coll.shapes import PLAIN, Board, noise, single
from tests.sim.coll.test_reference import run
from tests.support.effort import THOROUGH, effort
from tests.support.worlds import virtual

SM = {"coll": "sm,tuned,basic", "btl": "self,sm"}
# the least of both: everything is a pipeline, and everybody waits for everybody
NARROW = {"coll_sm_fragment_size": 64, "coll_sm_comm_num_segments": 2}
# large reductions are worked on in the least of pieces, in CI in eight of these
WINDOW = {
    "coll_sm_fragment_size": 64,
    "coll_sm_window_size": 64 if THOROUGH else 512,
    "coll_sm_single_copy": 0,
}
# large blocks go as messages
SENT = {**NARROW, "coll_sm_single_copy": 0}
SETTINGS = {"default": {}, "narrow": NARROW, "window": WINDOW, "sent": SENT}
SUM = PREDEFINED["MPI_SUM"]


# in CI each operation meets each setting and each size, but not each pair of the two
CELLS = [
    (name, size, setting)
    for number, name in enumerate(programs.PROGRAMS)
    for size in (range(2, 10) if THOROUGH else (2, 3, 5))
    for place, setting in enumerate(SETTINGS)
    if THOROUGH or size == (2, 3, 5)[(number + place) % 3]
]


@pytest.mark.parametrize(("name", "size", "setting"), CELLS)
def test_operation_does_what_mpi_says(name: str, size: int, setting: str) -> None:
    settings = SETTINGS[setting]

    def program(comm: Communicator) -> None:
        assert isinstance(getattr(comm.coll, name).__self__, SmColl)
        programs.PROGRAMS[name](comm)

    for seed in range(effort(1)):
        run(program, size, seed=seed, **SM, **settings)


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("seed", range(effort(3)))
def test_nobody_leaves_a_barrier_before_all_have_come(size: int, seed: int) -> None:
    done = [-1] * size
    run(partial(programs.barrier, done), size, seed=seed, **SM, **NARROW)
    assert done == [programs.BARRIERS - 1] * size


@pytest.mark.parametrize("size", [3, 4])
def test_float_results_have_the_same_bits_everywhere(size: int) -> None:
    results = run(programs.float_sums, size, **SM, **NARROW)
    assert len(results[0]) == 16
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("seed", range(effort(3)))
def test_ranks_run_apart_as_far_as_there_is_room(seed: int) -> None:
    """Roots run ahead, operations are of different kinds, communicators take turns."""

    def program(process: RankProcess) -> None:
        comm = programs.world(process)
        other = process.communicator(40, comm.procs, "other")
        for step in range(30):
            which = comm if step % 3 else other
            root = step % comm.size
            board = single(50, PLAIN)
            board.expect(0, noise(400, step))
            if comm.rank == root:
                board.put(0, noise(400, step))
            which.coll.bcast(board.message(), root)
            board.verify(step)
            if step % 5 == 0:
                which.coll.barrier()

    virtual(4, program, seed=seed, **SM, **NARROW)


def test_memory_is_given_back_with_the_communicator() -> None:
    def program(process: RankProcess) -> None:
        comm = programs.world(process)
        fabric = process.context.network._fabric
        for number in range(10):
            made = process.communicator(50 + number, comm.procs, "made")
            made.coll.barrier()
            comm.coll.barrier()
            process.release(made)
            comm.coll.barrier()
            # COMM_WORLD's, and the next one's if rank 0 is ahead
            assert len(fabric.memory.regions) <= 2

    virtual(3, program, **SM)


def broken(process: RankProcess, who: int, what: str) -> None:
    """At one rank there is no such memory."""

    def refuse(*_: object) -> memoryview:
        raise LinkError("not today")

    network = process.context.network
    if process.context.rank == who and what == "region":
        network.region = refuse
    elif process.context.rank == who:
        copy = network.process_copy()
        if what == "map":
            copy = type("Copy", (type(copy),), {"map": refuse})(network._fabric.memory, who)
        network.process_copy = lambda: copy if what == "map" else None


@pytest.mark.parametrize(("who", "what"), [(0, "region"), (2, "map"), (1, "copy"), (0, "copy")])
def test_without_memory_all_go_on_with_messages(who: int, what: str) -> None:
    def program(process: RankProcess) -> None:
        broken(process, who, what)
        comm = programs.world(process)
        for name in ("bcast", "reduce", "allreduce"):
            programs.PROGRAMS[name](comm)
        comm.coll.barrier()
        assert comm.coll.barrier.__self__._operations is None
        assert not process.context.network._fabric.memory.regions

    virtual(3, program, **SM)


def test_over_other_btls_messages_are_sent() -> None:
    def program(comm: Communicator) -> None:
        assert not isinstance(comm.coll.barrier.__self__, SmColl)

    run(program, 2, coll="sm,tuned,basic", btl="self,tcp")


def ends(comm: Communicator) -> dict[str, Callable[[], object]]:
    """Calls that wait for member 1, who has ended; of those that have it a large one, too."""
    few, much = (single(count, PLAIN).message() for count in (5, 9999))
    room, much_room = single(5, PLAIN).message(), single(9999, PLAIN).message()

    def blocks(count: int) -> Blocks:
        return Board.even(count, PLAIN, comm.size).blocks()

    coll = comm.coll
    return {
        "barrier": coll.barrier,
        "compare_words": partial(coll.compare_words, 7),
        "hear_words": partial(coll.hear_words, 7),
        "bcast": partial(coll.bcast, room, 1),
        "reduce": partial(coll.reduce, few, room, SUM, comm.rank),
        "allreduce": partial(coll.allreduce, few, room, SUM),
        "large allreduce": partial(coll.allreduce, much, much_room, SUM),
        "gather": partial(coll.gather, few, blocks(5), comm.rank),
        "large gather": partial(coll.gather, much, None, 1),
        "scatter": partial(coll.scatter, None, room, 1),
        "large scatter": partial(coll.scatter, blocks(9999), much_room, comm.rank),
        "allgather": partial(coll.allgather, few, blocks(5)),
        "large allgather": partial(coll.allgather, much, blocks(9999)),
        "alltoall": partial(coll.alltoall, blocks(5), blocks(5)),
        "large alltoall": partial(coll.alltoall, blocks(9999), blocks(9999)),
        "large reduce": partial(coll.reduce, much, much_room, SUM, comm.rank),
        "large reduce elsewhere": partial(coll.reduce, much, None, SUM, 2 - comm.rank),
        "large exscan": partial(coll.exscan, much, much_room, SUM),
        "large scan": partial(coll.scan, much, much_room, SUM),
        "reduce_scatter": partial(coll.reduce_scatter, few, room, [2, 2, 1], SUM),
        "large reduce_scatter": partial(
            coll.reduce_scatter, much, much_room, [3333, 3333, 3333], SUM
        ),
        "scan": partial(coll.scan, few, room, SUM),
        "exscan": partial(coll.exscan, few, room, SUM),
    }


ENDS = (
    "barrier",
    "compare_words",
    "hear_words",
    "bcast",
    "reduce",
    "allreduce",
    "large allreduce",
    "large reduce",
    "large reduce elsewhere",
    "gather",
    "large gather",
    "scatter",
    "large scatter",
    "allgather",
    "large allgather",
    "alltoall",
    "large alltoall",
    "scan",
    "large scan",
    "exscan",
    "large exscan",
    "reduce_scatter",
    "large reduce_scatter",
)


@pytest.mark.parametrize("way", ["lent", "sent"])
@pytest.mark.parametrize("call", ENDS)
def test_a_member_that_has_ended_is_an_error(call: str, way: str) -> None:
    def program(process: RankProcess) -> str:
        comm = programs.world(process)
        for count in (1, 9000):  # who may read whom is known from then on
            data = single(count, PLAIN).message()
            comm.coll.allgather(data, Board.even(count, PLAIN, comm.size).blocks())
        comm.coll.barrier()
        if comm.rank == 1:
            return "left"
        if call in ("scan", "exscan") and comm.rank == 0:
            ends(comm)[call]()  # it waits for nobody
            return "told"
        with pytest.raises(
            MPIError, match="has (ended|finalized MPI)( without taking part)?"
        ) as caught:
            ends(comm)[call]()
        assert caught.value.code == ERR_PROC_FAILED
        return "told"

    settings = {"coll_sm_single_copy": int(way == "lent")}
    # what is sent whole at once is lost on who has ended, and nobody is told
    settings["btl_sm_eager_limit"] = 20_000
    assert virtual(3, program, **SM, **settings).results == ["told", "left", "told"]


def test_different_amounts_are_an_error_at_all() -> None:
    def program(comm: Communicator) -> None:
        count = 5 + (comm.rank == 1)
        data, room = single(count, PLAIN).message(), single(count, PLAIN).message()
        with pytest.raises(MPIError, match="different amounts") as caught:
            comm.coll.allreduce(data, room, SUM)
        assert caught.value.code == ERR_TRUNCATE
        room = single(5 - comm.rank, PLAIN).message()
        if comm.rank:
            with pytest.raises(MPIError, match="a broadcast of"):
                comm.coll.bcast(room, 0)
        else:
            comm.coll.bcast(room, 0)
        comm.coll.barrier()

    run(program, 3, **SM)


@pytest.mark.parametrize("call", ["allreduce", "reduce"])
@pytest.mark.parametrize("seed", range(effort(3)))
def test_little_and_much_data_are_an_error_at_all(call: str, seed: int) -> None:
    """Members that take different ways for one reduction agree again afterwards."""

    def program(comm: Communicator) -> None:
        for odd in range(comm.size):
            count = 5000 if comm.rank == odd else 5
            data, room = single(count, PLAIN).message(), single(count, PLAIN).message()
            calls = {
                "allreduce": partial(comm.coll.allreduce, data, room, SUM),
                "reduce": partial(comm.coll.reduce, data, room, SUM, 0),
            }
            if call == "allreduce" or comm.rank in (0, odd):
                with pytest.raises(MPIError, match="different amounts"):
                    calls[call]()
            else:
                calls[call]()
        comm.coll.barrier()
        programs.PROGRAMS["allreduce"](comm)

    virtual(3, lambda process: program(programs.world(process)), seed=seed, **SM, **NARROW)


def test_who_has_been_told_keeps_no_other_thread_awake() -> None:
    """A thread polls for one that waits and has not looked yet: it may sleep until that has."""

    def program(comm: Communicator) -> None:
        if comm.rank:
            return
        memory = memoryview(bytearray(1 << 12))
        board = SharedBoard(comm, memory, 2, 64)
        engine = comm.context.engine
        armed = []

        class Other(Poller):
            """Looks like a thread that is about to sleep, once the board has news."""

            def poll(self) -> int:
                if not armed:
                    board.fill(1, 0)
                    assert board.poll()
                    armed.append(board.arm())
                return 0

        other = Other()
        engine.add_poller(other)
        board.show(1, 0)
        board.wait_for_result(1)
        engine.remove_poller(other)
        assert armed == [True]

    run(program, 2, **SM)


def test_if_nobody_saw_that_he_was_the_last_a_waiting_one_makes_the_result() -> None:
    """Both stored their own words before they saw the other's: processors do that."""

    def program(comm: Communicator) -> None:
        memory = memoryview(bytearray(1 << 12))
        board = SharedBoard(comm, memory, 2, 64)
        # rank 1 has shown fragment 1
        memory.cast("Q")[(board.slot(1, 1) - HEAD >> 3) + NUMBER] = 1
        board.show(1, 0)
        board.wait_for_result(1)
        assert not board.has_result(1)
        assert board.all_shown(1)

    def alone(comm: Communicator) -> None:
        if comm.rank == 0:
            program(comm)

    run(alone, 2, **SM)


def large(comm: Communicator) -> None:
    """Every member's block is larger than a slot, at every member."""
    parts = [noise(9000 * 8, rank) for rank in range(comm.size)]
    mine, board = single(9000, PLAIN), Board.even(9000, PLAIN, comm.size)
    mine.put(0, parts[comm.rank])
    comm.coll.allgather(mine.message(), board.blocks())
    for rank, part in enumerate(parts):
        board.expect(rank, part)
    board.verify("allgather")


# messages go in fragments: whoever reads another's memory reads what was lent
FRAGMENTS = {**SM, "btl_sm_single_copy_mechanism": "none"}


def large_allreduce(comm: Communicator) -> None:
    """Every member's data are larger than a slot, at every member."""
    parts = [noise(9000 * 8, rank) for rank in range(comm.size)]
    mine, room = single(9000, PLAIN), single(9000, PLAIN)
    mine.put(0, parts[comm.rank])
    room.expect(0, fold(compose, parts))
    comm.coll.allreduce(mine.message(), room.message(), COMPOSE)
    room.verify("allreduce")


Call = Callable[[Communicator], None]


def last_reads(process: RankProcess, *, may_read: bool = True, call: Call = large) -> list[int]:
    """Bytes of what this member reads of others' memory in the last of three calls."""
    network, seen = process.context.network, []
    copy = network.process_copy()

    class Watched(type(copy)):
        def read(self, process: int, address: int, view: memoryview) -> None:
            if not may_read:
                raise LinkError("not permitted")
            seen.append(len(view))
            super().read(process, address, view)

    watched = Watched(network._fabric.memory, process.context.rank)
    network.process_copy = lambda: watched
    comm = programs.world(process)
    for _ in range(3):
        seen.clear()
        call(comm)
    return seen


def test_large_blocks_are_read_where_they_are() -> None:
    assert virtual(3, last_reads, **FRAGMENTS).results == [[72000, 72000]] * 3


# 72,000 bytes: of two members each reads the other's; of three a third of the others' and of the
# other results
REDUCED = {2: [72000], 3: [24064, 24064, 24064, 23872], 4: [18432] * 5 + [16704], 5: []}


@pytest.mark.parametrize("ranks", REDUCED)
def test_large_reductions_are_read_where_they_are(ranks: int) -> None:
    results = virtual(ranks, partial(last_reads, call=large_allreduce), **FRAGMENTS).results
    assert results[0] == REDUCED[ranks]
    assert [len(found) for found in results] == [len(REDUCED[ranks])] * ranks
    assert all(sum(found) <= 2 * 72000 for found in results)


@pytest.mark.parametrize("call", [large, large_allreduce])
@pytest.mark.parametrize("refused", [0, 1, 2])
def test_where_one_may_not_read_nothing_is_lent(refused: int, call: Call) -> None:
    def program(process: RankProcess) -> list[int]:
        return last_reads(process, may_read=process.context.rank != refused, call=call)

    assert virtual(3, program, **FRAGMENTS).results == [[]] * 3


@pytest.mark.parametrize("settings", [{}, {"coll_sm_single_copy": 0}], ids=["lent", "sent"])
@pytest.mark.parametrize("count", [5, 9000])
@pytest.mark.parametrize("call", ["gather", "scatter", "allgather", "alltoall"])
def test_a_block_that_is_too_large_is_an_error(
    call: str, count: int, settings: dict[str, int]
) -> None:
    """Of who has too little room, and of nobody else; afterwards all is as before."""

    def program(comm: Communicator) -> str:
        large(comm)
        room = count - (comm.rank == 0)
        mine = single(count, PLAIN).message()
        ample, scarce = (Board.even(each, PLAIN, comm.size).blocks() for each in (count, room))
        calls = {
            "gather": partial(comm.coll.gather, mine, None if comm.rank else scarce, 0),
            "scatter": partial(
                comm.coll.scatter,
                ample if comm.rank == 1 else None,
                single(room, PLAIN).message(),
                1,
            ),
            "allgather": partial(comm.coll.allgather, mine, scarce),
            "alltoall": partial(comm.coll.alltoall, ample, scarce),
        }
        try:
            calls[call]()
        except MPIError as problem:
            assert problem.code == ERR_TRUNCATE
            return "told"
        finally:
            comm.coll.barrier()
            large(comm)
        return "done"

    assert run(program, 3, **SM, **settings) == ["told", "done", "done"]
