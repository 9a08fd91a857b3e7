"""Several pieces of memory in one call: vector, indexed, strided put and get.

| | remote side | local side |
|---|---|---|
| vector | a list of (offset, size) | a list of buffers |
| indexed | a list of offsets, all of one size | a list of buffers |
| strided | an offset, strides and counts | a buffer, strides, the same counts |

The bytes of the one side, taken in order, are those of the other: pieces need not be cut alike.
Each has a blocking form, one with a handle for all of it (`_nb`), and an implicit one (`_nbi`); all
are bulk. This is reference code over put and get: a piece of memory is one of these.

A strided piece has `counts[0]` bytes in a row, `counts[1]` times, each `strides[0]` bytes behind
the one before; that `counts[2]` times, each `strides[1]` behind the one before; and so on.

Source: reference gasnet.md 2, 10 (VIS).
"""

# ruff: noqa: SLF001 - handles and ranks are private to users, not to this package

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from ompy.gasnet.errors import BadArgument
from ompy.gasnet.fill import Fills
from ompy.gasnet.handles import INVALID_HANDLE, Handle, Implicit
from ompy.gasnet.rank import check_integers, readable_bytes, writable_bytes

Place = tuple[int, int]  # offset and size
Pieces = list[tuple[int, memoryview]]  # where each is in the peer's segment, and here


