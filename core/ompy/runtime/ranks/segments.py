"""Memory and doorbells the ranks of one host share. Nothing of it has a name in a file system."""

from __future__ import annotations

import os
import tempfile


class SharedDescriptors:
    """What the agent of a host holds for its ranks; descriptors stay its own."""

    def __init__(self) -> None:
        self._memory: dict[str, tuple[int, int]] = {}
        self._bells: dict[int, int] = {}

    def memory(self, name: str, size: int) -> int:
        """A descriptor of `size` zeroed bytes, the same for the same name.

        Raises:
            ValueError: the name is in use for another size, or the size makes no sense.
            OSError: the system has no more.
        """
        if size < 1:
            raise ValueError(f"memory {name} of {size} bytes: at least one is needed")
        if name not in self._memory:
            self._memory[name] = (_anonymous(name, size), size)
        descriptor, there = self._memory[name]
        if there != size:
            raise ValueError(f"memory {name} has {there} bytes, {size} were asked for")
        return descriptor

    def doorbell(self, local_rank: int) -> int:
        """A descriptor of the eventfd of a rank of this host."""
        if local_rank not in self._bells:
            self._bells[local_rank] = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return self._bells[local_rank]

    def forget_memory(self, name: str) -> None:
        """Nobody will ask for it any more; it goes with the last who has mapped it."""
        if name in self._memory:
            os.close(self._memory.pop(name)[0])

    def forget_doorbell(self, local_rank: int) -> None:
        """A rank has ended: those that ring it have descriptors of their own."""
        if local_rank in self._bells:
            os.close(self._bells.pop(local_rank))

    def descriptors(self) -> list[int]:
        """All of them."""
        return [*(descriptor for descriptor, _ in self._memory.values()), *self._bells.values()]


def _anonymous(name: str, size: int) -> int:
    """A descriptor of zeroed memory that goes with its last user."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create(f"ompy:{name}"[:200], os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile(prefix="ompy-") as file:
            descriptor = os.dup(file.fileno())
    try:
        os.ftruncate(descriptor, size)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
