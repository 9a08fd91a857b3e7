"""What the parts of the protocols ask of the two halves they belong to.

`Sending` and `Receiving` are the halves. Their parts lie below them and know no more of them
than this: so that one way of a message is read downwards, and compiled parts call straight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.compiled import U64, ccall, cclass
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import BtlModule, CompletionCallback, Descriptor, Endpoint

from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import Event, State

if TYPE_CHECKING:
    from ompy_components.pml.ob1.rendezvous.rdma_put import PutWrites
    from ompy_components.pml.ob1.rendezvous.streaming import Streaming


@cclass
class SenderHalf:
    """The sender's half of a PML, as its parts see it.

    Attributes:
        requests: rendezvous that peers answer to, by id.
        table: what becomes of a message's state.
        straight: what one answer completes goes and is answered without a step of its machine.
        streaming: sends the FRAGs.
        puts: does the puts that receivers ask for.
    """

    puts: PutWrites
    requests: dict[int, SendRequest]
    straight: bool
    streaming: Streaming
    table: dict[State, dict[Event, State]]
    __slots__ = tuple(__annotations__)

    @ccall
    def open_rendezvous(self, request: SendRequest) -> None:
        """Put a request into the table that peers answer to, unless it is there."""
        raise NotImplementedError

    @ccall
    def send_fragment(
        self, rail: Rail, request: SendRequest, descriptor: Descriptor, tag: int
    ) -> int:
        """Hand a fragment to a BTL and account for it, now or in its completion.

        Returns:
            The BTL's result; when it is negative the descriptor has been freed.
        """
        raise NotImplementedError

    @ccall
    def finish_if_delivered(self, request: SendRequest) -> None:
        """Complete the request when it was answered and every byte is there."""
        raise NotImplementedError

    @ccall
    def answered_whole(self, request: SendRequest, awaited: State, delivered: int) -> bool:
        """Complete a message that lacks nothing but the answer which has just come, if it does.

        Args:
            request: the message.
            awaited: the state in which that answer is awaited.
            delivered: bytes of it that are there, by this answer.
        """
        raise NotImplementedError

    @ccall
    def given_up(self, request: SendRequest) -> bool:
        """Fail a message that found no room if its peer has ended."""
        raise NotImplementedError

    @ccall
    def path_failed(self, request: SendRequest, rail: Rail) -> None:
        """A BTL says that it does not reach the peer."""
        raise NotImplementedError

    @ccall
    def no_path(self, request: SendRequest) -> None:
        """There is no rail left to send over."""
        raise NotImplementedError

    @ccall
    def unknown(self, tag: int, number: U64) -> None:
        """A peer answers to a send that is not waiting for it."""
        raise NotImplementedError

    @ccall
    def keep_rest(self, request: SendRequest, sent: int) -> None:
        """The first `sent` bytes of a buffered message are on their way: have the rest kept."""
        raise NotImplementedError

    @ccall
    def frag_header(self, request: SendRequest, offset: int) -> bytes:
        """The header of a FRAG."""
        raise NotImplementedError

    @ccall
    def fragment_done(self, request: SendRequest, descriptor: Descriptor, status: int) -> None:
        """A BTL has completed a fragment."""
        raise NotImplementedError


@cclass
class FragmentDone(CompletionCallback):
    """Completions of MATCH, RNDV, RGET and FRAG."""

    _sending: SenderHalf
    __slots__ = tuple(__annotations__)

    def __init__(self, sending: SenderHalf) -> None:
        self._sending = sending

    @ccall
    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """Account for a fragment that is done."""
        request = descriptor.context
        assert isinstance(request, SendRequest)
        self._sending.fragment_done(request, descriptor, status)


@cclass
class ReceiverHalf:
    """The receiver's half of a PML, as its parts see it.

    Attributes:
        requests: matched receives of which more is to come, by id.
        table: what becomes of a receive's state.
    """

    requests: dict[int, RecvRequest]
    table: dict[State, dict[Event, State]]
    __slots__ = tuple(__annotations__)

    @ccall
    def finish_if_here(self, request: RecvRequest) -> None:
        """Complete the request when all bytes of the message have arrived."""
        raise NotImplementedError

    @ccall
    def ask_for_fragments(self, request: RecvRequest, offset: int, size: int) -> None:
        """Have the sender send these bytes as FRAGs, whatever else is under way."""
        raise NotImplementedError
