"""A message on its way out: its state and counts, without I/O.

The sender's half tells it what has happened, and asks what is so now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import U64, ccall, cclass, cfunc, recycled
from ompy.data.convertor import Convertor
from ompy.data.request import Request
from ompy.frameworks.bml import BmlEndpoint
from ompy.frameworks.communicator import Communicator
from ompy.trace.tag_names import tag_text

from ompy_components.pml.ob1.states import Event, SendState, State, next_state

if TYPE_CHECKING:
    from ompy_components.pml.ob1.rendezvous.rdma import Offer
    from ompy_components.pml.ob1.rendezvous.streaming import SendRange
    from ompy_components.pml.ob1.rendezvous.striping import Share
    from ompy_components.pml.ob1.selection import Protocol

# members of enums are found by a call; every message asks for these
_STARTED: Final = SendState.STARTED
_STREAMING: Final = SendState.STREAMING


@recycled
@cclass
class SendRequest(Request):
    """A message on its way out.

    The attributes from `protocol` on are set by `open_rendezvous`: an eager message has none.

    Attributes:
        context_id, own_rank, sequence: what its MATCH header says beside the tag.
        convertor: the message.
        endpoint: the peer.
        mode: communication mode.
        id: in the table of sends that peers answer to; 0 for eager ones.
        in_flight: fragments accepted by BTLs and not completed.
        writing: puts accepted by BTLs and not completed.
        delivered: payload bytes completed, or moved by RDMA.
        protocol: it takes.
        offer: lets the receiver get it, or None.
        peer_request: the receiver's request id, from its ACK or PUT.
        state: of the rendezvous.
        ranges: what is left to send as FRAGs.
        registered: rails that have the whole message registered.
        answering: true while an ACK or PUT is being answered.
        scheduling: true while its FRAGs are being sent.
        waiting: true while it is in the pending queue with FRAGs to send.
        blocking: the sender does nothing but wait for it, on a core of its own.
        bare: its first fragment has no payload, the receiver holds too much already.
    """

    answering: bool
    bare: bool
    blocking: bool
    context_id: int
    convertor: Convertor
    delivered: int
    endpoint: BmlEndpoint
    id: U64
    in_flight: int
    mode: int
    offer: Offer | None
    own_rank: int
    peer_request: U64
    protocol: Protocol | None
    ranges: list[SendRange]
    registered: list[Share]
    scheduling: bool
    sequence: int
    state: State
    waiting: bool
    writing: int
    __slots__ = tuple(__annotations__)

    @cfunc
    def prepare(
        self,
        communicator: Communicator,
        convertor: Convertor,
        endpoint: BmlEndpoint,
        target: int,
        tag: int,
        mode: int,
        sequence: int,
    ) -> None:
        """Set what a message begins with."""
        self.reset()
        self.context_id = communicator.context_id
        self.own_rank = communicator.rank
        self.convertor = convertor
        self.endpoint = endpoint
        self.source = target
        self.tag = tag
        self.mode = mode
        self.sequence = sequence
        self.blocking = False
        self.bare = False
        self.id = 0
        self.in_flight = 0
        self.writing = 0
        self.delivered = 0

    @ccall
    def open_rendezvous(self, id: U64) -> None:  # noqa: A002 - the attribute's name
        """Get ready for answers to `id`. The first try has set it, a later one finds it so."""
        self.id = id
        self.peer_request = 0
        self.state = _STARTED
        self.plan()

    @ccall
    def plan(self) -> None:
        """Nothing is decided yet of how the message goes, and nothing of it waits to go."""
        self.protocol = None
        self.offer = None
        self.ranges = []
        self.registered = []
        self.answering = False
        self.scheduling = False
        self.waiting = False

    @ccall
    def advance(self, table: dict[State, dict[Event, State]], event: Event) -> None:
        """The state after `event`; an event that cannot be is an error with the story."""
        self.state = next_state(table, self.state, event, self)

    @ccall
    def ended(self, payload: int) -> None:
        """A fragment under way has ended well, and so are its bytes of the message there."""
        self.in_flight -= 1
        self.delivered += payload

    @ccall
    def is_delivered(self) -> bool:
        """Whether it was answered, every byte is there and nobody knows that yet (3.2.4)."""
        return (
            self.delivered >= self.convertor.size
            and self.state is _STREAMING
            and not self.in_flight
            and not self.complete
        )

    def story(self) -> str:
        """What is known of it, for messages to people."""
        return (
            f"send {self.id} of {self.convertor.size} bytes with {tag_text(self.tag)} to "
            f"{self.endpoint.proc}: {self.delivered} delivered, {self.in_flight} fragments "
            f"in flight"
        )

    def __repr__(self) -> str:
        """What it is: the virtual world names it when all ranks wait."""
        size, peer = self.convertor.size, self.endpoint.proc
        return (
            f"send of {size} bytes with {tag_text(self.tag)} to {peer}, {self.delivered} delivered"
        )


@ccall
def send_request(
    communicator: Communicator,
    convertor: Convertor,
    endpoint: BmlEndpoint,
    target: int,
    tag: int,
    mode: int,
    sequence: int,
) -> SendRequest:
    """A message to be sent. Made without `__init__`, which costs compiled callers the most."""
    made: SendRequest = SendRequest.__new__(SendRequest)
    made.prepare(communicator, convertor, endpoint, target, tag, mode, sequence)
    return made
