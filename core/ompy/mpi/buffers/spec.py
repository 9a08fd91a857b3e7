"""What may stand for a message: a buffer, or [buffer, count, displacement, datatype].

The forms are those of reference mpi4py.md 8. Errors in them are Python's (ValueError, TypeError,
KeyError, BufferError) with texts that begin "message: ".
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from operator import index
from typing import Any, NamedTuple

from ompy import raw
from ompy.compiled import ccall, cfunc
from ompy.data.errors import ERR_ARG, ERR_BUFFER, ERR_TYPE
from ompy.data.layout import Layout
from ompy.data.message import Blocks, Message, blocks_from, message_of
from ompy.mpi.buffers.access import DATES, FORMLESS, acquire
from ompy.mpi.buffers.common_forms import (
    BEYOND,
    DATATYPES,
    EXTENTS,
    LAYOUTS,
    LOWEST,
    bytes_of,
    committed_state,
    fits,
    plain_or_derived,
)
from ompy.mpi.buffers.markers import BottomType, InPlaceType, Marker
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import BYTE, of_format, typedict
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.errors import MPIException


class Typed(NamedTuple):
    """A message, and the datatype the user named for it."""

    message: Message
    datatype: Datatype


class TypedBlocks(NamedTuple):
    """A message per rank, and the datatype the user named for them."""

    blocks: Blocks
    datatype: Datatype


# --- the common forms, straight


@cfunc
def _typed(message: Message, datatype: Any) -> Typed:
    """What `Typed()` makes, without its function of Python: that takes as long as all the rest."""
    made: Typed = tuple.__new__(Typed, (message, datatype))
    return made


@cfunc
def _straight(spec: Any, writable: bool, blocks: int) -> Typed | None:
    """The message of a contiguous buffer of numbers, or None for whatever else it may be."""
    if isinstance(spec, (list, tuple)):
        return _straight_of_type(spec, writable, blocks)
    try:
        view = raw.look_at_buffer(spec)
    except (TypeError, ValueError):
        return None
    code: int = raw.code(view)
    datatype = DATATYPES.get(chr(code))
    if datatype is None or (writable and not raw.is_writable(view)):
        return None
    layout = LAYOUTS[code]
    memory = raw.as_bytes(view)
    size: int = layout.size
    items: int = raw.size(memory) // size
    if items % blocks:
        return None
    return _typed(message_of(memory, 0, items // blocks, layout), datatype)


@cfunc
def _straight_of_type(spec: Sequence[Any], writable: bool, blocks: int) -> Typed | None:
    """The same of one that is given with its datatype; a count is of one block."""
    whole: Message | None = plain_or_derived(spec, writable)
    if whole is None:
        return None
    if blocks > 1 and len(spec) > 2:
        if not fits(whole.layout, whole.count * blocks, whole.origin, raw.size(whole.memory)):
            return None
        blocks = 1
    if whole.count % blocks:
        return None
    datatype = spec[-1]
    if isinstance(datatype, str):
        datatype = typedict.get(datatype)
    one = message_of(whole.memory, whole.origin, whole.count // blocks, whole.layout)
    return _typed(one, datatype)


@ccall
def plain_vector_blocks(spec: Any, writable: bool, ranks: int) -> Blocks | None:
    """Blocks of one datatype, with lists of integers; None for whatever else it may be."""
    parts = _with_counts(spec)
    whole = None if parts is None else _elements(parts[0], parts[3], writable)
    numbers = None if parts is None else _listed(parts[1], ranks)
    if parts is None or whole is None or numbers is None:
        return None
    view, layout = whole.memory, whole.layout
    regular: bool = parts[2] is None and numbers.count(numbers[0]) == ranks
    starts = None if parts[2] is None else _listed(parts[2], ranks)
    if starts is None and parts[2] is not None:
        return None
    origins: list[int] | None
    if layout.contiguous:
        origins = _straight_origins(numbers, starts, layout.size, raw.size(view))
    else:
        origins = _origins_with_gaps(numbers, starts, layout, raw.size(view))
    if origins is None:
        return None
    return blocks_from(view, numbers, origins, [layout] * ranks, regular)


@cfunc
def _elements(buffer: Any, kind: Any, writable: bool) -> Message | None:
    """The memory of a buffer, and what its elements are."""
    if kind is None:
        whole = None if isinstance(buffer, (list, tuple)) else _straight(buffer, writable, 1)
        return None if whole is None else whole.message
    state: TypeState | None = committed_state(kind)
    view = None if state is None else bytes_of(buffer, writable)
    if state is None or view is None:
        return None
    layout = state.described()
    return message_of(view, 0, 1, layout) if layout.size else None


@cfunc
def _straight_origins(
    counts: list[int], displacements: list[int] | None, item: int, size: int
) -> list[int] | None:
    """Where blocks begin, in bytes; None if there is anything unusual about their numbers."""
    room: int = size // item  # elements; also of offsets, so that nothing overflows
    origins: list[int] = []
    at: int = 0
    place: int
    for place in range(len(counts)):
        count: int = raw.small(counts[place])
        if displacements is not None:
            at = raw.small(displacements[place])
        if not 0 <= at <= room or not 0 <= count <= room - at:
            return None
        origins.append(at * item)
        at += count
    return origins


@cfunc
def _origins_with_gaps(
    counts: list[int], displacements: list[int] | None, layout: Layout, room: int
) -> list[int] | None:
    """The same of elements with gaps."""
    extent: int = layout.extent
    if not 0 < extent < EXTENTS:
        return None
    origins: list[int] = []
    at: int = 0
    place: int
    for place in range(len(counts)):
        count: int = raw.small(counts[place])
        if displacements is not None:
            at = raw.small(displacements[place])
        if not 0 <= at < EXTENTS or at * extent > room:
            return None
        if not fits(layout, count, at * extent, room):
            return None
        origins.append(at * extent)
        at += count
    return origins


@cfunc
def _straight_typed(spec: Any, writable: bool, ranks: int) -> Blocks | None:
    """Blocks of a datatype each, with lists of integers; None for whatever else it may be."""
    parts = _with_counts(spec)
    if parts is None or not isinstance(parts[3], (list, tuple)) or len(parts[3]) != ranks:
        return None
    view = bytes_of(parts[0], writable)
    numbers = _listed(parts[1], ranks)
    origins = _listed(parts[2], ranks)
    if view is None or numbers is None or origins is None:
        return None
    layouts: list[Layout] = []
    place: int
    for place in range(ranks):
        state: TypeState | None = committed_state(parts[3][place])
        if state is None:
            return None
        layout = state.described()
        if not fits(layout, raw.small(numbers[place]), raw.small(origins[place]), raw.size(view)):
            return None
        layouts.append(layout)
    return blocks_from(view, numbers, origins, layouts, False)


@cfunc
def _with_counts(spec: Any) -> tuple[Any, Any, Any, Any] | None:
    """Buffer, counts, displacements, datatype or datatypes, of a form that has counts."""
    if not isinstance(spec, (list, tuple)) or not 2 <= len(spec) <= 4:
        return None
    counts, displacements = spec[1], None
    if len(spec) == 4:
        displacements = spec[2]
    elif isinstance(counts, tuple) and len(counts) == 2:
        counts, displacements = counts
    return spec[0], counts, displacements, spec[-1] if len(spec) > 2 else None


@cfunc
def _listed(numbers: Any, ranks: int) -> list[int] | None:
    """A new list of so many numbers, of a sequence or an array; None for whatever else it is.

    They may be no integers: `raw.small` finds that out.
    """
    found: list[int]
    if isinstance(numbers, (list, tuple)):
        found = list(numbers)
    elif isinstance(numbers, int) or not hasattr(numbers, "tolist"):
        return None
    else:
        several = numbers.tolist()
        if not isinstance(several, list):
            return None
        found = several
    return found if ranks and len(found) == ranks else None


# --- the whole grammar


def message(spec: Any, writable: bool, blocks: int = 1) -> Typed:
    """The message a specification stands for.

    Args:
        spec: what the user wrote.
        writable: it is to be received into.
        blocks: ranks that get as much each; the message is the first rank's.
    """
    found = _straight(spec, writable, blocks) if blocks > 0 else None  # 0: it has no neighbours
    return _parsed(spec, writable, blocks) if found is None else found


def _parsed(spec: Any, writable: bool, blocks: int) -> Typed:
    """The same, of any specification."""
    buffer, count, displacement, kind = _parts(spec)
    if isinstance(count, list) and displacement is None:  # of one message, a list is no counts
        count, displacement = count
    view, datatype = _resolve(buffer, kind, writable)
    if datatype._inner is None:
        _refuse_null(view, count, displacement)
    layout = _layout(datatype)
    start = 0
    if displacement is not None:
        room = 0 if buffer is None else BEYOND if view is None else len(view)
        start = _origin(_number(displacement), layout, room)
    if count is None:
        number = _inferred(view, start, layout, blocks)
    else:
        number = _number(count)
        if number < 0:
            raise ValueError(f"message: negative count {number}")
    if view is None:
        if number and buffer is None:
            raise ValueError(f"message: the buffer is None, but the count is {number}")
        memory, origin = _absolute([(start, number * blocks, layout)], writable)
        return _typed(Message(memory, origin + start, number, layout), datatype)
    _check_room(view, start, number * blocks, layout)
    return _typed(Message(view, start, number, layout), datatype)


def even_blocks(spec: Any, writable: bool, ranks: int) -> TypedBlocks:
    """Equal messages for all ranks, side by side."""
    first, datatype = message(spec, writable, ranks)
    made = Blocks.even(first.memory, first.origin, first.count, first.layout, ranks)
    found: TypedBlocks = tuple.__new__(TypedBlocks, (made, datatype))
    return found


def vector_blocks(spec: Any, writable: bool, ranks: int) -> TypedBlocks:
    """A message per rank, with counts and displacements."""
    buffer, counts, displacements, kind = _parts(spec)
    view, datatype = _resolve(buffer, kind, writable)
    if datatype._inner is None:
        _refuse_null(view, counts, None)
    layout = _layout(datatype)
    numbers = _counts(counts, view, layout, ranks)
    if any(number < 0 for number in numbers):
        raise ValueError(f"message: negative count among {numbers}")
    at = _displacements(displacements, numbers)
    regular = displacements is None and len(set(numbers)) <= 1
    starts = [i * layout.extent for i in at]
    pieces = [(start, n, layout) for start, n in zip(starts, numbers, strict=True)]
    if view is None:
        if any(numbers) and buffer is None:
            raise ValueError(f"message: the buffer is None, but the counts are {numbers}")
        view, origin = _absolute(pieces, writable)
        starts = [start + origin for start in starts]
    else:
        for piece in pieces:
            _check_room(view, *piece)
    return TypedBlocks(Blocks(view, numbers, starts, [layout] * ranks, regular=regular), datatype)


@ccall
def typed_blocks(spec: Any, writable: bool, ranks: int) -> Blocks:
    """A message of its own datatype per rank, displacements in bytes."""
    straight = _straight_typed(spec, writable, ranks)
    if straight is not None:
        return straight
    buffer, counts, displacements, kinds = _typed_parts(spec)
    if buffer is None or isinstance(buffer, Marker):
        if counts is None or displacements is None:
            raise ValueError("message: BOTTOM needs counts and displacements")
        view = None
    else:
        view = acquire(buffer, writable).view
    layouts = [_layout(_named(kind)) for kind in kinds]
    if len(layouts) != ranks:
        raise ValueError(f"message: expecting {ranks} datatypes, got {len(layouts)}")
    numbers = _integers(1 if counts is None else counts, ranks, "counts")
    if min(numbers, default=0) < 0:
        raise ValueError(f"message: negative count among {numbers}")
    starts = _integers(0 if displacements is None else displacements, ranks, "displacements")
    pieces = list(zip(starts, numbers, layouts, strict=True))
    if view is None:
        view, origin = _absolute(pieces, writable)
        starts = [start + origin for start in starts]
    else:
        for piece in pieces:
            _check_room(view, *piece)
    return Blocks(view, numbers, starts, layouts)


# --- parts


def _parts(spec: Any) -> tuple[Any, Any, Any, Any]:
    """Buffer, count(s), displacement(s), datatype; None for what is not said."""
    if spec is None:
        raise TypeError(
            "message: expecting a buffer or a list/tuple that begins with one, not None: "
            "what is empty is [None, 0, datatype]"
        )
    if not isinstance(spec, (list, tuple)):
        return spec, None, None, None
    size = len(spec)
    if size == 4:
        buffer, count, displacement, kind = spec
        return buffer, count, displacement, kind
    if size == 2:
        buffer, second = spec
        if isinstance(second, (Datatype, str)):
            return buffer, None, None, second
        kind = None
    elif size == 3:
        buffer, second, kind = spec
    else:
        raise ValueError(f"message: expecting 2 to 4 items, not {size}")
    if isinstance(second, tuple):
        count, displacement = second
        return buffer, count, displacement, kind
    return buffer, second, None, kind


def _typed_parts(spec: Any) -> tuple[Any, Any, Any, Sequence[Any]]:
    """Buffer, counts, displacements, datatypes."""
    if not isinstance(spec, (list, tuple)):
        raise TypeError(f"message: expecting a list/tuple, not {type(spec).__name__}")
    size = len(spec)
    if size == 2:
        return spec[0], None, None, spec[1]
    if size == 3:
        counts, displacements = spec[1]
        return spec[0], counts, displacements, spec[2]
    if size == 4:
        return spec[0], spec[1], spec[2], spec[3]
    raise ValueError(f"message: expecting 2 to 4 items, not {size}")


def _resolve(buffer: Any, kind: Any, writable: bool) -> tuple[memoryview | None, Datatype]:
    """The buffer's bytes, None for BOTTOM, and the datatype said or seen."""
    if isinstance(buffer, InPlaceType):
        raise MPIException(ERR_ARG, "IN_PLACE stands for no data here")
    if buffer is None or isinstance(buffer, BottomType):
        return None, _named(kind)
    if isinstance(buffer, Marker):
        return None, BYTE if kind is None else _named(kind)
    straight = _straight(buffer, writable, 1) if kind is None else None
    if straight is not None:
        return straight.message.memory, straight.datatype
    found = acquire(buffer, writable)
    if kind is not None:
        return found.view, _named(kind)
    datatype = of_format(found.format, found.itemsize)
    if datatype is None:
        raise _unmapped(found.format)
    return found.view, datatype


