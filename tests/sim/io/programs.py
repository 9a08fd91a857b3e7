"""Programs of one rank each: what files promise, one thing at a time. One rank or more."""

from __future__ import annotations

import os
import random
import tempfile
from array import array
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from ompy.data.errors import (
    ERR_ACCESS,
    ERR_AMODE,
    ERR_ARG,
    ERR_BAD_FILE,
    ERR_DISP,
    ERR_DUP_DATAREP,
    ERR_FILE,
    ERR_FILE_EXISTS,
    ERR_NO_SPACE,
    ERR_NO_SUCH_FILE,
    ERR_NOT_SAME,
    ERR_OTHER,
    ERR_READ_ONLY,
    ERR_TYPE,
    ERR_UNSUPPORTED_DATAREP,
    ERR_UNSUPPORTED_OPERATION,
)
from ompy.mpi import constants
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.errors import MPIException
from ompy.mpi.files.files import FILE_NULL, File
from ompy.mpi.files.representations import Register_datarep
from ompy.mpi.info import Info
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess

BYTE, INT, LONG, DOUBLE = (DATATYPES[name] for name in ("BYTE", "INT", "LONG", "DOUBLE"))
RDWR = constants.MODE_RDWR | constants.MODE_CREATE


def fails(code: int, call: Callable[..., Any], *arguments: Any, **more: Any) -> str:
    with pytest.raises(MPIException) as caught:
        call(*arguments, **more)
    assert caught.value.code == code, caught.value
    return str(caught.value)


def common_folder(comm: Intracomm) -> Path:
    """A folder that all ranks know; `remove_folder` ends it."""
    made = tempfile.mkdtemp() if comm.rank == 0 else None
    return Path(comm.bcast(made, 0))


def remove_folder(comm: Intracomm, folder: Path, *left: str) -> None:
    """See that these files are left in it, and no other."""
    comm.Barrier()
    if comm.rank == 0:
        assert sorted(os.listdir(folder)) == sorted(left)
        for name in left:
            (folder / name).unlink()
        folder.rmdir()


def numbers(*values: int) -> array:
    return array("i", values)


def pointers(process: RankProcess) -> None:
    """Every rank's own pointer, and positions in a view."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    pairs = INT.Create_vector(2, 1, 2 * comm.size).Create_resized(0, 16 * comm.size).Commit()
    fh.Set_view(4 * comm.rank, INT, pairs)
    fh.Write(numbers(1, 2))
    assert fh.Get_position() == 2
    fh.Seek(1, constants.SEEK_CUR)
    assert fh.Get_position() == 3
    assert fh.Get_byte_offset(1) == 4 * comm.rank + 8 * comm.size
    fails(ERR_ARG, fh.Seek, -4, constants.SEEK_CUR)
    fails(ERR_ARG, fh.Seek, 0, 7)
    assert fh.Get_position() == 3
    fh.Sync()
    fh.Seek(0, constants.SEEK_END)
    assert fh.Get_position() == 2
    room = numbers(-1, -1, -1)
    status = Status()
    fh.Seek(0)
    fh.Read(room, status)
    assert (list(room), status.Get_count(INT)) == ([1, 2, -1], 2)
    assert fh.Get_position() == 3  # behind what was asked for
    fh.Close()
    assert fh == FILE_NULL
    fails(ERR_FILE, fh.Get_size)
    remove_folder(comm, folder, "x")


def columns(process: RankProcess) -> None:
    """Interleaved numbers, all together, larger than an aggregator's buffer."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    info = Info.Create({"cb_buffer_size": "8192", "cb_nodes": "2"})
    fh = File.Open(comm, folder / "x", RDWR, info)
    assert fh.Get_info()["cb_buffer_size"] == "8192"
    rows = 5000
    fh.Set_view(
        8 * rank, DOUBLE, DOUBLE.Create_vector(1, 1, size).Create_resized(0, 8 * size).Commit()
    )
    mine = array("d", [rank + i / 8 for i in range(rows)])
    fh.Write_all(mine)
    fh.Sync()
    room = array("d", bytes(8 * rows))
    fh.Read_at_all(0, room)
    assert room == mine
    request = fh.Iwrite_all(mine)  # behind the first half
    again = fh.Iread_at_all(rows - 1, room)
    request.Wait()
    again.Wait()
    assert room[0] == mine[-1]
    assert fh.Get_position() == 2 * rows
    fh.Set_view(0, DOUBLE)
    whole = array("d", bytes(8 * rows * size))
    fh.Read_at_all(rows * size, whole)
    assert list(whole) == [other + i / 8 for i in range(rows) for other in range(size)]
    fh.Close()
    remove_folder(comm, folder, "x")


