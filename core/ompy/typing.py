"""Names for annotations: what the calls of `ompy.MPI` take. Also known as `mpi4py.typing`.

Importing it starts nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, TypeAlias, Union

if TYPE_CHECKING:
    from ompy.MPI import BottomType, Datatype, InPlaceType
else:
    from ompy.mpi.buffers.markers import BottomType, InPlaceType
    from ompy.mpi.datatypes.datatype import Datatype

__all__ = [
    "Aint",
    "Bottom",
    "BufSpec",
    "BufSpecB",
    "BufSpecV",
    "BufSpecW",
    "Buffer",
    "Count",
    "Displ",
    "InPlace",
    "Offset",
    "SupportsBuffer",
    "SupportsCAI",
    "SupportsDLPack",
    "TargetSpec",
    "TypeSpec",
]


class SupportsBuffer(Protocol):
    """What lends its memory by PEP 3118's protocol.

    Type checkers can tell who does from Python 3.12 on (PEP 688); before, anything may.
    """

    if sys.version_info >= (3, 12):

        def __buffer__(self, flags: int, /) -> memoryview:
            """Its memory."""
            ...


class SupportsDLPack(Protocol):
    """What lends its memory as DLPack has it."""

    def __dlpack__(self, /, *, stream: Any = None) -> Any:
        """A capsule that describes the memory."""
        ...

    def __dlpack_device__(self) -> tuple[int, int]:
        """Which device the memory is on: its type and its number."""
        ...


class SupportsCAI(Protocol):
    """What lends its memory by CUDA's array interface."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The memory's description."""
        ...


# of values, not only of annotations: programs look at them while they run
Buffer: TypeAlias = Union[SupportsBuffer, SupportsDLPack, SupportsCAI]  # noqa: UP007
Bottom: TypeAlias = Union[BottomType, None]  # noqa: UP007
InPlace: TypeAlias = Union[InPlaceType, None]  # noqa: UP007
Aint: TypeAlias = SupportsIndex
Count: TypeAlias = SupportsIndex
Displ: TypeAlias = SupportsIndex
Offset: TypeAlias = SupportsIndex
TypeSpec: TypeAlias = Union[Datatype, str]  # noqa: UP007
_Counts: TypeAlias = Sequence[Count]
_Blocks: TypeAlias = tuple[Sequence[Count], Sequence[Displ]]
# a buffer alone, or with how many of which type
BufSpecB: TypeAlias = Union[  # noqa: UP007
    Buffer,
    tuple[Buffer, Count],
    tuple[Buffer, TypeSpec],
    tuple[Buffer, Count, TypeSpec],
    list[Any],
]
# the same, or addresses inside a datatype
BufSpec: TypeAlias = Union[BufSpecB, tuple[Bottom, Count, Datatype]]  # noqa: UP007
# a block of its own size for each member
BufSpecV: TypeAlias = Union[  # noqa: UP007
    Buffer,
    tuple[Buffer, _Counts],
    tuple[Buffer, _Blocks],
    tuple[Buffer, TypeSpec],
    tuple[Buffer, _Counts, TypeSpec],
    tuple[Buffer, _Blocks, TypeSpec],
    tuple[Buffer, _Counts, Sequence[Displ], TypeSpec],
    tuple[Bottom, _Blocks, Datatype],
    tuple[Bottom, _Counts, Sequence[Displ], Datatype],
    list[Any],
]
# a block of its own size and type for each member
BufSpecW: TypeAlias = Union[  # noqa: UP007
    tuple[Buffer, Sequence[Datatype]],
    tuple[Buffer, _Blocks, Sequence[Datatype]],
    tuple[Buffer, _Counts, Sequence[Displ], Sequence[Datatype]],
    tuple[Bottom, _Blocks, Sequence[Datatype]],
    tuple[Bottom, _Counts, Sequence[Displ], Sequence[Datatype]],
    list[Any],
]
# which part of a window
TargetSpec: TypeAlias = Union[  # noqa: UP007
    Displ,
    tuple[()],
    tuple[Displ],
    tuple[Displ, Count],
    tuple[Displ, Count, TypeSpec],
    list[Any],
]
