"""Endpoints, and contexts of scalable ones: where work is posted."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ompy.frameworks.nic.fabric import (
    AtomicCall,
    Caps,
    Completion,
    CompletionQueue,
    Datatype,
    FabricEndpoint,
    Op,
    ScalableEndpoint,
)

from ompy_components.nic.ofi_emulated import errors, headers, words
from ompy_components.nic.ofi_emulated.errors import ENOSYS, EOPBADSTATE, refusal
from ompy_components.nic.ofi_emulated.headers import WANTS_ANSWER, WIDTHS, Request
from ompy_components.nic.ofi_emulated.links.link import Operation
from ompy_components.nic.ofi_emulated.memory import EmulatedRegion
from ompy_components.nic.ofi_emulated.receives import Posted, Receives

if TYPE_CHECKING:
    from ompy_components.nic.ofi_emulated.completions import EmulatedQueue
    from ompy_components.nic.ofi_emulated.links.link import Link
    from ompy_components.nic.ofi_emulated.resources import Resources
    from ompy_components.nic.ofi_emulated.vector import EmulatedVector, Name

_ALL = memoryview(b"")


def _flat(memory: memoryview) -> memoryview:
    return memory if memory.format == "B" and memory.ndim == 1 else memory.cast("B")


class Place(NamedTuple):
    """Where a context is among those of its domain.

    Attributes:
        name: of the endpoint, for peers.
        number: of the endpoint in its domain.
        context: its number in that endpoint.
    """

    name: bytes
    number: int
    context: int


class EmulatedEndpoint(FabricEndpoint):
    """An endpoint, or one context.

    Attributes:
        counts: of the device.
        number: of the endpoint in its domain.
        index: of the context in its endpoint.
        receives: what is posted for messages.
        outstanding: transmits that are not complete.
        enabled: work may be posted.
    """

    def __init__(
        self,
        resources: Resources,
        vector: EmulatedVector,
        queue: EmulatedQueue,
        place: Place,
        link_to: Callable[[Name], Link],
        closed: Callable[[EmulatedEndpoint], None],
    ) -> None:
        """Not enabled yet.

        Args:
            resources: of the domain.
            vector: of its peers.
            queue: where it reports.
            place: its own.
            link_to: the way to a peer.
            closed: hears that it is.
        """
        self.counts = resources.counts
        self.number = place.number
        self.index = place.context
        self.receives = Receives(resources.counts, self.received, resources.info.rx_size)
        self.outstanding = 0
        self.enabled = False
        self._resources = resources
        self._info = info = resources.info
        self._vector = vector
        self._queue = queue
        self._name = place.name
        self._link_to = link_to
        self._closed = closed
        honours = info.op_flags & Caps.DELIVERY_COMPLETE and info.delivery_complete
        self._flags = WANTS_ANSWER if honours else 0

    # -- life

    def enable(self) -> None:
        """Begin."""
        self._resources.usable()
        self.enabled = True

    def name(self) -> bytes:
        """Its address for peers."""
        if not self.enabled:
            raise refusal(EOPBADSTATE, "the endpoint is not enabled")
        return self._name

    def close(self) -> None:
        """Give it back; harmless the second time."""
        self.enabled = False
        self._closed(self)
        self.receives.close()
        self._queue.forget(self)

    def completed(self, completion: Completion) -> None:
        """A transmit is done."""
        self.outstanding -= 1
        self._queue.add(completion, self)

    def received(self, completion: Completion) -> None:
        """A message has come."""
        self._queue.add(completion, self)

    # -- messages

    def receive(self, memory: memoryview, descriptor: object, context: object) -> bool:
        """Post a buffer."""
        self._check(memory, descriptor)
        if len(self.receives) >= self._info.rx_size:
            return self._again("full")
        self.receives.post(Posted(_flat(memory), context))
        return True

    def send(self, memory: memoryview, descriptor: object, to: int, context: object) -> bool:
        """Send a message."""
        self._check(memory, descriptor)
        flat = _flat(memory)
        operation = Operation(self, context, (memory, descriptor))
        return self._post(headers.SEND, to, len(flat), (flat,), operation, flags=self._flags)

    def inject(self, memory: memoryview, to: int) -> bool:
        """Send a copy."""
        self._check(memory, None, injected=True)
        most = self._info.inject_size
        if memory.nbytes > most:
            raise refusal(errno.EMSGSIZE, f"{memory.nbytes} bytes; {most} can be injected")
        copy = memoryview(memory.tobytes())
        return self._post(headers.SEND, to, len(copy), (copy,), None)

    # -- remote memory

    def write(
        self,
        memory: memoryview,
        descriptor: object,
        to: int,
        address: int,
        key: int,
        context: object,
    ) -> bool:
        """Write into a peer's memory."""
        self._check(memory, descriptor)
        flat = _flat(memory)
        operation = Operation(self, context, (memory, descriptor))
        place = (address, key)
        flags = self._flags
        return self._post(headers.WRITE, to, len(flat), (flat,), operation, place, flags=flags)

    def read(
        self,
        memory: memoryview,
        descriptor: object,
        to: int,
        address: int,
        key: int,
        context: object,
    ) -> bool:
        """Read a peer's memory."""
        self._check(memory, descriptor)
        flat = _flat(memory)
        operation = Operation(self, context, (memory, descriptor), flat)
        place = (address, key)
        return self._post(headers.READ, to, len(flat), (), operation, place, flags=WANTS_ANSWER)

    # -- atomics

    def atomic(
        self,
        operand: memoryview,
        to: int,
        address: int,
        key: int,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """Change one word."""
        operation = Operation(self, context, (operand,))
        what = (AtomicCall.ATOMIC, datatype, op)
        return self._atomic(headers.ATOMIC, what, (operand,), to, (address, key), operation)

    def fetch_atomic(
        self,
        operand: memoryview,
        result: memoryview,
        descriptor: object,
        to: int,
        address: int,
        key: int,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """Change one word and have its old value."""
        self._check(result, descriptor)
        operation = Operation(self, context, (operand, result, descriptor), _flat(result))
        what = (AtomicCall.FETCH, datatype, op)
        return self._atomic(headers.FETCH, what, (operand,), to, (address, key), operation)

    def compare_atomic(
        self,
        operand: memoryview,
        compare: memoryview,
        result: memoryview,
        descriptor: object,
        to: int,
        address: int,
        key: int,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """Write one word if it is what it is compared with."""
        self._check(result, descriptor)
        operation = Operation(self, context, (operand, compare, result, descriptor), _flat(result))
        what = (AtomicCall.COMPARE, datatype, op)
        operands = (operand, compare)
        return self._atomic(headers.COMPARE, what, operands, to, (address, key), operation)

    def atomic_valid(self, call: AtomicCall, datatype: Datatype, op: Op) -> bool:
        """Whether there are atomics at all, and this one."""
        return self._resources.traits.atomics and words.valid(call, datatype, op)

    def _atomic(
        self,
        kind: int,
        what: tuple[AtomicCall, Datatype, Op],
        operands: Sequence[memoryview],
        to: int,
        place: tuple[int, int],
        operation: Operation,
    ) -> bool:
        call, datatype, op = what
        if not self.atomic_valid(call, datatype, op):
            raise refusal(ENOSYS, f"{call.name} {op.name} of {datatype.name}")
        width = WIDTHS[datatype]
        result = operation.result
        if any(one.nbytes != width for one in operands) or (result and len(result) != width):
            raise refusal(errno.EINVAL, f"an operand or result that has not {width} bytes")
        flags = self._flags if kind == headers.ATOMIC else WANTS_ANSWER
        copies = [memoryview(one.tobytes()) for one in operands]
        more = (int(datatype), int(op))
        return self._post(kind, to, width, copies, operation, place, more, flags=flags)

    # -- posting

    def _check(self, memory: memoryview, descriptor: object, *, injected: bool = False) -> None:
        """Raise FabricError where work with this memory cannot be posted."""
        self._resources.usable()
        if not self.enabled:
            raise refusal(EOPBADSTATE, "the endpoint is not enabled")
        if memory.nbytes > self._info.max_message:
            raise refusal(errno.EMSGSIZE, f"{memory.nbytes} bytes at once")
        if self._resources.traits.local and not injected:
            here = isinstance(descriptor, EmulatedRegion) and descriptor.holds(_flat(memory))
            if not here:
                raise refusal(errno.EINVAL, "the local memory is not registered (FI_MR_LOCAL)")

    def _post(
        self,
        kind: int,
        to: int,
        size: int,
        payload: Sequence[memoryview],
        operation: Operation | None,
        place: tuple[int, int] = (0, 0),
        more: tuple[int, int] = (0, 0),
        *,
        flags: int = 0,
    ) -> bool:
        """Post a request, unless that has to wait.

        Args:
            kind: of the request.
            to: address of the peer in the vector.
            size: as the request has it.
            payload: the bytes that follow.
            operation: completed later; None for what is injected.
            place: address and key.
            more: datatype and operation of an atomic.
            flags: of the request.
        """
        resources = self._resources
        self._check(_ALL, None, injected=True)
        name = self._vector.find(to)
        if resources.refusals.refuses_next() or self.outstanding >= self._info.tx_size:
            return self._again("again")
        link = self._link_to(name)
        if not link.open():
            return self._again("connecting")
        if operation is not None:
            network, interface = resources.context.network, resources.interface
            spoiled = network.work(name.rank, interface.name).error
            if spoiled == errno.EAGAIN:
                return self._again("again")
            self.outstanding += 1
            if spoiled:
                operation.done(spoiled, f"{errors.words(spoiled)}: a fault script's work_error")
                return True
        address, key = place
        where = (name.endpoint, self.index, 0, address, key, size)
        link.post(Request(kind, flags, *more, *where), payload, operation)
        return True

    def _again(self, why: str) -> bool:
        self.counts[why] += 1
        return False


class EmulatedScalable(ScalableEndpoint):
    """An endpoint of several contexts."""

    def __init__(
        self,
        resources: Resources,
        name: bytes,
        contexts: int,
        make_context: Callable[[CompletionQueue, int], FabricEndpoint],
        closed: Callable[[], None],
    ) -> None:
        """Not enabled yet.

        Args:
            resources: of the domain.
            name: its own, for peers.
            contexts: there may be so many.
            make_context: by its queue and index.
            closed: closes them all.
        """
        self._usable = resources.usable
        self._name = name
        self._contexts = contexts
        self._make_context = make_context
        self._closed = closed
        self._enabled = False

    def context(self, index: int, queue: CompletionQueue) -> FabricEndpoint:
        """One of them."""
        if not 0 <= index < self._contexts:
            raise refusal(errno.EINVAL, f"context {index} of {self._contexts}")
        return self._make_context(queue, index)

    def enable(self) -> None:
        """Begin."""
        self._usable()
        self._enabled = True

    def name(self) -> bytes:
        """Its address for peers."""
        if not self._enabled:
            raise refusal(EOPBADSTATE, "the endpoint is not enabled")
        return self._name

    def close(self) -> None:
        """Give it back."""
        self._closed()
