"""The other kits than the one for BTLs notice each planted defect, by the test that is for it.

That nothing fails without a defect is what `test_other_kits.py` shows.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from ompy.conformance.plugin import FAILED, PASSED, SKIPPED, examine

from tests.conformance import coll_mutants, hook_mutants, nic_mutants, osc_mutants, pml_mutants
from tests.support.effort import THOROUGH

EVERY = [
    (mutants, planted)
    for mutants in (coll_mutants, pml_mutants, osc_mutants, nic_mutants, hook_mutants)
    for planted in mutants.PLANTED
]
CHOSEN = EVERY if THOROUGH else EVERY[::18]


@pytest.mark.parametrize(
    ("mutants", "planted"), CHOSEN, ids=lambda one: one.__name__.split(".")[-1]
)
def test_noticed(mutants: Any, planted: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMPY_SET_BY_A_HOOK", raising=False)  # what a defect sets is taken back
    handler = signal.getsignal(signal.SIGTERM)
    test = mutants.PLANTED[planted]
    try:
        outcomes = examine(mutants.component(planted), {}, tests=[test])
    finally:
        signal.signal(signal.SIGTERM, handler)
        os.environ.pop("OMPY_SET_BY_A_HOOK", None)
    assert {outcome.result for outcome in outcomes} <= {PASSED, FAILED, SKIPPED}
    assert any(outcome.result == FAILED for outcome in outcomes), f"{test} has not noticed it"
