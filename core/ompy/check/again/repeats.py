"""Calls that are made again as they were: two words are written, and no handler is asked.

What a handler has written of a call is remembered by its place in the program. If the same place
calls with the same arguments, as far as an entry tells of them, the entry is the same.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from functools import update_wrapper
from types import BuiltinFunctionType
from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.check.again.known import Known, Place
from ompy.check.messages import got_in_vain, got_of
from ompy.check.record import program_frame
from ompy.check.under_way import contents_of, entry_again
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.mpi.buffers.markers import InPlaceType
from ompy.mpi.handles import Handle
from ompy.mpi.point_to_point.status import Status

if TYPE_CHECKING:
    from ompy.check.checker import Checker
    from ompy.mpi.point_to_point.status import Described
if DECLARING:
    from ompy.check.again.known import Known, Place
    from ompy.check.under_way import contents_of, entry_again
    from ompy.mpi.handles import Handle
    from ompy.mpi.point_to_point.status import Described

_frame = sys._getframe
# what an entry has to do with an argument
ANYTHING: Final[int] = 0
SAME: Final[int] = 1  # it tells who it is
NUMBER: Final[int] = 2  # it has its value
LENGTH: Final[int] = 3  # arbitrary: another one; it has its length
ARRAY: Final[int] = 4  # arbitrary: another one; likewise, and its dtype
CODE: Final[int] = 5  # arbitrary: another one; likewise, and the code of its type
# who they are is told; named arguments come with their names
_TOLD: Final = (Handle, InPlaceType, BuiltinFunctionType, str)
# of an entry of each kind: where the number of its request is
_REQUEST: Final = {"send": 8, "recv": 7, "coll": 9}
MESSAGE: Final[int] = 3  # arguments of a call that sends or receives: buffer, peer, tag; arbitrary
_SOURCE: Final = 4  # place in an entry; source: check/record.py
_GOT: Final = 8  # likewise; source: check/record.py


@ccall
def memory_of(buffer: Any) -> Any:
    """The bytes of a buffer for `raw`; None where they are not together."""
    view: Any = raw.shaped(buffer)
    return None if view is None else raw.bare(view)


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
        self._value = value if kind == SAME else None
        if kind >= ARRAY:
            self._value = value.dtype if kind == ARRAY else value.typecode

    @ccall
    def is_buffer(self) -> bool:
        """Whether it is memory."""
        return self._kind >= LENGTH

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
        if kind == CODE:
            return len(value) == self._length and value.typecode == self._value
        size: int = value.size
        own = not whole or value.base is None
        return own and size == self._length and value.dtype is self._value


@cclass
class Repeat(Place):
    """One call, as it was made last.

    Attributes:
        event: its entry.
        got: what its receive has got last; None before.
        got_round: of the record, when that was written.
        got_shape: the number of that.
        got_source, got_tag, got_size: of the message.
        handle: of the communicator: which class it is of is known.
        state: the communicator's.
        wanted: the source that a receive asks for.
    """

    _arguments: list[Argument]
    _buffers: int
    _one: int
    _other: int
    event: tuple[Any, ...]
    got: Any
    got_round: int
    got_shape: int
    got_size: int
    got_source: int
    got_tag: int
    handle: Handle
    state: Any
    wanted: int
    __slots__ = tuple(__annotations__)

    def __init__(self, frame: Any, comm: Handle, arguments: list[Argument], buffers: int) -> None:
        Place.__init__(self, frame)
        self.handle = comm
        self.state = comm._inner
        self._arguments, self._buffers = arguments, buffers
        places = [place for place, each in enumerate(arguments) if each.is_buffer()]
        self._one, self._other = (*places, 0, 0)[:2]
        self.got = None
        self.got_round = self.got_shape = self.got_size = self.got_source = self.got_tag = 0
        self.wanted = 0

    @ccall
    def fits(self, arguments: tuple[Any, ...]) -> bool:
        """Whether arguments make the same entry."""
        known = self._arguments
        several: bool = self._buffers > 1
        if len(arguments) != len(known):
            return False
        if several and arguments[self._one] is arguments[self._other]:
            return False
        for place in range(len(known)):
            each: Argument = known[place]
            if not each.fits(arguments[place], several):
                return False
        return True

    @ccall
    def fits_message(self, buffer: Any, peer: Any, tag: Any) -> bool:
        """The same of a message: no tuple is made for them."""
        known = self._arguments
        if len(known) != MESSAGE:
            return False
        first: Argument = known[0]
        second: Argument = known[1]
        third: Argument = known[2]
        return first.fits(buffer, False) and second.fits(peer, False) and third.fits(tag, False)

    @ccall
    def is_buffer(self, place: int) -> bool:
        """Whether an argument is memory."""
        argument: Argument = self._arguments[place]
        return argument.is_buffer()


@cclass
class Repeats(Known):
    """The calls of one method of communicators.

    Attributes:
        begins: it begins an operation: there is a request.
        kind: of its entry: send, or recv; empty where there is no request.
        objects: it is of objects.
        scratch: a status for receives whose callers want none.
        writes: a buffer of it is received into.
    """

    _pending: list[Any]
    begins: bool
    kind: Any
    objects: bool
    scratch: Any
    writes: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, checker: Checker, call: str, general: Any) -> None:
        """Know of none; the arguments are those of `Known`."""
        Known.__init__(self, checker, call, general)
        name = call.rpartition(".")[2]
        self.objects = name[0].islower()
        self._pending = checker.buffers.pending
        self.scratch = Status()
        self.writes = "send" not in name.lower()
        self.begins = name[0] in "Ii"
        self.kind = ("recv" if self.writes else "send") if self.begins else ""

    @ccall
    def again(self, comm: Any, arguments: tuple[Any, ...]) -> Repeat | None:
        """The call that these arguments make again; None: it is another one."""
        known = self._made_here(comm)
        if known is None or not known.fits(arguments):
            return None
        if self.begins or not self.requests.unguarded:
            return known
        return known if self._goes_beside(known, arguments) else None

    @ccall
    def message_again(self, comm: Any, buffer: Any, peer: Any, tag: Any) -> Repeat | None:
        """The same of a message."""
        known = self._made_here(comm)
        if known is None or not known.fits_message(buffer, peer, tag):
            return None
        if self.begins or not self.requests.unguarded:
            return known
        return known if self._goes_beside(known, (buffer, peer, tag)) else None

    @cfunc
    def _made_here(self, comm: Any) -> Repeat | None:
        """The call that was made from this place with a communicator; None for another."""
        if len(self._pending) and not self.objects:
            return None
        found = self.here()
        if found is None:
            return None
        known: Repeat = found  # type: ignore[assignment]
        handle: Handle = known.handle
        if comm is not handle:
            if not isinstance(comm, Handle):
                return None
            handle = comm
        return known if handle._inner is known.state else None

    @cfunc
    def _goes_beside(self, known: Repeat, arguments: tuple[Any, ...]) -> bool:
        """Whether it leaves alone the memory that nobody looks after, before and behind it."""
        if not self.is_quiet(known):
            return False
        if self.objects:
            return True
        for place in range(len(arguments)):
            if known.is_buffer(place):
                memory = memory_of(arguments[place])
                if memory is None or not self.requests.may_use(memory, self.writes):
                    return False
        return True

    def make_call(self, comm: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Make a call with its handler, and remember it."""
        written: int = self.recorder.written
        result = self.general(comm, *arguments, **named)
        # of objects the first argument is the object, which may be any
        first = not named or arguments or not self.objects
        if first and self.recorder.written == written + 1:
            self._learn(comm, (*arguments, *named.values(), *named))
        return result

    def receive_message(self, comm: Any, arguments: tuple[Any, ...], status: Any) -> Any:
        """The same for a call that receives."""
        written: int = self.recorder.written
        result = self.general(comm, *arguments, status)
        if self.recorder.written == written + 1:
            self._learn(comm, arguments)
        return result

    def _learn(self, comm: Any, arguments: tuple[Any, ...]) -> None:
        """Remember a call that has written one entry."""
        recorder, event = self.recorder, self.recorder.last
        if self.within.main or event is None or not recorder.may_repeat(recorder.round):
            return
        place = _REQUEST.get(event[0])
        if place is None or event[2] != self.call or event[place]:
            return
        if bool(recorder.first) != bool(self.kind):
            return
        if event[0] == "recv" and not self.kind and event[_GOT] is None:
            return
        found = [self._argument(each, index) for index, each in enumerate(arguments)]
        told = [each for each in found if each is not None]
        frame: Any = program_frame(_frame())
        if len(told) < len(found) or frame is None or not raw.is_at(frame.f_code, frame.f_lasti):
            return
        buffers = [each for each in told if each.is_buffer()]
        self._remember(Repeat(frame, comm, told, len(buffers)), event)

    def _remember(self, known: Repeat, event: tuple[Any, ...]) -> None:
        if not self.remember(known, event):
            return
        known.event = event
        if event[0] == "recv":
            known.wanted = event[_SOURCE]
            if event[_GOT] is not None:
                known.got_source, known.got_tag, known.got_size = event[_GOT][:3]

    def _argument(self, value: Any, place: int) -> Argument | None:
        """What an entry has to do with an argument; None where that is not simple."""
        kind = type(value)
        if self.objects and not place:
            return Argument(ANYTHING, None, 0)
        if kind is int and raw.small(value) != raw.BEYOND:
            return Argument(NUMBER, value, value)
        calls = not getattr(value, "is_predefined", True)  # a function of the program's
        same = value is None or isinstance(value, _TOLD)
        if same and not calls:
            return Argument(SAME, value, 0)
        if not self.objects and kind in {bytearray, bytes, array}:
            return Argument(CODE if kind is array else LENGTH, value, len(value))
        if not self.objects and (kind.__module__, kind.__name__) == ("numpy", "ndarray"):
            return Argument(ARRAY, value, value.size)
        return None

    @cfunc
    def received(self, known: Repeat, status: Any, asked: bool, value: Any) -> None:
        """A message has come: the object, or what was received into."""
        if known.wanted == ANY_SOURCE:
            got = got_of(status, asked, value, ANY_SOURCE)
            self.recorder.write_again((*known.event[:_GOT], got), 0, 0)
            return
        said: Described = status
        source: int = said._source
        tag: int = said._tag
        size: int = said._bytes
        if said._memory is not None:
            source, tag = status.Get_source(), status.Get_tag()
        if source == known.got_source and tag == known.got_tag and size == known.got_size:
            self.recorder.repeat(known.shape, 0)
            return
        event = known.event
        got = (source, tag, size, *event[_GOT][3:])
        self.recorder.write_again((*event[:_GOT], got), 0, 0)

    @cfunc
    def begun(self, known: Repeat, request: Any, buf: Any, memory: Any) -> None:
        """An operation has begun."""
        handle: Handle = request
        number: int = self.recorder.number()
        entry = entry_again(number, known, known.site, self.call, self.kind)
        if self.writes:
            entry.receives = True
            entry.wanted = known.wanted
        if memory is not None:
            entry.memory, entry.spec = memory, buf
            if self.writes:
                entry.received = buf
            else:
                entry.before = contents_of(memory)
        self.requests.begin_again(entry, handle._inner)
        self.recorder.repeat(known.shape, number)

    def received_in_vain(self, known: Repeat, status: Status, problem: Exception) -> None:
        """A receive has ended with an error."""
        got = got_in_vain(problem, status, self.objects)
        if got is not None:
            self.recorder.write_event((*known.event[:_GOT], got))


