"""What MPI keeps for one rank, and for each of its communicators.

A `World` belongs to a RankProcess, never to the interpreter: the virtual world has many.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from ompy import outputs
from ompy.compiled import ccall, cclass
from ompy.data.errors import CLASS_TEXT, ERR_COMM, MPIError
from ompy.data.request import Waitable
from ompy.engine.base import Engine
from ompy.frameworks.coll_selection import SelectedColl
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import Pml
from ompy.mpi.callbacks import guarded
from ompy.mpi.errhandler import ARE_FATAL, RETURN, ErrhandlerState
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import State
from ompy.runtime.process import RankProcess


class World:
    """What MPI keeps for one rank.

    Attributes:
        process: the rank.
        context: of the rank.
        engine: of the rank.
        errors: error handler of new communicators.
        reserved: context ids that are being agreed on.
        next_context: where the search for a free context id begins.
        buffers: attached for buffered sends, or None.
        waiters: threads of the rank that wait for any of several requests.
        fast_reduce: objects are reduced along a tree.
    """

    __slots__ = (
        "__weakref__",
        "buffers",
        "context",
        "engine",
        "errors",
        "fast_reduce",
        "next_context",
        "process",
        "reserved",
        "waiters",
    )

    def __init__(
        self,
        process: RankProcess,
        errors: ErrhandlerState = RETURN,
        *,
        fast_reduce: bool = True,
    ) -> None:
        self.process = process
        self.context: RankContext = process.context
        self.engine: Engine = process.context.engine
        self.errors = errors
        self.reserved: set[int] = set()
        self.next_context: int = 2  # reference: 0 is COMM_WORLD, 1 is COMM_SELF
        self.buffers: Any = None
        self.waiters: list[Waitable] = []
        self.fast_reduce = fast_reduce

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
class CommState(State):
    """What MPI keeps for a communicator.

    Attributes:
        api: class of its handles.
        world: the rank.
        communicator: as PML and coll see it.
        pml: moves its messages.
        size: members.
        predefined: it is COMM_WORLD or COMM_SELF.
        errhandler: what happens when a call fails.
        attributes: by key, or None.
        info: hints, or None.
        topology: or None.
        buffers: attached to it for buffered sends, or None.
        locks: for calls that take several messages, by name.
        hidden: a duplicate for messages of Python packages on top, its last tag, and between groups
            a communicator of the own one and whether that is the first; or None.
    """

    api: Any
    attributes: dict[int, Any] | None
    buffers: Any
    communicator: Communicator
    errhandler: ErrhandlerState
    hidden: Any
    info: dict[str, str] | None
    locks: dict[Any, Any] | None
    pml: Pml
    predefined: bool
    size: int
    topology: Any
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
        self.errhandler = world.errors
        self.attributes = None
        self.info = None
        self.topology = None
        self.buffers = None
        self.locks = None
        self.hidden = None

    @property
    def coll(self) -> SelectedColl:
        """Its collectives."""
        found = self.communicator.coll
        assert found is not None, "a communicator is made with its collectives"
        return found

    @ccall
    def raised(self, problem: MPIError) -> MPIException:
        """The exception for a call that failed, after the error handler had its say."""
        handler = self.errhandler
        if handler.ends_job:
            self._fatal(problem, "this communicator" if handler is ARE_FATAL else "this process")
        if handler.function is not None:
            guarded(handler.function, self.api._adopt(self), problem.code)  # noqa: SLF001
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
        self.world.abort(code, text)


def null_communicator() -> MPIException:
    """The exception for a call on a communicator that is null."""
    return MPIException(
        ERR_COMM,
        "the communicator is null: COMM_NULL, freed, or MPI is not initialised or finalised",
    )
