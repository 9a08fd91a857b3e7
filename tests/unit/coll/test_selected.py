"""Which module a communicator's operations come from."""

from __future__ import annotations

from copy import copy
from types import SimpleNamespace
from typing import Any

import pytest
from ompy.data.errors import ERR_UNSUPPORTED_OPERATION, MPIError
from ompy.engine.lock import RankLock
from ompy.frameworks.coll import OPERATIONS, TAG_NONBLOCKING, TAGS_IN_TURN, CollModule
from ompy.frameworks.collectives.call_order import TAG_CALLS
from ompy.frameworks.collectives.coll_selection import Offer, SelectedColl
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.frameworks.communicator import Communicator

from tests.support.forms import interpreted_only
from tests.unit.coll.test_exchange import FakePml


class BlockingOnly(CollModule):
    """As a stranger wrote it for API 2.0."""

    def barrier(self) -> None:
        raise KeyError("the stranger's")


class Scheduled(CollModule):
    def schedule_barrier(self, exchange: Exchange) -> Schedule:
        raise IndexError("the scheduled one")
        yield


def selected(*kinds: type[CollModule]) -> SelectedColl:
    offers = [Offer(kind.__name__, 10, kind(communicator())) for kind in kinds]
    return SelectedColl(communicator(), offers)


def communicator() -> Communicator:
    """Two members, in a real one: compiled, nothing else is taken for a communicator."""
    me: Any = SimpleNamespace(rank=0)
    other: Any = SimpleNamespace(rank=1)
    context: Any = SimpleNamespace(me=me, engine=SimpleNamespace(lock=RankLock()))
    pml: Any = FakePml()
    return Communicator(context, pml, 0, [me, other], "MPI_COMM_MINE")


@interpreted_only
def test_a_module_without_schedules_wins_blocking_calls_only() -> None:
    coll = selected(BlockingOnly, Scheduled)
    with pytest.raises(KeyError):
        coll.barrier()
    with pytest.raises(IndexError):
        next(coll.schedule_barrier(Exchange(coll.communicator, -1)))


@interpreted_only
def test_a_schedule_serves_blocking_calls_too() -> None:
    with pytest.raises(IndexError):
        selected(Scheduled, BlockingOnly).barrier()


@interpreted_only
def test_what_nobody_offers_is_not_there() -> None:
    assert not Scheduled.offers("bcast")
    with pytest.raises(MPIError) as caught:
        selected(BlockingOnly).begin_operation("barrier", -1, ())
    assert caught.value.code == ERR_UNSUPPORTED_OPERATION
    assert caught.value.detail == (
        "MPI_COMM_MINE has no nonblocking barrier: none of the components of coll that may be used "
        "has it (BlockingOnly has the blocking one only); name one that has it in the parameter "
        "coll, too"
    )
    with pytest.raises(MPIError, match=r"has no bcast: .*used has it \(BlockingOnly lacks it\)"):
        selected(BlockingOnly).bcast(None, 0)
    with pytest.raises(MPIError, match=r"\(there is none\)"):
        selected().barrier()


def test_the_error_names_who_is_not_here_and_who_may_not_be_used() -> None:
    offers = [Offer("one", 20, Scheduled(communicator())), Offer("two", 10, None, "it is late")]
    coll = SelectedColl(communicator(), offers, lambda name: [f"a {name}", "b"])
    with pytest.raises(MPIError) as caught:
        coll.schedule_scan(None, None, None, None)
    assert "(one lacks it; two is not available here: it is late)" in caught.value.detail
    assert "a schedule_scan and b have it and may not be used" in caught.value.detail


def test_the_table_says_who_has_what_and_why() -> None:
    offers = [
        Offer("gone", 40, None, "it is late"),
        Offer("first", 30, BlockingOnly(communicator())),
        Offer("second", 20, Scheduled(communicator())),
        Offer("third", 10, Scheduled(communicator())),
    ]
    table = {row.operation: row for row in SelectedColl(communicator(), offers).table()}
    assert list(table) == list(OPERATIONS)
    row = table["barrier"]
    assert (row.blocking, row.nonblocking) == ("first", "second")
    assert [(each.component, each.verdict, each.reason) for each in row.verdicts] == [
        ("gone", "not available", "it is late"),
        ("first", "chosen for blocking calls", ""),
        ("second", "chosen for nonblocking calls", ""),
        ("third", "lower priority", ""),
    ]
    assert (table["scan"].blocking, table["scan"].nonblocking) == ("", "")
    assert {each.verdict for each in table["scan"].verdicts[1:]} == {"lacks it"}


def test_every_call_has_a_tag_of_its_own_for_long() -> None:
    coll = selected()
    tags = {coll.nonblocking_tag() for _ in range(1000)}
    assert len(tags) == 1000
    assert max(tags) <= TAG_NONBLOCKING
    coll._begun = TAGS_IN_TURN - 1
    assert coll.nonblocking_tag() == TAG_NONBLOCKING
    assert min(coll.nonblocking_tag() for _ in range(10)) > -TAG_CALLS


def test_a_module_can_be_copied() -> None:
    """Compiled, too: nothing in C stands in the way of what a stranger's module has."""
    module = BlockingOnly(communicator())
    module.number = 7  # type: ignore[attr-defined]
    again = copy(module)
    assert type(again) is BlockingOnly
    assert again.communicator is module.communicator
    assert vars(again) == {"number": 7}