# what is in each of these calls' way; methods can be found by Python alone, and hand on to them


@cfunc
def _send(calls: Repeats, original: Any, comm: Any, buf: Any, dest: Any, tag: Any) -> Any:
    known = calls.message_again(comm, buf, dest, tag)
    if known is None:
        return calls.make_call(comm, (buf, dest, tag), {})
    within = calls.within
    within.main = within.quiet = True
    calls.recorder.repeat(known.shape, 0)
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
    known = calls.message_again(comm, buf, source, tag)
    if known is None:
        return calls.receive_message(comm, (buf, source, tag), status)
    filled = calls.scratch if status is None else status
    within = calls.within
    within.main = within.quiet = True
    try:
        result = original(comm, buf, source, tag, filled)
        calls.received(known, filled, status is not None, result if calls.objects else buf)
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
    known = None
    if not named:
        known = calls.again(comm, args)
    elif args or not calls.objects:
        known = calls.again(comm, (*args, *named.values(), *named))
    if known is None:
        return calls.make_call(comm, args, named)
    within = calls.within
    within.main = within.quiet = True
    calls.recorder.repeat(known.shape, 0)
    try:
        return original(comm, *args, **named)
    except Exception as problem:
        calls.failed(known, problem)
        raise
    finally:
        within.main = within.quiet = False


