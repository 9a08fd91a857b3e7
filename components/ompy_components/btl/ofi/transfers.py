"""Put, get and atomics.

All have one shape: check what can be checked here, make the record, count it (`_open`), post it,
and see what came of that (`_posted`): what the provider has no room for is undone and
OUT_OF_RESOURCE. Put and get are on the way of messages, and make no object beside the record.

Source: reference ofi.md A5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.frameworks.btl import (
    BAD_PARAM,
    NO_ORDER,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    QUEUED,
    REMOTE_ATOMIC,
    REMOTE_WRITE,
    UNREACHABLE,
    CompletionCallback,
)
from ompy.frameworks.btl_base.atomics import WIDTH, AtomicOp, AtomicOperation
from ompy.frameworks.btl_base.device_memory import RegisteredMemory, Remote
from ompy.frameworks.nic.fabric import Completion, FabricEndpoint, FabricError, Op

from ompy_components.btl.ofi import atomic_words
from ompy_components.btl.ofi.failures.blame import Blame, blame
from ompy_components.btl.ofi.registered import BASE, KEY, allows, remote_of
from ompy_components.btl.ofi.work_records import Operation, operation_on

if TYPE_CHECKING:
    from collections.abc import Callable

if DECLARING:
    from ompy.frameworks.btl import BtlModule
    from ompy.frameworks.btl_base.atomics import AtomicType

    from ompy_components.btl.ofi.attention import Attention
    from ompy_components.btl.ofi.contexts import Contexts
    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.failures.detection import Failures

_NOTHING: Final = memoryview(bytearray())


@cclass
class TransferEngine:
    """Of one module.

    Attributes:
        outstanding: operations the device has.
        puts, gets, atomics: how many were begun.
    """

    _able: dict[tuple[AtomicOp, AtomicType], bool]
    _attention: Attention
    _contexts: Contexts
    _failures: Failures
    _first: FabricEndpoint
    _module: BtlModule
    _plain: bool
    _read_completions: Callable[[], int]
    _several: bool
    _threshold: int
    atomics: int
    gets: int
    outstanding: int
    puts: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: BtlModule,
        contexts: Contexts,
        threshold: int,
        attention: Attention,
        failures: Failures,
        read_completions: Callable[[], int],
        *,
        plain: bool,
    ) -> None:
        """Begin with nothing under way.

        Args:
            module: that completes operations.
            contexts: take them.
            threshold: with so many outstanding a new one reads completions first.
            attention: is told of what waits, and that something is under way.
            failures: judge what ends badly.
            read_completions: of the module, all of them.
            plain: what is complete has been done at the target.
        """
        self._module = module
        self._contexts = contexts
        self._first = contexts.first
        self._several = len(contexts) > 1
        self._threshold = threshold
        self._attention = attention
        self._failures = failures
        self._read_completions = read_completions
        self._plain = plain
        self._able = {}  # whether the provider can do it, as far as it was asked
        self.outstanding = 0
        self.puts = self.gets = self.atomics = 0

    def counters(self) -> dict[str, int]:
        """How many were begun, by kind."""
        return {"puts": self.puts, "gets": self.gets, "atomics": self.atomics}

    @ccall
    def move(
        self,
        access: int,
        endpoint: OfiEndpoint,
        operation: Operation,
        offset: U64,
        local_handle: object,
        remote_handle: bytes,
    ) -> int:
        """Put (`REMOTE_WRITE`) from, or get (`REMOTE_READ`) into, the operation's segment."""
        size: int = operation.payload_size
        if not size:
            return NOT_AVAILABLE
        if not allows(remote_handle, endpoint.proc.rank, offset, size, access):
            return BAD_PARAM
        region = None
        if local_handle is not None and isinstance(local_handle, RegisteredMemory):
            region = local_handle.region
        descriptor = region.descriptor if region is not None else None
        at: U64 = raw.word(remote_handle, BASE) + offset
        key: U64 = raw.word(remote_handle, KEY)
        if not self._open(endpoint, operation):
            return UNREACHABLE
        local = operation.segment
        to: U64 = endpoint.address
        context: FabricEndpoint = self._context_for_next()
        try:
            if access == REMOTE_WRITE:
                taken: bool = context.write(local, descriptor, to, at, key, operation)
                self.puts += taken
            else:
                taken = context.read(local, descriptor, to, at, key, operation)
                self.gets += taken
        except FabricError as problem:
            return self._post_failed(operation, problem)
        return self._posted(operation, taken)

    @ccall
    def change(
        self,
        endpoint: OfiEndpoint,
        asked: AtomicOperation,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """An atomic."""
        kind, width = asked.type, WIDTH[asked.type]
        if not self._is_able(asked):
            return NOT_AVAILABLE
        there = remote_of(asked.remote_handle, endpoint.proc.rank)
        if there is None or not there.allows(asked.remote_address, width, REMOTE_ATOMIC):
            return BAD_PARAM
        if asked.remote_address % width or (asked.local is not None and len(asked.local) != width):
            return BAD_PARAM
        local = asked.local if asked.local is not None else _NOTHING
        operation: Operation = operation_on(endpoint, local, 0, NO_ORDER, callback, context)
        operand = atomic_words.word(kind, asked.operand)
        if asked.op is AtomicOp.CSWAP:
            compare = atomic_words.word(kind, asked.compare)
            operation.words = (operand, compare, _result(asked, width))
        elif asked.local is None and self._plain:
            operation.words = (operand,)
        else:  # that the old value is here is what tells that the word has been changed
            operation.words = (operand, _result(asked, width))
        if not self._open(endpoint, operation):
            return UNREACHABLE
        try:
            taken: bool = _post(asked, there, self._context_for_next(), operation)
        except FabricError as problem:
            return self._post_failed(operation, problem)
        self.atomics += taken
        return self._posted(operation, taken)

    @cfunc
    def _is_able(self, asked: AtomicOperation) -> bool:
        key = (asked.op, asked.type)
        known = self._able.get(key)
        if known is None:
            known = atomic_words.able(self._first.atomic_valid, *key, plain=self._plain)
            self._able[key] = known
        return known

    @cfunc
    def _context_for_next(self) -> FabricEndpoint:
        """The context for the next put, get or atomic."""
        return self._contexts.next() if self._several else self._first

    @cfunc
    def _open(self, endpoint: OfiEndpoint, operation: Operation) -> bool:
        """Count it, before it is posted: a flush must not miss it. False: there is no path."""
        if not endpoint.usable():
            return False
        if self.outstanding >= self._threshold:
            self._read_completions()
            if not endpoint.usable():
                return False
        self.outstanding += 1
        endpoint.operations[operation] = None
        endpoint.reached = True
        return True

    @cfunc
    def _posted(self, operation: Operation, taken: bool) -> int:
        if taken:
            self._attention.watch_over()
            return QUEUED
        self._forget(operation)
        self._attention.waits_for_room()
        return OUT_OF_RESOURCE

    @cfunc
    def _post_failed(self, operation: Operation, problem: FabricError) -> int:
        self._forget(operation)
        if blame(problem.errno) is Blame.ARGUMENT:
            return BAD_PARAM
        self._failures.post_failed(operation.endpoint, problem)
        return UNREACHABLE

    @cfunc
    def _forget(self, operation: Operation) -> None:
        if operation in operation.endpoint.operations:
            del operation.endpoint.operations[operation]
            self.outstanding -= 1

    @ccall
    def done(self, operation: Operation, completion: Completion) -> None:
        """The device says how it ended; one that was given up before is over already."""
        endpoint: OfiEndpoint = operation.endpoint
        if operation.told:
            return
        status: int = 0
        if completion.error:
            fault = blame(completion.error)
            status = BAD_PARAM if fault is Blame.ARGUMENT else UNREACHABLE
            if fault is not Blame.ARGUMENT:
                self._failures.work_failed(endpoint, completion, fault)
        else:
            endpoint.heard += 1
        self.complete(operation, status)

    @ccall
    def complete(self, operation: Operation, status: int) -> None:
        """It is over, as far as we are concerned."""
        if operation.told:
            return
        operation.told = True
        endpoint: OfiEndpoint = operation.endpoint
        if operation.callback is not None:
            operation.callback.completed(self._module, endpoint, operation, status)
        self._forget(operation)


def _result(asked: AtomicOperation, width: int) -> memoryview:
    return asked.local if asked.local is not None else memoryview(bytearray(width))


def _post(
    asked: AtomicOperation, there: Remote, context: FabricEndpoint, operation: Operation
) -> bool:
    """The call of the three that the words are for."""
    words = operation.words
    to, at = operation.endpoint.address, there.base + asked.remote_address
    kind = atomic_words.DATATYPES[asked.type]
    if asked.op is AtomicOp.CSWAP:
        place = (None, to, at, there.key, kind, Op.CSWAP, operation)
        return context.compare_atomic(words[0], words[1], words[2], *place)
    op = atomic_words.OPS[asked.op]
    if len(words) == 1:
        return context.atomic(words[0], to, at, there.key, kind, op, operation)
    place = (None, to, at, there.key, kind, op, operation)
    return context.fetch_atomic(words[0], words[1], *place)
