"""Errors come out of collectives as MPIError, and nothing is left behind where it matters."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ompy import MPI
from ompy.data.errors import ERR_OP, ERR_ROOT, ERR_TRUNCATE, MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout
from ompy.data.operation import Operation
from ompy.frameworks.coll import TAG_GATHER
from ompy.frameworks.coll_base.blocks import Subtree
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.shapes import PLAIN, Board, noise, single
from tests.sim.coll.test_reference import run
from tests.support.worlds import virtual

BYTES = Layout(((0, 1),), 0, 1, "x")
SUM = PREDEFINED["MPI_SUM"]


def error_of(call: Callable[[], object]) -> MPIError:
    with pytest.raises(MPIError) as caught:
        call()
    return caught.value


def test_undefined_operations_fail_everywhere_before_anything_is_sent() -> None:
    def program(comm: Communicator) -> None:
        send, receive = single(4, BYTES).message(), single(4, BYTES).message()
        coll, counts = comm.coll, [1] * comm.size
        for call in (
            lambda: coll.reduce(send, receive if comm.rank == 1 else None, SUM, 1),
            lambda: coll.allreduce(send, receive, SUM),
            lambda: coll.scan(send, receive, SUM),
            lambda: coll.exscan(send, receive, SUM),
            lambda: coll.reduce_scatter(send, receive, counts, SUM),
        ):
            error = error_of(call)
            assert error.code == ERR_OP
            assert "MPI_SUM is not defined for MPI_BYTE" in str(error)
        comm.coll.barrier()
        assert comm.pml.iprobe(comm, -1, -16) is None

    run(program, 4, btl="self,sm")


@pytest.mark.parametrize("count", [3, 3000])
def test_a_block_too_long_for_its_receiver(count: int) -> None:
    """Along the tree and straight; the others get theirs, and the communicator lives on."""

    def program(comm: Communicator) -> None:
        mine = single(count - (comm.rank == 2), PLAIN)
        board = Board.even(count, PLAIN, comm.size)

        def call() -> None:
            comm.coll.scatter(board.blocks() if comm.rank == 0 else None, mine.message(), 0)

        if comm.rank == 2:
            error = error_of(call)
            assert error.code == ERR_TRUNCATE
            assert "from rank 0" in str(error)
        else:
            call()
        comm.coll.barrier()

    run(program, 4, btl="self,sm")


@pytest.mark.parametrize("count", [3, 3000])
def test_a_block_too_long_for_the_root(count: int) -> None:
    def program(comm: Communicator) -> None:
        mine = single(count, PLAIN)
        board = Board([count - (rank == 3) for rank in range(comm.size)], [PLAIN] * comm.size)
        if comm.rank:
            comm.coll.gather(mine.message(), None, 0)
        else:
            error = error_of(lambda: comm.coll.gather(mine.message(), board.blocks(), 0))
            assert error.code == ERR_TRUNCATE
            assert "from rank 3" in str(error)
        comm.coll.barrier()

    run(program, 5, btl="self,sm")


def test_more_room_than_is_sent_is_no_error() -> None:
    """As with a receive; whatever the limit of the tree, the sender's size decides."""

    def program(comm: Communicator) -> None:
        board = Board.even(2, PLAIN, comm.size)
        mine = single(5000, PLAIN)
        comm.coll.scatter(board.blocks() if comm.rank == 0 else None, mine.message(), 0)
        roomy = Board.even(5000, PLAIN, comm.size)
        comm.coll.gather(board.message(0), roomy.blocks() if comm.rank == 0 else None, 0)
        whole = single(5 if comm.rank in (2, 4) else 3, PLAIN)  # those who pass it on
        comm.coll.bcast(whole.message(), 0)

    run(program, 7, btl="self,sm")


def test_members_that_disagree_about_the_root() -> None:
    def program(comm: Communicator) -> None:
        board = Board.even(1, PLAIN, comm.size)
        mine = single(1, PLAIN).message()
        if comm.rank == 0:
            comm.coll.scatter(board.blocks(), mine, 0)
        elif comm.rank == 2:  # gets two ranks' blocks from rank 0; with root 3 it would be one's
            error = error_of(lambda: comm.coll.scatter(None, mine, 3))
            assert error.code == ERR_ROOT

    run(program, 7, btl="self,sm")


def test_what_an_operation_raises_comes_out() -> None:
    def kernel(left: memoryview, right: memoryview, layout: Layout, count: int) -> None:
        raise ZeroDivisionError("in the user's function")

    broken = Operation("broken", kernel, commutative=True)

    def program(comm: Communicator) -> None:
        send, receive = single(1, PLAIN).message(), single(1, PLAIN).message()
        with pytest.raises(ZeroDivisionError):
            comm.coll.allreduce(send, receive, broken)
        comm.coll.barrier()

    run(program, 2, btl="self,sm")


def test_a_late_message_is_not_stored_after_the_error() -> None:
    """Rank 0 gives up for rank 1's block; rank 2's comes when the memory is used again."""

    def program(comm: Communicator) -> None:
        mine = single(1, PLAIN)
        if comm.rank == 1:
            comm.coll.gather(mine.message(), None, 0)
        elif comm.rank == 2:
            comm.pml.send(comm, Subtree([8], []).convertor(), 0, TAG_GATHER, STANDARD)
            comm.context.engine.spend(1_000_000)
            comm.pml.send(comm, mine.message().convertor(), 0, TAG_GATHER, STANDARD)
        else:
            board = Board([1, 0, 1], [PLAIN] * 3)
            board.put(0, mine.expected[: PLAIN.size])
            error = error_of(lambda: comm.coll.gather(None, board.blocks(), 0))
            assert error.code == ERR_TRUNCATE
            assert comm.context.engine.now() < 1_000_000
            board.put(2, noise(8, 1))
            while comm.pml.iprobe(comm, 2, TAG_GATHER) is None:
                comm.context.engine.progress()
            board.verify("after the error")

    run(program, 3, btl="self,sm", coll_basic_tree_block_max=0)


def test_what_a_component_raises_is_its_own() -> None:
    """Only what a user's operation raises ends the job as that; the others wait for the result."""

    def failing(*_: object) -> None:
        raise RuntimeError("the component's")

    def program(process: RankProcess) -> str:
        comm = world_of(process).Dup()
        comm._state().coll.bcast = failing  # type: ignore[method-assign]
        with pytest.raises(RuntimeError) as raised:
            comm.Bcast([bytearray(2), 1, MPI.SHORT])
        return str(raised.value)

    assert virtual(2, program, btl="self,tcp").results == ["the component's"] * 2
