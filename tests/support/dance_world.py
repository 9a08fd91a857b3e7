"""A message and its two ends, as small as they can be: what lies between bfo's machines.

A message has two bytes, each a piece of its own, 1 and 2. Ids are numbers given in turn. The
sender's side is `dance_sender.py`, the receiver's `dance_receiver.py`; `dance_orders.py` lets
everything happen that may.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ompy.frameworks.bml import BmlEndpoint
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.proc import Proc
from ompy_components.pml.bfo.dance import Place
from ompy_components.pml.ob1.states import ReceiveState, SendState, State

BOTH: Final = 1 | 2  # pieces
SIZE: Final = 2
Pair = tuple[State, object]

# what the requests of both ends name in their stories
PEER: Final = BmlEndpoint(Proc(1, 0, 1, "there"))
WORLD: Final = Communicator.__new__(Communicator)
WORLD.name, WORLD.context_id, WORLD.rank = "the small world", 0, 0


class Way(NamedTuple):
    """How a message goes, and what may happen to it.

    Attributes:
        first: its first fragment: MATCH, RNDV or RGET.
        brings: pieces that go with it.
        answer: the receiver's: nothing, `copy` (the rest as FRAGs), `put` (both pieces), `pipeline`
            (a put and a FRAG), `get` (both pieces, each of which may come as a FRAG instead).
        losses: messages, puts and gets that may fail.
        held: a BTL may say long after something has arrived that it has, and take the first
            fragment long after it was asked to.
    """

    first: str
    brings: int
    answer: str
    losses: int
    held: bool


class Message(NamedTuple):
    """On its way: ids are the sender's and the receiver's request, or 0."""

    kind: str
    generation: int
    send_id: int
    receive_id: int
    pieces: int = 0


class Report(NamedTuple):
    """What whoever sent a message will hear of it."""

    message: Message
    well: bool


class Get(NamedTuple):
    """A piece that the receiver reads, or will."""

    receive_id: int
    send_id: int
    piece: int


class Both(NamedTuple):
    """The sender, the receiver, and what is between them.

    Attributes:
        begun: the first fragment of this generation is no longer waiting for room.
        lent: the sender's ids whose memory the receiver may read.
        told: pieces that FINs have told the sender of, under this id.
        send_later, receive_later: what the BTLs have said, and nobody has heeded yet.
        queued: generation, sender's id and kind of a message that waits for a receive.
        waiting: sender's id of a restart that waits.
        wanted: pieces that the sender was asked to put.
        todo: gets that wait for room.
        here: pieces that lie in the receive's memory, whoever knows.
        ghosts: messages that have failed, and may arrive all the same.
    """

    sender: State = SendState.STARTED
    send_id: int = 0
    peer_request: int = 0
    in_flight: int = 0
    writing: int = 0
    delivered: int = 0
    sent_done: bool = False
    sent: int = 0
    known: int = 0
    next_send: int = 1
    begun: bool = False
    lent: tuple[int, ...] = ()
    told: int = 0
    send_later: tuple[tuple[Any, ...], ...] = ()
    place: Place | None = Place.UNSEEN
    queued: tuple[int, int, str] = (0, 0, "")
    receiver: State = ReceiveState.POSTED
    receive_id: int = 0
    arrived: int = 0
    outstanding: int = 0
    done: bool = False
    seen: int = 0
    peer: int = 0
    waiting: int = 0
    wanted: int = 0
    todo: tuple[Get, ...] = ()
    reads: tuple[Get, ...] = ()
    here: int = 0
    receive_later: tuple[tuple[Any, ...], ...] = ()
    wire: tuple[Message, ...] = ()
    reports: tuple[Report, ...] = ()
    ghosts: tuple[Message, ...] = ()
    losses: int = 0

    def say(self, kind: str, generation: int, send: int, receive: int, pieces: int = 0) -> Both:
        """Send a message."""
        return self._replace(wire=more(self.wire, Message(kind, generation, send, receive, pieces)))

    def hear_later(self, what: str, *about: Any) -> Both:
        """The sender's BTL has said something."""
        return self._replace(send_later=more(self.send_later, (what, *about)))

    def receiver_hears_later(self, what: str, number: int) -> Both:
        """The receiver's BTL has said something."""
        return self._replace(receive_later=more(self.receive_later, (what, number)))


def more(items: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
    """A bag with one item more."""
    return tuple(sorted((*items, item)))


def fewer(items: tuple[Any, ...], item: Any) -> tuple[Any, ...]:
    """A bag with one item less."""
    index = items.index(item)
    return items[:index] + items[index + 1 :]


def size(pieces: int) -> int:
    """Bytes of some pieces."""
    return pieces.bit_count()
