"""Functions of the module `MPI` that concern the whole process."""

# ruff: noqa: SLF001, ARG001 - states are private to users only; what is not there ignores all

from __future__ import annotations

import time
from collections.abc import Hashable
from typing import Any, Final

import ompy
from ompy.mpi import constants
from ompy.mpi.collectives.in_turn import comm_lock, lock_table
from ompy.mpi.communicators.comm import Comm
from ompy.mpi.communicators.hardware import resources
from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.handles import Handle
from ompy.mpi.info import Info
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point import buffering
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.processes.life import current, is_up

Wtime = time.monotonic
_TICK: Final = time.get_clock_info("monotonic").resolution
# MPI-5.0: the keys of MPI_Abi_get_info and MPI_Abi_get_fortran_info
_ABI_INTEGERS: Final = ("AINT", "COUNT", "OFFSET")
_FORTRAN_DEFAULTS: Final = ("LOGICAL", "INTEGER", "REAL", "DOUBLE_PRECISION")
_FORTRAN_SIZED: Final = (
    *("LOGICAL1", "LOGICAL2", "LOGICAL4", "LOGICAL8", "LOGICAL16"),
    *("INTEGER1", "INTEGER2", "INTEGER4", "INTEGER8", "INTEGER16"),
    *("REAL2", "REAL4", "REAL8", "REAL16"),
    *("COMPLEX4", "COMPLEX8", "COMPLEX16", "COMPLEX32", "DOUBLE_COMPLEX"),
)


def Wtick() -> float:
    """Resolution of `Wtime` in seconds."""
    return _TICK


def Pcontrol(level: int) -> None:
    """Tell a profiler what to do; there is none."""
    whole_number(level)


def Get_version() -> tuple[int, int]:
    """Version of the MPI standard whose functions are complete."""
    return constants.VERSION, constants.SUBVERSION


def Get_library_version() -> str:
    """Name and version of this library."""
    # tools look for a name they know, to choose between launch options: ours are Open MPI's
    standard = f"MPI {constants.VERSION}.{constants.SUBVERSION}"
    return f"ompy {ompy.__version__}, {standard}, parts and options as in Open MPI"


def get_vendor() -> tuple[str, tuple[int, int, int]]:
    """Name and version of this library."""
    major, minor, patch = (int(part) for part in ompy.__version__.split(".")[:3])
    return "ompy", (major, minor, patch)


def Get_processor_name() -> str:
    """Name of the host."""
    return current().context.me.hostname


def Attach_buffer(buf: Any) -> None:
    """Lend memory for buffered sends."""
    buffering.attach_buffer(current(), buf)


def Detach_buffer() -> Any:
    """Take back the memory when the messages in it have been sent."""
    world = current()
    return buffering.detach_buffer(world, world)


def Flush_buffer() -> None:
    """Return when the buffered messages have been sent."""
    world = current()
    buffering.flush_buffer(world, world)


def Iflush_buffer() -> Request:
    """Begin `Flush_buffer`: complete when the messages buffered so far have been sent."""
    world = current()
    state = RequestState(None, buffering.begin_flush(world, world), None)
    state.world = world
    return Request._adopt(state)


def Get_hw_resource_info() -> Info:
    """The hardware this process runs on: the types of resources that its host has.

    Returns:
        For each type `true` or `false`: whether the process is restricted to one piece of it. It is
        a value of the key `mpi_hw_resource_type` of `Comm.Split_type`. The caller frees it.
    """
    virtual = is_up() and current().context.network.virtual
    said = {name: piece >= 0 for name, piece in resources(virtual=virtual).items()}
    return Info.Create({name: "true" if here else "false" for name, here in said.items()})


def Get_abi_version() -> tuple[int, int]:
    """The version of MPI's binary interface: none, as there is no C library."""
    return -1, -1


def Get_abi_info() -> Info:
    """How many bytes MPI's own kinds of integers have."""
    return Info.Create({f"mpi_{name.lower()}_size": _size(name) for name in _ABI_INTEGERS})


def Get_abi_fortran_info() -> Info:
    """How many bytes Fortran's default types have, and which types of a given size there are."""
    sizes = {f"mpi_{name.lower()}_size": _size(name) for name in _FORTRAN_DEFAULTS}
    known = ((name, str(bool(DATATYPES[name])).lower()) for name in _FORTRAN_SIZED)
    return Info.Create({**sizes, **{f"mpi_{name.lower()}_supported": text for name, text in known}})


def _size(name: str) -> str:
    return str(DATATYPES[name].Get_size())


# --- what mpi4py's own Python packages use


def _comm_lock(comm: Comm, key: Hashable = None) -> Any:
    """A lock that belongs to a communicator."""
    return comm_lock(comm._state(), key)


def _comm_lock_table(comm: Comm) -> dict[Any, Any]:
    """The locks that belong to a communicator."""
    return lock_table(comm._state())


def _commctx_intra(comm: Comm) -> tuple[Comm, int]:
    """A communicator of the same members for hidden messages, and a tag for the next one."""
    state = comm._state()
    if state.hidden is None:
        state.hidden = [comm.Dup(), 0]
    hidden = state.hidden
    hidden[1] += 1
    return hidden[0], hidden[1]


def _commctx_inter(comm: Intercomm) -> tuple[Intercomm, int, Intracomm, bool]:
    """Like `_commctx_intra`; and a communicator of the own group, whether that is the first one."""
    state = comm._state()
    if state.hidden is None:
        both = comm.Merge()
        first = both.rank == comm.rank
        state.hidden = [comm.Dup(), 0, both.Split(int(first), comm.rank), first]
        both.Free()
    hidden = state.hidden
    hidden[1] += 1
    return hidden[0], hidden[1], hidden[2], hidden[3]


def _typecode(datatype: Datatype) -> str | None:
    """A datatype's code, or None."""
    return (datatype._inner.code or None) if datatype else None


def _typealign(datatype: Datatype) -> int | None:
    """Alignment of a predefined datatype in bytes, or None."""
    return datatype._inner.align if datatype and datatype.is_predefined else None


def _datatype_create(
    datatype: Datatype, combiner: str, params: dict[str, Any], free: bool = False
) -> Datatype:
    """A datatype as `decode` describes it."""
    made: Datatype = getattr(datatype, f"Create_{combiner.lower()}")(**params)
    if free and not datatype.is_predefined:
        datatype.Free()
    return made


def _datatype_decode(
    datatype: Datatype,
    mark: bool = False,
) -> tuple[Datatype, str, dict[str, Any]]:
    """As `Datatype.decode`."""
    return datatype.decode()


def _sizeof(arg: Any) -> int:
    """Bytes of what a handle is in C."""
    kind = arg if isinstance(arg, type) else type(arg)
    if issubclass(kind, Status):
        return 4 * constants.F_STATUS_SIZE
    if issubclass(kind, Handle):
        return 8
    raise TypeError(f"expecting an MPI object, not {kind.__name__}")


def _addressof(arg: Any) -> int:
    """Where C would find the handle of an MPI object: nowhere, as there is no C library.

    Raises:
        NotImplementedError: always, for an MPI object. C code would take what it found for a
            handle of the MPI library that it is linked with, and crash in there.
    """
    _sizeof(arg)
    raise NotImplementedError(
        "MPI._addressof: ompy is not a C library, so no C code can use the handle of a "
        f"{type(arg).__name__}; code that is linked with an MPI library needs an mpi4py of that"
    )


def _handleof(arg: Any) -> int:
    """The handle of an MPI object."""
    _sizeof(arg)
    return arg.handle if isinstance(arg, Handle) else id(arg)
