"""Messages of the common forms: a contiguous buffer of numbers, alone or with its datatype.

What has no common form is read by `spec.py`, the longer way.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cfunc
from ompy.data.layout import Layout
from ompy.data.message import Message, message_of
from ompy.mpi.buffers.markers import InPlaceType
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import FORMATS, typedict
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.handles import Handle

# of buffers of one kind of numbers, by its character
DATATYPES: Final[dict[str, Any]] = {k: known for k, known in FORMATS.items() if len(k) == 1}
# their layouts, by its number
LAYOUTS: Final[list[Any]] = [
    DATATYPES[chr(code)]._inner.layout if chr(code) in DATATYPES else None for code in range(128)
]
ANY: Final = 0
PREDEFINED: Final = 1
TOGETHER: Final = 2
BEYOND: Final = 1 << 40  # arbitrary, as `raw.small` has it
EXTENTS: Final = 1 << 31  # arbitrary: the product of two of them is no more than a number
LOWEST: Final = 1 << 12  # source: Linux mm: vm.mmap_min_addr, the first page is nobody's


@ccall
def says_in_place(spec: Any) -> bool:
    """Whether a specification says that the data are in the other buffer: with a type, too."""
    if isinstance(spec, (list, tuple)) and spec:
        return type(spec[0]) is InPlaceType
    return spec is None or type(spec) is InPlaceType


@ccall
def plain(buffer: Any, writable: bool) -> Message | None:
    """The message that a contiguous buffer of numbers is, or None for whatever else it may be.

    The buffer may be given with its predefined datatype, and a count.
    """
    if isinstance(buffer, (list, tuple)):
        return _of_type(buffer, writable, TOGETHER)
    try:
        view = raw.look_at_buffer(buffer)
    except (TypeError, ValueError):
        return None
    layout: Layout | None = LAYOUTS[raw.code(view)]
    if layout is None or (writable and not raw.is_writable(view)):
        return None
    memory = raw.as_bytes(view)
    size: int = layout.size
    return message_of(memory, 0, raw.size(memory) // size, layout)


@ccall
def plain_or_derived(spec: Any, writable: bool) -> Message | None:
    """As `plain`; with any datatype, if the buffer is contiguous."""
    if isinstance(spec, (list, tuple)):
        return _of_type(spec, writable, ANY)
    return plain(spec, writable)


@ccall
def operand(spec: Any, writable: bool) -> Message | None:
    """As `plain`; a predefined datatype may have gaps: values with an index."""
    if isinstance(spec, (list, tuple)):
        return _of_type(spec, writable, PREDEFINED)
    return plain(spec, writable)


@cfunc
def _of_type(spec: Sequence[Any], writable: bool, kinds: int) -> Message | None:
    """The message of [buffer, datatype], with a count, or with a count and a displacement; or None.

    Args:
        spec: what the user wrote.
        writable: it is to be received into.
        kinds: ANY datatype, a PREDEFINED one, or such a one without gaps: TOGETHER.
    """
    size: int = len(spec)
    if size < 2 or size > 4 or (size > 2 and type(spec[1]) is not int):
        return None
    state: TypeState | None = committed_state(spec[size - 1])
    if state is None:
        return None
    layout = state.described()
    known: bool = kinds == ANY or (state.predefined and (kinds < TOGETHER or layout.contiguous))
    view = bytes_of(spec[0], writable) if known and layout.size else None
    if view is None:
        return None
    room: int = raw.size(view)
    count: int
    first: int = 0
    if size > 2:
        count = raw.small(spec[1])
        first = _origin(spec[2], layout) if size > 3 else 0
    elif layout.contiguous and room % layout.size == 0:
        count = room // layout.size
    else:
        return None
    if first > room or not fits(layout, count, first, room):
        return None
    return message_of(view, first, count, layout)


@cfunc
def _origin(displacement: Any, layout: Layout) -> int:
    """Byte where elements begin; -1 where anything is unusual."""
    number: int = raw.small(displacement)
    extent: int = layout.extent
    return number * extent if 0 <= number < EXTENTS and 0 < extent < EXTENTS else -1


@ccall
def fits(layout: Layout, count: int, first: int, room: int) -> bool:
    """Whether elements from a byte on are in so many bytes; false also for unusual numbers."""
    size: int = layout.size
    if not 0 <= count <= room or not 0 <= first < BEYOND or size > room:
        return False
    if layout.contiguous:
        if size and count > room // size:  # a product beyond 64 bits would be a small number
            return False
        size *= count
    else:
        lower, size = layout.span(count)
        first += lower
    return not size or (first >= 0 and first + size <= room)


@ccall
def bytes_of(buffer: Any, writable: bool) -> memoryview | None:
    """The bytes of a contiguous buffer whose datatype is given apart, or None."""
    view = raw.any_bytes(buffer)
    return None if view is None or (writable and not raw.is_writable(view)) else view


@ccall
def committed_state(kind: Any) -> TypeState | None:
    """The state of a datatype that may be used in a message, or None."""
    if type(kind) is not Datatype:
        if isinstance(kind, str):
            kind = typedict.get(kind)
        if not isinstance(kind, Datatype):
            return None
    handle: Handle = kind
    state: TypeState | None = handle._inner
    return state if state is not None and state.committed else None
