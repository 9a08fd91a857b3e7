"""What MPI keeps for one rank, each of its communicators, for reductions and groups.

A `World` belongs to a RankProcess, never to the interpreter: the virtual world has many. A session
has a branch of the rank's one.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from typing import Any, ClassVar, NoReturn

from ompy import outputs
from ompy.compiled import ccall, cclass
from ompy.data.errors import (
    CLASS_TEXT,
    ERR_COMM,
    ERR_PROC_FAILED,
    ERR_REVOKED,
    MPIError,
)
from ompy.data.layout import Layout
from ompy.data.operation import Operation
from ompy.data.request import Request, Waitable
from ompy.engine.base import Engine
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.call_order import detail_of
from ompy.frameworks.collectives.coll_selection import SelectedColl
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import Pml
from ompy.mpi import constants
from ompy.mpi.callbacks import guarded
from ompy.mpi.communicators.attributes import Attributed, AttributedState
from ompy.mpi.errhandler import ARE_FATAL, RETURN, ErrhandlerState
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State
from ompy.mpi.kinds import check_kind
from ompy.runtime.ranks.process import RankProcess


@cclass
class ContextIds:
    """The context ids of one rank, whatever session its communicators are of.

    Attributes:
        agreements: numbers of those on ids.
        reserved: those that are being agreed on.
        following: where the search for a free one begins.
    """

    agreements: Any
    following: int
    reserved: set[int]
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.agreements = count(1)
        self.reserved = set()
        self.following = 2  # reference: 0 is COMM_WORLD, 1 is COMM_SELF


@cclass
class World:
    """What MPI keeps for one rank, or for one session of it.

    Attributes:
        process: the rank.
        context: of the rank.
        engine: of the rank.
        errors: error handler of new communicators.
        ids: context ids.
        base: the rank's one, where this is a session's; else None.
        file_errors: error handler of new files, and of what fails without one.
        buffers: attached for buffered sends, or None.
        parent: the communicator with those that have spawned this process, or None.
        waiters: threads of the rank that wait for any of several requests.
        fast_reduce: objects are reduced along a tree.
    """

    base: Any
    buffers: Any
    context: RankContext
    engine: Engine
    errors: ErrhandlerState
    fast_reduce: bool
    file_errors: ErrhandlerState
    ids: ContextIds
    parent: Any
    process: RankProcess
    waiters: list[Waitable]
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(
        self,
        process: RankProcess,
        errors: ErrhandlerState = RETURN,
        *,
        fast_reduce: bool = True,
    ) -> None:
        self.process = process
        self.context = process.context
        self.engine = process.context.engine
        self.errors = errors
        self.ids = ContextIds()
        self.base = None
        self.file_errors = RETURN  # MPI 4.1, 14.7: not as communicators have it
        self.buffers = None
        self.parent = None
        self.waiters = []
        self.fast_reduce = fast_reduce

    def branch(self) -> World:
        """What is kept for a session: only what is attached to it is its own."""
        made = World(self.process, self.errors, fast_reduce=self.fast_reduce)
        made.base, made.ids, made.waiters = self, self.ids, self.waiters
        return made

    def abort(self, code: int, reason: str) -> NoReturn:
        """End the job; what was printed is seen first."""
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):  # closed, or there is none
                continue
        self.context.wireup.abort(code, reason)
        raise SystemExit(code % 256)  # a wire-up that lives on in its process


@cclass
class CommState(AttributedState):
    """What MPI keeps for a communicator.

    Attributes:
        api: class of its handles.
        world: the rank.
        communicator: as PML and coll see it.
        pml: moves its messages.
        size: members.
        predefined: it is COMM_WORLD or COMM_SELF.
        revoked: calls in it fail.
        errhandler: what happens when a call fails.
        group: what handles of its group refer to, or None when nobody has asked.
        attributes: by key, or None.
        info: hints, or None.
        topology: or None.
        neighbours: of this member in it, or in the other group, when somebody has asked; else None.
        buffers: attached to it for buffered sends, or None.
        locks: for calls that take several messages, by name.
        hidden: a duplicate for messages of Python packages on top, its last tag, and between groups
            a communicator of the own one and whether that is the first; or None.
        partitions: what its partitioned messages share (`partition_channels.py`), or None.
    """

    api: Any
    buffers: Any
    communicator: Communicator
    errhandler: ErrhandlerState
    group: Any
    hidden: Any
    info: dict[str, str] | None
    locks: dict[Any, Any] | None
    partitions: Any
    pml: Pml
    predefined: bool
    revoked: bool
    size: int
    topology: Any
    neighbours: Any
    world: World
    __slots__ = tuple(__annotations__)

    def __init__(self, world: World, communicator: Communicator, api: Any) -> None:
        self.number = 0
        self.api = api
        self.world = world
        self.communicator = communicator
        self.pml = communicator.pml
        self.size = communicator.size
        self.predefined = False
        self.revoked = False
        self.errhandler = world.errors
        self.attributes = None
        self.group = None
        self.info = None
        self.topology = None
        self.neighbours = None
        self.buffers = None
        self.locks = None
        self.hidden = None
        self.partitions = None
        recovery = world.context.recovery
        if recovery is not None:
            recovery.on_revoke(communicator, self._revoked)

    def _revoked(self) -> None:
        """Calls in it fail from now on."""
        self.revoked = True
        self.pml = self.communicator.pml

    @ccall
    def check_not_revoked(self) -> None:
        """For calls that no message follows from: they fail in a revoked communicator, too.

        Raises:
            MPIException: ERR_REVOKED.
        """
        if self.revoked:
            raise self.fail(ERR_REVOKED, f"{self.communicator.name} has been revoked")

    def share_fate_of(self, parent: CommState) -> None:
        """It belongs to a window or a file, and is revoked with the communicator of that."""
        recovery = self.world.context.recovery
        if recovery is not None:
            recovery.share_fate(parent.communicator, self.communicator)

    def give_up_after(self, problem: MPIError) -> None:
        """Of a window or file: after the death of a member the others get an error there, too.

        There is nothing by which a program could revoke these.
        """
        recovery = self.world.context.recovery
        if recovery is not None and problem.code == ERR_PROC_FAILED and self.size:
            recovery.revoke(self.communicator)

    @property
    def coll(self) -> SelectedColl:
        """Its collectives."""
        return self.collectives()

    @ccall
    def collectives(self) -> SelectedColl:
        """The same as `coll`, which compiled callers find faster."""
        found: SelectedColl | None = self.communicator.chosen
        if found is None:
            found = self.communicator.collectives()
        assert found is not None, "a communicator is made with its collectives"
        return found

    @ccall
    def watched(self, begun: Request) -> Request:
        """What a program gets for an operation that is done when it has begun.

        Where all that can be is tried, the world says when it is told of that.
        """
        line = self.communicator.context.direct
        return begun if line is None else line.watch_begun(self.communicator.context_id, begun)

    @ccall
    def raised(self, problem: MPIError) -> MPIException:
        """The exception for a call that failed, after the error handler had its say."""
        handler = self.errhandler
        if handler.ends_job:
            self._fatal(problem, "this communicator" if handler is ARE_FATAL else "this process")
        if handler.function is not None:
            guarded(handler.function, self.api._adopt(self), problem.code)
        if isinstance(problem, MPIException):
            return problem
        made = MPIException(problem.code, problem.detail)
        made.__cause__ = problem.__cause__
        return made

    @ccall
    def fail(self, code: int, detail: str) -> MPIException:
        """The exception for an argument that is wrong, after the error handler had its say."""
        return self.raised(MPIException(code, detail))

    def call(self, function: Any, *arguments: Any, **named: Any) -> Any:
        """Call something below.

        Raises:
            MPIException: it failed; the error handler had its say.
        """
        try:
            return function(*arguments, **named)
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__

    def _fatal(self, problem: MPIError, whose: str) -> NoReturn:
        rank = self.communicator.rank
        code = problem.code if problem.code in CLASS_TEXT else 1
        text = f"rank {rank} of {self.communicator.name}: {problem} (errors end the job here)"
        outputs.tell(f"*** {text}; the error handler of {whose} is fatal\n", "fatal error", "error")
        self.world.abort(code, f"{problem} (errors end the job here)")


def null_communicator() -> MPIException:
    """The exception for a call on a communicator that is null."""
    return MPIException(
        ERR_COMM,
        "the communicator is null: COMM_NULL, freed, or MPI is not initialised or finalised",
    )


@ccall
def state_of_comm(comm: Handle) -> CommState:
    """What a handle of a communicator refers to.

    Raises:
        MPIException: ERR_COMM, it is null.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    return state


