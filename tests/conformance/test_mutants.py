"""The kit notices each planted defect, by the test that is there for it.

That nothing fails without a defect is what `test_reference.py` and `test_in_tree.py` show.
"""

from __future__ import annotations

import pytest
from ompy.conformance.plugin import FAILED, PASSED, examine

from tests.conformance import mutants
from tests.support.effort import THOROUGH

CHOSEN = [*mutants.PLANTED][:: 1 if THOROUGH else 2]


@pytest.mark.parametrize("planted", CHOSEN, ids=lambda planted: planted.__name__)
def test_noticed(planted: type) -> None:
    test = mutants.PLANTED[planted]
    outcomes = examine(mutants.component(planted), {}, tests=[test])
    mutants.LeavesObjects.everybody.clear()
    assert {outcome.result for outcome in outcomes} <= {PASSED, FAILED}, outcomes[0].reason
    assert any(outcome.result == FAILED for outcome in outcomes), f"{test} has not noticed it"
