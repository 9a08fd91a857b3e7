"""Random programs of point-to-point messages, and what counting them must give.

The model knows the plan only: who sends how many bytes to whom. How the messages are received,
in which order they come and which of them are cut short is left to the seed.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any, NamedTuple

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.data.errors import ERR_TRUNCATE, MPIError
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess

SIZES = (0, 1, 2, 63, 64, 300, 5000, 70_000)  # eager and rendezvous
TAGS = (0, 1, 7, -10, -30)  # users' and internal
UNUSED_TAG = 999
WAYS = ("recv", "irecv", "early", "iprobe", "probe", "improbe", "mprobe")


class Sent(NamedTuple):
    """One message of the plan; ranks are the world's."""

    group: int
    source: int
    target: int
    tag: int
    size: int
    mode: int


class Wanted(NamedTuple):
    """One receive; `source` is a rank of the group."""

    group: int
    source: int
    tag: int
    way: str
    room: int


class Plan:
    """Groups of ranks, messages in them, and receives that take all of them.

    Attributes:
        groups: members by world rank, in the order of their ranks in the group; 0 is the world.
    """

    def __init__(self, seed: int, ranks: int, messages: int = 60) -> None:
        self.seed = seed
        chance = Random(seed)
        everybody = list(range(ranks))
        subsets = [chance.sample(everybody, chance.randint(2, ranks)) for _ in range(3)]
        self.groups = [everybody, *subsets]
        self.messages = [self._message(chance) for _ in range(messages)]
        self.receives = {rank: self._receives(chance, rank) for rank in everybody}

    def _message(self, chance: Random) -> Sent:
        group = chance.randrange(len(self.groups))
        source, target = (chance.choice(self.groups[group]) for _ in range(2))
        mode = chance.choice((STANDARD, SYNCHRONOUS))
        return Sent(group, source, target, chance.choice(TAGS), chance.choice(SIZES), mode)

    def _receives(self, chance: Random, rank: int) -> list[Wanted]:
        """Receives of a rank: as many of each kind as there are messages for it to take.

        Of the messages of one group either all are received by tag or all those of users with
        ANY_TAG; of one tag either all by source or all with ANY_SOURCE. So none takes what
        another one needs.
        """
        wanted = []
        for group, members in enumerate(self.groups):
            mine = [sent for sent in self.messages if sent.target == rank and sent.group == group]
            wild = chance.random() < 0.4
            named = {tag: chance.random() < 0.5 for tag in TAGS}
            for sent in mine:
                tag = ANY_TAG if wild and sent.tag >= 0 else sent.tag
                by_source = named[sent.tag] and tag != ANY_TAG
                source = members.index(sent.source) if by_source else ANY_SOURCE
                room = chance.choice((-1, -1, 0, 40, 100_000))
                wanted.append(Wanted(group, source, tag, chance.choice(WAYS), room))
        chance.shuffle(wanted)
        return wanted

    def program(self, process: RankProcess) -> None:
        """What one rank does."""
        _Rank(self, process).run()

    def expected(self, kind: str) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
        """Messages and bytes by sender and receiver."""
        messages: Counter[tuple[int, int]] = Counter()
        volume: Counter[tuple[int, int]] = Counter()
        for sent in self.messages:
            if (sent.tag < 0) == (kind == "internal"):
                messages[sent.source, sent.target] += 1
                volume[sent.source, sent.target] += sent.size
        return messages, volume

    def expected_sizes(self, kind: str) -> Counter[str]:
        """Messages by the largest power of two that is not above their size."""
        found: Counter[str] = Counter()
        for sent in self.messages:
            if (sent.tag < 0) == (kind == "internal"):
                least = 1
                while 2 * least <= sent.size:
                    least *= 2
                found[str(least if sent.size else 0)] += 1
        return found


class _Rank:
    """One rank at work on a plan. All sends begin before the first receive may block."""

    def __init__(self, plan: Plan, process: RankProcess) -> None:
        self.rank = process.context.rank
        self.pml = process.pml
        self.plan = plan
        self.under_way: list[tuple[Communicator, Any]] = []
        procs = process.context.procs
        self.comms = {
            number: process.communicator(number, [procs[rank] for rank in members], f"g{number}")
            for number, members in enumerate(plan.groups)
            if self.rank in members
        }

    def run(self) -> None:
        wanted = self.plan.receives[self.rank]
        self.cancelled()
        for each in wanted:
            if each.way == "early":
                self.post(each)
        for sent in self.plan.messages:
            if sent.source == self.rank:
                self.send(sent)
        for each in wanted:
            if each.way != "early":
                self.receive(each)
        self.cancelled()
        for comm, request in self.under_way:
            self.finish(comm, request)

    def send(self, sent: Sent) -> None:
        comm = self.comms[sent.group]
        convertor = ContiguousConvertor(memoryview(bytes(sent.size)))
        target = self.plan.groups[sent.group].index(sent.target)
        self.under_way.append((comm, self.pml.isend(comm, convertor, target, sent.tag, sent.mode)))

    def cancelled(self) -> None:
        """A receive nobody sends anything for."""
        comm = self.comms[0]
        request = self.pml.irecv(comm, GrowingConvertor(), ANY_SOURCE, UNUSED_TAG)
        self.pml.cancel(request)
        assert request.cancelled

    def receive(self, wanted: Wanted) -> None:
        comm = self.comms[wanted.group]
        at = (comm, wanted.source, wanted.tag)
        if wanted.way == "probe":
            self.pml.probe(*at)
        while wanted.way == "iprobe" and self.pml.iprobe(*at) is None:
            pass
        if wanted.way in ("improbe", "mprobe"):
            found = self.pml.mprobe(*at) if wanted.way == "mprobe" else None
            while found is None:
                found = self.pml.improbe(*at)
            self.under_way.append((comm, self.pml.imrecv(found, _room(wanted.room))))
        elif wanted.way == "recv":
            try:
                self.pml.recv(comm, _room(wanted.room), wanted.source, wanted.tag)
            except MPIError as problem:
                _expect_truncation(problem.code)
        else:
            self.post(wanted)

    def post(self, wanted: Wanted) -> None:
        comm = self.comms[wanted.group]
        request = self.pml.irecv(comm, _room(wanted.room), wanted.source, wanted.tag)
        self.under_way.append((comm, request))

    def finish(self, comm: Communicator, request: Any) -> None:
        try:
            self.pml.wait(comm, request)
        except MPIError as problem:
            _expect_truncation(problem.code)


def _room(size: int) -> ContiguousConvertor:
    """A buffer of a size, or one for any message."""
    if size < 0:
        return GrowingConvertor()
    return ContiguousConvertor(memoryview(bytearray(size)))


def _expect_truncation(code: int) -> None:
    if code != ERR_TRUNCATE:
        raise AssertionError(f"a receive failed with error class {code}")