def _unmapped(form: str) -> Exception:
    """The error of a buffer whose items no datatype stands for."""
    if form.startswith(FORMLESS) or (form and form in DATES):  # mpi4py's class for those
        return BufferError(
            f"message: cannot map buffer format {form!r} to MPI datatype; name one, "
            "as in [dates, MPI.INT64_T] or [records, MPI.BYTE]"
        )
    return KeyError(f"message: cannot map buffer format {form!r} to MPI datatype")


def _named(kind: Any) -> Datatype:
    if isinstance(kind, Datatype):
        return kind
    if not isinstance(kind, str):
        raise KeyError(f"message: expecting a datatype or its code, not {type(kind).__name__}")
    known = typedict.get(kind) or typedict.get(kind.lstrip("=|@"))
    if known is None:
        raise KeyError(f"message: cannot map type code {kind!r} to MPI datatype")
    return known


def _layout(datatype: Datatype) -> Layout:
    state = datatype._inner
    if state is None:
        raise MPIException(ERR_TYPE, "message: the datatype is null")
    if not state.committed:
        raise MPIException(ERR_TYPE, "the datatype was never committed: call its Commit()")
    layout: Layout = state.layout
    return layout


def _refuse_null(view: memoryview | None, count: Any, displacement: Any) -> None:
    """Say what a null datatype leaves unknown, where that is more than its being no datatype."""
    start = 0 if displacement is None else _number(displacement)
    if start < 0:
        raise ValueError(f"message: negative displacement {start}")
    if start:
        raise ValueError(f"message: displacement {start} of a datatype that is null")
    if count is None and view is not None and len(view):
        raise ValueError("message: cannot infer count, the datatype is null")


