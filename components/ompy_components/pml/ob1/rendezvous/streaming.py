"""The sender's FRAGs: what the receiver's ACK asks for, shared out over rails, a few at a time.

Source: seed ob1 (Send/Receive Pipeline), steps E and F; reference openmpi.md 3.7.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    NO_ORDER,
    OUT_OF_RESOURCE,
    SEND_ALWAYS_CALLBACK,
    SIGNAL,
    UNHURRIED,
)

from ompy_components.pml.ob1.diagnosis.steps import FRAG_FIRST
from ompy_components.pml.ob1.halves import SenderHalf
from ompy_components.pml.ob1.headers import (
    ACK,
    ACK_SIZE,
    FLAG_NORDMA,
    FRAG,
    FRAG_SIZE,
    NAMES,
    check,
    place,
)
from ompy_components.pml.ob1.rendezvous.striping import Share, heaviest_first, next_share, share_out
from ompy_components.pml.ob1.selection import BUFFERED_PIPELINE, SEND_RECEIVE_PIPELINE
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import SendEvent, SendState

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.trace.sink import Trace

_FRAG_FLAGS: Final = BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL
# members of enums are found by a call; every message asks for these
_AWAIT_ACK: Final = SendState.AWAIT_ACK
_ACK: Final = SendEvent.ACK


@cclass
class SendRange:
    """A piece of a message, shared out over rails.

    Attributes:
        offset: next byte to send.
        shares: the rails, with the bytes left for each.
        flags: of its descriptors.
    """

    flags: int
    offset: int
    shares: list[Share]
    __slots__ = tuple(__annotations__)

    def __init__(self, offset: int, shares: list[Share], flags: int) -> None:
        self.offset = offset
        self.shares = shares
        self.flags = flags


@cclass
class Streaming:
    """Sends FRAGs for one rank."""

    _depth: int
    _ob1: Ob1
    _rails_max: int
    _sending: SenderHalf
    _trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, sending: SenderHalf, depth: int, rails_max: int) -> None:
        self._ob1 = ob1
        self._sending = sending
        self._trace = ob1.trace
        self._depth = depth
        self._rails_max = rails_max

    @property
    def limits(self) -> tuple[int, int]:
        """FRAGs of one message under way at a time, and rails of one range."""
        return self._depth, self._rails_max

    @ccall
    def acknowledged(self, data: memoryview) -> None:
        """The receiver answers a RNDV or RGET with what it wants as FRAGs."""
        check(ACK, ACK_SIZE, data)
        flags: int = raw.word(data, 0) >> 8 & 0xFF
        send_id: U64 = raw.word(data, 8)
        receive_id: U64 = raw.word(data, 16)
        offset: int = raw.word(data, 24)
        size: int = raw.word(data, 32)
        request: SendRequest | None = self._sending.requests.get(send_id)
        if request is None:
            self._sending.unknown(ACK, send_id)
            return
        if self._sending.answered_whole(request, _AWAIT_ACK, request.delivered):
            return
        request.advance(self._sending.table, _ACK)
        request.peer_request = receive_id
        if flags & FLAG_NORDMA and request.protocol is not BUFFERED_PIPELINE:
            request.protocol = SEND_RECEIVE_PIPELINE
        if self._trace.active:
            self._ob1.steps.sender(request, "ACK", offset=offset, size=size, flags=flags)
        end = min(offset + size, request.convertor.size) if size else request.convertor.size
        if offset < end:  # else all of it went with the RNDV, whose sender was to be told
            unhurried = not flags & FLAG_NORDMA and self._puts_outlast(request, offset, end)
            self.add_range(request, offset, end - offset, UNHURRIED if unhurried else 0)
            request.answering = True
            self.schedule(request)
            request.answering = False
        self._sending.finish_if_delivered(request)

    @cfunc
    def _puts_outlast(self, request: SendRequest, offset: int, end: int) -> bool:
        """Whether what lies before these FRAGs is put over the same rail, and ends after them.

        They must all be under way at once: none has to be complete for the next to go.
        """
        rails: list[Rail] = request.endpoint.send.rails
        if len(rails) != 1:
            return False
        rail: Rail = rails[0]
        put = offset > rail.module.rndv_eager_limit  # more than the RNDV can have brought
        return put and end - offset <= self._depth * (rail.module.max_send_size - FRAG_SIZE)

    @ccall
    def add_range(self, request: SendRequest, offset: int, length: int, flags: int = 0) -> None:
        """Bytes to be sent as FRAGs, over the send rails by weight (reference openmpi.md 3.5.3).

        Args:
            request: they are its message's.
            offset: of the first byte, in the message.
            length: bytes.
            flags: descriptor flags of the FRAGs beside the usual ones.
        """
        if length <= 0:
            return
        rails = heaviest_first(request.endpoint.send.in_turn()[: self._rails_max])
        if not rails:
            self._sending.no_path(request)
            return
        parts = share_out(rails, length)
        shares = [Share(rail, part) for rail, part in zip(rails, parts, strict=True)]
        request.ranges.append(SendRange(offset, shares, _FRAG_FLAGS | flags))

    @ccall
    def schedule(self, request: SendRequest) -> None:
        """Send FRAGs while fewer than the pipeline's depth are under way.

        When no BTL has room the pending queue goes on with the request.
        """
        if not self._stream(request) and not request.waiting:
            request.waiting = True
            self._ob1.pending.fragment(partial(self.resume, request), request.endpoint)

    @ccall
    def resume(self, request: SendRequest) -> bool:
        """A try of the pending queue: true when it need not keep the request."""
        if not self._stream(request):
            return self._sending.given_up(request)
        request.waiting = False
        self._sending.finish_if_delivered(request)
        return True

    @cfunc
    def _stream(self, request: SendRequest) -> bool:
        """Send what may be sent now; false when a BTL had no room for it."""
        if request.scheduling:
            return True  # a completion inside `send`: the outer call goes on
        request.scheduling = True
        try:
            while request.ranges and request.in_flight < self._depth and not request.complete:
                if not self._send_next(request):
                    return False
        finally:
            request.scheduling = False
        return True

    @cfunc
    def _send_next(self, request: SendRequest) -> bool:
        """Send one FRAG of the first range over the next rail that has room."""
        piece: SendRange = request.ranges[0]
        full: list[Share] = []
        share = next_share(piece.shares, 1, full)
        while share is not None:
            sent = self._send_fragment(share.rail, request, piece, share.left)
            if sent:
                piece.offset += sent
                share.left -= sent
                if not _left(piece) and request.ranges and request.ranges[0] is piece:
                    request.ranges.pop(0)
                return True
            full.append(share)
            share = next_share(piece.shares, 1, full)
        return False

    @cfunc
    def _send_fragment(self, rail: Rail, request: SendRequest, piece: SendRange, left: int) -> int:
        """Send up to `left` bytes of `piece` as one FRAG. Returns bytes taken, 0 for no room."""
        module, offset = rail.module, piece.offset
        descriptor = module.prepare_src(
            rail.endpoint,
            request.convertor,
            offset,
            NO_ORDER,
            FRAG_SIZE,
            min(left, module.max_send_size - FRAG_SIZE),
            piece.flags,
        )
        if descriptor is None:
            return 0
        place(descriptor, self._sending.frag_header(request, offset))
        size = descriptor.payload_size
        request.in_flight += 1  # a completion inside `send` must not finish the request there
        began = self._trace.clock() if self._trace.active else 0
        result = self._sending.send_fragment(rail, request, descriptor, FRAG)
        request.in_flight -= 1
        if result >= 0:
            if self._trace.active:
                name = FRAG_FIRST if request.answering else NAMES[FRAG]
                self._ob1.steps.sender(
                    request, name, at=began, offset=offset, payload=size, rail=module
                )
            return size
        if result != OUT_OF_RESOURCE:
            self._sending.path_failed(request, rail)
            return size
        return 0


def _left(piece: SendRange) -> bool:
    return any([share.left for share in piece.shares])  # noqa: C419 - a closure would not compile
