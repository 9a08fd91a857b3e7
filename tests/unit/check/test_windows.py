"""Conflicting accesses to windows, in records written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ompy.check.analysis.matching import messages_of
from ompy.check.analysis.order import Order
from ompy.check.analysis.windows import common, window_findings, without
from ompy.check.findings import Found
from ompy.check.logs import Record
from ompy.check.program_text import may_wait_in_loop

EXCLUSIVE, SHARED, NOCHECK = 1, 2, 1 << 8
WINDOW, WORLD, OWN = 2, 1, 3  # numbers of the window, of the world, of the window's communicator


class Rank:
    """Writes one rank's record; each entry has a line of its own."""

    def __init__(self, rank: int, size: int, making: str = "win.Create") -> None:
        self.record = Record(rank)
        everybody = list(range(size))
        for number, key in ((WORLD, "0:a:1"), (OWN, "2:a:1")):
            self.record.take_event(("comm", number, key, key, rank, everybody, everybody))
        self._lines = 0
        self.coll(WORLD, "Win.Create")
        self.record.take_event(("win", self.line(), making, WINDOW, "2:a:1", OWN, rank))

    def line(self) -> int:
        self._lines += 1
        self.record.take_event(("site", self._lines, "program.py", self._lines, "main"))
        return self._lines

    def coll(self, comm: int, kind: str) -> None:
        self.record.take_event(("coll", self.line(), kind, comm, kind, -1, "", None, None, 0))

    def barrier(self) -> None:
        self.coll(WORLD, "Barrier")

    def sync(self, what: str, *targets: int, mode: int = 0) -> None:
        self.record.take_event(("sync", self.line(), what, WINDOW, what, list(targets), mode))
        if what == "fence":
            self.coll(OWN, "Win.Fence")

    def rma(
        self, what: str, target: int, low: int, high: int, op: str = "", request: int = 0
    ) -> int:
        """The line."""
        ranges = [(low, high)]
        return self.access(what, target, ranges, op, request)

    def access(
        self, what: str, target: int, ranges: list[tuple[int, int]] | None, op: str, request: int
    ) -> int:
        call = "" if what in {"load", "store"} else f"win.{what}"
        line = self.line()
        self.record.take_event(("rma", line, call, WINDOW, what, target, ranges, op, request))
        return line

    def changed(self, low: int, high: int) -> None:
        """A store that only its epoch's end tells of."""
        event = (self.line(), "win.Fence", WINDOW, "store", self.record.rank, [(low, high)], "", 0)
        self.record.take_event(("rma", *event))

    def send(self, target: int) -> None:
        event = (self.line(), "comm.send", WORLD, target, 0, None, "standard", 0)
        self.record.take_event(("send", *event))

    def recv(self, source: int) -> None:
        got = (source, 0, 1, False, 0)
        self.record.take_event(("recv", self.line(), "comm.recv", WORLD, source, 0, None, 0, got))


Program = Callable[[list[Rank]], None]


def ranks_of(size: int) -> list[Rank]:
    return [Rank(rank, size) for rank in range(size)]


def findings(ranks: list[Rank]) -> list[Found]:
    records = {each.record.rank: each.record for each in ranks}
    for record in records.values():
        if not any(event == ("cut",) for event in record.events):
            record.take_event(("end",))
    return window_findings(records, Order(records, messages_of(records)))


def all_of(ranks: list[Rank], what: str, *arguments: Any, **more: Any) -> None:
    for each in ranks:
        getattr(each, what)(*arguments, **more)


