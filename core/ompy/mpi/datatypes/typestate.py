"""What a datatype handle refers to.

A constructor notes its arguments and no more: where the data lie (`derived.py`) is found out when
it is first asked for, as many types are made and freed for one message, or as parts of others.
"""

# ruff: noqa: SLF001 - what is made without `__init__` is set up by functions of this module

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.layout import Layout, resize
from ompy.data.loops import NOT_COMMON, Elements, pack_elements, unpack_elements
from ompy.mpi.communicators.attributes import AttributedState
from ompy.mpi.datatypes.derived import derived_layout

# names of the constructors' arguments, by combiner
ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "NAMED": (),
    "DUP": (),
    "CONTIGUOUS": ("count",),
    "VECTOR": ("count", "blocklength", "stride"),
    "HVECTOR": ("count", "blocklength", "stride"),
    "INDEXED": ("blocklengths", "displacements"),
    "HINDEXED": ("blocklengths", "displacements"),
    "INDEXED_BLOCK": ("blocklength", "displacements"),
    "HINDEXED_BLOCK": ("blocklength", "displacements"),
    "STRUCT": ("blocklengths", "displacements", "datatypes"),
    "SUBARRAY": ("sizes", "subsizes", "starts", "order"),
    "DARRAY": ("size", "rank", "gsizes", "distribs", "dargs", "psizes", "order"),
    "RESIZED": ("lb", "extent"),
    "F90_INTEGER": ("r",),
    "F90_REAL": ("p", "r"),
    "F90_COMPLEX": ("p", "r"),
}


@cclass
class TypeState(AttributedState):
    """A datatype.

    Attributes:
        align: strictest alignment of its basic types, in bytes.
        arguments: the constructor's, in the order of `ARGUMENTS`; datatypes among them are states.
        attributes: by key, or None when there are none.
        base: the type it was made from, or None.
        bounded: its bounds were set by hand; no padding is added then.
        code: its type code, or empty.
        combiner: how it was made: the constructor's name, NAMED for predefined ones.
        committed: whether it may be used for messages.
        name: its name.
        portable: how its elements become external32 and back, once that was asked for.
        predefined: it cannot be freed.
        symbol: name of the predefined handle, or empty.
    """

    _basic: int
    _elements: Elements | None
    _layout: Any
    align: int
    arguments: tuple[Any, ...]
    base: TypeState | None
    bounded: bool
    code: str
    combiner: str
    committed: bool
    name: str
    portable: Any
    predefined: bool
    symbol: str
    __slots__ = tuple(__annotations__)

    def __init__(
        self, layout: Layout, align: int, combiner: str, arguments: tuple[Any, ...]
    ) -> None:
        """A type of which the layout is known: a predefined one."""
        self.number = 0
        self._basic = -1
        self._elements = None
        self._layout = padded(layout, align)
        self.align = align
        self.arguments = arguments
        self.attributes = None
        self.base = None
        self.bounded = False
        self.code = ""
        self.combiner = combiner
        self.committed = False
        self.name = ""
        self.portable = None
        self.predefined = True
        self.symbol = ""

    @property
    def layout(self) -> Layout:
        """Of one element."""
        return self.described()

    @ccall
    def described(self) -> Layout:
        """The layout of one element; made when it is first asked for."""
        layout: Layout | None = self._layout
        if layout is None:
            layout = derived_layout(self, described)
            assert layout is not None, "what no constructor made has its layout from the beginning"
            if not self.bounded:
                layout = padded(layout, self.align)
            self._layout = layout
        return layout

    @ccall
    def basic_size(self) -> int:
        """Bytes of each of its basic types, where these are of one size and kind; else 0."""
        if self._basic < 0:
            self._basic = self._size_of_basic()
        return self._basic

    @cfunc
    def _size_of_basic(self) -> int:
        if self.combiner == "STRUCT":
            return 0
        if self.base is not None:
            return self.base.basic_size()
        layout = self.described()
        return layout.size if len(layout.format) == 1 else 0

    @ccall
    def elements(self) -> Elements:
        """Its elements as the loops in C take them."""
        elements: Elements | None = self._elements
        if elements is None:
            elements = self.described().elements()
            self._elements = elements
        return elements

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's arguments by name; lists are copies."""
        values = [list(one) if isinstance(one, list) else one for one in self.arguments]
        return dict(zip(ARGUMENTS[self.combiner], values, strict=True))


