"""An event loop watches what wakes a rank: our own set, and each library's descriptor beside it.

Of a library's descriptor the loop watches a copy. A library may close its own while the loop has
not yet asked the kernel for it, from another thread too; libuv ends the process when the kernel
then does not know it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from ompy.engine.wakeup import Wakeup


class LoopReaders:
    """The readers of one loop for one rank; used only by the loop's thread.

    Attributes:
        loop: the event loop.
    """

    def __init__(
        self, wakeup: Wakeup, loop: asyncio.AbstractEventLoop, woken: Callable[[], object]
    ) -> None:
        """Watch nothing yet.

        Args:
            wakeup: the descriptors.
            loop: the event loop.
            woken: called by the loop when one of them is readable.
        """
        self.loop = loop
        self._wakeup = wakeup
        self._woken = woken
        self._own = -1
        self._copies: list[int] = []
        self._seen = -1

    def follow(self) -> None:
        """Watch what the rank is woken by now; to be called before it sleeps in the loop.

        Raises:
            OSError: the kernel lets the loop not watch it (Linux: ELOOP, poll sets in each other
                are too many). Nothing is watched then.
        """
        if self._seen == self._wakeup.changes:
            return
        self.rest()
        try:
            own = self._wakeup.fileno()
            self.loop.add_reader(own, self._woken)
            self._own = own
            for descriptor in self._wakeup.apart:
                self._watch(os.dup(descriptor))
        except OSError:
            self.rest()
            raise
        self._seen = self._wakeup.changes

    def _watch(self, copy: int) -> None:
        try:
            self.loop.add_reader(copy, self._woken)
        except OSError:
            os.close(copy)
            raise
        self._copies.append(copy)

    def rest(self) -> None:
        """Watch nothing."""
        if self._own >= 0:
            self.loop.remove_reader(self._own)
            self._own = -1
        for copy in self._copies:
            self.loop.remove_reader(copy)
            os.close(copy)
        self._copies.clear()
        self._seen = -1
