"""Sums of one message of each member: which could have got a message of the next round."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy.check.analysis import findings_of
from ompy.check.logs import Place, Record

from tests.unit.check.records import WORLD, coll, record, recv, send

ANY = -1
SIZE = 3
HEAD = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\nsize = comm.size\n"
LOOP = "for _ in range({count}):\n    {body}\n"
ADDS = "total += comm.recv(source=MPI.ANY_SOURCE)"


def program(count: str = "size - 1", body: str = ADDS, fresh: str = "total = 0") -> str:
    """A sum of a round in a function."""
    lines = [fresh, *LOOP.format(count=count, body=body).splitlines()]
    return f"{HEAD}total = 0\ndef sum_of_round():\n    global total\n" + "".join(
        f"    {line}\n" for line in lines
    )


def line_of(text: str) -> int:
    return 1 + next(n for n, line in enumerate(text.splitlines()) if "recv" in line)


def kinds(folder: Path, text: str, *, barrier: bool = False, alike: bool = False) -> list[str]:
    """What is found if a program's line receives twice from each of two ranks."""
    app = folder / "app.py"
    app.write_text(text)
    received, sent = [], []
    for step in range(2):
        for source in (1, 2):
            digest = 1 if alike else 10 * step + source
            received.append(recv(ANY, source, asked=True, digest=digest))
        sent.append(send(0))
        if barrier:
            received.append(coll("Barrier"))
            sent.append(coll("Barrier"))
    ranks: dict[int, Record] = {0: record(0, SIZE, *received)}
    ranks |= {rank: record(rank, SIZE, *sent) for rank in (1, 2)}
    at = line_of(text)
    ranks[0].events = [
        (event[0], 1, *event[2:]) if event[0] == "recv" else event for event in ranks[0].events
    ]
    ranks[0].places[1] = Place(str(app), at, "sum_of_round")
    assert ranks[0].comms[WORLD].own == [0, 1, 2]
    found = findings_of(ranks, None, went_well=True)
    assert all(one.sites[0]["line"] == at for one in found)
    return [one.kind for one in found]


RACE = ["message-race"]


@pytest.mark.parametrize("count", ["size - 1", "1, size", "comm.size - 1", "1, comm.Get_size()"])
def test_a_message_of_the_next_round(count: str, tmp_path: Path) -> None:
    assert kinds(tmp_path, program(count)) == RACE


def test_the_value_may_have_a_name_first(tmp_path: Path) -> None:
    body = "value = comm.recv(source=MPI.ANY_SOURCE); total += value"
    assert kinds(tmp_path, program(body=body)) == RACE


def test_an_outer_loop_with_a_sum_of_its_own(tmp_path: Path) -> None:
    rounds = (
        f"for step in range(2):\n    total = 0\n    for _ in range(size - 1):\n        {ADDS}\n"
    )
    assert kinds(tmp_path, HEAD + rounds) == RACE
    assert kinds(tmp_path, HEAD + rounds.replace("    total = 0\n", "")) == [], "it goes on adding"


def test_rounds_that_are_ordered(tmp_path: Path) -> None:
    assert kinds(tmp_path, program(), barrier=True) == []


def test_messages_that_are_alike(tmp_path: Path) -> None:
    assert kinds(tmp_path, program(), alike=True) == []


@pytest.mark.parametrize(
    "text",
    [
        program(count="2 * (size - 1)"),
        program(count="4"),
        program(fresh="pass"),
        program(body="history.append(comm.recv(source=MPI.ANY_SOURCE))"),
    ],
    ids=["all in one loop", "a number", "no beginning", "kept"],
)
def test_what_is_right_in_any_order(text: str, tmp_path: Path) -> None:
    assert kinds(tmp_path, text) == []


def kinds_of_two(folder: Path, text: str, *, barrier: bool = False) -> list[str]:
    """What is found if two lines of a program receive once from each of two ranks."""
    app = folder / "app.py"
    app.write_text(text)
    at = [n for n, line in enumerate(text.splitlines(), 1) if "recv" in line.lower()]
    received, sent = [], []
    for step in range(2):
        received += [recv(ANY, source, asked=True, digest=10 * step + source) for source in (1, 2)]
        sent.append(send(0))
        if barrier:
            received.append(coll("Barrier"))
            sent.append(coll("Barrier"))
    ranks: dict[int, Record] = {0: record(0, SIZE, *received)}
    ranks |= {rank: record(rank, SIZE, *sent) for rank in (1, 2)}
    places = iter((1, 1, 2, 2))
    ranks[0].events = [
        (event[0], next(places), *event[2:]) if event[0] == "recv" else event
        for event in ranks[0].events
    ]
    for number, line in enumerate(at, 1):
        ranks[0].places[number] = Place(str(app), line, "<module>")
    return [one.kind for one in findings_of(ranks, None, went_well=True)]


PHASE = "{sum} = 0\nfor _ in range(size - 1):\n    {sum} += comm.recv(source=MPI.ANY_SOURCE)\n"
INTO = (
    "others = size - 1\n{sum} = 0\nfor _ in range(others):\n"
    "    comm.Recv(b, source=MPI.ANY_SOURCE)\n    {sum} += b[0]\n"
)


@pytest.mark.parametrize("phase", [PHASE, INTO], ids=["returned", "into a buffer"])
def test_two_phases_with_sums_of_their_own(phase: str, tmp_path: Path) -> None:
    text = HEAD + phase.format(sum="first") + phase.format(sum="second")
    assert kinds_of_two(tmp_path, text) == RACE
    assert kinds_of_two(tmp_path, text, barrier=True) == []
    one = HEAD + phase.format(sum="total") + phase.format(sum="total").replace("total = 0\n", "")
    assert kinds_of_two(tmp_path, one) == [], "it goes on adding"


AT_ONCE = "{sum} = sum(comm.recv(source=MPI.ANY_SOURCE) for _ in range(size - 1))\n"


def test_sums_in_one_expression(tmp_path: Path) -> None:
    text = HEAD + AT_ONCE.format(sum="first") + AT_ONCE.format(sum="second")
    assert kinds_of_two(tmp_path, text) == RACE
    assert kinds_of_two(tmp_path, text, barrier=True) == []
    on = HEAD + "total = 0\n" + AT_ONCE.replace("=", "+=", 1).format(sum="total") * 2
    assert kinds_of_two(tmp_path, on) == [], "it goes on adding"
    kept = HEAD + "best = 0\n" + AT_ONCE.format(sum="best").replace("sum(", "max(best, max(") * 2
    assert kinds_of_two(tmp_path, kept.replace("1))", "1)))")) == [], "it goes on"


LOOPED = program().replace("    global total\n", "") + "    return total\n"
ONCE = f"{HEAD}def sum_of_round():\n    return {AT_ONCE.format(sum='')[3:]}"


@pytest.mark.parametrize("text", [LOOPED, ONCE], ids=["in a loop", "in one expression"])
@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("grand += sum_of_round()", []),
        ("grand = sum(sum_of_round() for _ in range(2))", []),
        ("one = sum_of_round()", RACE),
    ],
)
def test_a_sum_that_the_caller_adds_up(
    text: str, call: str, found: list[str], tmp_path: Path
) -> None:
    assert kinds(tmp_path, f"{text}{call}\n") == found


def test_functions_have_sums_of_their_own(tmp_path: Path) -> None:
    body = "".join(f"    {line}\n" for line in PHASE.format(sum="total").splitlines())
    assert kinds_of_two(tmp_path, f"{HEAD}def one():\n{body}\ndef two():\n{body}") == RACE