def _origin(displacement: int, layout: Layout, room: int) -> int:
    """Byte of an element's origin, in so many bytes."""
    if displacement < 0:
        raise ValueError(f"message: negative displacement {displacement}")
    if displacement and layout.extent <= 0:
        raise ValueError(f"message: displacement with a datatype of extent {layout.extent}")
    start = displacement * layout.extent
    if start > room:
        raise ValueError(
            f"message: displacement {displacement} is beyond the buffer's {room} bytes"
        )
    return start


def _number(value: Any) -> int:
    """A count or a displacement.

    Raises:
        TypeError: it is no integer.
        OverflowError: it is none of 64 bits.
    """
    found = index(value)
    if not -(1 << 63) <= found < 1 << 63:
        raise OverflowError(f"message: {found} is beyond any count or displacement")
    return found


def _items(view: memoryview, start: int, layout: Layout) -> int:
    """Elements in the buffer from a byte on."""
    if layout.extent <= 0:
        raise ValueError(f"message: cannot infer count, datatype extent is {layout.extent}")
    size = len(view) - start
    if size % layout.extent:
        raise ValueError(
            f"message: buffer length {size} is not a multiple of datatype extent {layout.extent}"
        )
    return size // layout.extent


def _inferred(view: memoryview | None, start: int, layout: Layout, blocks: int) -> int:
    """Elements for each of `blocks` ranks."""
    if view is None:
        return 0
    items = _items(view, start, layout)
    if not blocks:
        return items
    if items % blocks:
        raise ValueError(
            f"message: number of items {items} is not a multiple of "
            f"the required number of blocks {blocks}"
        )
    return items // blocks


