"""Messages of the trees of scatter and gather: a subtree's blocks, small ones included.

A member does not know the sizes of the others' blocks, nor whether they are regular; so a
message begins with the sizes of all blocks of its subtree (8 bytes each, little-endian).
Then come the bytes of those blocks that are not larger than a limit. The larger ones go
straight between their rank and the root. Either side decides by the size that was announced.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from ompy.data.convertor import GatherConvertor
from ompy.data.errors import ERR_ROOT, MPIError

_FORMAT: Final = "<{}Q"
SIZE_BYTES: Final = struct.calcsize(_FORMAT.format(1))  # of one announced size
assert SIZE_BYTES == 8, "as said above"


class Subtree:
    """The blocks of neighbouring places.

    Attributes:
        sizes: packed bytes of each place's block.
        pieces: the bytes of the small ones, in order, cut anyhow.
    """

    __slots__ = ("pieces", "sizes")

    def __init__(self, sizes: Sequence[int], pieces: Sequence[memoryview]) -> None:
        self.sizes = list(sizes)
        self.pieces = list(pieces)

    def convertor(self) -> GatherConvertor:
        """The message."""
        header = struct.pack(_FORMAT.format(len(self.sizes)), *self.sizes)
        return GatherConvertor([memoryview(header), *self.pieces])


def parse_blocks(
    data: memoryview, places: int, limit: int
) -> tuple[list[int], list[memoryview | None]]:
    """The sizes and the blocks in a message for `places` places; None for a large block.

    Raises:
        MPIError: ERR_ROOT, this is not such a message.
    """
    header = places * SIZE_BYTES
    sizes = list(struct.unpack_from(_FORMAT.format(places), data)) if len(data) >= header else []
    if len(data) != header + sum(size for size in sizes if size <= limit) or not sizes:
        raise MPIError(
            ERR_ROOT,
            f"a message of {len(data)} bytes is not the blocks of {places} ranks: the members "
            f"must agree about the root, and about the parameters of coll",
        )
    blocks: list[memoryview | None] = []
    at = header
    for size in sizes:
        blocks.append(data[at : at + size] if size <= limit else None)
        at += size if size <= limit else 0
    return sizes, blocks
