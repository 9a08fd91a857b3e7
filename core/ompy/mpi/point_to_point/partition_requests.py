"""Requests for partitioned messages, as `Comm.Psend_init` and `Comm.Precv_init` make them."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.errors import ERR_ARG, ERR_RANK, ERR_TAG
from ompy.data.message import Message
from ompy.mpi.buffers.spec import message
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point.partition_channels import Parts
from ompy.mpi.point_to_point.partitioned import PartitionedReceive, PartitionedSend
from ompy.mpi.point_to_point.point_to_point import has_source, has_target
from ompy.mpi.point_to_point.request import Prequest
from ompy.mpi.state import CommState


def prepare_send(state: CommState, buf: Any, partitions: int, dest: Any, tag: Any) -> Prequest:
    """A request for a partitioned send; its arguments are those of `Comm.Psend_init`."""
    there = has_target(state, dest, tag)
    room, parts = _divided(state, buf, partitions, False)
    made = PartitionedSend(state, room, parts, buf, whole_number(dest), whole_number(tag))
    if there:
        made.tell_receiver()
    return Prequest._adopt(made)


def prepare_receive(state: CommState, buf: Any, partitions: int, source: Any, tag: Any) -> Prequest:
    """A request for a partitioned receive; its arguments are those of `Comm.Precv_init`."""
    if source == ANY_SOURCE:
        raise state.fail(ERR_RANK, "a partitioned receive names its source: not ANY_SOURCE")
    there = has_source(state, source, tag)
    if tag == ANY_TAG and there:
        raise state.fail(ERR_TAG, "a partitioned receive names its tag: not ANY_TAG")
    room, parts = _divided(state, buf, partitions, True)
    made = PartitionedReceive(state, room, parts, buf, whole_number(source), whole_number(tag))
    if there:
        made.await_offer()
    return Prequest._adopt(made)


def _divided(state: CommState, buf: Any, partitions: int, writable: bool) -> tuple[Message, Parts]:
    """A message, and its partitions.

    Raises:
        MPIException: ERR_ARG, there are less than none.
    """
    count = whole_number(partitions)
    if count < 0:
        raise state.fail(ERR_ARG, f"{count} partitions: a message has none or more")
    first = message(buf, writable, count).message
    whole = Message(first.memory, first.origin, first.count * count, first.layout)
    return whole, Parts(count, first.size)
