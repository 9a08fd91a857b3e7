"""Random work of two ranks on each other's memory, planned beforehand with all that comes of it.

What a stream (one queue pair of one rank) will do follows from the seed alone, so both ranks know
it: who works knows what it will read and fetch, and its peer what it will receive and what its
memory will hold in the end. Each stream has a part of the peer's memory to itself.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from ompy.frameworks.nic.verbs import Completion, Opcode, SendWork, Span, Status

from tests.support.hca_job import Rank

PART = 4096  # bytes
MESSAGE_MAX = 3000
STREAMS = 3
BUFFERS = 6  # receive buffers at a time: fewer than messages come, so that some find none
MODULUS = 2**64


class Step(NamedTuple):
    """One piece of work.

    Attributes:
        data: sent or written.
        at: in the peer's part.
        size: read.
        result: what a read or an atomic finds.
    """

    opcode: Opcode
    data: bytes = b""
    at: int = 0
    size: int = 0
    compare: int = 0
    swap: int = 0
    result: bytes = b""
    signaled: bool = True
    inline: bool = False
    cut: int = 0


def plan(seed: int, rank: int, stream: int, count: int) -> tuple[list[Step], bytes]:
    """What a stream does, and what its part of the peer's memory holds afterwards."""
    random = Random(f"{seed}/{rank}/{stream}")
    memory = bytearray(PART)
    steps = [_STEPS[random.choice(_KINDS)](random, memory) for _ in range(count)]
    return steps, bytes(memory)


def _size(random: Random, most: int) -> int:
    return random.choice([0, 1, 64, random.randrange(most), random.randrange(most)])


def _bytes(random: Random, most: int) -> dict[str, Any]:
    size = _size(random, most)
    return {
        "data": random.randbytes(size),
        "signaled": random.random() < 0.6,
        "inline": size <= 64 and random.random() < 0.5,
        "cut": random.randrange(size + 1),
    }


def _send(random: Random, memory: bytearray) -> Step:
    return Step(Opcode.SEND, **_bytes(random, MESSAGE_MAX))


def _write(random: Random, memory: bytearray) -> Step:
    parts = _bytes(random, PART)
    size = len(parts["data"])
    at = random.randrange(PART - size + 1)
    memory[at : at + size] = parts["data"]
    return Step(Opcode.RDMA_WRITE, at=at, **parts)


def _read(random: Random, memory: bytearray) -> Step:
    size = random.choice([_size(random, PART), PART])
    at = random.randrange(PART - size + 1)
    result = bytes(memory[at : at + size])
    cut = random.randrange(size + 1)
    return Step(Opcode.RDMA_READ, at=at, size=size, result=result, cut=cut)


def _atomic(random: Random, memory: bytearray) -> Step:
    at = 8 * random.randrange(4)
    old = bytes(memory[at : at + 8])
    value = int.from_bytes(old, sys.byteorder)
    swap = random.choice([1, MODULUS - 1, random.randrange(MODULUS)])
    if random.random() < 0.5:
        opcode, compare, new = Opcode.FETCH_AND_ADD, 0, (value + swap) % MODULUS
    else:
        opcode, compare = Opcode.COMPARE_AND_SWAP, random.choice([value, value ^ 1])
        new = swap if compare == value else value
    memory[at : at + 8] = new.to_bytes(8, sys.byteorder)
    return Step(opcode, at=at, size=8, compare=compare, swap=swap, result=old, cut=8)


_STEPS: dict[str, Callable[[Random, bytearray], Step]] = {
    "send": _send,
    "write": _write,
    "read": _read,
    "atomic": _atomic,
}
_KINDS = ("send", "send", "write", "write", "read", "atomic")


