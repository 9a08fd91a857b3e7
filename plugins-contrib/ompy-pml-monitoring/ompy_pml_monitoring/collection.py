"""The way of the counts to one rank, over the PML inside, without hanging on anybody.

Each rank sends its counts in COMM_WORLD, under a tag no program can use, before the PML inside
finalizes. MPI_Finalize does not wait for other ranks (docs/deviations.md of ompy); so the
rank that collects waits only for ranks that may still report, and for those no longer than its
patience. Ranks without monitoring, and ranks that ended early, are missing from the matrix.
"""

from __future__ import annotations

from typing import Final

from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import STANDARD, TAG_WRAPPERS, Pml

from ompy_pml_monitoring.counts import Counts

TAG: Final = TAG_WRAPPERS
# arbitrary: what a rank sent before it left is on its way or here; reading it takes no longer
GRACE: Final = 200_000_000  # ns


class Awaited:
    """The report of one rank, on its way."""

    __slots__ = ("convertor", "request")

    def __init__(self, convertor: GrowingConvertor, request: Request) -> None:
        self.convertor = convertor
        self.request = request


class Collection:
    """Brings the counts of all ranks together, once."""

    def __init__(
        self, context: RankContext, pml: Pml, world: Communicator | None, patience: int
    ) -> None:
        """Nothing is sent yet.

        Args:
            context: the rank.
            pml: to send and receive with.
            world: COMM_WORLD, or None if the program has none (any more).
            patience: nanoseconds to wait at most.
        """
        self._context = context
        self._pml = pml
        self._world = world
        self._patience = patience

    def hand_in(self, counts: Counts, root: int) -> None:
        """Send this rank's counts, if there is still somebody to take them."""
        there = self._context.procs[root]
        if self._world is None or there.departed:
            return
        convertor = ContiguousConvertor(memoryview(counts.pack()))
        try:
            sent = self._pml.isend(self._world, convertor, root, TAG, STANDARD)
        except MPIError:
            return  # rank `root` cannot be reached; it says who is missing
        self._context.engine.wait_until(
            lambda: bool(sent.complete or there.departed), self._patience
        )

    def collect(self, own: Counts) -> tuple[dict[int, Counts], dict[int, str]]:
        """Take what the others hand in.

        Returns:
            The counts by rank, and why those of the other ranks are missing.
        """
        context = self._context
        reports = {context.rank: own}
        others = [proc.rank for proc in context.procs if proc.rank != context.rank]
        if self._world is None:
            return reports, dict.fromkeys(others, "there is no COMM_WORLD (any more)")
        awaited = {rank: self._post(self._world, rank) for rank in others}
        self._wait(awaited)
        missing = {}
        for rank, report in awaited.items():
            try:
                reports[rank] = self._counts(rank, report)
            except ValueError as reason:
                missing[rank] = str(reason)
        return reports, missing

    def _post(self, world: Communicator, rank: int) -> Awaited:
        convertor = GrowingConvertor()
        return Awaited(convertor, self._pml.irecv(world, convertor, rank, TAG))

    def _wait(self, awaited: dict[int, Awaited]) -> None:
        procs, engine = self._context.procs, self._context.engine

        def settled() -> bool:
            return all(a.request.complete or procs[rank].departed for rank, a in awaited.items())

        engine.wait_until(settled, self._patience)
        gone = {rank: a for rank, a in awaited.items() if procs[rank].departed}
        if not all(a.request.complete for a in gone.values()):
            engine.wait_until(lambda: all(a.request.complete for a in gone.values()), GRACE)

    def _counts(self, rank: int, report: Awaited) -> Counts:
        """What a rank handed in.

        Raises:
            ValueError: nothing that could be read; the text says why.
        """
        request = report.request
        if not request.complete:
            self._pml.cancel(request)
            if self._context.procs[rank].departed:
                raise ValueError("it ended without handing in its counts")
            raise ValueError(
                f"it still ran {self._patience / 1e9:g} s after rank {self._context.rank} was "
                f"through (pml_monitoring_patience)"
            )
        if request.error == ERR_PROC_FAILED:
            raise ValueError("it ended without handing in its counts")
        if request.error:
            raise ValueError(request.detail)
        view = report.convertor.view
        assert view is not None, "a received message has its memory"
        return Counts.unpack(bytes(view), self._context.size)
