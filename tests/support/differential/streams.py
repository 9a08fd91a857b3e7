"""Random streams: many messages from each rank to others, of sizes around the protocols' limits.

Their order is judged: messages of one source that fit one receive may not overtake one another.
Receives name their source and tag, or not; which message belongs to which receive follows from
the order in which both were begun, once it is known from whom each came.
"""

from __future__ import annotations

from typing import Any, Final

from ompy import MPI

from tests.support.differential.layouts import UNITS
from tests.support.differential.memory import Memory, one_block
from tests.support.differential.mixtures import EVERY_WAY, wait_silently
from tests.support.differential.program import Program, WrongData, some

MESSAGES: Final = 30  # of a program, at most
LEAST, MOST = 1, 1 << 23  # bytes of a message that is not empty
LIMITS: Final = (  # bytes; around these protocols change, as they are set, or may be
    *(64, 1024, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 524288, 1 << 20),
)
AROUND: Final = 130  # bytes about a limit; more than a header has
TAGS: Final = 3
SENDS: Final = ("Isend", "Isend", "Issend", "Ibsend", "Send_init", "Ssend_init", "Bsend_init")
RECEIVES: Final = ("Irecv", "Irecv", "Recv_init", "Improbe", "Recv", "Mprobe", "Probe")
BUFFERED: Final = 1 << 18  # bytes of a buffered message, at most
BUFFER: Final = MESSAGES * (BUFFERED + MPI.BSEND_OVERHEAD)  # bytes of a communicator
WAYS: Final = [one for one in EVERY_WAY if one is not wait_silently]


def draw_bytes(program: Program, most: int) -> int:
    """Of a message: near a limit, or of any order of magnitude."""
    chance = program.chance
    kind = chance.random()
    if kind < 0.05:
        return 0
    if kind < 0.5:
        limits = [one for one in LIMITS if one <= most]
        return max(0, chance.choice(limits) + chance.randint(-AROUND, AROUND))
    return min(most, int(2 ** chance.uniform(0, most.bit_length())))


class Message:
    """One message.

    Attributes:
        number: no other one of the program has it.
        wild: it goes through the communicator in which receives name no source.
        source: rank.
        target: rank.
        tag: others have it, too.
        units: elements.
    """

    def __init__(self, program: Program, number: int, unit: str, most: int) -> None:
        chance = program.chance
        self.number = number
        self.wild = some(chance, 0.4)
        self.source, self.target = chance.randrange(program.size), chance.randrange(program.size)
        self.tag = chance.randrange(TAGS)
        self.units = draw_bytes(program, most) // UNITS[unit]

    def data(self, program: Program, unit: str) -> Any:
        """Its bytes."""
        return program.given(self.number, 0, self.source, 0, self.units * UNITS[unit])


class Receive:
    """A receive of this rank.

    Attributes:
        wild: it is in the communicator of those that name no source.
        source: it names, or `ANY_SOURCE`.
        tag: it names, or `ANY_TAG`.
        memory: it stores into.
        status: what is said of its message.
    """

    def __init__(self, wild: bool, source: int, tag: int, memory: Memory) -> None:
        self.wild, self.source, self.tag, self.memory = wild, source, tag, memory
        self.status = MPI.Status()

    def fits(self, message: Message) -> bool:
        """Whether it can have been it, by its communicator, source and tag."""
        return (
            message.wild == self.wild
            and message.source == self.status.Get_source()
            and self.tag in (message.tag, MPI.ANY_TAG)
        )

    def __str__(self) -> str:
        return f"receive of source {self.source}, tag {self.tag}, wild {self.wild}"


