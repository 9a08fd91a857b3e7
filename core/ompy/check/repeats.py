"""Blocking calls that are made again as they were: two words are written, and no handler is asked.

What a handler has written of a call is remembered by its place in the program. If the same place
calls with the same arguments, as far as an entry tells of them, the entry is the same.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.check.interposing import Within
from ompy.check.messages import got_in_vain
from ompy.check.record import program_frame
from ompy.check.recorder import Recorder
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.mpi.buffers.markers import InPlaceType
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle
from ompy.mpi.point_to_point.status import Status

if TYPE_CHECKING:
    from ompy.check.checker import Checker
if DECLARING:
    from ompy.check.interposing import Within
    from ompy.check.recorder import Recorder
    from ompy.mpi.handles import Handle

_frame = sys._getframe
PLACES: Final[int] = 256  # arbitrary: a loop has fewer
# what an entry has to do with an argument
ANYTHING: Final[int] = 0
SAME: Final[int] = 1  # it tells who it is
NUMBER: Final[int] = 2  # it has its value
LENGTH: Final[int] = 3  # it has its length
ARRAY: Final[int] = 4  # likewise, and its dtype
# of an entry of each kind: where the number of its request is
_REQUEST: Final = {"send": 8, "recv": 7, "coll": 9}
_SOURCE: Final = 4  # place in an entry
_GOT: Final = 8  # likewise


@cclass
class Argument:
    """What an entry has to do with one argument of its call."""

    _kind: int
    _length: int
    _type: Any
    _value: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, kind: int, value: Any, length: int) -> None:
        self._kind = kind
        self._type = type(value)
        self._length = length
        self._value = value.dtype if kind == ARRAY else value if kind == SAME else None

    def is_buffer(self) -> bool:
        """Whether it is memory."""
        return self._kind in {LENGTH, ARRAY}

    @ccall
    def fits(self, value: Any, whole: bool) -> bool:
        """Whether another value makes the same entry; `whole`: its memory has to be its own."""
        kind = self._kind
        if kind <= SAME:
            return kind == ANYTHING or value is self._value
        if type(value) is not self._type:
            return False
        if kind == NUMBER:
            return raw.small(value) == self._length
        if kind == LENGTH:
            return len(value) == self._length
        size: int = value.size
        own = not whole or value.base is None
        return own and size == self._length and value.dtype is self._value


@cclass
class Repeat:
    """One call, as it was made last.

    Attributes:
        at: instruction of the program.
        code: that it is of.
        event: its entry.
        got_source, got_tag, got_size: of the message.
        round: of the record, when its shape was written.
        shape: the entry's number.
        site: the line's number.
        state: the communicator's.
    """

    _arguments: list[Argument]
    _buffers: int
    at: int
    code: Any
    event: tuple[Any, ...]
    got_size: int
    got_source: int
    got_tag: int
    round: int
    shape: int
    site: int
    state: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, frame: Any, state: Any, arguments: list[Argument], buffers: int) -> None:
        self.code, self.at, self.state = frame.f_code, frame.f_lasti, state
        self._arguments, self._buffers = arguments, buffers

    @ccall
    def fits(self, arguments: tuple[Any, ...]) -> bool:
        """Whether arguments make the same entry."""
        known = self._arguments
        several: bool = self._buffers > 1
        if len(arguments) != len(known) or (several and arguments[0] is arguments[1]):
            return False
        for place in range(len(known)):
            each: Argument = known[place]
            if not each.fits(arguments[place], several):
                return False
        return True


@cclass
class Repeats:
    """The calls of one method.

    Attributes:
        recorder: of the rank.
        scratch: a status for receives whose callers want none.
        within: whether the main thread is in a call.
    """

    _call: str
    _checker: Any
    _general: Any
    _known: dict[tuple[int, int], Repeat]
    _last: Repeat | None
    _objects: bool
    _pending: list[Any]
    recorder: Recorder
    scratch: Any
    within: Within
    __slots__ = tuple(__annotations__)

    def __init__(self, checker: Checker, call: str, general: Any) -> None:
        """Know of none.

        Args:
            checker: the rank's.
            call: as reports have it.
            general: makes the call with its handler.
        """
        self._call = call
        self._checker = checker
        self._general = general
        self._known = {}
        self._last = None
        self._objects = call.rpartition(".")[2][0].islower()
        self._pending = checker.buffers.pending
        self.recorder = checker.recorder
        self.scratch = Status()
        self.within = checker.inside

    @ccall
    def again(self, comm: Any, arguments: tuple[Any, ...]) -> Repeat | None:
        """The call that these arguments make again; None: it is another one."""
        known = self._last
        if known is None or self.within.main or (self._pending and not self._objects):
            return None
        if not raw.is_at(known.code, known.at):
            known = self._of_place()
            if known is None:
                return None
        if not self.recorder.may_repeat(known.round) or not isinstance(comm, Handle):
            return None
        handle: Handle = comm
        if handle._inner is not known.state or not known.fits(arguments):
            return None
        self._last = known
        return known

    @cfunc
    def _of_place(self) -> Repeat | None:
        frame: Any = program_frame(_frame())
        if frame is None:
            return None
        found = self._known.get((id(frame.f_code), frame.f_lasti))
        return found if found is not None and raw.is_at(found.code, found.at) else None

    def make_call(self, comm: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make a call with its handler, and remember it."""
        written: int = self.recorder.written
        result = self._general(comm, *arguments, **named)
        if not named and self.recorder.written == written + 1:
            self._learn(comm, arguments)
        return result

    def receive_message(self, comm: Any, arguments: tuple[Any, ...], status: Any) -> Any:
        """The same for a call that receives."""
        written: int = self.recorder.written
        result = self._general(comm, *arguments, status)
        if self.recorder.written == written + 1:
            self._learn(comm, arguments)
        return result

    def _learn(self, comm: Any, arguments: tuple[Any, ...]) -> None:
        """Remember a call that has written one entry."""
        recorder, event = self.recorder, self.recorder.last
        if self.within.main or event is None or not recorder.may_repeat(recorder.round):
            return
        place = _REQUEST.get(event[0])
        if place is None or event[2] != self._call or event[place]:
            return
        if event[0] == "recv" and (event[_SOURCE] < 0 or event[_GOT] is None):
            return
        found = [self._argument(each, index) for index, each in enumerate(arguments)]
        told = [each for each in found if each is not None]
        frame: Any = program_frame(_frame())
        if len(told) < len(found) or frame is None or not raw.is_at(frame.f_code, frame.f_lasti):
            return
        buffers = [each for each in told if each.is_buffer()]
        self._remember(Repeat(frame, comm._inner, told, len(buffers)), event)

    def _remember(self, known: Repeat, event: tuple[Any, ...]) -> None:
        try:
            known.shape = self.recorder.shape(event)
        except TypeError:
            return  # a list by rank has no hash
        known.round = self.recorder.round
        known.event, known.site = event, event[1]
        if event[0] == "recv":
            known.got_source, known.got_tag, known.got_size = event[_GOT][:3]
        if len(self._known) >= PLACES:
            self._known.clear()
        self._known[id(known.code), known.at] = known
        self._last = known

    def _argument(self, value: Any, place: int) -> Argument | None:
        """What an entry has to do with an argument; None where that is not simple."""
        kind = type(value)
        if self._objects and not place:
            return Argument(ANYTHING, None, 0)
        if kind is int and raw.small(value) != raw.BEYOND:
            return Argument(NUMBER, value, value)
        calls = not getattr(value, "is_predefined", True)  # a function of the program's
        same = value is None or isinstance(value, (Handle, InPlaceType, BuiltinFunctionType))
        if same and not calls:
            return Argument(SAME, value, 0)
        if not self._objects and kind in {bytearray, bytes}:
            return Argument(LENGTH, value, len(value))
        if not self._objects and (kind.__module__, kind.__name__) == ("numpy", "ndarray"):
            return Argument(ARRAY, value, value.size)
        return None

    @cfunc
    def received(self, known: Repeat, status: Any) -> None:
        """A message has come."""
        source: int = status._source if status._memory is None else status.Get_source()
        tag: int = status._tag if status._memory is None else status.Get_tag()
        size: int = status._bytes
        if source == known.got_source and tag == known.got_tag and size == known.got_size:
            self.recorder.repeat(known.shape)
            return
        event = known.event
        got = (source, tag, size, *event[_GOT][3:])
        self.recorder.write_again((*event[:_GOT], got), 0, 0)

    def received_in_vain(self, known: Repeat, status: Status, problem: Exception) -> None:
        """A receive has ended with an error."""
        got = got_in_vain(problem, status, self._objects)
        if got is not None:
            self.recorder.write_event((*known.event[:_GOT], got))

    def failed(self, known: Repeat, problem: Exception) -> None:
        """A call has ended with an error."""
        if isinstance(problem, MPIException):
            self._checker.failed(known.site, self._call, problem)
        else:
            self._checker.raised(known.site, self._call, problem)


