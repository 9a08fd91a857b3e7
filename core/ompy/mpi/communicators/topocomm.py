"""`MPI.Topocomm`: communicators whose members have neighbours."""

from __future__ import annotations

from typing import Any, Self

from ompy.mpi.buffers.spec import even_blocks, vector_blocks
from ompy.mpi.collectives import neighbour_calls as calls
from ompy.mpi.collectives.collective_calls import passed_along
from ompy.mpi.collectives.collective_requests import begun, completed, prepared
from ompy.mpi.collectives.object_collectives import gathered_along_edges, swapped_along_edges
from ompy.mpi.collectives.refusals import see_kind, told_to_all
from ompy.mpi.communicators.comm import Comm
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.handles import handle_for, made_plainly
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.point_to_point.request import Prequest, Request
from ompy.mpi.state import CommState, begin_call


@made_plainly
class Topocomm(Intracomm):
    """A communicator with a topology.

    Its neighbourhood collectives are calls of all members, though data go along the edges only.
    """

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        made: Self = handle_for(cls, comm)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState) and state.topology is not None

    @property
    def degrees(self) -> tuple[int, int]:
        """How many neighbours send here, and how many receive from here."""
        incoming, outgoing = self.inoutedges
        return len(incoming), len(outgoing)

    @property
    def indegree(self) -> int:
        """How many neighbours send here."""
        return len(self.inedges)

    @property
    def outdegree(self) -> int:
        """How many neighbours receive from here."""
        return len(self.outedges)

    @property
    def inoutedges(self) -> tuple[list[int], list[int]]:
        """The neighbours that send here, and those that receive from here."""
        found = calls.edges(self._state())
        return list(found.sources), list(found.targets)

    @property
    def inedges(self) -> list[int]:
        """The neighbours that send here."""
        return self.inoutedges[0]

    @property
    def outedges(self) -> list[int]:
        """The neighbours that receive from here."""
        return self.inoutedges[1]

    def Neighbor_allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send one block to every target, and receive one from every source."""
        state = begin_call(self, "Neighbor_allgather")
        if not passed_along(state, sendbuf, recvbuf, calls.neighbours(state), True, False):
            completed(calls.allgather(state, sendbuf, recvbuf, even_blocks))

    def Neighbor_allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As `Neighbor_allgather`, with blocks of any size to receive."""
        state = begin_call(self, "Neighbor_allgatherv")
        if not passed_along(state, sendbuf, recvbuf, calls.neighbours(state), True, True):
            completed(calls.allgather(state, sendbuf, recvbuf, vector_blocks))

    def Neighbor_alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        """Send a block of its own to every target, and receive one from every source."""
        state = begin_call(self, "Neighbor_alltoall")
        if not passed_along(state, sendbuf, recvbuf, calls.neighbours(state), False, False):
            completed(calls.alltoall(state, sendbuf, recvbuf, even_blocks))

    def Neighbor_alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        """As `Neighbor_alltoall`, with blocks of any size."""
        state = begin_call(self, "Neighbor_alltoallv")
        if not passed_along(state, sendbuf, recvbuf, calls.neighbours(state), False, True):
            completed(calls.alltoall(state, sendbuf, recvbuf, vector_blocks))

    def Neighbor_alltoallw(self, sendbuf: Any, recvbuf: Any) -> None:
        """As `Neighbor_alltoall`, with blocks of any size and datatype."""
        state = begin_call(self, "Neighbor_alltoallw")
        completed(calls.alltoallw(state, sendbuf, recvbuf))

    def Ineighbor_allgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_allgather` does."""
        state = begin_call(self, "Ineighbor_allgather")
        return begun(calls.allgather(state, sendbuf, recvbuf, even_blocks))

    def Ineighbor_allgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_allgatherv` does."""
        state = begin_call(self, "Ineighbor_allgatherv")
        return begun(calls.allgather(state, sendbuf, recvbuf, vector_blocks))

    def Ineighbor_alltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_alltoall` does."""
        state = begin_call(self, "Ineighbor_alltoall")
        return begun(calls.alltoall(state, sendbuf, recvbuf, even_blocks))

    def Ineighbor_alltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_alltoallv` does."""
        state = begin_call(self, "Ineighbor_alltoallv")
        return begun(calls.alltoall(state, sendbuf, recvbuf, vector_blocks))

    def Ineighbor_alltoallw(self, sendbuf: Any, recvbuf: Any) -> Request:
        """Begin what `Neighbor_alltoallw` does."""
        state = begin_call(self, "Ineighbor_alltoallw")
        return begun(calls.alltoallw(state, sendbuf, recvbuf))

    def Neighbor_allgather_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_allgather` does; `info` has no effect."""
        see_kind(self, "Neighbor_allgather_init", info, "Info", "info")
        state = begin_call(self, "Neighbor_allgather_init")
        return prepared(calls.allgather(state, sendbuf, recvbuf, even_blocks))

    def Neighbor_allgatherv_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_allgatherv` does; `info` has no effect."""
        see_kind(self, "Neighbor_allgatherv_init", info, "Info", "info")
        state = begin_call(self, "Neighbor_allgatherv_init")
        return prepared(calls.allgather(state, sendbuf, recvbuf, vector_blocks))

    def Neighbor_alltoall_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_alltoall` does; `info` has no effect."""
        see_kind(self, "Neighbor_alltoall_init", info, "Info", "info")
        state = begin_call(self, "Neighbor_alltoall_init")
        return prepared(calls.alltoall(state, sendbuf, recvbuf, even_blocks))

    def Neighbor_alltoallv_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_alltoallv` does; `info` has no effect."""
        see_kind(self, "Neighbor_alltoallv_init", info, "Info", "info")
        state = begin_call(self, "Neighbor_alltoallv_init")
        return prepared(calls.alltoall(state, sendbuf, recvbuf, vector_blocks))

    def Neighbor_alltoallw_init(
        self, sendbuf: Any, recvbuf: Any, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Neighbor_alltoallw` does; `info` has no effect."""
        see_kind(self, "Neighbor_alltoallw_init", info, "Info", "info")
        state = begin_call(self, "Neighbor_alltoallw_init")
        return prepared(calls.alltoallw(state, sendbuf, recvbuf))

    @told_to_all("neighbor_allgather")
    def neighbor_allgather(self, sendobj: Any) -> list[Any]:
        """The object of every source; this member's goes to every target.

        Returns:
            The objects in the order of the sources; None in place of PROC_NULL's.
        """
        state = self._state()
        neighbours = calls.neighbours(state)
        objects = [sendobj] * len(neighbours.targets)
        return gathered_along_edges(state, objects, neighbours)

    @told_to_all("neighbor_alltoall")
    def neighbor_alltoall(self, sendobj: list[Any]) -> list[Any]:
        """An object of every source; item i of this member's goes to target i.

        Returns:
            The objects in the order of the sources; None in place of PROC_NULL's.
        """
        state = self._state()
        neighbours = calls.neighbours(state)
        expected = len(neighbours.targets)
        objects = [None] * expected if sendobj is None else list(sendobj)
        if len(objects) != expected:
            raise ValueError(f"expecting {expected} items, got {len(objects)}")
        return swapped_along_edges(state, objects, neighbours)
