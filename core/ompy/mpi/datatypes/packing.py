"""Pack and Unpack, in the native and in the portable representation."""

from __future__ import annotations

from typing import Any

from ompy.data.errors import ERR_ARG, ERR_TRUNCATE, ERR_UNSUPPORTED_DATAREP
from ompy.data.message import Message
from ompy.mpi.buffers.access import acquire
from ompy.mpi.buffers.markers import BottomType
from ompy.mpi.buffers.spec import message
from ompy.mpi.datatypes import external32
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.errors import MPIException


def _elements(datatype: Datatype, buffer: Any, writable: bool) -> Message:
    """As many whole elements as a buffer holds; what is left over at its end is left alone.

    `BOTTOM` says nothing of how many there are: none are taken, as mpi4py does.
    """
    extent = datatype.Get_extent()[1]
    if isinstance(buffer, BottomType):
        return message([buffer, 0, datatype], writable).message
    count = len(acquire(buffer, writable).view) // extent if extent > 0 else 0
    return message([buffer, count, datatype], writable).message


def pack_buffer(datatype: Datatype, inbuf: Any, outbuf: Any, position: int) -> int:
    """Pack as many elements as `inbuf` holds into `outbuf`; the next position."""
    return _store(_elements(datatype, inbuf, False).packed(), outbuf, position)


def unpack_buffer(datatype: Datatype, inbuf: Any, position: int, outbuf: Any) -> int:
    """Unpack as many elements as `outbuf` has room for; the next position."""
    target = _elements(datatype, outbuf, True)
    packed = _load(inbuf, position, target.size)
    target.store(packed)
    return position + target.size


def pack_external(datatype: Datatype, datarep: str, inbuf: Any, outbuf: Any, position: int) -> int:
    """As `pack`, portable."""
    _check_representation(datarep)
    packed = _elements(datatype, inbuf, False).packed()
    return _store(external32.encode(datatype, packed), outbuf, position)


def unpack_external(
    datatype: Datatype, datarep: str, inbuf: Any, position: int, outbuf: Any
) -> int:
    """As `unpack`, portable."""
    _check_representation(datarep)
    target = _elements(datatype, outbuf, True)
    size = external32.external32_size(datatype, target.count)
    target.store(external32.decode(datatype, _load(inbuf, position, size)))
    return position + size


def external_size(datatype: Datatype, datarep: str, count: int) -> int:
    """Bytes of `count` elements, portable."""
    _check_representation(datarep)
    return external32.external32_size(datatype, count)


def _check_representation(name: str) -> None:
    if name != "external32":
        raise MPIException(
            ERR_UNSUPPORTED_DATAREP, f"{name!r}: the only representation there is is external32"
        )


def _store(packed: bytes | bytearray, outbuf: Any, position: int) -> int:
    view = acquire(outbuf, True).view
    end = position + len(packed)
    _check_position(position, end, len(view))
    view[position:end] = packed
    return end


def _load(inbuf: Any, position: int, size: int) -> memoryview:
    view = acquire(inbuf, False).view
    _check_position(position, position + size, len(view))
    return view[position : position + size]


def _check_position(position: int, end: int, size: int) -> None:
    if position < 0:
        raise MPIException(ERR_ARG, f"position {position} is negative")
    if end > size:
        raise MPIException(
            ERR_TRUNCATE, f"bytes {position} to {end} are beyond the buffer's {size} bytes"
        )