@ccall
def begin_call(comm: Handle, name: str, root: Any = 0) -> CommState:
    """The same, for a call that all members make together; `CommBase._enter` says more."""
    state = state_of_comm(comm)
    state.communicator.order.begin(KINDS[name], detail_of(root))
    return state


class CommBase(Attributed):
    """A handle of a communicator."""

    __slots__ = ()
    _kind: ClassVar[str] = "Comm"

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, CommState)

    def _state(self) -> CommState:
        """What the handle refers to.

        Raises:
            MPIException: ERR_COMM, it is null.
        """
        return state_of_comm(self)

    def _enter(self, name: str, root: Any = 0) -> CommState:
        """What the handle refers to, for a call that all members make together.

        Args:
            name: of the call, as `call_kinds.py` has it.
            root: as the user gave it.

        Raises:
            MPIException: ERR_COMM, it is null.
        """
        return begin_call(self, name, root)

    def _attributes(self) -> CommState:
        return state_of_comm(self)

    def Get_size(self) -> int:
        """How many members there are."""
        return state_of_comm(self).size

    def Get_rank(self) -> int:
        """This process's rank."""
        return state_of_comm(self).communicator.rank

    def Get_name(self) -> str:
        """Its name; empty for one that was given none."""
        return name_of_comm(self)

    def Compare(self, comm: CommBase) -> int:
        """IDENT, CONGRUENT (other context), SIMILAR (other order) or UNEQUAL."""
        if comm.__class__ is not self.__class__:
            check_kind(comm, "Comm", "comm")
        mine: CommState = state_of_comm(self)
        theirs: CommState = state_of_comm(comm)
        return constants.IDENT if mine is theirs else likeness_of(mine, theirs)

    @property
    def size(self) -> int:
        """How many members there are."""
        return state_of_comm(self).size

    @property
    def rank(self) -> int:
        """This process's rank."""
        return state_of_comm(self).communicator.rank


