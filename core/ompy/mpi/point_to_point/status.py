"""`MPI.Status`: what is known about a message that came."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Final, Self

from ompy import raw
from ompy.compiled import Shown, ccall, cclass, cfunc
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, UNDEFINED
from ompy.data.errors import ERR_COUNT, ERR_TYPE, SUCCESS
from ompy.data.request import Request
from ompy.mpi.constants import F_ERROR, F_SOURCE, F_STATUS_SIZE, F_TAG
from ompy.mpi.datatypes.datatype import Datatype, state_of
from ompy.mpi.datatypes.predefined import BYTE
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.errors import MPIException
from ompy.mpi.integers import c_int, whole_number
from ompy.mpi.kinds import check_kind

# places after source, tag and error in a status as integers
_CANCELLED: Final = 3  # source: Open MPI mpi.h
_COUNT_LOW: Final = 4  # source: Open MPI mpi.h
_COUNT_HIGH: Final = 5  # source: Open MPI mpi.h


@cclass
class Described:
    """What a status says, as calls fill it in."""

    _bytes: Shown[int]
    _cancelled: Shown[bool]
    _error: Shown[int]
    _memory: Shown[Any]
    _source: Shown[int]
    _tag: Shown[int]
    __slots__ = (*__annotations__, "__weakref__")

    @ccall
    def _set(self, source: int, tag: int, error: int, size: int, cancelled: bool) -> None:
        self._source = source
        self._tag = tag
        self._error = error
        self._bytes = size
        self._cancelled = cancelled
        if self._memory is not None:
            self._memory[:3] = memoryview(_integers((source, tag, error)))

    @ccall
    def _clear(self) -> None:
        """Describe no message at all."""
        self._set(ANY_SOURCE, ANY_TAG, SUCCESS, 0, False)

    @ccall
    def _no_process(self) -> None:
        """Describe what comes from PROC_NULL."""
        self._set(PROC_NULL, ANY_TAG, SUCCESS, 0, False)

    @ccall
    def _fill(self, request: Request) -> None:
        """Describe the message of a completed receive."""
        self._set(request.source, request.tag, request.error, request.received, request.cancelled)


@ccall
def check_status(status: Any) -> None:
    """See that a call was given a status to fill in, or none.

    Raises:
        TypeError: it is something else.
    """
    if status is not None and not isinstance(status, Described):
        check_kind(status, "Status", "status")


@ccall
def clear_status(status: Described | None) -> None:
    """Have a status, where one was given, describe no message."""
    if status is not None:
        status._clear()


class Status(Described):
    """Source, tag, error and length of a message."""

    __slots__ = ()

    def __new__(cls, status: Status | None = None) -> Self:
        """An empty status, or a copy of one."""
        self: Self = raw.instance(Described, cls)
        made: Described = self
        made._memory = None
        if status is None:
            made._clear()
        elif isinstance(status, Status):
            self._source = status.source
            self._tag = status.tag
            self._error = status.error
            self._bytes = status._bytes
            self._cancelled = status._cancelled
        else:
            raise TypeError(f"expecting a Status, not {type(status).__name__}")
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return self.__getstate__() == other.__getstate__()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        return type(self), (), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "tag": self.tag,
            "error": self.error,
            "count": self._bytes,
            "cancelled": self._cancelled,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        values = (state[name] for name in ("source", "tag", "error", "count", "cancelled"))
        self._set(*values)

    def Get_source(self) -> int:
        """The sender's rank."""
        said: Described = self
        return said._source if said._memory is None else int(said._memory[F_SOURCE])

    def Set_source(self, source: int) -> None:
        """Set the sender's rank."""
        said: Described = self
        said._source = c_int(source)
        if said._memory is not None:
            said._memory[F_SOURCE] = said._source

    def Get_tag(self) -> int:
        """The message's tag."""
        said: Described = self
        return said._tag if said._memory is None else int(said._memory[F_TAG])

    def Set_tag(self, tag: int) -> None:
        """Set the message's tag."""
        said: Described = self
        said._tag = c_int(tag)
        if said._memory is not None:
            said._memory[F_TAG] = said._tag

    def Get_error(self) -> int:
        """The error code of the operation."""
        said: Described = self
        return said._error if said._memory is None else int(said._memory[F_ERROR])

    def Set_error(self, error: int) -> None:
        """Set the error code of the operation."""
        said: Described = self
        said._error = c_int(error)
        if said._memory is not None:
            said._memory[F_ERROR] = said._error

    def Get_count(self, datatype: Datatype = BYTE) -> int:
        """Elements of a datatype in the message; UNDEFINED if they are not whole."""
        said: Described = self
        length = said._bytes
        if datatype is BYTE:
            return length
        if type(datatype) is not Datatype:
            check_kind(datatype, "Datatype", "datatype")
        return _whole(length, state_of(datatype).described().size)

    def Get_elements(self, datatype: Datatype) -> int:
        """Basic elements of a datatype in the message; UNDEFINED if they are not whole."""
        if type(datatype) is not Datatype:
            check_kind(datatype, "Datatype", "datatype")
        said: Described = self
        state: TypeState = state_of(datatype)
        basic = state.basic_size()
        if basic:
            return _whole(said._bytes, basic if state.described().size else 0)
        from ompy.mpi.datatypes.signatures import elements_in

        return elements_in(state, said._bytes)

    def Set_elements(self, datatype: Datatype, count: int) -> None:
        """Set the message's length to that of `count` basic elements of a datatype."""
        if type(datatype) is not Datatype:
            check_kind(datatype, "Datatype", "datatype")
        if datatype._inner is None:
            raise MPIException(ERR_TYPE, "the datatype is null")
        number = _checked(count)
        said: Described = self
        state: TypeState = state_of(datatype)
        basic = state.basic_size()
        if basic:
            said._bytes = number * basic if state.described().size else 0
            return
        from ompy.mpi.datatypes.signatures import bytes_of_elements

        said._bytes = bytes_of_elements(state, number)

    def Is_cancelled(self) -> bool:
        """Whether the operation was cancelled."""
        said: Described = self
        return said._cancelled

    def Set_cancelled(self, flag: bool) -> None:
        """Say whether the operation was cancelled."""
        said: Described = self
        said._cancelled = bool(flag)

    source = property(Get_source, Set_source, doc="The sender's rank.")
    tag = property(Get_tag, Set_tag, doc="The message's tag.")
    error = property(Get_error, Set_error, doc="The error code of the operation.")
    cancelled = property(Is_cancelled, Set_cancelled, doc="Whether it was cancelled.")

    @property
    def count(self) -> int:
        """The message's length in bytes."""
        said: Described = self
        return said._bytes

    @count.setter
    def count(self, value: int) -> None:
        self._bytes = _checked(value)

    def tomemory(self) -> memoryview:
        """The status as integers; what is written there changes source, tag and error."""
        if self._memory is None:
            self._memory = memoryview(_integers(self.py2f()))
        found: memoryview = self._memory
        return found

    def py2f(self) -> list[int]:
        """The status as Fortran integers."""
        said: Described = self
        if said._memory is None:
            source, tag, error = said._source, said._tag, said._error
        else:
            source, tag, error = said._memory[:3]
        size = said._bytes
        return [source, tag, error, int(said._cancelled), _signed(size), size >> 32]

    @classmethod
    def f2py(cls, arg: list[int]) -> Self:
        """The status that Fortran integers stand for."""
        if len(arg) != F_STATUS_SIZE:
            raise ValueError(f"expecting {F_STATUS_SIZE} integers, got {len(arg)}")
        self = cls()
        size = (arg[_COUNT_HIGH] << 32) + (arg[_COUNT_LOW] & 0xFFFFFFFF)
        self._set(arg[F_SOURCE], arg[F_TAG], arg[F_ERROR], size, bool(arg[_CANCELLED]))
        return self


