"""Endpoints: the calls that post work, with their functions bound when the endpoint is enabled.

Posting takes a slot of the queue's contexts, hands the provider its address, and keeps what the
work was posted with beside it. A refusal gives the slot back. Messages, puts and gets go through
`direct.py`, which is C where this module is compiled; atomics through cffi.

Source: reference ofi.md A5, B1, B2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ompy.compiled import DECLARING, U64, Shown, ccall, cclass, cfunc
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

from ompy_components.nic.libfabric import direct
from ompy_components.nic.libfabric.completions import LibfabricQueue
from ompy_components.nic.libfabric.contexts import Work
from ompy_components.nic.libfabric.direct import EAGAIN, ENOSYS

if TYPE_CHECKING:
    from ompy_components.nic.libfabric.domain import LibfabricDomain
    from ompy_components.nic.libfabric.library import Library

if DECLARING:
    from ompy_components.nic.libfabric.contexts import Contexts

ENOMEM: Final = 12  # Linux
ENABLE: Final = 6  # libfabric: FI_ENABLE, a command of fi_control
ANYBODY: Final = (1 << 64) - 1  # libfabric: FI_ADDR_UNSPEC
WORD: Final = 8  # bytes of the widest operand, 64 bits
NAME_ROOM: Final = 256  # bytes; arbitrary: more than any provider's names have
_VALID: Final = {
    AtomicCall.ATOMIC: "writevalid",
    AtomicCall.FETCH: "readwritevalid",
    AtomicCall.COMPARE: "compwritevalid",
}


def _name(domain: LibfabricDomain, fid: Any) -> bytes:
    """fi_getname."""
    ffi = domain.library.ffi
    room = ffi.new("char[]", NAME_ROOM)
    size = ffi.new("size_t *", NAME_ROOM)
    getname = domain.library.slot(fid.cm, "getname")
    result = getname(ffi.addressof(fid.fid), room, size)
    domain.library.check_result(result, f"the address of an endpoint of {domain.name}")
    return bytes(ffi.buffer(room, size[0]))


def _made(domain: LibfabricDomain, fid: Any, slot: str, what: str, *arguments: Any) -> Any:
    """The endpoint or context that a function of `fid` makes.

    Raises:
        FabricError: the provider refuses.
    """
    library = domain.library
    made = library.ffi.new("struct fid_ep **")
    opens = library.slot(fid.ops, slot)
    library.check_result(opens(fid, *arguments, made, library.ffi.NULL), f"{what} of {domain.name}")
    return made[0]


def _missing(*_: object) -> int:
    """What a provider has no function for."""
    return -ENOSYS


@cclass
class LibfabricEndpoint(FabricEndpoint):
    """An endpoint, or a transmit and a receive context of a scalable one.

    Attributes:
        fid: libfabric's object; of the two contexts the one that transmits.
    """

    _contexts: Contexts
    _domain: LibfabricDomain
    _ffi: Any
    _fi_atomic: Any
    _fi_compare: Any
    _fi_fetch: Any
    _fi_inject: U64
    _fi_read: U64
    _fi_recv: U64
    _fi_send: U64
    _fi_write: U64
    _library: Shown[Library]
    _queue: LibfabricQueue
    _receiver: U64
    _rx: Any
    _sender: U64
    _whole: LibfabricScalable | None
    fid: Any
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        domain: LibfabricDomain,
        vector: Any,
        queue: LibfabricQueue,
        whole: LibfabricScalable | None = None,
        index: int = 0,
    ) -> None:
        """Make it and bind it; of a scalable endpoint, its contexts of that number."""
        self._domain = domain
        self._library = domain.library
        self._queue = queue
        self._contexts = queue.contexts
        self._ffi = domain.library.ffi
        self._whole = whole
        self.fid = None
        self._rx = None
        domain.opened.add(self)  # what is made before an error is closed with the domain
        if whole is None:
            made = _made(domain, domain.fid, "endpoint", "an endpoint", domain.native)
            self.fid = self._rx = made
            self._library.bind(self.fid.fid, queue.fid.fid, Caps.SEND | Caps.RECV, "a queue")
            self._library.bind(self.fid.fid, vector.fid, 0, "an address vector")
        else:
            self.fid = whole.made("tx_ctx", index)
            self._library.bind(self.fid.fid, queue.fid.fid, Caps.SEND, "a queue")
            self._rx = whole.made("rx_ctx", index)
            self._library.bind(self._rx.fid, queue.fid.fid, Caps.RECV, "a queue")

    def enable(self) -> None:
        """Enable it, and bind the functions of its tables."""
        library, tx, rx = self._library, self.fid, self._rx
        null = library.ffi.NULL
        library.control(tx.fid, ENABLE, null, f"enabling an endpoint of {self._domain.name}")
        if rx != tx:
            library.control(rx.fid, ENABLE, null, "enabling a receive context")
        self._sender = direct.place(library.ffi, tx)
        self._receiver = direct.place(library.ffi, rx)
        self._fi_send = direct.entry(library, "msg", tx.msg, "send")
        self._fi_inject = direct.entry(library, "msg", tx.msg, "inject")
        self._fi_recv = direct.entry(library, "msg", rx.msg, "recv")
        self._fi_write = direct.entry(library, "rma", tx.rma, "write")
        self._fi_read = direct.entry(library, "rma", tx.rma, "read")
        self._fi_atomic = library.often("atomic", tx.atomic, "write") or _missing
        self._fi_fetch = library.often("atomic", tx.atomic, "readwrite") or _missing
        self._fi_compare = library.often("atomic", tx.atomic, "compwrite") or _missing

    @cfunc
    def _refused(self, work: Work, result: int, what: str, lent: tuple[Any, ...]) -> bool:
        """False when it can be tried again.

        Before an error the buffers are released: it keeps the frames below, and a memoryview that
        is exported crashes Python before 3.11.10 when the garbage collector finds it in a cycle.
        """
        self._contexts.free.append(work)
        if self._is_full(result):
            return False
        for one in lent:
            direct.take_back(self._ffi, one)
        raise self._library.error(result, f"{what} over {self._domain.name}")

    @cfunc
    def _is_full(self, result: int) -> bool:
        return result == -EAGAIN

    @ccall
    def send(self, memory: memoryview, descriptor: Any, to: U64, context: object) -> bool:
        """fi_send."""
        lent = direct.lend(self._ffi, memory)
        number: U64 = 0 if descriptor is None else descriptor.number
        work: Work = self._contexts.take_context()
        result: int = direct.send(self._fi_send, self._sender, lent, number, to, work.address)
        if result:
            return self._refused(work, result, "fi_send", (lent,))
        self._contexts.posted(work, context, lent, descriptor, False)
        return True

    @ccall
    def inject(self, memory: memoryview, to: U64) -> bool:
        """fi_inject."""
        lent = direct.lend(self._ffi, memory)
        result: int = direct.inject(self._fi_inject, self._sender, lent, to)
        if not result:
            return True
        if result == -EAGAIN:
            return False
        direct.take_back(self._ffi, lent)
        raise self._library.error(result, f"fi_inject over {self._domain.name}")

    @ccall
    def receive(self, memory: memoryview, descriptor: Any, context: object) -> bool:
        """fi_recv."""
        lent = direct.lend_writable(self._ffi, memory)
        number: U64 = 0 if descriptor is None else descriptor.number
        work: Work = self._contexts.take_context()
        at: U64 = work.address
        result: int = direct.receive(self._fi_recv, self._receiver, lent, number, ANYBODY, at)
        if result:
            return self._refused(work, result, "fi_recv", (lent,))
        self._contexts.posted(work, context, lent, descriptor, True)
        return True

    @ccall
    def write(
        self,
        memory: memoryview,
        descriptor: Any,
        to: U64,
        address: U64,
        key: U64,
        context: object,
    ) -> bool:
        """fi_write."""
        lent = direct.lend(self._ffi, memory)
        number: U64 = 0 if descriptor is None else descriptor.number
        work: Work = self._contexts.take_context()
        at: U64 = work.address
        result: int = direct.move(self._fi_write, self._sender, lent, number, to, address, key, at)
        if result:
            return self._refused(work, result, "fi_write", (lent,))
        self._contexts.posted(work, context, lent, descriptor, False)
        return True

    @ccall
    def read(
        self,
        memory: memoryview,
        descriptor: Any,
        to: U64,
        address: U64,
        key: U64,
        context: object,
    ) -> bool:
        """fi_read."""
        lent = direct.lend_writable(self._ffi, memory)
        number: U64 = 0 if descriptor is None else descriptor.number
        work: Work = self._contexts.take_context()
        at: U64 = work.address
        result: int = direct.move(self._fi_read, self._sender, lent, number, to, address, key, at)
        if result:
            return self._refused(work, result, "fi_read", (lent,))
        self._contexts.posted(work, context, lent, descriptor, False)
        return True

    @ccall
    def atomic(
        self,
        operand: memoryview,
        to: U64,
        address: U64,
        key: U64,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """fi_atomic, of one word."""
        buffer = self._ffi.from_buffer(operand)
        work: Work = self._contexts.take_context()
        at = work.address
        result = self._fi_atomic(self.fid, buffer, 1, 0, to, address, key, datatype, op, at)
        if result:
            return self._refused(work, result, "fi_atomic", (buffer,))
        self._contexts.posted(work, context, buffer, None, False)
        return True

    @ccall
    def fetch_atomic(
        self,
        operand: memoryview,
        result: memoryview,
        descriptor: Any,
        to: U64,
        address: U64,
        key: U64,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """fi_fetch_atomic, of one word."""
        buffer = self._ffi.from_buffer(operand)
        old = self._ffi.from_buffer(result, require_writable=True)
        number = 0 if descriptor is None else descriptor.number
        work: Work = self._contexts.take_context()
        place = (to, address, key, datatype, op, work.address)
        refusal = self._fi_fetch(self.fid, buffer, 1, 0, old, number, *place)
        if refusal:
            return self._refused(work, refusal, "fi_fetch_atomic", (buffer, old))
        self._contexts.posted(work, context, (buffer, old), descriptor, False)
        return True

    @ccall
    def compare_atomic(
        self,
        operand: memoryview,
        compare: memoryview,
        result: memoryview,
        descriptor: Any,
        to: U64,
        address: U64,
        key: U64,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """fi_compare_atomic, of one word."""
        buffer = self._ffi.from_buffer(operand)
        with_it = self._ffi.from_buffer(compare)
        old = self._ffi.from_buffer(result, require_writable=True)
        number = 0 if descriptor is None else descriptor.number
        work: Work = self._contexts.take_context()
        place = (to, address, key, datatype, op, work.address)
        refusal = self._fi_compare(self.fid, buffer, 1, 0, with_it, 0, old, number, *place)
        if refusal:
            lent = (buffer, with_it, old)
            return self._refused(work, refusal, "fi_compare_atomic", lent)
        self._contexts.posted(work, context, (buffer, with_it, old), descriptor, False)
        return True

    def atomic_valid(self, call: AtomicCall, datatype: Datatype, op: Op) -> bool:
        """fi_atomicvalid, fi_fetch_atomicvalid, fi_compare_atomicvalid."""
        valid = self._library.slot_or_none(self.fid.atomic, _VALID[call])
        if valid is None:
            return False
        count = self._library.ffi.new("size_t *")
        return bool(valid(self.fid, datatype, op, count) == 0 and count[0] >= 1)

    def name(self) -> bytes:
        """fi_getname."""
        return _name(self._domain, self.fid) if self._whole is None else self._whole.name()

    def close(self) -> None:
        """Give it back; harmless the second time."""
        tx, rx, self.fid, self._rx = self.fid, self._rx, None, None
        self._domain.opened.discard(self)
        if rx is not None and rx != tx:
            self._library.close(rx.fid, "a receive context")
        if tx is not None:
            self._library.close(tx.fid, f"an endpoint of {self._domain.name}")


@cclass
class ShmEndpoint(LibfabricEndpoint):
    """An endpoint of the provider `shm`.

    A message of no bytes that is sent with DELIVERY_COMPLETE arrives, but never completes, and no
    other is taken after it (seen with 1.17, mended in 2.5). So it goes by `inject`. And a full
    queue is ENOMEM to a receive, not EAGAIN.

    An atomic without a result that is sent with DELIVERY_COMPLETE has its buffer in the target's
    memory given back by both sides (1.17), so two later ones of different ranks get the same and
    are made with each other's operands. So it is one with a result, which nobody reads.
    """

    __slots__ = ()

    @cfunc
    def _is_full(self, result: int) -> bool:
        return result in (-EAGAIN, -ENOMEM)

    @ccall
    def send(self, memory: memoryview, descriptor: Any, to: U64, context: object) -> bool:
        """fi_send, or fi_inject where there is nothing to send."""
        if len(memory):
            # compiled, `super()` does not find a C function
            return LibfabricEndpoint.send(self, memory, descriptor, to, context)
        taken = self.inject(memory, to)
        if taken:
            self._queue.own.append(Completion(context))
        return taken

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
        """fi_fetch_atomic."""
        unread = memoryview(bytearray(WORD))
        return self.fetch_atomic(operand, unread, None, to, address, key, datatype, op, context)


class LibfabricScalable(ScalableEndpoint):
    """One address with several contexts."""

    def __init__(self, domain: LibfabricDomain, vector: Any, contexts: int) -> None:
        library = domain.library
        self._domain = domain
        self._info = library.copy_info(domain.native)
        self._info.ep_attr.tx_ctx_cnt = contexts
        self._info.ep_attr.rx_ctx_cnt = contexts
        what = "a scalable endpoint"
        self._fid: Any = _made(domain, domain.fid, "scalable_ep", what, self._info)
        domain.opened.add(self)
        library.bind(self._fid.fid, vector.fid, 0, "an address vector")

    def made(self, slot: str, index: int) -> Any:
        """A transmit or receive context.

        Raises:
            FabricError: the provider refuses.
        """
        attributes = self._info.tx_attr if slot == "tx_ctx" else self._info.rx_attr
        return _made(self._domain, self._fid, slot, f"{slot} {index}", index, attributes)

    def context(self, index: int, queue: CompletionQueue) -> FabricEndpoint:
        """Both contexts of a number."""
        assert isinstance(queue, LibfabricQueue), f"{queue!r} is of another device"
        return LibfabricEndpoint(self._domain, None, queue, self, index)

    def enable(self) -> None:
        """fi_enable."""
        library = self._domain.library
        library.control(self._fid.fid, ENABLE, library.ffi.NULL, "enabling a scalable endpoint")

    def name(self) -> bytes:
        """fi_getname."""
        return _name(self._domain, self._fid)

    def close(self) -> None:
        """Give it back; harmless the second time."""
        fid, self._fid = self._fid, None
        if fid is not None:
            self._domain.opened.discard(self)
            self._domain.library.close(fid.fid, "a scalable endpoint")
