"""Functions that wait (another process, a name server), called while an event loop goes on."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from ompy.engine.reactor import Loop

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    Finished = tuple[Callable[[Future[object]], object], Future[object]]

THREADS: Final = 6  # arbitrary: each has one process of munge or srun below it, on a loaded host
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class BlockingCalls:
    """A few threads for them; what comes of each is told in the loop."""

    def __init__(self, loop: Loop) -> None:
        """Start nothing yet.

        Args:
            loop: where the ends of calls are told. It outlives all calls, or its process ends.
        """
        self._loop = loop
        self._pool: ThreadPoolExecutor | None = None
        self._finished: deque[Finished] = deque()
        self._wakeup = -1

    def start_call(
        self,
        on_end: Callable[[Future[Result]], object],
        function: Callable[Arguments, Result],
        *args: Arguments.args,
        **named: Arguments.kwargs,
    ) -> None:
        """Call a function in a thread.

        Args:
            on_end: called in the loop with a future that is done: value or error.
            function: may wait, and knows nothing of the loop.
            args: its.
            named: its.
        """
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # few processes have such calls

            self._pool = ThreadPoolExecutor(THREADS)
            self._wakeup = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._loop.add_reader(self._wakeup, self._tell_ends)
        self._pool.submit(function, *args, **named).add_done_callback(
            lambda future: self._note_end((on_end, future))  # type: ignore[arg-type]
        )

    def _note_end(self, finished: Finished) -> None:
        """In the thread."""
        self._finished.append(finished)
        os.eventfd_write(self._wakeup, 1)

    def _tell_ends(self) -> None:
        """In the loop: a call of its own for each, so that an error of one is of that one."""
        os.eventfd_read(self._wakeup)
        while self._finished:
            on_end, future = self._finished.popleft()
            self._loop.call_soon(on_end, future)