class Vectors(Fills):
    """put and get of several pieces."""

    # --- vector

    def putv_bulk(self, node: int, places: Iterable[Place], sources: Iterable[Any]) -> None:
        """Write buffers into pieces of a rank's segment; they are there when this returns.

        Args:
            node: the rank.
            places: offset and size of each piece.
            sources: contiguous buffers, with as many bytes in all.

        Raises:
            BadArgument: a piece is not in the segment, there are more bytes on one side, or this
                thread may not communicate now. Nothing has been sent then.
            ResourceError: the peer is gone.
        """
        self._all_puts(node, paired(places, map(readable_bytes, sources)))

    def putv_nb_bulk(self, node: int, places: Iterable[Place], sources: Iterable[Any]) -> Handle:
        """Begin to; the sources stay as they are until the handle is synced."""
        return self._begin_puts(node, paired(places, map(readable_bytes, sources)))

    def putv_nbi_bulk(self, node: int, places: Iterable[Place], sources: Iterable[Any]) -> None:
        """Begin to, as implicit puts."""
        self._implicit_puts(node, paired(places, map(readable_bytes, sources)))

    def getv_bulk(self, destinations: Iterable[Any], node: int, places: Iterable[Place]) -> None:
        """Read pieces of a rank's segment into buffers. Raises as `putv_bulk`."""
        self._all_gets(node, paired(places, map(writable_bytes, destinations)))

    def getv_nb_bulk(
        self, destinations: Iterable[Any], node: int, places: Iterable[Place]
    ) -> Handle:
        """Begin to; with a handle."""
        return self._begin_gets(node, paired(places, map(writable_bytes, destinations)))

    def getv_nbi_bulk(
        self, destinations: Iterable[Any], node: int, places: Iterable[Place]
    ) -> None:
        """Begin to, as implicit gets."""
        self._implicit_gets(node, paired(places, map(writable_bytes, destinations)))

    # --- indexed

    def puti_bulk(
        self, node: int, offsets: Iterable[int], size: int, sources: Iterable[Any]
    ) -> None:
        """Write buffers into pieces of one size. Raises as `putv_bulk`."""
        self.putv_bulk(node, indexed(offsets, size), sources)

    def puti_nb_bulk(
        self, node: int, offsets: Iterable[int], size: int, sources: Iterable[Any]
    ) -> Handle:
        """Begin to; with a handle."""
        return self.putv_nb_bulk(node, indexed(offsets, size), sources)

    def puti_nbi_bulk(
        self, node: int, offsets: Iterable[int], size: int, sources: Iterable[Any]
    ) -> None:
        """Begin to, as implicit puts."""
        self.putv_nbi_bulk(node, indexed(offsets, size), sources)

    def geti_bulk(
        self, destinations: Iterable[Any], node: int, offsets: Iterable[int], size: int
    ) -> None:
        """Read pieces of one size into buffers. Raises as `putv_bulk`."""
        self.getv_bulk(destinations, node, indexed(offsets, size))

    def geti_nb_bulk(
        self, destinations: Iterable[Any], node: int, offsets: Iterable[int], size: int
    ) -> Handle:
        """Begin to; with a handle."""
        return self.getv_nb_bulk(destinations, node, indexed(offsets, size))

    def geti_nbi_bulk(
        self, destinations: Iterable[Any], node: int, offsets: Iterable[int], size: int
    ) -> None:
        """Begin to, as implicit gets."""
        self.getv_nbi_bulk(destinations, node, indexed(offsets, size))

    # --- strided

    def puts_bulk(
        self,
        node: int,
        offset: int,
        strides: Sequence[int],
        source: Any,
        source_strides: Sequence[int],
        counts: Sequence[int],
    ) -> None:
        """Write a strided piece of a buffer to a strided piece of a rank's segment.

        Args:
            node: the rank.
            offset: where the piece begins there.
            strides: of it, one less than counts.
            source: contiguous buffer, in which the local piece begins at the first byte.
            source_strides: of that.
            counts: of both.

        Raises:
            BadArgument, ResourceError: as `putv_bulk`; or strides and counts do not fit.
        """
        local = readable_bytes(source)
        self._all_puts(node, strided(offset, strides, local, source_strides, counts))

    def puts_nb_bulk(
        self,
        node: int,
        offset: int,
        strides: Sequence[int],
        source: Any,
        source_strides: Sequence[int],
        counts: Sequence[int],
    ) -> Handle:
        """Begin to; with a handle."""
        local = readable_bytes(source)
        return self._begin_puts(node, strided(offset, strides, local, source_strides, counts))

    def puts_nbi_bulk(
        self,
        node: int,
        offset: int,
        strides: Sequence[int],
        source: Any,
        source_strides: Sequence[int],
        counts: Sequence[int],
    ) -> None:
        """Begin to, as implicit puts."""
        local = readable_bytes(source)
        self._implicit_puts(node, strided(offset, strides, local, source_strides, counts))

    def gets_bulk(
        self,
        destination: Any,
        destination_strides: Sequence[int],
        node: int,
        offset: int,
        strides: Sequence[int],
        counts: Sequence[int],
    ) -> None:
        """Read a strided piece of a rank's segment into one of a buffer. Raises as `puts_bulk`."""
        local = writable_bytes(destination)
        self._all_gets(node, strided(offset, strides, local, destination_strides, counts))

    def gets_nb_bulk(
        self,
        destination: Any,
        destination_strides: Sequence[int],
        node: int,
        offset: int,
        strides: Sequence[int],
        counts: Sequence[int],
    ) -> Handle:
        """Begin to; with a handle."""
        local = writable_bytes(destination)
        return self._begin_gets(node, strided(offset, strides, local, destination_strides, counts))

    def gets_nbi_bulk(
        self,
        destination: Any,
        destination_strides: Sequence[int],
        node: int,
        offset: int,
        strides: Sequence[int],
        counts: Sequence[int],
    ) -> None:
        """Begin to, as implicit gets."""
        local = writable_bytes(destination)
        self._implicit_gets(node, strided(offset, strides, local, destination_strides, counts))

    # --- below

    def _all_puts(self, node: int, pieces: Pieces) -> None:
        self._finish(self._begin_puts(node, pieces))

    def _all_gets(self, node: int, pieces: Pieces) -> None:
        self._finish(self._begin_gets(node, pieces))

    def _finish(self, handle: Handle) -> None:
        if handle is INVALID_HANDLE:
            return
        if not handle.complete:
            self._wait(handle)
        handle._release()

    def _begin_puts(self, node: int, pieces: Pieces) -> Handle:
        return self._together(node, pieces, is_get=False)

    def _begin_gets(self, node: int, pieces: Pieces) -> Handle:
        return self._together(node, pieces, is_get=True)

    def _implicit_puts(self, node: int, pieces: Pieces) -> None:
        self._check_all(node, pieces)
        for offset, local in pieces:
            self.put_nbi_bulk(node, offset, local)

    def _implicit_gets(self, node: int, pieces: Pieces) -> None:
        self._check_all(node, pieces)
        for offset, local in pieces:
            self.get_nbi_bulk(local, node, offset)

    def _together(self, node: int, pieces: Pieces, *, is_get: bool) -> Handle:
        """Begin all pieces. Returns a handle for all of them."""
        self._check_all(node, pieces)
        state = self._state()
        handle, outer = state.new_handle(), state.region
        operations = state.region = Implicit()
        try:
            begin = self._implicit_gets if is_get else self._implicit_puts
            begin(node, pieces)
        except BaseException:
            handle._release()
            raise
        finally:
            state.region = outer
        if not operations.under_way(gets=True, puts=True):
            handle._release()
            return INVALID_HANDLE
        operations.when_drained(handle)
        return handle

    def _check_all(self, node: int, pieces: Pieces) -> None:
        """See that nothing is wrong with any piece before one is sent."""
        self._check_node(node)
        for offset, local in pieces:
            self._check_place(node, offset, len(local))


