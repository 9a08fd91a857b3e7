"""The jobs of this user that run, and what their launchers say: the watching end of a live view."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, Final, NamedTuple

from ompy.runtime.launching.job_sockets import JobName, connect_in, jobs_in, key_in, open_folder

PATIENCE: Final = 10.0  # s; arbitrary: a launcher answers in ms, and ranks have half a second
SHORT: Final = 6  # letters of a job's id; arbitrary: two jobs that have the same are rare
READ_SIZE: Final = 65536  # bytes; arbitrary


class JobGone(Exception):
    """The job has ended, or its launcher does not speak to us."""


class LiveJob:
    """A connection to one launcher; any thread may ask, one at a time.

    Attributes:
        name: of its files.
    """

    def __init__(self, folder: int, name: JobName) -> None:
        """Connect.

        Raises:
            JobGone: there is no launcher any longer.
        """
        self.name = name
        self._lock = threading.Lock()
        self._read = bytearray()
        try:
            key = key_in(folder, name)
            made = connect_in(folder, name)
        except OSError as problem:
            raise JobGone(str(problem)) from None
        if made is None:
            raise JobGone("its launcher is dead")
        self._socket = made
        self._socket.settimeout(PATIENCE)
        try:
            self._send({"key": key})
        except JobGone:
            made.close()
            raise

    def ask_launcher(self, what: str) -> dict[str, Any]:
        """Ask one of `viewing.QUESTIONS`.

        Raises:
            JobGone: no answer comes.
        """
        with self._lock:
            self._send({"ask": what})
            found: dict[str, Any] = json.loads(self._line())
            return found

    def close(self) -> None:
        """Watch no longer."""
        self._socket.close()

    def _send(self, question: Mapping[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(question).encode() + b"\n")
        except OSError as problem:
            raise _gone(problem) from None

    def _line(self) -> bytes:
        while b"\n" not in self._read:
            try:
                data = self._socket.recv(READ_SIZE)
            except OSError as problem:
                raise _gone(problem) from None
            if not data:
                raise JobGone("it has ended")
            self._read += data
        line, _, rest = bytes(self._read).partition(b"\n")
        self._read = bytearray(rest)
        return line


def _gone(problem: OSError) -> JobGone:
    if isinstance(problem, TimeoutError):
        return JobGone(f"its launcher has said nothing for {PATIENCE:g} s")
    return JobGone("it has ended")


class Listed(NamedTuple):
    """A job that runs.

    Attributes:
        name: of its files.
        said: what its launcher says of it (`job`).
    """

    name: JobName
    said: Mapping[str, Any]


def list_jobs() -> list[Listed]:
    """The jobs of this user whose launchers answer; what dead ones have left is removed.

    Raises:
        PlantedError: somebody else has the folder where they would be.
    """
    try:
        folder = open_folder(make=False)
    except FileNotFoundError:
        return []
    try:
        found = []
        for name in jobs_in(folder):
            with suppress(JobGone):
                job = open_job(folder, name)
                if job is not None:
                    with closing(job):
                        found.append(Listed(name, job.ask_launcher("job")))
        return found
    finally:
        os.close(folder)


def open_job(folder: int, name: JobName) -> LiveJob | None:
    """Connect to a job; None where its launcher is dead, whose files are gone then."""
    with suppress(JobGone):
        return LiveJob(folder, name)
    with suppress(OSError):
        left = connect_in(folder, name)
        if left is not None:
            left.close()
    return None


def attach_to_job(word: str) -> LiveJob:
    """Connect to the job that is meant.

    Args:
        word: the beginning of its id, or its launcher's process; empty for the only one there is.

    Raises:
        JobGone: there is none, or more than one.
        PlantedError: somebody else has the folder where they would be.
    """
    jobs = [one.name for one in list_jobs()]
    meant = [name for name in jobs if name.job_id.startswith(word) or str(name.pid) == word]
    if len(meant) != 1:
        what = f"of the name {word}" if word else "of yours that runs"
        hint = f": {', '.join(name.job_id for name in meant)}" if meant else ""
        count = "more than one job" if meant else "no job"
        choose = f"; name one, as in ompy top {meant[0].job_id[:SHORT]}" if meant else ""
        raise JobGone(f"there is {count} {what} on this host{hint}{choose}; ompy ps lists them")
    folder = open_folder(make=False)
    try:
        return LiveJob(folder, meant[0])
    finally:
        os.close(folder)


def find_launcher(pid: int) -> LiveJob | None:
    """The job of a launcher that has just been started; None as long as it has no socket."""
    try:
        folder = open_folder(make=False)
    except OSError:
        return None
    try:
        for name in jobs_in(folder):
            if name.pid == pid:
                with suppress(JobGone):
                    return LiveJob(folder, name)
        return None
    finally:
        os.close(folder)
