"""GASNet programs that are drawn from a number, and check every byte.

`run(gasnet, shape)` is one rank's, of the module in a real or simulated process, of a `Gasnet` in
a virtual world. It goes through phases: some steps of its own (puts and gets in every form,
messages, a table that all share), then all come to an end of what they have asked, then a barrier,
over which puts and gets may stay under way. Each rank writes to a share of every segment that is
its alone, so it knows every byte there; what it does not know, the owner of the bytes compares.

Source: reference gasnet.md 11, 12.
"""

from __future__ import annotations

from collections import Counter, deque
from functools import partial
from random import Random
from typing import Any, Final
from zlib import crc32

from ompy.gasnet import (
    BARRIERFLAG_ANONYMOUS,
    BARRIERFLAG_MISMATCH,
    PAGE_SIZE,
    BarrierMismatch,
)

from tests.support.gasnet_transfers import Shape, Transfers, often

LONG_ROOM: Final = 8192  # bytes of a segment for the Longs of one rank
SLOTS: Final = 32  # of a rank's part of the table
SLOT: Final = 16  # bytes: key and value
STEPS_MAX: Final = 8  # of a phase
HOPS_MAX: Final = 6
BARRIERS: Final = ("plain", "named", "anonymous", "mixed", "flagged", "different")
ENDS: Final = ("return", "all", "one", "some", "handler", "middle")


