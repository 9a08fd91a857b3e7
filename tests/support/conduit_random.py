"""Random small worlds of conduits: everything is drawn from a number.

Each rank does a list of things in its order: requests of all kinds to others, some answered, some
not; puts and gets in a part of each segment that is its alone. Everything is compared: each message
comes once, with its arguments and its bytes; each get finds what the puts before have left; in the
end no credit is missing and nothing is in line.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, Final, NamedTuple

from ompy.frameworks.conduit import Category, Token, Transfer

from tests.support.conduit_worlds import ConduitRank, conduit_world

CONDUITS: Final = ("gemini", "aries")
VARIANTS: Final = ("smsg", "mailboxes", "pshm")
CLASSES: Final = [(name, messages) for name in CONDUITS for messages in VARIANTS]
ASK, TELL, ANSWER = 128, 129, 130  # with a reply; without; the reply
SHARES: Final = (4096, 16_384)  # bytes of each rank's part in each segment, by `Design.large`
SLOT: Final = 1536  # bytes a LONG may have
STEPS_MAX: Final = 12
SIZES: Final = (0, 1, 3, 8, 100, 128, 129, 500, 1500)
# of puts and gets, by `Design.large`: block transfers, and packets by the hundred
TRANSFERS: Final = (SIZES, (*SIZES, 4097, 9000))
CONSISTENCIES: Final = ("default", "strict", "relaxed")
CATEGORIES: Final = (Category.SHORT, Category.MEDIUM, Category.LONG, Category.LONG_ASYNC)


class Design(NamedTuple):
    """What a world is.

    Large ones are every second turn of all classes; the consistencies follow each other.
    """

    name: str
    messages: str
    ranks: int
    steps: int
    hosts: tuple[int, ...]
    settings: dict[str, int | str]
    nic: dict[str, int]
    large: bool


def design(number: int) -> Design:
    """That of a number; neighbouring ones are of all classes in turn."""
    random = Random(number)
    name, messages = CLASSES[number % len(CLASSES)]
    ranks = random.choice((2, 2, 3, 4))
    apart = messages != "pshm" and not random.randrange(4)
    settings: dict[str, int | str] = {
        "networkdepth": random.choice((1, 1, 2, 3)),
        "num_pd": random.choice((1, 2, 512)),
        "bounce_size": random.choice((8192, 262_144)),
        "memreg": random.choice((1, 16)),
    }
    if messages == "smsg":
        settings["message_events"] = random.choice((1, 2, 4, 0))
    nic = {"late": random.choice((0, 0, 20, 60)), "refuse_every": random.choice((0, 0, 2, 5))}
    nic["ring_slots"] = random.choice((2, 8, 64))
    turn = number // len(CLASSES)
    settings["mem_consistency"] = CONSISTENCIES[turn % len(CONSISTENCIES)]
    hosts = tuple(random.randrange(2) if apart else 0 for _ in range(ranks))
    steps = random.randrange(2, STEPS_MAX)
    return Design(name, messages, ranks, steps, hosts, settings, nic, large=bool(turn % 2))


def filled(size: int, salt: int) -> bytes:
    """Bytes that differ by place and salt."""
    return bytes((salt * 31 + place * 7) % 253 for place in range(size))


_Told = list[tuple[int, int, int]]  # source, number and target of the requests of a world


class _Done(Transfer):
    def __init__(self) -> None:
        self.complete = False

    def done(self, *, is_get: bool) -> None:
        self.complete = True


class _Program:
    """What one rank does, and what it has seen."""

    def __init__(self, rank: ConduitRank, number: int, made: Design, told: _Told) -> None:
        self.rank = rank
        self.random = Random(number * 8 + rank.rank)
        self.steps = made.steps
        self.share, self.sizes = SHARES[made.large], TRANSFERS[made.large]
        self.told = told
        self.seen: Counter[tuple[int, int]] = Counter()  # messages, by source and number
        self.answers: Counter[int] = Counter()
        self.asks: set[int] = set()
        self.counted: Counter[str] = Counter()
        self.models = {node: bytearray(self.share) for node in rank.peers}

    def check(self, token: Token, payload: memoryview, arguments: Any) -> None:
        number, size = arguments[0], arguments[1]
        assert bytes(payload) == filled(size, number), "bytes of another message"
        self.seen[token.source, number] += 1

    def asked(self, token: Token, payload: memoryview, arguments: Any) -> None:
        self.check(token, payload, arguments)
        number, _, size, kind = arguments
        data = memoryview(filled(size, number + 1))
        values, place = [number, size], self.reply_place(number)
        self.rank.conduit.reply(CATEGORIES[kind], token, ANSWER, values, data, place)

    def answered(self, token: Token, payload: memoryview, arguments: Any) -> None:
        number, size = arguments
        assert bytes(payload) == filled(size, number + 1), "bytes of another reply"
        self.answers[number] += 1

    # where things lie in a segment: what its rank is put, long requests, long replies

    def base(self, source: int) -> int:
        return source * self.share

    def request_place(self, source: int, number: int) -> int:
        return self.base(self.rank.size) + (source * STEPS_MAX + number) * SLOT

    def reply_place(self, number: int) -> int:
        return self.request_place(self.rank.size, number)

    def run(self) -> Counter[str]:
        rank = self.rank
        handlers = {ASK: self.asked, TELL: self.check, ANSWER: self.answered}
        rank.attach(handlers, -(-self.request_place(rank.size + 1, 0) // 4096) * 4096)
        for number in range(self.steps):
            node = self.random.choice(rank.peers)
            self.random.choice((self.send, self.send, self.put, self.get))(node, number)
        rank.wait(lambda: set(self.answers) == self.asks)
        rank.settle()
        self.compare()
        for node in self.models:
            self.get(node, 0)
        return self.counted + Counter(rank.conduit.counters())

    def compare(self) -> None:
        """After all have come to their end: nothing is missing, and nothing came twice."""
        me = self.rank.rank
        sent = {(source, number) for source, number, node in self.told if node == me}
        assert self.seen == dict.fromkeys(sent, 1)
        assert self.answers == dict.fromkeys(self.asks, 1)
        assert not self.rank.messages.lines

    def send(self, node: int, number: int) -> None:
        """A request of any kind, with a reply of any kind or none."""
        random, conduit = self.random, self.rank.conduit
        kind, back = random.randrange(4), random.randrange(3)
        most = (0, conduit.max_medium, SLOT, SLOT)
        size, reply_size = (min(random.choice(SIZES), most[one]) for one in (kind, back))
        asks = bool(random.randrange(2))
        self.asks |= {number} if asks else set()
        self.told.append((self.rank.rank, number, node))
        values = [number, size, reply_size, back]
        data, place = memoryview(filled(size, number)), self.request_place(self.rank.rank, number)
        handler = ASK if asks else TELL
        conduit.request(CATEGORIES[kind], node, handler, values, data, place)
        self.counted[CATEGORIES[kind].value] += 1

    def place(self) -> tuple[int, int]:
        size = self.random.choice(self.sizes)
        return self.random.randrange(self.share - size), size

    def put(self, node: int, number: int) -> None:
        begin, size = self.place()
        data = filled(size, number)
        done, local = _Done(), bytearray(data)
        bulk = bool(self.random.randrange(2)) or size > self.rank.conduit.max_put_local
        at = self.base(self.rank.rank) + begin
        self.rank.conduit.put(node, at, memoryview(local), done, bulk=bulk)
        if not bulk:
            local[:] = bytes(size)  # it is the caller's again
        self.models[node][begin : begin + size] = data
        self.rank.wait(lambda: done.complete)
        self.counted["puts"] += 1

    def get(self, node: int, number: int) -> None:
        begin, size = self.place()
        done, local = _Done(), bytearray(b"\xee" * size)
        at = self.base(self.rank.rank) + begin
        self.rank.conduit.get(node, at, memoryview(local), done)
        self.rank.wait(lambda: done.complete)
        assert local == self.models[node][begin : begin + size], "a get has found other bytes"
        self.counted["gets"] += 1


def world(number: int) -> tuple[Design, Counter[str]]:
    """Run the world of a number; what was done and counted in it."""
    made = design(number)
    told: _Told = []
    found = conduit_world(
        lambda rank: _Program(rank, number, made, told).run(),
        ranks=made.ranks,
        name=made.name,
        seed=number,
        hosts=made.hosts,
        nic=made.nic,
        messages=made.messages,
        **made.settings,
    )
    return made, sum(found, Counter())
