"""Random programs with windows: every kind of window, of epoch and of access."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.accesses import Access, Chunk, Origin, draw_accesses
from tests.support.differential.program import Program, some

SIZES: Final = (64, 256, 1024, 8192, 65536)  # of a chunk, bytes
LARGE: Final = 1 << 20
EPOCHS: Final = 4  # of a window, at most
KINDS: Final = ("create", "create", "allocate", "shared", "dynamic")
EPOCH_KINDS: Final = ("fence", "post", "lock", "lock_all", "lock_all")
CHUNKS: Final = 100  # of an epoch, in numbers; more than a window has


class Window:
    """A window of each rank, and the model of all of them.

    Attributes:
        window: MPI's.
        memory: of this rank, which it shows.
        model: bytes of each rank's.
        addresses: what displacements to each rank begin with.
        chunk: bytes.
        step: displacement unit.
    """

    def __init__(self, program: Program) -> None:
        chance, comm = program.chance, program.comm
        self.program = program
        self.kind = chance.choice(KINDS)
        self.chunk = LARGE if some(chance, 0.05) else chance.choice(SIZES)
        self.chunks = chance.randint(2, 6)
        size = self.chunk * self.chunks
        self.step = chance.choice((1, 1, 1, 4, 8)) if self.kind != "dynamic" else 1
        self.addresses = [0] * program.size
        if self.kind == "create":
            before = chance.choice((0, 0, 8, 16))
            self.memory = np.zeros(before + size, np.uint8)[before:]
            self.window = MPI.Win.Create(self.memory, self.step, comm=comm)
        elif self.kind == "dynamic":
            self.memory = np.zeros(size, np.uint8)
            self.window = MPI.Win.Create_dynamic(comm=comm)
            self.window.Attach(self.memory)
            self.addresses = comm.allgather(MPI.Get_address(self.memory))
        else:
            self.window = self._allocated(size)
            self.memory = np.frombuffer(self.window.tomemory(), np.uint8)
        self.model = [program.given(0, 0, rank, 0, size).copy() for rank in range(program.size)]
        self.memory[:] = self.model[program.me]
        comm.Barrier()

    def _allocated(self, size: int) -> Any:
        """A window with memory of its own; where none can be shared, it is not."""
        comm = self.program.comm
        if self.kind == "shared":
            try:
                return MPI.Win.Allocate_shared(size, self.step, comm=comm)
            except MPI.Exception as problem:
                if problem.Get_error_class() != MPI.ERR_RMA_SHARED:
                    raise
                self.kind = "allocate"
        return MPI.Win.Allocate(size, self.step, comm=comm)

    def draw_epoch(self, epoch: int) -> list[Access]:
        """All accesses to all windows."""
        found = []
        for target in range(self.program.size):
            for place in range(self.chunks):
                number = 1 + epoch * CHUNKS + place
                chunk = Chunk(target, number, place * self.chunk, self.chunk, self.step)
                found += draw_accesses(self.program, chunk)
        return found

    def origins(self, accesses: list[Access]) -> list[Origin]:
        """Apply all accesses to the model. Returns those of this rank."""
        found = []
        for access in accesses:
            target = access.chunk.target
            old = access.apply(self.program, self.model[target])
            if access.origin == self.program.me:
                found.append(Origin(self.program, access, old, self.addresses[target]))
        return found

    def check(self, what: str, locks: bool) -> None:
        """Judge this rank's memory; of shared windows that of all."""
        program, window = self.program, self.window
        program.comm.Barrier()
        if locks:
            window.Lock(program.me, MPI.LOCK_SHARED)
        program.judge.compare(self.memory, self.model[program.me], what)
        if locks:
            window.Unlock(program.me)
        if self.kind == "shared":
            program.comm.Barrier()
            window.Lock_all()
            window.Sync()
            for rank, model in enumerate(self.model):
                seen = np.frombuffer(window.Shared_query(rank)[0], np.uint8)
                program.judge.compare(seen, model, f"{what}, window of rank {rank}")
            window.Unlock_all()
        program.comm.Barrier()

    def free(self) -> None:
        """All of it."""
        if self.kind == "dynamic":
            self.window.Detach(self.memory)
        self.window.Free()


def interleaved(program: Program, origins: list[Origin]) -> list[Origin]:
    """In another order, but for those to one chunk."""
    rows: dict[tuple[int, int], list[Origin]] = {}
    for origin in origins:
        chunk = origin.access.chunk
        rows.setdefault((chunk.target, chunk.number), []).append(origin)
    left, found = list(rows.values()), []
    while left:
        row = program.own.choice(left)
        found.append(row.pop(0))
        if not row:
            left.remove(row)
    return found


def within_fences(program: Program, window: Any, origins: list[Origin]) -> None:
    """All ranks begin and end it together."""
    window.Fence(0)
    for origin in origins:
        origin.perform(window, passive=False)
    window.Fence(0)


def within_posts(
    program: Program, window: Any, origins: list[Origin], accesses: list[Access]
) -> None:
    """Targets say who may, and wait for them."""
    me, group = program.me, program.comm.Get_group()
    sources = sorted({one.origin for one in accesses if one.chunk.target == me})
    window.Post(group.Incl(sources))
    window.Start(group.Incl(sorted({origin.target for origin in origins})))
    for origin in origins:
        origin.perform(window, passive=False)
    window.Complete()
    if some(program.own, 0.5):
        window.Wait()
    else:
        while not window.Test():
            pass


def within_locks(program: Program, window: Any, origins: list[Origin]) -> None:
    """One target after the other."""
    for target in sorted({origin.target for origin in origins}):
        window.Lock(target, program.own.choice((MPI.LOCK_SHARED, MPI.LOCK_EXCLUSIVE)))
        for origin in origins:
            if origin.target == target:
                origin.perform(window, passive=True)
        window.Unlock(target)


def within_lock_all(program: Program, window: Any, origins: list[Origin]) -> None:
    """All targets at a time."""
    window.Lock_all()
    for origin in origins:
        origin.perform(window, passive=True)
    if some(program.own, 0.5):
        window.Flush_all()
    window.Unlock_all()


def run(program: Program) -> None:
    """Some epochs of a window."""
    window = Window(program)
    for epoch in range(program.chance.randint(1, EPOCHS)):
        kind = program.chance.choice(EPOCH_KINDS)
        accesses = window.draw_epoch(epoch)
        origins = interleaved(program, window.origins(accesses))
        if kind == "fence":
            within_fences(program, window.window, origins)
        elif kind == "post":
            within_posts(program, window.window, origins, accesses)
        elif kind == "lock":
            within_locks(program, window.window, origins)
        else:
            within_lock_all(program, window.window, origins)
        for origin in origins:
            origin.complete()
        every = "; ".join(str(one) for one in accesses if one.chunk.target == program.me)
        window.check(f"{window.kind} window, epoch {epoch}, {kind}: {every}", kind != "fence")
    window.free()