# kinds of two ranks' accesses to the same bytes, and whether they conflict
KINDS = [
    (("put", ""), ("put", ""), True),
    (("put", ""), ("get", ""), True),
    (("get", ""), ("get", ""), False),
    (("put", ""), ("acc", "SUM/q8"), True),
    (("get", ""), ("acc", "SUM/q8"), True),
    (("get", ""), ("acc", "NO_OP/q8"), False),
    (("put", ""), ("acc", "NO_OP/q8"), True),
    (("acc", "SUM/q8"), ("acc", "SUM/q8"), False),
    (("acc", "SUM/q8"), ("acc", "MAX/q8"), True),
    (("acc", "SUM/q8"), ("acc", "NO_OP/q8"), False),
    (("acc", "SUM/q8"), ("acc", "CAS/q8"), False),
    (("acc", "SUM/q8"), ("acc", "SUM/d8"), True),
    (("acc", "SUM/i4"), ("acc", "SUM/q8"), True),
]


@pytest.mark.parametrize(("one", "other", "conflict"), KINDS)
def test_kinds(one: tuple[str, str], other: tuple[str, str], conflict: bool) -> None:
    ranks = ranks_of(3)
    all_of(ranks, "sync", "fence")
    ranks[0].rma(one[0], 2, 0, 8, one[1])
    ranks[1].rma(other[0], 2, 0, 8, other[1])
    all_of(ranks, "sync", "fence")
    assert [each.kind for each in findings(ranks)] == ["rma-race"] * conflict


@pytest.mark.parametrize(
    ("local", "remote", "conflict"),
    [
        ("store", "put", True),
        ("store", "get", True),
        ("store", "acc", True),
        ("load", "put", True),
        ("load", "get", False),
        ("load", "acc", True),
    ],
)
def test_the_owner(local: str, remote: str, conflict: bool) -> None:
    ranks = ranks_of(2)
    all_of(ranks, "sync", "fence")
    ranks[0].rma(local, 0, 8, 16)
    ranks[1].rma(remote, 0, 0, 16, "SUM/q8" if remote == "acc" else "")
    all_of(ranks, "sync", "fence")
    assert [each.kind for each in findings(ranks)] == ["rma-race"] * conflict


def test_what_a_finding_says() -> None:
    ranks = ranks_of(3)
    all_of(ranks, "sync", "fence")
    one, other = ranks[0].rma("put", 2, 0, 12), ranks[1].rma("put", 2, 8, 16)
    all_of(ranks, "sync", "fence")
    (found,) = findings(ranks)
    assert "bytes 8 to 12 of rank 2's part" in found.message
    assert "MPI 4.1, 12.3" in found.message
    sites = {(site["rank"], site["line"], site["call"]) for site in found.sites}
    assert sites == {(0, one, "win.put"), (1, other, "win.put")}


def test_no_common_bytes() -> None:
    ranks = ranks_of(3)
    all_of(ranks, "sync", "fence")
    ranks[0].access("put", 2, [(0, 8), (16, 24)], "", 0)
    ranks[1].access("put", 2, [(8, 16), (24, 32)], "", 0)
    all_of(ranks, "sync", "fence")
    assert not findings(ranks)


def test_other_targets() -> None:
    ranks = ranks_of(3)
    all_of(ranks, "sync", "fence")
    ranks[0].rma("put", 2, 0, 8)
    ranks[1].rma("put", 0, 0, 8)
    all_of(ranks, "sync", "fence")
    assert not findings(ranks)


def test_a_fence_between() -> None:
    ranks = ranks_of(3)
    all_of(ranks, "sync", "fence")
    ranks[0].rma("put", 2, 0, 8)
    all_of(ranks, "sync", "fence")
    ranks[1].rma("put", 2, 0, 8)
    ranks[2].rma("get", 0, 0, 8)
    all_of(ranks, "sync", "fence")
    ranks[2].rma("load", 2, 0, 8)
    assert not findings(ranks)


def passive(ranks: list[Rank], *modes: int) -> None:
    for each, mode in zip(ranks, modes, strict=False):
        each.sync("lock", 2, mode=mode)
        each.rma("put", 2, 0, 8)
        each.sync("unlock", 2)


@pytest.mark.parametrize(
    ("modes", "found"),
    [
        ((EXCLUSIVE, EXCLUSIVE), 0),
        ((EXCLUSIVE, SHARED), 0),
        ((SHARED, SHARED), 1),
        ((EXCLUSIVE | NOCHECK, SHARED), 1),
    ],
)
def test_locks(modes: tuple[int, int], found: int) -> None:
    ranks = ranks_of(3)
    passive(ranks, *modes)
    assert len(findings(ranks)) == found


