"""Numbers, texts and bytes as messages, without pickle.

Programs send few things as often as a number or a short text, and pickle takes as long for one as
all the rest of its way. Such a message is

    mark (7 bytes) | kind u8 | the value: i64, f64, UTF-8, or the bytes themselves

for `None`, `bool`, `int` within 2**40, `float`, `str` and `bytes` of those very classes; whatever
else there is goes by pickle. A receiver gets an equal object of the same class, as by pickle.
"""

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cfunc

MARK: Final = b"\x03ompy\xa5\xff"  # arbitrary: begins no pickle, no JSON and no text
FIRST: Final = MARK[0]
SIZE: Final = 8  # bytes of mark and kind
LONGEST: Final = 16384  # bytes of a text; arbitrary: beyond, pickling costs less than copying

_NONE: Final = 0
_FALSE: Final = 1
_TRUE: Final = 2
_INT: Final = 3  # arbitrary, as the other kinds
_FLOAT: Final = 4  # arbitrary
_TEXT: Final = 5  # arbitrary
_BYTES: Final = 6  # arbitrary
_MARKED: Final[U64] = int.from_bytes(MARK, "little")
_MARKS: Final = (1 << 56) - 1  # the layout above: bits of the mark
_KIND_AT: Final = 56  # bits; the layout above
_ONES: Final = (1 << 64) - 1  # the layout above: a word
_BEYOND: Final[int] = raw.BEYOND
_HEADS: Final = [MARK + bytes((kind,)) for kind in range(_BYTES + 1)]


@ccall
def encode_scalar(obj: Any) -> bytes | None:
    """The message of an object; None when it is to go by pickle."""
    kind = type(obj)
    if kind is int:
        number: int = raw.small(obj)
        if number == _BEYOND:
            return None
        return raw.two_words(_MARKED | _INT << _KIND_AT, number & _ONES)
    if kind is float:
        return raw.headed_real(_MARKED | _FLOAT << _KIND_AT, obj)
    if kind is bool:
        return _HEADS[_TRUE if obj else _FALSE]
    if kind is str or kind is bytes:
        return _text(obj)
    return _HEADS[_NONE] if obj is None else None


@cfunc
def _text(text: str | bytes) -> bytes | None:
    if len(text) > LONGEST:
        return None
    if isinstance(text, bytes):
        return raw.headed_bytes(_MARKED | _BYTES << _KIND_AT, text)
    try:
        return raw.headed_text(_MARKED | _TEXT << _KIND_AT, text)
    except UnicodeEncodeError:  # half a surrogate pair, which pickle has a way for
        return None


@ccall
def is_scalar(data: Any) -> bool:
    """Whether a message (`bytearray`, `bytes` or byte view) is one of these."""
    return len(data) >= SIZE and raw.word(data, 0) & _MARKS == _MARKED


@ccall
def decode_scalar(data: Any) -> Any:
    """The object in a message that is one."""
    kind: int = raw.word(data, 0) >> _KIND_AT
    if kind == _INT:
        return raw.signed_word(data, SIZE)
    if kind == _FLOAT:
        return raw.real(data, SIZE)
    if kind == _TEXT:
        return raw.text(data, SIZE, len(data) - SIZE)
    if kind == _BYTES:
        return raw.part(data, SIZE, len(data) - SIZE)
    return None if kind == _NONE else kind == _TRUE
