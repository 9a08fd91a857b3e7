"""Base of modules whose puts and gets are one operation, on memory found by its identity."""

from __future__ import annotations

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.frameworks.btl import (
    BAD_PARAM,
    NOT_AVAILABLE,
    REMOTE_READ,
    REMOTE_WRITE,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.registration import identity_of


@cclass
class RdmaModule(BtlModule):
    """Checks limits, alignment and handle of a put or get; `transfer` does it."""

    __slots__ = ()

    def put(
        self,
        endpoint: Endpoint,
        local: memoryview,
        remote_address: int,
        local_handle: object,
        remote_handle: bytes,
        flags: int,
        order: int,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """Write into the peer's registered memory."""
        if is_unsuitable(len(local), remote_address, self.put_limit, self.put_alignment):
            return NOT_AVAILABLE
        descriptor = _descriptor(local, flags, order, callback, context)
        return self._begin(REMOTE_WRITE, endpoint, descriptor, remote_handle, remote_address)

    def get(
        self,
        endpoint: Endpoint,
        local: memoryview,
        remote_address: int,
        local_handle: object,
        remote_handle: bytes,
        flags: int,
        order: int,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """Read the peer's registered memory."""
        if is_unsuitable(len(local), remote_address, self.get_limit, self.get_alignment):
            return NOT_AVAILABLE
        descriptor = _descriptor(local, flags, order, callback, context)
        return self._begin(REMOTE_READ, endpoint, descriptor, remote_handle, remote_address)

    @cfunc
    def _begin(
        self,
        access: int,
        endpoint: Endpoint,
        descriptor: Descriptor,
        remote_handle: bytes,
        offset: U64,
    ) -> int:
        identity = identity_of(remote_handle, endpoint.proc.rank)
        if not identity:
            return BAD_PARAM
        return self.transfer(access, endpoint, descriptor, identity, offset)

    @ccall
    def transfer(
        self, access: int, endpoint: Endpoint, descriptor: Descriptor, identity: U64, offset: U64
    ) -> int:
        """Move the bytes. Returns, and completes the descriptor, as the contract says.

        Args:
            access: `REMOTE_WRITE` for a put, `REMOTE_READ` for a get.
            endpoint: the peer.
            descriptor: its segment is the local memory.
            identity: of the memory the peer registered, as its table has it.
            offset: where in that memory, in bytes.
        """
        raise NotImplementedError


@ccall
def is_unsuitable(size: int, address: U64, limit: int, alignment: int) -> bool:
    """Whether a put or get of `size` bytes at a remote address is too large or not aligned."""
    return size > limit or (alignment > 1 and bool(size % alignment or address % alignment))


@cfunc
def _descriptor(
    local: memoryview,
    flags: int,
    order: int,
    callback: CompletionCallback,
    context: object,
) -> Descriptor:
    """What the completion callback is given."""
    made: Descriptor = Descriptor.__new__(Descriptor)
    made.prepare(local, flags, order)
    made.payload_size = len(local)
    made.callback = callback
    made.context = context
    return made
