"""Which protocol a message takes: the sender's rule.

The rule is the seed's pseudo-code (ob1-protocols, Protocol Selection). What it names is the
sender's candidate: the receiver may decide otherwise (`rendezvous_receive`).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.compiled import ccall
from ompy.frameworks.btl import GET, PUT
from ompy.frameworks.pml import BUFFERED, SYNCHRONOUS

INLINE_MAX: Final = 256  # seed ob1: btl_sendi && data_size <= 256


class Protocol(Enum):
    """The seed's names."""

    __hash__ = object.__hash__  # members are keys of tables; Enum's own is a call of Python code

    EAGER_IMMEDIATE = "Eager Send (Immediate)"
    EAGER_PREPARED = "Eager Send (Prepared)"
    EAGER_ALLOCATED = "Eager Send (Allocated)"
    RDMA_DIRECT_PUT = "RDMA Direct Put"
    RDMA_DIRECT_GET = "RDMA Direct Get"
    SEND_RECEIVE_PIPELINE = "Send/Receive Pipeline"
    RDMA_PIPELINE = "RDMA Pipeline"
    BUFFERED_PIPELINE = "Buffered Pipeline"


EAGER_IMMEDIATE: Final = Protocol.EAGER_IMMEDIATE
EAGER_PREPARED: Final = Protocol.EAGER_PREPARED
EAGER_ALLOCATED: Final = Protocol.EAGER_ALLOCATED
RDMA_DIRECT_PUT: Final = Protocol.RDMA_DIRECT_PUT
RDMA_DIRECT_GET: Final = Protocol.RDMA_DIRECT_GET
SEND_RECEIVE_PIPELINE: Final = Protocol.SEND_RECEIVE_PIPELINE
RDMA_PIPELINE: Final = Protocol.RDMA_PIPELINE
BUFFERED_PIPELINE: Final = Protocol.BUFFERED_PIPELINE


@ccall
def choose(
    mode: int,
    size: int,
    eager_payload_max: int,
    can_send_immediate: bool,
    send_inplace: bool,
) -> Protocol | None:
    """The protocol of a message that fits one fragment of a rail.

    Args:
        mode: communication mode.
        size: packed bytes.
        eager_payload_max: the rail's eager limit less the largest header.
        can_send_immediate: the rail takes header and payload at once now (`sendi`).
        send_inplace: the rail sends from the user's memory.

    Returns:
        The protocol; None when the message is too large, see `choose_large`.
    """
    if mode == SYNCHRONOUS:
        return SEND_RECEIVE_PIPELINE if size <= eager_payload_max else None
    if can_send_immediate and size <= INLINE_MAX:
        return EAGER_IMMEDIATE
    if size > eager_payload_max:
        return None
    if mode != BUFFERED and size and send_inplace:
        return EAGER_PREPARED
    return EAGER_IMMEDIATE if can_send_immediate else EAGER_ALLOCATED


@ccall
def whole_max(mode: int, eager_payload_max: int, lend_least: int) -> int:
    """Bytes of a message at most that go as one fragment.

    A synchronous message waits for its receiver in any case. So where a large eager one may be
    lent, it is better got from the sender's memory.

    Args:
        mode: communication mode.
        eager_payload_max: the rail's eager limit less the largest header.
        lend_least: bytes from which on the rail may lend messages.
    """
    return min(eager_payload_max, lend_least - 1) if mode == SYNCHRONOUS else eager_payload_max


@ccall
def choose_bare(mode: int, size: int, eager_payload_max: int) -> Protocol | None:
    """The protocol of a message whose first fragment may carry none of it.

    Returns:
        The protocol; None when the message is large, see `choose_large`.
    """
    if mode == BUFFERED:
        return BUFFERED_PIPELINE
    return SEND_RECEIVE_PIPELINE if size <= eager_payload_max else None


@ccall
def first_payload(size: int, eager_payload_max: int, rndv_eager_limit: int) -> int:
    """Bytes of a message that its RNDV carries.

    A small synchronous message goes whole; of others `rndv_eager_limit` is the most (reference
    openmpi.md 3.5).

    Args:
        size: packed bytes.
        eager_payload_max: the rail's eager limit less the largest header.
        rndv_eager_limit: the rail's.
    """
    return size if size <= eager_payload_max else min(eager_payload_max, rndv_eager_limit)


@ccall
def choose_large(mode: int, contiguous: bool, direct_flags: int) -> Protocol:
    """The protocol of a message that does not fit one fragment.

    Args:
        mode: communication mode.
        contiguous: the message is one piece of memory.
        direct_flags: flags of the first rail that moves the whole message by RDMA, of those
            that `suits_direct` leaves; 0 when there is none.
    """
    if mode == BUFFERED:
        return BUFFERED_PIPELINE
    if not contiguous:
        return SEND_RECEIVE_PIPELINE
    if not direct_flags:
        return RDMA_PIPELINE
    return RDMA_DIRECT_GET if direct_flags & GET else RDMA_DIRECT_PUT


@ccall
def suits_direct(flags: int, min_rdma_pipeline_size: int, cheap: bool, size: int) -> bool:
    """Whether a rail moves a whole message of `size` bytes by RDMA, rather than in a pipeline.

    A pipeline of puts registers piece by piece while others are moved. That is worth it for
    large messages, unless to register is `cheap`, as registrations are kept or it costs nothing,
    or the rail cannot put.
    """
    if not flags & (PUT | GET):
        return False
    return cheap or not flags & PUT or size <= min_rdma_pipeline_size
