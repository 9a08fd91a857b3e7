"""Put, get and atomics.

All have one shape: check what can be checked here, make the record, count it, post it; what the
provider has no room for is undone and OUT_OF_RESOURCE.

Source: reference ofi.md A5.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.frameworks.atomics import WIDTH, AtomicOp, AtomicOperation
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
from ompy.frameworks.device_memory import RegisteredMemory, Remote
from ompy.frameworks.nic.fabric import Completion, FabricEndpoint, FabricError, Op

from ompy_components.btl.ofi import atomic_words
from ompy_components.btl.ofi.failover import Blame, blame
from ompy_components.btl.ofi.records import Operation
from ompy_components.btl.ofi.registered import remote_of

if TYPE_CHECKING:
    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.module import OfiModule

_NOTHING: Final = memoryview(bytearray())
Post = Callable[[FabricEndpoint, Operation], bool]


class TransferEngine:
    """Of one module.

    Attributes:
        outstanding: operations the device has.
        counted: operations begun, by kind.
    """

    def __init__(self, module: OfiModule, threshold: int) -> None:
        """With `threshold` operations outstanding a new one reads completions first."""
        self._module = module
        self._threshold = threshold
        self._plain = module.info.delivery_complete
        self.outstanding = 0
        self.counted = {"puts": 0, "gets": 0, "atomics": 0}

    def move(
        self,
        access: int,
        endpoint: OfiEndpoint,
        operation: Operation,
        offset: int,
        local_handle: object,
        remote_handle: bytes,
    ) -> int:
        """Put (`REMOTE_WRITE`) from, or get (`REMOTE_READ`) into, the operation's segment."""
        local = operation.segment
        if not len(local):
            return NOT_AVAILABLE
        there = remote_of(remote_handle, endpoint.proc.rank)
        if there is None or not there.allows(offset, len(local), access):
            return BAD_PARAM
        region = local_handle.region if isinstance(local_handle, RegisteredMemory) else None
        descriptor = region.descriptor if region is not None else None
        at = there.base + offset

        def post(context: FabricEndpoint, record: Operation) -> bool:
            call = context.write if access == REMOTE_WRITE else context.read
            return call(local, descriptor, endpoint.address, at, there.key, record)

        return self._begin(endpoint, operation, post, "puts" if access == REMOTE_WRITE else "gets")

    def change(
        self,
        endpoint: OfiEndpoint,
        asked: AtomicOperation,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """An atomic."""
        kind, width = asked.type, WIDTH[asked.type]
        if not self._able(asked):
            return NOT_AVAILABLE
        there = remote_of(asked.remote_handle, endpoint.proc.rank)
        if there is None or not there.allows(asked.remote_address, width, REMOTE_ATOMIC):
            return BAD_PARAM
        if asked.remote_address % width or (asked.local is not None and len(asked.local) != width):
            return BAD_PARAM
        local = asked.local if asked.local is not None else _NOTHING
        operation = Operation(endpoint, local, 0, NO_ORDER)
        operation.callback, operation.context = callback, context
        operand = atomic_words.word(kind, asked.operand)
        if asked.op is AtomicOp.CSWAP:
            compare = atomic_words.word(kind, asked.compare)
            result = _result(asked, width)
            operation.words = (operand, compare, result)
            return self._begin(endpoint, operation, partial(_compare, asked, there), "atomics")
        if asked.local is None and self._plain:
            operation.words = (operand,)
            return self._begin(endpoint, operation, partial(_plain, asked, there), "atomics")
        # that the old value is here is what tells that the word has been changed
        operation.words = (operand, _result(asked, width))
        return self._begin(endpoint, operation, partial(_fetch, asked, there), "atomics")

    def _able(self, asked: AtomicOperation) -> bool:
        key = (asked.op, asked.type)
        known = self._module.atomics.get(key)
        if known is None:
            valid = self._module.contexts.first.atomic_valid
            known = atomic_words.able(valid, *key, plain=self._plain)
            self._module.atomics[key] = known
        return known

    def _begin(self, endpoint: OfiEndpoint, operation: Operation, post: Post, counter: str) -> int:
        module = self._module
        if not endpoint.usable:
            return UNREACHABLE
        if self.outstanding >= self._threshold:
            module.read_completions()
            if not endpoint.usable:
                return UNREACHABLE
        self.outstanding += 1  # before it is posted: a flush must not miss it
        endpoint.operations[operation] = None
        try:
            if post(module.contexts.next(), operation):
                self.counted[counter] += 1
                module.watch_over()
                return QUEUED
        except FabricError as problem:
            self._forget(operation)
            if blame(problem.errno) is Blame.ARGUMENT:
                return BAD_PARAM
            module.failover.post_failed(endpoint, problem)
            return UNREACHABLE
        self._forget(operation)
        module.waits_for_room()
        return OUT_OF_RESOURCE

    def _forget(self, operation: Operation) -> None:
        if operation in operation.endpoint.operations:
            del operation.endpoint.operations[operation]
            self.outstanding -= 1

    def done(self, operation: Operation, completion: Completion) -> None:
        """The device says how it ended; one that was given up before is over already."""
        endpoint = operation.endpoint
        if operation.told:
            return
        status = 0
        if completion.errno:
            fault = blame(completion.errno)
            status = BAD_PARAM if fault is Blame.ARGUMENT else UNREACHABLE
            if fault is not Blame.ARGUMENT:
                self._module.failover.work_failed(endpoint, completion, fault)
        else:
            endpoint.heard += 1
        self.complete(operation, status)

    def complete(self, operation: Operation, status: int) -> None:
        """It is over, as far as we are concerned."""
        if operation.told:
            return
        operation.told = True
        endpoint = operation.endpoint
        if operation.callback is not None:
            operation.callback.completed(self._module, endpoint, operation, status)
        self._forget(operation)


def _result(asked: AtomicOperation, width: int) -> memoryview:
    return asked.local if asked.local is not None else memoryview(bytearray(width))


def _target(asked: AtomicOperation, there: Remote) -> tuple[int, int]:
    return there.base + asked.remote_address, there.key


def _plain(
    asked: AtomicOperation, there: Remote, context: FabricEndpoint, operation: Operation
) -> bool:
    (operand,) = operation.words
    at, key = _target(asked, there)
    kind = atomic_words.DATATYPES[asked.type]
    to = operation.endpoint.address
    return context.atomic(operand, to, at, key, kind, atomic_words.OPS[asked.op], operation)


def _fetch(
    asked: AtomicOperation, there: Remote, context: FabricEndpoint, operation: Operation
) -> bool:
    operand, result = operation.words
    at, key = _target(asked, there)
    kind = atomic_words.DATATYPES[asked.type]
    op = atomic_words.OPS[asked.op]
    to = operation.endpoint.address
    return context.fetch_atomic(operand, result, None, to, at, key, kind, op, operation)


def _compare(
    asked: AtomicOperation, there: Remote, context: FabricEndpoint, operation: Operation
) -> bool:
    operand, compare, result = operation.words
    at, key = _target(asked, there)
    kind = atomic_words.DATATYPES[asked.type]
    to = operation.endpoint.address
    return context.compare_atomic(
        operand, compare, result, None, to, at, key, kind, Op.CSWAP, operation
    )
