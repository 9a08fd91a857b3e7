"""What is made of messages that were lost on their way to another host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy_components.conduit.gni.losses import GRACE, Losses


class Clock:
    def __init__(self) -> None:
        self.time = 0
        self.woken: list[int] = []

    def now(self) -> int:
        return self.time

    def call_later(self, delay: int, _function: Any) -> None:
        self.woken.append(self.time + delay)


def losses() -> tuple[Losses, list[tuple[int, str]], Clock, Any]:
    clock, news = Clock(), [(1, "cut"), (1, "cut again")]
    procs = [SimpleNamespace(departed=""), SimpleNamespace(departed="")]
    context: Any = SimpleNamespace(engine=clock, procs=procs)
    return Losses(context, news), news, clock, procs[1]


def test_a_loss_is_an_error_once_and_the_rank_is_out_of_reach() -> None:
    found, news, clock, _ = losses()
    assert found.pressing
    found.collect_losses()
    assert not found.pressing
    assert found.why(1) == "cut"
    assert not found.why(0)
    clock.time = GRACE - 1
    found.collect_losses()
    clock.time = GRACE
    assert clock.woken == [GRACE]  # who sleeps is awake then
    with pytest.raises(MPIError) as caught:
        found.collect_losses()
    assert caught.value.code == ERR_PROC_FAILED
    news.append((1, "more"))
    clock.time = 3 * GRACE
    found.collect_losses()
    assert found.why(1) == "cut"


def test_a_rank_that_has_ended_is_no_loss() -> None:
    found, _, clock, proc = losses()
    found.collect_losses()
    proc.departed = "it has been killed"
    clock.time = GRACE
    found.collect_losses()
