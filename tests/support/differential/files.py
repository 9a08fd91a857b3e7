"""Random programs with a file: every way to read and write, through random views."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.layouts import UNITS
from tests.support.differential.memory import one_block
from tests.support.differential.program import Program, some
from tests.support.differential.views import FileModel, View

PHASES: Final = 3  # with a view each, at most
STEPS: Final = 8  # of a phase, at most
NUMBERS: Final = 100  # of a phase; more than steps
KINDS: Final = (
    *("at", "at_all", "at_all", "own", "own_all", "shared", "ordered", "split_at", "split_own"),
    *("size", "seek"),
)
REPRESENTATIONS: Final = ("native", "native", "native", "internal", "external32")


class Transfer:
    """One call of all ranks, as all of them draw it.

    Attributes:
        kind: of it.
        writes: or reads.
        how: blocking, nonblocking or split.
        counts: elementary datatypes of each rank.
        offsets: of each rank, where the call has them.
        number: no other one of the program has it.
    """

    def __init__(self, program: Program, kind: str, ranks: int, number: int) -> None:
        chance = program.chance
        self.kind, self.number = kind, number
        self.writes = some(chance, 0.55)
        self.how = chance.choice(("blocking", "nonblocking", "split"))
        sizes = (0, 1, 2, 5, 30, 100, 600, 3000)
        self.counts = [40000 if some(chance, 0.04) else chance.choice(sizes) for _ in range(ranks)]
        self.offsets = [
            chance.choice((0, 1, 7, 100, 1000)) + chance.choice((0, rank * 500))
            for rank in range(ranks)
        ]

    def __str__(self) -> str:
        verb = "write" if self.writes else "read"
        return f"{self.number}: {verb} {self.kind}, {self.how}, {self.counts} at {self.offsets}"

    @property
    def name(self) -> str:
        """Of the blocking call."""
        ends = {"own": "", "own_all": "_all", "split_at": "_at_all", "split_own": "_all"}
        return f"{'Write' if self.writes else 'Read'}{ends.get(self.kind, f'_{self.kind}')}"

    def call(self, file: Any, rank: int, argument: Any, status: Any) -> None:
        """Call it and wait for it."""
        name = self.name
        given = [argument]
        if self.kind.endswith("at") or self.kind == "at_all":
            given.insert(0, self.offsets[rank])
        if self.kind.startswith("split") or (self.kind == "ordered" and self.how == "split"):
            getattr(file, f"{name}_begin")(*given)
            getattr(file, f"{name}_end")(argument, status)
        elif self.how == "nonblocking" and self.kind != "ordered":
            request = getattr(file, f"I{name.lower()}")(*given)
            while not request.Test(status):
                pass
        else:
            getattr(file, name)(*given, status)


class OpenFile:
    """A file of some ranks, and what all know of it.

    Attributes:
        ranks: that have it.
        me: which of them this is.
        model: the file's bytes.
        views: of each.
        common: all have the same view, so the shared pointer may be used.
        positions: of each rank's pointer, in elementary datatypes.
        shared: the shared pointer.
    """

    def __init__(self, program: Program, comm: Any, path: Path) -> None:
        self.program, self.comm, self.path = program, comm, path
        self.judge = program.judge
        self.ranks, self.me = comm.size, comm.rank
        self.file = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR)
        self.model = FileModel()
        if some(program.chance, 0.2):
            self.file.Set_atomicity(True)

    def change_view(self) -> None:
        """All ranks have the same view, or one each."""
        chance = self.program.chance
        representation = chance.choice(REPRESENTATIONS)
        self.common = some(chance, 0.45)
        if self.common:
            self.views = [View(chance, representation)] * self.ranks
        else:
            self.views = [View(chance, representation) for _ in range(self.ranks)]
        mine = self.views[self.me]
        mine.show(self.file)
        other = has_other_gaps(self.file, mine.filetype.datatype)
        if representation == "external32" and self.comm.allreduce(other):
            for view in self.views:  # its gaps have other sizes there, which nobody models
                view.representation = "native"
            mine.show(self.file)
        self.positions = [0] * self.ranks
        self.shared = 0

    def change_size(self) -> None:
        """Truncate or extend it."""
        chance, now = self.program.chance, len(self.model.bytes)
        size = chance.choice((now // 2, now + 100, now, now + 1, 0))
        if some(chance, 0.5):
            self.file.Set_size(size)
            self.model.resize(size)
        else:
            self.file.Preallocate(size)
            self.model.resize(max(size, now))
        self.judge.require(self.file.Get_size(), len(self.model.bytes), f"size after {size}")
        self.comm.Barrier()

    def seek(self) -> None:
        """Move the pointers."""
        chance, file = self.program.chance, self.file
        relative = some(chance, 0.5)
        moves = [chance.choice((0, 3, 10, 200)) for _ in self.positions]
        before = self.positions if relative else [0] * self.ranks
        self.positions = [a + b for a, b in zip(before, moves, strict=True)]
        file.Seek(moves[self.me], MPI.SEEK_CUR if relative else MPI.SEEK_SET)
        self.judge.require(file.Get_position(), self.positions[self.me], "position after Seek")
        if self.common and some(chance, 0.5):
            self.shared = chance.choice((0, 5, 50))
            file.Seek_shared(self.shared, MPI.SEEK_SET)
            self.judge.require(file.Get_position_shared(), self.shared, "Seek_shared")
            self.comm.Barrier()

    def starts(self, transfer: Transfer) -> list[int]:
        """Where each rank begins."""
        if transfer.kind in ("shared", "ordered"):
            return [self.shared + sum(transfer.counts[:rank]) for rank in range(self.ranks)]
        own = transfer.kind in ("own", "own_all", "split_own")
        return self.positions if own else transfer.offsets

    def places(self, transfer: Transfer) -> list[Any]:
        """The bytes of the file that each rank reads or writes."""
        every = zip(self.views, self.starts(transfer), transfer.counts, strict=True)
        return [view.places(start, count) for view, start, count in every]

    def transfer(self, kind: str, number: int) -> None:
        """Read or write, and judge all that comes of it."""
        transfer = Transfer(self.program, kind, self.ranks, number)
        places = self.places(transfer)
        every = np.concatenate(places)
        if transfer.writes and kind != "shared" and len(np.unique(every)) < len(every):
            writer = number % self.ranks  # several would write to the same place
            transfer.counts = [
                count if rank == writer else 0 for rank, count in enumerate(transfer.counts)
            ]
            places = self.places(transfer)
        if transfer.writes:
            self._write(transfer, places)
        else:
            self._read(transfer, places[self.me])
        self._move_pointers(transfer)
        self._check_file(str(transfer))

    def _call(self, transfer: Transfer, memory: Any) -> int:
        """Returns the bytes that the status tells of."""
        status = MPI.Status()
        for rank in range(self.ranks if transfer.kind == "shared" else 1):
            if transfer.kind != "shared" or rank == self.me:
                transfer.call(self.file, self.me, memory.argument(), status)
            if transfer.kind == "shared":  # one after the other, so the order is known
                self.comm.Barrier()
        count: int = status.Get_count(MPI.BYTE)
        return count

    def _write(self, transfer: Transfer, places: list[Any]) -> None:
        view = self.views[self.me]
        data = [
            self.program.given(transfer.number, 0, rank, 0, len(each))
            for rank, each in enumerate(places)
        ]
        units = transfer.counts[self.me] * view.etype.units
        memory = one_block(self.program.own, view.unit, units, into=False)
        memory.fill(0, data[self.me])
        memory.lend()
        written = self._call(transfer, memory)
        self.judge.require(written, len(places[self.me]), f"bytes written by {transfer}")
        memory.check(self.judge, f"{transfer}: the send buffer")
        for rank, each in enumerate(places):
            self.model.put(each, self.views[rank].converted(data[rank]))

    def _read(self, transfer: Transfer, places: Any) -> None:
        view = self.views[self.me]
        units = transfer.counts[self.me] * view.etype.units
        memory = one_block(self.program.own, view.unit, units, into=True)
        inside = int(np.count_nonzero(places < len(self.model.bytes)))
        width = UNITS[view.unit]
        whole = inside // width * width
        memory.lend()
        memory.expect(0, view.converted(self.model.bytes[places[:whole]]))
        got = self._call(transfer, memory)
        self.judge.require(whole <= got <= inside, True, f"{got} bytes read by {transfer}")
        if inside > whole:  # half an element may be there, or not
            part = memory.places[0][whole : whole + width]
            memory.want[part] = memory.whole[part]
        memory.check(self.judge, f"{transfer}, {view}")

    def _move_pointers(self, transfer: Transfer) -> None:
        """Judge where they are."""
        if transfer.kind in ("own", "own_all", "split_own"):
            moved = zip(self.positions, transfer.counts, strict=True)
            self.positions = [position + count for position, count in moved]
            here = self.file.Get_position()
            self.judge.require(here, self.positions[self.me], f"position after {transfer}")
        if transfer.kind in ("shared", "ordered"):
            self.comm.Barrier()
            self.shared += sum(transfer.counts)
            here = self.file.Get_position_shared()
            self.judge.require(here, self.shared, f"shared position after {transfer}")
            self.comm.Barrier()

    def _check_file(self, what: str) -> None:
        """Judge all its bytes."""
        if some(self.program.chance, 0.3):
            self.file.Sync()
        self.comm.Barrier()
        self.judge.require(self.file.Get_size(), len(self.model.bytes), f"size after {what}")
        content = np.fromfile(self.path, np.uint8)
        self.judge.compare(content, self.model.bytes, f"the file after {what}, {self.views[0]}")
        self.comm.Barrier()


def has_other_gaps(file: Any, datatype: Any) -> bool:
    """Whether a datatype, or one that it is made of, has another extent in a file."""
    if datatype.is_predefined:
        return False
    parts = datatype.Get_contents()[-1]
    other = file.Get_type_extent(datatype) != datatype.Get_extent()[1]
    return other or any(has_other_gaps(file, one) for one in parts)


def run_phases(program: Program, comm: Any, path: Path) -> None:
    """Some views, with some calls each."""
    opened = OpenFile(program, comm, path)
    for phase in range(program.chance.randint(1, PHASES)):
        opened.change_view()
        for step in range(program.chance.randint(1, STEPS)):
            kind = program.chance.choice(KINDS)
            if kind in ("shared", "ordered") and not opened.common:
                kind = "at_all"
            if kind == "size":
                opened.change_size()
            elif kind == "seek":
                opened.seek()
            else:
                opened.transfer(kind, phase * NUMBERS + step)
    opened.file.Close()


def run(program: Program) -> None:
    """A file of all ranks, or of some."""
    members = list(range(program.size))
    if some(program.chance, 0.2):
        members = program.chance.sample(members, program.chance.randint(1, program.size))
    folder = program.comm.bcast(tempfile.mkdtemp() if not program.me else None)
    if program.me in members:
        comm = program.comm.Create_group(program.comm.Get_group().Incl(members))
        run_phases(program, comm, Path(folder) / "file")
        comm.Free()
    program.comm.Barrier()
    if not program.me:
        shutil.rmtree(folder)
