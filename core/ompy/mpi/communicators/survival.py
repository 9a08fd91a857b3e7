"""Going on after members of a communicator have died: revoking, agreeing, shrinking.

What is below is `ompy.frameworks.fault_tolerance.recovery`. Without `mpi_ft_enable` there is
nothing of it: nobody dies, `Agree` and `Shrink` are those of `agreeing.py`, and `Revoke` is
refused.

Members *agree* on small values: each says one, and all that live get what all have said that were
there. `Agree` makes of it the flags' AND, and an error if one of them does not know yet that
another has died. `Shrink` agrees on a context id as other new communicators do
(`context_agreement.py`),
only that each exchange is an agreement; the new members are those that took part in the last of
them and that nobody there took for dead.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_ARG, ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.data.request import Request as Operation
from ompy.frameworks.collectives.values import pack_values, unpack_values
from ompy.frameworks.direct import AGREED, DEATHS
from ompy.frameworks.proc import Proc
from ompy.mpi.communicators import agreeing
from ompy.mpi.communicators.agreeing import INT
from ompy.mpi.communicators.context_agreement import agree_in_steps, release_context
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.group_state import EMPTY_GROUP, GroupState
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.state import CommState
from ompy.mpi.unsupported import not_enabled

if TYPE_CHECKING:
    from ompy.frameworks.fault_tolerance.recovery import Channel, Recovery

# what members say begins with the call in which they say it
AGREE: Final = b"A"
SHRINK: Final = b"S"
CALLS: Final = {AGREE: "Agree or Iagree", SHRINK: "Shrink or Ishrink"}
Waits = Generator[Any, None, CommState]  # yields the agreements that it waits for


def recovery_of(state: CommState, call: str) -> tuple[Recovery, Channel]:
    """What the rank and a communicator have for recovery.

    Raises:
        NotImplementedError: ranks that die end the job here.
    """
    recovery = state.world.context.recovery
    if recovery is None:
        raise not_enabled(f"Comm.{call}")
    return recovery, recovery.channel(state.communicator)


def revoke_state(state: CommState) -> None:
    """Have all calls in a communicator fail, at all members."""
    _, channel = recovery_of(state, "Revoke")
    _note_untried(state, DEATHS)
    with state.world.engine.lock:
        channel.revoke()


def _note_untried(state: CommState, what: str) -> None:
    """Something begins of which an explored world does not try all orders."""
    line = state.world.context.direct
    if line is not None and line.explores:
        line.note_untried(what)


def failed_group(state: CommState) -> Group:
    """The members that are known to have died, in the order of the news."""
    world = state.world
    if world.context.recovery is None:
        return Group._adopt(EMPTY_GROUP)
    _, channel = recovery_of(state, "Get_failed")
    world.engine.progress()
    world.engine.glance()
    found = GroupState(channel.failed, world.context.me, world)
    return Group._adopt(found if found.procs else EMPTY_GROUP)


def acknowledge_failed(state: CommState, most: int | None) -> int:
    """Acknowledge the first members of `failed_group`.

    Args:
        state: the communicator.
        most: how many; None for all. What was acknowledged stays so.

    Returns:
        How many are acknowledged now.

    Raises:
        MPIException: ERR_ARG, a negative number.
    """
    wanted = None if most is None else index(most)
    if wanted is not None and wanted < 0:
        raise state.fail(ERR_ARG, f"{wanted} members cannot be acknowledged")
    if state.world.context.recovery is None:
        return 0
    _, channel = recovery_of(state, "Ack_failed")
    known = len(channel.failed)
    count = known if wanted is None else min(wanted, known)
    with state.world.engine.lock:
        channel.acknowledged = max(channel.acknowledged, count)
        state.communicator.pml.resume_receives(state.communicator)
    return channel.acknowledged


class FlagAgreement:
    """`Agree` of one member: the AND of all flags, and whether that is an error."""

    def __init__(self, state: CommState, flag: int) -> None:
        self._state = state
        _, self._channel = recovery_of(state, "Agree")
        known = _places(self._channel, self._channel.failed)
        said = array(INT, [flag, self._channel.acknowledged, *known])
        with state.world.engine.lock:
            self.agreement = state.call(self._channel.agree, AGREE + said.tobytes())

    def outcome(self) -> tuple[int, MPIError | None]:
        """The flag, and an error if one of those who died is not acknowledged by all."""
        try:
            values = _said_in(self._state, AGREE, self.agreement.value)
        except MPIError as problem:
            return 0, problem
        flag, failed = -1, set(range(self._channel.line.size)) - set(self.agreement.value)
        acknowledged: set[int] | None = None
        for said in values.values():
            its_flag, count, *known = array(INT, said)
            flag &= its_flag
            failed |= set(known)
            its = set(known[:count])
            acknowledged = its if acknowledged is None else acknowledged & its
        procs = self._channel.line.procs
        self._channel.note_failed([procs[place] for place in sorted(failed)])
        new = failed - (acknowledged or set())
        if not new:
            return flag, None
        who = ", ".join(f"{procs[place]}" for place in sorted(new))
        text = f"agreed in {self._state.communicator.name}, where {who} died: see Ack_failed"
        return flag, MPIError(ERR_PROC_FAILED, text)


def agree_on_flag(state: CommState, flag: int) -> int:
    """The AND of the flags of all members that live.

    Raises:
        MPIException: ERR_PROC_FAILED, at all of them: one has died that not all of them had
            acknowledged.
    """
    number = whole_number(flag)
    if state.world.context.recovery is None:
        return agreeing.agree_on_flag(state, number)
    made = FlagAgreement(state, number)
    state.world.engine.wait(made.agreement)
    found, problem = made.outcome()
    if problem is not None:
        raise state.raised(problem)
    return found


def begin_to_agree(state: CommState, flag: Any) -> Request:
    """Begin what `agree_on_flag` does.

    Args:
        state: the communicator.
        flag: a writable buffer of a C int, which has the result when the request is complete.

    Raises:
        ValueError: the buffer has another size.
    """
    view = memoryview(flag).cast("B")
    if view.nbytes != array(INT).itemsize or view.readonly:
        raise ValueError(f"expecting a writable buffer of one int, got {view.nbytes} bytes")
    if state.world.context.recovery is None:
        return agreeing.begin_to_agree(state, view.cast(INT))
    _note_untried(state, AGREED)
    made = FlagAgreement(state, view.cast(INT)[0])
    operation = Operation()

    def end() -> None:
        found, problem = made.outcome()
        view.cast(INT)[0] = found
        if problem is None:
            operation.finish()
        else:
            operation.fail(problem.code, problem.detail)

    with state.world.engine.lock:
        made.agreement.notify(end)
    return Request._adopt(RequestState(state, operation, flag))


def shrink_state(state: CommState) -> CommState:
    """A communicator of the members that live; all of them call this.

    Raises:
        MPIException: there is no context id left.
    """
    if state.world.context.recovery is None:
        return agreeing.shrink_state(state, _api_of(state))
    steps = _shrink_in_steps(state)
    try:
        while True:
            state.world.engine.wait(state.call(next, steps))
    except StopIteration as ended:
        made: CommState = ended.value
        return made


def begin_to_shrink(state: CommState, give: Callable[[CommState], object]) -> Request:
    """Begin what `shrink_state` does.

    Args:
        state: the communicator.
        give: called with the new one when the request completes.
    """
    if state.world.context.recovery is None:
        return agreeing.begin_to_shrink(state, _api_of(state), give)
    recovery, _ = recovery_of(state, "Ishrink")
    _note_untried(state, AGREED)
    steps, operation = _shrink_in_steps(state), Operation()

    def go_on() -> None:
        try:
            waits = next(steps)
        except StopIteration as ended:
            give(ended.value)
            operation.finish()
        except MPIError as problem:
            operation.fail(problem.code, problem.detail)
        else:
            waits.notify(partial(recovery.do_soon, go_on))

    with state.world.engine.lock:
        go_on()
    return Request._adopt(RequestState(state, operation, None))


def _shrink_in_steps(state: CommState) -> Waits:
    world = state.world
    _, channel = recovery_of(state, "Shrink")
    there: list[int] = []

    def ask(said: bytes) -> Generator[Any, None, list[bytes]]:
        known = array(INT, _places(channel, channel.failed)).tobytes()
        with world.engine.lock:
            agreement = channel.agree(SHRINK + pack_values([known, said]))
        yield agreement
        told = _said_in(state, SHRINK, agreement.value)
        values = {place: unpack_values(its) for place, its in told.items()}
        dead = {place for known, _ in values.values() for place in array(INT, known)}
        there[:] = [place for place in values if place not in dead]
        return [values[place][1] for place in there]

    number = yield from agree_in_steps(world, ask)
    line = -1
    if state.communicator.between:
        line = yield from agree_in_steps(world, ask)
    living = {channel.line.procs[place] for place in there}
    procs = [proc for proc in state.communicator.procs if proc in living]
    own = [proc for proc in state.communicator.own if proc in living]
    try:
        made = world.process.communicator(
            number,
            procs,
            "",
            own if state.communicator.between else None,
            line,
        )
    finally:
        release_context(world, number)
        release_context(world, line)
    return CommState(world, made, _api_of(state))


def _said_in(state: CommState, call: bytes, value: dict[int, bytes]) -> dict[int, bytes]:
    """What members have said in a call, which all have to make.

    Raises:
        MPIError: ERR_OTHER, some of them made another one.
    """
    others = {place: said[:1] for place, said in value.items() if said[:1] != call}
    if others:
        place, other = min(others.items())
        who = recovery_of(state, CALLS[call])[1].line.procs[place]
        text = f"{who} calls {CALLS[other]} of {state.communicator.name}, this rank {CALLS[call]}"
        raise MPIError(ERR_OTHER, text)
    return {place: said[1:] for place, said in value.items()}


def _api_of(state: CommState) -> Any:
    """The class of handles of a shrunken communicator, which has no topology."""
    if state.communicator.between:
        return state.api
    from ompy.mpi.communicators.intracomm import Intracomm

    return Intracomm


def _places(channel: Channel, procs: list[Proc]) -> list[int]:
    return [channel.line.procs.index(proc) for proc in procs]
