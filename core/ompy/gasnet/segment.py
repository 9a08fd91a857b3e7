"""The memory of a rank that all ranks can read and write."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ompy.gasnet.errors import BadArgument

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Segment:
    """The own segment.

    Views and arrays of it are of the memory itself: what a peer puts is seen in them.

    Attributes:
        memory: its bytes.
        address: where it begins.
        size: bytes.
    """

    __slots__ = ("address", "memory", "size")

    def __init__(self, memory: memoryview, address: int) -> None:
        self.memory = memory
        self.address = address
        self.size = len(memory)

    def __len__(self) -> int:
        return self.size

    def as_array(
        self, dtype: Any, shape: int | tuple[int, ...] | None = None, offset: int = 0
    ) -> NDArray[Any]:
        """A part of it as a NumPy array, without a copy.

        Args:
            dtype: of the elements.
            shape: as many as there is room for, by default.
            offset: bytes from the beginning of the segment.

        Raises:
            BadArgument: it does not fit.
            ImportError: there is no NumPy.
        """
        import numpy as np

        kind = np.dtype(dtype)
        if shape is None:
            shape = max(0, self.size - offset) // kind.itemsize
        size = kind.itemsize * prod(shape if isinstance(shape, tuple) else (shape,))
        if offset < 0 or size < 0 or offset + size > self.size:
            raise BadArgument(
                f"{size} bytes from offset {offset} on are not in a segment of {self.size}"
            )
        whole: NDArray[Any] = np.ndarray(shape, kind, self.memory, offset)
        return whole

    def __repr__(self) -> str:
        return f"<segment of {self.size} bytes at {self.address:#x}>"