# what is in each of these calls' way; methods can be found by Python alone, and hand on to them


@cfunc
def _send(calls: Repeats, original: Any, comm: Any, buf: Any, dest: Any, tag: Any) -> Any:
    arguments = (buf, dest, tag)
    known = calls.again(comm, arguments)
    if known is None:
        return calls.make_call(comm, arguments, {})
    within = calls.within
    within.main = within.quiet = True
    calls.recorder.repeat(known.shape)
    try:
        return original(comm, buf, dest, tag)
    except Exception as problem:
        calls.failed(known, problem)
        raise
    finally:
        within.main = within.quiet = False


@cfunc
def _receive(
    calls: Repeats, original: Any, comm: Any, buf: Any, source: Any, tag: Any, status: Any
) -> Any:
    arguments = (buf, source, tag)
    known = calls.again(comm, arguments)
    if known is None:
        return calls.receive_message(comm, arguments, status)
    filled = calls.scratch if status is None else status
    within = calls.within
    within.main = within.quiet = True
    try:
        result = original(comm, buf, source, tag, filled)
        calls.received(known, filled)
        return result
    except Exception as problem:
        calls.received_in_vain(known, filled, problem)
        calls.failed(known, problem)
        raise
    finally:
        within.main = within.quiet = False


@cfunc
def _join(
    calls: Repeats, original: Any, comm: Any, args: tuple[Any, ...], named: dict[str, Any]
) -> Any:
    known = None if named else calls.again(comm, args)
    if known is None:
        return calls.make_call(comm, args, named)
    within = calls.within
    within.main = within.quiet = True
    calls.recorder.repeat(known.shape)
    try:
        return original(comm, *args)
    except Exception as problem:
        calls.failed(known, problem)
        raise
    finally:
        within.main = within.quiet = False


