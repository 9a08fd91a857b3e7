"""What atomics compute."""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy.frameworks.btl_base.atomics import WIDTH, AtomicOp, AtomicType, result_of
from ompy.frameworks.nic.fabric import AtomicCall, Datatype, Op

TYPES: Final = {
    Datatype.INT32: AtomicType.INT32,
    Datatype.UINT32: AtomicType.UINT32,
    Datatype.INT64: AtomicType.INT64,
    Datatype.UINT64: AtomicType.UINT64,
}
_OPS: Final = {
    Op.MIN: AtomicOp.MIN,
    Op.MAX: AtomicOp.MAX,
    Op.SUM: AtomicOp.ADD,
    Op.LOR: AtomicOp.LOR,
    Op.LAND: AtomicOp.LAND,
    Op.BOR: AtomicOp.OR,
    Op.BAND: AtomicOp.AND,
    Op.LXOR: AtomicOp.LXOR,
    Op.BXOR: AtomicOp.XOR,
    Op.ATOMIC_WRITE: AtomicOp.SWAP,
    Op.CSWAP: AtomicOp.CSWAP,
}
_FORMATS: Final = {datatype: Struct(f"={chr(kind)}") for datatype, kind in TYPES.items()}
assert all(_FORMATS[datatype].size == WIDTH[kind] for datatype, kind in TYPES.items())


def valid(call: AtomicCall, datatype: Datatype, op: Op) -> bool:
    """Whether there is such an operation: reference ofi.md C3, as four providers have it."""
    if datatype not in TYPES:
        return False
    if op is Op.CSWAP:
        return call is AtomicCall.COMPARE
    if op is Op.ATOMIC_READ:
        return call is AtomicCall.FETCH
    return call is not AtomicCall.COMPARE


def change(word: memoryview, datatype: Datatype, op: Op, operands: memoryview) -> bytes:
    """Do it to a word of memory.

    Args:
        word: as many bytes as the datatype has.
        datatype: of it.
        op: what to do.
        operands: the operand, and behind it for CSWAP what the word is compared with.

    Returns:
        The old word.
    """
    old = bytes(word)
    if op is not Op.ATOMIC_READ:
        form = _FORMATS[datatype]
        before: int = form.unpack(old)[0]
        operand: int = form.unpack_from(operands)[0]
        compare: int = form.unpack_from(operands, form.size)[0] if op is Op.CSWAP else 0
        if op is Op.PROD:
            computed, operand = AtomicOp.SWAP, before * operand
        else:
            computed = _OPS[op]
        form.pack_into(word, 0, result_of(computed, TYPES[datatype], before, operand, compare))
    return old
