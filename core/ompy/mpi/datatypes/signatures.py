"""The basic types that a datatype is made of, in packing order."""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.data.constants import UNDEFINED
from ompy.mpi.datatypes.typestate import TypeState


class Basics(NamedTuple):
    """Equal basic types in a row.

    Attributes:
        kind: how they are converted: plain, signed or unsigned (C's longs), extended; and two of
            one kind, a number's real and imaginary parts: complex, long complex.
        length: bytes of each.
        number: how many.
    """

    kind: str
    length: int
    number: int


Signature = tuple[tuple[Basics, ...], int]  # the basic types of a period, and how many periods


def signature(state: TypeState) -> Signature:
    """The basic types of one element, in packing order."""
    if state.combiner == "STRUCT":
        return _signature_of_struct(state)
    if state.base is None:
        return _named(state), 1
    runs, times = signature(state.base)
    inner = state.base.layout.size
    return _folded(runs, times * (state.layout.size // inner if inner else 0))


def _signature_of_struct(state: TypeState) -> Signature:
    parts = []
    lengths, _, types = state.arguments
    for number, part in zip(lengths, types, strict=True):
        runs, times = signature(part)
        if number and times and runs:
            parts.append((runs, times * number))
    if len({runs for runs, _ in parts}) == 1:
        return _folded(parts[0][0], sum(times for _, times in parts))
    every: list[Basics] = []
    for runs, times in parts:
        folded, periods = _folded(runs, times)
        every += folded * periods
    return tuple(every), 1


def _folded(runs: tuple[Basics, ...], times: int) -> Signature:
    if len(runs) != 1:
        return runs, times
    kind, length, number = runs[0]
    return ((Basics(kind, length, number * times),) if times else ()), 1


# C's longs by symbol, because 64 bit integers have the same code
_LONGS: Final = {"LONG": "signed", "UNSIGNED_LONG": "unsigned"}
_KINDS: Final = {"g": "extended", "F": "complex", "D": "complex", "G": "long complex"}
_PAIR_VALUES: Final = {"l": "signed", "g": "extended"}
_INT_SIZE: Final = 4  # bytes of the index in MPI's pairs; C's int on POSIX


def _named(state: TypeState) -> tuple[Basics, ...]:
    """The basic types of a predefined one: itself, or value and index of a pair."""
    size, code = state.layout.size, state.layout.format
    if not size:
        return ()
    if len(state.layout.format) == 2:
        value = state.layout.format[0]
        kind = _PAIR_VALUES.get(value, "plain")
        return Basics(kind, size - _INT_SIZE, 1), Basics("plain", _INT_SIZE, 1)
    kind = _KINDS.get(code) or _LONGS.get(state.symbol, "plain")
    return (Basics(kind, size, 1),)


def elements_in(state: TypeState, size: int) -> int:
    """Basic elements in `size` bytes of elements of a datatype; UNDEFINED if they do not fit."""
    whole = state.layout.size
    if not whole:
        return 0 if not size else UNDEFINED
    runs, times = signature(state)
    found = size // whole * times * sum(run.number for run in runs)
    period = whole // times
    found += size % whole // period * sum(run.number for run in runs)
    rest = size % whole % period
    for run in runs:
        fitting = min(run.number, rest // run.length)
        found += fitting
        rest -= fitting * run.length
        if fitting < run.number:
            break
    return found if not rest else UNDEFINED


def bytes_of_elements(state: TypeState, number: int) -> int:
    """Bytes of so many basic elements: what `elements_in` counts again as `number`."""
    runs, _ = signature(state)
    period = sum(run.number for run in runs)
    if not period:
        return 0
    found = number // period * sum(run.number * run.length for run in runs)
    rest = number % period
    for run in runs:
        fitting = min(run.number, rest)
        found += fitting * run.length
        rest -= fitting
    return found
