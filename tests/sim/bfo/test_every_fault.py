"""Every single fault on every transfer of a message, and every second one during the recovery."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from ompy.frameworks.btl import GET, PUT

from tests.sim.ob1.programs import exchange, one_message
from tests.support.effort import THOROUGH
from tests.support.failing_rails import (
    KINDS,
    US,
    FailingModule,
    FailingRail,
    Fault,
    failing_world,
)
from tests.support.fault_matrix import PROTOCOLS

DOUBLES = ("send/receive pipeline", "direct put", "direct get")
SECOND = ("lost", "error")  # what may happen to a transfer of a recovery; the sweep has the others


def _rails(protocol: str, other_end: int) -> tuple[FailingRail, ...]:
    return (replace(PROTOCOLS[protocol][0], other_end=other_end),) * 3


def _run(protocol: str, faults: list[Fault], other_end: int) -> Counter[str]:
    _, size, mode, _ = PROTOCOLS[protocol]
    job = failing_world(
        [one_message(size, mode=mode)] * 2, _rails(protocol, other_end), faults, seed=other_end
    )
    assert not job.net.plan, "a fault did not strike"
    return job.net.counts


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_fault(protocol: str) -> None:
    """Any transfer, by any fault; and any transfer after it, of the recovery or not."""
    seen: Counter[str] = Counter()
    count = _run(protocol, [], 0)[""]
    doubles = protocol == "direct get" or (THOROUGH and protocol in DOUBLES)
    # of many alike every third, so that the last is among them
    for nth in (
        range(1, count + 1) if THOROUGH or count < 16 else range(count % 3 or 3, count + 1, 3)
    ):
        for what in (*KINDS, "again", "stuck"):
            first = Fault(what, nth=nth, delay=60 * US)
            after = _run(protocol, [first], 0)
            seen.update(after)
            if not doubles or what not in SECOND:
                continue
            for other in range(nth + 1, after[""] + 1):
                second = Fault("error" if (nth + other) % 2 else "lost", nth=other)
                seen.update(_run(protocol, [first, second], 0))
    if doubles:
        assert seen["RNDVRESTARTNOTIFY"]
        assert seen["RNDVRESTARTACK"]


@pytest.mark.parametrize("other_end", [0, 500 * US])
@pytest.mark.parametrize("flags", [0, PUT, PUT | GET])
def test_what_lies_behind_a_stuck_slot(
    flags: int, other_end: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was acknowledged, and is found when what the broken rail lost has gone another way."""
    held: Counter[int] = Counter()
    break_path = FailingModule.break_path

    def counted(self: FailingModule, peer: int, **others: Any) -> None:
        held[len(self.behind.get(peer, ()))] += 1
        break_path(self, peer, **others)

    monkeypatch.setattr(FailingModule, "break_path", counted)
    rail = FailingRail(flags=flags, sendi=True, notice=60 * US, other_end=other_end)
    count = failing_world([exchange] * 2, [rail] * 2, immortal=(1,)).net.counts[""]
    step = 1 if THOROUGH else 7
    for nth in range(1, count + 1, step):
        failing_world([exchange] * 2, [rail] * 2, [Fault("stuck", nth=nth)], immortal=(1,))
    assert max(held) > 1, "nothing lay behind one"


@pytest.mark.parametrize("protocol", ["direct put", "send/receive pipeline", "direct get"])
@pytest.mark.parametrize("other_end", [0, 1 * US, 5 * US, 500 * US, -1])
def test_both_sides_begin(protocol: str, other_end: int) -> None:
    """Both ends of a path notice within a moment of each other, in the middle of the message."""
    count = _run(protocol, [], other_end)[""]
    for nth in range(1, count + 1):
        _run(protocol, [Fault("lost", nth=nth)], other_end)


@pytest.mark.parametrize("tag", ["RNDVRESTARTNOTIFY", "RNDVRESTARTACK", "RECVERRNOTIFY", "RNDV"])
@pytest.mark.parametrize("what", KINDS)
def test_the_dance_is_struck_twice(tag: str, what: str) -> None:
    """A message of the dance fails, and so does what follows."""
    opening = Fault("lost", "ACK" if tag == "RECVERRNOTIFY" else "FRAG")
    nth = 2 if tag == "RNDV" else 1  # the second one is the restart
    plan = [opening, Fault(what, tag, nth=nth), Fault("lost", tag, nth=nth + 1)]
    if what not in ("lost", "refused"):
        plan.pop()  # it arrived, and may have been heeded before it is known to have failed
    rails = (*_rails("send/receive pipeline", 0), *_rails("send/receive pipeline", 0))
    job = failing_world([one_message(9_000)] * 2, rails, plan)
    assert not job.net.plan
    assert job.net.counts[tag] >= nth
