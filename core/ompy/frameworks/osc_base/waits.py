"""What a rank waits for in a window over messages, and whom that needs.

An answer of a target needs nobody: it comes from any call of MPI that the target is in. So only a
lock, a `Post` and a `Complete` are needs, and a barrier, which is a collective call. What has come
and is not looked at yet is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ompy.data.request import Request
from ompy.frameworks.direct import EXPOSURE
from ompy.frameworks.needs import COMPLETE, LOCK, POST, Need, Needing
from ompy.frameworks.osc_base.pending import Pending

if TYPE_CHECKING:
    from ompy.data.request import Waitable
    from ompy.engine.base import Engine
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.direct import DirectLine, Whole
    from ompy.frameworks.osc_base.listener import Listener
    from ompy.frameworks.osc_base.pending import Peer
    from ompy.frameworks.osc_base.target import Channel


def lock_need(communicator: Communicator, target: int, *, alone: bool) -> Need:
    """That all who have a lock give it back.

    Args:
        communicator: of the window.
        target: whose lock.
        alone: nobody else may have it.
    """
    others = tuple(rank for rank in range(communicator.size) if rank != communicator.rank)
    return Need(LOCK, communicator, others, target=target, alone=alone)


class AskedLock(Pending, Needing):
    """A lock that its target was asked for."""

    __slots__ = ("_alone", "_communicator", "_target")

    def __init__(
        self, communicator: Communicator, target: int, *, alone: bool, keep: object
    ) -> None:
        super().__init__(keep)
        self._communicator = communicator
        self._target = target
        self._alone = alone

    def need(self) -> Need | None:
        """That it is given back; if its target has left, that is told instead."""
        communicator = self._communicator
        if communicator.revoked or communicator.procs[self._target].left:
            return None
        return lock_need(communicator, self._target, alone=self._alone)


class OwnLock(Request, Needing):
    """The lock of the rank's own part."""

    def __init__(self, communicator: Communicator, *, alone: bool) -> None:
        super().__init__()
        self._communicator = communicator
        self._alone = alone

    def need(self) -> Need | None:
        """That it is given back."""
        if self._communicator.revoked:
            return None
        return lock_need(self._communicator, self._communicator.rank, alone=self._alone)


class AwaitPost(Needing):
    """Whether a target has posted, or will not any more."""

    __slots__ = ("_communicator", "_gone", "_listener", "_peer")

    def __init__(
        self,
        communicator: Communicator,
        listener: Listener,
        peer: Peer,
        gone: Callable[[int], bool],
    ) -> None:
        self._communicator = communicator
        self._listener = listener
        self._peer = peer
        self._gone = gone

    def __call__(self) -> bool:
        """Look."""
        return bool(self._peer.posts or self._gone(self._peer.rank))

    def need(self) -> Need | None:
        """That it posts."""
        if self._peer.posts or not self._listener.is_idle():
            return None
        return Need(POST, self._communicator, (self._peer.rank,))


class AwaitCompletes(Needing):
    """Whether each origin has completed, or will not any more.

    Where all that can be is tried, the world says when the rank is told.
    """

    __slots__ = ("_channels", "_communicator", "_gone", "_listener", "_whole")

    def __init__(
        self,
        communicator: Communicator,
        listener: Listener,
        channels: Sequence[Channel],
        gone: Callable[[int], bool],
    ) -> None:
        self._communicator = communicator
        self._listener = listener
        self._channels = channels
        self._gone = gone
        self._whole: Whole | None = None
        line = communicator.context.direct
        if line is not None and line.explores:
            self._begin_whole(line)

    def _begin_whole(self, line: DirectLine) -> None:
        whole = self._whole = line.begin_whole(self._communicator.context_id, EXPOSURE)
        whole.of = self
        missing = {each.origin for each in self._channels if not each.completes}

        def came(channel: Channel) -> None:
            channel.on_complete = None
            missing.discard(channel.origin)
            if not missing:
                line.end_whole(whole)

        for each in self._channels:
            each.on_complete = partial(came, each) if each.origin in missing else None
        if not missing:
            line.end_whole(whole)

    def wait(self, engine: Engine) -> None:
        """Wait for that."""
        if self._whole is not None:
            engine.wait(self._whole)
        elif not self():
            engine.wait_until(self)

    def __call__(self) -> bool:
        """Look."""
        if self._whole is not None:
            return self._whole.complete
        return all(each.completes or self._gone(each.origin) for each in self._channels)

    def need(self) -> Need | None:
        """That those complete that have not."""
        missing = [each for each in self._channels if not each.completes]
        under_way = any(each.is_busy() for each in missing)
        if not missing or under_way or not self._listener.is_idle():
            return None
        return Need(COMPLETE, self._communicator, tuple(each.origin for each in missing))


class AwaitMeeting(Needing):
    """Whether a barrier is over, or a member of it will not come any more."""

    __slots__ = ("_gone", "_members", "_request")

    def __init__(self, request: Request, members: int, gone: Callable[[int], bool]) -> None:
        self._request = request
        self._members = members
        self._gone = gone

    def __call__(self) -> bool:
        """Look."""
        return self._request.complete or any(map(self._gone, range(self._members)))

    def need(self) -> Waitable:
        """What the barrier needs."""
        return self._request
