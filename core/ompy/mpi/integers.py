"""Integers as mpi4py takes them: whatever C makes an int of, by `__int__`, a fraction dropped.

Plain ints go as they are; a call on the way of a message looks no further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from functools import wraps
from operator import index
from typing import Any, Final, TypeVar

from ompy import raw
from ompy.compiled import ccall

Function = TypeVar("Function", bound=Callable[..., Any])

_NOT_SMALL: Final[int] = raw.BEYOND
_BITS: Final = 64  # source: MPI 4.1 2.5.8: an MPI_Count holds any MPI_Aint, 64 bits here
_BEYOND_INT: Final = 1 << 31  # source: LP64: an int of C has 32 bits


@ccall
def whole_number(number: Any) -> int:
    """An integer of something that is none: of a float, of numpy's numbers and truth values.

    Raises:
        TypeError: it has no `__int__`.
        OverflowError: it is none of 64 bits.
    """
    small: int = raw.small(number)
    return _converted(number) if small == _NOT_SMALL else small


def _converted(number: Any) -> int:
    """The same of what is no `int`, or a large one."""
    kind = type(number)
    if not hasattr(kind, "__int__") and not hasattr(kind, "__index__"):
        raise TypeError("an integer is required")
    found = number if kind is int else int(number)
    if (found if found >= 0 else ~found).bit_length() >= _BITS:
        raise OverflowError(f"{found} is beyond 64 bits, larger than anything counted here")
    whole: int = found
    return whole


@ccall
def c_int(number: Any) -> int:
    """The same, of 32 bits.

    Raises:
        TypeError: it has no `__int__`.
        OverflowError: it is none of 32 bits.
    """
    found: int = whole_number(number)
    if not -_BEYOND_INT <= found < _BEYOND_INT:
        raise OverflowError(f"{found} is beyond the 32 bits of a C int")
    return found


@ccall
def whole_numbers(numbers: Iterable[Any]) -> list[int]:
    """Integers of a sequence: of what stands for one without a fraction.

    Raises:
        TypeError: one is no integer, or they have no order.
        OverflowError: one is none of 64 bits.
    """
    kind = type(numbers)
    if kind is not list and kind is not tuple and isinstance(numbers, (Set, Mapping)):
        raise TypeError(f"expecting a list/tuple of integers, not {type(numbers).__name__}")
    found: list[int] = []
    for number in numbers:
        small: int = raw.small(number)
        found.append(whole_number(index(number)) if small == _NOT_SMALL else number)
    return found


def Aint_add(base: int, disp: int) -> int:
    """The address `disp` bytes behind another."""
    first: Any = whole_number(base)
    second: Any = whole_number(disp)
    found: int = first + second
    return found


def Aint_diff(addr1: int, addr2: int) -> int:
    """The distance between two addresses."""
    first: Any = whole_number(addr1)
    second: Any = whole_number(addr2)
    found: int = first - second
    return found


def takes_integers(*names: str) -> Callable[[Function], Function]:
    """Have a function be called with integers of 64 bits for these parameters."""
    return _converting(names, whole_number)


def takes_c_ints(*names: str) -> Callable[[Function], Function]:
    """Have a function be called with integers of 32 bits for these parameters."""
    return _converting(names, c_int)


def _converting(
    names: tuple[str, ...], convert: Callable[[object], int]
) -> Callable[[Function], Function]:
    def decorate(function: Function) -> Function:
        code = function.__code__
        places = [code.co_varnames.index(name) for name in names]

        @wraps(function)
        def called(*positional: Any, **named: Any) -> Any:
            for place in places:
                if place < len(positional):
                    given = positional[place]
                    found = convert(given)
                    if found is not given:  # most are integers, and need no other arguments
                        positional = (*positional[:place], found, *positional[place + 1 :])
            for name in names:
                if name in named:
                    named[name] = convert(named[name])
            return function(*positional, **named)

        return called  # type: ignore[return-value]

    return decorate
