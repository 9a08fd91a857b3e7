"""Large blocking reductions: what is lent is read before it is used again, in rank order."""

from __future__ import annotations

from random import Random
from time import sleep
from typing import Any, Final

import pytest
from ompy.mpi.buffers.markers import IN_PLACE
from ompy.mpi.collectives.operation import Op
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import effort
from tests.support.worlds import real

# pairs of integers: around `coll_sm_fragment_size` (64 KiB), and a few pieces that are combined
COUNTS: Final = (4000, 4096, 4097, 6000, 16384, 40003)
CALLS: Final = ("Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter")


def composed(first: Any, second: Any) -> Any:
    """Maps x -> ax + b, one after the other: the order matters, and so do all bytes."""
    import numpy as np

    both = np.empty_like(second)
    both[0::2] = first[0::2] * second[0::2]
    both[1::2] = first[1::2] * second[0::2] + second[1::2]
    return both


def compose(given: Any, kept: Any, datatype: Any) -> None:
    """The user's function of an operation; gaps are as in its caller's memory."""
    import numpy as np

    apart = datatype.extent // datatype.size
    room = np.frombuffer(kept, np.int64)[::apart]
    room[:] = composed(np.frombuffer(given, np.int64)[::apart], room)


def all_of(given: list[Any]) -> Any:
    """The maps of members, composed from the first to the last."""
    found = given[0]
    for other in given[1:]:
        found = composed(found, other)
    return found


def expected(call: str, rank: int, given: list[Any], counts: list[int]) -> Any:
    if call == "Scan":
        return all_of(given[: rank + 1])
    if call == "Exscan":
        return all_of(given[:rank]) if rank else None
    if call == "Reduce_scatter":
        before = 2 * sum(counts[:rank])
        return all_of(given)[before : before + 2 * counts[rank]]
    return all_of(given)


def blocking_reductions(process: RankProcess) -> str:
    """Calls one after the other; what was given is spoilt as soon as a call returns."""
    import numpy as np

    comm = world_of(process)
    rank, ranks = comm.rank, comm.size
    order = Op.Create(compose, commute=False)
    pair = DATATYPES["INT64_T"].Create_contiguous(2).Commit()
    gapped = DATATYPES["INT64_T"].Create_vector(2, 1, 2).Create_resized(0, 32).Commit()
    for seed in range(effort(2)):
        alike, own = Random(seed), Random(f"{seed}, {rank}")
        for number in range(24):
            call, count = alike.choice(CALLS), alike.choice(COUNTS)
            root, in_place = alike.randrange(ranks), alike.random() < 0.4
            given = [
                np.random.default_rng([seed, number, each]).integers(-9, 9, 2 * count)
                for each in range(ranks)
            ]
            counts = [count // ranks] * (ranks - 1) + [count - count // ranks * (ranks - 1)]
            wanted = expected(call, rank, given, counts)
            apart = 1 + (own.random() < 0.3)  # members may describe the same data otherwise
            mine, room = (np.zeros(2 * count * apart, np.int64) for _ in range(2))
            (room if in_place else mine)[::apart] = given[rank]
            kind = pair if apart == 1 else gapped
            here = call != "Reduce" or rank == root
            if in_place and not here:
                mine[::apart] = given[rank]
            much = counts[rank] if call == "Reduce_scatter" and not in_place else count
            arguments: list[Any] = [
                IN_PLACE if in_place and here else [mine, count, kind],
                [room, much, kind] if here else None,
            ]
            arguments += [counts] if call == "Reduce_scatter" else []
            getattr(comm, call)(*arguments, order, *([root] if call == "Reduce" else []))
            mine[:] = -1
            if here and wanted is not None:
                found = room[::apart][: len(wanted)]
                assert (found == wanted).all(), (call, count, in_place, seed)
            room[:] = -2
            if own.random() < 0.2:
                sleep(0.002)
    return "right"


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_what_was_given_is_not_read_afterwards(ranks: int) -> None:
    found = real(
        ranks, "tests.proc.test_lent_reductions:blocking_reductions", settings={"btl": "self,sm"}
    )
    assert found == ["right"] * ranks
