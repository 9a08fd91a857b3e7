"""How data are stored in files: `native` and `internal`, `external32`, and the program's own.

A representation says how large each datatype is in the file, and changes bytes on their way. Where
sizes differ, a filetype's layout in the file is built anew as its constructors say, with the
file's extents in place of memory's; displacements that were given in bytes stay what they are.

Source: MPI 4.1, 14.5.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from ompy.data.errors import (
    ERR_ARG,
    ERR_CONVERSION,
    ERR_DUP_DATAREP,
    ERR_UNSUPPORTED_DATAREP,
    MPIError,
)
from ompy.data.layout import Layout
from ompy.mpi.callbacks import guarded
from ompy.mpi.constants import MAX_DATAREP_STRING
from ompy.mpi.datatypes import external32
from ompy.mpi.datatypes.datatype import Datatype, handle_of
from ompy.mpi.datatypes.derived import derived_layout
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.errors import MPIException


class Representation(Protocol):
    """How data are stored in a file."""

    def layout(self, state: TypeState) -> Layout:
        """Of a datatype in the file."""

    def size(self, datatype: Datatype, count: int) -> int:
        """Bytes of so many elements in the file."""

    def to_file(self, datatype: Datatype, packed: bytearray) -> memoryview:
        """What packed elements are in the file."""

    def from_file(self, datatype: Datatype, stored: memoryview) -> bytearray:
        """The packed elements that bytes of a file are.

        Of an element at whose middle a file ends there are the basic types before the end; of one
        that a program's function converts there is nothing.
        """


class External32:
    """The portable one."""

    def layout(self, state: TypeState) -> Layout:
        """Of a datatype in the file."""
        return _rebuilt(state, lambda named: external32.external32_size(handle_of(named), 1))

    def size(self, datatype: Datatype, count: int) -> int:
        """Bytes of so many elements in the file."""
        return external32.external32_size(datatype, count)

    def to_file(self, datatype: Datatype, packed: bytearray) -> memoryview:
        """What packed elements are in the file."""
        return memoryview(external32.encode(datatype, packed))

    def from_file(self, datatype: Datatype, stored: memoryview) -> bytearray:
        """The packed elements that bytes of a file are."""
        return external32.decode(datatype, stored)


class Registered(NamedTuple):
    """One of the program's own.

    Attributes:
        name: of it.
        read, write: `f(userbuf, datatype, count, filebuf, position)`, or None: bytes stay.
        extent: of a datatype in the file.
    """

    name: str
    read: Callable[..., Any] | None
    write: Callable[..., Any] | None
    extent: Callable[[Datatype], int]

    def layout(self, state: TypeState) -> Layout:
        """Of a datatype in the file."""
        return _rebuilt(state, lambda named: self._extent(handle_of(named)))

    def size(self, datatype: Datatype, count: int) -> int:
        """Bytes of so many elements in the file."""
        return count * self.layout(datatype._state()).size

    def to_file(self, datatype: Datatype, packed: bytearray) -> memoryview:
        """What packed elements are in the file."""
        return self._converted(self.write, datatype, packed, to_file=True)

    def from_file(self, datatype: Datatype, stored: memoryview) -> bytearray:
        """The packed elements that bytes of a file are."""
        return bytearray(self._converted(self.read, datatype, stored, to_file=False))

    def _extent(self, datatype: Datatype) -> int:
        return int(guarded(self.extent, datatype))

    def _converted(
        self,
        function: Callable[..., Any] | None,
        datatype: Datatype,
        source: bytearray | memoryview,
        *,
        to_file: bool,
    ) -> memoryview:
        """Have the program's function convert whole elements, packed on both sides."""
        here = datatype._state().layout.size
        there = self.size(datatype, 1)
        size, room = (here, there) if to_file else (there, here)
        count = len(source) // size if size else 0
        if function is None:
            if here != there:
                raise MPIError(ERR_CONVERSION, f"{self.name} has no function for {datatype.name}")
            return memoryview(source)
        packed = datatype.Create_contiguous(1).Commit()
        made = bytearray(count * room)
        given = bytearray(source[: count * size])
        user, file = (given, made) if to_file else (made, given)
        guarded(function, user, packed, count, file, 0)
        return memoryview(made)


_registered: Final[dict[str, Registered]] = {}
_BUILT_IN: Final[dict[str, Representation | None]] = {
    "native": None,
    "internal": None,  # as native: all hosts of a job are of one kind
    "external32": External32(),
}


def find_representation(name: str) -> Representation | None:
    """A representation by its name; None where bytes are as in memory.

    Those of the standard may be written in capitals, as Open MPI's ompio and ROMIO take them.

    Raises:
        MPIError: ERR_UNSUPPORTED_DATAREP, there is none.
    """
    if name in _registered:
        return _registered[name]
    if name.lower() not in _BUILT_IN:
        known = ", ".join([*_BUILT_IN, *_registered])
        raise MPIError(ERR_UNSUPPORTED_DATAREP, f"there is no {name!r}; there are {known}")
    return _BUILT_IN[name.lower()]


def mark_of(representation: Representation | None) -> int:
    """What all members of a file say alike: bytes are as in memory, portable, or the program's."""
    if representation is None:
        return 0
    return 1 if isinstance(representation, External32) else 2


def Register_datarep(
    datarep: str,
    read_fn: Callable[..., None] | None,
    write_fn: Callable[..., None] | None,
    extent_fn: Callable[[Datatype], int],
) -> None:
    """A new way to store data in files.

    Args:
        datarep: its name.
        read_fn: `f(userbuf, datatype, count, filebuf, position)` makes elements of what is in the
            file; `userbuf` has packed ones. None when they are the same.
        write_fn: the other way.
        extent_fn: bytes of a predefined datatype in the file.

    Raises:
        MPIException: ERR_DUP_DATAREP, the name is taken.
    """
    if not 0 < len(datarep) <= MAX_DATAREP_STRING:
        raise MPIException(
            ERR_ARG, f"the name has {len(datarep)} characters, not 1 to {MAX_DATAREP_STRING}"
        )
    if datarep.lower() in _BUILT_IN or datarep in _registered:
        raise MPIException(ERR_DUP_DATAREP, f"there is a representation {datarep!r} already")
    _registered[datarep] = Registered(datarep, read_fn, write_fn, extent_fn)


Size = Callable[[TypeState], int]  # of a predefined datatype in the file


def _rebuilt(state: TypeState, size: Size) -> Layout:
    """A datatype's layout with other sizes of the predefined ones."""
    found = derived_layout(state, lambda part: _rebuilt(part, size))
    if found is not None:
        return found
    if state.base is not None and state.combiner != "NAMED":
        raise MPIError(
            ERR_UNSUPPORTED_DATAREP, f"{state.combiner.lower()} types have no layout there"
        )
    length = size(state)
    return Layout(((0, length),), 0, length)