@cfunc
def _whole(length: int, size: int) -> int:
    """How many elements of `size` bytes there are; UNDEFINED if they are not whole."""
    if not size:
        return 0 if not length else UNDEFINED
    return length // size if length % size == 0 else UNDEFINED


@cfunc
def _checked(count: Any) -> int:
    """A number of elements, which is not negative."""
    found: int = whole_number(count)
    if found < 0:
        raise MPIException(ERR_COUNT, f"{found} is negative")
    return found


def _integers(values: Any) -> Any:
    from array import array

    return array("i", values)


def _signed(value: int) -> int:
    """The lower 32 bits as a signed integer."""
    low = value & 0xFFFFFFFF
    return low - (1 << 32) if low >= 1 << 31 else low


def room_for(statuses: list[Status] | None, size: int) -> list[Status | None]:
    """The first `size` statuses; a list is filled up, another sequence gives what it has.

    Raises:
        TypeError: they are no sequence, or one of them is no status.
    """
    if statuses is None:
        return [None] * size
    missing = size - len(statuses)
    if isinstance(statuses, list):
        statuses += [Status() for _ in range(missing)]
    found: list[Status | None] = []
    for place in range(min(size, len(statuses))):
        if not isinstance(statuses[place], Status):
            kind = type(statuses[place]).__name__
            raise TypeError(f"Cannot convert {kind} to mpi4py.MPI.Status")
        found.append(statuses[place])
    return [*found, *[None] * (size - len(found))]
