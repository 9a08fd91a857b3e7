"""PSHM: puts and gets between ranks of one host, straight into the segments, which all have mapped.

Each rank's segment lies in a region (`Network.region`). The others map it, and see by some random
bytes at a place of the owner's choice that it is the memory that is meant.

Source: seed gasnet (Active Message design); reference gasnet.md 2, 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

from ompy import raw
from ompy.data.errors import ERR_INTERN, ERR_OTHER, MPIError
from ompy.frameworks.conduit import Transfer
from ompy.frameworks.context import RankContext
from ompy.net.base import LinkError
from ompy.net.memory.process_copy import ProcessCopy

PLACE: Final = Struct("<QQQQQQQ")  # process, descriptor, number, offset, size, proof and its offset
PROOF_SIZE: Final = 8  # arbitrary: a word, which other memory has by chance once in 2^64


class SharedSegments:
    """The segments of the other ranks of this host. Has the calls of the RDMA engine."""

    def __init__(self, context: RankContext) -> None:
        """Know of none yet.

        Raises:
            MPIError: this system cannot map other processes' memory.
        """
        self._context = context
        copy = context.network.process_copy()
        if copy is None:
            text = "this system has no memory that ranks map: set the conduit's pshm to false"
            raise MPIError(ERR_OTHER, text)
        self._copy: ProcessCopy = copy
        self._mapped: list[tuple[int, int]] = []
        self._views: dict[int, memoryview] = {}

    def offer(self, segment: memoryview, spare: memoryview) -> bytes:
        """What the others have to know of the own segment.

        Args:
            segment: in a region.
            spare: some bytes in the same one, that nobody uses before all have mapped it.
        """
        whole = self._copy.region_of(segment if len(segment) else spare[:PROOF_SIZE])
        there = self._copy.region_of(spare[:PROOF_SIZE])
        assert whole is not None, "a segment is a region"
        assert there is not None
        assert there[:2] == whole[:2], "the same region"
        proof = self._context.network.entropy(PROOF_SIZE)
        raw.copy(spare, 0, proof, 0, PROOF_SIZE)
        known = int.from_bytes(proof, "little")
        return PLACE.pack(self._copy.identity, *whole, len(segment), known, there[2])

    def map(self, offers: Sequence[bytes], mapped: list[memoryview | None]) -> None:
        """Map the segments of the other ranks of this host.

        Args:
            offers: of all ranks, by rank.
            mapped: by rank; gets them.

        Raises:
            MPIError: one cannot be mapped.
        """
        for proc in self._context.local_procs():
            if proc is self._context.me:
                continue
            process, descriptor, number, offset, size, proof, at = PLACE.unpack(offers[proc.rank])
            try:
                region = self._copy.map(process, descriptor, number)
            except LinkError as problem:
                text = f"the segment of {proc} cannot be mapped: {problem}; set pshm to false"
                raise MPIError(ERR_OTHER, text) from None
            if raw.word(region, at) != proof:
                raise MPIError(ERR_OTHER, f"what is mapped as the segment of {proc} is none")
            self._mapped.append((process, number))
            self._views[proc.rank] = mapped[proc.rank] = region[offset : offset + size]

    def reaches(self, node: int) -> bool:
        """Whether a rank's segment is mapped."""
        return node in self._views

    def segment(self, node: int) -> memoryview:
        """The segment of a rank that is reached."""
        return self._views[node]

    def put(
        self, node: int, offset: int, local: memoryview, transfer: Transfer, *, bulk: bool
    ) -> None:
        """Write into a peer's segment; it is done when this returns, whether `bulk` or not."""
        view, local = self._views[node], raw.flat(local)
        _check(view, offset, len(local))
        raw.copy(view, offset, local, 0, len(local))
        transfer.done(is_get=False)

    def get(self, node: int, offset: int, local: memoryview, transfer: Transfer) -> None:
        """Read from a peer's segment; it is done when this returns."""
        view, local = self._views[node], raw.flat(local)
        _check(view, offset, len(local))
        raw.copy(local, 0, view, offset, len(local))
        transfer.done(is_get=True)

    def put_then(
        self,
        node: int,
        offset: int,
        payload: memoryview,
        after: Callable[[], object],
        *,
        keeps_payload: bool,
    ) -> None:
        """Write into a peer's segment, and call `after`."""
        view, payload = self._views[node], raw.flat(payload)
        _check(view, offset, len(payload))
        raw.copy(view, offset, payload, 0, len(payload))
        after()

    def close(self) -> None:
        """Give the mappings back."""
        self._views.clear()
        for process, number in self._mapped:
            self._copy.unmap(process, number)
        self._mapped.clear()


def _check(view: memoryview, offset: int, size: int) -> None:
    """The API has: this is for what is not of it. Compiled, a copy does not look."""
    if offset < 0 or offset + size > len(view):
        text = f"{size} bytes at {offset} are not in a segment of {len(view)} bytes"
        raise MPIError(ERR_INTERN, text)
