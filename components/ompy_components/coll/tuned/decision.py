"""Which algorithm an operation takes: the words for them, and the fixed rules.

The rules of an operation are asked in order; the first that fits decides. They see only what all
members know, and see alike: the size of the communicator, the operation, whether the job has more
ranks than cores somewhere, and the bytes as Open MPI counts them for each operation (the table in
its manual, "Tuning Collectives").

Where ranks share cores, what counts is how many messages there are in all and how long a chain of
ranks has to be woken one after the other; else it is the number of steps.

The numbers of the algorithms are Open MPI's (the tables of its manual), those from 100 on
are ompy's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

IGNORE: Final = "ignore"  # Open MPI's manual: use the fixed rules

ALGORITHMS: Final[Mapping[str, Mapping[str, int]]] = {
    "barrier": {"linear": 1, "recursive_doubling": 3, "bruck": 4, "tree": 6},
    "bcast": {"basic_linear": 1, "pipeline": 3, "binomial": 6, "scatter_allgather_ring": 9},
    "scatter": {"basic_linear": 1, "binomial": 2},
    "gather": {"basic_linear": 1, "binomial": 2},
    "allgather": {"linear": 1, "bruck": 2, "recursive_doubling": 3, "ring": 4},
    "alltoall": {"linear": 1, "pairwise": 2, "modified_bruck": 3, "linear_sync": 4},
    "reduce": {"linear": 1, "binomial": 5, "rabenseifner": 7},
    "allreduce": {
        "basic_linear": 1,
        "nonoverlapping": 2,
        "recursive_doubling": 3,
        "ring": 4,
        "rabenseifner": 6,
    },
    "scan": {"linear": 1, "recursive_doubling": 2},
    "exscan": {"linear": 1, "recursive_doubling": 2},
    "reduce_scatter": {"recursive_halving": 2, "pairwise": 100, "recursive_doubling": 101},
}  # Open MPI's manual, "Tuning Collectives"; 100 and 101 are not in it

# what an algorithm cannot do; the word is what takes its place then
NEEDS_COMMUTATIVE: Final = {
    ("allreduce", "ring"): "rabenseifner",
    ("reduce_scatter", "recursive_halving"): "pairwise",
}  # they combine in another order than that of the ranks
NEEDS_POWER_OF_TWO: Final = {("allgather", "recursive_doubling"): "bruck"}  # every rank a partner
NEEDS_REGULAR: Final = {("alltoall", "modified_bruck"): "linear_sync"}  # all blocks of one size


class Rule(NamedTuple):
    """Up to so many bytes, from so many to so many ranks, use this algorithm.

    Attributes:
        algorithm: its word.
        most_bytes: or None for any amount.
        least_ranks: of the communicator.
        most_ranks: or None for any number.
        sharing: only where ranks share cores.
    """

    algorithm: str
    most_bytes: int | None = None
    least_ranks: int = 1
    most_ranks: int | None = None
    sharing: bool = False

    def fits(self, size: int, ranks: int, *, sharing: bool = False) -> bool:
        """Whether it is meant for `size` bytes on `ranks` ranks that share cores or not."""
        return (
            sharing >= self.sharing
            and (self.most_bytes is None or size <= self.most_bytes)
            and self.least_ranks <= ranks
            and (self.most_ranks is None or ranks <= self.most_ranks)
        )


KI: Final = 1024  # bytes; arbitrary: the unit of the table below

# measured where ranks share cores: compiled, btl sm, 4 and 8 ranks on 2 busy cores, the README has
# figures; with a core for each rank as the literature has it (Thakur, Rabenseifner and Gropp 2005),
# the sizes arbitrary: coll/basic's limits or near them
RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "barrier": (Rule("bruck"),),
    "bcast": (Rule("binomial"),),
    "scatter": (Rule("basic_linear", most_ranks=2), Rule("binomial")),
    "gather": (Rule("basic_linear", most_ranks=2), Rule("binomial")),
    "allgather": (
        Rule("linear", most_ranks=2),
        Rule("bruck", most_bytes=64 * KI),
        Rule("recursive_doubling", most_bytes=1024 * KI),
        Rule("ring"),
    ),
    "alltoall": (Rule("linear_sync"),),
    "reduce": (Rule("binomial"),),
    "allreduce": (
        Rule("basic_linear", most_bytes=512, most_ranks=8, sharing=True),
        Rule("nonoverlapping", sharing=True),
        Rule("recursive_doubling", most_bytes=64 * KI),
        Rule("rabenseifner"),
    ),
    "scan": (Rule("recursive_doubling"),),
    "exscan": (Rule("recursive_doubling"),),
    "reduce_scatter": (
        Rule("recursive_doubling", most_bytes=16 * KI),
        Rule("recursive_halving"),
    ),
}
assert all(rules[-1].fits(1 << 62, 1) for rules in RULES.values()), "the last rule fits always"
assert all(
    rule.algorithm in ALGORITHMS[operation] for operation, rules in RULES.items() for rule in rules
), "rules name algorithms there are"


def decide(operation: str, size: int, ranks: int, *, sharing: bool = False) -> str:
    """The word of the algorithm for `size` bytes on `ranks` ranks that share cores or not."""
    rules = RULES[operation]
    return next(rule.algorithm for rule in rules if rule.fits(size, ranks, sharing=sharing))


def possible(
    operation: str, word: str, ranks: int, *, commutative: bool = True, regular: bool = True
) -> str:
    """The word itself, or that of what takes its place where the algorithm cannot serve."""
    key = operation, word
    if not commutative and key in NEEDS_COMMUTATIVE:
        return NEEDS_COMMUTATIVE[key]
    if ranks & (ranks - 1) and key in NEEDS_POWER_OF_TWO:
        return NEEDS_POWER_OF_TWO[key]
    if not regular and key in NEEDS_REGULAR:
        return NEEDS_REGULAR[key]
    return word
