"""What put and get have in common: the fragments peers answer to, registrations, and FIN.

Source: reference openmpi.md 3.4 to 3.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass
from ompy.data.errors import MPIError
from ompy.data.request import Request
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl_base.registration import Registration
from ompy.mca.parameter import Values

from ompy_components.pml.ob1.halves import SenderHalf
from ompy_components.pml.ob1.headers import FIN, FIN_SIZE, check, fin_words
from ompy_components.pml.ob1.rendezvous.striping import RdmaRails, Share, share_of
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import (
    RDMA_TABLE,
    RdmaEvent,
    RdmaState,
    SendEvent,
    SendState,
    State,
    next_state,
    rows_of,
)

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.control import Control


_ROWS: Final = rows_of(RDMA_TABLE)
_PLANNED: Final = RdmaState.PLANNED  # every fragment asks for it
_FIN: Final = SendEvent.FIN
_AWAIT_GET: Final = SendState.AWAIT_GET


@cclass
class Expected:
    """Something a FIN tells of.

    Attributes:
        id: in the table of RDMA fragments that peers answer to.
        request: it belongs to.
    """

    id: U64
    request: Request
    __slots__ = tuple(__annotations__)

    @ccall
    def finished(self, size: int) -> None:
        """A FIN arrived.

        Args:
            size: bytes moved, or a negative error.
        """
        raise NotImplementedError


@cclass
class RdmaFragment(Expected):
    """Bytes of a message that one put or get moves.

    Attributes:
        rail: it goes over.
        offset, size: in the message.
        handle: its own registration, or None when the request's is used.
        state: of it.
    """

    handle: object | None
    offset: int
    rail: Rail
    size: int
    state: State
    __slots__ = tuple(__annotations__)

    @ccall
    def plan(self, request: Request, rail: Rail, offset: int, size: int) -> None:
        """Set what it begins with."""
        self.id = 0
        self.request = request
        self.rail = rail
        self.offset = offset
        self.size = size
        self.handle = None
        self.state = _PLANNED

    @ccall
    def advance(self, event: RdmaEvent) -> None:
        """The state after `event`; an event that cannot be is an error with the story."""
        self.state = next_state(_ROWS, self.state, event, self)

    def story(self) -> str:
        """What is known of it, for messages to people."""
        end = self.offset + self.size
        return f"bytes {self.offset} to {end} over {self.rail.module.name} of {self.request}"


@cclass
class Offer(Expected):
    """A whole message that its receiver may get; every get ends with a FIN.

    Attributes:
        rdma: that made it.
    """

    rdma: Rdma
    __slots__ = tuple(__annotations__)

    @ccall
    def finished(self, size: int) -> None:
        """RDMA Direct Get, steps F and G."""
        request = self.request
        assert isinstance(request, SendRequest)
        self.rdma.got(request, size)


@ccall
def wire_of(handle: object) -> bytes:
    """What `bytes()` makes of a registration, without the search for how where it is ours."""
    if isinstance(handle, Registration):
        return handle.wire
    return bytes(handle)  # type: ignore[call-overload, no-any-return]


@cclass
class Rdma:
    """The common half of put and get for one rank.

    Attributes:
        rails: chooses them.
        sender: the half that messages are completed by; it sets it.
    """

    _control: Control
    _expected: dict[int, Expected]
    _next_id: U64
    _ob1: Ob1
    _trace: Trace
    rails: RdmaRails
    sender: SenderHalf
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, values: Values) -> None:
        self._ob1 = ob1
        self._control = ob1.control
        self._trace = ob1.trace
        self._next_id = 0
        self._expected = {}
        self.rails = RdmaRails(
            values.max_rdma_per_request, values.use_all_rdma, values.leave_pinned == "1"
        )

    def __len__(self) -> int:
        """FINs that may still come, for tests that look for leaks."""
        return len(self._expected)

    @ccall
    def expect(self, expected: Expected) -> U64:
        """Give an id that a FIN will name."""
        self._next_id += 1
        expected.id = self._next_id
        self._expected[expected.id] = expected
        return expected.id

    @ccall
    def expected(self, number: U64) -> Expected | None:
        """What a FIN with this id tells of; None when nothing waits for one."""
        return self._expected.get(number)

    @ccall
    def expected_of(self, request: Request) -> list[Expected]:
        """All that FINs are to tell of a request."""
        return [one for one in self._expected.values() if one.request is request]

    @ccall
    def forget(self, expected: Expected) -> None:
        """No FIN will name it any more."""
        self._expected.pop(expected.id, None)

    @ccall
    def offer(self, request: SendRequest) -> U64:
        """Let the receiver get a message; the id is for its FINs.

        A RGET that found no room was not sent: its offer is made anew.
        """
        self.withdraw(request)
        offer: Offer = Offer.__new__(Offer)
        offer.rdma = self
        offer.request = request
        request.offer = offer
        return self.expect(offer)

    @ccall
    def withdraw(self, request: SendRequest) -> None:
        """No part of a message will be got any more."""
        offer: Offer | None = request.offer
        if offer is not None:
            request.offer = None
            self.forget(offer)

    @ccall
    def drop(self, request: Request) -> None:
        """A request has failed: no FIN is expected for it any more."""
        if isinstance(request, SendRequest):
            self.withdraw(request)
        for expected in self.expected_of(request):
            del self._expected[expected.id]
            if isinstance(expected, RdmaFragment):
                self.release_one(expected)

    @ccall
    def fin_arrived(self, data: memoryview) -> None:
        """A FIN: bytes were moved, or could not be."""
        check(FIN, FIN_SIZE, data)
        size: int = raw.signed_word(data, 8)
        fragment_id: U64 = raw.word(data, 16)
        expected: Expected | None = self._expected.get(fragment_id)
        if expected is None:
            self._ob1.unknown(FIN, fragment_id, "RDMA fragment")
        else:
            expected.finished(size)

    @ccall
    def send_fin(self, fragment: RdmaFragment, fragment_id: U64, size: int) -> None:
        """Tell the peer about its fragment, behind the put on the same rail."""
        self._control.send_on(fragment.rail, fin_words(size, fragment_id), FIN)

    @ccall
    def say_got(self, rail: Rail, fragment_id: U64, size: int) -> None:
        """Tell the peer that a message of its offer is here, all of it."""
        self._control.send_next(rail, fin_words(size, fragment_id), FIN)

    @ccall
    def got(self, request: SendRequest, size: int) -> None:
        """The receiver has read `size` bytes of a message offered to it."""
        if self.sender.answered_whole(request, _AWAIT_GET, request.delivered + size):
            return
        request.advance(self.sender.table, _FIN)
        if self._trace.active:
            self._ob1.steps.sender(request, "FIN", size=size)
        request.delivered += size
        self.sender.finish_if_delivered(request)

    @ccall
    def register(self, rail: Rail, memory: memoryview, access: int) -> object | None:
        """A registration for put and get over a rail; None when there is no room for it."""
        try:
            return rail.module.register_mem(rail.endpoint, memory, access)
        except MPIError:
            return None

    @ccall
    def register_all(self, rails: list[Rail], memory: memoryview, access: int) -> list[Share]:
        """Shares of the rails that could register the memory, with nothing to carry yet."""
        shares: list[Share] = []
        rail: Rail
        for rail in rails:
            handle = self.register(rail, memory, access)
            if handle is not None:
                shares.append(share_of(rail, 0, handle))
        return shares

    @ccall
    def release(self, shares: list[Share]) -> None:
        """Give registrations back."""
        share: Share
        for share in shares:
            if share.handle is not None:
                share.rail.module.deregister_mem(share.handle)
                share.handle = None
        shares.clear()

    @ccall
    def release_one(self, fragment: RdmaFragment) -> None:
        """Give a fragment's own registration back."""
        if fragment.handle is not None:
            fragment.rail.module.deregister_mem(fragment.handle)
            fragment.handle = None
