"""The pointer that all ranks of a file share: a word that all can add to.

Where all members are on one host and share memory for collective calls it is in that. Else it is in
a window of the first rank: ranks of its host reach it past its owner, from other hosts they wait
until that one is in a call of MPI, or has a thread for it (osc_base_progress_thread). No file is
made for it, so none is left.

There are two such words, of which one is in use. A call in which the pointer is moved by the first
rank stores its new place in the other one, before that rank says that it has come; and all turn to
that when all have come. So nobody sees it too early, nor too late, and nothing more is said.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import _thread
from array import array
from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.frameworks.coll import ALIKE
from ompy.frameworks.osc_base.word_locks import can_lock
from ompy.mpi.state import CommState

if TYPE_CHECKING:
    from ompy.mpi.windows.windows import Win

WORD: Final = 8  # bytes; POSIX: int64_t
PROGRESS: Final = 16  # looks at it; arbitrary: others get on at every so many
_ALIKE: Final = ALIKE
_WORD: Final = WORD
_PROGRESS: Final = PROGRESS
_ONES: Final = (1 << 64) - 1
ABLE: Final = 1  # what members say whose processors can change a word in one step
UNABLE: Final = 2


@cclass
class SharedPointer:
    """A number that the members of a communicator have in common: etypes of a view."""

    _engine: Any
    _lock: Any
    _looks: int
    _side: int
    _window: Any
    _words: memoryview[int] | None
    __slots__ = tuple(__annotations__)

    def __init__(self, comm: CommState) -> None:
        """Make it, 0; collective.

        Raises:
            MPIException: there is neither memory nor a window for it.
        """
        self._engine = comm.world.engine
        self._lock = _thread.allocate_lock()
        self._looks = 0
        self._side = 0
        self._window = None
        self._words = memoryview(bytearray(2 * WORD)) if comm.size == 1 else _common_words(comm)
        if self._words is None:
            self._window = _window_of(comm)

    @ccall
    def add_number(self, number: int) -> int:
        """Add to it; what it was before, which nobody else gets."""
        if self._words is None:
            return self._ask("SUM", number, self._side)
        at: int = self._side * _WORD
        with self._lock:
            before: U64 = raw.word(self._words, at)
            while not raw.swap_if(self._words, at, before, before + number & _ONES):
                before = raw.word(self._words, at)
        return before

    @ccall
    def value(self) -> int:
        """What it is."""
        if self._words is None:
            return self._ask("NO_OP", 0, self._side)
        self._looks += 1
        if self._looks % _PROGRESS == 0:
            self._engine.progress()
        return raw.signed_word(self._words, self._side * _WORD)

    @ccall
    def prepare_turn(self, number: int) -> None:
        """Say where it is to be after `turn`; the first rank does, before it says that it is here.

        No member is in the call that follows, so that none uses the other word.
        """
        side: int = 1 - self._side
        if self._words is None:
            self._ask("REPLACE", number, side)
        else:
            raw.put_word(self._words, side * _WORD, number)

    @ccall
    def turn(self) -> None:
        """All members have come, and `prepare_turn` was before that: it is there."""
        self._side = 1 - self._side

    @ccall
    def is_common(self) -> bool:
        """Whether all members see it at any time."""
        return self._words is not None

    @cfunc
    def _ask(self, name: str, number: int, side: int) -> int:
        """Have the first rank's window do something; what the pointer was before."""
        from ompy.mpi.collectives.operation import OPERATIONS

        given, was = array("q", [number]), array("q", [0])
        self._window.Fetch_and_op(given, was, 0, side, OPERATIONS[name])
        self._window.Flush(0)
        return was[0]

    def free(self) -> None:
        """Give it back; collective."""
        self._words = None
        if self._window is not None:
            self._window.Unlock_all()
            self._window.Free()
            self._window = None


def _common_words(comm: CommState) -> memoryview | None:
    """Memory of all members, if all can change its words in one step."""
    words = comm.coll.shared_words()
    if words is None:
        return None
    able = can_lock(one_at_a_time=comm.world.context.network.virtual)
    alike = comm.coll.compare_words(ABLE if able else UNABLE) == _ALIKE
    return words[: 2 * WORD] if able and alike else None


def _window_of(comm: CommState) -> Win:
    """A window with the words at the first rank."""
    from ompy.mpi.communicators.intracomm import Intracomm
    from ompy.mpi.constants import MODE_NOCHECK
    from ompy.mpi.windows.windows import Win

    size = 0 if comm.communicator.rank else 2 * WORD
    window = Win.Allocate(size, WORD, comm=Intracomm._adopt(comm))
    if size:
        window.tomemory()[:] = bytes(2 * WORD)
    line = comm.communicator.context.direct
    if line is not None and line.explores:
        line.note_never_loaded(window._state().window.communicator.context_id)
    Intracomm._adopt(comm).Barrier()
    window.Lock_all(MODE_NOCHECK)
    return window
