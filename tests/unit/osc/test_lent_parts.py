"""Parts of a window in memory of the members' own, copied from and to by the kernel."""

from __future__ import annotations

from random import Random

import pytest
from ompy.data.errors import ERR_PROC_FAILED, ERR_RMA_ATTACH, ERR_RMA_RANGE, MPIError
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.data.packed import to_send
from ompy.frameworks.osc import Place
from ompy.frameworks.osc_base.attached_parts import AttachedParts, room_for_pieces
from ompy.frameworks.osc_base.exposed import combine_elements, swap_element
from ompy.frameworks.osc_base.lent_parts import LentParts, room_for_parts
from ompy.net.base import LinkError
from ompy.net.memory.kernel_copy import KernelCopy

FIRST = 64  # arbitrary: words begin somewhere
INT = Layout(((0, 4),), 0, 4, "i")
PROOF = b"a proof!"


@pytest.fixture
def part() -> memoryview:
    """Of member 1."""
    return memoryview(bytearray(Random(1).randbytes(8000)))


@pytest.fixture
def both(part: memoryview) -> list[LentParts]:
    """As two members have them; both are this process."""
    view = memoryview(bytearray(FIRST + room_for_parts(2)))
    view[: len(PROOF)] = PROOF
    made = [LentParts(_copy(), view, FIRST, rank, [0, len(part)]) for rank in range(2)]
    made[0].lend(memoryview(b""), view)
    made[1].lend(part, view)
    return made


def _copy() -> KernelCopy:
    try:
        return KernelCopy()
    except LinkError as problem:
        pytest.skip(str(problem))


LAYOUTS = {
    "numbers": INT,
    "behind a gap": Layout(((4, 8),), 0, 16, "i"),
    "read with gaps": Layout(((0, 4), (8, 4)), 0, 16, "i"),
    "read by pieces": Layout(((0, 4), (400, 8)), 0, 1000, "i"),
    "in another order": Layout(((400, 4), (0, 8)), 0, 1000, "i"),
    "backwards": Layout(((0, 4),), 0, -8, "i"),
}


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_what_is_stored_and_loaded(both: list[LentParts], part: memoryview, layout: str) -> None:
    before = bytes(part)
    place = Place(1000, 5, LAYOUTS[layout])
    there, model = both[0].message(1, place), bytearray(before)
    same = Message(memoryview(model), 1000, 5, LAYOUTS[layout])
    assert there.packed() == same.packed() == bytes(to_send(there))
    data = Random(2).randbytes(there.size)
    there.store(data)
    same.store(data)
    assert bytes(part) == model != before
    combine_elements(there, memoryview(data), "MPI_BXOR")
    combine_elements(same, memoryview(data), "MPI_BXOR")
    assert bytes(part) == model


def test_swap(both: list[LentParts], part: memoryview) -> None:
    part[40:44] = (7).to_bytes(4, "little")
    there = both[0].message(1, Place(40, 1, INT))
    new, old = memoryview(b"\1\2\3\4"), memoryview(bytes(part[40:44]))
    assert swap_element(there, new, memoryview(b"none")) == old == part[40:44]
    assert swap_element(there, new, old) == old
    assert part[40:44] == new


@pytest.mark.parametrize("at", [-4, 7997, 8000])
def test_beyond_the_part(both: list[LentParts], at: int) -> None:
    with pytest.raises(MPIError) as said:
        both[0].message(1, Place(at, 1, INT))
    assert said.value.code == ERR_RMA_RANGE


def test_who_has_withdrawn_is_not_reached(both: list[LentParts], part: memoryview) -> None:
    before = bytes(part)
    there = both[0].message(1, Place(0, 1, INT))
    both[1].withdraw()
    for what in (there.packed, lambda: there.store(b"1234")):
        with pytest.raises(MPIError) as said:
            what()
        assert said.value.code == ERR_PROC_FAILED
    assert part == before


def test_the_memory_has_to_be_the_right_one(both: list[LentParts]) -> None:
    assert both[0].can_read(2, PROOF)
    assert not both[0].can_read(2, PROOF[::-1])
    both[1].withdraw()
    assert not both[0].can_read(2, PROOF)


MOST = 3  # pieces


@pytest.fixture
def attached() -> list[AttachedParts]:
    """As two members have a dynamic window; both are this process."""
    view = memoryview(bytearray(FIRST + room_for_pieces(2, MOST)))
    made = [AttachedParts(_copy(), view, FIRST, rank, 2, MOST) for rank in range(2)]
    for parts in made:
        parts.lend(memoryview(b""), view)
    return made


def test_pieces_by_address(attached: list[AttachedParts]) -> None:
    here, there = attached
    pieces = [memoryview(bytearray(Random(n).randbytes(100))) for n in range(MOST + 1)]
    for number, piece in enumerate(pieces[:MOST]):
        there.attach(1000 * number + 1, piece)
    assert here.message(1, Place(1011, 2, INT)).packed() == pieces[1][10:18]
    here.message(1, Place(2001, 1, INT)).store(b"abcd")
    assert pieces[2][:4] == b"abcd"
    with pytest.raises(MPIError) as said:
        there.attach(9000, pieces[MOST])
    assert said.value.code == ERR_RMA_ATTACH
    there.detach(1001)
    there.attach(9000, pieces[MOST])
    assert here.message(1, Place(9096, 1, INT)).packed() == pieces[MOST][96:]
    for at in (0, 98, 1001, 1011, 9097, 9100):
        with pytest.raises(MPIError) as said:
            here.message(1, Place(at, 1, INT))
        assert said.value.code == ERR_RMA_RANGE
    assert here.message(1, Place(98, 0, INT)).packed() == b""
    assert here.find_bytes(0, 1, 1) == -1


def test_nobody_reaches_pieces_of_a_window_that_is_freed(attached: list[AttachedParts]) -> None:
    here, there = attached
    there.attach(1, memoryview(bytearray(8)))
    assert here.find_bytes(1, 1, 8) > 0
    there.close()
    assert here.find_bytes(1, 1, 8) == -1
