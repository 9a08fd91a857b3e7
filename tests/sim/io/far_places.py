"""A program of one rank: places in a file that no 64 bits can say."""

from __future__ import annotations

from array import array

from ompy.data.errors import ERR_ARG
from ompy.mpi import constants
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.files.files import File
from ompy.runtime.ranks.process import RankProcess

from tests.sim.io.programs import LONG, RDWR, common_folder, fails, remove_folder


def beyond_64_bits(process: RankProcess) -> None:
    """An etype that begins beyond the last byte a file can have is nowhere else either."""
    comm = world_of(process)
    folder = common_folder(comm)
    fh = File.Open(comm, folder / "x", RDWR)
    apart = LONG.Create_resized(0, 1 << 40).Commit()
    # bytes where the view begins, its filetype, an etype that is at byte 2**64 or wraps otherwise
    for displacement, filetype, place in (
        (0, LONG, 1 << 61),
        (0, LONG, (1 << 61) + 1),
        (0, LONG, (1 << 60) - 1),
        (1 << 62, LONG, 3 << 60),
        ((1 << 63) - 16, LONG, 1),
        (0, apart, 1 << 24),
    ):
        fh.Set_view(displacement, LONG, filetype)
        one = array("q", [7])
        for call in (fh.Write_at, fh.Iwrite_at, fh.Read_at, fh.Write_at_all, fh.Iread_at_all):
            fails(ERR_ARG, call, place, one)
        fails(ERR_ARG, fh.Write_at_all_begin, place, one)
        fails(ERR_ARG, fh.Get_byte_offset, place + 1)
        if place > 1 << 60 or filetype is apart:
            fails(ERR_ARG, fh.Seek, place + 1)
            fails(ERR_ARG, fh.Seek_shared, place + 1)
        fh.Seek(1)
        fails(ERR_ARG, fh.Seek, (1 << 63) - 1, constants.SEEK_CUR)
        fails(ERR_ARG, fh.Seek, (1 << 63) - 1, constants.SEEK_END)
        assert fh.Get_position() == 1
    fh.Set_view(0, LONG)
    most = ((1 << 63) - 1) // 8
    fh.Seek(most)
    assert fh.Get_position() == most
    fails(ERR_ARG, fh.Write, array("q", [7]))
    fh.Seek_shared(most)
    fails(ERR_ARG, fh.Write_shared, array("q", [7]))
    assert fh.Get_size() == 0
    apart.Free()
    fh.Close()
    remove_folder(comm, folder, "x")
