"""What can be waited for: a completion, and the request of one PML operation."""

from __future__ import annotations

from collections.abc import Callable

from ompy.compiled import Shown, ccall, cclass
from ompy.data.constants import ANY_SOURCE, ANY_TAG


@cclass
class Waitable:
    """Something that completes once. The engine waits for it by looking at `complete`.

    Attributes:
        complete: set by `finish`, never unset except by a persistent request's restart.
    """

    _callbacks: Shown[list[Callable[[], object]] | None]
    complete: bool
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(self) -> None:
        self.complete = False
        self._callbacks = None

    @ccall
    def finish(self) -> None:
        """Complete. Called once, with the rank's lock held; runs the callbacks."""
        self.complete = True
        if self._callbacks is not None:
            callbacks = self._callbacks
            self._callbacks = None
            for callback in callbacks:
                callback()

    @ccall
    def notify(self, callback: Callable[[], object]) -> None:
        """Call `callback` on completion, at once if it is already complete.

        Several callbacks are called in the order they were given. They must not block.
        """
        if self.complete:
            callback()
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)


@cclass
class Request(Waitable):
    """One point-to-point operation, as the PML completes it.

    Attributes:
        source: rank in the communicator the message came from (receives), or the destination.
        tag: the message's tag.
        received: bytes of the message that are in the buffer.
        length: bytes of the message as it was sent (more than `received` when truncated).
        error: MPI error class, 0 for success.
        detail: what went wrong, in words with values.
        cancelled: true after a successful cancel.
    """

    cancelled: bool
    detail: str
    error: int
    length: int
    received: int
    source: int
    tag: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.reset()

    @ccall
    def reset(self) -> None:
        """Make it an operation that has not begun."""
        self.complete = False
        self._callbacks = None
        self.source = ANY_SOURCE
        self.tag = ANY_TAG
        self.received = 0
        self.length = 0
        self.error = 0
        self.detail = ""
        self.cancelled = False

    @ccall
    def fail(self, error: int, detail: str) -> None:
        """Complete with an error, unless already complete."""
        if not self.complete:
            self.error = error
            self.detail = detail
            self.finish()


@cclass
class AnyOf(Waitable):
    """Completes when one of several may be complete.

    Attributes:
        waitables: these.
    """

    waitables: list[Waitable]
    __slots__ = tuple(__annotations__)

    def __init__(self, waitables: list[Waitable]) -> None:
        Waitable.__init__(self)
        self.waitables = waitables


@cclass
class Deferred(Request):
    """One that goes on when something else is complete, or completes by that.

    Attributes:
        waits_on: what else, if anything.
    """

    waits_on: Shown[Waitable | None]
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        Request.__init__(self)
        self.waits_on = None
