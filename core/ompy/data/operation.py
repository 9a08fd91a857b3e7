"""Reduction operations, as the collectives see them."""

from __future__ import annotations

from collections.abc import Callable

from ompy.data.layout import Layout

Kernel = Callable[[memoryview, memoryview, Layout, int], None]
Check = Callable[[Layout], None]


class Operation:
    """Combines packed elements.

    Attributes:
        name: for messages to people.
        commutative: the order of operands may be changed (never their grouping's result).
        kernel: `kernel(left, right, layout, count)` stores `left op right` in `right`; both
            are packed byte views (format B) of `count` elements. Raises MPIError ERR_OP
            when it is not defined for the layout.
    """

    __slots__ = ("_check", "commutative", "kernel", "name")

    def __init__(
        self, name: str, kernel: Kernel, *, commutative: bool, check: Check | None = None
    ) -> None:
        self.name = name
        self.kernel = kernel
        self.commutative = commutative
        self._check = check

    def check(self, layout: Layout) -> None:
        """See that the operation is defined for a layout, before anything is sent.

        An operation made without a check says yes to all of them.

        Raises:
            MPIError: ERR_OP, it is not.
        """
        if self._check is not None:
            self._check(layout)
