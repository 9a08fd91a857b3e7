"""Messages to be sent or received, as convertors: common forms straight, others by `spec.py`."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ompy import raw
from ompy.compiled import ccall, cfunc
from ompy.data.convertor import Convertor, LentConvertor, lent, lent_bytes
from ompy.data.loops import Elements, Runs, convertor_of_runs
from ompy.data.message import Message
from ompy.mpi.buffers.common_forms import BEYOND, committed_state, plain_or_derived
from ompy.mpi.buffers.spec import message
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.typestate import TypeState


@ccall
def send_convertor(spec: Any) -> Convertor:
    """The bytes of a message to send."""
    if isinstance(spec, (list, tuple)):
        plain: LentConvertor | None = _plain_message(spec, False)
        return plain if plain is not None else _with_gaps(spec, False)
    taken = lent(spec, False)
    return taken if taken is not None else _convertor(spec, False)


@ccall
def recv_convertor(spec: Any) -> Convertor:
    """The room for a message to receive."""
    if isinstance(spec, (list, tuple)):
        plain: LentConvertor | None = _plain_message(spec, True)
        return plain if plain is not None else _with_gaps(spec, True)
    taken = lent(spec, True)
    return taken if taken is not None else _convertor(spec, True)


@cfunc
def _plain_message(spec: Sequence[Any], writable: bool) -> LentConvertor | None:
    """The bytes of [buffer, datatype] or [buffer, count, datatype] without gaps, or None."""
    size: int = len(spec)
    if size != 2 and (size != 3 or type(spec[1]) is not int):
        return None
    state: TypeState | None = committed_state(spec[size - 1])
    if state is None:
        return None
    layout = state.described()
    item: int = layout.size
    plain: bool = layout.contiguous and item > 0
    made: LentConvertor | None = lent_bytes(spec[0], writable) if plain else None
    if made is None:
        return None
    room: int = made.size // item
    if size == 2:
        return made if room * item == made.size else None
    count: int = raw.small(spec[1])
    if not 0 <= count <= room:
        return None
    made.size = count * item
    return made


@cfunc
def _with_gaps(spec: Sequence[Any], writable: bool) -> Convertor:
    """The bytes of [buffer, datatype] or [buffer, count, datatype]; of others the longer way."""
    size: int = len(spec)
    if size == 4:
        found: Message | None = plain_or_derived(spec, writable)
        return _convertor(spec, writable) if found is None else found.convertor()
    kind = spec[-1] if 2 <= size <= 3 else None
    if isinstance(kind, str) or not isinstance(kind, Datatype):
        return _convertor(spec, writable)
    state: TypeState | None = kind._inner
    if state is None or not state.committed:
        return _convertor(spec, writable)
    elements: Elements = state.elements()
    buffer = spec[0]
    count: int = raw.small(spec[1])
    if size == 2 and elements.extent > 0:
        buffer = raw.any_bytes(buffer)
        total: int = 0 if buffer is None else raw.size(buffer)
        count = total // elements.extent if total % elements.extent == 0 else 0
    runs: Runs | None = elements.runs(count) if 0 < count < BEYOND else None
    made: Convertor | None = None
    if runs is not None and runs.length < runs.size:
        made = convertor_of_runs(buffer, 0, runs, writable)
    elif runs is not None and runs.start == 0:
        made = _beginning(buffer, writable, runs)
    return made if made is not None else _convertor(spec, writable)


@cfunc
def _beginning(buffer: Any, writable: bool, runs: Runs) -> LentConvertor | None:
    """The bytes of a single element whose only gap is behind them."""
    made: LentConvertor | None = lent_bytes(buffer, writable)
    if made is None or not runs.fits(0, made.size):
        return None
    made.size = runs.size
    return made


def _convertor(spec: Any, writable: bool) -> Convertor:
    return message(spec, writable).message.convertor()
