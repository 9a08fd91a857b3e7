"""Planted defects in osc/pt2pt, and the test of the kit that has to notice each."""

from __future__ import annotations

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.data.request import Request
from ompy.frameworks.osc import SHARED, OscModule
from ompy_components.osc.pt2pt.component import Pt2ptComponent
from ompy_components.osc.pt2pt.module import Pt2pt


def done() -> Request:
    request = Request()
    request.finish()
    return request


class LosesLargePuts(Pt2pt):
    """A put of 4000 elements or more is forgotten."""

    def put(self, source, target, place):
        return done() if source.size >= 32_000 else super().put(source, target, place)


class WrongPlace(Pt2pt):
    """A put goes to the beginning of the window."""

    def put(self, source, target, place):
        return super().put(source, target, place._replace(displacement=0))


class PutsInsteadOfAdds(Pt2pt):
    """Accumulate replaces what is there."""

    def accumulate(self, source, target, place, operation):
        return super().accumulate(source, target, place, "MPI_REPLACE")


class FetchesLater(Pt2pt):
    """Fetch reads after it has combined: what it gets is not what was there."""

    def fetch(self, source, into, target, place, operation):
        if source is not None and operation != "MPI_NO_OP":
            super().accumulate(source, target, place, operation)
        return super().fetch(None, into, target, place, "MPI_NO_OP")


class AlwaysSwaps(Pt2pt):
    """Compare-and-swap does not compare."""

    def swap(self, source, compare, into, target, place):
        return super().fetch(source, into, target, place, "MPI_REPLACE")


class SmallOnesFirst(Pt2pt):
    """Small accumulates are sent before large ones that were called earlier."""

    def __init__(self, window, inline_max):
        super().__init__(window, inline_max)
        self.kept = []

    def accumulate(self, source, target, place, operation):
        if source.size < 1000:
            return super().accumulate(source, target, place, operation)
        copy = type(source)(memoryview(bytes(source.packed())), 0, source.count, source.layout)
        self.kept.append((copy, target, place, operation))
        return done()

    def unlock(self, target):
        for words in self.kept:
            super().accumulate(*words)
        self.kept.clear()
        super().unlock(target)


class FenceIsABarrier(Pt2pt):
    """A fence waits for the ranks, and not for what they have stored."""

    def fence(self):
        self.barrier()


class NobodyIsLocked(Pt2pt):
    """Every lock is a shared one."""

    def lock(self, target, *, exclusive):
        super().lock(target, exclusive=False)


class AllAreLocked(Pt2pt):
    """Every lock is an exclusive one."""

    def lock(self, target, *, exclusive):
        super().lock(target, exclusive=True)


class FlushForgets(Pt2pt):
    """A flush does not ask the target."""

    def flush(self, targets):
        self.flush_local(targets)


class StartsAtOnce(Pt2pt):
    """Start does not wait for Post."""

    def start(self, targets):
        pass


class LeavesTimers(Pt2pt):
    """A window that is freed leaves a timer."""

    def close(self):
        self._engine.call_later(10**15, lambda: None)
        super().close()


class MakesUpErrors(Pt2pt):
    """What a member that has ended fails is said to have another reason."""

    def lock(self, target, *, exclusive):
        try:
            super().lock(target, exclusive=exclusive)
        except MPIError as problem:
            raise MPIError(ERR_OTHER, "a lock failed") from problem


RUNS = [0]


class DiffersFromRunToRun(Pt2pt):
    """What it does depends on how often it was used in this process."""

    def fence(self):
        RUNS[0] += 1
        if RUNS[0] % 7 == 0:
            super().fence()
        super().fence()


class HandsOutAnothersMemory(Pt2pt):
    """A get of the own part reads memory that was there when the window was made."""

    def __init__(self, window, inline_max):
        super().__init__(window, inline_max)
        self.old = bytes(window.memory) if window.memory else b""

    def get(self, into, target, place):
        if target == self.rank and self.old:
            into.store(self.old[place.displacement : place.displacement + into.size])
            return done()
        return super().get(into, target, place)


PLANTED: dict[type[OscModule], str] = {
    LosesLargePuts: "test_put_and_get",
    WrongPlace: "test_places",
    PutsInsteadOfAdds: "test_accumulate",
    FetchesLater: "test_operations",
    AlwaysSwaps: "test_numbers_are_had_once",
    SmallOnesFirst: "test_order",
    FenceIsABarrier: "test_fence",
    NobodyIsLocked: "test_locks_exclude",
    AllAreLocked: "test_shared_locks_are_shared",
    FlushForgets: "test_flush",
    StartsAtOnce: "test_groups",
    LeavesTimers: "test_freed",
    MakesUpErrors: "test_a_rank_has_left",
    DiffersFromRunToRun: "test_same_seed_same_trace",
    HandsOutAnothersMemory: "test_put_and_get",
}


def component(planted: type[Pt2pt]) -> Pt2ptComponent:
    class Mutant(Pt2ptComponent):
        name = "mutant"

        def query(self, window):
            if window.flavor == SHARED:
                return None
            return planted(window, self.values.inline_max)

    return Mutant()
