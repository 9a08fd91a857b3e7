"""What a rank's process has in place of a wire-up: the scheduler's board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ompy.frameworks.proc import Modex, Proc
from ompy.frameworks.wireup import Inquiry, WireUp
from ompy.runtime.simulation.conducted import Conducted

if TYPE_CHECKING:
    from ompy.frameworks.job import Job


class RemoteWireUp(WireUp):
    """put, fence and get through the scheduler's board."""

    def __init__(self, world: Conducted, job: Job) -> None:
        """Publish nothing yet.

        Args:
            world: the scheduler.
            job: as it was when this rank began.
        """
        self.job = job
        self._world = world
        self._mine: dict[str, bytes] = {}
        self._asked: dict[int, Inquiry] = {}
        self._asks = 0
        world.on_answer = self._answered

    def publish(self, key: str, value: bytes) -> None:
        """Keep until `commit`."""
        self._mine[key] = bytes(value)

    def commit(self) -> None:
        """Put on the board."""
        self._world.call("commit", dict(self._mine))

    def lookup(self, rank: int) -> Modex:
        """Wait for a rank's entry."""
        found: dict[str, bytes] = self._world.call("lookup", rank)
        return found

    def fence(self) -> None:
        """Wait for everybody."""
        self._world.call("fence")

    def procs_from(self, rank: int) -> list[Proc]:
        """Those that the scheduler knows of."""
        return [Proc(*row) for row in self._world.call("placed", rank)]

    def ask_launcher(self, what: str, header: Mapping[str, Any], body: bytes = b"") -> Inquiry:
        """Ask the scheduler, in place of a launcher."""
        self._asks += 1
        inquiry = self._asked[self._asks] = Inquiry(self._asks)
        self._world.call("ask", {**header, "what": what, "ask": self._asks}, body)
        return inquiry

    def _answered(self, ask: int, code: int, body: bytes) -> None:
        inquiry = self._asked.pop(ask)
        if code:
            inquiry.fail(code, body.decode())
        else:
            inquiry.answer = body
            inquiry.finish()

    def leaving(self, told: Sequence[int]) -> None:
        """Tell the scheduler with the next call."""
        self._world.later("leaving", list(told))

    def finalized(self, calls: dict[str, Any]) -> None:
        """This rank has finalized, with this account of its collective calls."""
        self._world.later("finalized", calls)

    def abort(self, code: int, reason: str) -> None:
        """End the world, this process with it."""
        self._world.call("abort", code, reason)
