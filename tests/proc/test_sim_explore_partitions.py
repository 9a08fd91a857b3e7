"""`ompy sim --explore`: when a program is told of a partitioned message is a choice, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.proc.test_sim_explore import sim
from tests.proc.test_sim_explore_answers import explored

pytestmark = pytest.mark.proc

# each with what is taken for granted (WHAT) that another schedule does not give
MESSAGE: Final = """
room, other = bytearray(range(4)) if comm.rank == 0 else bytearray(4), bytearray(1)
if comm.rank == 0:
    request = comm.Psend_init(room, 2, dest=1, tag=1)
    request.Start()
    request.Pready(0)
    request.Pready(1)
    comm.Send(b"x", dest=1, tag=2)
else:
    request = comm.Precv_init(room, 2, source=0, tag=1)
    request.Start()
    both = [request, comm.Irecv(other, source=0, tag=2)]
    ASKS
    MPI.Request.Waitall(both)
request.Wait()
request.Free()
if comm.rank == 1:
    assert room == bytearray(range(4)) and (WHAT)
"""


def message(asks: str) -> str:
    """A partitioned message beside another one, and what their receiver asks."""
    return MESSAGE.replace("ASKS", asks)


WAITANY = message("first = MPI.Request.Waitany(both)")
WAITSOME = message("some = sorted(MPI.Request.Waitsome(both))")
TESTANY = message("first = MPI.Request.Testany(both)[0]")
TESTSOME = message("some = sorted(MPI.Request.Testsome(both))")
TESTALL = message("all_here = MPI.Request.Testall(both)")
WAIT_THEN_TEST = message("both[1].Wait(); done = request.Test()")
PARRIVED_BESIDE = message("other_done = both[1].Test(); here = request.Parrived(0)")
# the end of the sender's side
SENDER: Final = """
room, other = bytearray(4), bytearray(1)
if comm.rank == 0:
    request = comm.Psend_init(room, 2, dest=1, tag=1)
    request.Start()
    request.Pready_range(0, 1)
    both = [request, comm.Irecv(other, source=1, tag=2)]
    ASKS
    MPI.Request.Waitall(both)
    assert WHAT
else:
    request = comm.Precv_init(room, 1, source=0, tag=1)
    request.Start()
    comm.Send(b"x", dest=0, tag=2)
    request.Wait()
request.Free()
"""
SENT: Final = SENDER.replace("ASKS", "done = request.Test()")
SENT_ANY: Final = SENDER.replace("ASKS", "first = MPI.Request.Waitany(both)")
# the test finds nothing, whatever has been offered by then: what follows depends on no offer
OFFERED: Final = """
if comm.rank == 0:
    first = comm.recv(source=MPI.ANY_SOURCE, tag=1)
    request = comm.Psend_init(bytearray(2), 2, dest=1, tag=1)
    comm.recv(source=MPI.ANY_SOURCE, tag=1)
    request.Start()
    request.Pready_range(0, 1)
    request.Wait()
    assert WHAT
elif comm.rank == 1:
    request = comm.Precv_init(bytearray(2), 2, source=0, tag=1)
    request.Start()
    other = comm.irecv(source=2, tag=3)
    other.test()
    comm.send(1, dest=0, tag=1)
    other.wait()
    request.Wait()
else:
    comm.send(2, dest=0, tag=1)
    comm.send(None, dest=1, tag=3)
"""
# two requests with one tag meet in the order in which they are made, started again in any
IN_ORDER: Final = """
rooms = [bytearray([each] * 2) if comm.rank == 0 else bytearray(2) for each in (7, 8)]
if comm.rank == 0:
    requests = [comm.Psend_init(room, 2, dest=1, tag=1) for room in rooms]
else:
    requests = [comm.Precv_init(room, 1, source=0, tag=1) for room in rooms]
for again in range(2):
    for request in requests if comm.rank else reversed(requests):
        request.Start()
        if comm.rank == 0:
            request.Pready_list([1, 0])
    if comm.rank == 1:
        first = MPI.Request.Waitany(requests)
    MPI.Request.Waitall(requests)
assert rooms == [bytearray([each] * 2) for each in (7, 8)] and (comm.rank == 0 or WHAT)
"""
# the receive is started behind a message that comes behind the send
WAITS: Final = """
if comm.rank == 0:
    request = comm.Psend_init(bytearray(2), 2, dest=1, tag=1)
    request.Start()
    request.Pready_range(0, 1)
    request.Wait()
    comm.send(None, dest=1)
else:
    request = comm.Precv_init(bytearray(2), 2, source=0, tag=1)
    comm.recv(source=0)
    request.Start()
    request.Wait()
"""
# sizes that differ are an error at the receiver; nothing waits for ever
DIFFER: Final = """
comm.Set_errhandler(MPI.ERRORS_RETURN)
if comm.rank == 0:
    request = comm.Psend_init(bytearray(2), 2, dest=1, tag=1)
    request.Start()
    request.Pready_range(0, 1)
    request.Wait()
else:
    request = comm.Precv_init(bytearray(4), 1, source=0, tag=1)
    request.Start()
    try:
        request.Wait()
    except MPI.Exception as problem:
        assert problem.Get_error_class() == MPI.ERR_TRUNCATE
    else:
        raise AssertionError("it is told of no error")
