"""Put and get by fragments under `TAG_TRANSFER`, for a BTL whose wire has none.

The asker cuts an operation into pieces of one fragment each, and each piece is a question with
its own answer; the target keeps nothing between them:

    PUT (where, bytes)  ->  DONE (status)
    GET (where, size)   ->  GOT (bytes), or DONE (bad status)

    0 kind u8 | 4 status i32 | 8 operation u64 | 16 identity u64 | 24 offset u64 | 32 at u64
    40 size u64 | 48 bytes

`identity` and `offset` name the target's memory, `at` the place in the asker's. An operation is
complete when every piece that was asked has been answered, so a completed put is in the peer's
memory. The target looks each piece up in its table before it touches anything. Any BTL that
delivers each fragment once can use this; order does not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ompy.data.header_layout import HeaderLayout
from ompy.engine.base import Poller
from ompy.frameworks.btl import (
    BAD_PARAM,
    BTL_OWNERSHIP,
    NO_ORDER,
    OUT_OF_RESOURCE,
    QUEUED,
    REMOTE_READ,
    REMOTE_WRITE,
    RESOURCE_BUSY,
    TAG_TRANSFER,
    UNREACHABLE,
    BtlModule,
    Descriptor,
    Endpoint,
    ReceiveCallback,
)
from ompy.frameworks.btl_base.registration import RegistrationTable
from ompy.frameworks.context import RankContext
from ompy.net.memory.streaming import STREAM_LEAST, Streaming

TRANSFER_LAYOUT: Final = HeaderLayout(
    "transfer.piece",
    "kind u8, pad 3, status i32, operation u64, identity u64, offset u64, at u64, size u64",
)
_HEADER: Final = TRANSFER_LAYOUT.struct
HEADER_SIZE: Final = _HEADER.size
assert HEADER_SIZE == 48

# kinds of fragments
PUT_PIECE: Final = 1
GET_PIECE: Final = 2
GOT_PIECE: Final = 3
DONE_PIECE: Final = 4

OPEN_MAX: Final = 4  # arbitrary: pieces of one operation under way; ob1's receive pipeline has 4
STARTED_MAX: Final = 64  # arbitrary: operations of one module under way; more wait in the PML


class Operation:
    """One put or get under way.

    Attributes:
        endpoint: the peer.
        descriptor: the caller's memory, callback and context.
        kind: `PUT_PIECE` or `GET_PIECE`.
        identity, offset: the peer's memory.
        asked: bytes that questions were sent for.
        open: questions without an answer.
        begun: a question was sent: for an operation of no bytes too.
        status: 0, or what went wrong.
    """

    __slots__ = (
        "asked",
        "begun",
        "descriptor",
        "endpoint",
        "identity",
        "kind",
        "number",
        "offset",
        "open",
        "status",
    )

    def __init__(
        self,
        number: int,
        kind: int,
        endpoint: Endpoint,
        descriptor: Descriptor,
        identity: int,
        offset: int,
    ) -> None:
        self.number = number
        self.kind = kind
        self.endpoint = endpoint
        self.descriptor = descriptor
        self.identity = identity
        self.offset = offset
        self.asked = self.open = self.status = 0
        self.begun = False

    def all_asked(self) -> bool:
        """No question is left, or none is of use."""
        whole = self.begun and self.asked == len(self.descriptor.segment)
        return whole or self.status < 0


class _Question(NamedTuple):
    """A piece at the target, until there is a fragment for the answer."""

    endpoint: Endpoint
    number: int
    at: int
    status: int  # of a put
    wanted: tuple[int, int, int] | None  # identity, offset and size, of a get


class EmulatedTransfers(Poller):
    """Puts and gets of one module, as asker and as target.

    It polls itself while something could not be sent or waits for an answer, and only then.
    """

    def __init__(
        self, module: BtlModule, table: RegistrationTable, gone: Callable[[Endpoint], bool]
    ) -> None:
        """Answer from `table`; ask through `module`.

        Args:
            module: whose puts and gets they are.
            table: what it has registered.
            gone: whether a peer will answer no more.
        """
        self._module = module
        self._table = table
        self._gone = gone
        self._streaming = Streaming(STREAM_LEAST)  # the peer, which reads it next, is of this host
        self._operations: dict[int, Operation] = {}
        self._answers: deque[_Question] = deque()
        self._next = 1
        self._polled = False
        _listener(module.context).by_module[module] = self

    @property
    def idle(self) -> bool:
        """Nothing is under way, asked or to be answered."""
        return not self._operations and not self._answers

    def begin_transfer(
        self, kind: int, endpoint: Endpoint, descriptor: Descriptor, identity: int, offset: int
    ) -> int:
        """Begin a put or get; the caller has checked its size and alignment.

        Returns:
            `QUEUED`, or `OUT_OF_RESOURCE`.
        """
        if len(self._operations) >= STARTED_MAX:
            return OUT_OF_RESOURCE
        operation = Operation(self._next, kind, endpoint, descriptor, identity, offset)
        self._next += 1
        self._operations[operation.number] = operation
        self._ask(operation)
        self._watch()
        return QUEUED

    def poll(self) -> int:
        """Send what found no resources; fail what waits for a peer that has gone."""
        events = 0
        for _ in range(len(self._answers)):
            if not self._answer(self._answers[0]):
                break
            self._answers.popleft()
            events += 1
        for operation in list(self._operations.values()):
            if self._gone(operation.endpoint):
                self._finish(operation, UNREACHABLE)
                events += 1
            elif not operation.all_asked():
                events += self._ask(operation)
        if self.idle:
            self._module.context.engine.remove_poller(self)
            self._polled = False
        return events

    def arm(self) -> bool:
        """Sleep unless a peer has gone since the last look."""
        return not any(self._gone(operation.endpoint) for operation in self._operations.values())

    def fail(self) -> None:
        """Complete everything badly: the module is at its end."""
        self._answers.clear()
        for operation in list(self._operations.values()):
            self._finish(operation, UNREACHABLE)
        self._module.context.engine.remove_poller(self)
        _listener(self._module.context).by_module.pop(self._module, None)

    # -- asking

    def _ask(self, operation: Operation) -> int:
        """Send questions while there are resources. Returns how many."""
        room = self._module.max_send_size - HEADER_SIZE
        local = operation.descriptor.segment
        sent = 0
        while operation.open < OPEN_MAX and not operation.all_asked():
            at = operation.asked
            size = min(room, len(local) - at)
            payload = local[at : at + size] if operation.kind == PUT_PIECE else local[:0]
            header = _HEADER.pack(
                operation.kind,
                0,
                operation.number,
                operation.identity,
                operation.offset + at,
                at,
                size,
            )
            result = self._send(operation.endpoint, header, payload)
            if result < 0:
                if result not in (OUT_OF_RESOURCE, RESOURCE_BUSY):
                    operation.status = result
                    self._conclude(operation)
                break
            operation.begun = True
            operation.asked += size
            operation.open += 1
            sent += 1
        return sent

    def _send(self, endpoint: Endpoint, header: bytes, payload: memoryview) -> int:
        size = HEADER_SIZE + len(payload)
        descriptor = self._module.alloc(endpoint, NO_ORDER, size, BTL_OWNERSHIP)
        if descriptor is None:
            return OUT_OF_RESOURCE
        descriptor.segment[:HEADER_SIZE] = header
        self._streaming.copy(descriptor.segment, HEADER_SIZE, payload, 0, len(payload))
        result = self._module.send(endpoint, descriptor, TAG_TRANSFER)
        if result < 0:
            self._module.free(descriptor)
        return result

    def _conclude(self, operation: Operation) -> None:
        """Complete an operation that has nothing left to ask or to hear."""
        if not operation.open and operation.all_asked():
            self._finish(operation, operation.status)

    def _finish(self, operation: Operation, status: int) -> None:
        del self._operations[operation.number]
        descriptor = operation.descriptor
        if descriptor.callback is not None:
            descriptor.callback.completed(self._module, operation.endpoint, descriptor, status)

    # -- being asked, and answered

    def received(self, endpoint: Endpoint, data: memoryview) -> None:
        """A fragment under `TAG_TRANSFER` has arrived."""
        kind, status, number, identity, offset, at, size = _HEADER.unpack_from(data)
        payload = data[HEADER_SIZE:]
        if kind == PUT_PIECE:
            there = self._table.find(identity, offset, len(payload), REMOTE_WRITE)
            if there is not None:
                there[:] = payload
            status = 0 if there is not None else BAD_PARAM
            self._respond(_Question(endpoint, number, at, status, None))
        elif kind == GET_PIECE:
            self._respond(_Question(endpoint, number, at, 0, (identity, offset, size)))
        else:
            self._answered(endpoint, number, status, at, payload)

    def _respond(self, question: _Question) -> None:
        if self._answers or not self._answer(question):
            self._answers.append(question)
            self._watch()

    def _answer(self, question: _Question) -> bool:
        """Send an answer; false when there are no resources for it now."""
        kind, status, payload = DONE_PIECE, question.status, memoryview(b"")
        if question.wanted is not None:
            found = self._table.find(*question.wanted, REMOTE_READ)
            if found is not None and len(found) <= self._module.max_send_size - HEADER_SIZE:
                kind, payload = GOT_PIECE, found
            else:
                status = BAD_PARAM
        header = _HEADER.pack(kind, status, question.number, 0, 0, question.at, 0)
        result = self._send(question.endpoint, header, payload)
        return result not in (OUT_OF_RESOURCE, RESOURCE_BUSY)  # else sent, or nobody is there

    def _answered(
        self, endpoint: Endpoint, number: int, status: int, at: int, payload: memoryview
    ) -> None:
        operation = self._operations.get(number)
        if operation is None or operation.endpoint is not endpoint:
            return  # it has failed already
        if status < 0:
            operation.status = status
        elif operation.kind == GET_PIECE:
            operation.descriptor.segment[at : at + len(payload)] = payload
        operation.open -= 1
        self._ask(operation)
        if operation.number in self._operations:
            self._conclude(operation)

    def _watch(self) -> None:
        if not self._polled:
            self._polled = True
            self._module.context.engine.add_poller(self)


class _Listener(ReceiveCallback):
    """Hands what comes under `TAG_TRANSFER` to the module it came through."""

    __slots__ = ("by_module",)

    def __init__(self) -> None:
        self.by_module: dict[BtlModule, EmulatedTransfers] = {}

    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """Find the emulation."""
        self.by_module[module].received(endpoint, data)


def _listener(context: RankContext) -> _Listener:
    known = context.active_messages.handlers[TAG_TRANSFER]
    if isinstance(known, _Listener):
        return known
    assert known is None, "TAG_TRANSFER is put and get's own"
    made = _Listener()
    context.active_messages.register(TAG_TRANSFER, made)
    return made
