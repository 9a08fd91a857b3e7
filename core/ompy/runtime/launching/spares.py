"""Processes that wait to be ranks of worlds that come later: `ompy-run --spares`.

A spare is a fork of the warm agent that has its pipes and its registration socket, and sleeps until
it is told which rank it is and what it runs. So a `Spawn` in the place of ranks that died starts no
process.
An order is a line of JSON; an empty line ends it. It lets go of what else the agent has, so that
nobody takes an end that it still holds for the agent's, and dies with the agent as ranks do.

A program that cannot be run in a fork (`warm.py`) takes no spare.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ompy.frameworks.job import App
from ompy.runtime.ranks.spawn import Spawned
from ompy.runtime.ranks.warm import Program

NOBODY = App((), 0)


class Spare(NamedTuple):
    """One that waits.

    Attributes:
        process: what the agent has of it, as of any rank.
        orders: write end of the pipe that it reads from.
    """

    process: Spawned
    orders: int

    def become_rank(self, app: App, environment: Mapping[str, str], program: Program) -> Spawned:
        """It is a rank now.

        Args:
            app: its program.
            environment: its variables, but for the registration socket.
            program: the same, as a fork runs it.

        Raises:
            OSError: it has been killed.
        """
        told = {"app": app._asdict(), "environment": dict(environment), "program": list(program)}
        self._write(json.dumps(told).encode())
        return self.process

    def dismiss(self) -> None:
        """It is not needed; the agent gives its ends back."""
        with suppress(OSError):
            self._write(b"")
        self.process.registration.close()
        for end in (self.process.stdout, self.process.stderr):
            os.close(end)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line + b"\n")
        try:
            while rest:
                rest = rest[os.write(self.orders, rest) :]
        finally:
            os.close(self.orders)


def await_order(orders: int, kept: Iterable[int]) -> tuple[App, dict[str, str], Program]:
    """In the spare: sleep until it is told what it is. It may end here.

    Args:
        orders: read end of the pipe; the caller closes it.
        kept: descriptors that are its own, beside the standard ones.
    """
    own = {0, 1, 2, orders, *kept}
    null = os.open(os.devnull, os.O_RDONLY)
    for name in os.listdir("/proc/self/fd"):
        if int(name) in own:
            continue
        with suppress(OSError):  # the agent's functions will close them by their numbers
            if not os.get_inheritable(int(name)):  # what our caller gave all ranks stays
                os.dup2(null, int(name), inheritable=False)
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(orders, 1 << 16)
        if not data:  # the agent has gone
            os._exit(0)
        line += data
    if line == b"\n":
        os._exit(0)
    told: dict[str, Any] = json.loads(line)
    fields = told["app"]
    app = App(**{**fields, "argv": tuple(fields["argv"])})
    executable, kind, what, *words = told["program"]
    return app, told["environment"], Program(executable, kind, what, *map(tuple, words))
