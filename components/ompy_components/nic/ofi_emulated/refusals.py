"""Posts that a device refuses by habit, so that whoever posts has to try again."""

from __future__ import annotations


class Refusals:
    """Of one domain."""

    __slots__ = ("_every", "_posts")

    def __init__(self, every: int) -> None:
        """Refuse one in `every` posts; 0: none."""
        self._every = every
        self._posts = 0

    def refuses_next(self) -> bool:
        """Whether the post that comes now is one of them."""
        self._posts += 1
        return self._every > 0 and self._posts % self._every == 0