def test_a_message_orders_only_what_is_complete() -> None:
    for flushed in (True, False):
        ranks = ranks_of(3)
        for each in ranks[:2]:
            each.sync("lock_all")
        ranks[0].rma("put", 2, 0, 8)
        if flushed:
            ranks[0].sync("flush", 2)
        ranks[0].send(1)
        ranks[1].recv(0)
        ranks[1].rma("put", 2, 0, 8)
        for each in ranks[:2]:
            each.sync("unlock_all")
        assert len(findings(ranks)) == (not flushed)


@pytest.mark.parametrize("how", ["flush", "flush_local", "none"])
def test_one_origin(how: str) -> None:
    ranks = ranks_of(2)
    ranks[0].sync("lock", 1, mode=EXCLUSIVE)
    ranks[0].rma("put", 1, 0, 8)
    if how != "none":
        ranks[0].sync(how, 1)
    ranks[0].rma("get", 1, 0, 8)
    ranks[0].sync("unlock", 1)
    # what is complete at the origin only may still be on its way
    assert len(findings(ranks)) == (how != "flush")


def test_one_origin_accumulates_in_order() -> None:
    ranks = ranks_of(2)
    ranks[0].sync("lock", 1, mode=SHARED)
    ranks[0].rma("acc", 1, 0, 8, "SUM/q8")
    ranks[0].rma("acc", 1, 0, 8, "REPLACE/q8")
    ranks[0].sync("unlock", 1)
    assert not findings(ranks)


def test_a_request_completes_a_get() -> None:
    ranks = ranks_of(2)
    ranks[0].sync("lock", 1, mode=SHARED)
    ranks[0].rma("get", 1, 0, 8, request=7)
    ranks[0].record.take_event(("wait", ranks[0].line(), "request.Wait", [7], [7], "all"))
    ranks[0].rma("put", 1, 0, 8)
    ranks[0].sync("unlock", 1)
    assert not findings(ranks)


def test_the_barrier_that_is_missing() -> None:
    for there in (True, False):
        ranks = ranks_of(2)
        ranks[0].rma("store", 0, 0, 8)
        if there:
            all_of(ranks, "barrier")
        ranks[1].sync("lock", 0, mode=SHARED)
        ranks[1].rma("get", 0, 0, 8)
        ranks[1].sync("unlock", 0)
        assert len(findings(ranks)) == (not there)


def general(ranks: list[Rank], *, load_before_wait: bool) -> None:
    target, origin = ranks[0], ranks[1]
    target.sync("post", 1)
    if load_before_wait:
        target.rma("load", 0, 0, 8)
    target.sync("wait")
    if not load_before_wait:
        target.rma("load", 0, 0, 8)
    origin.sync("start", 0)
    origin.rma("put", 0, 0, 8)
    origin.sync("complete")


@pytest.mark.parametrize("early", [True, False])
def test_post_and_wait(early: bool) -> None:
    ranks = ranks_of(2)
    ranks[0].rma("store", 0, 0, 8)  # ordered by the post
    for _ in range(3):
        general(ranks, load_before_wait=early)
    assert len(findings(ranks)) == 3 * early  # each time on lines of its own


def test_wait_orders_through_a_third_rank() -> None:
    ranks = ranks_of(3)
    general(ranks, load_before_wait=False)
    ranks[0].send(2)
    ranks[2].recv(0)
    ranks[2].sync("lock", 0, mode=SHARED)
    ranks[2].rma("put", 0, 0, 8)
    ranks[2].sync("unlock", 0)
    found = findings(ranks)
    assert not found, found


