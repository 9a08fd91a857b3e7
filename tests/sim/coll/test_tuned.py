"""coll tuned: every algorithm, forced, against the reference; barriers; the bits of float sums."""

from __future__ import annotations

from functools import partial

import pytest
from ompy_components.coll.tuned.decision import ALGORITHMS

from tests.sim.coll import programs
from tests.sim.coll.test_reference import WAYS, run
from tests.support.effort import THOROUGH, effort

# test_reference has these run by basic; the nightly sweep runs them by tuned too
BY_BASIC = {
    ("bcast", "binomial"),
    ("scatter", "binomial"),
    ("gather", "binomial"),
    ("allgather", "bruck"),
    ("allgather", "ring"),
    ("alltoall", "linear"),
    ("alltoall", "pairwise"),
    ("alltoall", "modified_bruck"),
    ("alltoall", "linear_sync"),
    ("reduce", "binomial"),
    ("allreduce", "recursive_doubling"),
    ("allreduce", "ring"),
    ("scan", "recursive_doubling"),
    ("exscan", "recursive_doubling"),
    ("reduce_scatter", "pairwise"),
    ("reduce_scatter", "recursive_doubling"),
}
EVERY = [(name, word) for name in programs.PROGRAMS for word in ALGORITHMS[name]]
assert set(EVERY) >= BY_BASIC
FORCED = EVERY if THOROUGH else [each for each in EVERY if each not in BY_BASIC]


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


@pytest.mark.parametrize("size", range(1, 10) if THOROUGH else (2, 3, 6))
@pytest.mark.parametrize("word", ALGORITHMS["barrier"])
def test_nobody_leaves_a_barrier_before_all_have_come(word: str, size: int) -> None:
    for seed in range(effort(5)):
        done = [-1] * size
        program = partial(programs.barrier, done)
        run(program, size, seed=seed, coll="tuned,basic", coll_tuned_barrier_algorithm=word)
        assert done == [programs.BARRIERS - 1] * size


@pytest.mark.parametrize("size", range(1, 10) if THOROUGH else (3, 4))
@pytest.mark.parametrize("word", ALGORITHMS["allreduce"])
def test_float_results_have_the_same_bits_everywhere(word: str, size: int) -> None:
    forced = {"coll": "tuned,basic", "coll_tuned_allreduce_algorithm": word}
    results = run(programs.float_sums, size, seed=size, btl="self,sm", **forced)
    assert len(results[0]) == 16
    assert all(result == results[0] for result in results)
