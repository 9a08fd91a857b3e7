"""Convertor for data with gaps: packs and unpacks any range of bytes, slab by slab.

Two modules do the copying, with the same results: `slabs_numpy` where NumPy is at hand or pays,
`slabs_plain` (memory views) elsewhere. Both copy a slab of any number of runs by a few calls of
library code. Runs without order (indexed types) NumPy gathers at once; without it they are copied
one by one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from ompy.data import slabs_plain
from ompy.data.convertor import Convertor
from ompy.data.typemap import Loop, Node, Run, Scattered, Series, Slab

if TYPE_CHECKING:
    from types import ModuleType

# Measured (Python 3.11, NumPy 2.4, 8 byte runs at stride 16): memory views take 32 ns a run, NumPy
# 7 ns; `import numpy` takes 50 to 100 ms, as much as 2 to 4 million runs are faster by. Arbitrary:
# who has a million runs in one message will have more.
IMPORT_NUMPY_FROM: Final = 1 << 20


class StridedConvertor(Convertor):
    """The bytes of a type map's node, put at byte `start` of `memory` (format B)."""

    __slots__ = ("_copying", "_memory", "_node", "_start")

    def __init__(self, memory: memoryview, start: int, node: Node) -> None:
        self.view = None
        self.size = node.size
        self._memory = memory
        self._start = start
        self._node = node
        self._copying = _copying(node)

    def pack(self, offset: int, target: memoryview) -> int:
        """Gather bytes from `offset` on into `target`."""
        count = min(self.size - offset, len(target))
        if count <= 0:
            return 0
        copying = self._copying
        for piece in self._node.part(self._start, 0, offset, offset + count):
            if piece.__class__ is Slab:
                copying.gather(piece, self._memory, target)
            else:
                copying.gather_scattered(piece, self._memory, target)
        return count

    def unpack(self, offset: int, source: memoryview) -> int:
        """Scatter `source` to the bytes from `offset` on."""
        count = min(self.size - offset, len(source))
        if count <= 0:
            return 0
        copying = self._copying
        for piece in self._node.part(self._start, 0, offset, offset + count):
            if piece.__class__ is Slab:
                copying.scatter(piece, source, self._memory)
            else:
                copying.scatter_scattered(piece, source, self._memory)
        return count


def _copying(node: Node) -> ModuleType:
    """The module that does the work."""
    if "numpy" in sys.modules or _number_of_runs(node) >= IMPORT_NUMPY_FROM:
        try:
            from ompy.data import slabs_numpy
        except ImportError:
            return slabs_plain
        return slabs_numpy
    return slabs_plain


def _number_of_runs(node: Node) -> int:
    if isinstance(node, Run):
        return 1
    if isinstance(node, Loop):
        return node.count * _number_of_runs(node.body)
    if isinstance(node, Scattered):
        return len(node.lengths)
    assert isinstance(node, Series), "there is no other kind of node"
    return sum(_number_of_runs(part) for part in node.nodes)
