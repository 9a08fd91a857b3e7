"""Which protocol a message takes: the sender's rule, and the limits it looks at.

The rule is the seed's pseudo-code (ob1-protocols, Protocol Selection), restricted to the
protocols this component has: a message for which the seed names an RDMA protocol goes
through the Send/Receive Pipeline, as the seed does where no BTL can put or get.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.frameworks.pml import BUFFERED, SYNCHRONOUS

INLINE_MAX: Final = 256  # seed: btl_sendi && data_size <= 256


class Protocol(Enum):
    """The seed's names."""

    EAGER_IMMEDIATE = "Eager Send (Immediate)"
    EAGER_PREPARED = "Eager Send (Prepared)"
    EAGER_ALLOCATED = "Eager Send (Allocated)"
    SEND_RECEIVE_PIPELINE = "Send/Receive Pipeline"


EAGER_IMMEDIATE: Final = Protocol.EAGER_IMMEDIATE
EAGER_PREPARED: Final = Protocol.EAGER_PREPARED
EAGER_ALLOCATED: Final = Protocol.EAGER_ALLOCATED
SEND_RECEIVE_PIPELINE: Final = Protocol.SEND_RECEIVE_PIPELINE


def choose(
    mode: int,
    size: int,
    eager_payload_max: int,
    can_send_immediate: bool,
    send_inplace: bool,
) -> Protocol:
    """The protocol of one message over one rail.

    Args:
        mode: communication mode.
        size: packed bytes.
        eager_payload_max: the rail's eager limit less the largest header.
        can_send_immediate: the rail takes header and payload at once now (`sendi`).
        send_inplace: the rail sends from the user's memory.
    """
    if mode == SYNCHRONOUS:
        return SEND_RECEIVE_PIPELINE
    if can_send_immediate and size <= INLINE_MAX:
        return EAGER_IMMEDIATE
    if size > eager_payload_max:
        return SEND_RECEIVE_PIPELINE
    if mode != BUFFERED and size and send_inplace:
        return EAGER_PREPARED
    return EAGER_IMMEDIATE if can_send_immediate else EAGER_ALLOCATED
