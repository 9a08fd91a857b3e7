"""The receiver's answer to RNDV and RGET: it decides what becomes of the sender's candidate.

| what came | what is so here | answer |
|---|---|---|
| RNDV with everything | | ACK |
| RNDV, CONTIG and PIN | contiguous, rails of direct RDMA | a PUT for each rail, one acknowledges |
| RNDV, CONTIG | contiguous, rails that put, message above the send limit | ACK of the tail, PUTs |
| RGET | contiguous, the rail gets | gets |
| anything else | | ACK with NORDMA: all that is left as FRAGs |

A message that does not fit its receive counts as not contiguous: a put must not write beyond it.

Source: seed ob1 (Rendezvous Protocols), step C of each; reference openmpi.md 3.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.frameworks.bml import BmlEndpoint, Rail
from ompy.frameworks.btl import COMPLETED, GET, LOCAL_WRITE, REMOTE_WRITE
from ompy.frameworks.btl import PUT as CAN_PUT
from ompy.frameworks.communicator import Communicator
from ompy.mca.parameter import Values

from ompy_components.pml.ob1.fragment import Fragment, RemoteMemory
from ompy_components.pml.ob1.halves import ReceiverHalf
from ompy_components.pml.ob1.headers import (
    ACK,
    FLAG_CONTIG,
    FLAG_NORDMA,
    FLAG_PIN,
    FLAG_WAITS,
    ack_words,
)
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rendezvous.rdma_get import Gets
from ompy_components.pml.ob1.rendezvous.rdma_put import Incoming, PutRequests, incoming_by_rdma
from ompy_components.pml.ob1.rendezvous.striping import (
    Share,
    find_rail,
    get_alignment,
    heaviest_first,
    named_rail,
    put_alignment,
    share_of,
    share_out,
    shares_by_weight,
)
from ompy_components.pml.ob1.selection import (
    RDMA_DIRECT_GET,
    RDMA_DIRECT_PUT,
    RDMA_PIPELINE,
    SEND_RECEIVE_PIPELINE,
    Protocol,
)

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.proc import Proc
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.control import Control
    from ompy_components.pml.ob1.rendezvous.rdma import Rdma

PAGE: Final = 4096  # x86 and most aarch64; no page is written by two ranks at once


@cclass
class RendezvousReceive:
    """Answers rendezvous for one rank.

    Attributes:
        puts: asks for puts.
        gets: reads.
    """

    _control: Control
    _ob1: Ob1
    _rdma: Rdma
    _receiver: ReceiverHalf
    _trace: Trace
    gets: Gets
    puts: PutRequests
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, receiver: ReceiverHalf, values: Values) -> None:
        self._ob1 = ob1
        self._receiver = receiver
        self._control = ob1.control
        self._rdma = ob1.rdma
        self._trace = ob1.trace
        self.puts = PutRequests(ob1, receiver, values.recv_pipeline_depth)
        self.gets = Gets(ob1, receiver, self.puts)

    @ccall
    def answer(self, request: RecvRequest, fragment: Fragment) -> None:
        """Answer the first fragment of a message of which more is to come."""
        endpoint: BmlEndpoint = self._endpoint(request)
        view = request.convertor.whole()
        if view is None or request.length > request.convertor.size:
            self._send_receive(request, fragment)
        elif fragment.remote is not None:
            whole = request.length == len(view)
            part = view if whole else view[: request.length]
            self._get(request, fragment, endpoint, part)
        elif not fragment.flags & FLAG_CONTIG or not (
            self._direct_put(request, fragment, endpoint, view[: request.length])
            or self._pipeline(request, fragment, endpoint, view[: request.length])
        ):
            self._send_receive(request, fragment)

    @ccall
    def get_at_once(self, request: RecvRequest, fragment: Fragment) -> bool:
        """RDMA Direct Get, steps C to G, in one call and without a step of any machine.

        Only for a message that one copy by this rank brings to where it is wanted.

        Returns:
            False where that cannot be: then nothing has happened, and `answer` says what will.
        """
        remote: RemoteMemory | None = fragment.remote
        length: int = fragment.length
        if remote is None or self._trace.active or length > request.convertor.size:
            return False
        module: BtlModule = remote.module
        halves = fragment.flags & FLAG_WAITS and 0 < module.split_least <= length
        if halves or remote.address < 0 or remote.others:
            return False
        view = request.convertor.whole()
        rail: Rail | None = find_rail(self._endpoint(request).rdma, module)
        if view is None or rail is None:
            return False
        if len(view) != length:
            view = view[:length]
        if module.get_now(rail.endpoint, view, remote.address, remote.handle) != COMPLETED:
            return False
        self._rdma.say_got(rail, remote.fragment_id, length)
        request.received = length
        request.finish()
        return True

    @cfunc
    def _endpoint(self, request: RecvRequest) -> BmlEndpoint:
        """The rails to the sender."""
        proc: Proc = request.communicator.procs[request.source]
        made = proc.bml_endpoint
        return made if isinstance(made, BmlEndpoint) else self._ob1.endpoint(proc)

    @ccall
    def ask_for_fragments(self, request: RecvRequest, offset: int, size: int) -> None:
        """ACK: the sender is to send these bytes as FRAGs, whatever else is under way."""
        incoming: Incoming | None = request.incoming
        assert incoming is not None
        incoming.acknowledge = False
        self._acknowledge(request, incoming.send_id, offset, size, 0)

    @ccall
    def acknowledge_all(self, request: RecvRequest, fragment: Fragment) -> None:
        """ACK for a RNDV that had everything in it."""
        self._decided(request, SEND_RECEIVE_PIPELINE, fragment)
        self._acknowledge(request, fragment.sender_request, request.arrived, 0, FLAG_NORDMA)

    @ccall
    def say_received(
        self, communicator: Communicator, source: int, send_id: U64, length: int
    ) -> None:
        """ACK for a message that came whole and is being received: nothing else will come of it."""
        proc: Proc = communicator.procs[source]
        made = proc.bml_endpoint
        endpoint: BmlEndpoint = made if isinstance(made, BmlEndpoint) else self._ob1.endpoint(proc)
        self._control.send(endpoint, ack_words(FLAG_NORDMA, send_id, 0, length, 0), ACK)

    @cfunc
    def _send_receive(self, request: RecvRequest, fragment: Fragment) -> None:
        """Send/Receive Pipeline, step C."""
        self._decided(request, SEND_RECEIVE_PIPELINE, fragment)
        self._acknowledge(request, fragment.sender_request, request.arrived, 0, FLAG_NORDMA)

    @cfunc
    def _direct_put(
        self, request: RecvRequest, fragment: Fragment, endpoint: BmlEndpoint, view: memoryview
    ) -> bool:
        """RDMA Direct Put, step C; false when there is no rail for it."""
        if not fragment.flags & FLAG_PIN:
            return False
        rdma = self._rdma
        rails = heaviest_first(rdma.rails.direct(endpoint, request.length, CAN_PUT))
        shares = rdma.register_all(rails, view, REMOTE_WRITE)
        if not shares:
            return False
        self._decided(request, RDMA_DIRECT_PUT, fragment)
        self._put(request, fragment, shares, request.length, view)
        return True

    @cfunc
    def _pipeline(
        self, request: RecvRequest, fragment: Fragment, endpoint: BmlEndpoint, view: memoryview
    ) -> bool:
        """RDMA Pipeline, step C; false when the message is too short or there is no rail."""
        rails = heaviest_first(self._rdma.rails.pipeline(endpoint))
        if not rails or request.length <= endpoint.send_limit:
            return False
        end: int = max(request.length - endpoint.pipeline_send_length, request.arrived)
        if end == request.arrived:
            return False  # nothing is left between what came and the tail
        self._decided(request, RDMA_PIPELINE, fragment)
        if end < request.length:
            self._acknowledge(request, fragment.sender_request, end, 0, 0)
        self._put(request, fragment, [share_of(rail, 0, None) for rail in rails], end, view)
        return True

    @cfunc
    def _put(
        self,
        request: RecvRequest,
        fragment: Fragment,
        shares: list[Share],
        end: int,
        view: memoryview,
    ) -> None:
        """Have the bytes from those that are here to `end` put; the first PUT answers alone."""
        _give_parts(shares, end - request.arrived, put_alignment(shares))
        incoming: Incoming = incoming_by_rdma(
            fragment.sender_request, view, shares, request.arrived
        )
        incoming.acknowledge = end == request.length
        request.incoming = incoming
        self.puts.schedule(request)

    @cfunc
    def _get(
        self,
        request: RecvRequest,
        fragment: Fragment,
        endpoint: BmlEndpoint,
        view: memoryview,
    ) -> None:
        """RDMA Direct Get, step C, over the rails that both sides have registered.

        Args:
            request: of the receive.
            fragment: the RGET.
            endpoint: the sender.
            view: where the message comes.
        """
        remote = fragment.remote
        assert remote is not None
        shares = self._shares_to_get(endpoint, remote, view)
        if not shares:
            self._send_receive(request, fragment)
            return
        self._decided(request, RDMA_DIRECT_GET, fragment)
        arrived = request.arrived
        _give_parts(shares, request.length - arrived, get_alignment(shares))
        incoming: Incoming = incoming_by_rdma(fragment.sender_request, view, shares, arrived)
        request.incoming = incoming
        if fragment.flags & FLAG_WAITS and len(shares) == 1:
            self._split(request, incoming, shares[0])
        self.gets.begin(request, remote)

    @cfunc
    def _split(self, request: RecvRequest, incoming: Incoming, share: Share) -> None:
        """Have the upper half put by the sender, which waits, while this rank gets the lower."""
        module: BtlModule = share.rail.module
        half: int = request.length // 2 // PAGE * PAGE
        if not 0 < module.split_least <= request.length or half > module.put_limit:
            return
        assert half <= share.left, "what came with the RGET is less than half"
        aligned = module.put_alignment == module.get_alignment == 1
        can_put = module.flags & CAN_PUT
        if aligned and can_put and self.puts.ask(request, share, request.length - half, half):
            share.left -= half

    @cfunc
    def _shares_to_get(
        self, endpoint: BmlEndpoint, remote: RemoteMemory, view: memoryview
    ) -> list[Share]:
        """The rails of a RGET that are known here, can get, and could register the receive."""
        shares: list[Share] = []
        self._add_share(shares, find_rail(endpoint.rdma, remote.module), remote.handle, view)
        for name, handle in remote.others:
            self._add_share(shares, named_rail(endpoint.rdma, name), handle, view)
        return shares_by_weight(shares)

    @cfunc
    def _add_share(
        self, shares: list[Share], rail: Rail | None, remote: bytes, view: memoryview
    ) -> None:
        if rail is None or not rail.module.flags & GET:
            return
        registered: object | None = None
        if len(view) > rail.module.local_registration_threshold:
            registered = self._rdma.register(rail, view, LOCAL_WRITE | REMOTE_WRITE)
            if registered is None:
                return
        share: Share = share_of(rail, 0, registered)
        share.remote = remote
        shares.append(share)

    @cfunc
    def _decided(self, request: RecvRequest, protocol: Protocol, fragment: Fragment) -> None:
        request.protocol = protocol
        if self._trace.active:
            self._ob1.steps.decided(request, protocol, fragment)

    @cfunc
    def _acknowledge(
        self, request: RecvRequest, send_id: U64, offset: int, size: int, flags: int
    ) -> None:
        endpoint = self._endpoint(request)
        if self._trace.active:
            self._ob1.steps.receiver(request, "ACK", offset=offset, size=size, flags=flags)
        self._control.send(endpoint, ack_words(flags, send_id, request.id, offset, size), ACK)


@cfunc
def _give_parts(shares: list[Share], length: int, alignment: int) -> None:
    """Say which share carries how many of `length` bytes."""
    if len(shares) == 1:
        shares[0].left = length
        return
    rails = [share.rail for share in shares]
    share: Share
    for share, part in zip(shares, share_out(rails, length, alignment), strict=True):
        share.left = part
