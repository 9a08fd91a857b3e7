"""NumPy arrays as messages, without pickle.

A contiguous, writable array of numbers travels as a header and its memory:

    magic (7 bytes), header's lines of 64 bytes u8 | order u8 (C or F), dimensions u8,
    length of the dtype u8, 5 bytes of 0 | extents u64 each | dtype as in `dtype.str` | 0s | data

NumPy's own pickling of 1 KiB takes eleven times as long. What a receiver gets is what pickle would
have given it: a new array of that dtype, shape and order. All others go by pickle: subclasses,
objects, fields, strings, dates, arrays with gaps, read-only ones, and arrays for which somebody
has registered a reduction of his own (copyreg).

NumPy is never imported to find out whether an object is an array: who has one has imported it.
"""

from __future__ import annotations

import sys
from struct import Struct
from typing import Any, Final

from ompy.compiled import ccall, cfunc
from ompy.mpi.buffers.access import raw_bytes

MAGIC: Final = b"\x02ompy\xa5\xff"  # arbitrary: begins no pickle, no JSON and no text
LINE: Final = 64  # bytes; arbitrary: a cache line, so that the data are aligned for anything
LINES_AT: Final[int] = len(MAGIC)
PREFIX: Final = Struct("<7sBBBB5x")
assert PREFIX.size == 16
NUMBERS: Final = frozenset("biufc")  # NumPy's kinds whose memory is all there is to them
HEADERS_MAX: Final = 256  # arbitrary: programs send few kinds of arrays again and again

_numpy: Final[dict[str, Any]] = {}
_headers: Final[dict[tuple[Any, ...], bytes]] = {}  # by dtype, shape and order
_parsed: Final[dict[bytes, tuple[Any, ...]]] = {}  # the other way round


@ccall
def is_array(obj: Any) -> bool:
    """Whether it is an array of NumPy's own class."""
    if not _numpy:
        there = sys.modules.get("numpy")
        if there is None or not hasattr(there, "ndarray"):  # or its import is under way
            return False
        _find(there)
    return obj.__class__ is _numpy["ndarray"] and obj.__class__ not in _numpy["reductions"]


@cfunc
def _find(numpy: Any) -> None:
    import copyreg  # NumPy has imported it

    _numpy["ndarray"] = numpy.ndarray
    _numpy["dtype"] = numpy.dtype
    _numpy["reductions"] = copyreg.dispatch_table


@ccall
def encode_array(array: Any) -> tuple[bytes, memoryview] | None:
    """Header and memory of an array; None when it is to go by pickle."""
    flags, dtype = array.flags, array.dtype
    ordered = flags.c_contiguous
    if not (ordered or flags.f_contiguous) or not flags.writeable or dtype.kind not in NUMBERS:
        return None
    if dtype.isbuiltin == 2 or dtype.metadata is not None:  # 2: of somebody else
        return None
    if dtype.char in "gG" and not dtype.isnative:  # the buffer protocol has no such thing
        return None
    key = (dtype, array.shape, ordered)
    header: bytes | None = _headers.get(key)
    if header is None:
        header = _header(dtype.str.encode(), array.shape, b"C" if ordered else b"F")
        if len(_headers) >= HEADERS_MAX:
            _headers.clear()
        _headers[key] = header
    return header, raw_bytes(memoryview(array))


@cfunc
def _header(code: bytes, shape: tuple[int, ...], order: bytes) -> bytes:
    rest = Struct(f"<{len(shape)}Q").pack(*shape) + code
    lines = -(-(PREFIX.size + len(rest)) // LINE)
    return (PREFIX.pack(MAGIC, lines, order[0], len(shape), len(code)) + rest).ljust(
        lines * LINE, b"\0"
    )


@ccall
def decode_array(view: memoryview) -> Any:
    """The array in a message, which it keeps alive; None when the message is no array.

    Raises:
        ImportError: there is no NumPy here.
    """
    if len(view) < LINE:
        return None
    start: int = view[LINES_AT] * LINE
    header: bytes = bytes(view[:start])
    known = _parsed.get(header)
    if known is None:
        if not header.startswith(MAGIC):
            return None
        known = _parse(header)
    dtype, shape, order = known
    return _numpy["ndarray"](shape, dtype, view, start, None, order)


@cfunc
def _parse(header: bytes) -> tuple[Any, ...]:
    if not _numpy:
        import numpy as np

        _find(np)
    dimensions: int
    length: int
    _, _, order, dimensions, length = PREFIX.unpack_from(header)
    extents = Struct(f"<{dimensions}Q")
    shape = extents.unpack_from(header, PREFIX.size)
    begin: int = PREFIX.size + extents.size
    dtype = _numpy["dtype"](header[begin : begin + length].decode())
    if len(_parsed) >= HEADERS_MAX:
        _parsed.clear()
    found = _parsed[header] = (dtype, shape, chr(order))
    return found
