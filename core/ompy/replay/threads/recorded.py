"""Which thread of a rank makes the next call of MPI, written down where it is another one.

Whoever begins something in the PML, or is told something, does it *in turn*: under one lock, with
an entry before it if the last one was another thread's. So what is begun is begun in the order of
the file. Waiting is not part of a turn.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Final

from ompy.replay.events import NEVER, Prefix, Thread, Turn
from ompy.replay.threads.names import MAIN, path_here

if TYPE_CHECKING:
    from ompy.replay.recorder import Recorder

STRANGER: Final = (
    "a thread that threading.Thread did not start calls MPI: which one, no replay can tell"
)


class RecordedThreads:
    """One rank's, from when its program has started a thread.

    Attributes:
        lock: whoever has it is the only one to begin something.
    """

    def __init__(self, recorder: Recorder) -> None:
        """The main thread is the only one that has done anything."""
        self.lock = RLock()
        self._recorder = recorder
        self._last = MAIN
        self._numbers: dict[str, int] = {}
        self._counts: dict[str, tuple[int, int]] = {}  # of threads whose turn it is not

    def __enter__(self) -> None:
        """Begin a turn."""
        self.lock.acquire()
        try:
            path = path_here()
            if path != self._last:
                self._change_to(path)
        except BaseException:
            self.lock.release()
            raise

    def __exit__(self, *problem: object) -> None:
        """What was to be done in turn is done."""
        self.lock.release()

    def _change_to(self, path: str) -> None:
        """Write that it is another one's turn; what counts calls is that one's from now on."""
        recorder, pml = self._recorder, self._recorder.pml
        if not path:
            recorder.note_unreplayable(NEVER, STRANGER)
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self._numbers) + 1
            recorder.write_entry(Thread(number, path))
        counted = (pml.calls, pml.digest)
        recorder.end_noes()
        recorder.write_entry(Turn(Prefix(recorder.lines.number_of_caller(), *counted), number))
        self._counts[self._last] = counted
        pml.calls, pml.digest = self._counts.get(path, (0, 0))
        self._last = path
