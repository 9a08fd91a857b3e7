"""What a rank waits for in a window of memory that all have mapped, and whom that needs.

Words of posts and completes only grow, and nothing of them is under way: who sleeps has told all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ompy.frameworks.needs import COMPLETE, POST, Need, Needing
from ompy.frameworks.osc_base.waits import lock_need

if TYPE_CHECKING:
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.osc_base.word_posts import WordPosts


class AwaitLock(Needing):
    """Tries to have a lock, until it has it or that is in vain.

    Attributes:
        held: it has it.
    """

    __slots__ = ("_alone", "_attempt", "_communicator", "_number", "_vain", "held")

    def __init__(
        self,
        communicator: Communicator,
        number: int,
        *,
        alone: bool,
        attempt: Callable[[], bool],
        vain: Callable[[], bool],
    ) -> None:
        """Wait.

        Args:
            communicator: of the window.
            number: of the lock; from the number of members on those of accumulates.
            alone: nobody else may have it.
            attempt: tries once.
            vain: says that it will not be given back.
        """
        self._communicator = communicator
        self._number = number
        self._alone = alone
        self._attempt = attempt
        self._vain = vain
        self.held = False

    def __call__(self) -> bool:
        """Try."""
        self.held = self.held or self._attempt()
        return self.held or self._vain()

    def need(self) -> Need | None:
        """That who has it gives it back. Nobody has one of accumulates for long."""
        communicator = self._communicator
        if self.held or self._vain() or communicator.revoked or self._number >= communicator.size:
            return None
        return lock_need(communicator, self._number, alone=self._alone)


class AwaitPost(Needing):
    """Whether a target has posted, or will not any more."""

    __slots__ = ("_communicator", "_left", "_posts", "_target")

    def __init__(
        self,
        communicator: Communicator,
        posts: WordPosts,
        target: int,
        left: Callable[[int], bool],
    ) -> None:
        self._communicator = communicator
        self._posts = posts
        self._target = target
        self._left = left

    def __call__(self) -> bool:
        """Look."""
        return self._posts.has_post(self._target) or self._left(self._target)

    def need(self) -> Need | None:
        """That it posts."""
        return None if self() else Need(POST, self._communicator, (self._target,))


class AwaitCompletes(Needing):
    """Whether each origin has completed, or will not any more."""

    __slots__ = ("_communicator", "_left", "_origins", "_posts")

    def __init__(
        self,
        communicator: Communicator,
        posts: WordPosts,
        origins: Sequence[int],
        left: Callable[[int], bool],
    ) -> None:
        self._communicator = communicator
        self._posts = posts
        self._origins = origins
        self._left = left

    def __call__(self) -> bool:
        """Look."""
        return all(self._posts.has_completed(each) or self._left(each) for each in self._origins)

    def need(self) -> Need | None:
        """That those complete that have not."""
        missing = tuple(each for each in self._origins if not self._posts.has_completed(each))
        return Need(COMPLETE, self._communicator, missing) if missing else None
