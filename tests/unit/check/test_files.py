"""Calls on files, in records written by hand: what members say alike, and conflicting accesses."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.check.analysis.file_arguments import argument_findings
from ompy.check.analysis.file_races import file_findings
from ompy.check.analysis.matching import messages_of
from ompy.check.analysis.order import Order
from ompy.check.findings import Found
from ompy.check.logs import Record

WORLD, SELF = 1, 2
PATH = "/data/out.dat"


class Rank:
    """Writes one rank's record; each entry has a line of its own."""

    def __init__(self, rank: int, size: int) -> None:
        self.record = Record(rank)
        everybody = list(range(size))
        self.record.take_event(("comm", WORLD, "0:a:1", "world", rank, everybody, everybody))
        self.record.take_event(("comm", SELF, f"1:{rank}:1", "self", 0, [rank], [rank]))
        self._everybody = everybody
        self._lines = 0
        self._last = SELF

    def line(self) -> int:
        self._lines += 1
        self.record.take_event(("site", self._lines, "program.py", self._lines, "main"))
        return self._lines

    def coll(self, comm: int, kind: str) -> None:
        self.record.take_event(("coll", self.line(), kind, comm, kind, -1, "", None, None, 0))

    def say(self, kind: str, comm: int = WORLD, **values: Any) -> int:
        """All members make a call, and say this."""
        said = tuple((name, value, str(value)) for name, value in values.items())
        line = self.line()
        self.record.take_event(("coll", line, kind, comm, kind, -1, "", None, None, 0))
        self.record.take_event(("said", line, kind, comm, kind, said))
        return line

    def open(self, key: str = "7:a:1", path: str = PATH, identity: str = "1:5") -> int:
        """Open a file on a communicator of its own; its number."""
        self._last += 1
        whole = key == "7:a:1"
        own = self._everybody if whole else [self.record.rank]
        place = own.index(self.record.rank)
        self.coll(WORLD if whole else SELF, "File.Open")
        self.record.take_event(("comm", self._last, key, "file", place, own, own))
        line = self.line()
        event = ("file", line, "file.Open", self._last, self._last, path, identity)
        self.record.take_event(event)
        return self._last

    def access(
        self, file: int, what: str, low: int, high: int, atomic: bool = False, request: int = 0
    ) -> int:
        line = self.line()
        event = ("access", line, f"file.{what}", file, what, [(low, high)], atomic, request)
        self.record.take_event(event)
        return line

    def wait(self, request: int) -> None:
        self.record.take_event(("wait", self.line(), "request.Wait", [request], [request], "all"))

    def barrier(self) -> None:
        self.coll(WORLD, "Barrier")


def ranks_of(size: int) -> list[Rank]:
    return [Rank(rank, size) for rank in range(size)]


def records_of(ranks: list[Rank], *, ends: bool = True) -> dict[int, Record]:
    records = {each.record.rank: each.record for each in ranks}
    for record in records.values():
        if ends:
            record.take_event(("end",))
    return records


def races(ranks: list[Rank]) -> list[Found]:
    records = records_of(ranks)
    return file_findings(records, Order(records, messages_of(records)))


# --- what members say alike


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("amode", "invalid-argument"),
        ("size", "count-mismatch"),
        ("etype", "type-mismatch"),
        ("datarep", "invalid-argument"),
        ("flag", "invalid-argument"),
        ("offset", "invalid-argument"),
    ],
)
def test_one_member_says_something_else(name: str, kind: str) -> None:
    ranks = ranks_of(3)
    lines = [each.say("File.Call", **{name: 8 if number == 1 else 4}) for number, each in
             enumerate(ranks)]  # fmt: skip
    (found,) = argument_findings(records_of(ranks))
    assert found.kind == kind
    assert f"the {name} is 8 on rank 1 and 4 on rank 0" in found.message
    assert {site["line"] for site in found.sites} == set(lines)
    assert len(found.sites) == 3


def test_all_say_the_same() -> None:
    ranks = ranks_of(2)
    for each in ranks:
        each.say("File.Set_size", size=8)
    assert argument_findings(records_of(ranks)) == []


def test_the_order_of_calls_is_wrong_so_arguments_are_not_compared() -> None:
    ranks = ranks_of(2)
    ranks[0].say("File.Set_size", size=8)
    ranks[1].say("File.Preallocate", size=4)
    assert argument_findings(records_of(ranks)) == []


@pytest.mark.parametrize("went_on", [True, False])
def test_a_program_that_catches_the_error_and_goes_on(went_on: bool) -> None:
    ranks = ranks_of(2)
    for number, each in enumerate(ranks):
        line = each.say("File.Set_size", size=number)
        event = ("raised", "invalid-argument", "they differ", ((line, "file.Set_size"),))
        each.record.take_event(event)
    assert len(argument_findings(records_of(ranks, ends=went_on))) == (0 if went_on else 1)


@pytest.mark.parametrize(
    ("paths", "identities", "differ"),
    [
        (("/a", "/a"), ("1:2", "9:2"), False),  # of two hosts
        (("/a", "/b"), ("1:2", "1:2"), False),  # two names of one file
        (("/a", "/b"), ("1:2", "1:3"), True),
        (("/a", "/b"), ("", ""), True),  # it could not be opened
    ],
)
def test_names_of_a_file(paths: Any, identities: Any, differ: bool) -> None:
    ranks = ranks_of(2)
    for each, path, identity in zip(ranks, paths, identities, strict=True):
        line = each.say("File.Open", file=path, amode=2)
        if identity:
            each.record.take_event(("file", line, "file.Open", 9, WORLD, path, identity))
    found = argument_findings(records_of(ranks))
    assert [one.kind for one in found] == ["invalid-argument"] * differ