@cfunc
def _made(combiner: str, arguments: tuple[Any, ...], align: int, bounded: bool) -> TypeState:
    """What a constructor makes. Without `__init__`, as there is no layout yet."""
    made: TypeState = TypeState.__new__(TypeState)
    made.number = 0
    made._basic = -1
    made._elements = None
    made._layout = None
    made.align = align
    made.arguments = arguments
    made.attributes = None
    made.base = None
    made.bounded = bounded
    made.code = ""
    made.combiner = combiner
    made.committed = False
    made.name = ""
    made.portable = None
    made.predefined = False
    made.symbol = ""
    return made


@ccall
def derived_state(
    base: TypeState, combiner: str, arguments: tuple[Any, ...], bounded: bool
) -> TypeState:
    """A type made of elements of another one.

    Args:
        base: the other type.
        combiner: the constructor's name.
        arguments: of it.
        bounded: the constructor sets bounds.
    """
    if bounded or _has_elements(combiner, arguments):
        made = _made(combiner, arguments, base.align, bounded or base.bounded)
    else:  # nothing of the base is in its type map: neither alignment nor bounds set by hand
        made = _made(combiner, arguments, 1, False)
    made.base = base
    return made


@cfunc
def _has_elements(combiner: str, arguments: tuple[Any, ...]) -> bool:
    """Whether a constructor that sets no bounds takes an element of its base at all.

    If not, a structure with this type in it would take the base's bounds and alignment for its
    own, and have its elements on top of each other or apart.
    """
    if combiner == "DUP":
        return True
    if combiner in ("INDEXED", "HINDEXED"):
        return any(arguments[0])
    return bool(arguments[0]) and (combiner == "CONTIGUOUS" or bool(arguments[1]))


@ccall
def structured_state(
    lengths: list[int], displacements: list[int], parts: list[TypeState]
) -> TypeState:
    """A type made of elements of several ones.

    Args:
        lengths: elements of each.
        displacements: of the first one of each, in bytes.
        parts: their types.
    """
    align: int = 1
    bounded: bool = False
    place: int
    for place in range(len(parts)):
        if lengths[place]:
            part: TypeState = parts[place]
            align = max(align, part.align)
            bounded = bounded or part.bounded
    return _made("STRUCT", (lengths, displacements, parts), align, bounded)


@ccall
def packed_end(state: TypeState, buffer: Any, packed: Any, position: Any, portable: bool) -> int:
    """Pack what a buffer holds if that is common; the next position, or NOT_COMMON."""
    pattern = portable_pattern(state) if portable else b""
    if not state.committed or pattern is None:
        return NOT_COMMON
    return pack_elements(state.elements(), buffer, packed, raw.small(position), pattern)


@ccall
def unpacked_end(state: TypeState, packed: Any, position: Any, buffer: Any, portable: bool) -> int:
    """Unpack what a buffer has room for if that is common; the next position, or NOT_COMMON."""
    pattern = portable_pattern(state) if portable else b""
    if not state.committed or pattern is None:
        return NOT_COMMON
    return unpack_elements(state.elements(), packed, raw.small(position), buffer, pattern)


@ccall
def portable_pattern(state: TypeState) -> bytes | None:
    """Which numbers become external32 by turning their bytes round; None where that is not all."""
    if state.portable is None:
        from ompy.mpi.datatypes.external32 import pattern_of

        found = pattern_of(state)
        state.portable = False if found is None else found
    return None if state.portable is False else state.portable


def described(state: TypeState) -> Layout:
    """The layout of one element of a type."""
    return state.described()


def padded(layout: Layout, align: int) -> Layout:
    """The layout with its extent rounded up to a multiple of the alignment."""
    missing = -layout.extent % align if align > 1 and layout.extent > 0 else 0
    return resize(layout, layout.lower, layout.extent + missing) if missing else layout