def draw(number: int, ranks: int, edges: tuple[int, ...], most: int) -> Shape:
    """A program for so many ranks, with transfers of up to `most` bytes."""
    random = Random(f"program {number}")
    share = -(-max(1024, most) // 1024) * 1024
    end = random.choice((*ENDS, "return", "return"))
    code = random.randint(1, 255) if end not in ("return", "all") else 0
    return Shape(number, ranks, share, edges, random.choice((1, 1, 1, 2)), end, code)


def pattern(key: int, size: int) -> bytes:
    """Bytes that differ for each key and place."""
    return Random(key).randbytes(size)


class Program(Transfers):
    """One rank at work."""

    def __init__(self, gasnet: Any, shape: Shape) -> None:
        super().__init__(gasnet, Random())
        self.shape = shape
        self.ready = False

    # --- where things lie in a segment

    def place_of_longs(self, source: int) -> int:
        return self.ranks * self.shape.share + source * LONG_ROOM

    @property
    def table(self) -> int:
        return self.place_of_longs(self.ranks + 1)

    # --- the whole

    def run(self) -> None:
        shape, gasnet = self.shape, self.gasnet
        gasnet.init()
        self.me, self.ranks = gasnet.mynode(), gasnet.nodes()
        assert self.ranks == shape.ranks
        self.base = self.me * shape.share
        self.scratch = self.table + SLOTS * SLOT
        self.random = Random(f"rank {self.me} of program {shape.number}")
        self.common = Random(f"all ranks of program {shape.number}")
        self.models = [bytearray(shape.share) for _ in range(self.ranks)]
        self.long_used = [0] * self.ranks
        self.back_used = 0
        self.sent: list[Counter[int]] = [Counter() for _ in range(self.ranks)]
        self.seen: list[Counter[int]] = [Counter() for _ in range(self.ranks)]
        self.numbers = 0
        self.asked: dict[int, int] = {}  # number: bytes of the reply
        self.relays: set[int] = set()
        self.queue: deque[tuple[int, int, int, bytes]] = deque()
        self.keys: dict[int, tuple[int, int, int]] = {}  # key: node, slot, value
        self.answers: dict[int, int] = {}
        self.quiet: Counter[int] = Counter()
        handlers = (self.tell, self.ask, self.answer, self.relay, self.home, self.insert)
        handlers += (self.inserted, self.compare, self.same, self.calm, self.total, self.leave)
        size = self.scratch + 4 * shape.share
        indices = gasnet.attach(handlers, -(-size // PAGE_SIZE) * PAGE_SIZE)
        self.index = {each.__name__: index for each, index in zip(handlers, indices, strict=True)}
        self.memory = gasnet.segment().memory
        self.ready = True
        leaves = self.common.randrange(shape.phases)
        for phase in range(shape.phases):
            if shape.end == "middle" and phase == leaves:
                self.finish_by(self.common.randrange(self.ranks), wait=False)
            self.phase(phase)
        self.compare_all()
        self.the_end()

    def phase(self, phase: int) -> None:
        for _ in range(self.random.randrange(2, STEPS_MAX)):
            self.step()
        self.settle(2 * phase)
        if self.common.random() < 0.4:
            self.read_others(phase)
        self.barrier()

    def step(self) -> None:
        steps = (self.put, self.put, self.get, self.get, self.vector, self.message, self.message)
        steps += (self.region, self.value, self.fill, self.begin_relay, self.use_table, self.sync)
        self.random.choice(steps)()
        if self.random.random() < 0.1:
            self.gasnet.am_poll()
        self.pump()

    # --- messages

    def message(self) -> None:
        """A request of any kind, answered by a reply of any kind or by none."""
        gasnet, random = self.gasnet, self.random
        node, number = random.randrange(self.ranks), self.number()
        kind, asks = random.choice(("short", "medium", "long", "long_async")), random.random() < 0.6
        size = self.message_size(gasnet.am_max_medium() if kind == "medium" else LONG_ROOM)
        if kind.startswith("long") and self.long_used[node] + size > LONG_ROOM:
            kind = "medium"
            size = min(size, gasnet.am_max_medium())
        size = 0 if kind == "short" else size
        back, back_size, place = random.randrange(3), 0, 0
        if asks:
            back_size, place = self.reply_room(back)
            back = 0 if back == 2 and place < 0 else back
            self.asked[number] = back_size
        words = [number, size, back, back_size, max(0, place)]
        words += extras(number, random.randrange(gasnet.am_max_args() - len(words) + 1))
        call = getattr(gasnet, f"am_request_{kind}")
        handler = self.index["ask" if asks else "tell"]
        self.sent[node][number] += 1
        if kind == "short":
            call(node, handler, *words)
        else:
            source = bytearray(pattern(number, size))
            where: tuple[int, ...] = ()
            if kind != "medium":
                where = (self.place_of_longs(self.me) + self.long_used[node],)
                self.long_used[node] += size
            call(node, handler, source, *where, *words)
            if kind != "long_async":
                source[:] = bytes(size)
        self.counted[kind] += 1

    def message_size(self, limit: int) -> int:
        edges = (0, 1, 8, 40, 48, 49, 112, 113, 129, 500, 560, 568, 600, 624, 632, 633, 1500)
        return min(self.random.choice(edges), limit)

    def reply_room(self, back: int) -> tuple[int, int]:
        """Bytes of a reply, and where they go if it is a Long; -1 where there is no more room."""
        if not back:
            return 0, 0
        size = self.message_size(self.gasnet.am_max_medium() if back == 1 else LONG_ROOM)
        if back == 1:
            return size, 0
        if self.back_used + size > LONG_ROOM:
            return 0, -1
        self.back_used += size
        return size, self.place_of_longs(self.ranks) + self.back_used - size

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def heard(self, token: Any, payload: Any, number: int, size: int, rest: tuple[int, ...]) -> int:
        source: int = self.gasnet.am_get_msg_source(token)
        assert bytes(payload) == pattern(number, size), "bytes of another message"
        assert list(rest) == extras(number, len(rest)), "arguments of another message"
        self.seen[source][number] += 1
        assert self.seen[source][number] == 1, "a message twice"
        return source

    def tell(self, token: Any, payload: Any, *words: int) -> None:
        self.heard(token, payload, words[0], words[1], words[5:])

    def ask(self, token: Any, payload: Any, *words: int) -> None:
        number, size, back, back_size, place = words[:5]
        self.heard(token, payload, number, size, words[5:])
        data, answer = pattern(number + 1, back_size), self.index["answer"]
        if back == 0:
            self.gasnet.am_reply_short(token, answer, number)
        elif back == 1:
            self.gasnet.am_reply_medium(token, answer, data, number)
        else:
            self.gasnet.am_reply_long(token, answer, data, place, number)

    def answer(self, _token: Any, payload: Any, number: int) -> None:
        size = self.asked.pop(number)  # a second answer finds none
        assert bytes(payload) == pattern(number + 1, size), "bytes of another reply"

    # --- relays: a message that many pass on

    def begin_relay(self) -> None:
        number = self.number()
        self.relays.add(number)
        data = bytes(self.random.randrange(256) for _ in range(self.random.randrange(60)))
        self.queue.append((self.me, number, self.random.randint(1, HOPS_MAX), data))
        self.answers[-number] = crc32(data)
        self.counted["relays"] += 1

    def pump(self) -> None:
        """Pass on what has come; a handler may not."""
        while self.queue:
            home, number, hops, data = self.queue.popleft()
            if hops:
                node = (self.me + 1 + (number + hops) % max(1, self.ranks - 1)) % self.ranks
                words = (home, number, hops - 1)
                self.gasnet.am_request_medium(node, self.index["relay"], data, *words)
            else:
                self.gasnet.am_request_medium(home, self.index["home"], data, number)

    def relay(self, _token: Any, payload: Any, home: int, number: int, hops: int) -> None:
        self.queue.append((home, number, hops, bytes(payload)))

    def home(self, _token: Any, payload: Any, number: int) -> None:
        assert crc32(payload) == self.answers.pop(-number), "a relay has altered on its way"
        self.relays.remove(number)

    # --- a table that all share

    def use_table(self) -> None:
        """Insert a key by a message to where it belongs, or find one there by a get."""
        if self.keys and self.random.random() < 0.5:
            key = self.random.choice([*self.keys])
            node, slot, value = self.keys[key]
            if slot < 0:  # its node has not said where
                return
            back = bytearray(SLOT)
            self.gasnet.get(back, node, self.table + slot * SLOT)
            assert back == row(key, value), "the table has lost a key"
            self.counted["finds"] += 1
            return
        key = self.number() * self.ranks + self.me + 1
        node, value = key * 2_654_435_761 % 1_000_003 % self.ranks, self.random.getrandbits(31)
        self.keys[key] = (node, -1, value)
        self.gasnet.am_request_short(node, self.index["insert"], key, value)
        self.counted["inserts"] += 1

    def insert(self, token: Any, _payload: Any, key: int, value: int) -> None:
        for probe in range(SLOTS):
            slot = (key + probe) % SLOTS
            begin = self.table + slot * SLOT
            if not any(self.memory[begin : begin + SLOT]):
                self.memory[begin : begin + SLOT] = row(key, value)
                self.gasnet.am_reply_short(token, self.index["inserted"], key, slot)
                return
        self.gasnet.am_reply_short(token, self.index["inserted"], key, -1)  # it is full

    def inserted(self, _token: Any, _payload: Any, key: int, slot: int) -> None:
        node, before, value = self.keys[key]
        assert before < 0
        if slot < 0:
            del self.keys[key]
        else:
            self.keys[key] = (node, slot, value)

    # --- coming to an end

    def settle(self, which: int) -> None:
        """Until nobody has anything under way that others have to answer or pass on."""
        told = False
        while not told or self.queue or self.quiet[which] < self.ranks:
            self.pump()
            if not told and not self.waits():
                told = True
                for node in range(self.ranks):
                    self.gasnet.am_request_short(node, self.index["calm"], which)
            if not self.queue:
                self.gasnet.block_until(partial(self.goes_on, which, told))

    def goes_on(self, which: int, told: bool) -> bool:
        """Whether there is something to do again, or nothing to wait for."""
        if self.queue:
            return True
        return self.quiet[which] == self.ranks if told else not self.waits()

    def waits(self) -> bool:
        """Whether somebody has to answer still."""
        missing = any(slot < 0 for _, slot, _ in self.keys.values())
        return bool(self.asked or self.relays or missing)

    def calm(self, _token: Any, _payload: Any, which: int) -> None:
        self.quiet[which] += 1

    def read_others(self, phase: int) -> None:
        """While nobody writes: shares of others, compared where they lie."""
        self.sync_all()
        self.gasnet.barrier()
        limit = min(self.shape.share, self.gasnet.am_max_medium())
        for _ in range(self.random.randrange(1, 4)):
            node, owner = self.random.randrange(self.ranks), self.random.randrange(self.ranks)
            size = self.size(limit)
            begin = owner * self.shape.share + self.random.randint(0, self.shape.share - size)
            back = bytearray(size)
            self.gasnet.get_bulk(back, node, begin)
            number = self.number()
            self.asked[number] = 0
            self.gasnet.am_request_medium(node, self.index["compare"], back, begin, number)
            self.counted["compared"] += 1
        self.settle(2 * phase + 1)

    def compare(self, token: Any, payload: Any, begin: int, number: int) -> None:
        assert payload == self.memory[begin : begin + len(payload)], "a get has found other bytes"
        self.gasnet.am_reply_short(token, self.index["same"], number)

    def same(self, _token: Any, _payload: Any, number: int) -> None:
        del self.asked[number]

    def barrier(self) -> None:
        """One of those there are, on all ranks; something is done between its halves."""
        gasnet, kind = self.gasnet, self.common.choice(BARRIERS)
        name = self.common.randrange(-5, 5)
        odd = self.common.randrange(self.ranks)
        halves, tries = self.random.random() < 0.6, self.random.random() < 0.5
        flags = 0
        if kind in ("plain", "anonymous") or (kind == "mixed" and self.random.random() < 0.5):
            flags = BARRIERFLAG_ANONYMOUS
        if kind == "flagged" and self.me == odd:
            flags = BARRIERFLAG_MISMATCH
        if kind == "different" and self.me == odd:
            name += 100
        fails = kind == "flagged" or (kind == "different" and self.ranks > 1)
        failed = False
        try:
            if not halves:
                gasnet.barrier(name, flags)
            else:
                gasnet.barrier_notify(name, flags)
                for _ in range(self.random.randrange(3)):
                    self.random.choice((self.put, self.get, self.sync, self.vector))()
                if not tries or not often(lambda: gasnet.barrier_try(name, flags)):
                    gasnet.barrier_wait(name, flags)
        except BarrierMismatch:
            failed = True
        assert failed == fails, f"barrier {kind}: {'failed' if failed else 'did not fail'}"
        self.counted["barriers"] += 1

    def compare_all(self) -> None:
        """Every byte of the own shares, by a get and at their owners; every message came once."""
        self.sync_all()
        for node, model in enumerate(self.models):
            back = bytearray(len(model))
            self.gasnet.get_bulk(back, node, self.base)
            assert back == model, "the share is another in the end"
            numbers = sorted(self.sent[node])
            words = (len(numbers), signed(crc32(repr(numbers).encode())), signed(crc32(model)))
            self.numbers += 1
            self.asked[self.numbers] = 0
            self.gasnet.am_request_short(node, self.index["total"], *words, self.numbers)
        self.settle(-1)
        for source, (count, sums) in self.totals.items():
            self.gasnet.block_until(lambda s=source, c=count: len(self.seen[s]) >= c)
            assert len(self.seen[source]) == count, "more messages than were sent"
            assert signed(crc32(repr(sorted(self.seen[source])).encode())) == sums, "not these"
        self.gasnet.barrier()

    @property
    def totals(self) -> dict[int, tuple[int, int]]:
        found: dict[int, tuple[int, int]] = self.__dict__.setdefault("_totals", {})
        return found

    def total(self, token: Any, _payload: Any, count: int, sums: int, model: int, n: int) -> None:
        begin = token.source * self.shape.share
        here = self.memory[begin : begin + self.shape.share]
        assert signed(crc32(here)) == model, "the segment has other bytes than were put"
        self.totals[token.source] = count, sums
        self.gasnet.am_reply_short(token, self.index["same"], n)

    # --- the end

    def leave(self, _token: Any, _payload: Any, code: int) -> None:
        self.gasnet.exit(code)

    def finish_by(self, who: int, *, wait: bool = True) -> None:
        """A rank ends the job; the others are ended, waiting or at work."""
        if self.me == who:
            self.gasnet.exit(self.shape.code)
        if wait:
            self.gasnet.block_until(lambda: False)

    def the_end(self) -> None:
        end, code = self.shape.end, self.shape.code
        who = self.common.randrange(self.ranks)
        if end == "all":
            self.gasnet.exit(0)
        elif end == "some" and self.me % 2 == who % 2:
            self.gasnet.exit(code)
        elif end == "handler" and self.me == who:
            self.gasnet.am_request_short((who + 1) % self.ranks, self.index["leave"], code)
        elif end == "one":
            self.finish_by(who)
        if end != "return":  # who was to end in the middle has
            self.gasnet.block_until(lambda: False)


def row(key: int, value: int) -> bytes:
    """Of the table."""
    return key.to_bytes(8, "little") + value.to_bytes(8, "little")


def extras(number: int, count: int) -> list[int]:
    """Further arguments of a message."""
    return [signed(number * 2_246_822_519 + place * 40_503 & 0xFFFF_FFFF) for place in range(count)]


def signed(word: int) -> int:
    """32 bits as a number with a sign."""
    return word - (1 << 32) if word >> 31 else word


def run(gasnet: Any, shape: Shape) -> Counter[str]:
    """One rank; what it has done. It may end by SystemExit, as the shape says."""
    program = Program(gasnet, shape)
    program.run()
    return program.counted
