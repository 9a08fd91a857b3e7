"""Try and wait: for one handle, some or all of several, and for implicit operations.

A `try_` call lets communication advance once and says whether what was asked for is complete.

Source: reference gasnet.md 2.
"""

# ruff: noqa: SLF001 - handles and ranks are private to users, not to this package

from __future__ import annotations

from collections.abc import MutableSequence

from ompy.data.request import Waitable
from ompy.gasnet.errors import BadArgument
from ompy.gasnet.handles import INVALID_HANDLE, Handle, ThreadState
from ompy.gasnet.vis import Vectors


class Syncs(Vectors):
    """What ends operations that are under way."""

    # --- explicit handles

    def wait_syncnb(self, handle: Handle) -> None:
        """Wait for an operation; the handle is used up.

        Raises:
            BadArgument: it has been synced already, belongs to another thread, is none or that of
                a value, or this thread may not wait now.
        """
        self._check_free()
        _check(handle, self._state())
        if not handle.complete:
            self._wait(handle)
        handle._release()

    def try_syncnb(self, handle: Handle) -> bool:
        """Whether an operation is complete; the handle is used up then. Raises as `wait_syncnb`."""
        self._check_free()
        _check(handle, self._state())
        if not handle.complete:
            self._progress()
            if not handle.complete:
                return False
        handle._release()
        return True

    def wait_syncnb_all(self, handles: MutableSequence[Handle]) -> None:
        """Wait for all of these operations; each place is INVALID_HANDLE then.

        Raises:
            BadArgument: as `wait_syncnb`; nothing has been waited for then.
        """
        self._check_handles(handles)
        for place, handle in enumerate(handles):
            if not handle.complete:
                self._wait(handle)
            _use_up(handles, place)

    def try_syncnb_all(self, handles: MutableSequence[Handle]) -> bool:
        """Whether all of these are complete; those that are, are used up. Raises alike."""
        self._check_handles(handles)
        if not all(handle.complete for handle in handles):
            self._progress()
        _use_up_complete(handles)
        return all(handle is INVALID_HANDLE for handle in handles)

    def wait_syncnb_some(self, handles: MutableSequence[Handle]) -> list[int]:
        """Wait for one or more of these operations.

        Returns:
            The places of those that are complete; each is INVALID_HANDLE now. Empty if there was
            nothing but INVALID_HANDLE to wait for.

        Raises:
            BadArgument: as `wait_syncnb`.
        """
        self._check_handles(handles)
        found = _use_up_complete(handles)
        if found or all(handle is INVALID_HANDLE for handle in handles):
            return found
        first = Waitable()

        def tell() -> None:
            if not first.complete:
                first.finish()

        with self._engine.lock:
            for handle in handles:
                if handle is not INVALID_HANDLE:  # which is complete, and told nobody's news
                    handle.notify(tell)
        self._wait(first)
        return _use_up_complete(handles)

    def try_syncnb_some(self, handles: MutableSequence[Handle]) -> list[int]:
        """The places of those of these operations that are complete; each is used up.

        Raises:
            BadArgument: as `wait_syncnb`.
        """
        self._check_handles(handles)
        if not any(handle.complete for handle in handles):
            self._progress()
        return _use_up_complete(handles)

    # --- implicit operations

    def wait_syncnbi_gets(self) -> None:
        """Wait for this thread's implicit gets.

        Raises:
            BadArgument: an access region is open, or this thread may not wait now.
        """
        self._wait_implicit(gets=True, puts=False)

    def wait_syncnbi_puts(self) -> None:
        """Wait for this thread's implicit puts. Raises as `wait_syncnbi_gets`."""
        self._wait_implicit(gets=False, puts=True)

    def wait_syncnbi_all(self) -> None:
        """Wait for all of this thread's implicit operations. Raises as `wait_syncnbi_gets`."""
        self._wait_implicit(gets=True, puts=True)

    def try_syncnbi_gets(self) -> bool:
        """Whether this thread's implicit gets are complete. Raises as `wait_syncnbi_gets`."""
        return self._try_implicit(gets=True, puts=False)

    def try_syncnbi_puts(self) -> bool:
        """Whether this thread's implicit puts are complete. Raises as `wait_syncnbi_gets`."""
        return self._try_implicit(gets=False, puts=True)

    def try_syncnbi_all(self) -> bool:
        """Whether all of them are complete. Raises as `wait_syncnbi_gets`."""
        return self._try_implicit(gets=True, puts=True)

    # --- below

    def _check_handles(self, handles: MutableSequence[Handle]) -> None:
        self._check_free()
        if not isinstance(handles, MutableSequence):
            raise BadArgument(f"{type(handles).__name__} is no list, whose places can be used up")
        state = self._state()
        for handle in handles:
            _check(handle, state)
        real = [id(handle) for handle in handles if handle is not INVALID_HANDLE]
        if len(set(real)) != len(real):
            raise BadArgument("a handle is there twice: it can be synced once")

    def _wait_implicit(self, *, gets: bool, puts: bool) -> None:
        self._check_implicit()
        operations = self._state().implicit
        if not operations.under_way(gets=gets, puts=puts):
            return
        self._wait_for(lambda: not operations.under_way(gets=gets, puts=puts))

    def _try_implicit(self, *, gets: bool, puts: bool) -> bool:
        self._check_implicit()
        operations = self._state().implicit
        if operations.under_way(gets=gets, puts=puts):
            self._progress()
        return not operations.under_way(gets=gets, puts=puts)

    def _check_implicit(self) -> None:
        self._check_free()
        if self._state().region is not None:
            raise BadArgument("an access region is open: end it, and sync its handle")


def _check(handle: Handle, state: ThreadState) -> None:
    """Raises: BadArgument: this is no handle that this thread may sync here."""
    if handle.__class__ is not Handle:
        if isinstance(handle, Handle):
            raise BadArgument("this handle is that of a value: wait_syncnb_valget is for it")
        raise BadArgument(f"{handle!r} is no handle")
    handle._check(state)


def _use_up(handles: MutableSequence[Handle], place: int) -> None:
    handles[place]._release()
    handles[place] = INVALID_HANDLE


def _use_up_complete(handles: MutableSequence[Handle]) -> list[int]:
    """Use up those that are complete; their places."""
    found = [
        place
        for place, handle in enumerate(handles)
        if handle.complete and handle is not INVALID_HANDLE
    ]
    for place in found:
        _use_up(handles, place)
    return found
