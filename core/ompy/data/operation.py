"""Reduction operations, as the collectives see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ompy.compiled import ccall, cclass
from ompy.compiled_loader import is_compiled
from ompy.data import elements
from ompy.data.layout import Layout

Kernel = Callable[[memoryview, memoryview, Layout, int], None]
Check = Callable[[Layout], None]

# interpreted, a kernel chooses between NumPy and plain loops by the amount, which is better
COMPILED: Final = is_compiled(__name__)


@cclass
class Operation:
    """Combines packed elements.

    Attributes:
        name: for messages to people.
        commutative: the order of operands may be changed (never their grouping's result).
        kernel: `kernel(left, right, layout, count)` stores `left op right` in `right`; both
            are packed byte views (format B) of `count` elements. Raises MPIError ERR_OP
            when it is not defined for the layout.
        loops: numbers of `elements.combine` by the layout's format, for those that it has.
    """

    _check: Callable[[Layout], None] | None
    commutative: bool
    kernel: Callable[[memoryview[int], memoryview[int], Layout, int], None]
    loops: dict[str, int]
    name: str
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        *,
        commutative: bool,
        check: Check | None = None,
        loops: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name
        self.kernel = kernel
        self.commutative = commutative
        self.loops = dict(loops) if loops is not None and COMPILED else {}
        self._check = check

    @ccall
    def check_layout(self, layout: Layout) -> None:
        """See that the operation is defined for a layout, before anything is sent.

        An operation made without a check says yes to all of them.

        Raises:
            MPIError: ERR_OP, it is not.
        """
        if self._check is not None and layout.format not in self.loops:
            self._check(layout)

    @ccall
    def combine(
        self,
        layout: Layout,
        left: memoryview,
        start: int,
        right: memoryview,
        at: int,
        size: int,
    ) -> None:
        """Store `left op right` in `right`: `size` bytes of packed elements from `start` and `at`.

        Whoever calls it has asked `check_layout`. Nothing is called for no bytes.
        """
        loop = self.loops.get(layout.format)
        if loop is not None:
            elements.combine(loop, left, start, right, at, size)
        elif size:
            count = size // layout.size
            self.kernel(left[start : start + size], right[at : at + size], layout, count)

    @ccall
    def combine_pairs(
        self,
        layout: Layout,
        left: memoryview,
        start: int,
        right: memoryview,
        at: int,
        count: int,
    ) -> bool:
        """Store `left op right` in `right`: values with an index and gaps, as they lie in memory.

        Returns:
            Whether there is a loop for that; if not, nothing was done.
        """
        loop = self.loops.get(layout.format)
        if loop is None or self.name not in _OF_PAIRS:
            return False
        index: int = layout.node.high - elements.INDEX  # it is what comes last
        elements.combine_pairs(loop, left, start, right, at, count, layout.extent, index)
        return True


_OF_PAIRS: Final = ("MPI_MAXLOC", "MPI_MINLOC")
