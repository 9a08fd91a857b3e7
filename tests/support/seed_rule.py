"""The seed's pseudo-code of protocol selection, line for line, with nothing of ob1's in it.

Source: seed ob1 (Protocol Selection); for the receiver step C of the rendezvous protocols
and reference openmpi.md 3.6.
"""

from __future__ import annotations

from dataclasses import dataclass

PUT, GET = 0x2, 0x4  # reference openmpi.md 3.11
HEADER = 56  # sizeof(mca_pml_ob1_hdr_t): reference openmpi.md 3.4


@dataclass(frozen=True)
class Btl:
    """What the rule asks of the BTL, by the seed's names."""

    btl_sendi: bool
    btl_send_inplace: bool
    btl_flags: int
    btl_eager_limit: int
    btl_rndv_eager_limit: int
    btl_min_rdma_pipeline_size: int
    btl_pipeline_send_length: int
    leave_pinned: bool


def candidate(mode: str, data_size: int, contiguous_buffer: bool, btl: Btl) -> str:
    """The protocol that the sender proposes."""
    standard_mode, buffered_mode = mode == "standard", mode == "buffered"
    synchronous_mode, ready_mode = mode == "synchronous", mode == "ready"
    btl_rdma, btl_get = bool(btl.btl_flags & (PUT | GET)), bool(btl.btl_flags & GET)
    if (standard_mode or buffered_mode or ready_mode) and btl.btl_sendi and data_size <= 256:
        return "Eager Send (Immediate)"
    if data_size <= btl.btl_eager_limit - HEADER:
        if standard_mode or ready_mode:
            if data_size != 0 and btl.btl_send_inplace:
                return "Eager Send (Prepared)"
            return "Eager Send (Immediate)" if btl.btl_sendi else "Eager Send (Allocated)"
        if buffered_mode:
            return "Eager Send (Immediate)" if btl.btl_sendi else "Eager Send (Allocated)"
        if synchronous_mode:
            return "Send/Receive Pipeline"
    if buffered_mode:
        return "Buffered Pipeline"
    if contiguous_buffer:
        if btl_rdma and (
            btl.leave_pinned
            or not (btl.btl_flags & PUT)
            or data_size <= btl.btl_min_rdma_pipeline_size
        ):
            return "RDMA Direct Put" if not btl_get else "RDMA Direct Get"
        return "RDMA Pipeline"
    return "Send/Receive Pipeline"


def bytes_by_rdma(proposed: str, data_size: int, contiguous_receive: bool, btl: Btl) -> int:
    """How much of a message put or get moves, once the receiver has had its say."""
    if not contiguous_receive:
        return 0
    if proposed in ("RDMA Direct Put", "RDMA Direct Get"):
        return data_size
    if proposed == "RDMA Pipeline" and btl.btl_flags & PUT:
        if data_size <= btl.btl_min_rdma_pipeline_size:
            return 0
        first = min(btl.btl_eager_limit - HEADER, btl.btl_rndv_eager_limit)
        return max(0, data_size - first - btl.btl_pipeline_send_length)
    return 0
