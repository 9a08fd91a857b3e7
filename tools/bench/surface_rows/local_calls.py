"""Calls that no other rank takes part in: handles, attributes, names, memory.

What is asked without an argument is found by its name (`questions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mpi4py import MPI

from tools.bench.surface_rows.files import nameless_file
from tools.bench.surface_rows.rows import KEPT, Row, repeat, room

Calls = dict[str, Callable[[], object]]


def rows(comm: Any) -> Iterator[Row]:
    """All of them."""
    for family in (_handles, _kept, _datatypes, _topologies, _windows, _files, _requests, _memory):
        for name, call in family(comm).items():
            method, _, _ = name.partition(", ")
            yield Row(method, name, lambda _, call=call: repeat(call), False)


def _handles(comm: Any) -> Calls:
    number, fortran = comm.toint(), comm.py2f()
    address = comm.handle
    status = MPI.Status()
    return {
        "Comm.toint": comm.toint,
        "Comm.py2f": comm.py2f,
        "Comm.fromint": lambda: MPI.Comm.fromint(number),
        "Comm.f2py": lambda: MPI.Comm.f2py(fortran),
        "Comm.fromhandle": lambda: MPI.Comm.fromhandle(address),
        "Comm.Get_parent": MPI.Comm.Get_parent,
        "Status.tomemory": status.tomemory,
        "Info.Create_env": lambda: MPI.Info.Create_env().Free(),
    }


def _kept(comm: Any) -> Calls:
    """What a communicator keeps: attributes, hints, a name, an error handler."""
    mine, hints = comm.Dup(), MPI.Info.Create()
    KEPT.append(mine)
    key = MPI.Comm.Create_keyval()
    mine.Set_attr(key, 5)
    return {
        "Comm.Set_attr": lambda: mine.Set_attr(key, 6),
        "Comm.Delete_attr, Set_attr": lambda: (mine.Delete_attr(key), mine.Set_attr(key, 6)),
        "Comm.Create_keyval, Free_keyval": lambda: MPI.Comm.Free_keyval(MPI.Comm.Create_keyval()),
        "Comm.Set_name": lambda: mine.Set_name("name"),
        "Comm.Set_info": lambda: mine.Set_info(hints),
        "Comm.Set_errhandler": lambda: mine.Set_errhandler(MPI.ERRORS_RETURN),
        "Info.Delete, Set": lambda: (hints.Set("key", "value"), hints.Delete("key")),
    }


def _datatypes(comm: Any) -> Calls:
    kind = MPI.DOUBLE.Create_vector(8, 1, 2).Commit()
    KEPT.append(kind)
    return {
        "Datatype.Get_contents": kind.Get_contents,
        "Datatype.Get_envelope": kind.Get_envelope,
        "Datatype.Get_true_extent": kind.Get_true_extent,
        "Datatype.decode": kind.decode,
        "Datatype.tocode": MPI.DOUBLE.tocode,
        "Datatype.fromcode": lambda: MPI.Datatype.fromcode("d"),
        "Datatype.Match_size": lambda: MPI.Datatype.Match_size(MPI.TYPECLASS_REAL, 8),
        "Datatype.Create_f90_real": lambda: MPI.Datatype.Create_f90_real(6, 30),
        "Datatype.Create_f90_integer": lambda: MPI.Datatype.Create_f90_integer(5),
        "Datatype.Create_f90_complex": lambda: MPI.Datatype.Create_f90_complex(6, 30),
        "Datatype.Pack_size": lambda: kind.Pack_size(4, comm),
        "Datatype.Pack_external_size": lambda: kind.Pack_external_size("external32", 4),
    }


def _topologies(comm: Any) -> Calls:
    size = comm.size
    index = list(range(1, size + 1))  # a ring: an edge of each member
    edges = [(rank + 1) % size for rank in range(size)]
    graph = comm.Create_graph(index, edges)
    KEPT.append(graph)
    return {
        "Intracomm.Cart_map": lambda: comm.Cart_map([size]),
        "Intracomm.Graph_map": lambda: comm.Graph_map(index, edges),
        "Graphcomm.Get_neighbors": lambda: graph.Get_neighbors(0),
        "Graphcomm.Get_neighbors_count": lambda: graph.Get_neighbors_count(0),
        "MPI.Compute_dims": lambda: MPI.Compute_dims(12, 2),
    }


def _windows(_: Any) -> Calls:
    shared = MPI.Win.Allocate_shared(64, comm=MPI.COMM_SELF)
    dynamic, memory = MPI.Win.Create_dynamic(comm=MPI.COMM_SELF), bytearray(64)
    KEPT.extend([shared, dynamic])
    return {
        "Win.Shared_query": lambda: shared.Shared_query(0),
        "Win.Attach, Detach": lambda: (dynamic.Attach(memory), dynamic.Detach(memory)),
    }


def _files(comm: Any) -> Calls:
    file = nameless_file(comm)
    KEPT.append(file)
    return {
        "File.Get_byte_offset": lambda: file.Get_byte_offset(3),
        "File.Get_type_extent": lambda: file.Get_type_extent(MPI.DOUBLE),
        "File.Seek": lambda: file.Seek(0),
    }


def _requests(comm: Any) -> Calls:
    space, status = room(8), MPI.Status()
    inactive = comm.Recv_init(space, comm.rank, 5)
    KEPT.append(inactive)

    def cancelled() -> None:
        begun = comm.Irecv(space, comm.rank, 98)
        begun.Cancel()
        begun.Wait(status)

    return {
        "Request.Get_status": inactive.Get_status,
        "Request.Test, inactive": inactive.Test,
        "Request.Cancel, Irecv, Wait": cancelled,
        "Comm.Recv_init, Free": lambda: comm.Recv_init(space, comm.rank, 5).Free(),
    }


def _memory(_: Any) -> Calls:
    data = bytearray(4096)
    memory = MPI.memory(data)
    return {
        "MPI.memory": lambda: MPI.memory(data),
        "MPI.memory, slice": lambda: memory[0:8],
        "MPI.Get_address": lambda: MPI.Get_address(data),
        "MPI.Aint_add": lambda: MPI.Aint_add(5, 6),
        "MPI.Get_error_class": lambda: MPI.Get_error_class(5),
        "MPI.Get_error_string": lambda: MPI.Get_error_string(5),
        "MPI.Get_processor_name": MPI.Get_processor_name,
        "MPI.Get_version": MPI.Get_version,
        "MPI.Is_initialized": MPI.Is_initialized,
        "MPI.Query_thread": MPI.Query_thread,
        "MPI.Wtick": MPI.Wtick,
    }
