"""Work for forks of this process, as many at a time as there are cores."""

from __future__ import annotations

import os
import selectors
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import NamedTuple

FAILED = 1  # exit code of a fork whose work raised


class RefusalError(Exception):
    """What a piece of work raises when its text says it all."""


class WorkFailed(Exception):
    """A piece of work raised; the text is the last line of what it said, and what it was."""


class _Running(NamedTuple):
    name: str
    process: int
    said: bytearray


class Forks:
    """Runs pieces of work, each in a fork of this process.

    What a piece writes is shown only when it fails.
    """

    def __init__(self, most: int) -> None:
        """Run none yet.

        Args:
            most: how many at a time.
        """
        self._most = most
        self._selector = selectors.DefaultSelector()

    def run_in_forks(self, works: Iterator[tuple[str, Callable[[], object]]]) -> Iterator[str]:
        """Run them all. Yields the name of each that is done.

        Args:
            works: name and work; the next is taken when the one before has begun.

        Raises:
            WorkFailed: one raised; those that were running are waited for.
        """
        try:
            for name, work in works:  # the next is prepared while others run
                while len(self._selector.get_map()) >= self._most:
                    yield from self._wait()
                self._start(name, work)
            while self._selector.get_map():
                yield from self._wait()
        finally:
            for key in list(self._selector.get_map().values()):
                os.waitpid(key.data.process, 0)
            self._selector.close()

    def _start(self, name: str, work: Callable[[], object]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            os.close(reading)
            os.close(writing)
            sys.stdout = sys.stderr = open(1, "w", closefd=False)  # noqa: SIM115 - the fork's own
            os._exit(_code_of(work))
        os.close(writing)
        self._selector.register(reading, selectors.EVENT_READ, _Running(name, process, bytearray()))

    def _wait(self) -> Iterator[str]:
        for key, _ in self._selector.select():
            running: _Running = key.data
            text = os.read(key.fd, 65536)
            running.said.extend(text)
            if text:
                continue
            self._selector.unregister(key.fd)
            os.close(key.fd)
            _, status = os.waitpid(running.process, 0)
            if status:
                raise WorkFailed(f"{running.name}: {_told(bytes(running.said), status)}")
            yield running.name


def _code_of(work: Callable[[], object]) -> int:
    try:
        work()
    except RefusalError as problem:
        print(problem, file=sys.stderr)
        return FAILED
    except BaseException as problem:
        traceback.print_exc()
        print(problem, file=sys.stderr)
        return FAILED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _told(said: bytes, status: int) -> str:
    """What a piece of work that failed has said, or how it ended if it said nothing."""
    text = said.decode(errors="replace").strip()
    return text or f"ended with {os.waitstatus_to_exitcode(status)}"
