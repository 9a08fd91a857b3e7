"""Atomic operations on a word: types, operations, what is computed. Without I/O.

A word travels as its bits, an integer without a sign; operands and results are numbers of its
type. Integers wrap around, as in C. Floats are rounded to their type, and compared and swapped by
their bits.

Source: reference gasnet.md 14 (Atomics).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntFlag
from math import copysign, inf
from struct import Struct, error
from typing import Final, NamedTuple

from ompy.frameworks.btl_base.atomics import AtomicOp, AtomicType
from ompy.gasnet.errors import BadArgument

Number = int | float


class Datatype(Enum):
    """Of a word; the value is its struct format."""

    I32 = "i"
    U32 = "I"
    I64 = "q"
    U64 = "Q"
    FLT = "f"
    DBL = "d"


class Op(IntFlag):
    """What is done; the second half fetches the old value. Bits in GASNet-EX's order."""

    AND = 1 << 0
    OR = 1 << 1
    XOR = 1 << 2
    ADD = 1 << 3
    SUB = 1 << 4
    MULT = 1 << 5
    MIN = 1 << 6
    MAX = 1 << 7
    INC = 1 << 8
    DEC = 1 << 9
    SET = 1 << 10
    CAS = 1 << 11
    FAND = 1 << 12
    FOR = 1 << 13
    FXOR = 1 << 14
    FADD = 1 << 15
    FSUB = 1 << 16
    FMULT = 1 << 17
    FMIN = 1 << 18
    FMAX = 1 << 19
    FINC = 1 << 20
    FDEC = 1 << 21
    SWAP = 1 << 22
    FCAS = 1 << 23
    GET = 1 << 24


FETCHING: Final = 12  # reference gasnet.md 14 (Atomics): so many bits above the one without
ALL: Final = sum(Op)
FETCHES: Final = sum(op for op in Op if op >> FETCHING)
INTEGERS_ONLY: Final = Op.AND | Op.OR | Op.XOR | Op.FAND | Op.FOR | Op.FXOR
NO_OPERAND: Final = Op.INC | Op.DEC | Op.FINC | Op.FDEC | Op.GET
assert Op.FAND == Op.AND << FETCHING
assert Op.FCAS == Op.CAS << FETCHING

FORMATS: Final = {kind: Struct(f"<{kind.value}") for kind in Datatype}
_BITS: Final = {4: Struct("<I"), 8: Struct("<Q")}
FLOATS: Final = frozenset({Datatype.FLT, Datatype.DBL})
_WORD: Final = {
    Datatype.I32: AtomicType.INT32,
    Datatype.U32: AtomicType.UINT32,
    Datatype.I64: AtomicType.INT64,
    Datatype.U64: AtomicType.UINT64,
}
_COMPUTE: Final[dict[Op, Callable[[Number, Number], Number]]] = {
    Op.ADD: lambda old, first: old + first,
    Op.SUB: lambda old, first: old - first,
    Op.MULT: lambda old, first: old * first,
    Op.MIN: min,
    Op.MAX: max,
    Op.INC: lambda old, _: old + 1,
    Op.DEC: lambda old, _: old - 1,
    Op.SET: lambda _, first: first,
}
_LOGIC: Final[dict[Op, Callable[[int, int], int]]] = {
    Op.AND: lambda old, first: old & first,
    Op.OR: lambda old, first: old | first,
    Op.XOR: lambda old, first: old ^ first,
}
_NIC: Final = {
    Op.AND: AtomicOp.AND,
    Op.OR: AtomicOp.OR,
    Op.XOR: AtomicOp.XOR,
    Op.ADD: AtomicOp.ADD,
    Op.SUB: AtomicOp.ADD,
    Op.INC: AtomicOp.ADD,
    Op.DEC: AtomicOp.ADD,
    Op.MIN: AtomicOp.MIN,
    Op.MAX: AtomicOp.MAX,
    Op.SET: AtomicOp.SWAP,
    Op.CAS: AtomicOp.CSWAP,
    Op.GET: AtomicOp.AND,
}


class NicWord(NamedTuple):
    """An operation as a NIC has it.

    Attributes:
        op: what it computes.
        kind: of the word.
        operand: its bits.
        compare: of a compare and swap, the bits to compare with.
    """

    op: AtomicOp
    kind: AtomicType
    operand: int
    compare: int


def without_fetching(op: Op) -> Op:
    """The same without fetching; GET is itself."""
    return Op(op >> FETCHING) if op & FETCHES and op is not Op.GET else op


def size_of(kind: Datatype) -> int:
    """Bytes of a word."""
    return FORMATS[kind].size


def bits_of(kind: Datatype, number: Number) -> int:
    """The bits of a number of this type.

    Raises:
        BadArgument: it is none.
    """
    form = FORMATS[kind]
    try:
        packed = form.pack(number)
    except (error, OverflowError, TypeError):
        raise BadArgument(f"{number!r} is no number of the type {kind.name}") from None
    return int.from_bytes(packed, "little")


def number_of(kind: Datatype, bits: int) -> Number:
    """The number that bits are."""
    form = FORMATS[kind]
    (number,) = form.unpack(_BITS[form.size].pack(bits))
    found: Number = number
    return found


def compute_word(kind: Datatype, op: Op, old: int, first: int, second: int) -> int:
    """The bits of a word after an operation; all arguments are bits too."""
    which = without_fetching(op)
    if which is Op.CAS:
        return second if old == first else old
    if which is Op.GET:
        return old
    if which in _LOGIC:
        return _LOGIC[which](old, first)
    value = _COMPUTE[which](number_of(kind, old), number_of(kind, first))
    return _rounded(kind, value)


def _rounded(kind: Datatype, value: Number) -> int:
    """The bits of a result: wrapped around, or rounded."""
    if kind not in FLOATS:
        return int(value) & (1 << 8 * size_of(kind)) - 1
    try:
        return bits_of(kind, value)
    except BadArgument:  # too large for a float of 32 bits
        return bits_of(kind, copysign(inf, value))


def for_nic(kind: Datatype, op: Op, first: int, second: int) -> NicWord | None:
    """The operation as a NIC might have it; None: no NIC has."""
    which = without_fetching(op)
    known, word = _NIC.get(which), _WORD.get(kind)
    if known is None or word is None:
        return None
    mask = (1 << 8 * size_of(kind)) - 1
    if which is Op.CAS:
        return NicWord(known, word, second, first)
    changed = {Op.SUB: -first, Op.INC: 1, Op.DEC: -1, Op.GET: -1}
    return NicWord(known, word, changed.get(which, first) & mask, 0)
