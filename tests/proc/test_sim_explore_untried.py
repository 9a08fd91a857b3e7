"""`ompy sim --explore`: what is not tried is a condition of the last line, where it matters."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.proc.test_sim_explore import sim
from tests.proc.test_sim_explore_answers import explored

pytestmark = pytest.mark.proc

ORDER: Final = "which rank accesses the same bytes of a file first"
STORED: Final = "what is read from files is the same in every schedule"
NAMES: Final = "whether a file is opened or removed first"
NOTICED: Final = "when a rank notices that another one has died or has revoked a communicator"
AGREED: Final = "when Iagree and Ishrink end"
ALIKE: Final = "if standard sends all buffer or all wait"

OPENED: Final = """
file = MPI.File.Open(comm, "numbers", MPI.MODE_RDWR | MPI.MODE_CREATE)
one = bytes([comm.rank + 1])
if comm.rank == 0:
    FIRST
elif comm.rank == 1:
    SECOND
OTHERS
file.Close()
"""


def opened(first: str, second: str, others: str = "pass") -> str:
    """A program whose ranks access one file."""
    program = OPENED.replace("FIRST", first).replace("SECOND", second)
    return program.replace("OTHERS", others)


BOTH_WRITE: Final = opened("file.Write_at(0, one)", "file.Write_at(0, one)")
APART: Final = opened("file.Write_at(0, one)", "file.Write_at(1, one)")
BOTH_READ: Final = opened("file.Read_at(0, bytearray(1))", "file.Read_at(0, bytearray(1))")
READ_BESIDE: Final = opened("file.Write_at(1, one)", "file.Read_at(0, bytearray(3))")
TOLD: Final = opened(
    "file.Write_at(0, one); comm.send(None, dest=1)",
    "comm.recv(source=0); file.Read_at(0, bytearray(1))",
)
TOLD_BEFORE: Final = opened(
    "comm.send(None, dest=1); file.Write_at(0, one)",
    "comm.recv(source=0); file.Read_at(0, bytearray(1))",
)
BARRIER: Final = opened(
    "file.Write_at(0, one)", "pass", "comm.Barrier(); file.Read_at(0, bytearray(1))"
)
BY_IBARRIER: Final = opened(
    "file.Write_at(0, one); comm.Ibarrier().Wait()",
    "comm.Ibarrier().Wait(); file.Write_at(0, one)",
)
WAITED_LATE: Final = opened(
    "request = file.Iwrite_at(0, one); comm.send(None, dest=1); request.Wait()",
    "comm.recv(source=0); file.Write_at(0, one)",
)
WAITED: Final = opened(
    "file.Iwrite_at(0, one).Wait(); comm.send(None, dest=1)",
    "comm.recv(source=0); file.Write_at(0, one)",
)
TOGETHER: Final = opened("pass", "pass", "file.Write_at_all(0, one)")
INTERLEAVED: Final = opened(
    "pass",
    "pass",
    "file.Set_view(comm.rank, MPI.BYTE, MPI.BYTE.Create_vector(3, 1, 2).Commit());"
    " file.Write_all(bytes(3))",
)
SIZES: Final = opened("file.Write_at(7, one)", "file.Get_size()")
CUT_OFF: Final = opened("pass", "file.Write_at(7, one)", "file.Set_size(3)")
SHARED: Final = opened("file.Write_shared(one)", "file.Write_shared(one)")
# the pointer's order is tried
POINTER: Final = opened(
    "file.Write_shared(one); place = file.Get_position_shared(); assert WHAT",
    "file.Write_shared(one)",
)
CHOSEN: Final = """
file = MPI.File.Open(comm, "numbers", MPI.MODE_RDWR | MPI.MODE_CREATE)
found = bytearray(1)
if comm.rank == 0:
    file.Write_at(0, bytes([comm.recv(source=SOURCE)]))
    comm.recv(source=MPI.ANY_SOURCE)
else:
    comm.send(comm.rank, dest=0)
comm.Barrier()
file.Read_at(0, found)
file.Close()
"""
ANYBODY: Final = CHOSEN.replace("SOURCE", "MPI.ANY_SOURCE", 1)
SURE: Final = CHOSEN.replace("SOURCE", "1", 1)
TWO_TO_ONE: Final = """
if comm.rank == 0:
    comm.recv(source=MPI.ANY_SOURCE)
    comm.recv(source=MPI.ANY_SOURCE)
else:
    comm.send(1, dest=0)
