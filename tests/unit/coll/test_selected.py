"""Which module a communicator's operations come from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ompy.data.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.frameworks.call_order import TAG_CALLS, CallOrder
from ompy.frameworks.coll import (
    TAG_NONBLOCKING,
    TAGS_IN_TURN,
    CollModule,
    SelectedColl,
)
from ompy.frameworks.exchange import Exchange
from ompy.frameworks.schedule import Schedule


class BlockingOnly(CollModule):
    """As a stranger wrote it for API 2.0."""

    def barrier(self) -> None:
        raise KeyError("the stranger's")


class Scheduled(CollModule):
    def schedule_barrier(self, exchange: Exchange) -> Schedule:
        raise IndexError("the scheduled one")
        yield


def selected(*kinds: type[CollModule]) -> SelectedColl:
    comm: Any = SimpleNamespace(rank=0, size=1, pml=None, context=None, order=CallOrder())
    return SelectedColl(comm, [kind(comm) for kind in kinds])


def test_a_module_without_schedules_wins_blocking_calls_only() -> None:
    coll = selected(BlockingOnly, Scheduled)
    with pytest.raises(KeyError):
        coll.barrier()
    with pytest.raises(IndexError):
        next(coll.schedule_barrier(Exchange(coll.communicator, -1)))


def test_a_schedule_serves_blocking_calls_too() -> None:
    with pytest.raises(IndexError):
        selected(Scheduled, BlockingOnly).barrier()


def test_what_nobody_offers_is_not_there() -> None:
    assert not Scheduled.offers("bcast")
    with pytest.raises(MPIError, match="has nonblocking barrier .*such as basic") as caught:
        selected(BlockingOnly).begin("barrier", -1)
    assert caught.value.code == ERR_UNSUPPORTED_OPERATION
    with pytest.raises(MPIError, match=f"has bcast .in use: {__name__}"):
        selected(BlockingOnly).bcast(None, 0)


def test_every_call_has_a_tag_of_its_own_for_long() -> None:
    coll = selected()
    tags = {coll.nonblocking_tag() for _ in range(1000)}
    assert len(tags) == 1000
    assert max(tags) <= TAG_NONBLOCKING
    coll._begun = TAGS_IN_TURN - 1
    assert coll.nonblocking_tag() == TAG_NONBLOCKING
    assert min(coll.nonblocking_tag() for _ in range(10)) > -TAG_CALLS
