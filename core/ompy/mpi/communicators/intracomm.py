"""`MPI.Intracomm`: a communicator of one group."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, AnyStr, NamedTuple, Self

from ompy.data.errors import ERR_RANK, SUCCESS
from ompy.mpi.collectives import object_collectives
from ompy.mpi.collectives import reduction_calls as reductions
from ompy.mpi.collectives.collective_requests import prepared
from ompy.mpi.collectives.collectives import Prefixes
from ompy.mpi.collectives.in_turn import together
from ompy.mpi.collectives.nonblocking_collectives import NonblockingPrefixes
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.collectives.refusals import root_of, see_kind, told_to_all
from ompy.mpi.communicators.comm import Comm
from ompy.mpi.communicators.communicators import (
    create_group,
    refuse_group_of_world,
    tag_of_text,
    world_from,
    world_of_group,
)
from ompy.mpi.communicators.group import Group
from ompy.mpi.errhandler import Errhandler
from ompy.mpi.handles import handle_for, made_plainly
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.integers import c_int, takes_c_ints, whole_number
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point.peers import check_tag, with_size
from ompy.mpi.point_to_point.request import Prequest

if TYPE_CHECKING:
    from ompy.mpi.communicators.graphs import Distgraphcomm, Graphcomm
    from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.state import CommState


class _Above(NamedTuple):
    """What is made of this module's class, and so is above it."""

    create_cart: Callable[..., Any]
    cart_map: Callable[..., int]
    create_graph: Callable[..., Graphcomm]
    create_adjacent: Callable[..., Distgraphcomm]
    create_dist_graph: Callable[..., Distgraphcomm]
    graph_map: Callable[..., int]


_known: _Above | None = None


def _above() -> _Above:
    global _known  # noqa: PLW0603 - imported when it is first asked for
    if _known is None:
        from ompy.mpi.communicators import cartesian, graphs

        _known = _Above(
            cartesian.create_cart,
            cartesian.cart_map,
            graphs.create_graph,
            graphs.create_adjacent,
            graphs.create_dist_graph,
            graphs.graph_map,
        )
    return _known


