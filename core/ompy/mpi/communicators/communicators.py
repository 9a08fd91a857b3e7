"""Communicators: who is in them, and making and freeing them."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from ompy import raw
from ompy.data.constants import UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_COMM, ERR_GROUP, ERR_KEYVAL
from ompy.frameworks.collectives.call_order import WORD, tag_of_group, word_of_group
from ompy.frameworks.collectives.coll_selection import UnderWay
from ompy.frameworks.job import called_abort
from ompy.frameworks.proc import Proc
from ompy.mpi.collectives.refusals import told_to_all
from ompy.mpi.communicators import predefined_attributes
from ompy.mpi.communicators.attributes import delete_all
from ompy.mpi.communicators.context_agreement import (
    NO_PROPOSAL,
    agree_on_context,
    exchange_words,
)
from ompy.mpi.communicators.duplicates import begin_duplicate, duplicate
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.group_state import group_of
from ompy.mpi.communicators.hardware import color_of_hardware
from ompy.mpi.communicators.making import make_communicator, with_context
from ompy.mpi.communicators.predefined_attributes import CONSTANT
from ompy.mpi.errhandler import Errhandler, call_errhandler, set_errhandler
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import plain_handle
from ompy.mpi.info import INFO_NULL, Info, hints_of, pairs_of
from ompy.mpi.integers import c_int, takes_c_ints, whole_number
from ompy.mpi.kinds import check_kind
from ompy.mpi.state import (
    CommBase,
    CommState,
    World,
    name_of_comm,
    null_communicator,
    state_of_comm,
)
from ompy.mpi.strings import c_string

if TYPE_CHECKING:
    from ompy.mpi.communicators.comm import Comm
    from ompy.mpi.communicators.intercomm import Intercomm
    from ompy.mpi.point_to_point.request import Request

_BEFORE: Final = 16  # bytes; arbitrary: colour and key, two words, go before a proposal of an id
WORLD_ID: Final = 0  # context id; reference: every rank knows it without agreement


def ranks_of(state: CommState, group: Group) -> list[int]:
    """The ranks of a group's processes in a communicator.

    Raises:
        MPIException: ERR_GROUP, one of them is not a member.
    """
    places: dict[Proc, int] = {proc: rank for rank, proc in enumerate(state.communicator.procs)}
    try:
        return [places[proc] for proc in group._state().procs]
    except KeyError as stranger:
        name = state.communicator.name
        raise state.fail(ERR_GROUP, f"{stranger.args[0]} is not a member of {name}") from None


class Communicators(CommBase):
    """Membership, creation, names, attributes, error handlers."""

    __slots__ = ()

    # --- who is in it

    def Get_group(self) -> Group:
        """Its members as a group; between two groups, those of this process's own."""
        made: Group = plain_handle(Group, group_of(state_of_comm(self)))
        return made

    @property
    def group(self) -> Group:
        """As `Get_group`."""
        return Communicators.Get_group(self)

    # --- making others

    @told_to_all("Dup")
    def Dup(self, info: Info | None = None) -> Self:
        """A communicator of the same members, with attributes as their keys want it."""
        if info is not None:
            check_kind(info, "Info", "info")
        return duplicate(self, info)

    def Clone(self) -> Self:
        """A communicator of the same members; the handle has the same class."""
        return Communicators.Dup(self)

    @told_to_all("Dup")
    def Dup_with_info(self, info: Info) -> Self:
        """A communicator of the same members, with other hints."""
        check_kind(info, "Info", "info")
        return Communicators.Dup(self, info)

    @told_to_all("Create")
    def Create(self, group: Group) -> Any:
        """A communicator of some of the members; all of them call this.

        Returns:
            COMM_NULL in those that are not in the group.
        """
        check_kind(group, "Group", "group")
        state = self._enter("Create")
        members = ranks_of(state, group)
        if state.communicator.rank not in members:
            return _null()
        return _plain(
            make_communicator(state, members, state.communicator.order.tag(), _intracomm())
        )

    @told_to_all("Split")
    def Split(self, color: int = 0, key: int = 0) -> Any:
        """A communicator of the members with the same colour, in the order of their keys.

        Returns:
            COMM_NULL where the colour is UNDEFINED.
        """
        color, key = c_int(color), c_int(key)
        return _split(self._enter("Split"), color, key)

    @told_to_all("Split_type")
    def Split_type(self, split_type: int, key: int = 0, info: Info = INFO_NULL) -> Any:
        """A communicator of the members that share something.

        Args:
            split_type: COMM_TYPE_SHARED for memory; with COMM_TYPE_HW_GUIDED and
                COMM_TYPE_RESOURCE_GUIDED `info` says what.
            key: orders the members of each.
            info: `mpi_hw_resource_type` names a type of `Get_hw_resource_info`; the members are
                those that are restricted to the same piece of it. `mpi_pset_name` names a process
                set, for COMM_TYPE_RESOURCE_GUIDED.

        Returns:
            COMM_NULL in members that share nothing of the kind.
        """
        split_type, key = c_int(split_type), c_int(key)
        check_kind(info, "Info", "info")
        state = self._enter("Split_type")
        color = color_of_hardware(state, split_type, info)
        if color < 0 and color != UNDEFINED:
            raise state.fail(ERR_ARG, f"{split_type} is no kind of split")
        return _split(state, color, key)

    def Free(self) -> None:
        """Free it; all members do."""
        state = self._state()
        if state.predefined:
            raise state.fail(ERR_COMM, f"{state.communicator.name} is predefined")
        self._dispose(state)

    def Disconnect(self) -> None:
        """Free it when everything sent in it has been delivered."""
        Communicators.Free(self)

    def _dispose(self, state: CommState) -> None:
        if state.attributes:
            delete_all(self)
        if state.hidden is not None:
            for hidden in state.hidden:
                if isinstance(hidden, CommBase):
                    hidden.free()
        communicator = state.communicator
        # what was begun goes on to its end, as MPI wants
        pending = communicator.pml.pending_receives(communicator)
        if pending or communicator.chosen is not None:
            self._release_later(state)
        else:
            state.world.process.release(communicator)
        state.size = 0  # other handles of it find nobody there
        self._inner = None

    def _release_later(self, state: CommState) -> None:
        """Release what somebody may still wait for."""
        communicator = state.communicator
        release = partial(state.world.process.release, communicator)
        lock = state.world.context.engine.lock
        with lock:
            pending = communicator.pml.pending_receives(communicator)
            if pending:
                under_way = UnderWay(lock)
                for request in pending:
                    under_way.until(request)
                release = partial(under_way.when_idle, release)
        if communicator.chosen is None:
            release()
        else:
            communicator.chosen.when_idle(release)

    def _release(self) -> None:
        state: CommState = self._inner
        if not state.predefined and state.size:
            self._dispose(state)

    # --- kinds

    def Is_inter(self) -> bool:
        """Whether it connects two groups."""
        return state_of_comm(self).communicator.between

    def Is_intra(self) -> bool:
        """Whether it is of one group."""
        return not state_of_comm(self).communicator.between

    @property
    def is_inter(self) -> bool:
        """Whether it connects two groups."""
        return state_of_comm(self).communicator.between

    @property
    def is_intra(self) -> bool:
        """Whether it is of one group."""
        return not state_of_comm(self).communicator.between

    def Get_topology(self) -> int:
        """CART, GRAPH, DIST_GRAPH or UNDEFINED."""
        return _kind_of_topology(state_of_comm(self))

    @property
    def topology(self) -> int:
        """CART, GRAPH, DIST_GRAPH or UNDEFINED."""
        return _kind_of_topology(state_of_comm(self))

    @property
    def is_topo(self) -> bool:
        """Whether it has a topology."""
        return state_of_comm(self).topology is not None

    # --- names, hints, attributes

    def Set_name(self, name: str) -> None:
        """Name it."""
        state_of_comm(self).communicator.give_name(c_string(name))

    @property
    def name(self) -> str:
        """Its name."""
        return name_of_comm(self)

    @name.setter
    def name(self, value: str) -> None:
        Communicators.Set_name(self, value)

    def Get_info(self) -> Info:
        """Its hints."""
        return hints_of(state_of_comm(self).info)

    def Set_info(self, info: Info) -> None:
        """Set its hints."""
        if type(info) is not Info:
            check_kind(info, "Info", "info")
        state: CommState = state_of_comm(self)
        state.info = pairs_of(info).copy()

    @property
    def info(self) -> Info:
        """Its hints."""
        return hints_of(state_of_comm(self).info)

    @info.setter
    def info(self, value: Info) -> None:
        check_kind(value, "Info", "value")
        Communicators.Set_info(self, value)

    def _predefined_attribute(self, keyval: int) -> Any:
        found = CONSTANT.get(keyval)
        if found is not None:
            return found
        found = predefined_attributes.attribute_value(self._state().world, keyval)
        if found is predefined_attributes.UNKNOWN:
            try:
                return super()._predefined_attribute(keyval)
            except MPIException as problem:
                raise self._state().fail(ERR_KEYVAL, problem.detail) from None
        return found

    # --- errors

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Any) -> Errhandler:
        """A new error handler that calls `f(comm, errorcode)`."""
        return Errhandler._create(cls._kind, errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """Its error handler."""
        made: Errhandler = plain_handle(Errhandler, state_of_comm(self).errhandler)
        return made

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set its error handler."""
        if type(errhandler) is not Errhandler:
            check_kind(errhandler, "Errhandler", "errhandler")
        set_errhandler(state_of_comm(self), "Comm", errhandler)

    @takes_c_ints("errorcode")
    def Call_errhandler(self, errorcode: int) -> None:
        """Call its error handler."""
        call_errhandler(self._state(), errorcode)

    @takes_c_ints("errorcode")
    def Abort(self, errorcode: int = 0) -> NoReturn:
        """End the whole job, with `errorcode` as its exit code."""
        state: CommState | None = self._inner
        if state is None:
            raise null_communicator()
        reason = called_abort(errorcode)
        name, rank = state.communicator.name, state.communicator.rank
        if name != "MPI_COMM_WORLD":
            reason += f" of {name}, where it is rank {rank}"
        state.world.abort(errorcode, reason)

    @classmethod
    def Get_parent(cls) -> Any:
        """The communicator with those that have spawned this process; a null one if nobody has.

        It is null again once this process has freed or disconnected it.
        """
        global _intercomm, _current
        if _current is None:
            from ompy.mpi.communicators.intercomm import Intercomm
            from ompy.mpi.processes.life import current

            _intercomm, _current = Intercomm, current
        world: World = _current()
        parent: CommState | None = world.parent
        return plain_handle(_intercomm, parent if parent is not None and parent.size else None)

    @told_to_all("Idup")
    def Idup(self, info: Info | None = None) -> tuple[Self, Request]:
        """Begin what `Dup` does.

        Returns:
            A handle that is null until the request is complete, and the request.
        """
        if info is not None:
            check_kind(info, "Info", "info")
        return begin_duplicate(self, info)

    @told_to_all("Idup")
    def Idup_with_info(self, info: Info) -> tuple[Self, Request]:
        """Begin what `Dup_with_info` does; returns as `Idup`."""
        check_kind(info, "Info", "info")
        return begin_duplicate(self, info)

    @classmethod
    def Join(cls, fd: int) -> Intercomm:
        """A communicator with the process of this job at the other end of a connected socket.

        Args:
            fd: descriptor of the socket; both ends call this.
        """
        from ompy.mpi.processes.ports import join_by_socket

        return join_by_socket(fd)

    def Revoke(self) -> None:
        """Have all calls in this communicator fail with ERR_REVOKED, at all members."""
        from ompy.mpi.communicators.survival import revoke_state

        revoke_state(self._state())

    def Is_revoked(self) -> bool:
        """Whether it has been revoked."""
        state = self._state()
        state.world.engine.progress()
        return state.revoked

    def Get_failed(self) -> Group:
        """The members that are known to have died, in the order in which that was heard."""
        from ompy.mpi.communicators.survival import failed_group

        return failed_group(self._state())

    def Ack_failed(self, num_to_ack: int | None = None) -> int:
        """Take note of the first members of `Get_failed`: receives from ANY_SOURCE go on.

        Returns:
            How many have been taken note of.
        """
        from ompy.mpi.communicators.survival import acknowledge_failed

        count = None if num_to_ack is None else whole_number(num_to_ack)
        return acknowledge_failed(self._state(), count)

    def Agree(self, flag: int) -> int:
        """The AND of the flags of all members that live, whoever dies meanwhile.

        Raises:
            MPIException: ERR_PROC_FAILED, at all of them: a member has died that some of them have
                not taken note of.
        """
        from ompy.mpi.communicators.survival import agree_on_flag

        return agree_on_flag(self._state(), flag)

    def Iagree(self, flag: Any) -> Request:
        """Begin what `Agree` does.

        Args:
            flag: a buffer with one int, which has the result when the request is complete.
        """
        from ompy.mpi.communicators.survival import begin_to_agree

        return begin_to_agree(self._state(), flag)

    def Shrink(self) -> Comm:
        """A communicator of the members that live; all of these call it, in a revoked one too."""
        from ompy.mpi.communicators.survival import shrink_state

        made: Comm = _plain(shrink_state(self._state()))
        return made

    def Ishrink(self) -> tuple[Comm, Request]:
        """Begin what `Shrink` does.

        Returns:
            A handle that is null until the request is complete, and the request.
        """
        from ompy.mpi.communicators.survival import begin_to_shrink

        state = self._state()
        made = _plain_null(state)
        request = begin_to_shrink(state, partial(setattr, made, "_inner"))
        return made, request


_intercomm: Any = None
_current: Any = None


def _kind_of_topology(state: CommState) -> int:
    return UNDEFINED if state.topology is None else int(state.topology.kind)


def _intracomm() -> Any:
    from ompy.mpi.communicators.intracomm import Intracomm

    return Intracomm


def _split(state: CommState, color: int, key: int) -> Any:
    """A communicator of the members that give the same colour; all of them call this."""
    if state.communicator.between:
        from ompy.mpi.communicators.between import split

        made = split(state, color, key)
        return state.api() if made is None else _plain(made)
    if color < 0 and color != UNDEFINED:
        raise state.fail(ERR_ARG, f"colour {color}: a colour is not negative, or UNDEFINED")
    made = state.call(_split_and_agree, state, color, key)
    return _null() if made is None else _plain(made)


def _split_and_agree(state: CommState, color: int, key: int) -> CommState | None:
    """The members tell their colours, keys and first proposals of an id in one exchange.

    Raises:
        MPIError: as `agree_on_context`.
    """
    parent, tag = state.communicator, state.communicator.order.tag()
    members: list[int] = []

    def ask(said: bytes) -> list[bytes]:
        if members:
            return exchange_words(parent, members, tag, said)
        told = raw.two_words(color & WORD, key & WORD) + said
        answers = exchange_words(parent, range(state.size), tag, told)
        keys = [
            (raw.signed_word(answer, 8), rank)
            for rank, answer in enumerate(answers)
            if raw.signed_word(answer, 0) == color
        ]
        keys.sort()
        members.extend([rank for _, rank in keys])
        return [answers[rank][_BEFORE:] for rank in members]

    if color == UNDEFINED:
        ask(NO_PROPOSAL)
        return None
    number = agree_on_context(state.world, ask)
    procs = [parent.procs[rank] for rank in members]
    return with_context(state.world, number, -1, _intracomm(), procs, None)


def _plain(state: CommState) -> Any:
    return state.api._adopt(state)


def _null() -> Any:
    return _intracomm()()


def _plain_null(state: CommState) -> Any:
    """A null handle of the kind that a subset of a communicator has."""
    return (state.api if state.communicator.between else _intracomm())._adopt(None)


def world_of_group(group: Group) -> CommState | None:
    """All processes of the job, for calls of members of a group; None of one with nobody in it.

    What a session made belongs to it: so what is made of this does.
    """
    from ompy.mpi.processes.life import current

    found = group._state()
    if not found.procs:
        return None
    world = found.world or current()
    return CommState(world, world.process.communicators[WORLD_ID], _intracomm())


def tag_of_text(text: Any) -> int:
    """The tag of a call of some of the job's processes, of the text that was given for one.

    Raises:
        TypeError, ValueError: it is none.
    """
    from zlib import crc32

    return crc32(c_string(text).encode())


def world_from(*given: Any) -> World:
    """This rank, as one of the groups that a user has given knows it, or the interpreter."""
    from ompy.mpi.processes.life import current

    known = (each._state().world for each in given if isinstance(each, Group) and each)
    return next((world for world in known if world is not None), None) or current()


def refuse_group_of_world(world: World, tag: int) -> None:
    """This process takes no part in a call of some of the job's processes: who asks is told.

    A negative tag is one that nobody knows.
    """
    order = world.process.communicators[WORLD_ID].order
    if tag < 0:
        order.refuse_a_group()
    else:
        order.end_group(word_of_group(tag), failed=True)


def create_group(state: CommState, group: Group, tag: int) -> Any:
    """A communicator of some members; only they call this.

    Args:
        state: the parent.
        group: the members.
        tag: keeps calls of several threads apart.

    Returns:
        A handle; COMM_NULL when this process is not in the group.
    """
    word, order = word_of_group(tag), state.communicator.order
    order.begin_group(word)
    try:
        check_kind(group, "Group", "group")
        members = ranks_of(state, group)
        made = _null()
        if state.communicator.rank in members:
            tag = tag_of_group(tag)
            made = _plain(make_communicator(state, members, tag, _intracomm(), word))
    except BaseException:
        order.end_group(word, failed=True)  # who waits for this process and asks is told
        raise
    order.end_group(word, failed=False)
    return made