class Streams:
    """A program's messages, and what this rank does for them.

    Attributes:
        unit: basic type of all.
        messages: of the program, in the order in which each source begins them.
        begun: receives, in the order in which they were.
        pending: requests with their receives; None for sends.
    """

    def __init__(self, program: Program) -> None:
        chance = program.chance
        self.program = program
        self.comms = [program.comm.Dup(), program.comm.Dup()]
        self.buffers = [bytearray(BUFFER) for _ in self.comms]
        for comm, buffer in zip(self.comms, self.buffers, strict=True):
            comm.Attach_buffer(buffer)
        self.unit = chance.choice(("BYTE", "BYTE", "INT", "DOUBLE", "SHORT"))
        most = MOST if some(chance, 0.06) else 1 << 18
        count = chance.randint(1, MESSAGES)
        self.messages = [Message(program, number, self.unit, most) for number in range(count)]
        # whether receives name no tag: for each target, and where they name the source for each
        self.tagless = [
            [some(chance, 0.4) for _ in range(program.size)] for _ in range(program.size)
        ]
        self.begun: list[Receive] = []
        self.pending: list[tuple[Any, Receive | None]] = []
        self.persistent: list[Any] = []
        self.sent: list[tuple[Memory, str]] = []

    def run(self) -> None:
        """All of them."""
        me, own = self.program.me, self.program.own
        sends = [one for one in self.messages if one.source == me]
        receives = [one for one in self.messages if one.target == me]
        own.shuffle(receives)
        early = own.randint(0, len(receives))
        turns = ["send"] * len(sends) + ["receive"] * early
        own.shuffle(turns)
        for turn in turns:
            if turn == "send":
                self.send(sends.pop(0))
            else:
                self.receive(receives.pop(), waits=False)
        for message in receives:
            self.receive(message, waits=True)
        self.complete_all()
        self.judge()

    def free(self) -> None:
        """Communicators, and buffers when what was in them is sent."""
        own = self.program.own
        for request in self.persistent:
            if some(own, 0.7):
                request.Free()
        for comm, buffer in zip(self.comms, self.buffers, strict=True):
            if some(own, 0.5):
                comm.Flush_buffer()
            if some(own, 0.7):
                places = MPI.Get_address(comm.Detach_buffer()), MPI.Get_address(buffer)
                self.program.judge.require(*places, "detached buffer")
            comm.Free()

    def send(self, message: Message) -> None:
        """Begin one."""
        own, unit = self.program.own, self.unit
        memory = one_block(own, unit, message.units, into=False)
        memory.fill(0, message.data(self.program, unit))
        memory.lend()
        name = own.choice(SENDS)
        if "b" in name[:2].lower() and message.units * UNITS[unit] > BUFFERED:
            name = "Isend"
        call = getattr(self.comms[message.wild], name)
        request = call(memory.argument(), message.target, message.tag)
        if name.endswith("init"):
            request.Start()
            self.persistent.append(request)
        if some(own, 0.05):
            self.comms[message.wild].Iflush_buffer().Free()
        self.sent.append((memory, f"{name} of message {message.number}"))
        self.pending.append((request, None))

    def receive(self, message: Message, waits: bool) -> None:
        """Receive what this message could be, or another one that fits."""
        own, me = self.program.own, self.program.me
        tagless = self.tagless[me][me if message.wild else message.source]
        source = MPI.ANY_SOURCE if message.wild else message.source
        tag = MPI.ANY_TAG if tagless else message.tag
        room = max(
            one.units
            for one in self.messages
            if (one.target, one.wild) == (me, message.wild)
            and (message.wild or one.source == source)
            and (tagless or one.tag == tag)
        )
        memory = one_block(own, self.unit, room, into=True)
        memory.lend()
        receive = Receive(message.wild, source, tag, memory)
        name = own.choice(RECEIVES if waits else RECEIVES[:3])
        comm, status = self.comms[message.wild], receive.status
        if name in ("Recv", "Probe"):
            if name == "Probe":
                comm.Probe(source, tag)
            comm.Recv(memory.argument(), source, tag, status)
        elif name == "Mprobe":
            matched = comm.Mprobe(source, tag)
            if some(own, 0.5):
                matched.Recv(memory.argument(), status)
            else:
                self.pending.append((matched.Irecv(memory.argument()), receive))
        elif name == "Improbe":
            matched = None
            while matched is None:
                matched = comm.Improbe(source, tag)
            self.pending.append((matched.Irecv(memory.argument()), receive))
        else:
            request = getattr(comm, name)(memory.argument(), source, tag)
            if name == "Recv_init":
                request.Start()
                self.persistent.append(request)
            self.pending.append((request, receive))
        self.begun.append(receive)

    def complete_all(self) -> None:
        """In any order."""
        while self.pending:
            self.program.own.shuffle(self.pending)
            requests = [request for request, _ in self.pending]
            done, statuses = self.program.own.choice(WAYS)(requests)
            for at, place in enumerate(done):
                receive = self.pending[place][1]
                if receive is not None:
                    assert statuses is not None
                    receive.status = statuses[at]
            self.pending = [one for place, one in enumerate(self.pending) if place not in done]

    def judge(self) -> None:
        """Which message each receive has to have got, and whether it has it."""
        judge, left = self.program.judge, [m for m in self.messages if m.target == self.program.me]
        for receive in self.begun:
            status, unit = receive.status, self.unit
            fitting = [one for one in left if receive.fits(one)]
            if not fitting:
                raise WrongData(f"{receive}: none is left from {status.Get_source()}")
            message = fitting[0]
            left.remove(message)
            got = (status.Get_tag(), status.Get_count(MPI.BYTE))
            want = (message.tag, message.units * UNITS[unit])
            judge.require(got, want, f"{receive}, message {message.number}: tag and bytes")
            receive.memory.expect(0, message.data(self.program, unit))
            receive.memory.check(judge, f"{receive}, message {message.number}")
        for memory, what in self.sent:
            memory.check(judge, what)


def run(program: Program) -> None:
    """One set of streams."""
    streams = Streams(program)
    streams.run()
    streams.free()