def _sending(calls: Repeats, original: Any) -> Callable[..., Any]:
    """A method that sends a buffer."""

    def method(comm: Any, buf: Any, dest: Any, tag: Any = 0) -> Any:
        return _send(calls, original, comm, buf, dest, tag)

    return method


def _receiving(calls: Repeats, original: Any) -> Callable[..., Any]:
    """A method that receives."""

    def method(
        comm: Any, buf: Any = None, source: Any = ANY_SOURCE, tag: Any = ANY_TAG,
        status: Any = None,
    ) -> Any:  # fmt: skip
        return _receive(calls, original, comm, buf, source, tag, status)

    return method


def _joining(calls: Repeats, original: Any) -> Callable[..., Any]:
    """A method that all members call, or that sends an object."""

    def method(comm: Any, *args: Any, **named: Any) -> Any:
        return _join(calls, original, comm, args, named)

    return method


_METHODS: Final[dict[str, Any]] = {
    **dict.fromkeys(("Send", "Bsend", "Ssend", "Rsend"), _sending),
    **dict.fromkeys(("Recv", "recv"), _receiving),
    **dict.fromkeys(("send", "bsend", "ssend"), _joining),
    **dict.fromkeys(
        (
            "Barrier", "Bcast", "Gather", "Scatter", "Allgather", "Alltoall", "Reduce",
            "Allreduce", "Reduce_scatter_block", "Scan", "Exscan", "Neighbor_allgather",
            "Neighbor_alltoall", "barrier", "bcast", "gather", "scatter", "allgather", "alltoall",
            "reduce", "allreduce", "scan", "exscan", "neighbor_allgather", "neighbor_alltoall",
        ),
        _joining,
    ),
}  # fmt: skip


def remember_repeats(checker: Checker, kind: type) -> None:
    """Have blocking calls that come again written without their handlers.

    Args:
        checker: the rank's.
        kind: a class of communicators, whose methods have handlers in front.
    """
    for base in kind.__mro__:
        for name, value in list(vars(base).items()):
            make = _METHODS.get(name)
            if make is None or not getattr(value, checker.mark, False) or _is_remembered(value):
                continue
            original = value.__wrapped__
            made = make(Repeats(checker, f"comm.{name}", value), original)
            update_wrapper(made, original)
            setattr(made, checker.mark, True)
            made.ompy_remembered = True
            setattr(base, name, made)


def _is_remembered(method: Any) -> bool:
    return getattr(method, "ompy_remembered", False)
