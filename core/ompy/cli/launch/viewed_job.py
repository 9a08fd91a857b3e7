"""`ompy-run --view`: the job runs in a process of its own, and its live view on this terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Final

from ompy.cli.launch.command_line import SAMPLE_RAILS, CommandError, parse_command_line
from ompy.cli.watching.live import NO_TEXTUAL
from ompy.cli.watching.live_jobs import JobGone, LiveJob, find_launcher
from ompy.runtime.ranks.environment import OWN_CODE

KEPT: Final = 4 * 1024 * 1024  # bytes of output; arbitrary: more than anybody reads again
READ_SIZE: Final = 65536  # bytes; what a Linux pipe holds
VIEW: Final = ("--view", "-view")


class Output:
    """What the job writes: to the view while there is one, and then to standard output."""

    def __init__(self, stream: IO[bytes]) -> None:
        """Read from now on."""
        self._stream = stream
        self._kept: deque[bytes] = deque()
        self._size = 0
        self._show: Callable[[str], object] | None = None
        self._plain = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="ompy output", daemon=True)
        self._thread.start()

    def show_in(self, show: Callable[[str], object]) -> None:
        """Tell the view all that has come and that comes."""
        with self._lock:
            self._show = show
            for data in self._kept:
                show(data.decode(errors="replace").rstrip("\n"))

    def leave_view(self) -> None:
        """There is none any longer: what was kept is written, and all that comes."""
        with self._lock:
            self._show, self._plain = None, True
            while self._kept:
                _write(self._kept.popleft())

    def finish(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def _read(self) -> None:
        while data := os.read(self._stream.fileno(), READ_SIZE):
            with self._lock:
                if self._plain:
                    _write(data)
                    continue
                self._kept.append(data)
                self._size += len(data)
                while self._size > KEPT:
                    self._size -= len(self._kept.popleft())
                show = self._show
            if show is not None:
                show(data.decode(errors="replace").rstrip("\n"))


def _write(data: bytes) -> None:
    with suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def run_viewed(arguments: Sequence[str]) -> int:
    """Run a job below its live view. Returns the job's exit code.

    Args:
        arguments: of `ompy-run`, with `--view` among them.

    Raises:
        CommandError: there is no Textual, or no terminal.
    """
    try:
        from ompy.cli.watching.top_app import TopApp
    except ImportError:
        raise CommandError(f"--view: {NO_TEXTUAL}") from None
    if not (os.isatty(0) and os.isatty(1)):
        raise CommandError("--view needs a terminal; ompy top JOB watches from another one")
    command = [sys.executable, *OWN_CODE, "-m", "ompy.cli.run", *without_view(arguments)]
    child = subprocess.Popen(  # noqa: S603 - ourselves
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert child.stdout is not None, "it was asked for"
    output = Output(child.stdout)

    def connect() -> LiveJob | None:
        if child.poll() is not None:
            raise JobGone(f"it ended with {child.returncode}")
        return find_launcher(child.pid)

    def interrupt() -> None:
        child.send_signal(signal.SIGINT)

    try:
        TopApp(connect, interrupt=interrupt, follow=output.show_in).run()
    finally:
        output.leave_view()
    output.finish()
    return _shell_code(child.wait())


def asks_for_view(arguments: Sequence[str]) -> bool:
    """Whether `--view` is an option there, and no word of the program's.

    Raises:
        CommandError: the command line is wrong.
        Answered: help or version was asked for and has been printed.
    """
    return bool(parse_command_line(arguments)[0].options["view"])


def without_view(arguments: Sequence[str]) -> list[str]:
    """The words of the job itself, whose rails are counted: somebody watches them."""
    words = list(arguments)
    place = next(place for place, word in enumerate(words) if word in VIEW)
    words[place : place + 1] = ["--mca", SAMPLE_RAILS, "1"]
    return words


def _shell_code(code: int) -> int:
    """An exit code as a shell has it."""
    return 128 - code if code < 0 else code
