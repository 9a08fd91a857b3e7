"""coll tuned: every algorithm, forced, against the reference; and what the fixed rules choose."""

from __future__ import annotations

import pytest
from ompy_components.coll.tuned.decision import ALGORITHMS

from tests.sim.coll import programs
from tests.sim.coll.test_reference import WAYS, run
from tests.support.effort import THOROUGH

FORCED = [(name, word) for name in programs.PROGRAMS for word in ALGORITHMS[name]]


def sizes(name: str, word: str) -> tuple[int, ...]:
    """In CI one number of ranks for each algorithm, a power of two or not."""
    if THOROUGH:
        return tuple(range(1, 10))
    return (4 if word == "recursive_doubling" and name == "allgather" else 5,)


@pytest.mark.parametrize(
    ("name", "word", "size"),
    [(name, word, size) for name, word in FORCED for size in sizes(name, word)],
)
def test_forced_algorithm_does_what_mpi_says(name: str, word: str, size: int) -> None:
    forced = {f"coll_tuned_{name}_algorithm": word, "coll_tuned_bcast_algorithm_segmentsize": 100}
    run(programs.PROGRAMS[name], size, seed=size, coll="tuned,basic", btl=WAYS[size % 2], **forced)
