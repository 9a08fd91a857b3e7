"""The arguments of one-sided operations: what the origin's and the target's side of them are.

The target's is None or a displacement, and the rest as at the origin; or [displacement],
[displacement, count] or [displacement, count, datatype]. Errors in the forms are Python's, as in
`spec.py`; reference mpi4py.md 8.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from operator import index
from typing import Any, Final, NamedTuple

from ompy.data.constants import PROC_NULL
from ompy.data.errors import (
    ERR_COUNT,
    ERR_DISP,
    ERR_OP,
    ERR_RANK,
    ERR_RMA_RANGE,
    ERR_TRUNCATE,
    ERR_TYPE,
    MPIError,
)
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.frameworks.osc import DYNAMIC, Place
from ompy.mpi.buffers.common_forms import plain
from ompy.mpi.buffers.spec import Typed, _layout, _named, message
from ompy.mpi.collectives.operation import Op
from ompy.mpi.integers import whole_number

NO_OP: Final = "MPI_NO_OP"
REPLACE: Final = "MPI_REPLACE"
# MPI 4.0 12.3.4: of integers, logicals and bytes; characters as mpi4py's tests have them
_COMPARED: Final = frozenset("bhilqBHILQ?xc")


class Access(NamedTuple):
    """One operation.

    Attributes:
        origin: this rank's message.
        target: rank; PROC_NULL if there is nothing to do.
        displacement: in units of the target.
        number, layout: of elements there, and of each.
    """

    origin: Message
    target: int
    displacement: int
    number: int
    layout: Layout


_NOTHING: Final = Message(memoryview(bytearray()), 0, 0, Layout(((0, 1),), 0, 1))


def read_access(origin: Any, rank: Any, target: Any, *, writable: bool) -> Access:
    """The two sides of an operation."""
    if type(rank) is int and rank >= 0 and (target is None or type(target) is int):
        straight = plain(origin, writable)  # what most are: a buffer of numbers, and where to
        if straight is not None:
            return Access(straight, rank, target or 0, straight.count, straight.layout)
    to = int(whole_number(rank))
    if to == PROC_NULL:
        return Access(_NOTHING, to, 0, 0, _NOTHING.layout)
    mine = message(origin, writable)
    displacement, count, datatype = _target(target, mine)
    if count < 0:
        raise MPIError(ERR_COUNT, f"a place of {count} elements")
    return Access(mine.message, to, displacement, count, _layout(datatype))


def target_elements(origin: Any, target: Any) -> tuple[int, Any]:
    """How many elements an operation accesses at its target, and of which datatype.

    Raises:
        ValueError: `target` is no place.
    """
    _, count, datatype = _target(target, message(origin, writable=False))
    return count, datatype


def _target(target: Any, mine: Typed) -> tuple[int, int, Any]:
    """Displacement, count, datatype."""
    count, datatype = mine.message.count, mine.datatype
    if target is None:
        return 0, count, datatype
    if not isinstance(target, (list, tuple)):
        try:
            return index(target), count, datatype
        except TypeError:
            raise ValueError("target: expecting integral or list/tuple") from None
    if len(target) > 3:
        raise ValueError("target: expecting 3 items at most")
    displacement = index(target[0]) if target else 0
    if len(target) > 1:
        count = index(target[1])
    return displacement, count, _named(target[2]) if len(target) > 2 else datatype


def single(what: str, spec: Any, like: Typed | None, *, writable: bool) -> Typed:
    """A message of one element, of the datatype of `like`.

    Raises:
        ValueError: it is none.
    """
    found = message(spec, writable)
    if found.message.count != 1:
        raise ValueError(f"{what}: expecting a single element, got {found.message.count}")
    if like is not None and found.datatype != like.datatype:
        raise ValueError(f"mismatch in origin and {what} MPI datatypes")
    return found


class Reach:
    """What this rank knows of the members' memory.

    Attributes:
        sizes, units: bytes of each part, bytes of a displacement of 1.
        flavor: of the window.
    """

    def __init__(self, flavor: int, sizes: tuple[int, ...], units: tuple[int, ...]) -> None:
        self.flavor = flavor
        self.sizes = sizes
        self.units = units

    def check_rank(self, target: int) -> None:
        """See that there is such a member.

        Raises:
            MPIError: ERR_RANK, there is none.
        """
        if not 0 <= target < len(self.sizes):
            raise MPIError(ERR_RANK, f"rank {target} is not one of the window's {len(self.sizes)}")

    def place(self, given: Access) -> Place:
        """Where an operation goes to.

        Raises:
            MPIError: ERR_DISP or ERR_RMA_RANGE, there is no such memory.
        """
        if self.flavor == DYNAMIC:
            return Place(given.displacement, given.number, given.layout)
        if given.displacement < 0:
            raise MPIError(ERR_DISP, f"displacement {given.displacement}")
        at = given.displacement * self.units[given.target]
        first, size = given.layout.span(given.number)
        end = at + first + size
        if size and (at + first < 0 or end > self.sizes[given.target]):
            raise MPIError(
                ERR_RMA_RANGE,
                f"bytes {at + first} to {end} of rank {given.target}'s window, which has "
                f"{self.sizes[given.target]}",
            )
        return Place(at, given.number, given.layout)


def check_sizes(origin: Message, place: Place) -> None:
    """See that both sides have as many bytes.

    Raises:
        MPIError: they do not.
    """
    if origin.size != place.size:
        code = ERR_TRUNCATE if origin.size > place.size else ERR_COUNT
        raise MPIError(code, f"{origin.size} bytes at the origin for a place of {place.size} bytes")


def operation(op: Op, origin: Message, place: Place) -> str:
    """The name of an operation that both sides' elements can be combined by.

    Raises:
        MPIError: ERR_OP, it is not predefined or not defined for them; ERR_TYPE, they differ.
    """
    name = op._state().name
    if not name:
        raise MPIError(ERR_OP, "one-sided operations are predefined ones only")
    if name in {NO_OP, REPLACE} or not place.size:
        return name
    layout = place.layout
    if origin.layout.format != layout.format:
        raise MPIError(ERR_TYPE, "the elements of origin and target are of different kinds")
    if not layout.format:
        raise MPIError(ERR_TYPE, f"{name} on a datatype of mixed contents")
    PREDEFINED[name].check_layout(layout)
    return name


def check_compared(layout: Layout) -> None:
    """See that elements can be compared and swapped.

    Raises:
        MPIError: ERR_TYPE, they cannot.
    """
    if layout.format not in _COMPARED:
        raise MPIError(ERR_TYPE, "Compare_and_swap is for integers, logicals and bytes")
