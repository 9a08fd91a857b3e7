"""Operations on eight-byte elements, with a numpy reference for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout
from ompy.data.operation import Operation

Reference = Callable[[np.ndarray, np.ndarray], np.ndarray]


def compose(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x -> a x + b, modulo 2**32: associative, does not commute."""
    f, g = left.view(np.uint32).reshape(-1, 2), right.view(np.uint32).reshape(-1, 2)
    return np.stack([f[:, 0] * g[:, 0], f[:, 0] * g[:, 1] + f[:, 1]], axis=1).ravel().view(np.uint8)


def add(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left.view(np.int32) + right.view(np.int32)).view(np.uint8)


def _kernel(left: memoryview, right: memoryview, layout: Layout, count: int) -> None:
    assert len(left) == len(right) == count * layout.size > 0, "called for nothing, or too much"
    right[:] = compose(np.array(left), np.array(right)).tobytes()


COMPOSE = Operation("compose", _kernel, commutative=False)
SUM = PREDEFINED["MPI_SUM"]
OPERATIONS: tuple[tuple[Operation, Reference], ...] = ((SUM, add), (COMPOSE, compose))


def fold(reference: Reference, parts: Sequence[np.ndarray]) -> np.ndarray:
    return reduce(reference, parts)
