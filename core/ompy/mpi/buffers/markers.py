"""BOTTOM, IN_PLACE, BUFFER_AUTOMATIC: addresses with a meaning of their own."""

from __future__ import annotations

from typing import ClassVar, Final


class Marker:
    """An address that stands for something. Like an integer, without arithmetic."""

    __slots__ = ()

    _address: ClassVar[int] = 0
    _text: ClassVar[str] = ""

    def __hash__(self) -> int:
        return hash(self._address)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Marker):
            return self._address == other._address
        return self._address == other if isinstance(other, int) else NotImplemented

    def __bool__(self) -> bool:
        return bool(self._address)

    def __int__(self) -> int:
        return self._address

    def __repr__(self) -> str:
        return self._text

    def __reduce__(self) -> str:
        return self._text

    def __buffer__(self, flags: int, /) -> memoryview:  # Python 3.12 on
        # no format of numbers: it stands for no empty buffer
        return memoryview(b"").cast("c")  # type: ignore[return-value]


class BottomType(Marker):
    """Type of BOTTOM."""

    __slots__ = ()
    _text: ClassVar[str] = "BOTTOM"

    def __index__(self) -> int:
        return self._address


class InPlaceType(Marker):
    """Type of IN_PLACE."""

    __slots__ = ()
    _address: ClassVar[int] = 1  # source: Open MPI mpi.h
    _text: ClassVar[str] = "IN_PLACE"


class BufferAutomaticType(Marker):
    """Type of BUFFER_AUTOMATIC."""

    __slots__ = ()
    _address: ClassVar[int] = 2  # source: Open MPI mpi.h
    _text: ClassVar[str] = "BUFFER_AUTOMATIC"


BOTTOM: Final = BottomType()
IN_PLACE: Final = InPlaceType()
BUFFER_AUTOMATIC: Final = BufferAutomaticType()
