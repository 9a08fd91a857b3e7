"""Words that the members of a communicator compare, and words that they share."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from ompy import raw
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.coll import ALIKE, DIFFERENT, UNKNOWN
from ompy.frameworks.communicator import Communicator

from tests.sim.coll.test_reference import run
from tests.sim.coll.test_sm import NARROW, SM
from tests.support.effort import effort

MOST = (1 << 63) - 1


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("seed", range(effort(3)))
def test_all_have_the_same_answer(size: int, seed: int) -> None:
    def program(comm: Communicator) -> None:
        engine, coll = comm.context.engine, comm.coll
        for turn in range(12):
            engine.spend(engine.random.randrange(100_000))
            assert coll.compare_words(turn << 40) == ALIKE
            assert coll.compare_words(MOST) == ALIKE
            odd = turn % size
            assert coll.compare_words(int(comm.rank == odd)) == DIFFERENT
            if turn % 3 == 0:
                coll.barrier()
            assert coll.compare_words(comm.rank) == DIFFERENT

    run(program, size, seed=seed, **SM, **NARROW)


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("seed", range(effort(3)))
def test_all_hear_the_same(size: int, seed: int) -> None:
    def program(comm: Communicator) -> None:
        engine, coll = comm.context.engine, comm.coll
        for turn in range(12):
            engine.spend(engine.random.randrange(100_000))
            said = [MOST - turn * rank for rank in range(size)]
            assert coll.hear_words(said[comm.rank]) == said
            if turn % 3 == 0:
                assert coll.compare_words(turn) == ALIKE
            elif turn % 3 == 1:
                coll.barrier()

    run(program, size, seed=seed, **SM, **NARROW)


def test_nobody_has_an_answer_before_all_have_come() -> None:
    done = [-1] * 3

    def program(comm: Communicator) -> None:
        for turn in range(5):
            comm.context.engine.spend(comm.context.engine.random.randrange(100_000))
            done[comm.rank] = turn
            assert comm.coll.compare_words(turn) == ALIKE
            assert min(done) >= turn
            comm.coll.barrier()

    run(program, 3, **SM)


@pytest.mark.parametrize("ask", [attrgetter("compare_words"), attrgetter("hear_words")])
def test_members_of_other_calls_are_told(ask: Callable[[Any], Callable[[int], Any]]) -> None:
    def program(comm: Communicator) -> None:
        comm.coll.barrier()
        comm.order.begin(1 + comm.rank, 0)
        with pytest.raises(MPIError) as caught:
            ask(comm.coll)(5)
        assert caught.value.code == ERR_OTHER

    run(program, 2, **SM)


def test_what_one_stores_all_see() -> None:
    def program(comm: Communicator) -> None:
        words = comm.coll.shared_words()
        assert words is not None
        assert len(words) >= 16
        assert not any(words)
        comm.coll.barrier()
        for turn in range(1, 9):
            if comm.rank == turn % comm.size:
                raw.put_word(words, 0, turn)
                raw.put_word(words, 8, MOST - turn)
            assert comm.coll.compare_words(turn) == ALIKE
            assert (raw.word(words, 0), raw.word(words, 8)) == (turn, MOST - turn)
            comm.coll.barrier()

    run(program, 3, **SM)


@pytest.mark.parametrize("coll", ["tuned,basic", "basic"])
def test_without_memory_there_are_none(coll: str) -> None:
    def program(comm: Communicator) -> None:
        assert comm.coll.compare_words(1) == UNKNOWN
        assert comm.coll.hear_words(1) is None
        assert comm.coll.shared_words() is None

    run(program, 3, coll=coll, btl="self,sm")
