"""Communicators, groups and datatypes: made and freed, asked, and packing."""

# ruff: noqa: ARG005 - all take the same arguments

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mpi4py import MPI

from tools.bench.surface_rows.messages import typed_layouts
from tools.bench.surface_rows.rows import KEPT, Row, repeat, room


def rows(comm: Any) -> Iterator[Row]:
    """All of them."""
    for name, call in _communicators(comm).items():
        kind = "Cartcomm" if name == "Sub" else "Comm" if hasattr(MPI.Comm, name) else "Intracomm"
        yield Row(f"{kind}.{name}", f"{name}, Free", lambda _, call=call: repeat(call), False)
    for name, call in _asked(comm).items():
        yield Row(name, name.partition(".")[2], lambda _, call=call: repeat(call), False)
    for name in ("Pack", "Unpack", "Pack_external", "Unpack_external"):
        for layout in ("vector", "indexed", "struct"):
            yield Row(
                f"Datatype.{name}",
                f"{name} {layout}",
                lambda size, name=name, layout=layout: _packing(comm, name, layout, size),
            )


def _communicators(comm: Any) -> dict[str, Callable[[], Any]]:
    group = comm.Get_group()
    grid = comm.Create_cart([comm.size, 1])
    ring = [(comm.rank - 1) % comm.size], [(comm.rank + 1) % comm.size]

    def later() -> None:
        made, request = comm.Idup()
        request.Wait()
        made.Free()

    return {
        "Dup": lambda: comm.Dup().Free(),
        "Dup_with_info": lambda: comm.Dup_with_info(MPI.INFO_NULL).Free(),
        "Clone": lambda: comm.Clone().Free(),
        "Idup": later,
        "Split": lambda: comm.Split(0, comm.rank).Free(),
        "Split_type": lambda: comm.Split_type(MPI.COMM_TYPE_SHARED).Free(),
        "Create": lambda: comm.Create(group).Free(),
        "Create_group": lambda: comm.Create_group(group).Free(),
        "Create_cart": lambda: comm.Create_cart([comm.size]).Free(),
        "Create_dist_graph_adjacent": lambda: comm.Create_dist_graph_adjacent(*ring).Free(),
        "Sub": lambda: grid.Sub([True, False]).Free(),
    }


def _asked(comm: Any) -> dict[str, Callable[[], Any]]:
    group, other = comm.Get_group(), comm.Get_group().Incl([0])
    grid = comm.Create_cart([comm.size], periods=[True])
    status = MPI.Status()
    info = MPI.Info.Create()
    info.Set("key", "value")
    key = MPI.Comm.Create_keyval()
    comm.Set_attr(key, 5)
    return {
        **_of_descriptions(info, status),
        "Group.Compare": lambda: MPI.Group.Compare(group, other),
        "Group.Dup": lambda: group.Dup().Free(),
        "Comm.Get_rank": comm.Get_rank,
        "Comm.Get_size": comm.Get_size,
        "Comm.Get_attr": lambda: comm.Get_attr(key),
        "Comm.Get_name": comm.Get_name,
        "Comm.Compare": lambda: MPI.Comm.Compare(comm, comm),
        "Comm.Get_group": lambda: comm.Get_group().Free(),
        "Group.Incl": lambda: group.Incl([0]).Free(),
        "Group.Union": lambda: MPI.Group.Union(group, other).Free(),
        "Group.Translate_ranks": lambda: group.Translate_ranks([0], other),
        "Cartcomm.Shift": lambda: grid.Shift(0, 1),
        "Cartcomm.Get_coords": lambda: grid.Get_coords(0),
        "Cartcomm.Get_cart_rank": lambda: grid.Get_cart_rank([0]),
        "Status.Get_count": lambda: status.Get_count(MPI.BYTE),
        "Info.Get": lambda: info.Get("key"),
        "Datatype.Create_vector": lambda: MPI.DOUBLE.Create_vector(8, 1, 2).Commit().Free(),
        "Datatype.Create_indexed": lambda: (
            MPI.DOUBLE.Create_indexed([1, 2], [0, 4]).Commit().Free()
        ),
        "Datatype.Create_subarray": lambda: (
            MPI.DOUBLE.Create_subarray([4, 4], [2, 2], [1, 1]).Commit().Free()
        ),
        "Datatype.Get_extent": MPI.DOUBLE.Get_extent,
        "Op.Create": lambda: MPI.Op.Create(lambda one, two, kind: None).Free(),
        "MPI.Wtime": MPI.Wtime,
        "MPI.Alloc_mem": lambda: MPI.Free_mem(MPI.Alloc_mem(4096)),
    }


def _of_descriptions(info: Any, status: Any) -> dict[str, Callable[[], Any]]:
    """Of what describes: datatypes, hints, statuses, operations."""
    key = MPI.Datatype.Create_keyval()
    kind = MPI.DOUBLE.Dup()
    kind.Set_attr(key, 5)
    one, two = room(8, float), room(8, float)
    window = MPI.Win.Allocate(64, comm=MPI.COMM_SELF)
    KEPT.append(window)
    return {
        "Datatype.Dup": lambda: MPI.DOUBLE.Dup().Free(),
        "Datatype.Get_attr": lambda: kind.Get_attr(key),
        "Win.Get_attr": lambda: window.Get_attr(MPI.WIN_SIZE),
        "Info.Create": lambda: MPI.Info.Create().Free(),
        "Info.Dup": lambda: info.Dup().Free(),
        "Info.Set": lambda: info.Set("key", "value"),
        "Info.Get_nthkey": lambda: info.Get_nthkey(0),
        "Op.Reduce_local": lambda: MPI.SUM.Reduce_local(one, two),
        "Status.Get_elements": lambda: status.Get_elements(MPI.BYTE),
        "Status.Set_elements": lambda: status.Set_elements(MPI.BYTE, 8),
        "Status.Set_cancelled": lambda: status.Set_cancelled(False),
        "Status.Set_error": lambda: status.Set_error(0),
        "Status.Set_source": lambda: status.Set_source(0),
        "Status.Set_tag": lambda: status.Set_tag(0),
    }


def _packing(comm: Any, name: str, layout: str, size: int) -> Callable[[int], None]:
    kind, reach = typed_layouts(size)[layout]
    kind.Commit()
    data = room(reach, float)[: kind.Get_extent()[1] // 8]  # one element
    external = name.endswith("external")
    space = kind.Pack_external_size("external32", 1) if external else kind.Pack_size(1, comm)
    packed = room(space)
    if name == "Pack":
        return repeat(lambda: kind.Pack(data, packed, 0, comm))
    if name == "Unpack":
        return repeat(lambda: kind.Unpack(packed, 0, data, comm))
    if name == "Pack_external":
        return repeat(lambda: kind.Pack_external("external32", data, packed, 0))
    return repeat(lambda: kind.Unpack_external("external32", packed, 0, data))
