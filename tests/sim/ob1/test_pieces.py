"""A message in pieces that ends with a large one: what is before that goes along with the RGET."""

from __future__ import annotations

import pytest
from ompy.data.convertor import GatherConvertor
from ompy.frameworks.pml import BUFFERED, STANDARD, SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess
from ompy_components.pml.ob1.rendezvous.rendezvous_send import PIECE_LEAST, PIECES_BEFORE

from tests.sim.ob1.test_split import SIZE, moved
from tests.sim.p2p.programs import buffer, pattern, world
from tests.support.effort import effort


def pieces(*sizes: int, mode: int = STANDARD, late: bool = False):
    """One message in pieces from rank 0 to rank 1, whose receive may come late."""
    data = pattern(sum(sizes), 7)

    def program(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        process.context.engine.has_core = True
        if comm.rank == 0:
            view = memoryview(bytearray(data))
            cuts = [sum(sizes[:index]) for index in range(len(sizes) + 1)]
            parts = [view[begin:end] for begin, end in zip(cuts, cuts[1:], strict=False)]
            pml.send(comm, GatherConvertor(parts), 1, 5, mode)
            return
        if late:
            assert pml.probe(comm, 0, 5).length == len(data)
        memory, room = buffer(len(data))
        got = pml.recv(comm, room, 0, 5)
        assert bytes(memory) == data
        assert (got.length, got.received) == (len(data), len(data))

    return program


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("mode", [STANDARD, SYNCHRONOUS])
@pytest.mark.parametrize("seed", range(effort(2)))
def test_the_last_piece_is_got(seed: int, mode: int, late: bool) -> None:
    found = moved(pieces(40, 60, SIZE, mode=mode, late=late), seed, btl_sm_split_least=0)
    assert found == [("READ", 100, SIZE)]


def test_both_ranks_copy_it() -> None:
    upper = (SIZE + 100) // 2 // 4096 * 4096
    end = SIZE + 100 - upper
    assert moved(pieces(100, SIZE)) == [("READ", 100, end - 100), ("WRITE", end, upper)]


@pytest.mark.parametrize(
    ("program", "settings"),
    [
        (pieces(PIECES_BEFORE + 1, SIZE), {}),
        (pieces(100, PIECE_LEAST - 1), {"btl_sm_eager_limit": 20_000}),
        (pieces(100, SIZE, mode=BUFFERED), {}),
        (pieces(100, SIZE), {"btl_sm_flags": "send,put"}),
        (pieces(100, SIZE), {"btl_sm_single_copy_mechanism": "none"}),
    ],
    ids=["much before", "short", "buffered", "no get", "no copy"],
)
def test_the_others_are_sent(program, settings) -> None:
    assert {name for name, *_ in moved(program, **settings)} == {"FRAG"}


@pytest.mark.parametrize(
    "settings",
    [
        {"btl_sm_single_copy_mechanism": "emulated"},
        {"btl_sm_get_limit": 100_000},
        {"btl_sm_get_alignment": 8, "btl_sm_split_least": 0},
    ],
    ids=["emulated", "limited", "aligned"],
)
def test_whatever_the_rail_does(settings) -> None:
    assert moved(pieces(PIECES_BEFORE, SIZE), **settings)


def test_a_put_that_cannot_be_done_comes_as_fragments() -> None:
    """The sender's own limit is lower than the receiver knows."""

    def program(process: RankProcess) -> None:
        if process.context.rank == 0:
            process.context.btls[-1].put_limit = 10
        pieces(99, SIZE)(process)

    assert {name for name, *_ in moved(program)} == {"READ", "FRAG"}
