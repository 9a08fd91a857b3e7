"""One descriptor that becomes readable when anything a parked rank cares about does."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import selectors

EVENT_READ: Final = 1  # selectors.EVENT_READ


class Wakeup:
    """The set of descriptors that wake a parked rank, each with its callback.

    On Linux it is an epoll descriptor, which itself can be watched by an event loop and
    nested in another epoll; elsewhere the standard library's selector does the same slower.
    """

    def __init__(self, *, use_epoll: bool | None = None) -> None:
        self._callbacks: dict[int, Callable[[], object]] = {}
        if use_epoll is None:
            use_epoll = hasattr(select, "epoll")
        self._epoll = select.epoll() if use_epoll else None
        self._selector: selectors.BaseSelector | None = None
        if not use_epoll:
            import selectors

            self._selector = selectors.DefaultSelector()

    def fileno(self) -> int:
        """The descriptor an event loop can watch, or -1 where there is none."""
        if self._epoll is not None:
            return self._epoll.fileno()
        fileno = getattr(self._selector, "fileno", None)  # a poll set has none
        return fileno() if fileno is not None else -1

    def add(self, descriptor: int, callback: Callable[[], object]) -> None:
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

    def ready(self, timeout: float) -> list[int]:
        """Descriptors that are readable, after at most `timeout` seconds."""
        if self._epoll is not None:
            return [descriptor for descriptor, _ in self._epoll.poll(timeout)]
        assert self._selector is not None
        if not self._callbacks:
            # poll() with nothing registered returns at once on some systems
            select.select([], [], [], timeout)
            return []
        return [key.fd for key, _ in self._selector.select(timeout)]

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
        if self._epoll is not None:
            self._epoll.close()
        if self._selector is not None:
            self._selector.close()
