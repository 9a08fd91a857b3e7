"""Python objects as messages.

A small object travels as its pickle. Large buffers in it (NumPy arrays and whatever else offers
them to pickle protocol 5) are not copied into the pickle: the message is then a frame,

    magic, size of the pickle, number of buffers; offset and size of each buffer; the pickle;
    the buffers, each at a multiple of 64 bytes

and the receiver hands out views of the one memory it received into. An array of NumPy alone needs
no pickle (`arrays.py`); small ones are copied, so that the sender's may be changed at once. A
message says itself which it is: a plain pickle begins with 0x80 (protocol 2 and up), the others
with their magic. Where the user has functions of his own (`MPI.pickle`), all objects go through
them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Any, Final

from ompy import raw
from ompy.compiled import Shown, ccall, cclass, cfunc, recycled
from ompy.data.convertor import Convertor, GatherConvertor, contiguous, lent
from ompy.mpi.buffers import arrays, scalars
from ompy.mpi.buffers.arrays import decode_array, encode_array, is_array

PICKLED: Final = 0x80  # PEP 307: first byte of a pickle of protocol 2 and up
ARRAY: Final = arrays.MAGIC[0]  # first byte of an array alone
SCALAR: Final = scalars.FIRST  # first byte of a number, a text, or bytes
MAGIC: Final = b"\x01ompy\xb5\x00\xff"  # arbitrary: begins no pickle, no JSON and no text
ALIGNMENT: Final = 64  # arbitrary: a cache line, enough for any vector instruction
BESIDE_FROM: Final = 16384  # bytes; arbitrary: below, copying costs less than a piece of its own
HEADER: Final = Struct("<8sQQ")
PLACE: Final = Struct("<QQ")
# objects that nobody can tell from a copy
ATOMIC: Final = frozenset((type(None), bool, int, float, complex, str, bytes))
HIGHEST: Final = 5  # PEP 574: the protocol that keeps buffers out of the pickle

Pieces = Sequence[Any]  # a message in one or more buffers


@recycled
class Frame:
    """An object that is a frame already: whoever made it chose how it is pickled.

    It is sent as it is, whatever `MPI.pickle` is, and its receiver gets the object in it.

    Args:
        data: the pickle.
        buffers: byte views of what is not in it, in the pickle's order.
    """

    __slots__ = ("pieces",)

    def __init__(self, data: bytes, buffers: list[memoryview]) -> None:
        self.pieces: Pieces = _frame(data, buffers)


@recycled
@cclass
class Split:
    """A pickle whose large buffers are beside it; what `dumps` asks about each buffer.

    Attributes:
        data: the pickle.
        threshold: bytes from which on a buffer stays out of it.
        views: byte views of those that are not in it, None if all are.
    """

    data: Shown[Any]
    threshold: int
    views: Shown[list[Any] | None]
    __slots__ = tuple(__annotations__)

    def __call__(self, picked: Any) -> bool:
        """Whether a `PickleBuffer` is to be copied into the pickle."""
        view = picked.raw()
        if len(view) < self.threshold:
            return True
        if self.views is None:
            self.views = []
        self.views.append(view)
        return False


@cclass
class Pickle:
    """How objects become bytes. `MPI.pickle.__init__(dumps, loads)` changes it for all calls."""

    _c_dumps: Callable[..., Any] | None
    _dumps: Callable[..., Any] | None
    _loads: Callable[[Any], Any] | None
    _module: Any
    _ours: bool
    _protocol: int | None
    _threshold: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        dumps: Callable[..., Any] | None = None,
        loads: Callable[[Any], Any] | None = None,
        protocol: int | None = None,
        threshold: int | None = None,
    ) -> None:
        self._c_dumps = None
        self._dumps = dumps
        self._loads = loads
        self._module = None
        self._ours = False  # objects may go without pickle, or with their buffers beside it
        self.PROTOCOL = protocol
        self.THRESHOLD = threshold

    @property
    def PROTOCOL(self) -> int | None:
        """The pickle protocol; None leaves it to the user's `dumps`. Set None for the default."""
        return self._protocol

    @PROTOCOL.setter
    def PROTOCOL(self, value: int | None) -> None:
        if value is None and self._dumps is None:
            value = _from_environment("PROTOCOL", HIGHEST)
        self._protocol = value
        self._ours = self._dumps is None and (value is None or not 0 <= value < HIGHEST)

    @property
    def THRESHOLD(self) -> int:
        """Bytes from which on a buffer is not copied into the pickle. Set None for the default."""
        return self._threshold

    @THRESHOLD.setter
    def THRESHOLD(self, value: int | None) -> None:
        self._threshold = _from_environment("THRESHOLD", BESIDE_FROM) if value is None else value

    @ccall
    def dumps(self, obj: Any) -> Any:
        """An object as bytes, all in one piece."""
        if self._dumps is not None:
            return self._dumps(obj) if self._protocol is None else self._dumps(obj, self._protocol)
        return self._c_pickle().dumps(obj, self._protocol)

    @ccall
    def loads(self, data: Any) -> Any:
        """The object of some bytes."""
        if self._loads is not None:
            return self._loads(data)
        return self._c_pickle().loads(data)

    def dumps_oob(self, obj: Any) -> tuple[bytes, list[Any]]:
        """An object as bytes, and its large buffers beside them."""
        from ompy.mpi.buffers.memory import buffer

        found: Split = self._split(obj)
        return found.data, [buffer(view) for view in found.views or ()]

    def framed(self, obj: Any) -> Any:
        """An object as this pickle has it: to be sent, whatever `MPI.pickle` is."""
        if self._dumps is not None:
            return Frame(self.dumps(obj), [])
        found: Split = self._split(obj)
        return Frame(found.data, found.views or [])

    def loads_oob(self, data: Any, buffers: Iterable[Any]) -> Any:
        """The object of `dumps_oob`."""
        return self._c_pickle().loads(data, buffers=buffers)

    @cfunc
    def _split(self, obj: Any) -> Split:
        """The pickle, and beside it the large buffers that are not in it."""
        found: Split = Split()
        found.views = None
        found.threshold = self._threshold
        dumps = self._c_dumps
        if dumps is None:
            dumps = self._c_dumps = self._c_pickle().dumps
        try:
            found.data = dumps(obj, HIGHEST, buffer_callback=found)
        except BaseException:
            if found.views is not None:
                found.views.clear()  # not on the way out: a user's buffer may end in code of his
            raise
        return found

    @ccall
    def pieces(self, obj: Any) -> Pieces:
        """An object as a message: one piece, or the pieces of a frame."""
        if not self._ours:
            return obj.pieces if type(obj) is Frame else (self.dumps(obj),)
        scalar = scalars.encode_scalar(obj)
        if scalar is not None:
            return (scalar,)
        kind = type(obj)
        if kind is not tuple and kind is not list and kind is not dict:  # most often it is
            if kind in ATOMIC:
                return (self.dumps(obj),)
            if is_array(obj):
                array = encode_array(obj)
                if array is not None:
                    return array if len(array[1]) >= self._threshold else (b"".join(array),)
            if kind is Frame:
                made: Pieces = obj.pieces
                return made
        found: Split = self._split(obj)
        return (found.data,) if found.views is None else _frame(found.data, found.views)

    @ccall
    def load(self, data: Any) -> Any:
        """The object of a received message. Buffers in it are views of the message's memory.

        Args:
            data: the message, a `bytearray` or a byte view.
        """
        if not len(data):
            return None
        first: int = raw.first(data)
        if first == PICKLED:
            return self.loads(data)
        if first == SCALAR and scalars.is_scalar(data):
            scalar = scalars.decode_scalar(data)
            return scalar if self._loads is None else self._loads(self._pickled(scalar))
        view = memoryview(data)
        if first == MAGIC[0] and bytes(view[: len(MAGIC)]) == MAGIC:
            return self._unframed(view)
        if first == ARRAY:
            array = decode_array(view)
            if array is not None:
                return array if self._loads is None else self._loads(self._pickled(array))
        return self.loads(view)

    @cfunc
    def _pickled(self, array: Any) -> Any:
        """What a sender with the user's functions would have sent."""
        return self._c_pickle().dumps(array, HIGHEST)

    @cfunc
    def _c_pickle(self) -> Any:
        """The module `_pickle`, imported when the first object travels."""
        if self._module is None:
            import _pickle

            self._module = _pickle
        return self._module

    @cfunc
    def _unframed(self, view: memoryview) -> Any:
        _, size, number = HEADER.unpack_from(view)
        start = HEADER.size + number * PLACE.size
        places = PLACE.iter_unpack(view[HEADER.size : start])
        buffers = [view[offset : offset + length] for offset, length in places]
        return self.loads_oob(view[start : start + size], buffers)

    @ccall
    def copy(self, obj: Any) -> Any:
        """What somebody who received the object would have."""
        if type(obj) in ATOMIC and self._dumps is None:
            return obj
        return self.copy_of(obj, self.pieces(obj))

    @ccall
    def copy_of(self, obj: Any, pieces: Pieces) -> Any:
        """The same, of an object that is a message already."""
        if type(obj) in ATOMIC and self._dumps is None:
            return obj
        data = pieces[0]
        if self._loads is None and len(pieces) == 1 and type(data) is bytes and data:
            first: int = raw.first(data)
            if first == PICKLED:  # all that a pickle alone makes has memory of its own
                return self.loads(data)
        return self.load(memoryview(joined(pieces)))


