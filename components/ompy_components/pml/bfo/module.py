"""bfo for one rank: ob1 with parts that know what to do when something fails.

Source: seed bfo; reference openmpi.md 4.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.compiled import DECLARING, ccall, cclass
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_ARG, MPIError
from ompy.data.request import Request
from ompy.frameworks.bml import Bml, BmlEndpoint
from ompy.frameworks.btl import SEND, BtlModule, Endpoint, ErrorCallback, ReceiveCallback
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import MatchedMessage
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.pml.bfo.control import BfoControl
from ompy_components.pml.bfo.dance import FLOWING, SMALL, SenderEvent, dance_name
from ompy_components.pml.bfo.failed_message import Did
from ompy_components.pml.bfo.headers import (
    FINAL_BARRIER,
    NOTIFY,
    RECV_ERR,
    RESTART_ACK,
    RESTART_NACK,
    RESTART_NAMES,
    UNION_SIZE,
    Step,
    fin_again,
    parse_step,
)
from ompy_components.pml.bfo.rail_events import Rails
from ompy_components.pml.bfo.rdma import BfoRdma
from ompy_components.pml.bfo.receiving import BfoReceiving
from ompy_components.pml.bfo.recovery import Recovery
from ompy_components.pml.bfo.sending import BfoSending
from ompy_components.pml.ob1.headers import ACK, FIN, NAMES, PUT
from ompy_components.pml.ob1.matching import Message
from ompy_components.pml.ob1.module import Ob1

if TYPE_CHECKING:
    from ompy_components.pml.ob1.diagnosis.explaining import Explaining

if DECLARING:
    from ompy.engine.base import Engine

    from ompy_components.pml.ob1.control import Control
    from ompy_components.pml.ob1.rendezvous.rdma import Rdma


class Steps(ReceiveCallback):
    """Receives the messages of the dance."""

    def __init__(self, bfo: Bfo) -> None:
        self.bfo = bfo

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """Hand a message to the half that it is for."""
        bfo, step = self.bfo, parse_step(tag, data)
        bfo.trace_step("arrived", step, endpoint.proc)
        if tag == NOTIFY:
            bfo.receiving.notified(step)
        elif tag == RECV_ERR:
            bfo.sending.reported(step)
        elif tag == RESTART_ACK:
            bfo.sending.answered(step, SenderEvent.ACK)
        elif tag == RESTART_NACK:
            bfo.sending.answered(step, SenderEvent.NACK)
        else:
            bfo.barrier_rounds.add((step.source, step.sequence))


@cclass
class Bfo(Ob1):
    """The PML of one rank.

    Attributes:
        context, bml, engine: what it works with.
        recovery: what errors ask for.
        rails: which of them are lost.
        lost: why a peer cannot be reached any more, by rank.
        barrier_rounds: source and number of rounds of the barrier at the end that came.
        counters: what was dropped, by the name of its header.
        parted: all ranks have everything that they wait for: nothing is sent again any more.
    """

    _freed: dict[int, Communicator]
    bml: Bml
    context: RankContext
    counters: dict[str, int]
    engine: Engine
    barrier_rounds: set[tuple[int, int]]
    lost: dict[int, str]
    parted: bool
    rails: Rails
    recovery: Recovery
    __slots__ = tuple(__annotations__)

    if TYPE_CHECKING:
        sending: BfoSending
        receiving: BfoReceiving
        rdma: BfoRdma
        control: BfoControl

    def __init__(self, context: RankContext, bml: Bml, values: Values) -> None:
        self.context = context
        self.bml = bml
        self.engine = context.engine
        self.recovery = Recovery(context.engine)
        self.rails = Rails(self)
        self.lost = {}
        self.barrier_rounds = set()
        self.counters = {}
        self.parted = False
        self._freed = {}
        for module in context.btls:
            module.begin_failover()
        context.fails_over = True
        super().__init__(context, bml, values)
        steps = Steps(self)
        for tag in RESTART_NAMES:
            context.active_messages.register(tag, steps)

    def add_btl(self, module: BtlModule) -> None:
        """As ob1, and it keeps the failover obligations."""
        module.begin_failover()
        Ob1.add_btl(self, module)

    # -- ob1's parts

    @ccall
    def _make_control(self) -> Control:
        return BfoControl(self)

    @ccall
    def _make_rdma(self, values: Values) -> Rdma:
        return BfoRdma(self, values)

    @ccall
    def _make_sending(self, values: Values) -> BfoSending:
        return BfoSending(self, values)

    @ccall
    def _make_receiving(self, values: Values) -> BfoReceiving:
        return BfoReceiving(self, values)

    @ccall
    def _make_errors(self) -> ErrorCallback:
        return self.rails

    def _make_explaining(self, endpoint: BmlEndpoint) -> Explaining:
        from ompy_components.pml.bfo.explaining import BfoExplaining

        return BfoExplaining(self, endpoint)

    @ccall
    def check_limits(self, module: BtlModule) -> None:
        """As ob1; some headers are longer here."""
        Ob1.check_limits(self, module)
        least = min(module.eager_limit, module.max_send_size)
        needed = UNION_SIZE + module.registration_handle_size
        if module.flags & SEND and least <= needed:
            raise MPIError(
                ERR_ARG,
                f"btl_{module.name}_eager_limit and btl_{module.name}_max_send_size must exceed "
                f"{needed} bytes, the largest header of pml bfo; the lower is {least}",
            )

    # -- messages of the dance

    def step(self, endpoint: BmlEndpoint, step: Step) -> None:
        """Send a message of the dance over any rail, as soon as there is room."""
        self.trace_step("sent", step, endpoint.proc)
        self.control.send(endpoint, step.pack(), step.tag)

    def control_lost(self, proc: Proc, tag: int, message: bytes) -> None:
        """A control message may not have arrived, or was refused."""
        if proc.rank in self.lost or self.parted:
            return
        if tag == FIN:
            self.rails.note_message(proc)
            self.control.send(self.endpoint(proc), fin_again(message), FIN)
        elif tag in (ACK, PUT):
            self.receiving.control_lost(proc, tag, message)
        elif tag == NOTIFY:
            self.sending.notify_lost(parse_step(tag, memoryview(message)))
        elif tag == RECV_ERR:
            self.receiving.report_lost(parse_step(tag, memoryview(message)))
        else:  # an answer, which says itself what it is about
            self.control.send(self.endpoint(proc), message, tag)

    def dropped(self, tag: int, number: int) -> None:
        """Something is about a generation that is over: it changes nothing."""
        name = {**NAMES, **RESTART_NAMES}[tag]
        self.counters[name] = self.counters.get(name, 0) + 1
        if self.trace.active:
            self.trace.record("pml.bfo", "DROPPED", header=name, number=number)

    def trace_step(self, what: str, step: Step, proc: Proc) -> None:
        """Note a message of the dance that was sent to `proc`, or has arrived from it."""
        if self.trace.active:
            about: dict[str, object] = {}
            communicator = self.communicator(step.context_id)
            if step.tag != FINAL_BARRIER and communicator is not None:  # that is about no message
                sender = (step.tag == NOTIFY) == (what == "sent")
                here, there = communicator.rank, communicator.procs.index(proc)
                about["side"] = "send" if sender else "receive"
                about["source"] = here if sender else there  # of the message, not of the step
            self.trace.record(
                "pml.bfo",
                RESTART_NAMES[step.tag],
                what=what,
                **about,
                peer=proc.rank,
                context=step.context_id,
                sequence=step.sequence,
                restart=step.generation,
                send=step.send_id,
                receive=step.receive_id,
            )

    def trace_rail(self, what: str, module: BtlModule, proc: Proc) -> None:
        """Note that a rail to `proc` broke, or was healed."""
        if self.trace.active:
            rail = self.steps.rail_name(module)
            self.trace.record("pml.bfo", "RAIL", what=what, rail=rail, peer=proc.rank)

    def trace_dance(self, side: str, request: Request, did: Did) -> None:
        """Note a step of a machine, unless it does not leave ob1's states."""
        before, now = dance_name(did.before), dance_name(did.now)
        if self.trace.active and not (before == now == FLOWING and did.action in SMALL):
            about = {"side": side, "tag": request.tag, "before": before, "event": did.event.value}
            self.trace.record("pml.bfo", "DANCE", **about, now=now)

    # -- communicators and probes

    def communicator(self, context_id: int) -> Communicator | None:
        """A communicator that this rank has, or had."""
        matching = self.receiving.matchings.get(context_id)
        return matching.communicator if matching is not None else self._freed.get(context_id)

    def was_freed(self, context_id: int) -> bool:
        """Whether a communicator's messages have all been received."""
        return context_id in self._freed

    @ccall
    def add_communicator(self, communicator: Communicator) -> None:
        """Begin matching."""
        self._freed.pop(communicator.context_id, None)
        Ob1.add_communicator(self, communicator)

    @ccall
    def remove_communicator(self, communicator: Communicator) -> None:
        """End matching; who sends something again is told that it was received."""
        Ob1.remove_communicator(self, communicator)
        self._freed[communicator.context_id] = communicator

    @ccall
    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Take a message that is here."""
        return self._noted(Ob1.improbe(self, communicator, source, tag))

    @ccall
    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Take the first message that fits."""
        message = Ob1.mprobe(self, communicator, source, tag)
        self._noted(message)
        return message

    def _noted(self, message: MatchedMessage | None) -> MatchedMessage | None:
        if isinstance(message, Message):
            self.receiving.probed[message.fragment] = message
        return message

    @ccall
    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Receive a message that was taken."""
        assert isinstance(message, Message), "the message came from another PML"
        self.receiving.probed.pop(message.fragment, None)
        return Ob1.imrecv(self, message, convertor)

    # -- peers that are lost

    def rail_gone(self, proc: Proc, module: BtlModule) -> None:
        """A rail was taken out: what was to go over it goes over others."""
        self.sending.rail_gone(proc, module)
        self.receiving.rail_gone(proc, module)

    def rail_back(self, proc: Proc) -> None:
        """A rail was healed: large messages that are under way use it."""
        self.sending.rail_back(proc)
        self.receiving.rail_back(proc)

    @ccall
    def fail_peer(self, proc: Proc | None, reason: str) -> None:
        """No rail leads to `proc` any more: what waits for it fails, and what will wait."""
        for gone in [proc] if proc is not None else self.context.procs:
            self.lost[gone.rank] = reason
            self.recovery.later(partial(self._no_rails, gone))
        Ob1.fail_peer(self, proc, reason)

    def _no_rails(self, proc: Proc) -> None:
        """What was begun to a lost peer meanwhile fails, too, and dances no more."""
        self.forget_rails(proc)
        self.sending.fail_peer(proc, self.lost[proc.rank])

    # -- the end

    @ccall
    def finalize(self) -> None:
        """Part from the others when all have come: until then somebody may need an answer.

        So who waits for this rank has to hear that it leaves, also of one that may fail.
        """
        self.say_leave()
        world = self.context.world
        place, size = world.index(self.context.me), len(world)
        self.leaving.deliver()
        self.engine.wait_until(self._is_quiet)
        distance, number = 1, 0
        while distance < size and not self.lost:
            self._enter_final_barrier(world[(place + distance) % size].rank, number)
            source = world[(place - distance) % size].rank
            self.engine.wait_until(partial(self._may_part, source, number))
            distance, number = 2 * distance, number + 1
        self.parted = True
        self.sending.part()
        self.send_pending()
        self.gone.end()

    def _enter_final_barrier(self, target: int, number: int) -> None:
        proc = self.context.procs[target]
        try:
            endpoint = self.endpoint(proc)
        except MPIError:
            return  # it has gone
        with self.engine.lock:
            self.step(endpoint, Step(FINAL_BARRIER, 0, self.context.rank, number, 0))

    def _may_part(self, source: int, number: int) -> bool:
        gone = bool(self.context.procs[source].departed)
        return (source, number) in self.barrier_rounds or gone or bool(self.lost)

    def _is_quiet(self) -> bool:
        return not len(self.recovery)
