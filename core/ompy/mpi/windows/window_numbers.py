"""What the common arguments of one-sided operations say: buffers, places, and operations.

Anything else gives None or -1 and is read by `window_messages.py`, which knows what is wrong.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout
from ompy.data.message import Message, message_of
from ompy.data.operation import Operation
from ompy.frameworks.osc_base.target_messages import NO_OP, REPLACE
from ompy.mpi.buffers.access import raw_bytes
from ompy.mpi.buffers.common_forms import committed_state
from ompy.mpi.collectives.operation import Op
from ompy.mpi.datatypes.predefined import FORMATS
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.handles import Handle
from ompy.mpi.state import OpState

# states of datatypes, of buffers of one kind of numbers, by its format
_KINDS: Final[dict[str, Any]] = {
    k: known._inner for k, known in FORMATS.items() if len(k) == 1 or k in {"Zf", "Zd", "Zg"}
}
_UNCOMMON: Final = -1
_NOTHING: Final = memoryview(b"")
_REPLACE: Final = "MPI_REPLACE"
_NO_OP: Final = "MPI_NO_OP"
_REPLACES: Final = REPLACE
_DOES_NOTHING: Final = NO_OP
_ADDRESSES: Final = 1 << 62  # arbitrary: above all addresses of processes


@cclass
class Numbers:
    """Elements without gaps, in one piece from the beginning of a buffer on.

    Attributes:
        kind: state of their datatype.
        layout: of an element.
        memory: the buffer, as `raw.bare` gives it.
        size: bytes.
    """

    kind: TypeState
    layout: Layout
    memory: memoryview[int]
    size: int
    __slots__ = tuple(__annotations__)


@ccall
def numbers_of(spec: Any, writable: bool) -> Numbers | None:
    """Those of a buffer, [buffer, datatype] or [buffer, count, datatype]; None for others."""
    listed: bool = isinstance(spec, (list, tuple))
    items: int = len(spec) if listed else 1
    if listed and items != 2 and (items != 3 or type(spec[1]) is not int):
        return None
    kind: TypeState | None = _kind(spec[items - 1]) if listed else None
    view = None if listed and kind is None else raw.shaped(spec[0] if listed else spec)
    if view is None or (writable and not raw.is_writable(view)):
        return None
    if not listed:
        kind = _KINDS.get(raw.kind(view) or view.format)
    if kind is None:
        return None
    made: Numbers = Numbers.__new__(Numbers)
    made.kind = kind
    made.layout = kind.described()
    made.memory = raw.bare(view)
    made.size = raw.size(made.memory)
    return made if not listed or _fits(spec, items, made) else None


@cfunc
def _fits(spec: Any, items: int, made: Numbers) -> bool:
    """Whether a buffer has whole elements, or as many as its count says."""
    item: int = made.layout.size
    if items == 2:
        return item > 0 and made.size % item == 0
    room: int = made.size
    made.size = raw.small(spec[1]) * item
    return 0 <= made.size <= room


@cfunc
def _kind(named: Any) -> TypeState | None:
    """The state of a datatype whose elements have no gaps; None for others."""
    state: TypeState | None = committed_state(named)
    return state if state is not None and state.described().contiguous else None


@ccall
def displacement_of(target: Any, data: Numbers, by_address: bool) -> int:
    """That of a place for as many elements of the same datatype; -1 for others.

    Args:
        target: the place.
        data: for it.
        by_address: displacements are addresses, and not counted.
    """
    if target is None:
        return 0
    if isinstance(target, (list, tuple)):
        items: int = len(target)
        if items == 0:
            return 0
        if items > 1 and raw.small(target[1]) * data.layout.size != data.size:
            return _UNCOMMON
        if items > 3 or (items > 2 and _kind(target[2]) is not data.kind):
            return _UNCOMMON
        target = target[0]
    return _address(target) if by_address else raw.small(target)


@ccall
def wanted_elements(target: Any, mine: Message, by_address: bool) -> Message | None:
    """A place for as many bytes as a message has: its origin is a displacement, in no memory yet.

    Args:
        target: the place, with any datatype; None is returned where it is not common.
        mine: the message, whose count and datatype it has where it says nothing else.
        by_address: displacements are addresses.
    """
    layout = mine.layout
    count: int = mine.count
    if isinstance(target, (list, tuple)):
        items: int = len(target)
        state: TypeState | None = committed_state(target[2]) if items == 3 else None
        if items > 3 or (items == 3 and state is None):
            return None
        if state is not None:
            layout = state.described()
        if items > 1:
            count = raw.small(target[1])
        target = target[0] if items else None
    at: int = 0
    if target is not None:
        at = _address(target) if by_address else raw.small(target)
    size: int = mine.layout.size
    size *= mine.count
    each: int = layout.size
    if at < 0 or not 0 <= count < _ADDRESSES // max(each, 1) or count * each != size:
        return None
    return message_of(_NOTHING, at, count, layout)


@cfunc
def _address(number: Any) -> int:
    """What may be one; -1 for others."""
    return number if type(number) is int and 0 <= number < _ADDRESSES else _UNCOMMON


@ccall
def predefined_name(op: Any) -> Any:
    """Of a predefined operation; empty for a user's, and for what is none."""
    if not isinstance(op, Op):
        return ""
    handle: Handle = op
    state: OpState | None = handle._inner
    return "" if state is None else state.name


@ccall
def operation_on(name: Any, data: Numbers) -> Operation | None:
    """The predefined operation on the elements of a message, if it is defined for them."""
    found: Operation | None = PREDEFINED.get(name)
    if found is None or data.layout.format in found.loops:
        return found
    if name in {_NO_OP, _REPLACE} or not data.layout.format:
        return None
    try:
        found.check_layout(data.layout)
    except MPIError:
        return None
    data.memory = raw_bytes(data.memory)  # a kernel takes slices of it
    return found


@ccall
def combines(name: Any, mine: Layout, there: Layout) -> bool:
    """Whether a predefined operation combines elements of one layout into those of another."""
    if name == _REPLACE:
        return True
    found: Operation | None = PREDEFINED.get(name)
    if found is None or not mine.format or mine.format != there.format:
        return False
    try:
        found.check_layout(there)
    except MPIError:
        return False
    return True


@ccall
def loop_of(operation: Operation | None, name: Any, data: Numbers) -> int:
    """What a member is told to combine elements by; -1 where it cannot be told."""
    if operation is None:
        return _REPLACES if name == _REPLACE else _DOES_NOTHING
    found = operation.loops.get(data.layout.format)
    return -1 if found is None else found
