"""Handler-safe locks, the only ones a handler may take, and no-interrupt sections.

Who holds one does not communicate: not even a handler its reply. So its holder never waits for a
message, and a handler that waits for it waits a short time. Who has taken one in a handler gives
it back in the same.

Source: reference gasnet.md 1 (HSLs).
"""

from __future__ import annotations

import _thread
from _thread import get_ident

from ompy.gasnet.barriers import Barriers
from ompy.gasnet.errors import BadArgument


class Hsl:
    """A handler-safe lock of one rank; `with` takes it and gives it back."""

    __slots__ = ("_alive", "_held", "_inner", "_owner")

    def __init__(self, held: dict[int, list[Hsl]]) -> None:
        """Made by `Locks.hsl`; `held` are the rank's, by thread that holds them."""
        self._held = held
        self._inner = _thread.allocate_lock()
        self._owner = 0
        self._alive = True

    def lock(self) -> None:
        """Take it, once another thread has given it back.

        Raises:
            BadArgument: this thread holds it, or it has been destroyed.
        """
        self._check()
        self._inner.acquire()
        self._taken()

    def trylock(self) -> bool:
        """Take it, unless another thread has it; whether it was taken. Raises as `lock`."""
        self._check()
        if not self._inner.acquire(False):
            return False
        self._taken()
        return True

    def unlock(self) -> None:
        """Give it back.

        Raises:
            BadArgument: this thread does not hold it.
        """
        me = get_ident()
        if self._owner != me:
            raise BadArgument("a handler-safe lock is unlocked by the thread that holds it")
        self._owner = 0
        held = self._held[me]
        held.remove(self)
        if not held:
            del self._held[me]
        self._inner.release()

    def destroy(self) -> None:
        """Have it used no more.

        Raises:
            BadArgument: it is held, or has been destroyed.
        """
        if not self._alive or self._owner:
            raise BadArgument("a handler-safe lock is destroyed once, and when nobody holds it")
        self._alive = False

    def _check(self) -> None:
        if not self._alive:
            raise BadArgument("this handler-safe lock has been destroyed")
        if self._owner == get_ident():
            raise BadArgument("this thread holds the handler-safe lock already: it is no recursive")

    def _taken(self) -> None:
        me = self._owner = get_ident()
        self._held.setdefault(me, []).append(self)

    def __enter__(self) -> Hsl:
        self.lock()
        return self

    def __exit__(self, *problem: object) -> None:
        self.unlock()


class Locks(Barriers):
    """Locks and no-interrupt sections."""

    def hsl(self) -> Hsl:
        """A new handler-safe lock."""
        return Hsl(self._held)

    def hold_interrupts(self) -> None:
        """Begin a no-interrupt section of this thread.

        Handlers run in polls only, so there is nothing to hold back; but what may not be called in
        such a section is refused. In a handler, which is one already, it does nothing.

        Raises:
            BadArgument: the thread is in one: they do not nest.
        """
        me = get_ident()
        if me in self._handling:
            return
        if me in self._quiet:
            raise BadArgument("this thread is in a no-interrupt section: they do not nest")
        self._quiet.add(me)

    def resume_interrupts(self) -> None:
        """End it.

        Raises:
            BadArgument: there is none.
        """
        me = get_ident()
        if me in self._handling:
            return
        if me not in self._quiet:
            raise BadArgument("this thread is in no no-interrupt section")
        self._quiet.discard(me)
