"""The contract's atomic operations as libfabric has them.

Source: reference ofi.md A5. There every word is unsigned, so that MIN and MAX go wrong with
negative numbers, and three operations are advertised; both are not carried over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ompy.frameworks.btl_base.atomics import FORMATS, NEEDS, SUPPORTS_32BIT, AtomicOp, AtomicType
from ompy.frameworks.nic.fabric import AtomicCall, Datatype, Op

OPS: Final = {
    AtomicOp.ADD: Op.SUM,
    AtomicOp.AND: Op.BAND,
    AtomicOp.OR: Op.BOR,
    AtomicOp.XOR: Op.BXOR,
    AtomicOp.LAND: Op.LAND,
    AtomicOp.LOR: Op.LOR,
    AtomicOp.LXOR: Op.LXOR,
    AtomicOp.SWAP: Op.ATOMIC_WRITE,
    AtomicOp.MIN: Op.MIN,
    AtomicOp.MAX: Op.MAX,
    AtomicOp.CSWAP: Op.CSWAP,
}

DATATYPES: Final = {
    AtomicType.INT32: Datatype.INT32,
    AtomicType.UINT32: Datatype.UINT32,
    AtomicType.INT64: Datatype.INT64,
    AtomicType.UINT64: Datatype.UINT64,
}

_LONG: Final = (AtomicType.INT64, AtomicType.UINT64)
_SHORT: Final = (AtomicType.INT32, AtomicType.UINT32)

Valid = Callable[[AtomicCall, Datatype, Op], bool]


def word(kind: AtomicType, value: int) -> memoryview:
    """A number in memory of its own, wrapped around to what the type holds."""
    made = FORMATS[kind]
    bits = 8 * made.size
    value &= (1 << bits) - 1
    if kind in (AtomicType.INT32, AtomicType.INT64) and value >> bits - 1:
        value -= 1 << bits
    return memoryview(bytearray(made.pack(value)))


def able(valid: Valid, op: AtomicOp, kind: AtomicType, *, plain: bool) -> bool:
    """Whether a provider can do an operation on a type, fetching too.

    Args:
        valid: asks the provider.
        op: which.
        kind: of the word.
        plain: it has to have the call that does not fetch, which CSWAP never has.
    """
    if op is AtomicOp.CSWAP:
        return valid(AtomicCall.COMPARE, DATATYPES[kind], Op.CSWAP)
    calls = (AtomicCall.ATOMIC, AtomicCall.FETCH) if plain else (AtomicCall.FETCH,)
    return all(valid(call, DATATYPES[kind], OPS[op]) for call in calls)


def flags_of(valid: Valid, *, plain: bool) -> int:
    """`BtlModule.atomic_flags` of a provider.

    An operation is there if it works on both 64-bit types; 32 bits are if all these work on both
    32-bit types.
    """
    there = [op for op in AtomicOp if all(able(valid, op, kind, plain=plain) for kind in _LONG)]
    flags = 0
    for op in there:
        flags |= NEEDS[op]
    short = all(able(valid, op, kind, plain=plain) for op in there for kind in _SHORT)
    return flags | SUPPORTS_32BIT if there and short else flags