# --- conflicting accesses


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [("write", "write", 1), ("write", "read", 1), ("read", "read", 0)],
)
@pytest.mark.parametrize("shift", [0, 4, 8])
def test_the_same_bytes(one: str, other: str, found: int, shift: int) -> None:
    ranks = ranks_of(2)
    ranks[0].access(ranks[0].open(), one, 0, 8)
    ranks[1].access(ranks[1].open(), other, shift, shift + 8)
    assert len(races(ranks)) == (found if shift < 8 else 0)


def test_what_a_finding_says() -> None:
    ranks = ranks_of(2)
    read = ranks[0].access(ranks[0].open(), "read", 0, 12)
    wrote = ranks[1].access(ranks[1].open(), "write", 8, 16)
    (found,) = races(ranks)
    assert found.kind == "rma-race"
    assert "rank 1's file.write writes bytes 8 to 12 of out.dat while rank 0's" in found.message
    assert "MPI 4.1, 14.6.1" in found.message
    assert [site["line"] for site in found.sites] == [wrote, read]


@pytest.mark.parametrize(
    ("between", "found"), [(["Sync"], 0), (["Barrier"], 1), (["Sync", "Barrier", "Sync"], 0)]
)
def test_what_is_between(between: list[str], found: int) -> None:
    """A barrier orders two accesses, and does not make the one visible to the other."""
    ranks = ranks_of(2)
    files = [each.open() for each in ranks]
    ranks[0].access(files[0], "write", 0, 8)
    for call in between:
        for each, file in zip(ranks, files, strict=True):
            if call == "Sync":
                each.coll(file, "File.Sync")
            else:
                each.barrier()
    ranks[1].access(files[1], "read", 0, 8)
    assert len(races(ranks)) == found


@pytest.mark.parametrize(("between", "found"), [(["Barrier"], 0), ([], 1)])
def test_what_is_written_when_it_was_read(between: list[str], found: int) -> None:
    """A read that is over cannot miss, or see, what is written later."""
    ranks = ranks_of(2)
    files = [each.open() for each in ranks]
    ranks[0].access(files[0], "read", 0, 8)
    for _ in between:
        for each in ranks:
            each.barrier()
    ranks[1].access(files[1], "write", 0, 8)
    assert len(races(ranks)) == found


@pytest.mark.parametrize("atomic", [(True, True), (True, False), (False, False)])
def test_atomic_mode(atomic: tuple[bool, bool]) -> None:
    ranks = ranks_of(2)
    for each, mode in zip(ranks, atomic, strict=True):
        each.access(each.open(), "write", 0, 8, atomic=mode)
    assert len(races(ranks)) == (0 if all(atomic) else 1)


@pytest.mark.parametrize("closed", ["before", "after", "never"])
def test_a_file_that_each_opens(closed: str) -> None:
    """What the one has written is there for the other if it was closed before that opened it."""
    ranks = ranks_of(2)
    file = ranks[0].open(key="8:0:1")
    ranks[0].access(file, "write", 0, 8)
    if closed == "before":
        ranks[0].coll(file, "File.Close")
    for each in ranks:
        each.barrier()
    if closed == "after":
        ranks[0].coll(file, "File.Close")
    ranks[1].access(ranks[1].open(key="8:1:1"), "read", 0, 8)
    assert len(races(ranks)) == (0 if closed == "before" else 1)


@pytest.mark.parametrize(("path", "identity"), [("/data/other", "1:5"), (PATH, "1:6")])
def test_another_file(path: str, identity: str) -> None:
    """A path may be another file on another host; an inode is used again."""
    ranks = ranks_of(2)
    ranks[0].access(ranks[0].open(key="8:0:1"), "write", 0, 8)
    ranks[1].access(ranks[1].open("8:1:1", path, identity), "write", 0, 8)
    assert races(ranks) == []


@pytest.mark.parametrize("waits", ["between", "behind", "never"])
def test_of_one_rank_what_is_pending(waits: str) -> None:
    ranks = ranks_of(2)
    (file, _) = [each.open() for each in ranks]
    ranks[0].access(file, "write", 0, 8, request=5)
    if waits == "between":
        ranks[0].wait(5)
    ranks[0].access(file, "read", 4, 12)
    if waits == "behind":
        ranks[0].wait(5)
    assert len(races(ranks)) == (0 if waits == "between" else 1)


def test_nothing_is_said_of_threads_and_of_unknown_places() -> None:
    ranks = ranks_of(2)
    for each in ranks:
        each.access(each.open(), "write", 0, 8)
    ranks[1].record.take_event(("threads",))
    assert races(ranks) == []
    ranks = ranks_of(2)
    for each in ranks:
        event = ("access", each.line(), "file.Write_shared", each.open(), "write", None, False, 0)
        each.record.take_event(event)
    assert races(ranks) == []


def test_each_line_once_and_long_loops_end_soon() -> None:
    ranks = ranks_of(2)
    for each in ranks:
        file = each.open()
        line = each.access(file, "write", 0, 8)
        for number in range(3000):
            event = ("access", line, "file.Write", file, "write", [(0, 8 + number)], False, 0)
            each.record.take_event(event)
    assert len(races(ranks)) == 1
