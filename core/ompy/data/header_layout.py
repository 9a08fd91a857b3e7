"""Declarations of what stands in a header: the code packs by them, and tools read them.

    HeaderLayout("ob1.frag", "type u8, flags u8, pad 6, offset u64, send_id u64, receive_id u64")

Types are u8 to u64, i8 to i64 and b1 to b255 (so many bytes); `pad` are bytes that say nothing. All
numbers are little-endian, and nothing is aligned.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

_NUMBERS: Final = {  # C: letters of `struct`, and bytes
    "u8": ("B", 1),
    "u16": ("H", 2),
    "u32": ("I", 4),
    "u64": ("Q", 8),
    "i8": ("b", 1),
    "i16": ("h", 2),
    "i32": ("i", 4),
    "i64": ("q", 8),
}


class HeaderField(NamedTuple):
    """One field.

    Attributes:
        name: of it.
        type: as declared: u8, i32, b16.
        offset: bytes from the beginning of the header.
        size: bytes of it.
    """

    name: str
    type: str
    offset: int
    size: int


class HeaderLayout:
    """The fields of one header.

    Attributes:
        name: whose it is and what, as `ob1.match`.
        fields: in order, without padding.
        struct: what packs and reads it.
        size: bytes.
    """

    __slots__ = ("fields", "name", "size", "struct")

    def __init__(self, name: str, fields: str) -> None:
        """Declare a header.

        Args:
            name: of it; letters, digits, `_` and one dot.
            fields: in order, each a name and a type.

        Raises:
            ValueError: a type is none.
        """
        found: list[HeaderField] = []
        letters = []
        offset = 0
        for each in fields.split(","):
            field, _, kind = each.strip().partition(" ")
            if field == "pad":
                letter, size = f"{kind}x", int(kind)
            else:
                letter, size = _letter(kind)
                found.append(HeaderField(field, kind, offset, size))
            letters.append(letter)
            offset += size
        self.name = name
        self.fields = tuple(found)
        self.struct = Struct("<" + "".join(letters))
        self.size = offset
        assert self.struct.size == offset


def _letter(kind: str) -> tuple[str, int]:
    """What `struct` calls a type, and its bytes."""
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    if kind[:1] == "b" and kind[1:].isdigit():
        return f"{kind[1:]}s", int(kind[1:])
    raise ValueError(f"there is no type {kind}")
