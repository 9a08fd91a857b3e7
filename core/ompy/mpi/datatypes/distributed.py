"""Distributed arrays and Fortran's parameterised types: constructors that are seldom asked for."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from ompy.data.errors import ERR_ARG
from ompy.data.layout import Layout
from ompy.mpi import constants
from ompy.mpi.datatypes.derived import darray
from ompy.mpi.datatypes.type_codes import kind_and_size
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import CONSTANTS, Handle, constant

_CLASSES: Final = {
    constants.TYPECLASS_LOGICAL: "LOGICAL",
    constants.TYPECLASS_INTEGER: "INTEGER",
    constants.TYPECLASS_REAL: "REAL",
    constants.TYPECLASS_COMPLEX: "COMPLEX",
}
# decimal digits of the integer types; source: the ranges of 8 to 64 bit integers
_INTEGERS: Final = ((2, "INT8_T"), (4, "INT16_T"), (9, "INT32_T"), (18, "INT64_T"))
# digits, decimal exponent and type; source: IEEE 754 and x87 extended precision
_REALS: Final = ((6, 37, "FLOAT"), (15, 307, "DOUBLE"), (18, 4931, "LONG_DOUBLE"))


def check_darray(
    size: int,
    rank: int,
    gsizes: Sequence[int],
    distribs: Sequence[int],
    dargs: Sequence[int],
    psizes: Sequence[int],
    order: int,
) -> list[int]:
    """See that the arguments of `Create_darray` describe a distribution.

    Returns:
        The elements dealt out at a time in each dimension.

    Raises:
        MPIException: ERR_ARG, they do not.
    """
    if not len(gsizes) == len(psizes) == len(distribs) == len(dargs):
        raise ValueError("gsizes, distribs, dargs and psizes differ in length")
    if not gsizes or prod(psizes) != size or not 0 <= rank < size:
        raise MPIException(ERR_ARG, f"rank {rank} of {size} has no place in a grid of {psizes}")
    if order not in (constants.ORDER_C, constants.ORDER_FORTRAN):
        raise MPIException(ERR_ARG, f"order {order} is neither ORDER_C nor ORDER_FORTRAN")
    return [_block(*each) for each in zip(gsizes, psizes, distribs, dargs, strict=True)]


def darray_layout(layout: Layout, arguments: tuple[Any, ...]) -> Layout:
    """The layout of `Create_darray`, told its arguments."""
    blocks = check_darray(*arguments)
    _, rank, sizes, _, _, grid, order = arguments
    coordinates: list[int] = []
    for width in reversed(grid):
        coordinates.insert(0, rank % width)
        rank //= width
    fortran = order == constants.ORDER_FORTRAN
    return darray(layout, coordinates, sizes, blocks, grid, fortran=fortran)


def _block(size: int, width: int, distribution: int, argument: int) -> int:
    """Elements dealt out at a time in one dimension."""
    default = argument == constants.DISTRIBUTE_DFLT_DARG
    if distribution == constants.DISTRIBUTE_NONE:
        if width != 1:
            raise MPIException(ERR_ARG, f"a dimension over {width} processes is not distributed")
        return max(size, 1)
    if distribution == constants.DISTRIBUTE_CYCLIC:
        block = 1 if default else argument
    elif distribution == constants.DISTRIBUTE_BLOCK:
        block = -(-size // width) if default else argument
        if block * width < size:
            raise MPIException(ERR_ARG, f"{width} blocks of {block} do not hold {size} elements")
    else:
        raise MPIException(ERR_ARG, f"{distribution} is no kind of distribution")
    if block < 1 and size:
        raise MPIException(ERR_ARG, f"blocks of {block} elements")
    return max(block, 1)


def matching_size(typeclass: int, size: int) -> Handle:
    """The predefined Fortran type of a class and a size in bytes.

    Raises:
        MPIException: ERR_ARG, there is none.
    """
    found = CONSTANTS.get(f"{_CLASSES.get(typeclass, '')}{size}")
    if found is None or found._inner is None:
        raise MPIException(ERR_ARG, f"no type of class {typeclass} has {size} bytes")
    return found


def f90_integer(digits: int) -> TypeState:
    """The type of SELECTED_INT_KIND.

    Raises:
        MPIException: ERR_ARG, there is none.
    """
    for most, name in _INTEGERS:
        if digits <= most:
            return _alias(name, "F90_INTEGER", (digits,))
    raise MPIException(ERR_ARG, f"no integer type has {digits} decimal digits")


def f90_float(combiner: str, digits: int, exponent: int) -> TypeState:
    """The type of SELECTED_REAL_KIND, or the complex type of it.

    Raises:
        MPIException: ERR_ARG, there is none.
    """
    for most, range_, name in _REALS:
        if digits <= most and exponent <= range_:
            symbol = name if combiner == "F90_REAL" else f"C_{name}_COMPLEX"
            return _alias(symbol, combiner, (digits, exponent))
    raise MPIException(ERR_ARG, f"no type has {digits} digits and an exponent up to {exponent}")


_aliases: Final[dict[tuple[Any, ...], TypeState]] = {}


def _alias(symbol: str, combiner: str, arguments: tuple[int, ...]) -> TypeState:
    """The type of some arguments: one for all who ask, as of predefined types."""
    found = _aliases.get((combiner, *arguments))
    if found is None:
        found = _aliases[(combiner, *arguments)] = _made_alias(symbol, combiner, arguments)
    return found


def _made_alias(symbol: str, combiner: str, arguments: tuple[int, ...]) -> TypeState:
    known: TypeState = constant(symbol)._inner
    made = TypeState(known.layout, known.align, combiner, arguments)
    made.code = kind_and_size(known)  # as of a type whose name has a size
    made.committed = True
    return made
