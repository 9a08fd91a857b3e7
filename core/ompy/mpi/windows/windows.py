"""`MPI.Win`: memory that other processes load from and store into.

What is below is imported when the first window is made.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from ompy import raw
from ompy.data.constants import PROC_NULL
from ompy.data.errors import ERR_NO_MEM, ERR_RMA_FLAVOR, ERR_RMA_SHARED, MPIError
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.mpi import constants
from ompy.mpi.buffers.access import acquire
from ompy.mpi.buffers.addresses import address_of
from ompy.mpi.buffers.exporter import Exporter
from ompy.mpi.buffers.markers import Marker
from ompy.mpi.buffers.memory import buffer
from ompy.mpi.collectives.refusals import told_to_all
from ompy.mpi.communicators.attributes import Attributed, delete_all
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.group_state import group_of
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.errhandler import Errhandler, call_errhandler, set_errhandler
from ompy.mpi.handles import Handle, handle_for, plain_handle
from ompy.mpi.info import INFO_NULL, Info, hints_of, pairs_of
from ompy.mpi.integers import c_int, takes_c_ints, takes_integers
from ompy.mpi.kinds import check_kind
from ompy.mpi.processes.life import COMM_SELF
from ompy.mpi.strings import c_string
from ompy.mpi.windows.window_access import WindowAccess, call_below, state_of_window

if TYPE_CHECKING:
    from ompy.mpi.windows.window_state import WindowState

_FREE: Final = KINDS["Win.Free"]
_CALLS: Final = {
    constants.WIN_FLAVOR_CREATE: "Win.Create",
    constants.WIN_FLAVOR_ALLOCATE: "Win.Allocate",
    constants.WIN_FLAVOR_SHARED: "Win.Allocate_shared",
    constants.WIN_FLAVOR_DYNAMIC: "Win.Create_dynamic",
}


class Win(WindowAccess, Attributed, Exporter):  # type: ignore[misc, unused-ignore]
    """Memory that other processes can reach. Exports this process's part as a buffer."""

    __slots__ = ("_exported",)
    _kind: ClassVar[str] = "Win"

    def __new__(cls, win: Win | None = None) -> Self:
        """A null handle, or another one for the same window."""
        made: Self = handle_for(cls, win)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return hasattr(state, "epochs")

    def _state(self) -> WindowState:
        """What the handle refers to.

        Raises:
            MPIException: ERR_WIN, it is null.
        """
        found: WindowState = state_of_window(self)
        return found

    def _attributes(self) -> WindowState:
        return self._state()

    # --- making

    @classmethod
    def _made(
        cls,
        flavor: int,
        size: int,
        unit: int,
        info: Info,
        comm: Intracomm,
        memory: memoryview | None = None,
        owner: object = None,
    ) -> Self:
        from ompy.mpi.windows.window_state import make_window

        view = memory if memory is not None else memoryview(bytearray())
        parent = comm._enter(_CALLS[flavor])
        try:
            state = make_window(parent, flavor, index(size), index(unit), view, owner)
        except (OSError, MemoryError) as problem:
            raise parent.fail(ERR_NO_MEM, f"a window of {size} bytes: {problem}") from None
        state.api = cls
        if info:
            state.info = dict(info.items())
        return cls._adopt(state)

    @classmethod
    @told_to_all("Win.Create", "comm")
    @takes_integers("disp_unit")
    def Create(
        cls,
        memory: Any,
        disp_unit: int = 1,
        info: Info = INFO_NULL,
        comm: Intracomm = COMM_SELF,
    ) -> Self:
        """A window of the user's memory; collective.

        Args:
            memory: a writable buffer; None or BOTTOM for none. It stays in use until `Free`.
            disp_unit: bytes of a displacement of 1.
            info: hints.
            comm: its members.
        """
        check_kind(info, "Info", "info")
        check_kind(comm, "Comm", "comm")
        view = None
        if memory is not None and not isinstance(memory, Marker):
            view = acquire(memory, True).view
        size = 0 if view is None else len(view)
        return cls._made(constants.WIN_FLAVOR_CREATE, size, disp_unit, info, comm, view, memory)

    @classmethod
    @told_to_all("Win.Allocate", "comm")
    @takes_integers("size", "disp_unit")
    def Allocate(
        cls, size: int, disp_unit: int = 1, info: Info = INFO_NULL, comm: Intracomm = COMM_SELF
    ) -> Self:
        """A window of new memory, `size` bytes of it at this rank; collective."""
        check_kind(info, "Info", "info")
        check_kind(comm, "Comm", "comm")
        return cls._made(constants.WIN_FLAVOR_ALLOCATE, size, disp_unit, info, comm)

    @classmethod
    @told_to_all("Win.Allocate_shared", "comm")
    @takes_integers("size", "disp_unit")
    def Allocate_shared(
        cls, size: int, disp_unit: int = 1, info: Info = INFO_NULL, comm: Intracomm = COMM_SELF
    ) -> Self:
        """A window of new memory that all members can load from and store into; collective.

        The members' parts lie one after the other.

        Raises:
            MPIException: ERR_RMA_SHARED, they are not all on one host.
        """
        check_kind(info, "Info", "info")
        check_kind(comm, "Comm", "comm")
        return cls._made(constants.WIN_FLAVOR_SHARED, size, disp_unit, info, comm)

    @classmethod
    @told_to_all("Win.Create_dynamic", "comm")
    def Create_dynamic(cls, info: Info = INFO_NULL, comm: Intracomm = COMM_SELF) -> Self:
        """A window that memory can be attached to; displacements are addresses. Collective."""
        check_kind(info, "Info", "info")
        check_kind(comm, "Comm", "comm")
        return cls._made(constants.WIN_FLAVOR_DYNAMIC, 0, 1, info, comm)

    def Free(self) -> None:
        """Free it; all members do."""
        state = self._state()
        state.comm.communicator.order.begin(_FREE, 0)
        call_below(state, state.epochs.free)
        delete_all(self)
        try:
            call_below(state, state.free)
        finally:
            self._inner = None

    def _release(self) -> None:
        self.Free()

    # --- memory

    def Attach(self, memory: Any) -> None:
        """Attach memory to a dynamic window; it stays in use until `Detach`."""
        state = self._dynamic()
        view = raw.numbers(memory)
        if view is None or view.readonly:
            view = acquire(memory, True).view  # or it says what is wrong
        call_below(state, state.module.attach, address_of(view), view)

    def Detach(self, memory: Any) -> None:
        """Detach memory that was attached."""
        state = self._dynamic()
        view = raw.numbers(memory)
        if view is None:
            view = acquire(memory, False).view
        call_below(state, state.module.detach, address_of(view))

    def _dynamic(self) -> WindowState:
        state = self._state()
        if state.window.flavor != constants.WIN_FLAVOR_DYNAMIC:
            raise state.raised(MPIError(ERR_RMA_FLAVOR, "the window is not dynamic"))
        return state

    def Shared_query(self, rank: int) -> tuple[buffer, int]:
        """A member's part of memory that all share, and its displacement unit.

        Args:
            rank: the member; PROC_NULL for the first with any memory.
        """
        rank = c_int(rank)
        state = state_of_window(self)
        sizes = state.reach.sizes
        if rank == PROC_NULL:
            rank = _first_with_memory(sizes)
        if not 0 <= rank < len(sizes):
            call_below(state, state.reach.check_rank, rank)
        if state.window.flavor == constants.WIN_FLAVOR_DYNAMIC:
            raise state.raised(MPIError(ERR_RMA_FLAVOR, "the window is dynamic"))
        found = state.module.shared(rank)
        if found is None:
            raise state.raised(
                MPIError(ERR_RMA_SHARED, f"rank {rank}'s memory is not shared with this one")
            )
        return buffer._of(found, found.obj), state.reach.units[rank]

    def tomemory(self) -> buffer:
        """This rank's part."""
        return self._memory()

    def __buffer__(self, flags: int, /) -> memoryview:
        # up to Python 3.11 who looks at it has this object, and not its memory, which stays for him
        self._exported = self._state().window.memory
        return self._exported

    def _memory(self) -> buffer:
        view = state_of_window(self).window.memory
        return buffer._of(view, view.obj) if len(view) else buffer()

    # --- what it is

    def _predefined_attribute(self, keyval: int) -> Any:
        state = state_of_window(self)
        if keyval == constants.WIN_BASE:
            return _base_of(state)
        if keyval == constants.WIN_SIZE:
            return len(state.window.memory)
        if keyval == constants.WIN_DISP_UNIT:
            return _unit_of(state)
        if keyval == constants.WIN_CREATE_FLAVOR:
            return state.window.flavor
        if keyval == constants.WIN_MODEL:
            return constants.WIN_UNIFIED
        try:
            return super()._predefined_attribute(keyval)
        except MPIError as problem:
            raise state.raised(problem) from None

    @property
    def attrs(self) -> tuple[int, int, int]:
        """Address and bytes of this rank's part, bytes of a displacement of 1."""
        state = state_of_window(self)
        return _base_of(state), len(state.window.memory), _unit_of(state)

    @property
    def flavor(self) -> int:
        """How it was made."""
        flavor: int = state_of_window(self).window.flavor
        return flavor

    @property
    def model(self) -> int:
        """Its memory model: WIN_UNIFIED."""
        state_of_window(self)
        return constants.WIN_UNIFIED

    def Get_group(self) -> Group:
        """Its members."""
        made: Group = plain_handle(Group, group_of(state_of_window(self).comm))
        return made

    @property
    def group(self) -> Group:
        """Its members."""
        made: Group = plain_handle(Group, group_of(state_of_window(self).comm))
        return made

    @property
    def group_size(self) -> int:
        """How many members there are."""
        return self._state().comm.size

    @property
    def group_rank(self) -> int:
        """This process's rank."""
        return self._state().rank

    def Get_info(self) -> Info:
        """Its hints."""
        return hints_of(state_of_window(self).info)

    def Set_info(self, info: Info) -> None:
        """Set its hints; none has an effect."""
        if type(info) is not Info:
            check_kind(info, "Info", "info")
        state = state_of_window(self)
        state.info = pairs_of(info).copy()

    @property
    def info(self) -> Info:
        """Its hints."""
        return self.Get_info()

    @info.setter
    def info(self, value: Info) -> None:
        check_kind(value, "Info", "value")
        self.Set_info(value)

    def Get_name(self) -> str:
        """Its name."""
        return _name_of(self)

    def Set_name(self, name: str) -> None:
        """Name it."""
        state = state_of_window(self)
        state.name = c_string(name)

    @property
    def name(self) -> str:
        """Its name."""
        return _name_of(self)

    @name.setter
    def name(self, value: str) -> None:
        self.Set_name(value)

    # --- errors

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Any) -> Errhandler:
        """A new error handler that calls `f(win, errorcode)`."""
        return Errhandler._create(cls._kind, errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """Its error handler."""
        made: Errhandler = plain_handle(Errhandler, state_of_window(self).errhandler)
        return made

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set its error handler."""
        if type(errhandler) is not Errhandler:
            check_kind(errhandler, "Errhandler", "errhandler")
        set_errhandler(state_of_window(self), "Win", errhandler)

    @takes_c_ints("errorcode")
    def Call_errhandler(self, errorcode: int) -> None:
        """Call its error handler."""
        call_errhandler(self._state(), errorcode)


def _name_of(window: Win) -> str:
    handle: Handle = window
    state = handle._inner
    return "MPI_WIN_NULL" if state is None else state.name


def _base_of(state: Any) -> int:
    view = state.window.memory
    return address_of(view) if len(view) else 0


def _unit_of(state: Any) -> int:
    unit: int = state.reach.units[state.comm.communicator.rank]
    return unit


def _first_with_memory(sizes: Sequence[int]) -> int:
    for rank, size in enumerate(sizes):
        if size:
            return rank
    return 0


WIN_NULL: Final = Win()._constant("WIN_NULL")
