"""What a datatype handle refers to.

A constructor notes its arguments and no more: where the data lie (`derived.py`) is found out when
it is first asked for, as many types are made and freed for one message, or as parts of others.
"""

# ruff: noqa: SLF001 - what is made without `__init__` is set up by functions of this module

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ompy.compiled import ccall, cclass, cfunc
from ompy.data.layout import Layout, resize
from ompy.data.loops import Elements
from ompy.mpi.datatypes.derived import derived_layout
from ompy.mpi.handles import State

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
class TypeState(State):
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

    _elements: Elements | None
    _layout: Any
    align: int
    arguments: tuple[Any, ...]
    attributes: dict[int, Any] | None
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
    made = _made(combiner, arguments, base.align, bounded or base.bounded)
    made.base = base
    return made


def structured_state(
    lengths: list[int], displacements: list[int], parts: Sequence[TypeState]
) -> TypeState:
    """A type made of elements of several ones.

    Args:
        lengths: elements of each.
        displacements: of the first one of each, in bytes.
        parts: their types.
    """
    there = [part for length, part in zip(lengths, parts, strict=True) if length]
    align = max((part.align for part in there), default=1)
    bounded = any(part.bounded for part in there)
    return _made("STRUCT", (lengths, displacements, parts), align, bounded)


def described(state: TypeState) -> Layout:
    """The layout of one element of a type."""
    return state.described()


def padded(layout: Layout, align: int) -> Layout:
    """The layout with its extent rounded up to a multiple of the alignment."""
    missing = -layout.extent % align if align > 1 and layout.extent > 0 else 0
    return resize(layout, layout.lower, layout.extent + missing) if missing else layout
