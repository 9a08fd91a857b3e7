"""What the puts and gets of most BTL modules have in common."""

from __future__ import annotations

from ompy.frameworks.btl import (
    COMPLETED,
    SEND_ALWAYS_CALLBACK,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)


def unsuitable(size: int, address: int, limit: int, alignment: int) -> bool:
    """Whether a put or get of `size` bytes at a remote address is too large or not aligned."""
    return size > limit or (alignment > 1 and bool(size % alignment or address % alignment))


def complete_at_once(
    module: BtlModule,
    endpoint: Endpoint,
    local: memoryview,
    flags: int,
    order: int,
    callback: CompletionCallback | None,
    context: object,
) -> int:
    """A put or get is done within the call: tell who wants to be told in any case.

    Returns:
        `COMPLETED`.
    """
    if flags & SEND_ALWAYS_CALLBACK and callback is not None:
        descriptor = transfer_descriptor(local, flags, order, callback, context)
        callback.completed(module, endpoint, descriptor, 0)
    return COMPLETED


def transfer_descriptor(
    local: memoryview,
    flags: int,
    order: int,
    callback: CompletionCallback | None,
    context: object,
) -> Descriptor:
    """What the completion callback of a put or get is given."""
    made = Descriptor(local, flags, order)
    made.payload_size = len(local)
    made.callback = callback
    made.context = context
    return made
