"""Type maps and convertors beyond 4 GiB, in memory that is reserved and hardly ever touched."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from types import ModuleType

import pytest
from ompy.data import slabs_numpy, slabs_plain
from ompy.data.strided import StridedConvertor
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPES

GIB = 1 << 30
BYTE, DOUBLE = DATATYPES["BYTE"], DATATYPES["DOUBLE"]


@pytest.fixture
def memory() -> Iterator[memoryview]:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    with mmap.mmap(-1, 9 * GIB, flags=flags) as block, memoryview(block) as view:
        yield view


CASES = {
    # 6 GiB of data, 8 GiB of memory: bytes 3 of 4
    "wide blocks": (BYTE.Create_hvector(4, 3 * GIB // 2, 2 * GIB), 2 * GIB, 3 * GIB // 2),
    # runs of 8 bytes, every other one, 4.5 GiB of data
    "narrow blocks": (DOUBLE.Create_vector(9 * GIB // 16, 1, 2), 16, 8),
    "indexed": (BYTE.Create_hindexed([8, 8, 8], [0, 5 * GIB, 9 * GIB - 8]), None, None),
}


@pytest.mark.parametrize("copying", [slabs_plain, slabs_numpy])
@pytest.mark.parametrize("name", CASES)
def test_bytes_beyond_four_gib(name: str, copying: ModuleType, memory: memoryview) -> None:
    datatype, stride, length = CASES[name]
    layout = datatype._inner.layout
    convertor = StridedConvertor(memory, layout.displacement, layout.node)
    convertor._copying = copying
    if stride is None:
        offsets = [(8, 5 * GIB), (23, 9 * GIB - 1)]
    else:
        assert convertor.size > 4 * GIB
        wanted = (2 * GIB - 3, 4 * GIB - 3, 4 * GIB + 1, convertor.size - 1)
        offsets = [(at, at // length * stride + at % length) for at in wanted]
    for number, (offset, place) in enumerate(offsets):
        memory[place] = 100 + number
        target = bytearray(40)
        assert convertor.pack(offset, memoryview(target)) == min(40, convertor.size - offset)
        assert target[0] == 100 + number
        assert convertor.unpack(offset, memoryview(bytes([200 + number]))) == 1
        assert memory[place] == 200 + number


def test_sizes_and_bounds() -> None:
    huge = DOUBLE.Create_contiguous(1 << 40)
    assert (huge.size, huge.extent) == (1 << 43, 1 << 43)
    assert huge.decode() == (DOUBLE, "CONTIGUOUS", {"count": 1 << 40})
    pair = Datatype.Create_struct([1, 1], [0, 5 * GIB], [DOUBLE, BYTE])
    assert (pair.size, pair.true_extent) == (9, 5 * GIB + 1)
    sides = [1 << 14] * 3
    corner = BYTE.Create_subarray(sides, [2, 2, 2], [(1 << 14) - 2] * 3)
    assert (corner.size, corner.extent, corner.true_ub) == (8, 1 << 42, 1 << 42)
