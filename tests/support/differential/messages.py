"""Random messages: every way to send, to receive and to look for one."""

from __future__ import annotations

from typing import Any

from ompy import MPI

from tests.support.differential.calls import Call, draw_units
from tests.support.differential.communicators import Members
from tests.support.differential.layouts import UNITS
from tests.support.differential.memory import one_block
from tests.support.differential.program import Program, some

MOST = 1 << 21  # bytes
TAGS = 10  # of a number; more than messages


class Message:
    """One message, as all ranks draw it.

    Attributes:
        members: of its communicator.
        source: rank in the program.
        target: rank in the program.
        unit: basic type.
        units: elements.
        any_source: it is received from any one.
        tag: no other one of the program has it.
    """

    def __init__(self, program: Program, members: Members, tag: int) -> None:
        chance = program.chance
        self.members, self.tag = members, tag
        self.unit = chance.choice(list(UNITS))
        self.units = draw_units(chance, self.unit, MOST)
        groups = list(members.groups)
        if members.inter:
            chance.shuffle(groups)
        self.source, self.target = chance.choice(groups[0]), chance.choice(groups[1])
        self.any_source = some(chance, 0.2)
        self.what = (
            f"message {tag}, {self.units} {self.unit} from {self.source} to {self.target} "
            f"in {members.name}"
        )

    def data(self, program: Program, turn: int) -> Any:
        """Its bytes."""
        return program.given(self.tag, turn, self.source, 0, self.units * UNITS[self.unit])


class Send(Call):
    """The source's part."""

    repeated = True

    def __init__(self, program: Program, message: Message) -> None:
        own = program.own
        self.message = message
        self.name = own.choice(("Isend", "Isend", "Issend", "Ibsend", "Send_init", "Ssend_init"))
        super().__init__(program, f"{self.name} of {message.what}")
        self.persistent = self.name.endswith("init")
        self.memory = one_block(own, message.unit, message.units, into=False)
        self.memories = [self.memory]
        self.read_only = some(own, 0.4)

    def fill_memories(self) -> None:
        self.memory.fill(0, self.message.data(self.program, self.turn))

    def expect_results(self) -> None:
        self.memory.whole.flags.writeable = not self.read_only

    def begin(self) -> Any:
        message = self.message
        target = message.members.remote.index(message.target)
        function = getattr(message.members.comm, self.name)
        return function(self.memory.argument(), target, message.tag)


class Receive(Call):
    """The target's part, with room for more than comes."""

    repeated = True

    def __init__(self, program: Program, message: Message) -> None:
        own = program.own
        self.message = message
        self.name = own.choice(("Irecv", "Irecv", "Recv_init", "Improbe", "Iprobe"))
        super().__init__(program, f"{self.name} of {message.what}")
        self.persistent = self.name == "Recv_init"
        more = own.choice((0, 0, 0, 1, 2))
        self.memory = one_block(own, message.unit, message.units, into=True, more=more)
        self.memories = [self.memory]
        self.comm = message.members.comm
        self.source = message.members.remote.index(message.source)
        self.named = MPI.ANY_SOURCE if message.any_source else self.source

    def expect_results(self) -> None:
        self.memory.expect(0, self.message.data(self.program, self.turn))

    def begin(self) -> Any:
        if self.name.endswith("probe"):
            return self._look
        function = getattr(self.comm, self.name)
        return function(self.memory.argument(), self.named, self.message.tag)

    def _look(self) -> Any:
        """Its request, once it is there."""
        status, tag = MPI.Status(), self.message.tag
        if self.name == "Improbe":
            matched = self.comm.Improbe(self.named, tag, status)
            if matched is None:
                return None
            self.check_status(status)
            return matched.Irecv(self.memory.argument())
        if not self.comm.Iprobe(self.named, tag, status):
            return None
        self.check_status(status)
        return self.comm.Irecv(self.memory.argument(), self.named, tag)

    def check_status(self, status: Any) -> None:
        """Who sent how much."""
        message, layout = self.message, self.memory.layout
        whole, rest = divmod(message.units, layout.units)
        got = {
            "source": status.Get_source(),
            "tag": status.Get_tag(),
            "bytes": status.Get_count(MPI.BYTE),
            "basic elements": status.Get_elements(getattr(MPI, message.unit)),
            "elements": status.Get_count(layout.datatype),
        }
        want = {
            "source": self.source,
            "tag": message.tag,
            "bytes": message.units * UNITS[message.unit],
            "basic elements": message.units,
            "elements": MPI.UNDEFINED if rest else whole,
        }
        self.program.judge.require(got, want, f"{self.what}: status")


def draw_messages(program: Program, number: int, members: Members) -> list[Call]:
    """This rank's parts of some messages."""
    found: list[Call] = []
    for place in range(program.chance.randint(1, 6)):
        message = Message(program, members, number * TAGS + place)
        if message.source == program.me:
            found.append(Send(program, message))
        if message.target == program.me:
            found.append(Receive(program, message))
    return found