@made_plainly
class Intracomm(Prefixes, NonblockingPrefixes, Comm):
    """A communicator of one group."""

    __slots__ = ()

    def __new__(cls, comm: Comm | None = None) -> Self:
        """A null handle, or another one for the same communicator."""
        made: Self = handle_for(cls, comm)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return super()._takes(state) and not state.communicator.between

    def Create_group(self, group: Group, tag: int = 0) -> Intracomm:
        """A communicator of some members; only they call this."""
        state = self._state()
        try:
            number = c_int(tag)
            check_tag(state, number)
        except Exception:
            state.communicator.order.refuse_a_group()  # who waits for this process and asks is told
            raise
        made: Intracomm = create_group(state, group, number)
        return made

    @classmethod
    def Create_from_group(
        cls,
        group: Group,
        stringtag: str = "org.mpi4py",
        info: Info = INFO_NULL,
        errhandler: Errhandler | None = None,
    ) -> Intracomm:
        """A communicator of a group of the job's processes; only they call this.

        Args:
            group: the members.
            stringtag: keeps calls of several threads apart.
            info: hints.
            errhandler: of the new communicator.
        """
        tag = -1
        try:
            tag = tag_of_text(stringtag)
            check_kind(group, "Group", "group")
            check_kind(info, "Info", "info")
            if errhandler is not None:
                check_kind(errhandler, "Errhandler", "errhandler")
            everybody = world_of_group(group)
        except Exception:
            refuse_group_of_world(world_from(group), tag)
            raise
        if everybody is None:
            return Intracomm()
        made: Intracomm = create_group(everybody, group, tag)
        if made:
            if info:
                made.Set_info(info)
            if errhandler is not None:
                made.Set_errhandler(errhandler)
        return made

    @told_to_all("Create_cart")
    def Create_cart(
        self,
        dims: Sequence[int],
        periods: Sequence[bool] | bool | None = None,
        reorder: bool = False,
    ) -> Any:
        """A communicator whose members are the points of a grid.

        Args:
            dims: points in each dimension.
            periods: whether each dimension is a ring; none is by default.
            reorder: of no effect.

        Returns:
            COMM_NULL in members there is no point for.
        """
        return _above().create_cart(self._enter("Create_cart"), dims, periods)

    def Cart_map(self, dims: Sequence[int], periods: Sequence[bool] | bool | None = None) -> int:
        """The rank this process would have in such a grid, or UNDEFINED."""
        return _above().cart_map(self._state(), dims, periods)

    def Scan_init(
        self, sendbuf: Any, recvbuf: Any, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Scan` does."""
        if type(op) is not Op:
            see_kind(self, "Scan_init", op, "Op", "op")
        see_kind(self, "Scan_init", info, "Info", "info")
        return prepared(
            reductions.reduction(self._enter("Scan_init"), "scan", sendbuf, recvbuf, op)
        )

    def Exscan_init(
        self, sendbuf: Any, recvbuf: Any, op: Op = SUM, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for what `Exscan` does."""
        if type(op) is not Op:
            see_kind(self, "Exscan_init", op, "Op", "op")
        see_kind(self, "Exscan_init", info, "Info", "info")
        return prepared(
            reductions.reduction(self._enter("Exscan_init"), "exscan", sendbuf, recvbuf, op)
        )

    def scan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """The objects of members 0 to this one, combined."""
        return together(self._state(), "scan", 0, object_collectives.scan, sendobj, op)

    def exscan(self, sendobj: Any, op: Op | Callable[[Any, Any], Any] = SUM) -> Any:
        """The objects of the members before this one, combined; None at the first."""
        return together(self._state(), "exscan", 0, object_collectives.exscan, sendobj, op)

    @told_to_all("Create_graph")
    def Create_graph(
        self, index: Sequence[int], edges: Sequence[int], reorder: bool = False
    ) -> Graphcomm:
        """A communicator with a graph that every member knows whole.

        Args:
            index: where the edges of each node end in `edges`; a 0 may stand before it.
            edges: the node that each edge leads to.
            reorder: of no effect.

        Returns:
            COMM_NULL in members that are no node.
        """
        return _above().create_graph(self._enter("Create_graph"), index, edges)

    @told_to_all("Create_dist_graph_adjacent")
    def Create_dist_graph_adjacent(
        self,
        sources: Sequence[int],
        destinations: Sequence[int],
        sourceweights: Sequence[int] | None = None,
        destweights: Sequence[int] | None = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """A communicator with a graph of which each member tells its own edges.

        Args:
            sources: who sends here.
            destinations: who receives from here.
            sourceweights: of the edges from `sources`; UNWEIGHTED or None for no weights.
            destweights: of the edges to `destinations`, likewise.
            info: of no effect.
            reorder: of no effect.
        """
        check_kind(info, "Info", "info")
        return _above().create_adjacent(
            self._enter("Create_dist_graph_adjacent"),
            sources,
            destinations,
            sourceweights,
            destweights,
        )

    @told_to_all("Create_dist_graph")
    def Create_dist_graph(
        self,
        sources: Sequence[int],
        degrees: Sequence[int],
        destinations: Sequence[int],
        weights: Sequence[int] | None = None,
        info: Info = INFO_NULL,
        reorder: bool = False,
    ) -> Distgraphcomm:
        """A communicator with a graph of which each member tells any edges.

        Args:
            sources: where edges begin.
            degrees: how many begin at each of `sources`.
            destinations: where they lead, those of the first source first.
            weights: of the edges; UNWEIGHTED or None for no weights.
            info: of no effect.
            reorder: of no effect.
        """
        check_kind(info, "Info", "info")
        return _above().create_dist_graph(
            self._enter("Create_dist_graph"), sources, degrees, destinations, weights
        )

    def Graph_map(self, index: Sequence[int], edges: Sequence[int]) -> int:
        """The rank this process would have in a graph, or UNDEFINED."""
        return _above().graph_map(self._state(), index, edges)

    @told_to_all("Create_intercomm")
    def Create_intercomm(
        self, local_leader: int, peer_comm: Intracomm, remote_leader: int, tag: int = 0
    ) -> Intercomm:
        """A communicator between this group and another; all of both call this.

        Args:
            local_leader: rank in this group of the process that talks to the other group.
            peer_comm: a communicator of both leaders; the others may give None.
            remote_leader: rank in that of the other group's leader.
            tag: keeps calls of several threads apart.
        """
        from ompy.mpi.communicators.between import create, refuse_to_lead
        from ompy.mpi.communicators.intercomm import Intercomm

        peer = getattr(peer_comm, "_inner", None)
        try:
            leader, remote, number = self._leaders(local_leader, peer_comm, remote_leader, tag)
        except Exception as problem:
            refuse_to_lead(self._inner, local_leader, (peer, remote_leader, tag), problem)
            raise
        made: Intercomm = Intercomm._adopt(create(self._state(), leader, peer, remote, number))
        return made

    @takes_c_ints("local_leader", "remote_leader", "tag")
    def _leaders(
        self, local_leader: int, peer_comm: Intracomm, remote_leader: int, tag: int
    ) -> tuple[int, int, int]:
        """Begin a `Create_intercomm`, whose arguments these are. Returns those that are integers.

        Raises:
            TypeError, OverflowError, MPIException: one of them cannot be.
        """
        check_kind(peer_comm, "Comm", "peer_comm")
        state = self._enter("Create_intercomm", local_leader)
        check_tag(state, tag)
        if not 0 <= local_leader < state.size:
            text = f"local leader {local_leader} is not in {with_size(state)}"
            raise state.fail(ERR_RANK, text)
        return local_leader, remote_leader, tag

    @told_to_all("Spawn")
    def Spawn(
        self,
        command: PathLike[AnyStr] | str | bytes,
        args: Sequence[str] | None = None,
        maxprocs: int = 1,
        info: Info = INFO_NULL,
        root: int = 0,
        errcodes: list[int] | None = None,
    ) -> Intercomm:
        """Start processes of one program; all members call this.

        Args:
            command: name or path of the program; this and the next three are the root's to say.
            args: its arguments.
            maxprocs: how many processes; all of them are started, or none.
            info: `host` names hosts of this job, separated by commas, `wdir` the working directory,
                `path` directories where the program is looked for, `env` variables, a line each.
            root: whose arguments count.
            errcodes: gets an error code for each process.

        Returns:
            A communicator with the new processes, who have it by `Get_parent`.
        """
        if type(root) is not int:
            root = root_of(self, "Spawn", root)
        check_kind(info, "Info", "info")
        from ompy.mpi.processes.spawning import programs_of, spawn

        state = self._enter("Spawn", root)
        programs = partial(programs_of, [command], [args or ()], [maxprocs], info)
        made = spawn(state, root, programs)
        if errcodes is not None:
            errcodes[:] = [SUCCESS] * made.size
        return self._between(made)

    @told_to_all("Spawn")
    def Spawn_multiple(
        self,
        command: Sequence[PathLike[AnyStr] | str | bytes],
        args: Sequence[Sequence[str]] | None = None,
        maxprocs: Sequence[int] | None = None,
        info: Sequence[Info] | Info = INFO_NULL,
        root: int = 0,
        errcodes: list[list[int]] | None = None,
    ) -> Intercomm:
        """Start processes of several programs, which have one COMM_WORLD; all members call this.

        Args:
            command: each program, as for `Spawn`.
            args: the arguments of each.
            maxprocs: how many processes of each.
            info: hints of each, or of all.
            root: whose arguments count.
            errcodes: gets a list for each program, with an error code for each process.
        """
        if type(root) is not int:
            root = whole_number(root)
        from ompy.mpi.processes.spawning import counts_of, programs_of, spawn

        state = self._enter("Spawn", root)
        made = spawn(state, root, partial(programs_of, command, args, maxprocs, info))
        if errcodes is not None:
            errcodes[:] = [[SUCCESS] * count for count in counts_of(command, maxprocs)]
        return self._between(made)

    @told_to_all("Accept")
    def Accept(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm:
        """Wait for a group that connects to a port of the root; all members call this.

        Args:
            port_name: of the port; the root's to say.
            info: of no effect.
            root: who leads this group.
        """
        if type(root) is not int:
            root = root_of(self, "Accept", root)
        check_kind(info, "Info", "info")
        from ompy.mpi.processes.ports import meet_at_port

        return self._between(
            meet_at_port(self._enter("Accept", root), "accept", port_name, info, root)
        )

    @told_to_all("Connect")
    def Connect(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm:
        """Meet the group that accepts at a port; all members call this, and wait for that.

        Args:
            port_name: of the port; this and the next are the root's to say.
            info: `timeout`, in seconds, after which it is an error that nobody accepts.
            root: who leads this group.

        Raises:
            MPIException: ERR_PORT, there is no such port, or nobody has accepted there in time.
        """
        if type(root) is not int:
            root = root_of(self, "Connect", root)
        check_kind(info, "Info", "info")
        from ompy.mpi.processes.ports import meet_at_port

        return self._between(
            meet_at_port(self._enter("Connect", root), "connect", port_name, info, root)
        )

    def _between(self, made: CommState) -> Intercomm:
        from ompy.mpi.communicators.intercomm import Intercomm

        made.errhandler = self._state().errhandler
        return Intercomm._adopt(made)