def indexed(offsets: Iterable[int], size: int) -> list[Place]:
    """The places of pieces of one size."""
    return [(offset, size) for offset in offsets]


def paired(places: Iterable[Place], views: Iterable[memoryview]) -> Pieces:
    """Cut both sides so that each piece is one place of the segment and one of a buffer.

    Raises:
        BadArgument: there are more bytes on one side, or a size is less than 0.
    """
    remote, local = list(places), [view for view in views if len(view)]
    check_integers(*(number for place in remote for number in place))
    there, here = sum(size for _, size in remote), sum(map(len, local))
    if there != here or any(size < 0 for _, size in remote):
        raise BadArgument(f"{there} bytes of the segment are not the {here} of the buffers")
    pieces: Pieces = []
    for offset, size in remote:
        at = 0
        while at < size:
            view = local[0]
            part = min(size - at, len(view))
            pieces.append((offset + at, view[:part]))
            local[:1] = [view[part:]] if part < len(view) else []
            at += part
    return pieces


def strided(
    offset: int,
    strides: Sequence[int],
    local: memoryview,
    local_strides: Sequence[int],
    counts: Sequence[int],
) -> Pieces:
    """The rows of two strided pieces of the same counts.

    Raises:
        BadArgument: a number is negative, there are too few strides, or a row is not in the buffer.
    """
    check_integers(offset, *strides, *local_strides, *counts)
    if len(strides) != len(counts) - 1 or len(local_strides) != len(strides):
        raise BadArgument(f"{len(counts)} counts need one stride less on each side")
    if min((*counts, *strides, *local_strides)) < 0:
        raise BadArgument("counts and strides are not negative")
    if not prod(counts):
        return []
    pieces = []
    for here, there in zip(rows(local_strides, counts), rows(strides, counts), strict=True):
        row = local[here : here + counts[0]]
        if len(row) < counts[0]:
            raise BadArgument(f"a row at byte {here} is not in the buffer of {len(local)} bytes")
        pieces.append((offset + there, row))
    return pieces


def rows(strides: Sequence[int], counts: Sequence[int]) -> Iterator[int]:
    """Where the rows of a strided piece begin; those of the first stride follow each other."""
    for numbers in product(*(range(count) for count in reversed(counts[1:]))):
        yield sum(n * stride for n, stride in zip(reversed(numbers), strides, strict=True))