"""
OPENED_ONCE: Final = """
how = MPI.MODE_CREATE | MPI.MODE_WRONLY | ON_CLOSE
file = MPI.File.Open(comm, "scratch", how)
if comm.rank == 0:
    comm.recv(source=MPI.ANY_SOURCE)
    comm.recv(source=MPI.ANY_SOURCE)
else:
    comm.send(1, dest=0)
file.Close()
if comm.rank == 0:
    DELETED
"""
ON_CLOSE: Final = OPENED_ONCE.replace("ON_CLOSE", "MPI.MODE_DELETE_ON_CLOSE").replace(
    "DELETED", "pass"
)
BY_NAME: Final = OPENED_ONCE.replace("ON_CLOSE", "0").replace(
    "DELETED", "MPI.File.Delete('scratch')"
)
DELETED: Final = """
if comm.rank == 0:
    MPI.File.Open(MPI.COMM_SELF, "numbers", MPI.MODE_WRONLY | MPI.MODE_CREATE).Close()
    TELLS
else:
    HEARS
    try:
        MPI.File.Delete("numbers")
    except MPI.Exception:
        pass
"""
HEARD: Final = DELETED.replace("TELLS", "comm.send(None, dest=1)").replace(
    "HEARS", "comm.recv(source=0)"
)
UNHEARD: Final = DELETED.replace("TELLS", "pass").replace("HEARS", "pass")
NAMED: Final = """
found = True
if comm.rank == 0:
    port = MPI.Open_port()
    MPI.Publish_name("service", port)
    TELLS
    comm.recv(source=1)
    MPI.Unpublish_name("service", port)
elif comm.rank == 1:
    HEARS
    try:
        MPI.Lookup_name("service")
    except MPI.Exception as problem:
        assert problem.Get_error_class() == MPI.ERR_NAME
        found = False
    comm.send(None, dest=0)
    assert WHAT
"""
FOUND: Final = NAMED.replace("TELLS", "comm.send(None, dest=1)").replace(
    "HEARS", "comm.recv(source=0)"
)
MAYBE: Final = NAMED.replace("TELLS", "pass").replace("HEARS", "pass")
SEVERAL: Final = """
others = [rank for rank in range(3) if rank != comm.rank]
names = [f"service {rank}" for rank in range(3)]
MPI.Publish_name(names[comm.rank], MPI.Open_port())
found = []
for rank in others:
    try:
        MPI.Lookup_name(names[rank])
        found.append(True)
    except MPI.Exception:
        found.append(False)
found = comm.allgather(found)
assert WHAT
"""
SPINNING: Final = """
if comm.rank == 0:
    MPI.Publish_name("service", MPI.Open_port())
else:
    while True:
        try:
            MPI.Lookup_name("service")
            break
        except MPI.Exception:
            pass
comm.Barrier()
"""
# rank 2 is told of rank 1's first message only when that is over: so it comes first to rank 0 only
# where the small sends buffer, and then both large ones wait for each other if they do
MIXED: Final = """
if comm.rank == 0:
    first = comm.recv(source=MPI.ANY_SOURCE, tag=1)
    if first == "late":
        comm.send(bytes(1 << 20), dest=1)
    comm.recv(source=MPI.ANY_SOURCE, tag=1)
    comm.recv(source=1, tag=3)
    if first != "late":
        comm.send(b"", dest=1)
elif comm.rank == 1:
    comm.send("early", dest=0, tag=1)
    TELLS
    comm.send(bytes(1 << 20), dest=0, tag=3)
    comm.recv(source=0)
else:
    HEARS
    comm.send("late", dest=0, tag=1)
"""
BY_A_SEND: Final = MIXED.replace("TELLS", "comm.send(None, dest=2)").replace(
    "HEARS", "comm.recv(source=1)"
)
IN_ANY_ORDER: Final = """
if comm.rank:
    comm.send(comm.rank, dest=0)
else:
    comm.recv(source=MPI.ANY_SOURCE)
    comm.recv(source=MPI.ANY_SOURCE)
"""
REVOKED: Final = """
comm.Set_errhandler(MPI.ERRORS_RETURN)
if comm.rank == 0:
    comm.Revoke()
made = comm.Shrink()
assert made.size == comm.size
"""
DEAD: Final = """
import os
if comm.rank == 1:
    os.kill(os.getpid(), 9)
made = comm.Shrink()
assert made.size == comm.size - 1
"""
AGREEING: Final = """
request = comm.Iagree(bytearray(4))
request.Test()
request.Wait()
"""
WAITS_FOR_DEAD: Final = """
import os
comm.Set_errhandler(MPI.ERRORS_RETURN)
if comm.rank == 1:
    os.kill(os.getpid(), 9)
