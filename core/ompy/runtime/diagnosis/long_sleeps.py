"""Has a rank say how it stands once it has slept for long (`standing.py`).

It does so by itself only where deadlocks are looked for, and when it is asked in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.engine.base import Sleepers
from ompy.engine.real import RealEngine
from ompy.mca.parameters.base_parameters import DEADLOCK_DETECTION, DEADLOCK_PATIENCE

if TYPE_CHECKING:
    from ompy.data.request import Waitable
    from ompy.runtime.diagnosis.standing import Standing
    from ompy.runtime.ranks.client import AgentClient
    from ompy.runtime.ranks.process import RankProcess


def tell_long_sleeps(process: RankProcess, engine: RealEngine, client: AgentClient) -> None:
    """From now on."""
    patience_ms = process.registry.value(DEADLOCK_PATIENCE)
    assert isinstance(patience_ms, int), "by its type"
    engine.still_after = patience_ms * 1_000_000
    first = _FirstSleep(process, engine, client)
    engine.sleepers = first
    client.on_stand = first.asked


class _FirstSleep(Sleepers):
    """Makes what tells, when it is needed: most ranks never import it."""

    def __init__(self, process: RankProcess, engine: RealEngine, client: AgentClient) -> None:
        self._process = process
        self._engine = engine
        self._client = client

    def sleeps(self, waitable: Waitable, since: int) -> None:
        """The first time."""
        self._make().sleeps(waitable, since)

    def asked(self, question: int) -> None:
        """The launcher wants to know, before there was a sleep: this rank polls."""
        self._make().asked(question)

    def _make(self) -> Standing:
        from ompy.runtime.diagnosis.standing import Standing

        unasked = bool(self._process.registry.value(DEADLOCK_DETECTION))
        made = Standing(self._process, self._client.tell_standing, unasked=unasked)
        self._client.on_stand = made.asked
        self._engine.sleepers = made
        return made