def different_hints(process: RankProcess) -> None:
    """The first rank's hints hold for all: else each would have a plan of its own."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    uses = ("enable", "disable", "automatic")
    said = {"cb_buffer_size": str(4096 * (rank + 1)), "romio_cb_write": uses[rank % 3]}
    info = Info.Create({**said, "cb_nodes": str(size - rank), "romio_cb_read": "nonsense"})
    fh = File.Open(comm, folder / "x", RDWR, info)
    known = fh.Get_info()
    assert (known["cb_buffer_size"], known["romio_cb_write"]) == ("4096", "enable")
    assert known["romio_cb_read"] == "automatic"
    fh.Set_view(4 * rank, INT, INT.Create_vector(1, 1, 1).Create_resized(0, 4 * size).Commit())
    mine = numbers(*range(rank, rank + 3000))
    fh.Write_all(mine)
    room = numbers(*[-1] * 3000)
    fh.Read_at_all(0, room)
    assert room == mine
    fh.Close()
    remove_folder(comm, folder, "x")


def threads(process: RankProcess) -> None:
    """Threads of a rank that write at its pointer write one after the other."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / f"x{comm.rank}" if comm.size == 1 else folder / "x", RDWR)
    fh.Set_view(1000 * comm.rank, BYTE)
    workers = [Thread(target=fh.Write, args=(bytes([65 + i]) * 100,)) for i in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert fh.Get_position() == 600
    room = bytearray(600)
    fh.Read_at(0, room)
    found = [bytes(room[i : i + 100]) for i in range(0, 600, 100)]
    assert sorted(found) == [bytes([65 + i]) * 100 for i in range(6)]
    fh.Close()
    remove_folder(comm, folder, "x" if comm.size > 1 else "x0")


def holes(process: RankProcess) -> None:
    """What no rank sees stays, though what they see lies around it."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    if rank == 0:
        (folder / "x").write_bytes(b"#" * 4 * (size + 1) * 100)
    comm.Barrier()
    fh = File.Open(comm, folder / "x", constants.MODE_WRONLY)
    row = INT.Create_vector(1, 1, 1).Create_resized(0, 4 * (size + 1)).Commit()
    fh.Set_view(4 * rank, INT, row)
    fh.Write_all(numbers(*[rank] * 100))
    fh.Close()
    if rank == 0:
        found = array("i", (folder / "x").read_bytes())
        hole = int.from_bytes(b"####", "little")
        assert list(found) == [*range(size), hole] * 100
    remove_folder(comm, folder, "x")


def uneven_memory(process: RankProcess) -> None:
    """Several elements of long blocks of different lengths, in memory and in the file."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    blocks = BYTE.Create_indexed([4096, 8192], [0, 12288]).Create_resized(0, 24576).Commit()
    tiles = BYTE.Create_indexed([8192, 4096], [0, 12288]).Create_resized(0, 24576 * size).Commit()
    mine = random.Random(rank).randbytes(3 * 24576)
    starts = (0, 24576, 49152)
    packed = b"".join(mine[at : at + 4096] + mine[at + 12288 : at + 20480] for at in starts)
    for first, seen in (24576 * rank, tiles), (3 * 24576 * (size + rank), BYTE):
        fh.Set_view(first, BYTE, seen)
        fh.Write_at(0, [mine, 3, blocks])
        room = bytearray(len(packed))
        fh.Read_at(0, room)
        assert room == packed
        room = bytearray(len(mine))
        fh.Read_at(0, [room, 3, blocks])
        for at in starts:
            assert room[at : at + 4096] == mine[at : at + 4096]
            assert room[at + 12288 : at + 20480] == mine[at + 12288 : at + 20480]
    fh.Close()
    remove_folder(comm, folder, "x")


def shared_pointer(process: RankProcess) -> None:
    """What the ranks append is whole, and in their order where that is asked for."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    fh.Set_view(0, INT)
    for number in range(5):
        fh.Write_shared(numbers(rank, number, rank))
    fh.Iwrite_shared(numbers(rank, 5, rank)).Wait()
    comm.Barrier()
    assert fh.Get_position_shared() == 18 * size
    everything = numbers(*[-1] * 18 * size)
    fh.Read_at(0, everything)
    found = [tuple(everything[i : i + 3]) for i in range(0, len(everything), 3)]
    assert sorted(found) == [(r, n, r) for r in range(size) for n in range(6)]
    for other in range(size):
        assert [n for r, n, _ in found if r == other] == list(range(6))
    fh.Seek_shared(3)
    fh.Write_ordered(numbers(*[rank] * (rank + 1)))
    fh.Write_ordered_begin(buffer := numbers(10 + rank))
    fh.Write_ordered_end(buffer)
    fh.Seek_shared(-fh.Get_position_shared(), constants.SEEK_CUR)
    if size > 1:
        fails(ERR_NOT_SAME, fh.Seek_shared, rank)
        whence = constants.SEEK_CUR if rank else constants.SEEK_SET
        assert "do not name the same whence" in fails(ERR_NOT_SAME, fh.Seek_shared, 0, whence)
    fh.Seek_shared(3)
    room = numbers(*[-1] * (rank + 1))
    fh.Read_ordered(room)
    assert set(room) == {rank}
    one = numbers(-1)
    fh.Read_ordered_begin(one)
    fh.Read_ordered_end(one)
    assert one[0] == 10 + rank
    fh.Seek_shared(0, constants.SEEK_END)
    assert fh.Get_position_shared() == 18 * size
    fh.Close()
    remove_folder(comm, folder, "x")


def moved_pointers(process: RankProcess) -> None:
    """What moves the pointer of all, and what does not, whoever comes late."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    fh.Set_view(0, INT)
    fh.Seek_shared(5)
    last = rank == size - 1
    fails(ERR_DISP, fh.Set_view, -1 if last else 0, INT)
    assert fh.Get_position_shared() == 5
    for offset, whence in ((-1, constants.SEEK_SET), (-6, constants.SEEK_CUR), (0, 601)):
        fails(ERR_ARG, fh.Seek_shared, offset, whence)
    assert fh.Get_position_shared() == 5
    fh.Seek_shared(1 << 58)
    assert fh.Get_position_shared() == 1 << 58
    fh.Seek_shared(0)
    for turn in range(4):  # all but the first write, while that one is in the next call
        if rank:
            comm.recv(source=0)
            fh.Write_shared(numbers(rank))
        else:
            for other in range(1, size):
                comm.send(turn, other)
        if turn % 2:
            fh.Seek_shared(turn)
            assert fh.Get_position_shared() == turn
        else:
            fh.Set_view(0, INT)
            assert fh.Get_position_shared() == 0
        comm.Barrier()
    assert fh.Get_size() == (4 * size if size > 1 else 0)
    fh.Close()
    remove_folder(comm, folder, "x")


def few_and_many(process: RankProcess) -> None:
    """Ranks with few runs move them alone, those with many do not, in one call."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    column = INT.Create_resized(0, 4 * size).Commit()
    fh.Set_view(4 * rank, INT, column)
    for rows in 300, 1:
        mine = numbers(*range(rank, rank + (1 if rank == 0 else rows)))
        status = Status()
        fh.Write_at_all(0, mine, status)
        assert status.Get_count(INT) == len(mine)
        room = numbers(*[-1] * len(mine))
        fh.Sync()
        fh.Read_at_all(0, room, status)
        assert (room, status.Get_count(INT)) == (mine, len(mine))
        request = fh.Iread_at_all(0, room)
        fh.Seek(1)
        fh.Write_all(mine)
        request.Wait(status)
        assert status.Get_count(INT) == len(mine)
        fh.Set_view(4 * rank, INT, column)  # the others hear of it once more
    fh.Close()
    if rank == 0:
        found = array("i", (folder / "x").read_bytes())
        for other in range(1, size):
            assert found[other] == other
            assert list(found[other + size :: size]) == [other, *range(other + 1, other + 300)]
    remove_folder(comm, folder, "x")


def cut_off(process: RankProcess) -> None:
    """Room that was there is asked for again when somebody has cut the file off."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    for size in 5000, 3000, 5000:
        fh.Preallocate(size)
        assert fh.Get_size() == 5000
    comm.Barrier()
    if comm.rank == 0:
        os.truncate(folder / "x", 10)
    comm.Barrier()
    assert fh.Get_size() == 10
    comm.Barrier()
    fh.Preallocate(4000)
    assert fh.Get_size() == 4000
    fh.Set_size(7)
    fh.Preallocate(4000)
    assert fh.Get_size() == 4000
    if comm.size > 1:
        fails(ERR_NOT_SAME, fh.Preallocate, 4000 + comm.rank)
        fails(ERR_NOT_SAME, fh.Set_atomicity, comm.rank == 0)
    fails(ERR_ARG, fh.Preallocate, -1 if comm.rank == 0 else 4000)
    fh.Close()
    remove_folder(comm, folder, "x")


def split_calls(process: RankProcess) -> None:
    """One at a time, and each ended by its own."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    fh.Set_view(0, INT)
    mine = numbers(comm.rank, comm.rank)
    fh.Write_at_all_begin(2 * comm.rank, mine)
    fails(ERR_OTHER, fh.Write_all_begin, mine)
    fails(ERR_OTHER, fh.Read_at_all_end, mine)
    fails(ERR_OTHER, fh.Close)
    status = Status()
    fh.Write_at_all_end(mine, status)
    assert status.Get_count(INT) == 2
    fails(ERR_OTHER, fh.Write_at_all_end, mine)
    fh.Seek(2 * comm.rank)
    room = numbers(-1, -1)
    fh.Read_all_begin(room)
    fh.Read_all_end(room)
    assert room == mine
    fh.Close()
    remove_folder(comm, folder, "x")


def sizes(process: RankProcess) -> None:
    """Sizes, room, deletion at the end."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR | constants.MODE_DELETE_ON_CLOSE)
    fh.Set_size(100)
    assert fh.Get_size() == 100
    fh.Preallocate(1000)
    assert fh.Get_size() == 1000
    fh.Preallocate(10)
    assert fh.Get_size() == 1000
    fails(ERR_ARG, fh.Set_size, -1)
    if comm.size > 1:
        text = fails(ERR_NOT_SAME, fh.Set_size, comm.rank)
        assert "File.Set_size: the members say 0, 1" in text
    assert (fh.group_size, fh.group_rank) == (comm.size, comm.rank)
    fh.Close()
    remove_folder(comm, folder)


def modes(process: RankProcess) -> None:
    """Ways to open, and what they leave out; what cannot be opened stays as it is."""
    comm = world_of(process)
    folder = common_folder(comm)
    path = folder / "x"
    fails(ERR_NO_SUCH_FILE, File.Open, comm, path, constants.MODE_RDWR)
    fails(ERR_NO_SUCH_FILE, File.Open, comm, folder / "none" / "x", RDWR)
    fails(ERR_BAD_FILE, File.Open, comm, "", RDWR)
    fails(ERR_BAD_FILE, File.Open, comm, folder, RDWR)
    fails(ERR_AMODE, File.Open, comm, path, constants.MODE_CREATE)
    fails(ERR_AMODE, File.Open, comm, path, constants.MODE_RDONLY | constants.MODE_CREATE)
    fails(ERR_AMODE, File.Open, comm, path, constants.MODE_RDWR | constants.MODE_SEQUENTIAL)
    fails(ERR_AMODE, File.Open, comm, path, constants.MODE_RDWR | 1 << 20)
    if comm.size > 1:
        mode = RDWR if comm.rank else constants.MODE_WRONLY | constants.MODE_CREATE
        fails(ERR_NOT_SAME, File.Open, comm, path, mode)
    assert os.listdir(folder) == []
    File.Open(comm, path, RDWR | constants.MODE_EXCL).Close()
    comm.Barrier()
    fails(ERR_FILE_EXISTS, File.Open, comm, path, RDWR | constants.MODE_EXCL)
    fh = File.Open(comm, path, constants.MODE_WRONLY | constants.MODE_APPEND)
    fails(ERR_ACCESS, fh.Read, bytearray(1))
    fh.Write_ordered(b"abc")
    fh.Close()
    fh = File.Open(comm, path, constants.MODE_WRONLY | constants.MODE_APPEND)
    assert (fh.Get_position(), fh.Get_position_shared()) == (3 * comm.size, 3 * comm.size)
    fh.Close()
    fh = File.Open(comm, path)
    assert fh.Get_amode() == constants.MODE_RDONLY
    fails(ERR_READ_ONLY, fh.Write, b"x")
    fails(ERR_READ_ONLY, fh.Set_size, 0)
    fh.Close()
    fh = File.Open(comm, path, constants.MODE_RDONLY | constants.MODE_SEQUENTIAL)
    fails(ERR_UNSUPPORTED_OPERATION, fh.Read_at, 0, bytearray(3))
    fails(ERR_UNSUPPORTED_OPERATION, fh.Seek, 0)
    room = bytearray(3)
    fh.Read_shared(room)
    assert room == b"abc"
    fh.Close()
    remove_folder(comm, folder, "x")


def wrong_views(process: RankProcess) -> None:
    """A view that is wrong at one rank is had by none."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    fh.Set_view(8, INT)
    last = comm.rank == comm.size - 1
    fails(ERR_DISP, fh.Set_view, -1 if last else 0, INT)
    fails(ERR_ARG, fh.Set_view, 0, INT, BYTE.Create_contiguous(5).Commit() if last else INT)
    fails(ERR_TYPE, fh.Set_view, 0, INT, INT.Create_contiguous(2) if last else INT)
    fails(ERR_UNSUPPORTED_DATAREP, fh.Set_view, 0, INT, INT, "morse")
    if comm.size > 1:
        text = fails(ERR_NOT_SAME, fh.Set_view, 0, INT, INT, "external32" if last else "native")
        assert "File.Set_view: the members do not name the same data representation" in text
    assert fh.Get_view() == (8, INT, INT, "native")
    for none_or_bytes in (None, b"native"):  # as mpi4py takes them
        fh.Set_view(8, INT, INT, none_or_bytes)
        assert fh.Get_view() == (8, INT, INT, "native")
    fails(ERR_ARG, fh.Write, b"12345")
    fails(ERR_ARG, fh.Write_at, -1, numbers(1))
    fh.Write_at(comm.rank, numbers(comm.rank))
    fh.Close()
    if last:
        assert (folder / "x").stat().st_size == 8 + 4 * comm.size
    remove_folder(comm, folder, "x")


def representations(process: RankProcess) -> None:
    """external32 is big-endian, its longs have four bytes; a program has its own."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    column = LONG.Create_vector(2, 1, size).Create_resized(0, 16 * size).Commit()
    portable = LONG.Create_vector(2, 1, size).Commit()
    fh.Set_view(4 * rank, LONG, portable, "EXTERNAL32" if rank else "external32")
    assert fh.Get_type_extent(LONG) == 4
    assert fh.Get_type_extent(column) == 16 * size  # Create_resized counts bytes
    mine = array("l", [rank, 258])
    fh.Write_all(mine)
    assert fh.Get_position() == 2
    status = Status()
    room = array("l", [-1, -1, -1])
    fh.Sync()
    fh.Seek(0)
    fh.Read([room, 2, LONG], status)
    assert (list(room), status.Get_count(LONG)) == ([rank, 258, -1], 2)
    fh.Iread_at_all(1, [room, 1, LONG]).Wait(status)
    assert (room[0], status.Get_count(LONG)) == (258, 1)
    fh.Set_view(0, LONG, LONG, "external32")
    fh.Read_at(2 * size - 1, [room, 1, LONG.Create_contiguous(3).Commit()], status)
    assert (list(room), status.Get_elements(LONG)) == ([258, 258, -1], 1)  # the file ends there
    fh.Close()
    if rank == 0:
        found = (folder / "x").read_bytes()
        first = b"".join(other.to_bytes(4, "big") for other in range(size))
        assert found == first + b"\0\0\1\2" * size
    own_representation(comm, folder / "y")
    remove_folder(comm, folder, "x", "y")


def own_representation(comm: Intracomm, path: Path) -> None:
    name = f"inverted{comm.rank}{path}"

    def invert(source: Any, target: Any, size: int) -> None:
        target[:size] = bytes(byte ^ 255 for byte in source[:size])

    def read(user: Any, datatype: Any, count: int, file: Any, position: int) -> None:
        invert(file, user, count * datatype.size)

    def write(user: Any, datatype: Any, count: int, file: Any, position: int) -> None:
        invert(user, file, count * datatype.size)

    Register_datarep(name, read, write, lambda datatype: datatype.extent)
    fails(ERR_DUP_DATAREP, Register_datarep, name, None, None, lambda datatype: 1)
    fh = File.Open(comm, path, RDWR)
    fh.Set_view(0, BYTE, BYTE, name)
    fh.Write_ordered(bytes([comm.rank]) * 2)
    room = bytearray(2)
    fh.Read_at(2 * comm.rank, room)
    assert room == bytes([comm.rank]) * 2
    fh.Close()
    assert path.read_bytes()[2 * comm.rank] == 255 - comm.rank


def full_device(process: RankProcess) -> None:
    """What the kernel says of a device that is full is an error at all ranks."""
    comm = world_of(process)
    fh = File.Open(comm, "/dev/full", constants.MODE_WRONLY)
    fails(ERR_NO_SPACE, fh.Write_at, 0, b"x")
    request = fh.Iwrite_at(0, b"x")
    fails(ERR_NO_SPACE, request.Wait)
    said = fails(ERR_NO_SPACE, fh.Write_at_all, 0, b"x" if comm.rank == comm.size - 1 else b"")
    assert f"rank {comm.size - 1}" in said or comm.rank == comm.size - 1
    fails(ERR_NO_SPACE, fh.Iwrite_all(b"x").Wait)
    begun = File.Create_errhandler(lambda file, code: seen.append((file == fh, code)))
    seen: list[tuple[bool, int]] = []
    fh.Set_errhandler(begun)
    fails(ERR_NO_SPACE, fh.Write_all, b"x")
    assert seen == [(True, ERR_NO_SPACE)]
    fh.Close()


def atomic(process: RankProcess) -> None:
    """What one rank writes in a call is read whole by another, with locks and gaps."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    fh.Set_size(8000)
    fh.Set_view(0, BYTE, BYTE.Create_vector(100, 7, 80).Commit())
    fh.Set_atomicity(True)
    assert fh.Get_atomicity()
    for turn in range(20):
        if turn % comm.size == comm.rank:
            fh.Write_at(0, bytes([turn]) * 700)
        else:
            room = bytearray(700)
            fh.Read_at(0, room)
            assert len(set(room)) == 1
    fh.Close()
    remove_folder(comm, folder, "x")


PROGRAMS = (
    "pointers",
    "columns",
    "different_hints",
    "threads",
    "holes",
    "uneven_memory",
    "shared_pointer",
    "moved_pointers",
    "few_and_many",
    "cut_off",
    "split_calls",
    "sizes",
    "modes",
    "wrong_views",
    "representations",
    "full_device",
    "atomic",
)


def everything(process: RankProcess) -> None:
    """All of them, one after the other."""
    for name in PROGRAMS:
        globals()[name](process)
