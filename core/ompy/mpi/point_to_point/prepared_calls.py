"""Communicators: memory for buffered sends, and partitioned messages."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point import buffering
from ompy.mpi.point_to_point.request import Prequest, Request
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.state import CommBase


class PreparedCalls(CommBase):
    """What is prepared for messages to come."""

    __slots__ = ()

    # --- memory for buffered sends

    def Attach_buffer(self, buf: Any) -> None:
        """Lend memory for buffered sends in this communicator."""
        buffering.attach_buffer(self._state(), buf)

    def Detach_buffer(self) -> Any:
        """Take back the memory when the messages in it have been sent."""
        state = self._state()
        return buffering.detach_buffer(state, state.world)

    def Flush_buffer(self) -> None:
        """Return when the buffered messages have been sent."""
        state = self._state()
        buffering.flush_buffer(state, state.world)

    def Iflush_buffer(self) -> Request:
        """Begin `Flush_buffer`: complete when the messages buffered so far have been sent."""
        state = self._state()
        return Request._adopt(RequestState(state, buffering.begin_flush(state, state.world), None))

    def Psend_init(
        self, buf: Any, partitions: int, dest: int, tag: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A send to be started again and again, of which each partition goes when it is ready.

        Args:
            buf: the message; a count in it is of one partition.
            partitions: how many it has.
            dest: rank of the receiver, whose message may have another number of partitions.
            tag: of the message; partitioned ones match each other, in the order they are made.
            info: of no effect.
        """
        check_kind(info, "Info", "info")
        from ompy.mpi.point_to_point.partition_requests import prepare_send

        return prepare_send(self._state(), buf, partitions, dest, tag)

    def Precv_init(
        self,
        buf: Any,
        partitions: int,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """A receive to be started again and again, of which partitions come one by one.

        Args:
            buf: room for the message; a count in it is of one partition.
            partitions: how many it has.
            source: rank of the sender; not ANY_SOURCE.
            tag: of the message; not ANY_TAG.
            info: of no effect.
        """
        check_kind(info, "Info", "info")
        from ompy.mpi.point_to_point.partition_requests import prepare_receive

        return prepare_receive(self._state(), buf, partitions, source, tag)
