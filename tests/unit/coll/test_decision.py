"""coll tuned's rules, and what a forced algorithm becomes where it cannot serve."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ompy.frameworks.coll import OPERATIONS
from ompy.frameworks.communicator import Communicator
from ompy.mca.component import NotAvailable
from ompy_components.coll.tuned.component import COMPONENT
from ompy_components.coll.tuned.decision import ALGORITHMS, RULES, Rule, decide, possible
from ompy_components.coll.tuned.module import Tuned

from tests.support.worlds import registry


def tuned(ranks: int, **settings: object) -> Tuned:
    found = next(each for each in registry(coll="tuned", **settings).open("coll"))
    members: Any = [SimpleNamespace(rank=rank) for rank in range(ranks)]
    context: Any = SimpleNamespace(oversubscribed=False, me=members[0])
    pml: Any = None
    return Tuned(Communicator(context, pml, 0, members, "MPI_COMM_MINE"), found.values)


def test_every_operation_has_rules_and_algorithms() -> None:
    assert set(RULES) == set(ALGORITHMS) == set(OPERATIONS)
    names = {parameter.name for parameter in COMPONENT.parameters}
    assert {f"{name}_algorithm" for name in OPERATIONS} <= names


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_the_rules_choose_there_is(operation: str) -> None:
    for size in (0, 1, 1 << 14, 1 << 20, 1 << 40):
        for ranks in (1, 2, 3, 8, 1000):
            word = decide(operation, size, ranks)
            for commutative in (True, False):
                assert (
                    possible(operation, word, ranks, commutative=commutative)
                    in ALGORITHMS[operation]
                )


def test_the_first_rule_that_fits_decides() -> None:
    rule = Rule("ring", most_bytes=100, least_ranks=3, most_ranks=8)
    assert rule.fits(100, 3)
    assert rule.fits(0, 8)
    assert not rule.fits(101, 3)
    assert not rule.fits(100, 2)
    assert not rule.fits(100, 9)


def test_some_rules_are_for_ranks_that_share_cores() -> None:
    rule = Rule("linear", sharing=True)
    assert rule.fits(8, 4, sharing=True)
    assert not rule.fits(8, 4)
    assert Rule("ring").fits(8, 4, sharing=True)
    words = [decide("allreduce", 8, 4, sharing=sharing) for sharing in (False, True)]
    assert words[0] != words[1]


def test_sizes_decide() -> None:
    few, much = (decide("allreduce", size, 4) for size in (8, 1 << 20))
    assert few != much


def test_a_forced_algorithm_is_used() -> None:
    module = tuned(4, coll_tuned_allreduce_algorithm="ring")
    assert module.algorithm("allreduce", 8) == "ring"
    assert module.algorithm("allreduce", 8, commutative=False) == "rabenseifner"
    assert tuned(4, coll_tuned_allreduce_algorithm=4).algorithm("allreduce", 8) == "ring"


def test_without_dynamic_rules_none_is_forced() -> None:
    settings = {"coll_tuned_allreduce_algorithm": "ring", "coll_tuned_use_dynamic_rules": 0}
    assert tuned(4, **settings).algorithm("allreduce", 8) == decide("allreduce", 8, 4)


def test_what_cannot_serve_is_replaced() -> None:
    settings = {
        "coll_tuned_allgather_algorithm": "recursive_doubling",
        "coll_tuned_alltoall_algorithm": "modified_bruck",
    }
    module = tuned(6, **settings)
    assert module.algorithm("allgather", 8) == "bruck"
    assert tuned(8, **settings).algorithm("allgather", 8) == "recursive_doubling"
    assert module.algorithm("alltoall", 8, regular=False) == "linear_sync"


def test_alone_there_is_nothing_to_choose() -> None:
    with pytest.raises(NotAvailable, match="one member"):
        COMPONENT.query(SimpleNamespace(size=1))