def test_a_lock_of_the_programs_own() -> None:
    ranks = ranks_of(3)
    for each in ranks[:2]:
        each.sync("lock_all")
        for _ in range(3):
            each.rma("acc", 2, 0, 8, "CAS/q8")
            each.sync("flush", 2)
            each.rma("put", 2, 8, 16)
            each.sync("flush", 2)
            each.rma("acc", 2, 0, 8, "REPLACE/q8")
            each.sync("flush", 2)
        each.sync("unlock_all")
    assert not findings(ranks)


def test_a_lock_of_the_programs_own_that_is_given_back_too_early() -> None:
    ranks = ranks_of(3)
    for each in ranks[:2]:
        each.sync("lock_all")
        for _ in range(3):
            each.rma("acc", 2, 0, 8, "CAS/q8")
            each.sync("flush", 2)
            each.rma("acc", 2, 0, 8, "REPLACE/q8")
            each.rma("put", 2, 8, 16)
            each.sync("flush", 2)
        each.sync("unlock_all")
    assert len(findings(ranks)) == 1


def test_a_lost_update_under_shared_locks() -> None:
    ranks = ranks_of(3)
    for each in ranks[:2]:
        for _ in range(4):
            each.sync("lock", 2, mode=SHARED)
            each.rma("get", 2, 0, 8)
            each.sync("flush", 2)
            each.rma("put", 2, 0, 8)
            each.sync("unlock", 2)
    assert findings(ranks)


def test_a_poll_is_no_race_and_may_order() -> None:
    ranks = ranks_of(2)
    origin, owner = ranks[1], ranks[0]
    origin.sync("lock_all")
    origin.rma("put", 0, 8, 16)
    origin.sync("flush", 0)
    origin.rma("acc", 0, 0, 8, "REPLACE/q8")
    origin.sync("unlock_all")
    owner.rma("load", 0, 0, 8, "poll")
    owner.rma("load", 0, 8, 16)
    assert not findings(ranks)


def test_a_change_that_only_the_epochs_end_shows() -> None:
    ranks = ranks_of(2)
    all_of(ranks, "sync", "fence")
    ranks[1].rma("get", 0, 0, 8)
    ranks[0].changed(4, 6)
    all_of(ranks, "sync", "fence")
    (found,) = findings(ranks)
    assert "bytes 4 to 6" in found.message


def test_a_change_that_a_put_explains() -> None:
    ranks = ranks_of(3)
    all_of(ranks, "sync", "fence")
    ranks[1].rma("put", 0, 0, 8)
    ranks[2].rma("get", 0, 8, 16)
    ranks[0].changed(4, 6)
    all_of(ranks, "sync", "fence")
    assert not findings(ranks)


def test_a_change_somewhere_in_an_epoch_with_messages() -> None:
    ranks = ranks_of(2)
    all_of(ranks, "sync", "fence")
    ranks[0].send(1)  # perhaps behind the change
    ranks[1].recv(0)
    ranks[1].rma("get", 0, 0, 8)
    ranks[0].changed(0, 8)
    all_of(ranks, "sync", "fence")
    assert not findings(ranks)


def test_a_promise_that_nothing_is_put() -> None:
    ranks = ranks_of(2)
    all_of(ranks, "sync", "fence", mode=4)
    ranks[1].rma("put", 0, 0, 8)
    all_of(ranks, "sync", "fence")
    (found,) = findings(ranks)
    assert found.kind == "epoch"


@pytest.mark.parametrize("why", ["cut", "missing", "threads", "ranges", "crash"])
def test_nothing_is_said_of_what_is_not_known(why: str) -> None:
    ranks = ranks_of(3)
    all_of(ranks, "sync", "fence")
    ranks[0].access("put", 2, None if why == "ranges" else [(0, 8)], "", 0)
    ranks[1].rma("put", 2, 0, 8)
    if why == "threads":
        ranks[1].record.take_event(("threads",))
    if why == "cut":
        ranks[2].record.take_event(("cut",))
    if why != "crash":
        all_of(ranks, "sync", "fence")
    records = {each.record.rank: each.record for each in ranks}
    if why == "missing":
        del records[2]
    if why not in {"crash", "cut"}:
        for record in records.values():
            record.take_event(("end",))
    assert not window_findings(records, Order(records, messages_of(records)))


