"""What a parked rank sleeps on: it wakes when any of its descriptors becomes readable.

Poll sets in each other are few: Linux takes five (`EP_MAX_NESTS`), from the outermost to the one
that has the socket, and refuses whoever adds one more, be it a library inside a call of ours. A
library's descriptor may be a set of sets. So such a one is never put into a set of ours: the rank
asks for it beside ours (`poll` counts as none), and an event loop watches it itself (`readers.py`).
"""

from __future__ import annotations

import math
import select
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import selectors

EVENT_READ: Final = 1  # selectors.EVENT_READ


class Wakeup:
    """The descriptors that wake a parked rank.

    On Linux those of our own are in an epoll descriptor, which itself can be watched by an event
    loop; elsewhere the standard library's selector does the same slower.

    Attributes:
        changes: how often `apart` has changed.
    """

    def __init__(self, *, use_epoll: bool | None = None) -> None:
        self.changes = 0
        self._callbacks: dict[int, Callable[[], object]] = {}
        self._apart: Counter[int] = Counter()
        if use_epoll is None:
            use_epoll = hasattr(select, "epoll")
        self._epoll = select.epoll() if use_epoll else None
        self._selector: selectors.BaseSelector | None = None
        if not use_epoll:
            import selectors

            self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        """The descriptor for all but those `apart`, or -1 where there is none."""
        if self._epoll is not None:
            return self._epoll.fileno()
        fileno = getattr(self._selector, "fileno", None)  # a poll set has none
        return fileno() if fileno is not None else -1

    @property
    def apart(self) -> list[int]:
        """The descriptors of libraries, which an event loop has to watch itself."""
        return list(self._apart)

    def watch_descriptor(self, descriptor: int, callback: Callable[[], object]) -> None:
        """Wake for `descriptor` being readable; `dispatch` then calls `callback`."""
        self._callbacks[descriptor] = callback
        if self._epoll is not None:
            self._epoll.register(descriptor, select.EPOLLIN)
        else:
            assert self._selector is not None
            self._selector.register(descriptor, EVENT_READ)

    def remove(self, descriptor: int) -> None:
        """Forget `descriptor`; harmless if it is unknown. Call before closing it."""
        if self._callbacks.pop(descriptor, None) is None:
            return
        if self._epoll is not None:
            self._epoll.unregister(descriptor)
        else:
            assert self._selector is not None
            self._selector.unregister(descriptor)

    def add_apart(self, descriptor: int) -> None:
        """Wake for a library's `descriptor`, which may be a poll set; it may be added repeatedly.

        Nothing is called for it: whoever owns it looks when the rank is awake.
        """
        self._apart[descriptor] += 1
        self.changes += 1

    def remove_apart(self, descriptor: int) -> None:
        """Take back one `add_apart`, if there is one, before the library closes it."""
        if descriptor not in self._apart:
            return
        self._apart[descriptor] -= 1
        if not self._apart[descriptor]:
            del self._apart[descriptor]
        self.changes += 1

    def ready(self, timeout: float) -> list[int]:
        """Descriptors that are readable, after at most `timeout` seconds."""
        if self._apart:
            return self._ready_beside(timeout)
        if self._epoll is not None:
            return [descriptor for descriptor, _ in self._epoll.poll(timeout)]
        assert self._selector is not None
        if not self._callbacks:
            # poll() with nothing registered returns at once on some systems
            select.select([], [], [], timeout)
            return []
        return [key.fd for key, _ in self._selector.select(timeout)]

    def _ready_beside(self, timeout: float) -> list[int]:
        """The same with those `apart`. A set for each call, as several threads may be in one."""
        own = self.fileno()
        ours = (own,) if own >= 0 else tuple(self._callbacks)
        both = select.poll()
        for descriptor in (*ours, *self._apart):
            both.register(descriptor, select.POLLIN)
        found = [descriptor for descriptor, _ in both.poll(math.ceil(timeout * 1000))]
        if own not in found:
            return found
        found.remove(own)
        if self._epoll is not None:
            return found + [descriptor for descriptor, _ in self._epoll.poll(0)]
        assert self._selector is not None
        return found + [key.fd for key, _ in self._selector.select(0)]

    def dispatch(self, descriptors: list[int]) -> int:
        """Call the callbacks of `descriptors`. Returns how many were called."""
        called = 0
        for descriptor in descriptors:
            # an earlier callback of this very round may have removed it
            callback = self._callbacks.get(descriptor)
            if callback is not None:
                callback()
                called += 1
        return called

    def close(self) -> None:
        """Give the descriptor back."""
        self._callbacks.clear()
        self._apart.clear()
        self.changes += 1
        if self._epoll is not None:
            self._epoll.close()
        if self._selector is not None:
            self._selector.close()