try:
    comm.recv(source=1)
except MPI.Exception:
    pass
"""
SURVIVES: Final = ["--mca", "mpi_ft_enable", "1"]


@pytest.mark.parametrize(
    ("program", "ranks", "conditions"),
    [
        pytest.param(BOTH_WRITE, 2, [ORDER], id="both write"),
        pytest.param(APART, 2, [], id="apart"),
        pytest.param(BOTH_READ, 2, [], id="both read"),
        pytest.param(READ_BESIDE, 2, [ORDER], id="read beside"),
        pytest.param(TOLD, 2, [], id="told"),
        pytest.param(TOLD_BEFORE, 2, [ORDER], id="told before"),
        pytest.param(BARRIER, 3, [], id="barrier"),
        pytest.param(BY_IBARRIER, 2, [], id="Ibarrier"),
        pytest.param(WAITED_LATE, 2, [ORDER], id="waited late"),
        pytest.param(WAITED, 2, [], id="waited"),
        pytest.param(TOGETHER, 2, [ORDER], id="together"),
        pytest.param(INTERLEAVED, 2, [], id="interleaved"),
        pytest.param(SIZES, 2, [ORDER], id="sizes"),
        pytest.param(CUT_OFF, 2, [], id="cut off"),
        pytest.param(SHARED, 2, [], id="shared pointer"),
        pytest.param(ANYBODY, 3, [STORED], id="chosen"),
        pytest.param(SURE, 3, [], id="sure"),
        pytest.param(HEARD, 2, [], id="heard"),
        pytest.param(UNHEARD, 2, [NAMES], id="unheard"),
        pytest.param(ON_CLOSE, 3, [STORED], id="deleted on close in each world"),
        pytest.param(BY_NAME, 3, [STORED], id="deleted by name in each world"),
    ],
)
def test_a_condition_is_said_where_it_matters(
    tmp_path: Path, program: str, ranks: int, conditions: list[str]
) -> None:
    (tmp_path / "numbers").write_bytes(bytes(9))
    code, said = explored(tmp_path, program, "True", ranks)
    assert code == 0, said
    for one in (ORDER, STORED, NAMES):
        assert (one in said) is (one in conditions), said
    last = said.splitlines()[0]
    assert last.endswith("and this input") is (not conditions), last


@pytest.mark.parametrize(
    ("program", "what", "ranks", "fails"),
    [
        (FOUND, "found", 2, False),
        (MAYBE, "found", 2, True),
        (MAYBE, "not found", 2, True),
        (MAYBE, "True", 2, False),
        (SEVERAL, "any(map(any, found))", 3, False),
        (SEVERAL, "found != [[False, True], [True, True], [False, False]]", 3, True),
        (SPINNING, "", 2, False),
        (SPINNING, "", 3, False),
    ],
)
def test_a_name_is_found_or_not_yet(
    tmp_path: Path, program: str, what: str, ranks: int, fails: bool
) -> None:
    code, said = explored(tmp_path, program, what, ranks)
    assert code == fails, said
    assert ("AssertionError" in said) is fails
    assert ("; proven " in said) is not fails


@pytest.mark.parametrize("what", ["place == 1", "place == 2"])
def test_both_orders_at_a_shared_pointer_are_tried(tmp_path: Path, what: str) -> None:
    assert explored(tmp_path, POINTER, what, 2)[0] == 1
    assert explored(tmp_path, POINTER, "place in (1, 2)", 2)[0] == 0


@pytest.mark.parametrize(
    ("program", "condition"),
    [(REVOKED, NOTICED), (DEAD, NOTICED), (AGREEING, AGREED)],
    ids=["revoked", "dead", "agreeing"],
)
def test_when_others_notice_is_a_condition(tmp_path: Path, program: str, condition: str) -> None:
    done = sim(tmp_path, program, "--explore", "--jobs", "1", "-n", "2", *SURVIVES)
    assert done.returncode == 0, done.stderr
    assert f"if it makes no difference {condition}" in done.stderr


@pytest.mark.parametrize(
    ("program", "conditional"),
    [(BY_A_SEND, True), (IN_ANY_ORDER, False)],
    ids=["behind a send", "in any order"],
)
def test_that_sends_are_alike_is_a_condition_where_it_matters(
    tmp_path: Path, program: str, conditional: bool
) -> None:
    """Only where sends buffer there are schedules that none has where they wait."""
    done = sim(tmp_path, program, "--explore", "--jobs", "1", "-n", "3")
    assert done.returncode == 0, done.stderr
    assert "2 schedules" in done.stderr
    assert (ALIKE in done.stderr) == conditional, done.stderr


def test_who_would_notice_a_death_elsewhere_is_in_no_deadlock(tmp_path: Path) -> None:
    done = sim(tmp_path, WAITS_FOR_DEAD, "--explore", "--jobs", "1", "-n", "2", *SURVIVES)
    assert done.returncode == 1, done.stderr
    assert "that is not explored" in done.stderr
    assert "deadlock" not in done.stderr


# who has its part of a collective call goes on, or waits until all have made the call
LEFT_EARLY: Final = """
from array import array
room, total = array("i", [1]), array("i", [0, 0, 0])
if comm.rank == 2:
    BEFORE
