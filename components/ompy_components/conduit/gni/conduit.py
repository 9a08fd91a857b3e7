"""The conduit of one rank: the contract's calls."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED, ERR_RANK, MPIError
from ompy.data.request import Waitable
from ompy.engine.timers import Timer
from ompy.frameworks.btl_base.atomics import WIDTH, AtomicOp, AtomicType
from ompy.frameworks.conduit import (
    Category,
    Conduit,
    Handler,
    SegmentInfo,
    ThreadMode,
    Token,
    Transfer,
)
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.gni import Endpoint, GniNic, MemoryHandle, ReturnCode
from ompy.mca.parameter import Values

from ompy_components.conduit.gni import headers, segment
from ompy_components.conduit.gni.attaching import join_all, neighbourhood
from ompy_components.conduit.gni.bootstrap import Bootstrap
from ompy_components.conduit.gni.dispatch import NO_BYTES, Messages
from ompy_components.conduit.gni.exit import UNANSWERED, Exit, exit_timeout
from ompy_components.conduit.gni.headers import Command
from ompy_components.conduit.gni.locking import nic_lock
from ompy_components.conduit.gni.losses import Losses
from ompy_components.conduit.gni.rdma.atomics import computed_by
from ompy_components.conduit.gni.rdma.engine import RdmaEngine
from ompy_components.conduit.gni.resources import Resources
from ompy_components.conduit.gni.shared_segments import SharedSegments
from ompy_components.conduit.gni.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy.frameworks.explanation import Explanation, OperationAsked

    from ompy_components.conduit.gni.recording import Recording

MAX_LONG: Final = 1 << 20  # reference gasnet.md 1: AMMaxLong of 1.20
SEGMENT: Final = Struct("<QQQQ")  # address, size, handle
LOOKS: Final = 4  # arbitrary: looks between two pauses
PAUSE: Final = 2_000  # ns; arbitrary: about what a message to a neighbour takes
PATIENT: Final = 1024  # arbitrary: rounds of waiting until the rank hears its agent
assert PATIENT % LOOKS == 0
DOUBLINGS: Final = 7  # of a pause, one each time that it has been patient; arbitrary: to 256 us
APART: Final = 20_000  # ns between two waits for one thing; arbitrary: longer than a look takes
# arbitrary: longer than engine_park_ms, as a rank hears its agent while it sleeps
NAP: Final = 2_000_000  # ns
LOOK_AGAIN: Final = 20_000  # ns; arbitrary: a peer's turn
CREDIT_WAIT: Final = 10_000_000  # ns; arbitrary: how soon a rank notices that a peer has ended
DESTROY_TRIES: Final = 10  # reference gasnet.md 8
DESTROY_PAUSE: Final = 20_000  # ns, doubled with each try; arbitrary: 20 ms in all

_SHORT: Final = {True: Command.SHORT_REQUEST, False: Command.SHORT_REPLY}
_MEDIUM: Final = {True: Command.MEDIUM_REQUEST, False: Command.MEDIUM_REPLY}
_LONG: Final = {True: Command.LONG_REQUEST, False: Command.LONG_REPLY}


class GniConduit(Conduit):
    """Active messages, and reading and writing of segments, over a Gemini or Aries NIC."""

    max_long_request = MAX_LONG
    max_long_reply = MAX_LONG

    def __init__(
        self, name: str, context: RankContext, mode: ThreadMode, nic: GniNic, values: Values
    ) -> None:
        """Join the job's other ranks; all of them do.

        Raises:
            MPIError: something cannot be had, or a rank has ended.
            NotAvailable: the NIC does not reach a rank.
        """
        super().__init__(name, context, mode)
        self._never = Waitable()
        self._waits = 0
        self._row = 0  # of waits, one after the other
        self._waited = 0  # when the last of them ended
        self._quiet = 0
        self._left = False
        self._timer: Timer | None = None
        # all ranks of the job know these, and nobody else has their NICs' memory
        tag, cookie = context.job_id[0], int.from_bytes(context.job_id[1:5], "little")
        domain = nic.domain(context.rank, tag, cookie)
        lock = nic_lock(context.engine, mode, spin=bool(values.use_spinlock))
        self._losses = Losses(context, domain.losses)
        layer = f"conduit.{name}"
        self.resources = Resources(context, nic, domain, values, lock, self._yield, layer)
        self._trace, self._tracing = context.trace, self.resources.tracing
        self._bootstrap = Bootstrap(context, name)
        joined = join_all(self.resources, self._bootstrap, mode, past_neighbours=bool(values.pshm))
        self._limits = joined.limits
        self._hosts = joined.hosts
        self._transports: list[Transport] = [joined.transport]
        self._by_nic = any(self.resources.endpoints)
        if not self._by_nic:  # all are neighbours: polling need not ask the device
            domain.expect_nothing()
        by_node: list[Transport | None] = [joined.transport] * context.size
        by_node[context.rank] = None
        self._exit = Exit(context, exit_timeout(values, context.size), self._tell_exit)
        depths = [values.networkdepth] * context.size
        self._shared: SharedSegments | None = None
        between = neighbourhood(self.resources, name)
        if between is not None:
            self._transports.append(between)
            for node in between.nodes:
                by_node[node], depths[node] = between, values.pshm_network_depth
        self._polled = self._transports if self._by_nic else self._transports[1:]
        self._messages = Messages(self.resources, depths, by_node, self._exit.code_arrived)
        self._rdma: RdmaEngine | None = None
        self._memory: segment.Memory | None = None
        self.max_medium = joined.transport.max_message - headers.HEAD_MAX
        self._recording = self._record(values, layer)
        context.engine.add_poller(self)

    def _record(self, values: Values, layer: str) -> Recording | None:
        """The text files that the parameters name."""
        if not values.tracefile and not values.statsfile:
            return None
        from ompy_components.conduit.gni.recording import Recording

        context = self.context
        where = (context.me.hostname, context.size)
        return Recording(context.trace, self.name, values, layer, *where)

    # -- life

    def max_segment(self) -> tuple[int, int]:
        """Bytes of the largest segment this rank, and every rank, could have."""
        return self._limits

    def neighbours(self) -> Sequence[int]:
        """Ranks of this host."""
        return next(ranks for ranks in self._hosts if self.context.rank in ranks)

    def attach(self, handlers: Sequence[Handler | None], size: int) -> None:
        """Make the segment, and tell all where it is."""
        resources = self.resources
        auxiliary = RdmaEngine.auxiliary_size(resources.parameters)
        made = segment.allocate_segment(
            self.context.network, resources.domain, resources.ordering, size, auxiliary
        )
        self._memory = made
        mine = SEGMENT.pack(made.address, size, made.handle.qword1, made.handle.qword2)
        records = [SEGMENT.unpack(record) for record in self._bootstrap.allgather(mine)]
        resources.segment_handle = resources.auxiliary_handle = made.handle
        resources.segment, resources.auxiliary = made.segment, made.auxiliary
        resources.handles = [MemoryHandle(*record[2:]) for record in records]
        resources.segments = [SegmentInfo(*record[:2]) for record in records]
        self.segment, self.segments = made.segment, resources.segments
        self._messages.handlers = list(handlers)
        self._rdma = RdmaEngine(resources)
        self.max_put_local = self._rdma.max_put_local
        self.mapped = [None] * self.context.size
        self.mapped[self.context.rank] = made.segment
        if resources.parameters.pshm:
            self._shared = SharedSegments(self.context)
            offer = self._shared.offer(made.segment, made.auxiliary)
            self._shared.map(self._bootstrap.allgather(offer), self.mapped)
        self._bootstrap.barrier()

    def exit_timeout(self) -> int:
        """How long ranks that leave wait for the others, in nanoseconds."""
        return exit_timeout(self.resources.parameters, self.context.size)

    def exit(self, code: int) -> int:
        """End the job: all learn the largest code, or the launcher ends them."""
        if self._left:
            return self._exit.reduction.code
        self._messages.handlers_stopped = True
        known = self._exit.run_exit(code, self._exit_progress, self._pause, self.exit_limit)
        agreed = self._exit.reduction.code
        if not known:
            missing = ", ".join(map(str, sorted(self._exit.reduction.awaited())))
            text = (
                f"it has ended GASNet with code {agreed}; ranks that neither end nor poll within "
                f"the exit's timeout are ended. Nothing has come from: {missing}"
            )
            self.context.wireup.abort(agreed or UNANSWERED, text)
        self._close()
        return agreed

    def _tell_exit(self, node: int, shift: int, code: int) -> None:
        self._messages.tell_exit(node, shift, code)

    def _exit_progress(self) -> int:
        if self._rdma is not None and self._by_nic:
            with suppress(MPIError):  # a post that fails now is nobody's concern
                self._rdma.poll_local()
        for transport in self._polled:
            transport.poll()
        self._messages.flush()
        return self._messages.lines

    def _close(self) -> None:
        self._left = self._messages.closed = True
        if self._recording is not None:
            self._recording.finish(self.counters())
        resources = self.resources
        self.context.engine.remove_poller(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._rdma is not None:
            self._rdma.close()
        self.mapped[:] = [None] * len(self.mapped)
        if self._shared is not None:
            self._shared.close()
        for transport in self._transports:
            transport.close()
        for node, endpoint in enumerate(resources.endpoints):
            if endpoint is not None:
                self._destroy(node, endpoint)
        with resources.lock:
            resources.domain.destroy()
            resources.nic.close()
        if self._memory is not None:
            self.context.network.release_region(self._memory.address)

    def _destroy(self, node: int, endpoint: Endpoint) -> None:
        """Give an endpoint back, once what was sent has left, but do not wait for ever.

        What goes to another host may have to be sent again, and is lost with the connection; a
        neighbour may have no room for it before it polls.
        """
        end = self.context.engine.now() + self.exit_timeout()
        tried = 0
        while tried < DESTROY_TRIES or self.context.engine.now() < end:
            with self.resources.lock:
                if endpoint.destroy() is not ReturnCode.ERROR_RESOURCE:
                    return
            self._pause(DESTROY_PAUSE << min(tried, DESTROY_TRIES))
            tried += 1

    # -- polling

    def poll(self) -> int:
        """Send what waits, take what has come."""
        if self._quiet or self._left:
            return 0
        count = 0
        if self._rdma is not None and self._by_nic:
            count += self._rdma.poll_local()  # first: what is in line may wait for a descriptor
        count += self._messages.flush()
        for transport in self._polled:
            count += transport.poll()
        if self._exit.asked and not self._exit.reduction.begun:
            self.on_exit(self.exit(0))
        self._losses.collect_losses()
        return count

    def arm(self) -> bool:
        """Whether the rank may sleep: the NIC wakes it."""
        if self._quiet or self._left:
            return True
        if self._losses.pressing or any(transport.ready() for transport in self._polled):
            return False
        if self._by_nic and self._rdma is not None and self.resources.local_queue.ready():
            return False
        if self._timer is None and self._expects():
            self._timer = self.context.engine.call_later(LOOK_AGAIN, self._look)
        return True

    def _expects(self) -> bool:
        """Whether the rank has to look again soon, though nothing will wake it."""
        return bool(self._messages.lines) or any(each.expects() for each in self._polled)

    def _look(self) -> None:
        """It was woken to look again; the polling that comes with it does."""
        self._timer = None

    def _yield(self) -> None:
        """Let time go by: other pollers of the rank come to their turn."""
        engine = self.context.engine
        self._row = self._row + 1 if engine.now() - self._waited <= APART else 0
        self._waits += 1
        if self._waits % LOOKS == 0:
            patience = min(self._row // PATIENT, DOUBLINGS)
            self._pause(PAUSE << patience if self._waits % PATIENT else NAP)
            self._waited = engine.now()
            return
        self._quiet += 1
        try:
            if not engine.beside_polling(engine.progress) and not self.context.network.virtual:
                raw.give_way()
        finally:
            self._quiet -= 1
        self._waited = engine.now()

    def _pause(self, duration: int) -> None:
        """Let so many nanoseconds go by.

        A handler's reply may wait here, out of a poll: for bytes that a connection, or a fault with
        its timer, has still to hand on.
        """
        engine = self.context.engine
        self._quiet += 1
        try:
            engine.beside_polling(partial(engine.wait, self._never, duration))
        finally:
            self._quiet -= 1

    # -- active messages

    def request(
        self,
        category: Category,
        node: int,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        """Send a request; polls once, and goes on polling while there is no credit."""
        self.poll()
        self._check(node)
        self._take_credit(node)
        if self._rdma is not None and self.resources.endpoints[node] is not None:
            self._rdma.wait_for_descriptor()
        self.resources.counters["requests"] += 1
        self._send(category, node, handler, arguments, payload, offset, is_request=True)

    def reply(
        self,
        category: Category,
        token: Token,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
    ) -> None:
        """Send the reply to a request."""
        token.replied = True
        self.resources.counters["replies"] += 1
        node = token.source
        self._send(category, node, handler, arguments, payload, offset, is_request=False)

    def _take_credit(self, node: int) -> None:
        credits_, engine = self._messages.credits, self.context.engine
        stalled = False
        while True:
            with self.resources.lock:
                if credits_.take_credit(node):
                    break
            if not stalled:
                stalled = True
                self.resources.counters["am_credit_stalls"] += 1
                if self._trace.active:
                    self._tracing.credit("stall", node, 0, 0)
            engine.wait(self._messages.news_of_credit(node), CREDIT_WAIT)
            self._check(node)
        if self._trace.active:
            self._tracing.credit("taken", node, 1, credits_.left(node))

    def _send(
        self,
        category: Category,
        node: int,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
        *,
        is_request: bool,
    ) -> None:
        if category is Category.SHORT:
            command, payload = _SHORT[is_request], NO_BYTES
        elif category is Category.MEDIUM:
            command = _MEDIUM[is_request]
        else:
            self._send_long(category, node, handler, arguments, payload, offset, is_request)
            return
        message = headers.short_or_medium(command, handler, arguments, payload)
        self._messages.send(node, message)

    def _send_long(
        self,
        category: Category,
        node: int,
        handler: int,
        arguments: Sequence[int],
        payload: memoryview,
        offset: int,
        is_request: bool,
    ) -> None:
        """Bytes that fit go along; others are put first."""
        command, length, later = _LONG[is_request], len(payload), category is Category.LONG_ASYNC
        room = self._messages.transport(node).max_packed - headers.long_head_size(len(arguments))
        if length <= room:
            packed = headers.long(command, handler, arguments, offset, length, payload)
            self._messages.send(node, packed, later=later)
            return
        message = headers.long(command, handler, arguments, offset, length, None)
        if later:
            send = partial(self._messages.send, node, message, later=True)
            self._put_then(node, offset, payload, send)
            return
        landed: list[bool] = []
        self._put_then(node, offset, payload, lambda: landed.append(True))
        assert self._rdma is not None
        while not landed:
            if not self._rdma.poll_local():
                self._yield()
        self._messages.send(node, message)

    def _put_then(
        self, node: int, offset: int, payload: memoryview, after: Callable[[], object]
    ) -> None:
        engine = self._engine_for(node)
        if self._trace.active:
            self._told("PUT", node, offset, payload)
        engine.put_then(node, offset, payload, after, keeps_payload=True)

    def _check(self, node: int) -> None:
        """Raise MPIError when nothing can be asked of a peer any more."""
        proc = self.context.procs[node]
        if self._left:
            raise MPIError(ERR_OTHER, f"{proc} cannot be reached: the job has ended")
        why = proc.departed or self._losses.why(node)
        if why:
            raise MPIError(ERR_PROC_FAILED, f"{proc} cannot be reached: {why}")

    # -- transfers

    def put(
        self, node: int, offset: int, local: memoryview, transfer: Transfer, *, bulk: bool
    ) -> None:
        """Begin to write into a peer's segment."""
        engine = self._engine_for(node)
        if self._trace.active:
            self._told("PUT", node, offset, local)
        engine.put(node, offset, local, transfer, bulk=bulk)

    def get(self, node: int, offset: int, local: memoryview, transfer: Transfer) -> None:
        """Begin to read from a peer's segment."""
        engine = self._engine_for(node)
        if self._trace.active:
            self._told("GET", node, offset, local)
        engine.get(node, offset, local, transfer)

    def atomics(self, node: int) -> frozenset[tuple[AtomicOp, AtomicType]]:
        """What the NIC computes in the memory of ranks that are reached by it."""
        reached = self._rdma is not None and self.resources.endpoints[node] is not None
        return computed_by(self.resources.nic) if reached else frozenset()

    def atomic(
        self,
        node: int,
        offset: int,
        op: AtomicOp,
        kind: AtomicType,
        operand: int,
        compare: int,
        result: memoryview | None,
        transfer: Transfer,
    ) -> None:
        """Begin an atomic by the NIC."""
        assert self._rdma is not None, "there are atomics after `attach`"
        if self._trace.active:
            self._tracing.transfer("ATOMIC", node, offset, WIDTH[kind], "NIC")
        self._rdma.atomic(node, offset, op, kind, operand, compare, result, transfer)

    def _engine_for(self, node: int) -> RdmaEngine | SharedSegments:
        if self._shared is not None and self._shared.reaches(node):
            return self._shared
        if self._rdma is None:
            raise MPIError(ERR_RANK, f"rank {node} has no segment before attach")
        return self._rdma

    def _told(self, name: str, node: int, offset: int, local: memoryview) -> None:
        """A put or get is traced."""
        near = self._shared is not None and self._shared.reaches(node)
        self._tracing.transfer(name, node, offset, len(local), "PSHM" if near else "NIC")

    def transport(self, node: int) -> Transport:
        """What carries messages to a peer."""
        return self._messages.transport(node)

    def explain(self, asked: OperationAsked) -> Explanation:
        """Which way an operation would take, and why."""
        from ompy_components.conduit.gni.explaining import Explaining

        return Explaining(self).explain(asked)

    def waiting(self) -> list[str]:
        """Posts, requests without an answer, messages that are not sent, the job's end."""
        lines = self._rdma.waiting() if self._rdma is not None else []
        lines += self._messages.waiting()
        for transport in self._transports:
            lines += transport.waiting()
        reduction = self._exit.reduction
        if reduction.begun and not reduction.complete and not self._left:
            lines.append(f"others to know that the job ends, with code {reduction.code}")
        return lines

    def counters(self) -> dict[str, int]:
        """What has been counted."""
        return dict(self.resources.counters)
