"""Atomics of peers' segments by the NIC: which it computes, and how one becomes a post.

Source: seed gasnet (Background); reference gasnet.md 3.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.btl_base.atomics import WIDTH, AtomicOp, AtomicType
from ompy.frameworks.nic.gni import AtomicCommand, GniNic, PostDescriptor, PostType

from ompy_components.conduit.gni.rdma.descriptors import Descriptor
from ompy_components.conduit.gni.rdma.flags import GC_POST_COPY

COMMANDS: Final = {
    AtomicOp.ADD: AtomicCommand.ADD,
    AtomicOp.AND: AtomicCommand.AND,
    AtomicOp.OR: AtomicCommand.OR,
    AtomicOp.XOR: AtomicCommand.XOR,
    AtomicOp.SWAP: AtomicCommand.SWAP,
    AtomicOp.CSWAP: AtomicCommand.CSWAP,
    AtomicOp.MIN: AtomicCommand.MIN,
    AtomicOp.MAX: AtomicCommand.MAX,
}
_SIGNED: Final = (AtomicType.INT32, AtomicType.INT64)
_ORDERS: Final = (AtomicOp.MIN, AtomicOp.MAX)  # the NIC compares numbers with a sign


def computed_by(nic: GniNic) -> frozenset[tuple[AtomicOp, AtomicType]]:
    """What a NIC computes."""
    return frozenset(
        (op, kind)
        for op, command in COMMANDS.items()
        for kind in AtomicType
        if (command, WIDTH[kind]) in nic.atomics and (op not in _ORDERS or kind in _SIGNED)
    )


def describe_atomic(
    made: Descriptor,
    op: AtomicOp,
    kind: AtomicType,
    operand: int,
    compare: int,
    result: memoryview | None,
) -> PostDescriptor:
    """Make a descriptor that of an atomic, whose old value, if wanted, comes by its buffer."""
    post, size = made.post, WIDTH[kind]
    post.type = PostType.AMO if result is None else PostType.FETCHING_AMO
    post.command, post.amo_size = COMMANDS[op], size
    post.first_operand, post.second_operand = operand, 0
    if op is AtomicOp.CSWAP:
        post.first_operand, post.second_operand = compare, operand
    post.local_handle = None
    post.local = made.immediate[:size]
    if result is not None:
        made.flags |= GC_POST_COPY
        made.target, made.lead = result, 0
    return post
