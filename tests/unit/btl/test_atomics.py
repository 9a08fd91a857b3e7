"""What an atomic operation computes, against numpy's words."""

from __future__ import annotations

import numpy as np
import pytest
from ompy.frameworks.btl_base.atomics import (
    NEEDS,
    SUPPORTS_32BIT,
    WIDTH,
    AtomicOp,
    AtomicType,
    result_of,
    supported,
)

WORDS = {
    AtomicType.INT32: np.int32,
    AtomicType.UINT32: np.uint32,
    AtomicType.INT64: np.int64,
    AtomicType.UINT64: np.uint64,
}
COMPUTED = {
    AtomicOp.ADD: np.add,
    AtomicOp.AND: np.bitwise_and,
    AtomicOp.OR: np.bitwise_or,
    AtomicOp.XOR: np.bitwise_xor,
    AtomicOp.LAND: np.logical_and,
    AtomicOp.LOR: np.logical_or,
    AtomicOp.LXOR: np.logical_xor,
    AtomicOp.MIN: np.minimum,
    AtomicOp.MAX: np.maximum,
    AtomicOp.SWAP: lambda _, operand: operand,
}


@pytest.mark.parametrize("type_", AtomicType)
@pytest.mark.parametrize("op", COMPUTED)
def test_results_are_those_of_machine_words(op: AtomicOp, type_: AtomicType) -> None:
    word = WORDS[type_]
    edges = [0, 1, 5, np.iinfo(word).min, np.iinfo(word).max]
    for old in edges:
        for operand in edges:
            with np.errstate(over="ignore"):
                expected = word(COMPUTED[op](word(old), word(operand)))
            assert result_of(op, type_, int(old), int(operand)) == expected


def test_compare_and_swap() -> None:
    assert result_of(AtomicOp.CSWAP, AtomicType.INT64, 5, 7, 5) == 7
    assert result_of(AtomicOp.CSWAP, AtomicType.INT64, 5, 7, 6) == 5


def test_every_operation_has_a_flag_of_its_own_and_four_bytes_one_more() -> None:
    assert set(NEEDS) == set(AtomicOp)
    assert len(set(NEEDS.values())) == len(NEEDS)
    for op, flag in NEEDS.items():
        for type_ in AtomicType:
            assert supported(flag | SUPPORTS_32BIT, op, type_)
            assert supported(flag, op, type_) is (WIDTH[type_] == 8)
            assert not supported(SUPPORTS_32BIT, op, type_)
