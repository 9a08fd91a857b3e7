"""What becomes of a rank of a replayed job that diverges, or whose recording ends."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from ompy import outputs

if TYPE_CHECKING:
    from ompy.runtime.ranks.process import RankProcess

# exit code of a replay in which the program has done something else; arbitrary: behind those of a
# fault that never struck (3), a deadlock (4) and a finding of --check (5)
DIVERGED: Final = 6
MEETING: Final = ".ended"  # a folder in the recording: who is where its recording ends
# what is in a rank's file there
OVER: Final = b"over"  # it was killed here, or the job was
MENDED: Final = b"mended"  # it had failed here, and does not
LOOKS_S: Final = 0.01  # arbitrary: between two looks at it


class JobOutcome:
    """One rank's, of a replay of the whole job."""

    def __init__(self, process: RankProcess, directory: str) -> None:
        """Nothing has happened yet.

        Args:
            process: the rank.
            directory: of the recording.
        """
        self._process = process
        values = process.registry.values("record")
        self._unfinished, self._patience = values.unfinished, values.patience
        self._folder = os.path.join(directory, f"{MEETING}-{process.context.job_id.hex()}")

    def diverged(self, text: str) -> NoReturn:
        """Say it, and end the job."""
        outputs.tell(f"ompy replay: {text}\n", "diverged", "error")
        self._process.context.wireup.abort(DIVERGED, "it does not do what it did")
        raise SystemExit(DIVERGED)  # a wire-up that lives on in its process

    def ended(self, text: str) -> NoReturn:
        """Say it, and let the others come as far as they can."""
        self._leave_with(text, OVER)

    def mended(self, text: str) -> NoReturn:
        """Likewise."""
        self._leave_with(text, MENDED)

    def _leave_with(self, text: str, why: bytes) -> NoReturn:
        outputs.tell(f"ompy replay: {text}\n", "recording ends")
        names: set[str] = set()
        with suppress(OSError):  # of a recording that cannot be written nobody is waited for
            os.makedirs(self._folder, exist_ok=True)
            mark = os.path.join(self._folder, str(self._process.context.rank))
            with open(mark, "wb") as file:
                file.write(why)
            until = time.monotonic() + self._patience
            while len(names) < self._unfinished and time.monotonic() < until:
                self._process.context.engine.progress()  # others may need what this one has
                time.sleep(LOOKS_S)
                here = {name for name in os.listdir(self._folder) if name.isdecimal()}
                if here != names:
                    names, until = here, time.monotonic() + self._patience
        # as one that has finalized: the job ends when all have
        tell_finalized = getattr(self._process.context.wireup, "finalized", None)
        if tell_finalized is not None:
            tell_finalized({})
        leave_now(0)


def is_over(directory: str) -> bool:
    """Whether a rank of a replay is where it was killed.

    Args:
        directory: of the recording.
    """
    marks = Path(directory).glob(f"{MEETING}-*/*")
    return any(mark.name.isdecimal() and mark.read_bytes() == OVER for mark in marks)


def leave_now(code: int) -> NoReturn:
    """End this process: its program is where it cannot go on."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed, or there is none
            continue
    os._exit(code)