@ccall
def name_of_comm(comm: Handle) -> str:
    """What `Get_name` says."""
    state: CommState | None = comm._inner
    if state is None:
        return "MPI_COMM_NULL"
    communicator = state.communicator
    return communicator.name if communicator.named else ""


@ccall
def likeness_of(mine: CommState, theirs: CommState) -> int:
    """How two communicators compare that are not the same."""
    first, second = mine.communicator, theirs.communicator
    if first.between != second.between:
        return constants.UNEQUAL
    if first.procs == second.procs and (not first.between or first.own == second.own):
        return constants.CONGRUENT
    alike = set(first.procs) == set(second.procs) and set(first.own) == set(second.own)
    return constants.SIMILAR if alike else constants.UNEQUAL


# --- reductions


@cclass
class OpState(State):
    """A reduction.

    Attributes:
        name: of a predefined one; empty for a user's.
        commutes: the order of operands may be changed.
        objects: combines two Python objects.
        buffers: the user's `f(inbuf, inoutbuf, datatype)`, or None.
        known: the datatype that a user's was asked for last, the operation on buffers of it, and
            its layout, if contiguous buffers of numbers have it without being told; or None.
        operation: the predefined one on buffers, once it was asked for, or None.
    """

    buffers: Callable[[Any, Any, Any], Any] | None
    commutes: bool
    known: tuple[Any, Operation, Layout | None] | None
    name: str
    objects: Callable[[Any, Any], Any]
    operation: Operation | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        name: str,
        objects: Callable[[Any, Any], Any],
        buffers: Callable[[Any, Any, Any], Any] | None = None,
        *,
        commutes: bool = True,
    ) -> None:
        self.number = 0
        self.name = name
        self.objects = objects
        self.buffers = buffers
        self.commutes = commutes
        self.known = None
        self.operation = None
