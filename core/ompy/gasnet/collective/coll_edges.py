"""One block from one member of a team to another, for one collective: the edges of an algorithm.

    block     way                                              messages
    small     eager: the bytes in a message                    DATA
    large     put, to a place in the receiver's segment that   WANT (where), put, DONE
              it has told, or that all know (SINGLE)
              get, where only the source is in a segment       WANT, HERE (where), get, GOT
              bytes in messages, where neither is              WANT, DATA for each part

Small is what one Medium takes. A put to a place that all know waits for no WANT but with IN_MYSYNC.
A receiver says WANT whenever it has to wait, also for a small block: so the other side hears which
call this member has made, and two that wait for each other in different ones find out.

Source: reference gasnet.md 14 (Collectives).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from ompy.frameworks.conduit import Transfer
from ompy.gasnet.collective.coll_calls import NOWHERE

if TYPE_CHECKING:
    from ompy.gasnet.collective.coll_operation import Operation


class Message(Enum):
    """What a message of a collective says; its place is its number."""

    DATA = auto()  # bytes of a block, from a place in it on
    WANT = auto()  # the receiver waits for a block: where it wants it, or nowhere
    HERE = auto()  # where the block is in the sender's segment
    DONE = auto()  # a block has been put
    GOT = auto()  # a block has been read
    BROKEN = auto()  # two members have made different calls


MESSAGES: Final = tuple(Message)


class State(Enum):
    """Of an edge."""

    WAITING = auto()  # for the block, or for the receiver's WANT
    MOVING = auto()  # a put or get is under way
    OFFERED = auto()  # the receiver is to read
    OVER = auto()


class Arrived:
    """What has come from one member for one slot.

    Attributes:
        parts: of DATA: place and bytes.
        want: the receiver's place, `NOWHERE`, or None: it has not said.
        here: the sender's place, or None.
        done, got: have come.
    """

    __slots__ = ("done", "got", "here", "parts", "want")

    def __init__(self) -> None:
        self.parts: list[tuple[int, bytes]] = []
        self.want: int | None = None
        self.here: int | None = None
        self.done = False
        self.got = False

    def take_edge_message(self, what: Message, place: int, payload: bytes) -> None:
        """A message has come."""
        if what is Message.DATA:
            self.parts.append((place, payload))
        elif what is Message.WANT:
            self.want = place
        elif what is Message.HERE:
            self.here = place
        elif what is Message.DONE:
            self.done = True
        else:
            self.got = True


class Moved(Transfer):
    """A put or get of an edge."""

    __slots__ = ("over", "tell")

    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell = tell
        self.over = False

    def done(self, *, is_get: bool) -> None:
        """The conduit has finished it."""
        self.over = True
        self.tell()


class Edge:
    """One end of a block's way.

    Attributes:
        peer: the other end, a rank of the team.
        slot: tells the blocks between two members apart.
        state: of it.
    """

    __slots__ = ("_moved", "_op", "peer", "slot", "state", "view")

    def __init__(self, op: Operation, peer: int, slot: int, view: memoryview) -> None:
        self._op = op
        self._moved: Moved | None = None
        self.peer = peer
        self.slot = slot
        self.view = view
        self.state = State.WAITING

    @property
    def over(self) -> bool:
        """The block is there, or has left."""
        return self.state is State.OVER

    def _say(self, what: Message, place: int = NOWHERE) -> None:
        self._op.send_message(self.peer, what, self.slot, place)

    def _move(self, place: int, *, is_get: bool) -> None:
        self.state = State.MOVING
        self._moved = Moved(self._op.tell)
        self._op.move(self.peer, place, self.view, self._moved, is_get=is_get)

    def _has_moved(self) -> bool:
        return self._moved is not None and self._moved.over


class Outgoing(Edge):
    """The sender's end; `known` is where all know the receiver wants it, or `NOWHERE`."""

    __slots__ = ("_known",)

    def __init__(
        self, op: Operation, peer: int, slot: int, view: memoryview, known: int = NOWHERE
    ) -> None:
        super().__init__(op, peer, slot, view)
        self._known = known

    def advance(self) -> None:
        """Do what can be done now."""
        if self.state is State.WAITING:
            self._begin()
        if self.state is State.MOVING and self._has_moved():
            self.state = State.OVER
            self._say(Message.DONE)
        elif self.state is State.OFFERED and self._op.arrived(self.peer, self.slot).got:
            self.state = State.OVER

    def _begin(self) -> None:
        op = self._op
        if len(self.view) <= op.small:
            self.state = State.OVER
            op.send_message(self.peer, Message.DATA, self.slot, 0, self.view)
            return
        want = op.arrived(self.peer, self.slot).want
        place = self._known if self._known != NOWHERE else want
        if place is None:
            return
        if place != NOWHERE:
            self._move(place, is_get=False)
            return
        here = op.place_of(self.view)
        if here != NOWHERE:
            self.state = State.OFFERED
            self._say(Message.HERE, here)
            return
        self.state = State.OVER
        for at in range(0, len(self.view), op.small):
            op.send_message(self.peer, Message.DATA, self.slot, at, self.view[at : at + op.small])


class Incoming(Edge):
    """The receiver's end."""

    __slots__ = ("_left", "_said")

    def __init__(self, op: Operation, peer: int, slot: int, view: memoryview) -> None:
        super().__init__(op, peer, slot, view)
        self._left = len(view)
        self._said = False

    def advance(self) -> None:
        """Do what can be done now."""
        if self.state is State.WAITING:
            self._look()
        if self.state is State.MOVING and self._has_moved():
            self.state = State.OVER
            self._say(Message.GOT)
        elif self.state is State.WAITING and not self._said:
            self._said = True
            large = len(self.view) > self._op.small
            self._say(Message.WANT, self._op.place_of(self.view) if large else NOWHERE)

    def _look(self) -> None:
        arrived = self._op.arrived(self.peer, self.slot)
        come = bool(arrived.parts)
        while arrived.parts:
            place, payload = arrived.parts.pop()
            self.view[place : place + len(payload)] = payload
            self._left -= len(payload)
        if arrived.done or (come and not self._left):
            self.state = State.OVER
        elif arrived.here is not None:
            self._move(arrived.here, is_get=True)
