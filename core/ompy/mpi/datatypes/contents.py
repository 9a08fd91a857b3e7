"""The arguments of a datatype's constructor, sorted as MPI_Type_get_contents wants them."""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall, cfunc
from ompy.mpi import constants
from ompy.mpi.datatypes.typestate import ARGUMENTS, TypeState

# by combiner: parameters that are integers, and those that are addresses. `#x` is the length
# of the list x.
_ORDER: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "NAMED": ((), ()),
    "DUP": ((), ()),
    "CONTIGUOUS": (("count",), ()),
    "VECTOR": (("count", "blocklength", "stride"), ()),
    "HVECTOR": (("count", "blocklength"), ("stride",)),
    "INDEXED": (("#blocklengths", "blocklengths", "displacements"), ()),
    "HINDEXED": (("#blocklengths", "blocklengths"), ("displacements",)),
    "INDEXED_BLOCK": (("#displacements", "blocklength", "displacements"), ()),
    "HINDEXED_BLOCK": (("#displacements", "blocklength"), ("displacements",)),
    "STRUCT": (("#blocklengths", "blocklengths"), ("displacements",)),
    "SUBARRAY": (("#sizes", "sizes", "subsizes", "starts", "order"), ()),
    "DARRAY": (
        ("size", "rank", "#gsizes", "gsizes", "distribs", "dargs", "psizes", "order"),
        (),
    ),
    "RESIZED": ((), ("lb", "extent")),
    "F90_INTEGER": (("r",), ()),
    "F90_REAL": (("p", "r"), ()),
    "F90_COMPLEX": (("p", "r"), ()),
}


# the constants that name constructors
COMBINERS: Final[dict[str, int]] = {name: getattr(constants, f"COMBINER_{name}") for name in _ORDER}


# the same by the places of the arguments, and whether it is their length that is wanted
_Places = tuple[tuple[int, bool], ...]


def _places(combiner: str, names: tuple[str, ...]) -> _Places:
    known = ARGUMENTS[combiner]
    return tuple((known.index(name.lstrip("#")), name.startswith("#")) for name in names)


_PLACES: Final[dict[str, tuple[_Places, _Places]]] = {
    combiner: (_places(combiner, integers), _places(combiner, addresses))
    for combiner, (integers, addresses) in _ORDER.items()
}


def contents_of(state: TypeState) -> tuple[list[int], list[int], list[TypeState]]:
    """Integers, addresses and datatypes."""
    integers, addresses = _PLACES[state.combiner]
    arguments = state.arguments
    parts = list(arguments[2]) if state.combiner == "STRUCT" else []
    if state.base is not None:
        parts.append(state.base)
    return _flat(arguments, integers), _flat(arguments, addresses), parts


@ccall
def numbers_of_contents(state: TypeState) -> tuple[int, int, int]:
    """How many integers, addresses and datatypes there are."""
    arguments = state.arguments
    if not arguments:
        return 0, 0, int(state.base is not None)
    integers, addresses = _PLACES[state.combiner]
    datatypes = len(arguments[2]) if state.combiner == "STRUCT" else int(state.base is not None)
    return _number(arguments, integers), _number(arguments, addresses), datatypes


@cfunc
def _number(arguments: tuple[Any, ...], places: tuple[Any, ...]) -> int:
    found: int = len(places)
    for place, counted in places:
        if not counted and type(arguments[place]) is list:
            found += len(arguments[place]) - 1
    return found


def _flat(arguments: tuple[Any, ...], places: _Places) -> list[int]:
    found: list[int] = []
    for place, counted in places:
        given = arguments[place]
        if counted:
            found.append(len(given))
        elif type(given) is list:
            found += given
        else:
            found.append(given)
    return found
