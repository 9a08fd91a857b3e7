"""Names for annotations: what may stand for a message."""

from collections.abc import Sequence
from typing import Any, TypeAlias, Union

from ompy.mpi.datatype import Datatype
from ompy.mpi.markers import BottomType as Bottom
from ompy.mpi.markers import InPlaceType as InPlace

__all__ = [
    "BufSpec",
    "BufSpecB",
    "BufSpecV",
    "BufSpecW",
    "Bottom",
    "Buffer",
    "Count",
    "Displ",
    "InPlace",
    "Offset",
    "TargetSpec",
    "TypeSpec",
]

Buffer: TypeAlias = Any
Offset: TypeAlias = int
Count: TypeAlias = int
Displ: TypeAlias = int
TypeSpec: TypeAlias = Union[Datatype, str]
BufSpec: TypeAlias = Union[Buffer, Sequence[Any]]
BufSpecB: TypeAlias = Union[Buffer, Sequence[Any]]
BufSpecV: TypeAlias = Union[Buffer, Sequence[Any]]
BufSpecW: TypeAlias = Sequence[Any]
TargetSpec: TypeAlias = Union[Displ, Sequence[Any]]
