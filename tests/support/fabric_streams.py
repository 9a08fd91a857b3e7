"""Random work of two sides on each other's memory, against a model of it."""

from __future__ import annotations

import struct
from functools import partial
from random import Random

from ompy.frameworks.nic.fabric import AtomicCall, Datatype, Op

from tests.support.fabric_programs import FORMATS, SIZE, Side, expected

AREA = 1 << 14  # bytes of each side's memory that the other works on
SCRATCH = 1 << 15  # where local memory for work begins
SLOT = 4096


class Stream:
    """One side's work, in the order posted; the device keeps that order.

    Attributes:
        model: the peer's memory as it has to be.
    """

    def __init__(self, side: Side, seed: int) -> None:
        self.side = side
        self.model = bytearray(AREA)
        self._random = Random(f"{seed}/{side.rank}")
        self._wanted: dict[object, tuple[int, bytes]] = {}
        self._slots = list(range((SIZE - SCRATCH - SLOT) // SLOT))
        self._free = list(self._slots)
        self._number = 0

    def step(self) -> None:
        """Post one piece of work, behind what is under way."""
        while not self._free:
            self.reap()
        slot = self._free.pop(self._random.randrange(len(self._free)))
        begin = SCRATCH + slot * SLOT
        self._number += 1
        context = (self._number, slot)
        kind = self._random.choice((self._write, self._read, self._atomic, self._fetch, self._swap))
        kind(begin, context)

    def _write(self, begin: int, context: tuple[int, int]) -> None:
        size = self._size()
        at = self._random.randrange(AREA - size + 1)
        data = self._random.randbytes(size)
        self.side.memory[begin : begin + size] = data
        self.model[at : at + size] = data
        self._wanted[context] = (begin, data)
        self.side.write(begin, size, at, context)

    def _read(self, begin: int, context: tuple[int, int]) -> None:
        size = self._size()
        at = self._random.randrange(AREA - size + 1)
        self._wanted[context] = (begin, bytes(self.model[at : at + size]))
        self.side.read(begin, size, at, context)

    def _size(self) -> int:
        return self._random.choice((0, 1, 8, 100, self._random.randrange(SLOT)))

    def _word(self) -> tuple[Datatype, struct.Struct, int, int]:
        datatype = self._random.choice(list(FORMATS))
        form = struct.Struct(FORMATS[datatype])
        at = self._random.randrange(AREA // form.size) * form.size
        return datatype, form, at, form.unpack(self._random.randbytes(form.size))[0]

    def _change(
        self, op: Op, datatype: Datatype, form: struct.Struct, at: int, value: int
    ) -> bytes:
        old = bytes(self.model[at : at + form.size])
        signed = datatype in (Datatype.INT32, Datatype.INT64)
        new = expected(op, form.unpack(old)[0], value, form.size, signed)
        form.pack_into(self.model, at, new)
        return old

    def _op(self, call: AtomicCall, datatype: Datatype) -> Op:
        side = self.side
        valid = [op for op in Op if side.endpoint.atomic_valid(call, datatype, op)]
        return self._random.choice(valid)

    def _atomic(self, begin: int, context: tuple[int, int]) -> None:
        datatype, form, at, value = self._word()
        op = self._op(AtomicCall.ATOMIC, datatype)
        self._change(op, datatype, form, at, value)
        operand = memoryview(bytearray(form.pack(value)))
        self._wanted[context] = (begin, b"")
        where = (self.side.to, self.side.there.base + at, self.side.there.key)
        self.side.post(partial(self.side.endpoint.atomic, operand, *where, datatype, op, context))

    def _fetch(self, begin: int, context: tuple[int, int]) -> None:
        datatype, form, at, value = self._word()
        op = self._op(AtomicCall.FETCH, datatype)
        operand = memoryview(bytearray(form.pack(value)))
        self._wanted[context] = (begin, self._change(op, datatype, form, at, value))
        result = self.side.memory[begin : begin + form.size]
        where = (self.side.to, self.side.there.base + at, self.side.there.key)
        call = self.side.endpoint.fetch_atomic
        self.side.post(
            partial(call, operand, result, self.side.here, *where, datatype, op, context)
        )

    def _swap(self, begin: int, context: tuple[int, int]) -> None:
        datatype, form, at, value = self._word()
        old = bytes(self.model[at : at + form.size])
        compare = old if self._random.random() < 0.5 else form.pack(value)
        if compare == old:
            form.pack_into(self.model, at, value)
        self._wanted[context] = (begin, old)
        words = [memoryview(bytearray(one)) for one in (form.pack(value), compare)]
        result = self.side.memory[begin : begin + form.size]
        where = (self.side.to, self.side.there.base + at, self.side.there.key)
        call = self.side.endpoint.compare_atomic
        self.side.post(
            partial(call, *words, result, self.side.here, *where, datatype, Op.CSWAP, context)
        )

    def reap(self) -> None:
        """Wait for something to complete, and look at what it has brought."""
        side = self.side
        side.wait(lambda: bool(side.done), "random work")
        done, side.done = side.done, []
        for one in done:
            assert one.error == 0, one
            begin, data = self._wanted.pop(one.context)
            assert bytes(side.memory[begin : begin + len(data)]) == data, one
            self._free.append(one.context[1])  # type: ignore[index]

    def finish(self) -> None:
        """Wait for all."""
        while self._wanted:
            self.reap()


def random_work(side: Side, seed: int, count: int) -> bytes:
    """Both sides at once; what this side's area is at the end."""
    side.meet()
    stream = Stream(side, seed)
    for _ in range(count):
        stream.step()
    stream.finish()
    side.read(SCRATCH, AREA, 0, "all")
    side.good("all")
    assert bytes(side.memory[SCRATCH : SCRATCH + AREA]) == stream.model
    side.meet()
    return bytes(side.memory[:AREA])
