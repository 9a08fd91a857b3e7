"""What follows when posts are complete: gasnetc_poll_local_queue.

Source: seed gasnet (bound_cq_handle); reference gasnet.md 6.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ompy import raw
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.conduit import Transfer
from ompy.frameworks.nic.gni import Event, ReturnCode

from ompy_components.conduit.gni.rdma.buffers import BouncePool
from ompy_components.conduit.gni.rdma.descriptors import Descriptor, DescriptorPool
from ompy_components.conduit.gni.rdma.flags import (
    GC_POST_COMPLETION_FLAG,
    GC_POST_COMPLETION_OP,
    GC_POST_COPY,
    GC_POST_SEND,
    GC_POST_UNBOUNCE,
    GC_POST_UNREGISTER,
)
from ompy_components.conduit.gni.rdma.registrations import TemporaryRegistrations
from ompy_components.conduit.gni.resources import Resources


class Completions:
    """Takes the completions of a rank's posts, and does what their flags say."""

    def __init__(
        self,
        resources: Resources,
        descriptors: DescriptorPool,
        bounce: BouncePool,
        registrations: TemporaryRegistrations,
    ) -> None:
        self._trace, self._tracing = resources.tracing.trace, resources.tracing
        self._domain = resources.domain
        self._queue = resources.local_queue
        self._lock = resources.lock
        self._burst: int = resources.parameters.poll_burst
        self._descriptors = descriptors
        self._bounce = bounce
        self._registrations = registrations
        self._to_send: deque[Callable[[], object]] = deque()
        self._sending = False

    def poll(self) -> int:
        """Take up to a burst of completions. Returns how many there were.

        Raises:
            MPIError: a post has failed: the first of them. All are dealt with.
        """
        if self._is_idle():
            return 0
        events = self._take()
        problem: MPIError | None = None
        for event in events:
            post = event.post
            assert post is not None, "this queue is told of posts alone"
            found = post.context
            if not isinstance(found, Descriptor):
                assert callable(found), "a post of another part says whom to call"
                found(event)
            elif event.status is ReturnCode.SUCCESS:
                self.complete(found)
            else:
                failed = self._failed(found, event.status)
                problem = problem or failed
        if self._to_send and not self._sending:
            self._send()
        if problem is not None:
            raise problem
        return len(events)

    def _is_idle(self) -> bool:
        """Whether there is nothing to ask the NIC for: not at every turn of the rank."""
        all_free = len(self._descriptors) == self._descriptors.count
        return all_free and not self._to_send and not self._queue.count()

    def _take(self) -> list[Event]:
        events: list[Event] = []
        get_event = self._queue.get_event
        with self._lock:
            while len(events) < self._burst:
                code, event = get_event()
                if event is None:
                    break
                events.append(event)
                if code is ReturnCode.ERROR_RESOURCE:
                    raise MPIError(ERR_OTHER, "conduit: the queue of completions has overrun")
        return events

    def complete(self, made: Descriptor) -> None:
        """A post has been done: what its flags say, in `flags.ORDER`."""
        flags = made.flags
        if self._trace.active:
            self._tracing.done(made)
        if flags & GC_POST_COPY:
            raw.copy(made.target, 0, made.post.local, made.lead, len(made.target))
            self._domain.processor_copies(len(made.target))
        self.release(made)
        after, flag, transfer, is_get = made.after, made.flag, made.transfer, made.is_get
        made.clear()
        self._descriptors.give(made)
        if flags & GC_POST_COMPLETION_FLAG:
            assert flag is not None
            flag.raised = True
        if flags & GC_POST_COMPLETION_OP:
            assert transfer is not None
            transfer.done(is_get=is_get)
        if flags & GC_POST_SEND:
            assert after is not None
            self._to_send.append(after)

    def release(self, made: Descriptor) -> None:
        """Give back what a post used beside its descriptor."""
        if made.flags & GC_POST_UNREGISTER:
            assert made.registration is not None
            with self._lock:
                self._registrations.give(made.registration)
        if made.flags & GC_POST_UNBOUNCE:
            self._bounce.give(made.bounce)

    def drop(self, made: Descriptor) -> None:
        """A post has failed, or could not be begun: nobody is told."""
        self.release(made)
        made.clear()
        self._descriptors.give(made)

    def _failed(self, made: Descriptor, status: ReturnCode) -> MPIError:
        if self._trace.active:
            self._tracing.done(made, well=False)
        problem = MPIError(ERR_OTHER, f"conduit: {made!r} failed: {status.value}")
        self.drop(made)
        return problem

    def _send(self) -> None:
        """Send the messages whose puts are done; what sends may poll, and adds to the line."""
        self._sending = True
        try:
            while self._to_send:
                self._to_send.popleft()()
        finally:
            self._sending = False


class Joined(Transfer):
    """Several posts that are one transfer to who asked."""

    __slots__ = ("_left", "_transfer")

    def __init__(self, transfer: Transfer, count: int) -> None:
        self._transfer = transfer
        self._left = list(range(count))  # threads count by taking one out, which is whole

    def done(self, *, is_get: bool) -> None:
        """One of them is done."""
        if not self._left.pop():
            self._transfer.done(is_get=is_get)
