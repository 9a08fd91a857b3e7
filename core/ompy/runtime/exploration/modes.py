"""Both modes of buffering: one after the other, or the second beside the first on another core.

They have no world in common. What is found, and the order in which it is told, is the same.
"""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Generator, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from ompy.runtime.exploration.explorer import Bounds, Checker, Explored, Explorer
from ompy.runtime.simulation.simulated_world import Scenario
from ompy.runtime.simulation.twins import die_with_parent

MODES: Final = (True, False)  # standard sends buffer, or wait


def explore_modes(
    scenario: Scenario,
    bounds: Bounds,
    plains: Mapping[bool, Mapping[str, Any]],
    *,
    jobs: int,
    checkers: Mapping[bool, Checker],
) -> Generator[tuple[bool, Explored], None, None]:
    """What is found in each mode; whoever needs no more of them closes the iterator.

    Args:
        scenario: with `exploring`; the mode is another one in each.
        bounds: of each.
        plains: searches of earlier runs, by mode.
        jobs: processes at a time.
        checkers: look at the worlds of each mode, where the program is checked.

    Raises:
        KeyboardInterrupt: where that is not a part of what is found.
    """
    first, second = (
        Explorer(
            _in_mode(scenario, buffers=buffers),
            bounds,
            plains.get(buffers),
            checkers.get(buffers),
        )
        for buffers in MODES
    )
    other = _Beside(second) if jobs > 1 else None
    try:
        found = first.explore_all()
        if found.interrupted and other is not None:
            other.interrupt_search()
        yield True, found
        if other is not None:
            yield False, other.result()
        elif not found.interrupted:
            yield False, second.explore_all()
    finally:
        if other is not None:
            other.end_process()


def _in_mode(scenario: Scenario, *, buffers: bool) -> Scenario:
    exploring = scenario.exploring
    assert exploring is not None, "it is a world that is explored"
    return scenario._replace(exploring=exploring._replace(buffers=buffers))


class _Beside:
    """An explorer in a process of its own."""

    def __init__(self, explorer: Explorer) -> None:
        self._result, told = os.pipe()
        self._process = os.fork()
        if not self._process:
            _be(explorer, told)
        os.close(told)

    def result(self) -> Explored:
        """Wait for what it finds."""
        data = b""
        while more := os.read(self._result, 1 << 20):
            data += more
        if not data:
            raise RuntimeError("the process of the second mode of buffering has gone")
        found = pickle.loads(data)  # noqa: S301 - from our own fork
        if isinstance(found, BaseException):
            raise found
        assert isinstance(found, Explored), "it says nothing else"
        return found

    def interrupt_search(self) -> None:
        """Have it say what it has found so far."""
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGINT)

    def end_process(self) -> None:
        """End it, with what it runs."""
        os.close(self._result)
        with suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


def _be(explorer: Explorer, told: int) -> NoReturn:
    die_with_parent()
    os.setpgrp()  # whoever started it tells it of Ctrl-C, once
    try:
        try:
            found: Any = explorer.explore_all()
        except KeyboardInterrupt:  # before anything was known
            found = Explored(0, 0, 1, False, None, interrupted=True)
        except BaseException as problem:  # it is told where the first mode's would be
            found = problem
        data = memoryview(pickle.dumps(found))
        while data:
            data = data[os.write(told, data) :]
    finally:
        os._exit(0)
