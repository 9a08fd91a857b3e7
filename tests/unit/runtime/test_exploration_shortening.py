"""A schedule that fails is made shorter as long as somebody may wait for it, and no longer."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.runtime.exploration import explorer
from ompy.runtime.exploration.events import MATCH, Event
from ompy.runtime.exploration.trunk import Result

CHOICES = 64
CHOSEN: Any = (0, 7)


class Slow(explorer.Explorer):
    """Each of its choices is needed, and its worlds take their time."""

    def __init__(self, seconds: float) -> None:
        self._polls = 1
        self.now, self.seconds, self.worlds = 0.0, seconds, 0

    def _run_trial(self, script: Any) -> Result:
        self.now += self.seconds
        self.worlds += 1
        return failing(len(script))._replace(kind=explorer.WELL)

    def _run_whole(self, script: Any) -> Result:
        return failing(len(script))


def failing(choices: int) -> Result:
    events = [
        Event(number, (0, number), MATCH, CHOSEN, 0, 0, "", True, (), "")
        for number in range(choices)
    ]
    return Result("deadlock", 4, "", events, [])


@pytest.mark.parametrize(("seconds", "most"), [(0.01, explorer.TRIALS), (4.0, 30)])
def test_it_ends_when_nobody_would_wait_any_longer(
    seconds: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = Slow(seconds)
    monkeypatch.setattr(explorer.time, "monotonic", lambda: worlds.now)
    failure = worlds._failure(failing(CHOICES))
    assert 0 < worlds.worlds <= most
    assert failure.result.kind == "deadlock"
