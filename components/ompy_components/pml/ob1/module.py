"""ob1 for one rank: the PML's calls, and the dispatch of what arrives.

The sender's protocols are in `sending`, the receiver's in `receiving`, matching in `matching`.
Every call takes the rank's lock; what arrives comes with it held. The calls that every message
makes take it by name: compiled, `with` costs several times as much.
A PML that builds on this one (bfo) finds its seams in the README.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_ARG, ERR_INTERN, ERR_PROC_FAILED, MPIError
from ompy.data.request import Request, Waitable
from ompy.frameworks.bml import Bml, BmlEndpoint
from ompy.frameworks.btl import (
    ERROR_FATAL,
    SEND,
    BtlModule,
    ErrorCallback,
)
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import STANDARD, MatchedMessage, Pml
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.pml.ob1.arrivals import Arrivals
from ompy_components.pml.ob1.control import Control
from ompy_components.pml.ob1.departures.gone import Gone
from ompy_components.pml.ob1.departures.leaving import Leaving
from ompy_components.pml.ob1.departures.revoking import revoke_communicator
from ompy_components.pml.ob1.diagnosis.steptrace import StepTrace
from ompy_components.pml.ob1.flow import Flow
from ompy_components.pml.ob1.fragment import Fragment, description_of
from ompy_components.pml.ob1.headers import (
    ACK,
    CREDIT,
    FIN,
    FRAG,
    LEAVE,
    MATCH,
    NAMES,
    PUT,
    RGET,
    RNDV,
    UNION_SIZE,
)
from ompy_components.pml.ob1.look import Look
from ompy_components.pml.ob1.matching import (
    Matching,
    Message,
    RecvRequest,
    receive_request,
    taken_message,
)
from ompy_components.pml.ob1.pending import PendingQueue
from ompy_components.pml.ob1.receiving import Receiving
from ompy_components.pml.ob1.rendezvous.rdma import Rdma
from ompy_components.pml.ob1.sending import Sending

if TYPE_CHECKING:
    from ompy.frameworks.explanation import Explanation
    from ompy.frameworks.needs import Need, Traffic

    from ompy_components.pml.ob1.diagnosis.explaining import Explaining

if DECLARING:
    from ompy.engine.base import Engine
    from ompy.engine.lock import RankLock
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.matching import PeerQueue

# arbitrary: some 20 us, as long as a peer takes that is busy with its part of an exchange
ROUNDS_AWAKE: Final = 200
HANDLERS = (MATCH, RNDV, RGET, ACK, FRAG, PUT, FIN, CREDIT)


@cclass
class PathErrors(ErrorCallback):
    """A path failed. ob1 has no other one to try: what waits for the peer fails."""

    _ob1: Ob1
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1) -> None:
        self._ob1 = ob1

    @ccall
    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        """Fail the requests of a peer, or of all of them."""
        if flags & ERROR_FATAL:
            self._ob1.fail_peer(proc, f"BTL {module.name} lost its path: {reason}")


@cclass
class Ob1(Pml):
    """The PML of one rank.

    Attributes:
        control: sends ACK, PUT, FIN and CREDIT.
        flow: how far ahead senders may be.
        gave_up: a message was given up. Its peer may not know, and go on with it over another rail.
        gone: fails what waits in vain for ranks that have left.
        leaving: says that this rank leaves, and hears it of others.
        pending: what waits for BTL resources.
        rdma: what put and get have in common.
        receiving: the receiver's half.
        sending: the sender's half.
        steps: records the seed's lettered steps.
        trace: where events go.
    """

    _bml: Bml
    _context: RankContext
    _engine: Engine
    _errors: ErrorCallback
    _lock: RankLock
    control: Control
    flow: Flow
    gave_up: bool
    gone: Gone
    leaving: Leaving
    pending: PendingQueue
    rdma: Rdma
    receiving: Receiving
    sending: Sending
    steps: StepTrace
    trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(self, context: RankContext, bml: Bml, values: Values) -> None:
        self._context = context
        self._bml = bml
        self._engine = context.engine
        self._lock = context.engine.lock
        self.pending = PendingQueue(context.engine, context.trace)
        self.gave_up = False
        self.trace = context.trace
        self.steps = StepTrace(context)
        self.control = self._make_control()
        self.rdma = self._make_rdma(values)
        self.flow = Flow(self, values)
        self.sending = self._make_sending(values)
        self.receiving = self._make_receiving(values)
        arrivals = Arrivals(self)
        for tag in HANDLERS:
            context.active_messages.register(tag, arrivals)
        self.gone = Gone(self, context, values.leave_patience_ms)
        self.leaving = Leaving(self, context, self.gone.said)
        context.active_messages.register(LEAVE, self.leaving)
        context.departures.add_listener(self.gone.left)
        self._errors = self._make_errors()
        for module in context.btls:
            Ob1.add_btl(self, module)

    def add_btl(self, module: BtlModule) -> None:
        """See that headers fit, and hear of paths that break."""
        self.check_limits(module)
        module.register_error(self._errors)

    @ccall
    def _make_control(self) -> Control:
        return Control(self)

    @ccall
    def _make_rdma(self, values: Values) -> Rdma:
        return Rdma(self, values)

    @ccall
    def _make_errors(self) -> ErrorCallback:
        return PathErrors(self)

    @ccall
    def _make_sending(self, values: Values) -> Sending:
        return Sending(self, values)

    @ccall
    def _make_receiving(self, values: Values) -> Receiving:
        return Receiving(self, values)

    @ccall
    def check_limits(self, module: BtlModule) -> None:
        """Every header must fit where fragments are short (reference openmpi.md 3.10.1)."""
        least = min(module.eager_limit, module.max_send_size)
        needed = UNION_SIZE + module.registration_handle_size
        if module.flags & SEND and least <= needed:
            limits = f"btl_{module.name}_eager_limit and btl_{module.name}_max_send_size"
            why = f"{needed} bytes, the largest header of pml ob1; the lower is {least}"
            raise MPIError(ERR_ARG, f"{limits} must exceed {why}")

    @ccall
    def endpoint(self, proc: Proc) -> BmlEndpoint:
        """The rails to a peer."""
        made = proc.bml_endpoint
        return made if isinstance(made, BmlEndpoint) else self._bml.endpoint(proc)

    @ccall
    def matching(self, communicator: Communicator) -> Matching:
        """A communicator's matching state."""
        state = communicator.pml_state
        assert isinstance(state, Matching), f"{communicator.name} was never added"
        return state

    def counted(self) -> dict[str, int]:
        """What it has counted, by name."""
        from ompy_components.pml.ob1.diagnosis.counting import counted

        return counted(self)

    def messages_to(self) -> dict[int, int]:
        """What each process was sent, by the numbers of the flow."""
        return {flow.proc.rank: flow.sent for flow in list(self.flow.peers.values())}

    @ccall
    def matchings(self) -> list[Matching]:
        """The matching state of every communicator."""
        return list(self.receiving.matchings.values())

    @ccall
    def unknown(self, tag: int, number: U64, what: str) -> None:
        """Something came for a message that is not waiting for it.

        Args:
            tag: of the header.
            number: id in the header.
            what: it is the id of.

        Raises:
            MPIError: ERR_INTERN, unless a message was given up before: rails lose nothing.
        """
        if not self.gave_up:
            detail = f"ob1: {NAMES[tag]} for {what} {number}, which is not waiting for it"
            raise MPIError(ERR_INTERN, detail)
        if self.trace.active:
            self.note("DROPPED", header=NAMES[tag], number=number)

    @ccall
    def fail_peer(self, proc: Proc | None, reason: str) -> None:
        """Fail what waits for `proc`, or for all others when that is None, and what will wait.

        The user is told.
        """
        self.gave_up = True
        for gone in [proc] if proc is not None else self._context.procs:
            if gone is not self._context.me:
                self.sending.fail_peer(gone, reason)
                self.flow.fail_peer(gone, reason)
                self.receiving.fail_peer(gone, reason)
                self.gone.lost(gone, reason)
        self._context.path_lost(proc, reason)

    @ccall
    def forget_rails(self, proc: Proc) -> None:
        """Send nothing more to a peer: it would come over one rail without what another lost.

        Not from within a step that may be walking through its rails.
        """
        made = proc.bml_endpoint
        if isinstance(made, BmlEndpoint):
            for rail in [*made.send.rails, *made.rdma.rails]:
                self._bml.remove_rail(proc, rail.module)

    @ccall
    def look_at_tags(self, below: int) -> None:
        """From now on what begins with such a tag has to be looked at."""
        self.sending.watched_below = self.receiving.watched_below = below

    def note(self, name: str, **fields: object) -> None:
        """Record a trace event; call only while the trace is active."""
        self.trace.record("pml.ob1", name, **fields)

    @ccall
    def add_communicator(self, communicator: Communicator) -> None:
        """Begin matching; fragments that came early are matched now."""
        with self._lock:
            if self.leaving.freed or self.gone.abandoned.freed:
                self.leaving.forget(communicator)
                self.gone.abandoned.expect(communicator.context_id)
            communicator.pml_state = matching = Matching(communicator, self.flow)
            self.receiving.matchings[communicator.context_id] = matching
            self.receiving.adopt(matching)

    @ccall
    def remove_communicator(self, communicator: Communicator) -> None:
        """End matching."""
        with self._lock:
            if self.matching(communicator).has_peers():
                self.leaving.keep(self.matching(communicator))
            self.receiving.forget(communicator.context_id)
            if self.gone.abandoned.ranks:
                self.gone.abandoned.forget(communicator.context_id)
            communicator.pml_state = None

    @ccall
    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Begin to send."""
        lock = self._lock
        lock.acquire()
        try:
            return self.sending.begin(communicator, convertor, target, tag, mode)
        finally:
            lock.release()

    @ccall
    def send(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> None:
        """Send and wait; a receiver that is told so may let this rank do half of the copying."""
        has_core = self._engine.has_core
        lock = self._lock
        lock.acquire()
        try:
            request: Request = self.sending.begin(
                communicator, convertor, target, tag, mode, has_core
            )
        finally:
            lock.release()
        self.wait(communicator, request)

    @ccall
    def isend_waited(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int
    ) -> Request:
        """Begin to send; as for `send`, the receiver may let this rank do half of the copying."""
        has_core = self._engine.has_core
        lock = self._lock
        lock.acquire()
        try:
            return self.sending.begin(communicator, convertor, target, tag, STANDARD, has_core)
        finally:
            lock.release()

    @ccall
    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Begin to receive."""
        request: RecvRequest = receive_request(communicator, convertor, source, tag)
        lock = self._lock
        lock.acquire()
        try:
            self.receiving.post(request)
        finally:
            lock.release()
        return request

    @ccall
    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """Look; if nothing fits, poll once and look again (reference openmpi.md 3.2.7)."""
        fragment = self._polled(communicator, source, tag, False)
        return None if fragment is None else description_of(fragment)

    @ccall
    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """Look until something fits."""
        return description_of(self._awaited(communicator, source, tag, False))

    @ccall
    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Take a message that is here; if none fits, poll once and look again."""
        fragment = self._polled(communicator, source, tag, True)
        return None if fragment is None else taken_message(communicator, fragment)

    @ccall
    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Take the first message that fits."""
        return taken_message(communicator, self._awaited(communicator, source, tag, True))

    @ccall
    def has(self, communicator: Communicator, source: int, tag: int) -> bool:
        """Whether a probe has found something, or never will."""
        if self.matching(communicator).peek(source, tag) is not None:
            return True
        return self.gone.in_vain(communicator, source)

    @cfunc
    def _find(
        self, communicator: Communicator, source: int, tag: int, take: bool
    ) -> Fragment | None:
        """The message that a probe gets: it stays, or is taken out."""
        matching = communicator.pml_state
        assert isinstance(matching, Matching), f"{communicator.name} was never added"
        self._lock.acquire()
        try:
            return matching.take(source, tag) if take else matching.peek(source, tag)
        finally:
            self._lock.release()

    @cfunc
    def _polled(
        self, communicator: Communicator, source: int, tag: int, take: bool
    ) -> Fragment | None:
        """What a probe gets now, or after polling once."""
        fragment: Fragment | None = self._find(communicator, source, tag, take)
        if fragment is None:
            self._engine.progress()
            fragment = self._find(communicator, source, tag, take)
            if fragment is None:
                self._engine.glance()
                if self.gone.anybody and self._context.recovery is not None:
                    self.gone.looked(communicator, source, tag)
        return fragment

    @cfunc
    def _awaited(self, communicator: Communicator, source: int, tag: int, take: bool) -> Fragment:
        """What a probe gets that waits for it."""
        fragment: Fragment | None = self._find(communicator, source, tag, take)
        engine = self._engine
        rounds: int = 0
        # as long as a message takes that is on its way, where nobody needs the core
        while fragment is None and engine.has_core and rounds < ROUNDS_AWAKE:
            rounds += 1
            if engine.progress():
                fragment = self._find(communicator, source, tag, take)
        while fragment is None:
            engine.wait_until(Look(self, communicator, source, tag))
            # another thread of this rank may have received it meanwhile
            fragment = self._find(communicator, source, tag, take)
            if fragment is None:
                self.gone.refuse(communicator, source, tag)
        return fragment

    @ccall
    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Receive a message that was taken."""
        assert isinstance(message, Message), "the message came from another PML"
        taken: Message = message
        fragment: Fragment = taken.fragment
        request: RecvRequest = receive_request(
            taken.communicator, convertor, taken.source, taken.tag
        )
        lock = self._lock
        lock.acquire()
        try:
            queue: PeerQueue = self.matching(taken.communicator).peer(fragment.source)
            self.flow.give_back(queue.flow, fragment)
            self.receiving.deliver(request, fragment)
        finally:
            lock.release()
        return request

    def abandon(self, communicator: Communicator, tag: int, code: int = ERR_PROC_FAILED) -> None:
        """Tell the members not to wait for this rank."""
        self.gone.abandoned.say(communicator, tag, code)

    def revoke(self, communicator: Communicator, spared: int) -> None:
        """Fail what is under way in a communicator."""
        revoke_communicator(self, communicator, spared)

    def resume_receives(self, communicator: Communicator) -> None:
        """Have receives from anybody wait again that a death had interrupted."""
        self.gone.in_doubt.resume(communicator)

    def unreceived(self, communicator: Communicator) -> list[tuple[int, int]]:
        """Sources and tags of the messages that are here and nobody has asked for."""
        with self._lock:
            return [(one.source, one.tag) for one in self.matching(communicator).unmatched()]

    def pending_receives(self, communicator: Communicator) -> list[Request]:
        """The program's, that are not complete."""
        return self.receiving.pending(communicator)

    def need(self, waitable: Waitable) -> Need | None:
        """What a send, a receive or a probe needs of others."""
        from ompy_components.pml.ob1.diagnosis.needs import need_of

        return need_of(self, waitable)

    def traffic(self, communicator: Communicator) -> Traffic | None:
        """The messages of a communicator, by the numbers that they have."""
        from ompy_components.pml.ob1.diagnosis.needs import traffic_of

        return traffic_of(self, communicator)

    @ccall
    def cancel(self, request: Request) -> None:
        """Cancel a receive that is not matched; sends go on (reference openmpi.md 3.2.9)."""
        if isinstance(request, RecvRequest):
            with self._lock:
                self.receiving.cancel(request)

    @ccall
    def wait(self, communicator: Communicator, request: Request) -> Request:
        """Wait for a request; raises MPIError when it failed."""
        if not request.complete:
            self._engine.wait_only(request)
        if request.error:
            raise self.gone.in_doubt.error_of(request)
        return request

    def explain(
        self, communicator: Communicator, target: int, size: int, mode: int, contiguous: bool
    ) -> Explanation:
        """Ask the rule about a message, and about others a little different."""
        from ompy_components.pml.ob1.diagnosis.explaining import Asked

        with self._lock:
            endpoint = self.endpoint(communicator.procs[target])
            return self._make_explaining(endpoint).explain(Asked(mode, size, contiguous))

    def _make_explaining(self, endpoint: BmlEndpoint) -> Explaining:
        from ompy_components.pml.ob1.diagnosis.explaining import Explaining

        return Explaining(self, endpoint)

    def waiting(self) -> list[str]:
        """Sends and receives that are not complete."""
        from ompy_components.pml.ob1.diagnosis.wait_reasons import waiting

        return waiting(self)

    @ccall
    def finalize(self) -> None:
        """Say that this rank leaves, and deliver what it has sent and did not wait for."""
        if self._context.leaves:
            self.say_leave()
        self.leaving.deliver()
        self.gone.end()

    @ccall
    def send_pending(self) -> None:
        """Send what found no room."""
        if len(self.pending):
            self._engine.wait_until(self.pending.is_empty)

    def who_may_send(self, communicator: Communicator) -> list[int]:
        """As those say that have left."""
        return self.gone.who_may_send(communicator)

    @ccall
    def say_leave(self) -> None:
        """Say LEAVE to those that this rank has talked to, and have the others told; once."""
        self.leaving.say()
