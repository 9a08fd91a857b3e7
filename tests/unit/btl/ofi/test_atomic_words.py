"""Atomics: which there are, and the bytes of a word."""

from __future__ import annotations

from ompy.frameworks.btl_base import atomics
from ompy.frameworks.btl_base.atomics import AtomicOp, AtomicType
from ompy.frameworks.nic.fabric import AtomicCall, Datatype, Op
from ompy_components.btl.ofi import atomic_words


def test_every_operation_and_type_has_its_own() -> None:
    assert set(atomic_words.OPS) == set(AtomicOp)
    assert len(set(atomic_words.OPS.values())) == len(AtomicOp)
    assert set(atomic_words.DATATYPES) == set(AtomicType)
    assert len(set(atomic_words.DATATYPES.values())) == len(AtomicType)


def test_all_flags_of_a_provider_that_can_do_all() -> None:
    flags = atomic_words.flags_of(lambda *_: True, plain=True)
    assert all(atomics.supported(flags, op, kind) for op in AtomicOp for kind in AtomicType)


def test_what_is_not_valid_is_not_promised() -> None:
    def valid(call: AtomicCall, datatype: Datatype, op: Op) -> bool:
        signed_only = op is Op.MIN and datatype is Datatype.UINT64
        plain_only = op is Op.BXOR and call is AtomicCall.FETCH
        return not signed_only and not plain_only and op is not Op.CSWAP

    flags = atomic_words.flags_of(valid, plain=True)
    gone = {AtomicOp.MIN, AtomicOp.XOR, AtomicOp.CSWAP}
    for op in AtomicOp:
        assert atomics.supported(flags, op, AtomicType.INT64) is (op not in gone)
    assert not atomic_words.flags_of(lambda *_: False, plain=True)


def test_what_need_not_be_plain() -> None:
    def valid(call: AtomicCall, datatype: Datatype, op: Op) -> bool:
        return call is not AtomicCall.ATOMIC

    assert atomic_words.flags_of(valid, plain=True) == atomics.SUPPORTS_CSWAP | (
        atomics.SUPPORTS_32BIT
    )
    assert atomics.supported(
        atomic_words.flags_of(valid, plain=False), AtomicOp.ADD, AtomicType.INT32
    )


def test_32_bits_only_with_all_of_them() -> None:
    def valid(call: AtomicCall, datatype: Datatype, op: Op) -> bool:
        return not (datatype is Datatype.INT32 and op is Op.SUM)

    flags = atomic_words.flags_of(valid, plain=True)
    assert not flags & atomics.SUPPORTS_32BIT
    assert atomics.supported(flags, AtomicOp.ADD, AtomicType.INT64)


def test_words_wrap_around() -> None:
    assert bytes(atomic_words.word(AtomicType.INT32, -1)) == b"\xff" * 4
    assert bytes(atomic_words.word(AtomicType.UINT32, -1)) == b"\xff" * 4
    assert bytes(atomic_words.word(AtomicType.INT64, 1 << 63)) == bytes(7) + b"\x80"
    assert bytes(atomic_words.word(AtomicType.UINT64, 1 << 64)) == bytes(8)
