"""An operation bound to a layout."""

from __future__ import annotations

from collections.abc import Callable

from ompy.data.layout import Layout
from ompy.data.operation import Operation

Combine = Callable[[memoryview, memoryview], None]


def combining(operation: Operation, layout: Layout) -> Combine:
    """A function that stores `left op right` in `right`, both any number of packed elements.

    An operation is never called for nothing.

    Raises:
        MPIError: ERR_OP, the operation is not defined for the layout.
    """
    operation.check_layout(layout)

    def combine(left: memoryview, right: memoryview) -> None:
        operation.combine(layout, left, 0, right, 0, len(right))

    return combine