class Work:
    """All streams of one rank."""

    def __init__(self, rank: Rank, seed: int, count: int) -> None:
        self.rank = rank
        self.random = Random(f"{seed}/{rank.context.rank}")
        self.pairs = rank.connect(STREAMS, send_depth=12, receive_depth=BUFFERS)
        self.index = {pair.number: index for index, pair in enumerate(self.pairs)}
        self.plans = [plan(seed, rank.context.rank, stream, count) for stream in range(STREAMS)]
        self.theirs = [plan(seed, rank.peer, stream, count) for stream in range(STREAMS)]
        self.messages = [
            [step.data for step in steps if step.opcode is Opcode.SEND] for steps, _ in self.theirs
        ]
        self.received: dict[int, int] = defaultdict(int)
        self.buffered: dict[int, int] = defaultdict(int)
        self.posted = [0] * STREAMS
        self.told = [0] * STREAMS  # pieces that are done: told, or before one that was
        self.open: dict[tuple[int, int], tuple[memoryview, bytes]] = {}

    def go_on(self) -> bool:
        """Post what there is room for, look at what is done; true when all is."""
        for completion in self.rank.end.done:
            self._done(completion)
        self.rank.end.done.clear()
        for stream, pair in enumerate(self.pairs):
            steps, _ = self.plans[stream]
            while self.posted[stream] < len(steps) and self._room(stream):
                self._post(stream, steps)
            wanted = len(self.messages[stream])
            while self.buffered[stream] < min(wanted, self.received[stream] + BUFFERS):
                memory, spans = self._memory(bytes(MESSAGE_MAX), MESSAGE_MAX)
                pair.post_receive(spans[0], (stream, memory))
                self.buffered[stream] += 1
        every = range(STREAMS)
        return all(
            self.told[stream] == len(self.plans[stream][0])
            and self.received[stream] == len(self.messages[stream])
            for stream in every
        )

    def check(self) -> None:
        """What the peer did to this rank's memory."""
        for stream in range(STREAMS):
            begin = stream * PART
            assert self.rank.end.memory[begin : begin + PART] == self.theirs[stream][1], stream
        assert not any(self.rank.end.memory[STREAMS * PART :])
        assert not self.open

    def _room(self, stream: int) -> bool:
        return self.posted[stream] - self.told[stream] < self.pairs[stream].send_depth

    def _memory(self, data: bytes, cut: int) -> tuple[memoryview, list[Span]]:
        end = self.rank.end
        memory = memoryview(bytearray(data))
        region = end.domain.register(memory, end.region.access)
        return memory, [
            Span(piece, region.lkey) for piece in (memory[:cut], memory[cut:]) if len(piece)
        ]

    def _post(self, stream: int, steps: list[Step]) -> None:
        number = self.posted[stream]
        step = steps[number]
        memory, spans = self._memory(step.data or bytes(step.size), step.cut)
        # the last one that fits is told, so that room is told of
        last = number + 1 == len(steps) or (number + 1) % 6 == 0
        work = SendWork(
            step.opcode,
            spans,
            (stream, number),
            signaled=step.signaled or last,
            inline=step.inline,
            remote_address=self.rank.address + stream * PART + step.at,
            rkey=self.rank.rkey,
            compare=step.compare,
            swap=step.swap,
        )
        if step.size:
            self.open[stream, number] = memory, step.result
        self.posted[stream] += 1
        self.pairs[stream].post_send(work)
        if step.inline:
            memory[:] = bytes(len(memory))

    def _done(self, completion: Completion) -> None:
        assert completion.status is Status.SUCCESS, completion
        context: Any = completion.context
        if completion.opcode is Opcode.RECEIVE:
            stream, memory = context
            assert stream == self.index[completion.number]
            expected = self.messages[stream][self.received[stream]]
            assert memory[: completion.size] == expected, (stream, self.received[stream])
            self.received[stream] += 1
            return
        stream, number = context
        assert number >= self.told[stream], "told out of order, or twice"
        for earlier in range(self.told[stream], number):
            step = self.plans[stream][0][earlier]
            assert not step.signaled, f"{earlier} was not told"
        self.told[stream] = number + 1
        if (stream, number) in self.open:
            memory, result = self.open.pop((stream, number))
            assert memory == result, context


def streams(seed: int, count: int) -> Callable[[Rank], int]:
    """A program: do the work of all streams. Returns the ns it took."""
    finished: set[int] = set()

    def program(rank: Rank) -> int:
        work = Work(rank, seed, count)
        begun = rank.engine.now()
        assert rank.wait(work.go_on, 300), "no end"
        took = rank.engine.now() - begun
        finished.add(rank.context.rank)
        while len(finished) < 2:  # what the peer has not heard of it has to hear
            rank.wait(lambda: len(finished) == 2, 0.001)
        work.check()
        return took

    return program
