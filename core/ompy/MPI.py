"""`ompy.MPI`: mpi4py's module `MPI`, over ompy.

Importing it initialises MPI unless `mpi4py.rc` says otherwise. What is seldom used is imported
when it is first looked at. `MPI.pyi` says the same for type checkers.
"""

from __future__ import annotations

from collections.abc import Iterable as _Iterable
from contextlib import suppress as _suppress
from importlib import import_module as _import_module
from typing import Any as _Any
from typing import Final as _Final

from ompy.data import errors as _errors
from ompy.mpi import constants as _constants
from ompy.mpi.buffers.markers import (
    BOTTOM,
    BUFFER_AUTOMATIC,
    IN_PLACE,
    BottomType,
    BufferAutomaticType,
    InPlaceType,
)
from ompy.mpi.buffers.objects import Pickle, pickle
from ompy.mpi.collectives.operation import OP_NULL, Op
from ompy.mpi.collectives.operation import OPERATIONS as _OPERATIONS
from ompy.mpi.communicators.attributes import _keyval_registry
from ompy.mpi.communicators.cartesian import Cartcomm, Compute_dims
from ompy.mpi.communicators.comm import COMM_NULL, Comm
from ompy.mpi.communicators.graphs import Distgraphcomm, Graphcomm
from ompy.mpi.communicators.group import GROUP_EMPTY, GROUP_NULL, Group
from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.communicators.topocomm import Topocomm
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPES as _DATATYPES
from ompy.mpi.datatypes.predefined import typedict as _typedict
from ompy.mpi.datatypes.predefined import typedict_c as _typedict_c
from ompy.mpi.datatypes.predefined import typedict_f as _typedict_f
from ompy.mpi.errhandler import (
    ERRHANDLER_NULL,
    ERRORS_ABORT,
    ERRORS_ARE_FATAL,
    ERRORS_RETURN,
    Errhandler,
)
from ompy.mpi.errors import (
    Add_error_class,
    Add_error_code,
    Add_error_string,
    Get_error_class,
    Get_error_string,
    Remove_error_class,
    Remove_error_code,
    Remove_error_string,
)
from ompy.mpi.errors import MPIException as Exception
from ompy.mpi.info import INFO_ENV, INFO_NULL, Info
from ompy.mpi.integers import Aint_add, Aint_diff
from ompy.mpi.point_to_point.grequest import Grequest
from ompy.mpi.point_to_point.matched import MESSAGE_NO_PROC, MESSAGE_NULL, Message
from ompy.mpi.point_to_point.request import REQUEST_NULL, Prequest, Request
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.processes import life as _life
from ompy.mpi.processes.environment import (
    Attach_buffer,
    Detach_buffer,
    Flush_buffer,
    Get_abi_fortran_info,
    Get_abi_info,
    Get_abi_version,
    Get_hw_resource_info,
    Get_library_version,
    Get_processor_name,
    Get_version,
    Iflush_buffer,
    Pcontrol,
    Wtick,
    Wtime,
    _addressof,
    _comm_lock,
    _comm_lock_table,
    _commctx_inter,
    _commctx_intra,
    _datatype_create,
    _datatype_decode,
    _handleof,
    _sizeof,
    _typealign,
    _typecode,
    get_vendor,
)
from ompy.mpi.processes.life import (
    COMM_SELF,
    COMM_WORLD,
    Finalize,
    Init,
    Init_thread,
    Is_finalized,
    Is_initialized,
    Is_thread_main,
    Query_thread,
    _set_abort_status,
    _set_expendable,
)

# the environment's defaults: a fork of the agent read them before its program could set any
pickle.PROTOCOL = None
pickle.THRESHOLD = None

_imported_as = ""
# where names are that are imported when they are first looked at
_LATER: _Final = {
    "Win": "ompy.mpi.windows.windows",
    "WIN_NULL": "ompy.mpi.windows.windows",
    "File": "ompy.mpi.files.files",
    "FILE_NULL": "ompy.mpi.files.files",
    "Register_datarep": "ompy.mpi.files.representations",
    "Session": "ompy.mpi.processes.sessions",
    "SESSION_NULL": "ompy.mpi.processes.sessions",
    "buffer": "ompy.mpi.buffers.memory",
    "memory": "ompy.mpi.buffers.memory",
    "Alloc_mem": "ompy.mpi.buffers.memory",
    "Free_mem": "ompy.mpi.buffers.memory",
    "Get_address": "ompy.mpi.buffers.memory",
    "Open_port": "ompy.mpi.processes.ports",
    "Close_port": "ompy.mpi.processes.ports",
    "Publish_name": "ompy.mpi.processes.ports",
    "Unpublish_name": "ompy.mpi.processes.ports",
    "Lookup_name": "ompy.mpi.processes.ports",
}


def _spread() -> None:
    """The constants, by name."""
    names = globals()
    for source in (_constants, _errors):
        for name, value in vars(source).items():
            if name.isupper() and isinstance(value, int):
                names[name] = value
    names.update(_DATATYPES)
    names.update(_OPERATIONS)


_NO_C_API: _Any = (
    "mpi4py.MPI is ompy here, which is Python and has no C API: C code that calls import_mpi4py() "
    "is made for another MPI library, and needs an mpi4py of that (ompy-run --no-mpi4py, started "
    "by that library's mpiexec)"
)


def __getattr__(name: str) -> _Any:
    if name == "__pyx_capi__":  # what import_mpi4py() of C code and cimport look for
        raise AttributeError(_NO_C_API)
    if name not in _LATER:
        raise AttributeError(f"module 'ompy.MPI' has no attribute {name!r}")
    place = _LATER[name]
    module = _import_module(place)
    if _imported_as:
        _name_classes(getattr(module, key, None) for key in _LATER if _LATER[key] == place)
    found = getattr(module, "buffer" if name == "memory" else name)
    globals()[name] = found
    return found


def _import_as(name: str) -> None:
    """Have classes say in texts, tracebacks and pickles that they are of the module of this name.

    Args:
        name: by which the program knows this module.
    """
    globals()["_imported_as"] = name
    _name_classes(value for key, value in globals().items() if not key.startswith("_"))


def _name_classes(values: _Iterable[_Any]) -> None:
    for kind in values:
        if isinstance(kind, type):
            with _suppress(TypeError):  # one that is compiled keeps its name
                kind.__module__ = _imported_as


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def _watch(process: _Any) -> None:
    """Record the rank, trace its calls, look for what it does wrong, where that was asked for."""
    record = process.registry.values("record")
    if record.replay:
        _import_module("ompy.replay.rank").begin_replaying(process, record.replay)
    elif record.directory:
        begin = _import_module("ompy.replay.rank").begin_recording
        begin(process, record.directory, data=record.data)
    if process.context.trace.active:
        _import_module("ompy.calls.rank").begin_tracing_calls(process)
    values = process.registry.values("check")
    if values.directory:
        begin = _import_module("ompy.check.rank").begin_checking
        begin(process, values.directory, values.limit, synchronous=values.buffering)


_spread()
del annotations  # the import's own name
__all__ = [name for name in __dir__() if not name.startswith("_")]
_life.tell_when_up(_watch)
_life.start_up()
