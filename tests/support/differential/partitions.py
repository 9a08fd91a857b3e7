"""Random partitioned messages: any number of partitions at each end, made ready in any order.

Beside them go messages that are not partitioned, with the same tags.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.layouts import UNITS, basic_layout, divisors, draw_layout
from tests.support.differential.memory import TRIES, Memory
from tests.support.differential.mixtures import EVERY_WAY
from tests.support.differential.program import Program, WrongData, some

CHANNELS: Final = 6  # of a program, at most
TURNS: Final = 4  # of a program, at most
TAGS: Final = 2
PARTS: Final = (1, 1, 2, 3, 4, 7, 12, 32, 100)
PIECES: Final = (1, 1, 2, 5, 8, 64, 100, 1000, 4096, 9000)  # elements of a piece


class Channel:
    """One partitioned message, as all ranks draw it.

    Attributes:
        number: no other one of the program has it.
        source: rank.
        target: rank.
        tag: others between these ranks may have it, too: those begun first belong together.
        unit: basic type.
        parts: partitions of the sender, and of the receiver.
        units: elements of the message; whole ones in each partition.
    """

    def __init__(self, program: Program, number: int) -> None:
        chance = program.chance
        self.number = number
        self.source, self.target = chance.randrange(program.size), chance.randrange(program.size)
        self.tag = chance.randrange(TAGS)
        self.unit = chance.choice(list(UNITS))
        self.parts = chance.choice(PARTS), chance.choice(PARTS)
        if some(chance, 0.3):
            self.parts = self.parts[:1] * 2
        each = int(np.lcm(*self.parts))
        self.units = each * chance.choice(PIECES if each < 500 else PIECES[:5])
        if some(chance, 0.05):
            self.units = 0

    def data(self, program: Program, turn: int) -> Any:
        """Its bytes."""
        return program.given(self.number, turn, self.source, 0, self.units * UNITS[self.unit])

    def __str__(self) -> str:
        return (
            f"channel {self.number}, {self.units} {self.unit} in {self.parts} partitions from "
            f"{self.source} to {self.target}, tag {self.tag}"
        )


def divided_block(own: Random, unit: str, units: int, parts: int) -> Memory:
    """Memory of one message, and its argument, which tells of one partition.

    Args:
        own: draws it.
        unit: basic type.
        units: of all partitions.
        parts: partitions.
    """
    each = units // parts
    for attempt in range(TRIES + 1):
        layout = basic_layout(unit)
        if each and attempt < TRIES and some(own, 0.6):
            size = own.choice(divisors(each, 64 if units < 5000 else 2000)[-4:])
            layout = draw_layout(own, unit, size, own.randint(0, 2))
        memory = Memory(own, [(0, units // layout.units, layout)], plain=layout.basic)
        if memory.apart:
            break
    memory.layout = layout
    count = each // layout.units
    if memory.first < 0:
        shifted = memory.shifted(layout)
        memory.argument = lambda: [memory.whole, count, shifted]
    else:
        memory.argument = lambda: [memory.whole[memory.start :], count, layout.datatype]
    return memory


class End:
    """This rank's end of a channel.

    Attributes:
        channel: it is of.
        sends: it is the sender's.
        request: of it.
        left: partitions that are not ready, or not seen to be there.
    """

    def __init__(self, program: Program, comm: Any, channel: Channel, sends: bool) -> None:
        self.program, self.channel, self.sends = program, channel, sends
        self.parts = channel.parts[0 if sends else 1]
        self.memory = divided_block(program.own, channel.unit, channel.units, self.parts)
        make = comm.Psend_init if sends else comm.Precv_init
        other = channel.target if sends else channel.source
        self.request = make(self.memory.argument(), self.parts, other, channel.tag)
        self.left: list[int] = []
        self.turn = 0

    def start(self, turn: int) -> None:
        """Fill the memory and begin."""
        self.turn = turn
        self.memory.clear()
        if self.sends:
            self.memory.fill(0, self.channel.data(self.program, turn))
        self.memory.lend()
        if not self.sends:
            self.memory.expect(0, self.channel.data(self.program, turn))
        self.left = list(range(self.parts))
        self.program.own.shuffle(self.left)
        self.request.Start()

    def make_some_ready(self) -> None:
        """One partition, or some in one call."""
        own = self.program.own
        kind = own.choice(("one", "range", "list"))
        if kind == "one":
            self.request.Pready(self.left.pop())
        elif kind == "list":
            count = own.randint(1, len(self.left))
            some_parts, self.left = self.left[:count], self.left[count:]
            self.request.Pready_list(np.array(some_parts, "i") if some(own, 0.5) else some_parts)
        else:
            low = high = self.left[0]
            most = own.randint(0, self.parts)
            while high + 1 in self.left and high - low < most:
                high += 1
            self.left = [part for part in self.left if not low <= part <= high]
            self.request.Pready_range(low, high)

    def look(self) -> None:
        """Ask for a partition; when it is there, judge it."""
        part = self.left[0]
        if self.request.Parrived(part):
            self.left.pop(0)
            size = self.channel.units * UNITS[self.channel.unit] // self.parts
            places = self.memory.places[0][part * size : (part + 1) * size]
            what = f"{self.channel}, turn {self.turn}, partition {part}"
            self.program.judge.compare(self.memory.whole[places], self.memory.want[places], what)

    def check(self, status: Any) -> None:
        """It is complete."""
        what = f"{self.channel}, turn {self.turn}"
        if not self.sends and status is not None:
            channel = self.channel
            got = status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)
            want = channel.source, channel.tag, channel.units * UNITS[channel.unit]
            self.program.judge.require(got, want, f"{what}: status")
        self.memory.check(self.program.judge, what)


def run_turn(program: Program, ends: list[End], turn: int) -> None:
    """Start all, make all partitions ready, and complete all."""
    own = program.own
    own.shuffle(ends)
    for end in ends:
        end.start(turn)
    senders = [end for end in ends if end.sends]
    receivers = [end for end in ends if not end.sends]
    while any(end.left for end in senders):
        end = own.choice([one for one in senders if one.left])
        end.make_some_ready()
        if receivers and some(own, 0.4):
            asked = own.choice(receivers)
            if asked.left:
                asked.look()
    for asked in receivers:
        while asked.left and some(own, 0.9):
            asked.look()
    pending = list(ends)
    while pending:
        own.shuffle(pending)
        done, statuses = own.choice(EVERY_WAY)([end.request for end in pending])
        for at, place in enumerate(done):
            pending[place].check(None if statuses is None else statuses[at])
        pending = [end for place, end in enumerate(pending) if place not in done]


def messages(program: Program, comm: Any, turn: int) -> list[tuple[Any, Any, Any]]:
    """Begin one message that is not partitioned, from each rank to another: its requests."""
    found = []
    for tag in range(TAGS):
        by = program.chance.randrange(program.size)
        target, source = (program.me + by) % program.size, (program.me - by) % program.size
        count = program.chance.choice((1, 100, 20_000))
        mine, want = (
            program.given(1000 + tag, turn, rank, 0, count) for rank in (program.me, source)
        )
        room = np.zeros(count, np.uint8)
        requests = [comm.Irecv(room, source, tag), comm.Isend(mine, target, tag)]
        program.own.shuffle(requests)
        found.append((requests, room, want))
    return found


def run(program: Program) -> None:
    """Some turns of some channels."""
    comm = program.comm.Dup()
    channels = [Channel(program, number) for number in range(program.chance.randint(1, CHANNELS))]
    ends = []
    for channel in channels:
        sides = [True] * (channel.source == program.me) + [False] * (channel.target == program.me)
        program.own.shuffle(sides)
        ends += [End(program, comm, channel, sends) for sends in sides]
    for turn in range(program.chance.randint(1, TURNS)):
        beside = messages(program, comm, turn) if some(program.chance, 0.5) else []
        run_turn(program, ends, turn)
        for requests, room, want in beside:
            MPI.Request.Waitall(requests)
            program.judge.compare(room, want, f"message beside, turn {turn}")
    for end in ends:
        end.request.Free()
        if end.request != MPI.REQUEST_NULL:
            raise WrongData(f"{end.channel}: freed, and there is a request")
    comm.Free()
