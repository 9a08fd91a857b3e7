"""Both ends of a path hear that it broke, once; and of an end that was announced nobody does."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from ompy.frameworks.paths.path_watch import MS
from ompy.net.faults.fault_rules import FaultRule

from tests.support.effort import effort
from tests.support.fabric_job import Rank, run
from tests.support.fabric_programs import SECOND, Side


def reset(side: Side) -> None:
    """Break the link as a reset does."""
    (link,) = side.domain.peers.links  # type: ignore[attr-defined]
    link._stream.fail("reset")


def until(rank: Rank, moment: int) -> None:
    rank.engine.wait_until(lambda: False, moment - rank.engine.now())


@pytest.mark.parametrize("seed", range(effort(3)))
def test_an_idle_end_is_told_and_the_path_is_made_again(seed: int) -> None:
    def program(rank: Rank) -> Any:
        side = rank.side()
        side.meet()
        until(rank, 10 * MS)
        if rank.rank == 0:
            reset(side)
        until(rank, 20 * MS)
        told, side.done = side.done, []
        until(rank, 30 * MS)
        side.meet()
        until(rank, 40 * MS)
        side.meet()
        assert not side.done
        domain: Any = side.domain
        assert domain.peers.epochs.number_of(1 - rank.rank) == 1
        side.close()
        return [(one.context, one.error) for one in told]

    job, _ = run(program, seed=seed)
    told = [(None, errno.ECONNRESET)]
    assert job.results == [told, told]  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(effort(5)))
def test_both_ends_work_while_it_breaks(seed: int) -> None:
    """Each post completes once, and both agree in the end about how often the path broke."""

    def program(rank: Rank) -> tuple[int, set[int]]:
        side = rank.side()
        side.meet()
        posted = 0
        for turn in range(3):
            until(rank, (turn + 1) * 20 * MS)
            for _ in range(20):
                side.write(0, 5000, 0, posted)
                posted += 1
            if rank.rank == turn % 2:
                until(rank, rank.engine.now() + 70_000 + 20_000 * (seed % 8))
                reset(side)
        until(rank, 100 * MS)
        works = [one.context for one in side.done if one.context is not None]
        assert works == list(range(posted))
        errors = {one.error for one in side.done}
        assert errno.ECONNRESET in errors <= {0, errno.ECONNRESET}
        side.done.clear()
        side.meet()
        domain: Any = side.domain
        epoch: int = domain.peers.epochs.number_of(1 - rank.rank)
        side.close()
        return epoch, errors

    job, _ = run(program, seed=seed)
    (near, mine), (far, theirs) = job.results  # type: ignore[attr-defined]
    assert near == far == 3
    assert 0 in mine | theirs, "something was done before it broke"


def test_an_announced_end_is_no_error() -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            side.close()
            until(rank, SECOND)
            return
        until(rank, SECOND)
        assert not side.done
        side.close()

    run(program)


def test_a_peer_that_is_forgotten_is_told_of_no_error() -> None:
    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            name = side.vector.find(side.to).packed()  # type: ignore[attr-defined]
            side.vector.remove(side.to)
            assert not side.domain.peers.links  # type: ignore[attr-defined]
            until(rank, 20 * MS)
            side.to = side.vector.insert(name)
        until(rank, 30 * MS)
        assert not side.done
        side.meet()
        side.close()

    run(program)


def test_a_link_that_goes_down_is_told_at_both_ends() -> None:
    def program(rank: Rank) -> Any:
        side = rank.side()
        side.meet()
        until(rank, 50 * MS)
        told = [(one.context, one.error) for one in side.done]
        rank.engine.remove_poller(side)
        return told

    rule = FaultRule("link_down", ranks=(0,), since=20 * MS)
    job, counter = run(program, rules=[rule])
    counter.require("link_down")
    told = [(None, errno.ECONNRESET)]
    assert job.results == [told, told]  # type: ignore[attr-defined]