CALL
if comm.rank == 1:
    comm.send(None, dest=2)
AFTER
"""
HEARS_FIRST: Final = LEFT_EARLY.replace("BEFORE", "comm.recv(source=1)").replace("AFTER", "")
BEGUN_FIRST: Final = LEFT_EARLY.replace(
    "BEFORE", "request = comm.Ibcast(room); comm.recv(source=1)"
).replace("CALL", "if comm.rank < 2: request = comm.Ibcast(room)")


@pytest.mark.parametrize(
    "call",
    [
        "comm.Bcast(room)",
        "comm.bcast(None)",
        "comm.Reduce(room, array('i', [0]) if comm.rank == 0 else None)",
        "comm.reduce(1)",
        "comm.gather(1)",
        "comm.scatter([1, 2, 3])",
        "comm.scan(1)",
        "comm.exscan(1)",
        "comm.Exscan(room, total[:1])",
        "comm.Gather(room, total if comm.rank == 0 else None)",
        "comm.Scatter(total, room)",
        "comm.Scan(room, total[:1])",
        "comm.Ibcast(room).Wait()",
        "request = comm.Bcast_init(room); request.Start(); request.Wait()",
    ],
)
def test_a_collective_call_may_wait_for_all_members(tmp_path: Path, call: str) -> None:
    code, said = explored(tmp_path, HEARS_FIRST.replace("CALL", call), "", 3)
    assert code == 4, said
    assert "standard sends that wait" in said
    assert "where rank 2 is missing" in said


@pytest.mark.parametrize(
    ("program", "ranks"),
    [
        (BEGUN_FIRST.replace("AFTER", "request.Wait()"), 3),
        ("comm.Bcast(bytearray(1))\ncomm.Reduce(bytearray(1), bytearray(1))", 3),
        ("comm.Bcast(bytearray(1))\nMPI.COMM_SELF.Bcast(bytearray(1))", 2),
        (
            "made = comm.Split(comm.rank % 2)\nmade.Bcast(bytearray(1))\n"
            "request = made.Ibcast(bytearray(1))\nrequest.Test()\nrequest.Wait()\nmade.Free()",
            3,
        ),
        # groups of two and of three, whose communicators have the same context id
        ("made = comm.Split(comm.rank < 2)\nmade.Bcast(bytearray(1))\nmade.Free()", 5),
    ],
)
def test_calls_that_all_make_end(tmp_path: Path, program: str, ranks: int) -> None:
    code, said = explored(tmp_path, program, "", ranks)
    assert code == 0, said
    assert "; proven " in said


def test_a_file_that_is_deleted_twice_is_an_error_in_each_world(tmp_path: Path) -> None:
    twice = BY_NAME.rstrip() + "\n    MPI.File.Delete('scratch')\n"
    code, said = explored(tmp_path, twice, "True", 3)
    assert code == 1, said
    assert "MPI_ERR_NO_SUCH_FILE" in said


@pytest.mark.parametrize(
    "before",
    ["", TWO_TO_ONE],
    ids=["another mode", "another schedule"],
)
def test_a_program_that_fails_the_second_time_fails_by_no_schedule(
    tmp_path: Path, before: str
) -> None:
    program = f"""
import os
{before}
if comm.rank == 0:
    assert not os.path.exists("left"), "it was run before"
    open("left", "w").close()
"""
    done = sim(tmp_path, program, "--explore", "--jobs", "1", "-n", "3")
    assert done.returncode == 1, done.stderr
    assert "this program cannot be explored, as it does not do the same again" in done.stderr
    assert "it was run before" in done.stderr
    assert "decides" not in done.stderr
