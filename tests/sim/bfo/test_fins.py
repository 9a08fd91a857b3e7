"""A FIN says which message and which piece it is about: one that does not fit, or comes twice.

Source: seed bfo (3, 7).
"""

from __future__ import annotations

from typing import Any

import pytest
from ompy.frameworks.btl import GET, PUT
from ompy_components.pml.bfo.headers import fin_words, parse_fin
from ompy_components.pml.ob1.headers import FIN

from tests.sim.ob1.programs import one_message
from tests.support.failing_rails import READ, US, FailingModule, FailingRail, Fault, failing_world

SIZE = 9_000


@pytest.mark.parametrize("other", ["context", "source", "sequence"])
@pytest.mark.parametrize("flags", [PUT, GET])
def test_one_of_another_message_is_dropped(
    flags: int, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each FIN comes one with the same fragment, that says that nothing was moved."""
    arrival = FailingModule.arrival
    planted: list[int] = []

    def arriving(module: Any, endpoint: Any, tag: int, data: bytes) -> Any:
        arrive = arrival(module, endpoint, tag, data)
        if tag != FIN:
            return arrive
        fin = parse_fin(memoryview(data))
        wrong = fin_words(
            fin.flags,
            fin.context_id + (other == "context"),
            fin.source + (other == "source"),
            fin.sequence + (other == "sequence"),
            fin.generation,
            -1,
            fin.fragment,
            fin.offset,
        )
        before = arrival(module, endpoint, tag, wrong)

        def both() -> None:
            planted.append(endpoint.proc.rank)
            before()
            arrive()

        return both

    monkeypatch.setattr(FailingModule, "arrival", arriving)
    rail = FailingRail(flags=flags, put_limit=5_000, get_limit=5_000)
    job = failing_world([one_message(SIZE)] * 2, [rail])
    assert "FRAG" not in [name for name, _, _ in job.net.log]
    (told,) = set(planted)
    assert job.processes[told].pml.counters == {"FIN": len(planted)}
    assert len(planted) == 2


@pytest.mark.parametrize("what", ["error", "late", "twice"])
def test_one_of_several_that_comes_twice_counts_once(what: str) -> None:
    """Counted twice, the sender would take its memory back while the other half is being read.

    The rails look for that.
    """
    near = FailingRail(flags=GET, notice=1 * US)
    far = FailingRail(flags=GET, latency=500)
    job = failing_world(
        [one_message(SIZE)] * 2,
        [near, far, FailingRail(flags=0)],
        [Fault(what, "FIN")],
        immortal=(1, 2),
        parameters={"use_all_rdma": True},
    )
    assert job.net.delivered.total() == 1
    assert [name for name, _, _ in job.net.log].count(READ) == 2
    assert job.processes[0].pml.counters == {"FIN": 1}
