"""What a window handle refers to, and how the members make a window together."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from types import ModuleType
from typing import Any, Final, NoReturn

from ompy import outputs
from ompy.data.errors import (
    CLASS_TEXT,
    ERR_COMM,
    ERR_DISP,
    ERR_OTHER,
    ERR_RMA_SHARED,
    ERR_SIZE,
    MPIError,
)
from ompy.data.request import Request as Operation
from ompy.frameworks.osc import SHARED, OscModule, Window
from ompy.mpi.callbacks import guarded
from ompy.mpi.communicators.attributes import AttributedState
from ompy.mpi.communicators.context_agreement import exchange_values
from ompy.mpi.communicators.making import make_communicator
from ompy.mpi.errors import MPIException
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.state import CommState
from ompy.mpi.windows.window_epochs import Epochs
from ompy.mpi.windows.window_messages import Reach
from ompy.mpi.windows.window_straight import StraightWindow
from ompy.runtime.ranks.osc_selection import select_osc

_SAID: Final = Struct("<QQ")  # bytes, and bytes of a displacement of 1
PROGRESS_THREAD: Final = "osc_base_progress_thread"


class WindowState(AttributedState):
    """A window.

    Attributes:
        api: class of its handles.
        comm: communicator of its own.
        world: the rank.
        window, module: as the osc component has it; who serves it.
        reach: the members' memory.
        epochs: this rank is in.
        owner: the object whose memory it is, or None.
        progress: what ends the thread that makes progress; None where there is none.
        operations: the module with these, which is imported with the first window.
        straight: the common calls, where its memory is mapped; or None.
        errhandler: what happens when a call fails.
        attributes: by key, or None.
        info: hints.
        name: for people.
    """

    __slots__ = (
        "api",
        "comm",
        "epochs",
        "errhandler",
        "info",
        "module",
        "name",
        "operations",
        "owner",
        "progress",
        "reach",
        "straight",
        "window",
        "world",
    )

    def __init__(
        self, comm: CommState, window: Window, module: OscModule, reach: Reach, owner: object
    ) -> None:
        self.number = 0
        self.api: Any = None
        self.comm = comm
        self.world = comm.world
        self.window = window
        self.module = module
        self.reach = reach
        self.epochs = Epochs()
        self.owner = owner
        self.operations = window_operations()
        self.errhandler = comm.world.errors
        self.attributes = None
        self.info: dict[str, str] = {}
        self.name = ""
        found = module.straight()
        self.straight = None
        if found is not None:
            self.straight = StraightWindow(found, list(reach.units), self.epochs, module)
        self.progress = _begin_progress(comm)
        comm.world.process.before_finalize.append(module.leave)
        comm.communicator.context.windows.append(module)

    @property
    def rank(self) -> int:
        """Of this process."""
        return self.comm.communicator.rank

    def raised(self, problem: MPIError) -> MPIException:
        """The exception for a call that failed, after the error handler had its say."""
        handler = self.errhandler
        self.comm.give_up_after(problem)
        if handler.ends_job:
            self._fatal(problem)
        if handler.function is not None:
            guarded(handler.function, self.api._adopt(self), problem.code)
        if isinstance(problem, MPIException):
            return problem
        made = MPIException(problem.code, problem.detail)
        made.__cause__ = problem.__cause__
        return made

    def _fatal(self, problem: MPIError) -> NoReturn:
        code = problem.code if problem.code in CLASS_TEXT else ERR_OTHER
        name = f"window {self.name}" if self.name else self.comm.communicator.name
        text = f"rank {self.rank} of {name}: {problem} (errors of this window end the job)"
        outputs.tell(f"*** {text}; the error handler is fatal\n", "fatal error", "error")
        self.world.abort(code, text)

    def free(self) -> None:
        """Collective: end it, and give everything back.

        Raises:
            MPIError: an epoch is open, or a member has ended.
        """
        self.epochs.free()
        self.straight = None
        try:
            self.module.meet_to_end()
        finally:
            _end_progress(self.comm, self.progress)
            if self.module.leave in self.world.process.before_finalize:
                self.world.process.before_finalize.remove(self.module.leave)
            self.comm.communicator.context.windows.remove(self.module)
            self.module.close()
            self.world.process.release(self.comm.communicator)
            self.window.memory = memoryview(bytearray())
            self.owner = None


class WindowRequestState(RequestState):
    """An operation under way in a window; what fails is the window's error."""

    __slots__ = ("_window",)

    def __init__(self, window: WindowState, operation: Operation, keep: object) -> None:
        super().__init__(window.comm, operation, keep)
        self._window = window

    def result(self, status: Status | None) -> Any:
        """The operation is complete."""
        if status is not None:
            self.fill(status)
        if self.operation.error:
            raise self._window.raised(MPIError(self.operation.error, self.operation.detail))


