"""What libfabric's functional tests look at, in our own words: as far as the interface has calls.

Programs of two ranks as those of `fabric_programs.py`. Their names say which of fabtests is meant.
Not here, since the fabric interface has no calls for it: data beside completions, counters, poll
sets, cancelled receives, buffers of several receives, tags, events at the target of a write.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

from ompy.engine.base import Poller
from ompy.frameworks.nic.fabric import Completion, Datatype, FabricDomain, Op

from tests.support.fabric_programs import (
    ALL,
    PLACE,
    SECOND,
    SIZE,
    Remote,
    Side,
    pattern,
    put_word,
)

UNEXPECTED = 4  # messages that nobody has a buffer for, as in unexpected_msg
# bytes of each; with DELIVERY_COMPLETE shm 1.17 takes one of up to 4096 bytes and no more of them
LATE = 8000
FLOOD = 48  # messages of a flood; arbitrary: `sockets` holds more without a buffer
PAUSE = SECOND // 100  # ns in which the other end posts nothing
LARGE = 100_000  # bytes; more than any provider sends at once
ROUNDS = 3


class Extra(Poller):
    """One more endpoint of a side, with a queue of its own that is read one by one."""

    def __init__(self, side: Side, domain: FabricDomain | None = None) -> None:
        self.side = side
        domain = domain or side.domain
        self.vector = domain.address_vector()
        self.queue = domain.completion_queue()
        self.endpoint = domain.endpoint(self.vector, self.queue)
        self.endpoint.enable()
        self.done: list[Completion] = []
        side.engine.add_poller(self)

    def poll(self) -> int:
        found = self.queue.read(1)
        assert len(found) <= 1
        self.done += found
        return len(found)

    def arm(self) -> bool:
        return self.queue.arm() is True

    def meet(self) -> Extra:
        """Know the peer's that is made at the same time."""
        self.to = self.vector.insert(self.side.swap(self.endpoint.name()))
        return self

    def talk(self, salt: int) -> None:
        """A message to the peer's, and one from it; contexts come back as they were."""
        side = self.side
        into, out = object(), object()
        room = memoryview(bytearray(300))
        told = memoryview(bytearray(pattern(300, salt + side.rank)))
        side.post(lambda: self.endpoint.receive(room, None, into))
        side.post(lambda: self.endpoint.send(told, None, self.to, out))
        side.wait(lambda: len(self.done) == 2, "a message to and fro")
        assert not any(one.error for one in self.done)
        assert {id(one.context) for one in self.done} == {id(into), id(out)}
        assert {one.context is into and one.size for one in self.done} == {False, 300}
        assert bytes(room) == pattern(300, salt + 1 - side.rank)
        self.done.clear()

    def close(self) -> None:
        """When both are through with it."""
        self.side.swap(b"close")
        self.side.engine.remove_poller(self)
        self.endpoint.close()
        self.queue.close()
        self.vector.close()


