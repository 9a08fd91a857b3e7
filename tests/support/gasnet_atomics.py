"""Programs of atomic domains, for any conduit and any world, beside a model in plain Python."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random
from typing import Any

from ompy.gasnet import BadArgument, Datatype, Op
from ompy.gasnet.atomic_words import FETCHES, FLOATS, INTEGERS_ONLY, NO_OPERAND, without_fetching

from tests.support.effort import THOROUGH
from tests.support.gasnet_programs import SEGMENT, raises, start

LOGIC = (Op.AND, Op.OR, Op.XOR)
COMPUTE: dict[Op, Callable[[Any, Any], Any]] = {
    Op.AND: lambda old, x: old & x,
    Op.OR: lambda old, x: old | x,
    Op.XOR: lambda old, x: old ^ x,
    Op.ADD: lambda old, x: old + x,
    Op.SUB: lambda old, x: old - x,
    Op.MULT: lambda old, x: old * x,
    Op.MIN: min,
    Op.MAX: max,
    Op.INC: lambda old, _: old + 1,
    Op.DEC: lambda old, _: old - 1,
    Op.SET: lambda _, x: x,
}
KINDS = [kind for kind in Datatype for _ in range(2 if THOROUGH else 1)]


def ops_of(kind: Datatype) -> list[Op]:
    """All that can be done to a type."""
    return [op for op in Op if kind not in FLOATS or not op & INTEGERS_ONLY]


def drawn(chance: Random, kind: Datatype) -> Any:
    """A number of a type: small, or at its ends."""
    if kind in FLOATS:
        return chance.choice((0.0, 1.5, -2.25, float(chance.randrange(-1000, 1000))))
    bits = 8 * struct.calcsize(kind.value)
    signed = kind in (Datatype.I32, Datatype.I64)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return chance.choice((0, 1, high, low, high - 1, chance.randint(low, high)))


def after(kind: Datatype, op: Op, old: Any, first: Any, second: Any) -> Any:
    """What the word is then."""
    which = without_fetching(op)
    if which is Op.GET:
        return old
    if which is Op.CAS:
        return second if struct.pack(kind.value, old) == struct.pack(kind.value, first) else old
    value = COMPUTE[which](old, first)
    if kind in FLOATS:
        return struct.unpack(kind.value, struct.pack(kind.value, value))[0]
    size = struct.calcsize(kind.value)
    raw = (value & (1 << 8 * size) - 1).to_bytes(size, "little")
    return struct.unpack("<" + kind.value, raw)[0]


def atomic_operations(gasnet: Any) -> None:
    """Every operation of every type, at ranks and in forms as drawn."""
    start(gasnet)
    me, ranks = gasnet.mynode(), gasnet.nodes()
    chance = Random(me)
    memory = gasnet.segment().memory
    for number, kind in enumerate(KINDS):
        size = struct.calcsize(kind.value)
        whole = gasnet.ad_create(kind, sum(ops_of(kind)))
        for op in ops_of(kind):
            alone = gasnet.ad_create(kind, op)
            domain = alone if (number + me) % 2 else whole
            for node in range(ranks) if THOROUGH else [chance.randrange(ranks)]:
                offset = 64 * (1 + me) + 8
                old, first, second = (drawn(chance, kind) for _ in range(3))
                if without_fetching(op) is Op.CAS and chance.random() < 0.5:
                    first = old
                if kind is Datatype.FLT and without_fetching(op) is Op.MULT:
                    first = 0.5
                packed = struct.pack("<" + kind.value, old)
                gasnet.put(node, offset - 8, b"\xa5" * (16 + size))
                gasnet.put(node, offset, packed)
                fetched = bytearray(size) if op & FETCHES else None
                operands = () if op & NO_OPERAND else (first, second)
                form = chance.randrange(3)
                if form == 0:
                    got = domain.op(node, offset, op, *operands)
                    assert (got is None) is (fetched is None)
                    if fetched is not None:
                        fetched[:] = struct.pack("<" + kind.value, got)
                elif form == 1:
                    gasnet.wait_syncnb(domain.op_nb(fetched, node, offset, op, *operands))
                else:
                    domain.op_nbi(fetched, node, offset, op, *operands)
                    gasnet.wait_syncnbi_all()
                assert fetched is None or fetched == packed, (kind, op, node)
                room = bytearray(16 + size)
                gasnet.get(room, node, offset - 8)
                wanted = struct.pack("<" + kind.value, after(kind, op, old, first, second))
                assert room[8:-8] == wanted, (kind, op, node, old, first, second, bytes(room))
                assert room[:8] == room[-8:] == b"\xa5" * 8, "bytes beside the word"
            alone.destroy()
    gasnet.barrier()
    assert len(memory) == SEGMENT
    gasnet.barrier()


def few_atomics(gasnet: Any) -> None:
    """The same for `ompy sim`, where a turn of polling costs as much as a message."""
    start(gasnet)
    ranks, offset = gasnet.nodes(), 256
    for kind in (Datatype.I32, Datatype.U64, Datatype.DBL):
        domain = gasnet.ad_create(kind, Op.FADD | Op.INC | Op.GET)
        gasnet.memset(gasnet.mynode(), offset, 0, 16)
        gasnet.barrier()
        tickets = [domain.op(0, offset, Op.FADD, 2) for _ in range(3)]
        assert tickets == sorted(set(tickets))
        for node in range(ranks):
            domain.op_nbi(None, node, offset + 8, Op.INC)
        gasnet.wait_syncnbi_all()
        gasnet.barrier()
        assert domain.op(0, offset, Op.GET) == 6 * ranks
        assert domain.op(gasnet.mynode(), offset + 8, Op.GET) == ranks
        gasnet.barrier()


def atomic_counters(gasnet: Any) -> None:
    """All ranks add to, exchange and compare one word, their own among them: nothing gets lost."""
    start(gasnet)
    me, ranks = gasnet.mynode(), gasnet.nodes()
    for kind in (Datatype.I32, Datatype.U64, Datatype.DBL):
        domain = gasnet.ad_create(kind, Op.FADD | Op.INC | Op.GET | Op.FCAS | Op.CAS)
        size, rounds = struct.calcsize(kind.value), 6
        offset = 256
        gasnet.memset(me, offset, 0, 512)
        gasnet.barrier()
        tickets = [bytearray(size) for _ in range(rounds)]
        handles = []
        for number, ticket in enumerate(tickets):
            handles.append(domain.op_nb(ticket, 0, offset, Op.FADD, 1))
            domain.op_nbi(None, (me + number) % ranks, offset + 64, Op.INC)
        gasnet.wait_syncnb_all(handles)
        gasnet.wait_syncnbi_all()
        for ticket in tickets:  # a lock of compare and swap, around a counter that has none
            while domain.op(0, offset + 128, Op.FCAS, 0, 1):
                gasnet.am_poll()
            word = bytearray(size)
            gasnet.get(word, 0, offset + 192)
            (value,) = struct.unpack("<" + kind.value, word)
            gasnet.put(0, offset + 192, struct.pack("<" + kind.value, value + 1))
            domain.op(0, offset + 128, Op.CAS, 1, 0)
            (mine,) = struct.unpack("<" + kind.value, ticket)
            gasnet.put(0, 1024 + 8 * int(mine), b"\x01")
        gasnet.barrier()
        assert domain.op(0, offset, Op.GET) == rounds * ranks
        assert domain.op(0, offset + 192, Op.GET) == rounds * ranks
        assert sum(domain.op(node, offset + 64, Op.GET) for node in range(ranks)) == rounds * ranks
        seen = bytearray(8 * rounds * ranks)
        gasnet.get(seen, 0, 1024)
        assert seen[::8] == b"\x01" * (rounds * ranks), "a ticket was given twice"
        gasnet.barrier()
        if not me:
            gasnet.memset(0, 1024, 0, 8 * rounds * ranks)
        gasnet.barrier()


def wrong_atomics(gasnet: Any) -> None:
    """What cannot be meant is refused before anything is sent."""
    refused: list[str] = []

    def ask(_token: Any, _payload: memoryview) -> None:
        refused.append(raises(BadArgument, domain.op, 0, 0, Op.ADD, 1))

    start(gasnet, ask)
    right = (gasnet.mynode() + 1) % gasnet.nodes()
    domain = gasnet.ad_create(Datatype.I32, Op.ADD | Op.FADD | Op.CAS)
    assert "destroyed" not in repr(domain)
    for arguments in (
        (right, 2, Op.ADD, 1),
        (right, SEGMENT, Op.ADD, 1),
        (right, -4, Op.ADD, 1),
        (gasnet.nodes(), 0, Op.ADD, 1),
        (right, 0, Op.SUB, 1),
        (right, 0, Op.ADD | Op.FADD, 1),
        (right, 0, 0, 1),
        (right, 0, Op.ADD, 1 << 31),
        (right, 0, Op.ADD, 1.5),
        (right, 0, Op.ADD, "1"),
        (right, 0, Op.CAS, 1, 1 << 40),
    ):
        raises(BadArgument, domain.op, *arguments)
    for call in (domain.op_nb, domain.op_nbi):
        raises(BadArgument, call, None, right, 0, Op.FADD, 1)
        raises(BadArgument, call, bytearray(4), right, 0, Op.ADD, 1)
        raises(BadArgument, call, bytearray(8), right, 0, Op.FADD, 1)
        raises(BadArgument, call, bytes(4), right, 0, Op.FADD, 1)
    for wrong in (("i32", Op.ADD), (Datatype.I32, 0), (Datatype.I32, 1 << 25)):
        raises(BadArgument, gasnet.ad_create, *wrong)
    raises(BadArgument, gasnet.ad_create, Datatype.DBL, Op.FXOR | Op.ADD)
    raises(BadArgument, gasnet.ad_create, Datatype.I32, None)
    gasnet.am_request_short(right, ask)
    gasnet.block_until(lambda: refused)
    gasnet.barrier()
    assert not any(gasnet.segment().memory)
    domain.destroy()
    raises(BadArgument, domain.op, right, 0, Op.ADD, 1)
    raises(BadArgument, domain.destroy)
    gasnet.barrier()


ATOMICS = {
    program.__name__: program
    for program in (atomic_operations, atomic_counters, few_atomics, wrong_atomics)
}
