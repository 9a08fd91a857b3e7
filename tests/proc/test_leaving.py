"""Real ranks: one leaves, and whatever another waits for of it fails, in bounded time.

One job makes many calls, the first of each rank begun before the other leaves. All of them over
every BTL, in every way of leaving: `tools/sweep leaving_matrix --real`.
"""

from __future__ import annotations

import pytest

from tests.support.effort import THOROUGH
from tests.support.leaving_cells import ENDS_JOB, Outcome, real_job
from tests.support.leaving_waits import COLLECTIVES, MESSAGES, WINDOWS

pytestmark = pytest.mark.proc

STEP = 1 if THOROUGH else 5
LOCKS = [name for name in WINDOWS["Allocate"] if "Lock" in name]
# (what, way, settings)
JOBS = [
    (list(MESSAGES)[::STEP], "stays", {"btl": "self,sm"}),
    (list(COLLECTIVES)[::STEP], "exits", {"btl": "self,tcp", "pml": "bfo"}),
    (LOCKS, "stays", {"btl": "self,sm"}),
]


@pytest.mark.parametrize(("names", "way", "settings"), JOBS, ids=["messages", "bfo", "locks"])
def test_every_wait_ends(names: list[str], way: str, settings: dict[str, str]) -> None:
    found = real_job(names, way, early=True, **settings)
    assert [each for each in map(Outcome.wrong, found.outcomes) if each] == [], found.said
    assert sorted(outcome.name for outcome in found.outcomes) == sorted(names), found.said


@pytest.mark.parametrize("way", ENDS_JOB if THOROUGH else ["vanishes"])
def test_a_rank_that_ends_the_job(way: str) -> None:
    found = real_job(list(MESSAGES)[:4], way, early=True, btl="self,sm")
    assert found.code == ENDS_JOB[way], found.said
    assert way != "vanishes" or "without MPI_Finalize" in found.said.replace("\n", " ")
