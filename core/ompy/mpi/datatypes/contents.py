"""The arguments of a datatype's constructor, sorted as MPI_Type_get_contents wants them."""

from __future__ import annotations

from typing import Any, Final

from ompy.mpi import constants
from ompy.mpi.datatypes.typestate import TypeState

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


def contents_of(state: TypeState) -> tuple[list[int], list[int], list[TypeState]]:
    """Integers, addresses and datatypes."""
    integers, addresses = _ORDER[state.combiner]
    params = state.params
    parts: list[TypeState] = params.get("datatypes", [])
    if state.base is not None:
        parts.append(state.base)
    return _flat(params, integers), _flat(params, addresses), parts


def numbers_of_contents(state: TypeState) -> tuple[int, int, int]:
    """How many integers, addresses and datatypes there are."""
    if not state.arguments:
        return 0, 0, int(state.base is not None)
    integers, addresses, datatypes = contents_of(state)
    return len(integers), len(addresses), len(datatypes)


def _flat(params: dict[str, Any], names: tuple[str, ...]) -> list[int]:
    found: list[int] = []
    for name in names:
        if name.startswith("#"):
            found.append(len(params[name[1:]]))
        elif isinstance(params[name], list):
            found += params[name]
        else:
            found.append(params[name])
    return found