def _counts(counts: Any, view: memoryview | None, layout: Layout, ranks: int) -> list[int]:
    if counts is not None:
        return _integers(counts, ranks, "counts")
    if view is None or not ranks:
        return [0] * ranks
    each, more = divmod(_items(view, 0, layout), ranks)
    return [each + 1] * more + [each] * (ranks - more)


def _displacements(displacements: Any, counts: list[int]) -> list[int]:
    if displacements is None:
        found = [0]
        for count in counts[:-1]:
            found.append(found[-1] + count)
        return found[: len(counts)]
    stride = _maybe_integer(displacements)
    if stride is not None:
        return [i * stride for i in range(len(counts))]
    return _integers(displacements, len(counts), "displacements")


def _maybe_integer(value: Any) -> int | None:
    if isinstance(value, (list, tuple)):
        return None  # asking a list would raise, which takes longer than all the rest
    try:
        return _number(value)
    except TypeError:
        return None


def _integers(values: Any, size: int, what: str) -> list[int]:
    """One integer for all, or one for each."""
    single = _maybe_integer(values)
    if single is not None:
        return [single] * size
    if isinstance(values, (Set, Mapping)):
        raise TypeError(f"message: expecting a list/tuple of {what}, not {type(values).__name__}")
    found = [_number(value) for value in values]
    if len(found) != size:
        raise ValueError(f"message: expecting {size} {what}, got {len(found)}")
    return found


def _check_room(view: memoryview, start: int, count: int, layout: Layout) -> None:
    first, size = layout.span(count)
    first += start
    if size and (first < 0 or first + size > len(view)):
        raise ValueError(
            f"message: {count} elements from byte {start} on reach from byte {first} to "
            f"{first + size}, but the buffer has {len(view)} bytes"
        )


def _absolute(pieces: Sequence[tuple[int, int, Layout]], writable: bool) -> tuple[memoryview, int]:
    """The memory that messages with absolute addresses touch, and where address 0 is in it."""
    touched = []
    for start, count, layout in pieces:
        first, size = layout.span(count)
        if size:
            touched.append((start + first, start + first + size))
    if not touched:
        return memoryview(bytearray()), 0
    from ompy.mpi.buffers.addresses import view_at

    low = min(first for first, _ in touched)
    high = max(end for _, end in touched)
    if low < LOWEST:
        raise MPIException(ERR_BUFFER, f"there is no memory at address {low}")
    return view_at(low, high - low, readonly=not writable), -low
