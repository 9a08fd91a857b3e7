"""What is done in a window: operations, and the epochs they need."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from ompy import raw
from ompy.compiled import ccall
from ompy.data.constants import PROC_NULL
from ompy.data.errors import ERR_WIN, MPIError
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.mpi.collectives.collective_calls import refuse
from ompy.mpi.collectives.operation import SUM, Op
from ompy.mpi.communicators.group import Group
from ompy.mpi.constants import LOCK_EXCLUSIVE
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle
from ompy.mpi.integers import whole_number
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point.request import Request, complete_request
from ompy.mpi.windows.window_straight import StraightWindow, straight_of

if TYPE_CHECKING:
    from ompy.mpi.windows.window_state import WindowState

_FENCE: Final = KINDS["Win.Fence"]


class WindowAccess:
    """Operations and epochs of a window's handle."""

    __slots__ = ()

    # --- operations

    def Put(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Store a buffer in a member's memory.

        Args:
            origin: the buffer; leave it alone until the epoch ends or is flushed.
            target_rank: the member.
            target: displacement there; or [displacement, count, datatype] or the first of these.
        """
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.put_numbers(origin, target_rank, target):
            return
        state = state_of_window(self)
        state.operations.put(state, origin, target_rank, target)

    def Get(self, origin: Any, target_rank: int, target: Any = None) -> None:
        """Load a member's memory into a buffer. The arguments are those of `Put`."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.get_numbers(origin, target_rank, target):
            return
        state = state_of_window(self)
        state.operations.get(state, origin, target_rank, target)

    def Accumulate(self, origin: Any, target_rank: int, target: Any = None, op: Op = SUM) -> None:
        """Combine a buffer into a member's memory, each element at once."""
        if type(op) is not Op:
            check_kind(op, "Op", "op")
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.accumulate_numbers(origin, target_rank, target, op):
            return
        state = state_of_window(self)
        state.operations.accumulate(state, origin, target_rank, target, op)

    def Get_accumulate(
        self, origin: Any, result: Any, target_rank: int, target: Any = None, op: Op = SUM
    ) -> None:
        """Combine a buffer into a member's memory, and get what was there before."""
        if type(op) is not Op:
            check_kind(op, "Op", "op")
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.fetch_numbers(origin, result, target_rank, target, op, False):
            return
        state = state_of_window(self)
        state.operations.get_accumulate(state, origin, result, target_rank, target, op)

    def Fetch_and_op(
        self, origin: Any, result: Any, target_rank: int, target_disp: int = 0, op: Op = SUM
    ) -> None:
        """The same for one element."""
        if type(op) is not Op:
            check_kind(op, "Op", "op")
        if type(target_rank) is not int:
            target_rank = whole_number(target_rank)
        if type(target_disp) is not int:
            target_disp = whole_number(target_disp)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.fetch_numbers(
            origin, result, target_rank, target_disp, op, True
        ):
            return
        state = state_of_window(self)
        state.operations.fetch(state, origin, result, target_rank, target_disp, op)

    def Compare_and_swap(
        self, origin: Any, compare: Any, result: Any, target_rank: int, target_disp: int = 0
    ) -> None:
        """Store an element if what is there equals another, and get what was there."""
        if type(target_rank) is not int:
            target_rank = whole_number(target_rank)
        if type(target_disp) is not int:
            target_disp = whole_number(target_disp)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.swap_number(origin, compare, result, target_rank, target_disp):
            return
        state = state_of_window(self)
        state.operations.swap(state, origin, compare, result, target_rank, target_disp)

    def Rput(self, origin: Any, target_rank: int, target: Any = None) -> Request:
        """Begin what `Put` does; complete when the buffer may be used again."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.put_numbers(origin, target_rank, target):
            return complete_request()
        state = state_of_window(self)
        begun = state.operations.put(state, origin, target_rank, target)
        return _request(state, begun, origin, target_rank)

    def Rget(self, origin: Any, target_rank: int, target: Any = None) -> Request:
        """Begin what `Get` does."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.get_numbers(origin, target_rank, target):
            return complete_request()
        state = state_of_window(self)
        begun = state.operations.get(state, origin, target_rank, target)
        return _request(state, begun, origin, target_rank)

    def Raccumulate(
        self, origin: Any, target_rank: int, target: Any = None, op: Op = SUM
    ) -> Request:
        """Begin what `Accumulate` does; complete when the buffer may be used again."""
        if type(op) is not Op:
            check_kind(op, "Op", "op")
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.accumulate_numbers(origin, target_rank, target, op):
            return complete_request()
        state = state_of_window(self)
        begun = state.operations.accumulate(state, origin, target_rank, target, op)
        return _request(state, begun, origin, target_rank)

    def Rget_accumulate(
        self, origin: Any, result: Any, target_rank: int, target: Any = None, op: Op = SUM
    ) -> Request:
        """Begin what `Get_accumulate` does."""
        if type(op) is not Op:
            check_kind(op, "Op", "op")
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.fetch_numbers(origin, result, target_rank, target, op, False):
            return complete_request()
        state = state_of_window(self)
        begun = state.operations.get_accumulate(state, origin, result, target_rank, target, op)
        return _request(state, begun, (origin, result), target_rank)

    # --- epochs

    def Fence(self, assertion: int = 0) -> None:
        """Collective: all operations since the last one are complete; a new epoch begins."""
        state = state_of_window(self)
        state.comm.communicator.order.begin(_FENCE, 0)
        if type(assertion) is not int:
            assertion = _fence_assertion(state, assertion)
        way: StraightWindow | None = state.straight
        barrier = None if way is None else way.begin_fence(assertion)
        if barrier is not None:
            try:
                barrier()
            except MPIError as problem:
                raise state.raised(problem) from problem.__cause__
            raw.load_fence()
            return
        call_below(state, state.epochs.fence, assertion)
        call_below(state, state.module.fence)

    def Start(self, group: Group, assertion: int = 0) -> None:
        """Begin to access the members of a group, who call `Post`."""
        if type(group) is not Group:
            check_kind(group, "Group", "group")
        if type(assertion) is not int:
            assertion = whole_number(assertion)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.start_members(group, assertion):
            return
        state = state_of_window(self)
        targets = call_below(state, _ranks, state, group)
        call_below(state, state.epochs.start, targets, assertion)
        call_below(state, state.module.start, targets)

    def Complete(self) -> None:
        """End what `Start` has begun."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.complete_members():
            return
        state = state_of_window(self)
        targets = call_below(state, state.epochs.complete)
        call_below(state, state.module.complete, targets)

    def Post(self, group: Group, assertion: int = 0) -> None:
        """Expose the window to the members of a group, who call `Start`."""
        if type(group) is not Group:
            check_kind(group, "Group", "group")
        if type(assertion) is not int:
            assertion = whole_number(assertion)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.post_members(group, assertion):
            return
        state = state_of_window(self)
        origins = call_below(state, _ranks, state, group)
        call_below(state, state.epochs.post, origins, assertion)
        call_below(state, state.module.post, origins)

    def Wait(self) -> Literal[True]:
        """Return when all to whom the window is exposed have called `Complete`."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.wait_for_members():
            return True
        state = state_of_window(self)
        origins = call_below(state, lambda: state.epochs.posted)
        state.epochs.waited()
        call_below(state, state.module.wait, origins)
        return True

    def Test(self) -> bool:
        """Whether they all have; the epoch has ended then."""
        state = state_of_window(self)
        origins = call_below(state, lambda: state.epochs.posted)
        ended: bool = call_below(state, state.module.test, origins)
        if ended:
            state.epochs.waited()
        return ended

    def Lock(self, rank: int, lock_type: int = LOCK_EXCLUSIVE, assertion: int = 0) -> None:
        """Have the lock of a member's memory; begins an epoch."""
        if type(rank) is not int:
            rank = whole_number(rank)
        if type(lock_type) is not int:
            lock_type = whole_number(lock_type)
        if type(assertion) is not int:
            assertion = whole_number(assertion)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.lock_member(rank, lock_type, assertion):
            return
        state = state_of_window(self)
        if rank == PROC_NULL:
            return
        call_below(state, state.reach.check_rank, rank)
        call_below(state, state.epochs.lock, rank, lock_type, assertion)
        try:
            call_below(state, state.module.lock, rank, exclusive=lock_type == LOCK_EXCLUSIVE)
        except BaseException:
            state.epochs.unlock(rank)
            raise

    def Unlock(self, rank: int) -> None:
        """Complete the operations there and give the lock back."""
        if type(rank) is not int:
            rank = whole_number(rank)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.unlock_member(rank):
            return
        state = state_of_window(self)
        if rank == PROC_NULL:
            return
        call_below(state, state.reach.check_rank, rank)
        call_below(state, state.epochs.unlock, rank)
        call_below(state, state.module.unlock, rank)

    def Lock_all(self, assertion: int = 0) -> None:
        """Have the shared lock of every member's memory, when it is accessed."""
        if type(assertion) is not int:
            assertion = whole_number(assertion)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.lock_members(assertion):
            return
        state = state_of_window(self)
        call_below(state, state.epochs.lock_all, assertion)
        call_below(state, state.module.lock_all)

    def Unlock_all(self) -> None:
        """Complete all operations and give the locks back."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.unlock_members():
            return
        state = state_of_window(self)
        call_below(state, state.epochs.unlock_all)
        call_below(state, state.module.unlock_all)

    def Flush(self, rank: int) -> None:
        """Complete all operations on a member, here and there."""
        if type(rank) is not int:
            rank = whole_number(rank)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.flush_member(rank):
            return
        _flush(state_of_window(self), rank, "flush")

    def Flush_all(self) -> None:
        """Complete all operations on all members, here and there."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.flush_members():
            return
        _flush(state_of_window(self), None, "flush")

    def Flush_local(self, rank: int) -> None:
        """Complete all operations on a member here: buffers may be used again."""
        if type(rank) is not int:
            rank = whole_number(rank)
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.flush_member(rank):
            return
        _flush(state_of_window(self), rank, "flush_local")

    def Flush_local_all(self) -> None:
        """Complete all operations here: buffers may be used again."""
        way: StraightWindow | None = straight_of(self)
        if way is not None and way.flush_members():
            return
        _flush(state_of_window(self), None, "flush_local")

    def Sync(self) -> None:
        """See what others stored, and have them see what was stored here."""
        way: StraightWindow | None = straight_of(self)
        if way is not None:
            way.sync_memory()
            return
        state = state_of_window(self)
        state.world.engine.progress()  # first: what is stored by it is seen
        call_below(state, state.module.sync)


def _request(state: WindowState, begun: object, keep: object, target: object) -> Request:
    made: Request = state.operations.request(state, begun, keep, whole_number(target))
    return made


def _ranks(state: WindowState, group: Group) -> list[int]:
    from ompy.mpi.communicators.communicators import ranks_of

    found = ranks_of(state.comm, group)
    way: StraightWindow | None = state.straight
    if way is not None:
        way.know_group(group, found)
    return found


@ccall
def state_of_window(window: Any) -> Any:
    """What a handle of a window refers to.

    Raises:
        MPIException: ERR_WIN, it is null.
    """
    handle: Handle = window
    state = handle._inner
    if state is None:
        raise MPIException(ERR_WIN, "the window is null (WIN_NULL, or freed)")
    return state


def call_below(state: WindowState, function: Any, *arguments: Any, **more: Any) -> Any:
    """Call something below.

    Raises:
        MPIException: it failed; the error handler had its say.
    """
    try:
        return function(*arguments, **more)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


def _flush(state: WindowState, rank: int | None, how: str) -> None:
    if rank == PROC_NULL:
        return
    if rank is not None:
        call_below(state, state.reach.check_rank, rank)
    call_below(state, state.epochs.passive, rank)
    targets = state.epochs.targets(state.comm.size) if rank is None else (rank,)
    call_below(state, getattr(state.module, how), targets)


def _fence_assertion(state: WindowState, assertion: Any) -> int:
    """An integer of what is none, in a fence that has begun."""
    try:
        return whole_number(assertion)
    except Exception as problem:
        refuse(state.comm, problem)
        raise