@cfunc
def _begin(calls: Repeats, original: Any, comm: Any, buf: Any, peer: Any, tag: Any) -> Any:
    known = calls.message_again(comm, buf, peer, tag)
    memory = None
    if known is not None and calls.objects:
        if calls.requests.unguarded and not calls.is_quiet(known):
            known = None
    elif known is not None:
        memory = memory_of(buf)
        if (
            memory is None
            or not calls.is_quiet(known)
            or (calls.requests.unguarded and not calls.requests.may_use(memory, calls.writes))
        ):
            known = None
    if known is None:
        return calls.make_call(comm, (buf, peer, tag), {})
    within = calls.within
    within.main = within.quiet = True
    try:
        request = original(comm, buf, peer, tag)
    except Exception as problem:
        calls.failed(known, problem)
        raise
    finally:
        within.main = within.quiet = False
    calls.begun(known, request, buf, memory)
    return request


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


def _beginning_to_send(calls: Repeats, original: Any) -> Callable[..., Any]:
    """A method that begins to send."""

    def method(comm: Any, buf: Any, dest: Any, tag: Any = 0) -> Any:
        return _begin(calls, original, comm, buf, dest, tag)

    return method


def _beginning_to_send_object(calls: Repeats, original: Any) -> Callable[..., Any]:
    """The same of an object, whose argument has another name."""

    def method(comm: Any, obj: Any, dest: Any, tag: Any = 0) -> Any:
        return _begin(calls, original, comm, obj, dest, tag)

    return method


def _beginning_to_receive(calls: Repeats, original: Any) -> Callable[..., Any]:
    """A method that begins to receive."""

    def method(comm: Any, buf: Any = None, source: Any = ANY_SOURCE, tag: Any = ANY_TAG) -> Any:
        return _begin(calls, original, comm, buf, source, tag)

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
    **dict.fromkeys(("Isend", "Ibsend", "Issend", "Irsend"), _beginning_to_send),
    **dict.fromkeys(("isend", "ibsend", "issend"), _beginning_to_send_object),
    **dict.fromkeys(("Irecv", "irecv"), _beginning_to_receive),
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
    """Have calls that come again written without their handlers.

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
