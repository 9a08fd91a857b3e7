"""What a module has to come back to although nobody calls it: what waits, and what is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.compiled import ccall, cclass

if TYPE_CHECKING:
    from ompy.frameworks.paths.path_keeper import PathKeeper


@cclass
class Attention:
    """Of one module.

    Attributes:
        starved: somebody was refused and will try again; who looks for that takes it back.
    """

    _keeper: PathKeeper
    starved: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, keeper: PathKeeper) -> None:
        """Have the keeper of the module's paths watch over them."""
        self._keeper = keeper
        self.starved = False

    @ccall
    def waits_for_room(self) -> None:
        """Somebody was refused and will try again: a rank that sleeps looks again soon."""
        self.starved = True

    @ccall
    def watch_over(self) -> None:
        """Something is under way: look now and then whether anything is heard."""
        if not self._keeper.watching:
            self._keeper.watch_over()