def inject_test(side: Side) -> None:
    """Injected messages up to the limit: the memory is ours again when the call returns."""
    limit = min(side.info.inject_size, 4096)
    sizes = [1, limit // 2, limit - 1, limit]
    for index, size in enumerate(sizes):
        side.receive(index * limit, size, ("r", index))
    side.swap(b"posted")
    view = memoryview(bytearray(limit))
    for index, size in enumerate(sizes):
        view[:size] = pattern(size, index)
        side.post(partial(side.endpoint.inject, view[:size], side.to))
        view[:] = b"\xff" * limit
    found = {}
    for index, _ in enumerate(sizes):
        size = side.good(("r", index)).size
        found[size] = bytes(side.memory[index * limit : index * limit + size])
    assert found == {size: pattern(size, index) for index, size in enumerate(sizes)}
    assert not side.done, "an inject has no completion"


def unexpected_msg(side: Side) -> None:
    """Messages that come before anybody has a buffer for them."""
    for number in range(ROUNDS):
        for index in range(UNEXPECTED):
            begin = SIZE // 2 + LATE * index
            side.memory[begin : begin + LATE] = pattern(LATE, number + index + side.rank)
            side.send(begin, LATE, ("s", index))
        side.swap(b"sent")
        for index in range(UNEXPECTED):
            side.receive(LATE * index, LATE, ("r", index))
        for index in range(UNEXPECTED):
            side.good(("s", index))
            assert side.good(("r", index)).size == LATE
        found = {bytes(side.memory[at : at + LATE]) for at in range(0, LATE * UNEXPECTED, LATE)}
        peers = number + 1 - side.rank
        assert found == {pattern(LATE, index + peers) for index in range(UNEXPECTED)}
        side.swap(b"received")


def flood(side: Side) -> None:
    """Many messages at once to a peer that begins late: each arrives once, and none is lost."""
    side.meet()
    if side.rank == 0:
        for index in range(FLOOD):
            side.memory[1024 * index : 1024 * (index + 1)] = pattern(1024, index)
            side.send(1024 * index, 1024, index)
        for index in range(FLOOD):
            side.good(index)
    else:
        side.engine.wait_until(lambda: False, PAUSE)
        for index in range(FLOOD):
            side.receive(1024 * index, 1024, index)
        for index in range(FLOOD):
            assert side.good(index).size == 1024
        found = [bytes(side.memory[1024 * index : 1024 * (index + 1)]) for index in range(FLOOD)]
        assert sorted(found) == sorted(pattern(1024, index) for index in range(FLOOD))
    side.meet()


def multi_client(side: Side) -> None:
    """One endpoint after the other at the peer's: each is inserted, spoken to, and removed (av)."""
    for number in range(ROUNDS):
        if side.rank == 1:
            extra = Extra(side)
            room = memoryview(bytearray(64))
            side.post(lambda: extra.endpoint.receive(room, None, "in"))  # noqa: B023
            side.swap(extra.endpoint.name())
            side.wait(lambda: bool(extra.done), "the message")  # noqa: B023
            assert [(one.error, one.size) for one in extra.done] == [(0, 64)]
            assert bytes(room) == pattern(64, number)
            extra.close()
        else:
            to = side.vector.insert(side.swap(b"-"))
            view = memoryview(bytearray(pattern(64, number)))
            side.post(partial(side.endpoint.send, view, None, to, "out"))
            side.good("out")
            side.swap(b"close")
            if side.info.provider != "shm":  # 1.17 crashes when its queue is read afterwards
                side.vector.remove(to)
    side.meet()


def multi_ep(side: Side) -> None:
    """Several endpoints of a domain, each with a queue of its own."""
    extras = [Extra(side).meet() for _ in range(3)]
    for number in range(ROUNDS):
        for index, extra in enumerate(extras):
            extra.talk(10 * number + index)
    for extra in extras:
        extra.close()


def multi_domain(side: Side) -> None:
    """Another domain beside the first: closing it is nothing to the first."""
    for number in range(2):
        domain = side.nic.domain(side.info)
        extra = Extra(side, domain).meet()
        extra.talk(number)
        extra.close()
        domain.close()
        side.meet()


def multi_mr(side: Side) -> None:
    """Several regions: each write goes where its key says, and comes back from there."""
    memories = [bytearray(500 + index) for index in range(4)]
    regions = [
        side.domain.register(memoryview(memory), ALL, 0x9000 + 16 * side.rank + index)
        for index, memory in enumerate(memories)
    ]
    mine = b"".join(PLACE.pack(region.base, region.key) for region in regions)
    theirs = [Remote(*place) for place in PLACE.iter_unpack(side.swap(mine))]
    assert len({region.key for region in regions}) == len(regions)
    side.meet()
    for index, there in enumerate(theirs):
        size = 500 + index
        out = memoryview(bytearray(pattern(size, index + side.rank)))
        back = memoryview(bytearray(size))
        place = side.to, there.base, there.key
        side.post(partial(side.endpoint.write, out, None, *place, "write"))
        side.good("write")
        side.post(partial(side.endpoint.read, back, None, *place, "read"))
        side.good("read")
        assert back == out
    side.meet()
    for index, memory in enumerate(memories):
        assert memory == pattern(500 + index, index + 1 - side.rank)
    for region in regions:
        region.close()
    side.meet()


def rma_bw(side: Side) -> None:
    """Both write to and read from each other at once, more than fits a packet."""
    side.meet()
    for number in range(2):
        out = memoryview(bytearray(pattern(LARGE, number + side.rank)))
        back = memoryview(bytearray(LARGE))
        place = side.to, side.there.base, side.there.key
        side.post(partial(side.endpoint.write, out, None, *place, "write"))
        side.good("write")
        side.post(partial(side.endpoint.read, back, None, *place, "read"))
        side.good("read")
        assert back == out
        side.swap(b"written")
        assert bytes(side.memory[:LARGE]) == pattern(LARGE, number + 1 - side.rank)
        side.swap(b"seen")


def rdm_atomic(side: Side) -> None:
    """Both add to each other's word at once: no sum is lost, and each is fetched once."""
    word = struct.Struct("=Q")
    side.meet()
    put_word(side, word, 0)
    side.swap(b"zero")
    one, fetched = memoryview(bytearray(word.pack(1))), []
    result = memoryview(bytearray(word.size))
    what = side.to, side.there.base, side.there.key, Datatype.UINT64, Op.SUM, "sum"
    for _ in range(20):
        side.post(partial(side.endpoint.fetch_atomic, one, result, None, *what))
        side.good("sum")
        fetched.append(word.unpack(result)[0])
    assert fetched == list(range(20))
    side.swap(b"added")
    assert word.unpack_from(side.memory)[0] == 20
    side.meet()


CHECKS: dict[str, Callable[[Side], None]] = {
    made.__name__: made
    for made in (
        inject_test,
        unexpected_msg,
        flood,
        multi_client,
        multi_ep,
        multi_domain,
        multi_mr,
        rma_bw,
        rdm_atomic,
    )
}