def _frame(data: Any, views: list[memoryview]) -> Pieces:
    """The pieces of a frame, padded so that each buffer is aligned."""
    start = HEADER.size + len(views) * PLACE.size
    end = start + len(data)
    head = [HEADER.pack(MAGIC, len(data), len(views))]
    tail: list[Any] = []
    for view in views:
        gap = -end % ALIGNMENT
        if gap:
            tail.append(bytes(gap))
        head.append(PLACE.pack(end + gap, len(view)))
        tail.append(view)
        end += gap + len(view)
    return (b"".join(head), data, *tail)


def joined(pieces: Pieces) -> Any:
    """A message in one piece of memory of its own."""
    return bytearray().join(pieces)


@ccall
def convertor_of(pieces: Pieces) -> Convertor:
    """The bytes of a message to send."""
    if len(pieces) == 1:
        taken = lent(pieces[0], False)
        return taken if taken is not None else contiguous(memoryview(pieces[0]).cast("B"))
    return GatherConvertor([memoryview(piece) for piece in pieces])


def _from_environment(name: str, default: int) -> int:
    variable = f"MPI4PY_PICKLE_{name}"
    text = os.environ.get(variable, "")
    try:
        return int(text) if text else default
    except ValueError:
        import warnings

        told = f"environment variable {variable}: unexpected value {text!r}"
        warnings.warn(told, RuntimeWarning, stacklevel=2)
        return default


pickle: Final = Pickle()

# --- what `pickle` does, for calls of the API


@ccall
def message_of(obj: Any) -> Pieces:
    """An object as a message."""
    ours: Pickle = pickle
    return ours.pieces(obj)


@ccall
def object_of(data: Any) -> Any:
    """The object of a received message, a `bytearray` or a byte view."""
    ours: Pickle = pickle
    return ours.load(data)


@ccall
def copy_of_object(obj: Any) -> Any:
    """What somebody who received the object would have."""
    ours: Pickle = pickle
    return ours.copy(obj)


@ccall
def copy_of_message(obj: Any, pieces: Pieces) -> Any:
    """The same, of an object that is a message already."""
    ours: Pickle = pickle
    return ours.copy_of(obj, pieces)