def window_operations() -> ModuleType:
    """It needs the class of this module."""
    from ompy.mpi.windows import window_operations as found

    return found


def make_window(
    parent: CommState, flavor: int, size: int, unit: int, memory: memoryview, owner: object
) -> WindowState:
    """Make a window; all members of `parent` call this.

    Args:
        parent: the communicator.
        flavor: kind of window.
        size: bytes of this rank's part.
        unit: bytes of a displacement of 1.
        memory: of this rank; empty where the window is to have its own.
        owner: of `memory`; kept while the window lives.

    Raises:
        MPIException: it cannot be made.
    """
    if parent.communicator.between:
        raise parent.fail(ERR_COMM, "a window is of one group: Merge the two")
    if size < 0:
        raise parent.fail(ERR_SIZE, f"a window of {size} bytes")
    if unit < 1:
        raise parent.fail(ERR_DISP, f"a displacement unit of {unit} bytes")
    order = parent.communicator.order
    comm = make_communicator(parent, range(parent.size), order.tag(), parent.api)
    comm.communicator.name = f"window {comm.communicator.context_id}"
    comm.communicator.served = True
    comm.share_fate_of(parent)
    try:
        members = range(comm.size)
        said = exchange_values(comm.communicator, members, order.tag(), _SAID.pack(size, unit))
        told = [_SAID.unpack(value) for value in said]
        sizes, units = tuple(each[0] for each in told), tuple(each[1] for each in told)
        window = Window(comm.communicator, flavor, sizes, memory)
        module = select_osc(comm.world.process, window)
        if module is None:
            raise _no_module(comm, flavor)
    except MPIError as problem:
        comm.world.process.release(comm.communicator)
        raise parent.raised(problem) from problem.__cause__
    return WindowState(comm, window, module, Reach(flavor, sizes, units), owner)


def _no_module(comm: CommState, flavor: int) -> MPIError:
    """What is said where no component serves a window."""
    if flavor != SHARED:
        who = f"a window for {comm.size} ranks"
        return MPIError(ERR_OTHER, f"no component of osc can make {who}: see ompy-info --plugins")
    hosts = len({proc.node for proc in comm.communicator.procs})
    why = f"they are on {hosts} hosts" if hosts > 1 else "see ompy-info --plugins"
    return MPIError(ERR_RMA_SHARED, f"no component of osc can do so for {comm.size} ranks: {why}")


def _begin_progress(comm: CommState) -> Callable[[], object] | None:
    """Have a thread make progress, if that is wanted; what ends it."""
    process = comm.world.process
    if not process.registry.value(PROGRESS_THREAD):
        return None
    stop = comm.world.engine.drive()
    if stop is not None:
        process.before_finalize.append(stop)
    return stop


def _end_progress(comm: CommState, stop: Callable[[], object] | None) -> None:
    process = comm.world.process
    if stop is not None and stop in process.before_finalize:
        process.before_finalize.remove(stop)
        stop()
