"""Files against what a list of bytes does: any views, any calls, one to four ranks on two hosts.

Each rank's view is worked out byte by byte from the datatype's blocks, so nothing of what finds
runs, positions and windows in the io component is used to judge it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.mpi import constants
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.datatype import Datatype
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.files.files import File
from ompy.mpi.info import Info
from ompy.mpi.point_to_point.status import Status
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.effort import effort
from tests.support.worlds import registry

BYTE = DATATYPES["BYTE"]
ETYPES = ("BYTE", "INT16_T", "INT32_T", "DOUBLE")
BEFORE = 700  # bytes that are in the file at the beginning; arbitrary


class View(NamedTuple):
    """What a rank sees: blocks of etypes, each (place, length), in a tile of so many etypes."""

    displacement: int
    etype: str
    blocks: tuple[tuple[int, int], ...]
    tile: int

    def datatypes(self) -> tuple[Datatype, Datatype]:
        etype = DATATYPES[self.etype]
        places = [at for at, _ in self.blocks]
        made = etype.Create_indexed([length for _, length in self.blocks], places)
        return etype, made.Create_resized(0, self.tile * etype.extent).Commit()

    def places(self, offset: int, count: int) -> list[int]:
        """The bytes of the file that `count` etypes from `offset` on are."""
        size = DATATYPES[self.etype].size
        tile = [at + i for at, length in self.blocks for i in range(length)]
        found = []
        for number in range(offset, offset + count):
            rounds, place = divmod(number, len(tile))
            first = self.displacement + (rounds * self.tile + tile[place]) * size
            found += range(first, first + size)
        return found


class Step(NamedTuple):
    """One call that all ranks make, each at a place of its own."""

    writes: bool
    together: bool
    begins: bool  # and waits for the request; or, together, a split call
    pointer: bool  # at the own pointer, not at an offset
    gaps: bool  # in memory
    places: tuple[tuple[int, int], ...]  # offset and count of each rank


class Case(NamedTuple):
    views: tuple[View, ...]
    steps: tuple[Step, ...]
    atomic: bool
    hosts: tuple[int, ...]
    aggregators: int
    use: str


@st.composite
def views(draw: Any) -> View:
    etype = draw(st.sampled_from(ETYPES))
    spread = draw(st.sampled_from((1, 1, 3, 400)))  # some views have more than one window
    blocks, end = [], 0
    for _ in range(draw(st.integers(1, 4))):
        at = end + draw(st.integers(0, 3)) * spread
        length = draw(st.integers(1, 3))
        blocks.append((at, length))
        end = at + length
    tile = end + draw(st.integers(0, 3)) * spread
    return View(draw(st.integers(0, 40)), etype, tuple(blocks), tile)


@st.composite
def cases(draw: Any) -> Case:
    ranks = draw(st.integers(1, 4))
    alike = draw(st.booleans())
    first = draw(views())
    size = DATATYPES[first.etype].size
    if alike:  # columns
        mine = tuple(first._replace(displacement=rank * size) for rank in range(ranks))
    else:
        mine = tuple(draw(views()) for _ in range(ranks))
    place = st.tuples(st.integers(0, 12), st.sampled_from((0, 1, 2, 5, 17, 60)))
    flag = st.booleans()
    step = st.builds(Step, flag, flag, flag, flag, flag, st.tuples(*(place for _ in range(ranks))))
    return Case(
        mine,
        tuple(draw(st.lists(step, min_size=1, max_size=5))),
        draw(flag),
        tuple(draw(st.sampled_from((0, 1))) for _ in range(ranks)),
        draw(st.integers(1, 2)),
        draw(st.sampled_from(("automatic", "automatic", "enable", "disable"))),
    )


def content(step: int, rank: int, size: int) -> bytes:
    return bytes((step * 61 + rank * 17 + i * 7 + 1) % 256 for i in range(size))


def call(fh: File, step: Step, buffer: Any, offset: int) -> Status:
    """Make the call that a step is."""
    name = ("Write" if step.writes else "Read") + ("" if step.pointer else "_at")
    arguments: tuple[Any, ...] = (buffer,) if step.pointer else (offset, buffer)
    if step.pointer:
        fh.Seek(offset)
    status = Status()
    if step.together and step.begins and step.gaps:
        getattr(fh, f"{name}_all_begin")(*arguments)
        getattr(fh, f"{name}_all_end")(buffer, status)
        return status
    name += "_all" if step.together else ""
    if step.begins:
        getattr(fh, f"I{name.lower()}")(*arguments).Wait(status)
    else:
        getattr(fh, name)(*arguments, status)
    return status


def run_rank(process: RankProcess, case: Case, path: str) -> list[tuple[bytes, int, int]]:
    """One rank's program: what it has read, the status' count and the pointer, step by step."""
    comm = world_of(process)
    view = case.views[comm.rank]
    hints = Info.Create({"romio_cb_write": case.use, "romio_cb_read": case.use})
    fh = File.Open(comm, path, constants.MODE_RDWR, hints)
    etype, filetype = view.datatypes()
    fh.Set_view(view.displacement, etype, filetype)
    fh.Set_atomicity(case.atomic)
    found = []
    for number, step in enumerate(case.steps):
        offset, count = step.places[comm.rank]
        size = count * etype.size
        every = 2 if step.gaps else 1
        room = bytearray(size * every)
        if step.writes:
            room[::every] = content(number, comm.rank, size)
        memory = BYTE.Create_vector(size, 1, every).Commit()
        comm.Barrier()
        status = call(fh, step, [room, int(size > 0), memory], offset)
        comm.Barrier()
        assert not step.gaps or not any(room[1::2])
        found.append((bytes(room[::every]), status.Get_count(BYTE), fh.Get_position()))
    fh.Close()
    return found


def check(case: Case, results: list[list[tuple[bytes, int, int]]], after: bytes) -> None:
    """Do the same to a list of bytes, where several may be right."""
    file: list[set[int]] = [{i % 251} for i in range(BEFORE)]
    for number, step in enumerate(case.steps):
        written: dict[int, set[int]] = {}
        for rank, view in enumerate(case.views):
            offset, count = step.places[rank]
            places = view.places(offset, count)
            got, size, position = results[rank][number]
            if step.writes:
                data = content(number, rank, len(places))
                assert size == len(data)
                for place, value in zip(places, data, strict=True):
                    written.setdefault(place, set()).add(value)
            else:
                there = [place for place in places if place < len(file)]
                assert size == len(there), (number, rank)
                for place, value in zip(there, got, strict=False):
                    assert value in file[place], (number, rank, place)
                assert not any(got[len(there) :])
            if step.pointer:
                assert position == offset + count  # what was asked for, also at the file's end
        if written:
            end = max(written) + 1
            file += [{0} for _ in range(len(file), end)]
            for place, values in written.items():
                file[place] = values
    assert len(after) == len(file)
    for place, value in enumerate(after):
        assert value in file[place], place


def run_case(case: Case, seed: int) -> None:
    hosts = [case.hosts.index(host) and 1 for host in case.hosts]  # the first rank is on host 0
    values = {
        "io_ompio_num_aggregators": case.aggregators,
        "io_ompio_bytes_per_agg": 4096,
        "io_ompio_sieved_alone": (0, 512, 2 << 20)[seed % 3],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file")
        path.write_bytes(bytes(i % 251 for i in range(BEFORE)))
        job = VirtualJob(
            len(case.views), registry(btl="self,tcp", **values), seed=seed, hosts=hosts
        )
        results = job.run(lambda process: run_rank(process, case, str(path)))
        check(case, results, path.read_bytes())
        assert os.listdir(folder) == ["file"]


@given(cases(), st.integers(0, 1 << 20))
@settings(max_examples=effort(60), deadline=None)
def test_files_are_as_a_list_of_bytes(case: Case, seed: int) -> None:
    run_case(case, seed)


@pytest.mark.parametrize("written", [1, 2, 3, 4, 5, 6, 8])
@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
def test_a_read_beyond_the_end_of_a_thin_view(written: int, together: bool) -> None:
    """Two blocks in tiles of more than two pages, read run by run: `written` 5 was found here."""
    thin = View(0, "DOUBLE", ((0, 1), (1, 1), (402, 1)), 1203)
    plain = View(0, "BYTE", ((0, 1),), 1)
    nothing = (0, 0)
    write = Step(True, together, False, False, False, ((0, written), nothing, nothing, (0, 1)))
    read = Step(False, together, False, False, False, ((0, 17), nothing, nothing, (0, 1)))
    steps = (write, read, read._replace(gaps=True))
    run_case(Case((thin, plain, plain, plain), steps, False, (1, 1, 1, 0), 1, "automatic"), 0)
