"""Files for what ranks write: DIR/JOB/rank.N/stdout and stderr (reference openmpi.md 2.5.3).

The launcher writes them, wherever the ranks are. What is there of an earlier job goes.
"""

from __future__ import annotations

import os
from typing import Final

from ompy import outputs
from ompy.runtime.launching.launcher import OutputFiles

STREAMS: Final = {1: "stdout", 2: "stderr"}
_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class OutputCopies:
    """The files of one launcher's ranks.

    Attributes:
        asked: what is wanted.
    """

    def __init__(self, asked: OutputFiles, size: int) -> None:
        """Make those of the ranks that a job begins with.

        Args:
            asked: what is wanted.
            size: how many ranks.

        Raises:
            OSError: they cannot be made.
        """
        self.asked = asked
        self._folders: list[str] = []
        self._worlds = 0
        self.add_world(size)

    def add_world(self, size: int) -> None:
        """There are more ranks, which are a job of their own, as in Open MPI.

        Raises:
            OSError: their files cannot be made.
        """
        self._worlds += 1
        above = self.asked.directory
        if self.asked.numbered or self._worlds > 1:  # or they would be in the way of each other
            above = os.path.join(above, str(self._worlds))
        width = len(str(size - 1))
        for rank in range(size):
            folder = os.path.join(above, f"rank.{rank:0{width}}")
            directory = outputs.open_directory(folder)
            try:
                for name in STREAMS.values():
                    os.close(outputs.create_in(directory, name))
            finally:
                os.close(directory)
            self._folders.append(folder)

    def keep(self, rank: int, stream: int, data: bytes) -> None:
        """Write what a rank has written.

        Raises:
            OSError: it cannot be written, or only a part of it.
        """
        if rank >= len(self._folders):
            return
        file = os.open(os.path.join(self._folders[rank], STREAMS[stream]), _APPEND)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file, rest) :]
        finally:
            os.close(file)
