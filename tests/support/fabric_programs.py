"""What two ranks do with the fabric interface of a NIC, whichever NIC and world that is.

Rank 0 begins, rank 1 serves; both read their completion queue while they wait, as progress may be
manual. A program takes a `Side` and asserts what it sees; the two have each other's names before.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ompy.engine.base import Engine, Poller
from ompy.frameworks.nic.fabric import (
    AtomicCall,
    Caps,
    Completion,
    Datatype,
    FabricError,
    FabricInfo,
    FabricNic,
    Hints,
    MrMode,
    Op,
)

SECOND = 1_000_000_000  # ns
SIZE = 1 << 18  # bytes of each side's memory
FREE = SIZE - 16  # what lies behind it is used to meet
ALL = Caps.READ | Caps.WRITE | Caps.SEND | Caps.RECV | Caps.REMOTE_READ | Caps.REMOTE_WRITE
OFFERED = MrMode.ALLOCATED | MrMode.PROV_KEY | MrMode.VIRT_ADDR
NEEDED = Caps.MSG | Caps.RMA | Caps.ATOMIC
PLACE = struct.Struct("<QQ")  # base and key of a region
GO_ON = b"go on"
FORMATS = {
    Datatype.INT32: "=i",
    Datatype.UINT32: "=I",
    Datatype.INT64: "=q",
    Datatype.UINT64: "=Q",
}


class Late(AssertionError):
    """What was waited for has not come."""


class Remote(NamedTuple):
    """A region of the peer."""

    base: int
    key: int


class Side(Poller):
    """One rank: an endpoint, its queue, one registered memory, and what has completed.

    Attributes:
        rank: 0 or 1.
        to: the peer, in the address vector.
        there: the peer's region.
        swap: gives the peer some bytes and returns those it gave, beside the fabric.
        done: completions so far.
        again: posts that had to be repeated.
    """

    def __init__(
        self,
        engine: Engine,
        rank: int,
        nic: FabricNic,
        info: FabricInfo,
        swap: Callable[[bytes], bytes],
        *,
        access: Caps = ALL,
        depth: int = 0,
        seconds: float = 30,
    ) -> None:
        """Open everything and meet the peer.

        Args:
            engine: of the rank.
            rank: which.
            nic: open.
            info: of it.
            swap: gives the peer some bytes and returns those it gave.
            access: of the registered memory.
            depth: of the queue.
            seconds: that anything may take.
        """
        self.engine, self.rank, self.nic, self.info = engine, rank, nic, info
        self.seconds, self.swap = seconds, swap
        self.domain = nic.domain(info)
        self.vector = self.domain.address_vector()
        self.queue = self.domain.completion_queue(depth)
        self.endpoint = self.domain.endpoint(self.vector, self.queue)
        self.endpoint.enable()
        self.memory = memoryview(bytearray(SIZE))
        self.region = self.domain.register(self.memory, access, 0x1234 + rank)
        self.done: list[Completion] = []
        self.again = 0
        self.engine.add_poller(self)
        mine = PLACE.pack(self.region.base, self.region.key) + self.endpoint.name()
        theirs = swap(mine)
        self.there = Remote(*PLACE.unpack_from(theirs))
        self.to = self.vector.insert(theirs[PLACE.size :])

    # -- progress

    def poll(self) -> int:
        found = self.queue.read(64)
        self.done += found
        return len(found)

    def arm(self) -> bool:
        return self.queue.arm() is True

    def wait(self, ready: Callable[[], bool], what: object) -> None:
        if not self.engine.wait_until(ready, round(self.seconds * SECOND)):
            raise Late(f"rank {self.rank} waits for {what}; done: {self.done[-5:]}")

    def post(self, call: Callable[[], bool]) -> None:
        """Post until it is taken."""
        pause = 1_000
        while not call():
            self.again += 1
            done = len(self.done)
            self.engine.wait_until(lambda done=done: len(self.done) > done, pause)  # type: ignore[misc]
            pause = min(2 * pause, 100_000)

    def finished(self, context: object) -> Completion:
        """Wait for the completion of one piece of work."""
        self.wait(lambda: any(one.context == context for one in self.done), context)
        found = next(one for one in self.done if one.context == context)
        self.done.remove(found)
        return found

    def good(self, context: object) -> Completion:
        """Wait for it, and see that it went well."""
        found = self.finished(context)
        assert found.error == 0, found
        return found

    # -- work

    @property
    def here(self) -> object:
        return self.region.descriptor

    def send(self, begin: int, size: int, context: object) -> None:
        view = self.memory[begin : begin + size]
        self.post(lambda: self.endpoint.send(view, self.here, self.to, context))

    def receive(self, begin: int, size: int, context: object) -> None:
        view = self.memory[begin : begin + size]
        self.post(lambda: self.endpoint.receive(view, self.here, context))

    def write(self, begin: int, size: int, at: int, context: object, key: int = -1) -> None:
        view, key = self.memory[begin : begin + size], self.there.key if key < 0 else key
        address = self.there.base + at
        self.post(lambda: self.endpoint.write(view, self.here, self.to, address, key, context))

    def read(self, begin: int, size: int, at: int, context: object, key: int = -1) -> None:
        view, key = self.memory[begin : begin + size], self.there.key if key < 0 else key
        address = self.there.base + at
        self.post(lambda: self.endpoint.read(view, self.here, self.to, address, key, context))

    def meet(self) -> None:
        """Both are here, and each has read its queue until the other was."""
        self.receive(FREE, 8, "meet")
        self.memory[FREE + 8 : FREE + 8 + len(GO_ON)] = GO_ON
        self.send(FREE + 8, len(GO_ON), "met")
        assert self.good("meet").size == len(GO_ON)
        assert bytes(self.memory[FREE : FREE + len(GO_ON)]) == GO_ON
        self.good("met")

    def close(self) -> None:
        """Give everything back; the peer may still wait for the answer to its last message."""
        self.engine.wait_until(lambda: False, 5_000_000)
        self.engine.remove_poller(self)
        self.region.close()
        self.endpoint.close()
        self.queue.close()
        self.vector.close()
        self.domain.close()


def pattern(size: int, salt: int = 0) -> bytes:
    """Bytes that differ from place to place."""
    return bytes((index * 7 + (index >> 8) + salt) & 255 for index in range(size))


# -- programs


def messages(side: Side) -> None:
    """Messages of all sizes arrive in order, sent and injected."""
    sizes = [0, 1, 8, 64, 4096, 70_000]
    limit = min(side.info.inject_size, 200)
    side.meet()
    if side.rank == 1:
        begin = 0
        for index, size in enumerate(sizes):
            side.receive(begin, size or 1, ("r", index))
            begin += size or 1
        for index in range(3):
            side.receive(begin, limit, ("i", index))
            begin += limit
    else:
        side.memory[:70_000] = pattern(70_000)
        for index, size in enumerate(sizes):
            side.send(0, size, ("s", index))
        for index in range(3):
            view = memoryview(bytearray(pattern(limit, index)))
            side.post(partial(side.endpoint.inject, view, side.to))
            view[:] = bytes(limit)
        for index in range(len(sizes)):
            side.good(("s", index))
    if side.rank == 1:
        begin = 0
        for index, size in enumerate(sizes):
            assert side.good(("r", index)).size == size
            assert bytes(side.memory[begin : begin + size]) == pattern(70_000)[:size]
            begin += size or 1
        for index in range(3):
            assert side.good(("i", index)).size == limit
            assert bytes(side.memory[begin : begin + limit]) == pattern(limit, index)
            begin += limit
    side.meet()


def writes_and_reads(side: Side) -> None:
    """Bytes go to where they are meant to, and come from there."""
    half = SIZE // 2
    side.meet()
    if side.rank == 0:
        for index, size in enumerate([1, 8, 4096, 100_000]):
            side.memory[:size] = pattern(size, index)
            side.write(0, size, 64 + index, ("w", index))
            side.good(("w", index))
            side.memory[half : half + size] = bytes(size)
            side.read(half, size, 64 + index, ("r", index))
            side.good(("r", index))
            assert bytes(side.memory[half : half + size]) == pattern(size, index)
    side.meet()
    if side.rank == 1:
        assert bytes(side.memory[67:100_067]) == pattern(100_000, 3)
        assert bytes(side.memory[:64]) == bytes(64)
    side.meet()


def atomics(side: Side) -> None:
    """Every operation on every type, plain and fetching, on words of both signs."""
    side.meet()
    if side.rank == 0:
        assert any(
            side.endpoint.atomic_valid(AtomicCall.FETCH, datatype, Op.SUM) for datatype in FORMATS
        )
        for datatype in FORMATS:
            for op in Op:
                for call in (AtomicCall.ATOMIC, AtomicCall.FETCH):
                    if side.endpoint.atomic_valid(call, datatype, op):
                        one_atomic(side, call, datatype, op)
            if side.endpoint.atomic_valid(AtomicCall.COMPARE, datatype, Op.CSWAP):
                compare_and_swap(side, datatype)
    side.meet()


def one_atomic(side: Side, call: AtomicCall, datatype: Datatype, op: Op) -> None:
    form = struct.Struct(FORMATS[datatype])
    width = form.size
    end, to, address, key = side.endpoint, side.to, side.there.base, side.there.key
    signed = datatype in (Datatype.INT32, Datatype.INT64)
    for old, operand in ((0, 9), (-7 if signed else 2 ** (8 * width) - 1, 2)):
        put_word(side, form, old)
        view = memoryview(bytearray(form.pack(operand)))
        result = side.memory[64 : 64 + width]
        what = (to, address, key, datatype, op, "atomic")
        if call is AtomicCall.ATOMIC:
            side.post(partial(end.atomic, view, *what))
        else:
            side.post(partial(end.fetch_atomic, view, result, side.here, *what))
        side.good("atomic")
        if call is AtomicCall.FETCH:
            assert form.unpack(result)[0] == old, (datatype, op)
        assert word(side, form) == expected(op, old, operand, width, signed), (datatype, op, old)


def compare_and_swap(side: Side, datatype: Datatype) -> None:
    form = struct.Struct(FORMATS[datatype])
    address, key = side.there.base, side.there.key
    result = side.memory[64 : 64 + form.size]
    for compare, new in ((5, 77), (6, 5)):
        put_word(side, form, 5)
        operand = memoryview(bytearray(form.pack(77)))
        with_ = memoryview(bytearray(form.pack(compare)))
        what = (side.to, address, key, datatype, Op.CSWAP, "cswap")
        side.post(partial(side.endpoint.compare_atomic, operand, with_, result, side.here, *what))
        side.good("cswap")
        assert form.unpack(result)[0] == 5
        assert word(side, form) == new


def put_word(side: Side, form: struct.Struct, value: int) -> None:
    form.pack_into(side.memory, 0, value)
    side.write(0, form.size, 0, "put")
    side.good("put")


def word(side: Side, form: struct.Struct) -> int:
    side.read(32, form.size, 0, "get")
    side.good("get")
    value: int = form.unpack_from(side.memory, 32)[0]
    return value


def expected(op: Op, old: int, operand: int, width: int, signed: bool) -> int:
    """What a word is afterwards: written down once more, independently of any device."""
    table: dict[Op, Any] = {
        Op.MIN: min(old, operand),
        Op.MAX: max(old, operand),
        Op.SUM: old + operand,
        Op.PROD: old * operand,
        Op.LOR: int(old != 0 or operand != 0),
        Op.LAND: int(old != 0 and operand != 0),
        Op.LXOR: int((old != 0) != (operand != 0)),
        Op.BOR: old | operand,
        Op.BAND: old & operand,
        Op.BXOR: old ^ operand,
        Op.ATOMIC_READ: old,
        Op.ATOMIC_WRITE: operand,
    }
    bits = int(table[op]) & (1 << 8 * width) - 1
    return bits - (1 << 8 * width) if signed and bits >> (8 * width - 1) else bits


def many(side: Side) -> None:
    """More under way than there is room for: every piece of work completes once."""
    count = 300
    side.meet()
    if side.rank == 0:
        side.memory[: 8 * count] = pattern(8 * count)
        for index in range(count):
            side.write(8 * index, 8, 8 * index, index)
        for index in range(count):
            side.good(index)
        assert not side.done
        for index in range(count):
            side.read(SIZE // 2 + 8 * index, 8, 8 * index, index)
        for index in range(count):
            side.good(index)
        assert not side.done
        assert bytes(side.memory[SIZE // 2 :][: 8 * count]) == pattern(8 * count)
    side.meet()


PROGRAMS: dict[str, Callable[[Side], None]] = {
    "messages": messages,
    "writes and reads": writes_and_reads,
    "atomics": atomics,
    "many": many,
}


def best(nic: FabricNic, provider: str = "", **more: Any) -> FabricInfo:
    """The first info with all that the programs need.

    Raises:
        FabricError: there is none.
    """
    hints = Hints(
        more.pop("caps", NEEDED),
        mr_mode=more.pop("mr_mode", OFFERED),
        op_flags=more.pop("op_flags", Caps.DELIVERY_COMPLETE),
        provider=provider,
        **more,
    )
    found = nic.infos(hints)
    if not found:
        raise FabricError(61, f"nothing meets {hints}")
    return found[0]