"""


@pytest.mark.parametrize(
    ("program", "what", "ranks"),
    [
        (WAITANY, "first == 0", 2),
        (WAITANY, "first == 1", 2),
        (WAITSOME, "some != [0]", 2),
        (WAITSOME, "some != [1]", 2),
        (WAITSOME, "some != [0, 1]", 2),
        (TESTANY, "first in (0, 1)", 2),
        (TESTANY, "first != 0", 2),
        (TESTANY, "first != 1", 2),
        (TESTSOME, "some", 2),
        (TESTSOME, "some != [0]", 2),
        (TESTSOME, "some != [1]", 2),
        (TESTSOME, "some != [0, 1]", 2),
        (TESTALL, "all_here", 2),
        (TESTALL, "not all_here", 2),
        (WAIT_THEN_TEST, "done", 2),
        (WAIT_THEN_TEST, "not done", 2),
        (PARRIVED_BESIDE, "here or not other_done", 2),
        (PARRIVED_BESIDE, "other_done or not here", 2),
        (SENT, "done", 2),
        (SENT, "not done", 2),
        (SENT_ANY, "first == 0", 2),
        (SENT_ANY, "first == 1", 2),
        (OFFERED, "first == 1", 3),
        (OFFERED, "first == 2", 3),
        (IN_ORDER, "first == 0", 2),
        (IN_ORDER, "first == 1", 2),
    ],
)
def test_an_order_that_is_taken_for_granted(
    tmp_path: Path, program: str, what: str, ranks: int
) -> None:
    code, said = explored(tmp_path, program, what, ranks)
    assert code == 1, said
    assert "AssertionError" in said


@pytest.mark.parametrize(
    ("program", "what", "ranks"),
    [
        (WAITANY, "first in (0, 1)", 2),
        (TESTANY, "first in (0, 1, MPI.UNDEFINED)", 2),
        (TESTSOME, "some in ([], [0], [1], [0, 1])", 2),
        (SENT, "True", 2),
        (SENT_ANY, "True", 2),
        (OFFERED, "True", 3),
        (IN_ORDER, "True", 2),
        (DIFFER, "True", 2),
    ],
)
def test_whatever_is_told_ends_well(tmp_path: Path, program: str, what: str, ranks: int) -> None:
    code, said = explored(tmp_path, program, what, ranks)
    assert code == 0, said
    assert "; proven " in said


def test_a_partitioned_send_may_wait_for_its_receive(tmp_path: Path) -> None:
    code, said = explored(tmp_path, WAITS, "", 2)
    assert code == 4, said
    assert "standard sends that wait" in said


def told(asks: Sequence[str], parts: int) -> set[tuple[object, ...]]:
    """What a receiver can be told, by trying every order of all that comes and all it asks.

    Args:
        asks: "0", "1" ...: whether a partition has arrived; "test": a test of the message, which
            finds nothing, it, or the other message; "any": a wait for one of both.
        parts: partitions of the message.
    """
    pending = frozenset([*map(str, range(parts)), "other"])
    stack: list[tuple[frozenset[str], int, tuple[object, ...]]] = [(pending, 0, ())]
    found = set()
    while stack:
        left, place, answers = stack.pop()
        stack += [(left - {one}, place, answers) for one in left]
        if place == len(asks):
            found.add(answers)
            continue
        stack += [(left, place + 1, (*answers, one)) for one in answer(asks, left, answers)]
    return found


def answer(
    asks: Sequence[str], left: frozenset[str], answers: tuple[object, ...]
) -> Iterator[object]:
    """What can be answered next."""
    ask = asks[len(answers)]
    known = {one for one in answers if one in {"whole", "other"}}
    parts_here = {asked for asked, one in zip(asks, answers, strict=False) if one is True}
    if ask.isdigit():
        yield ask not in left if "whole" not in known and ask not in parts_here else True
        if ask not in left and "whole" not in known and ask not in parts_here:
            yield False  # it may be on its way
        return
    complete = [one for one in ("whole", "other") if one not in known]
    complete = [
        one for one in complete if not left & ({"other"} if one == "other" else left - {"other"})
    ]
    if ask == "any" and known:
        yield min(known)  # it knows of one already
        return
    yield from complete
    if ask == "test":
        yield "known" if "whole" in known else "nothing"


@pytest.mark.parametrize(
    ("asks", "parts"),
    [
        (["0", "1"], 2),
        (["1", "0", "1"], 2),
        (["0", "0", "1", "2"], 3),
        (["any"], 2),
        (["0", "any"], 2),
        (["test", "any"], 2),
        (["1", "test"], 2),
    ],
    ids=str,
)
def test_there_are_as_many_schedules_as_answers(
    tmp_path: Path, asks: list[str], parts: int
) -> None:
    words = {"test": "request.Test()", "any": "MPI.Request.Waitany(both)"}
    lines = [words.get(ask, f"request.Parrived({ask})") for ask in asks]
    program = message("; ".join(lines)).replace("2, dest=1", f"{parts}, dest=1")
    program = program.replace("room, 2, source", f"room, {parts}, source")
    program = program.replace("request.Pready(0)", f"request.Pready_range(0, {parts - 1})")
    program = program.replace("    request.Pready(1)\n", "").replace("range(4)", "range(6)")
    program = program.replace("bytearray(4)", "bytearray(6)").replace("WHAT", "True")
    done = sim(tmp_path, program, "--explore", "--jobs", "1", "-n", "2", "--polls", "9")
    assert done.returncode == 0, done.stderr
    counted = re.search(r"(\d+) schedules", done.stderr)
    assert counted is not None, done.stderr
    assert int(counted[1]) == len(told(asks, parts))