def ranks_that_share(size: int) -> list[Rank]:
    return [Rank(rank, size, "win.Allocate_shared") for rank in range(size)]


def test_loads_and_stores_of_shared_memory() -> None:
    ranks = ranks_that_share(3)
    store = ranks[0].rma("store", 1, 0, 8)
    load = ranks[2].rma("load", 1, 4, 12)
    (found,) = findings(ranks)
    assert sorted(site["line"] for site in found.sites) == sorted((store, load))
    assert "rank 0 itself writes bytes 4 to 8 of rank 1's part" in found.message
    assert "Call Sync, a barrier and Sync" in found.message


@pytest.mark.parametrize("between", ["barrier", "fence", "message", "apart", "reads"])
def test_what_orders_loads_and_stores_of_shared_memory(between: str) -> None:
    ranks = ranks_that_share(2)
    ranks[0].rma("load" if between == "reads" else "store", 1, 0, 8)
    if between == "barrier":
        all_of(ranks, "barrier")
    elif between == "fence":
        all_of(ranks, "sync", "fence")
    elif between == "message":
        ranks[0].send(1)
        ranks[1].recv(0)
    low = 8 if between == "apart" else 0
    ranks[1].rma("load", 1, low, low + 8)
    assert not findings(ranks)


@pytest.mark.parametrize("mode", [EXCLUSIVE, SHARED])
def test_a_lock_of_any_part_of_shared_memory(mode: int) -> None:
    ranks = ranks_that_share(2)
    for each in ranks:
        each.sync("lock", 0, mode=mode)
        each.rma("store", 1, 0, 8)
        each.sync("unlock", 0)
    assert bool(findings(ranks)) == (mode == SHARED)


def test_a_rank_that_waits_for_a_store() -> None:
    ranks = ranks_that_share(2)
    ranks[0].rma("store", 0, 8, 16)
    ranks[0].rma("store", 0, 0, 8)
    ranks[1].rma("load", 0, 0, 8, "poll")
    ranks[1].rma("load", 0, 8, 16)
    assert not findings(ranks)


@pytest.mark.parametrize(
    ("loop", "waits"),
    [
        ("while flag[0] == 0:\n    pass", True),
        ("while not ready():\n    time.sleep(0.1)", True),
        ("while True:\n    if flag[0]:\n        break", True),
        ("while n < 3:\n    n += 1", False),
        ("while True:\n    x = comm.recv()\n    if x is None:\n        break", False),
        ("while not request.Test():\n    pass", False),
        ("while True:\n    n += 1", False),
    ],
)
def test_programs_that_may_wait_for_a_store(loop: str, waits: bool, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(loop + "\n")
    assert may_wait_in_loop(str(program)) == waits
    ranks = ranks_that_share(2)
    for each in ranks:
        each.record.files = (str(program),)
    ranks[0].rma("store", 0, 0, 8)
    ranks[1].rma("load", 0, 0, 8)
    assert bool(findings(ranks)) != waits
    # who puts in one epoch of fences waits for nobody there
    all_of(ranks, "sync", "fence")
    for each in ranks:
        each.rma("put", 0, 16, 24)
    all_of(ranks, "sync", "fence")
    assert findings(ranks)


def test_long_loops_end_soon() -> None:
    ranks = ranks_of(3)
    for _ in range(300):
        all_of(ranks, "sync", "fence")
        for each in ranks:
            for place in range(8):
                at = 64 * each.record.rank + 8 * place
                each.rma("put", 2, at, at + 8)
    all_of(ranks, "sync", "fence")
    assert not findings(ranks)


def test_ranges() -> None:
    assert common(((0, 4), (8, 12)), ((4, 8), (10, 20))) == (10, 12)
    assert common(((0, 4),), ((4, 8),)) == (0, 0)
    assert without(((0, 10),), ((2, 4), (8, 20))) == ((0, 2), (4, 8))
