"""Atomic operations on a peer's memory: what `BtlModule.atomic` is asked for.

An operation reads one word of registered memory at the peer, computes, and writes the result, and
no other atomic operation that comes through the same kind of module gets in between. With `local`
it fetches: the old value is there when it completes. Accesses that are no atomic operations,
the owner's own among them, are not kept out, but see `SUPPORTS_OWNER`.

Source: reference openmpi.md 3.11, ofi.md A5; the numbers are Open MPI 4.1's. There the three calls
atomic_op, atomic_fop and atomic_cswap are one call here, and signed numbers are compared as such.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple


class AtomicOp(IntEnum):
    """What is computed of the old value and the operand."""

    ADD = 0x01
    AND = 0x11
    OR = 0x12
    XOR = 0x14
    LAND = 0x15
    LOR = 0x16
    LXOR = 0x17
    SWAP = 0x1A
    MIN = 0x20
    MAX = 0x21
    CSWAP = 0x30  # arbitrary: a call of its own in Open MPI


class AtomicType(IntEnum):
    """What the word is; the value is its struct format."""

    INT32 = ord("i")
    UINT32 = ord("I")
    INT64 = ord("q")
    UINT64 = ord("Q")


FORMATS: Final = {kind: Struct(f"<{chr(kind)}") for kind in AtomicType}
WIDTH: Final = {kind: form.size for kind, form in FORMATS.items()}  # bytes

# `BtlModule.atomic_flags`; Open MPI 4.1: MCA_BTL_ATOMIC_SUPPORTS_*
SUPPORTS_ADD: Final = 0x1
SUPPORTS_AND: Final = 0x200
SUPPORTS_OR: Final = 0x400
SUPPORTS_XOR: Final = 0x800
SUPPORTS_LAND: Final = 0x1000
SUPPORTS_LOR: Final = 0x2000
SUPPORTS_LXOR: Final = 0x4000
SUPPORTS_SWAP: Final = 0x10000
SUPPORTS_MIN: Final = 0x100000
SUPPORTS_MAX: Final = 0x200000
SUPPORTS_32BIT: Final = 0x1000000
SUPPORTS_CSWAP: Final = 0x10000000
SUPPORTS_GLOB: Final = 0x20000000  # atomic with the owner's own atomic instructions too
# the owner's processor makes them in its polling, so what it does with the rank's lock held does
# not get in between; arbitrary: a bit that Open MPI leaves free
SUPPORTS_OWNER: Final = 0x40000000

NEEDS: Final = {
    AtomicOp.ADD: SUPPORTS_ADD,
    AtomicOp.AND: SUPPORTS_AND,
    AtomicOp.OR: SUPPORTS_OR,
    AtomicOp.XOR: SUPPORTS_XOR,
    AtomicOp.LAND: SUPPORTS_LAND,
    AtomicOp.LOR: SUPPORTS_LOR,
    AtomicOp.LXOR: SUPPORTS_LXOR,
    AtomicOp.SWAP: SUPPORTS_SWAP,
    AtomicOp.MIN: SUPPORTS_MIN,
    AtomicOp.MAX: SUPPORTS_MAX,
    AtomicOp.CSWAP: SUPPORTS_CSWAP,
}


class AtomicOperation(NamedTuple):
    """One atomic operation.

    Attributes:
        op: which.
        type: of the word.
        operand: the second operand; of CSWAP what is written if the word is `compare`.
        remote_address: of the word, in bytes from the beginning of the memory registered there;
            a multiple of its width.
        remote_handle: bytes of the peer's handle, of memory registered with `REMOTE_ATOMIC`.
        compare: of CSWAP.
        local: where the old value goes, as many bytes as the word has; None: nobody wants it.
        local_handle: of memory that contains `local`; None where `local_registration_threshold`
            allows that.
    """

    op: AtomicOp
    type: AtomicType
    operand: int
    remote_address: int
    remote_handle: bytes
    compare: int = 0
    local: memoryview | None = None
    local_handle: object = None


def supported(flags: int, op: AtomicOp, type_: AtomicType) -> bool:
    """Whether a module with these `atomic_flags` can do it."""
    need = NEEDS[op] | (SUPPORTS_32BIT if WIDTH[type_] == 4 else 0)
    return flags & need == need


def result_of(op: AtomicOp, type_: AtomicType, old: int, operand: int, compare: int = 0) -> int:
    """What is written: a number as the type has it, wrapped around as in C."""
    bits = 8 * WIDTH[type_]
    new = _computed(op, old, operand, compare) & (1 << bits) - 1
    signed = type_ in (AtomicType.INT32, AtomicType.INT64)
    return new - (1 << bits) if signed and new >> bits - 1 else new


def _computed(op: AtomicOp, old: int, operand: int, compare: int) -> int:
    if op is AtomicOp.CSWAP:
        return operand if old == compare else old
    return int(_COMPUTE[op](old, operand))


_COMPUTE: Final[dict[AtomicOp, Callable[[int, int], int]]] = {
    AtomicOp.ADD: lambda old, operand: old + operand,
    AtomicOp.AND: lambda old, operand: old & operand,
    AtomicOp.OR: lambda old, operand: old | operand,
    AtomicOp.XOR: lambda old, operand: old ^ operand,
    AtomicOp.LAND: lambda old, operand: bool(old) and bool(operand),
    AtomicOp.LOR: lambda old, operand: bool(old) or bool(operand),
    AtomicOp.LXOR: lambda old, operand: bool(old) is not bool(operand),
    AtomicOp.SWAP: lambda _, operand: operand,
    AtomicOp.MIN: min,
    AtomicOp.MAX: max,
}
