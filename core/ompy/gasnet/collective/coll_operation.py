"""One collective under way at one member, and what its steps may ask for.

A poll finds what has come; `advance` does what can be done, from the calls of the API that wait,
never from a handler. Who has begun a collective and waits for something else drives it too.

Source: reference gasnet.md 14 (CollectiveEngine).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ompy.frameworks.conduit import Transfer
from ompy.gasnet.collective.coll_algorithms import NOTHING, Steps, run_collective
from ompy.gasnet.collective.coll_calls import NOWHERE, Call, CollFlag
from ompy.gasnet.collective.coll_edges import MESSAGES, Arrived, Incoming, Message, Outgoing
from ompy.gasnet.fill import halves

if TYPE_CHECKING:
    from ompy.gasnet.collective.teams import Team


class Services(NamedTuple):
    """What an operation may ask of the rank that it is under way at.

    Attributes:
        say: sends a message of a collective: team, member, words, payload.
        move: begins a put or get: node, place in its segment, memory, who is told, `is_get`.
        segment: the own one's memory.
        tell: something has moved.
        small: bytes that one message takes.
    """

    say: Callable[[Team, int, list[int], memoryview], None]
    move: Callable[..., None]
    segment: memoryview
    tell: Callable[[], None]
    small: int


class Operation:
    """A collective.

    Attributes:
        team: whose.
        number: among the team's collectives.
        call: what it is.
        dst, src: the own memory; empty where this member has none.
        size, rank: of the team, and this member's.
        place: of this member in a tree.
        small: bytes that one message takes.
        complete: this member's part of it is.
        problem: what it has ended with instead.
        traced: where it is, its number in the trace; or 0.
    """

    def __init__(
        self,
        services: Services,
        team: Team,
        number: int,
        call: Call,
        dst: memoryview,
        src: memoryview,
    ) -> None:
        self._services = services
        self._arrived: dict[tuple[int, int], Arrived] = {}
        self._incoming: list[Incoming] = []
        self._outgoing: list[Outgoing] = []
        self._steps: Steps = run_collective(self)
        self.team = team
        self.number = number
        self.call = call
        self.dst = dst
        self.src = src
        self.size = len(team.nodes)
        self.rank = team.rank
        self.place = (team.rank - call.root) % self.size
        self.small = services.small
        self.complete = False
        self.problem: BaseException | None = None
        self.traced = 0

    def at(self, place: int) -> int:
        """The member at a place."""
        return (place + self.call.root) % self.size

    # --- what steps ask for

    def send(self, peer: int, slot: int, view: memoryview, known: int = NOWHERE) -> None:
        """Begin to send a block; `known` is where its receiver wants it, with SINGLE."""
        if self.call.flags & CollFlag.IN_MYSYNC:
            known = NOWHERE  # nothing is written there before that member has entered
        edge = Outgoing(self, peer, slot, view, known)
        edge.advance()
        if not edge.over:
            self._outgoing.append(edge)

    def receive(self, peer: int, slot: int, view: memoryview) -> Steps:
        """Wait for a block."""
        yield from self.receive_all([(peer, slot, view)])

    def receive_all(self, wanted: Iterable[tuple[int, int, memoryview]]) -> Steps:
        """Wait for several."""
        self._incoming = [Incoming(self, *each) for each in wanted]
        while self._incoming:
            for edge in self._incoming:
                edge.advance()
            self._incoming = [edge for edge in self._incoming if not edge.over]
            if self._incoming:
                yield

    def all_sent(self) -> bool:
        """Whether all blocks have left."""
        return not self._outgoing

    # --- what edges ask for

    def arrived(self, peer: int, slot: int) -> Arrived:
        """What has come from a member for a slot."""
        return self._arrived.setdefault((peer, slot), Arrived())

    def send_message(
        self,
        peer: int,
        what: Message,
        slot: int,
        place: int = NOWHERE,
        payload: memoryview = NOTHING,
    ) -> None:
        """Send a message of this collective."""
        words = [self.number, MESSAGES.index(what), slot, *halves(place), *self.call.words()]
        self._services.say(self.team, peer, words, payload)

    def move(
        self, peer: int, place: int, view: memoryview, told: Transfer, *, is_get: bool
    ) -> None:
        """Begin a put or get of a member's segment."""
        self._services.move(self.team.nodes[peer], place, view, told, is_get=is_get)

    def place_of(self, view: memoryview) -> int:
        """Where memory is in the own segment; `NOWHERE` if it is elsewhere."""
        return place_in(self._services.segment, view)

    def tell(self) -> None:
        """Something has moved."""
        self._services.tell()

    # --- what drives it

    def take_message(
        self, source: int, what: Message, slot: int, place: int, payload: bytes
    ) -> None:
        """A message of it has come."""
        self.arrived(source, slot).take_edge_message(what, place, payload)

    def advance(self) -> None:
        """Do what can be done."""
        if self.complete:
            return
        try:
            for edge in self._outgoing:
                edge.advance()
            self._outgoing = [edge for edge in self._outgoing if not edge.over]
            next(self._steps)
        except StopIteration:
            self.complete = True
        except BaseException as problem:
            self.fail(problem)
            raise

    def fail(self, problem: BaseException) -> None:
        """It ends with this."""
        if not self.complete:
            self.problem = problem
            self.complete = True

    def waiting(self) -> list[str]:
        """What it waits for, a line each."""
        name = f"collective {self.number} of {self.team}, {self.call.kind.value}"
        lines = [
            f"{name}: nothing has come from rank {self.team.nodes[edge.peer]} yet"
            for edge in self._incoming
        ]
        lines += [
            f"{name}: rank {self.team.nodes[edge.peer]} has not taken a block yet"
            for edge in self._outgoing
        ]
        return lines or [f"{name}: this rank to go on with it"]


def place_in(memory: memoryview, view: memoryview) -> int:
    """Where a piece of memory is within another; `NOWHERE`: it is elsewhere, or empty."""
    if not len(view) or not len(memory):
        return NOWHERE
    from ompy.net.memory.kernel_copy import (
        address_of,  # it needs ctypes, which a program's start does not
    )

    place = address_of(view) - address_of(memory)
    return place if 0 <= place <= len(memory) - len(view) else NOWHERE
