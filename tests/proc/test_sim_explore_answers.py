"""`ompy sim --explore`: whatever a test, a cancel or a look may be answered is a choice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.proc.test_sim_explore import sim

pytestmark = pytest.mark.proc

# each with what is taken for granted (WHAT) that another schedule does not give
IBARRIER = """
request = comm.Ibarrier()
polls = 0
while not request.Test():
    polls += 1
assert WHAT
"""
IALLREDUCE = """
from array import array
total = array("i", [0])
request = comm.Iallreduce(array("i", [1]), total)
done = request.Test()
request.Wait()
assert total[0] == 2 and (WHAT)
"""
# what a rank does after an answer comes before what would have been another answer
TOLD_EARLY = """
if comm.rank == 0:
    request = comm.Ibarrier()
    comm.send("late" if request.Test() else "early", dest=1)
    request.Wait()
elif comm.rank == 1:
    first = comm.recv(source=MPI.ANY_SOURCE)
    comm.Ibarrier().Wait()
    comm.recv(source=MPI.ANY_SOURCE)
    assert WHAT
else:
    request = comm.isend("beside", dest=1)
    comm.Ibarrier().Wait()
    request.wait()
"""
ANY_OF_BOTH = """
room = bytearray(1)
request = comm.Ibarrier()
if comm.rank == 0:
    both = [request, comm.Irecv(room, source=1)]
    first = MPI.Request.Waitany(both)
    MPI.Request.Waitall(both)
    assert WHAT
else:
    comm.Send(b"x", dest=0)
    request.Wait()
"""
# all wait for rank 0 meanwhile, which has to go on with its barrier there
BESIDE_A_PROBE = """
request = comm.Ibarrier()
if comm.rank == 0:
    for _ in range(2):
        comm.Probe(source=MPI.ANY_SOURCE)
        comm.recv(source=MPI.ANY_SOURCE)
    request.Wait()
else:
    request.Wait()
    comm.send(None, dest=0)
assert WHAT
"""
PERSISTENT = """
request = comm.Barrier_init()
for _ in range(2):
    request.Start()
    done = request.Test()
    request.Wait()
assert WHAT
"""
EXPOSED = """
memory = bytearray(2)
window = MPI.Win.Create(memory, 1, comm=comm)
if comm.rank == 0:
    window.Post(comm.group.Excl([0]))
    done = window.Test()
    polls = 0
    while not done and not window.Test():
        polls += 1
    assert bytes(memory) == b"xx"[: comm.size - 1].ljust(2, bytes(1))
    assert WHAT
else:
    window.Start(comm.group.Incl([0]))
    window.Put(b"x", 0, comm.rank - 1)
    window.Complete()
window.Free()
"""
PARTITIONS = """
room = bytearray(range(4)) if comm.rank == 0 else bytearray(4)
if comm.rank == 0:
    request = comm.Psend_init(room, 2, dest=1, tag=1)
    request.Start()
    request.Pready(0)
    request.Pready(1)
else:
    request = comm.Precv_init(room, PARTS, source=0, tag=1)
    request.Start()
    ASKS
request.Wait()
request.Free()
if comm.rank == 1:
    assert room == bytearray(range(4)) and (WHAT)
"""
EACH = PARTITIONS.replace("PARTS", "2").replace(
    "ASKS", "second, first = request.Parrived(1), request.Parrived(0)"
)
BOTH = PARTITIONS.replace("PARTS", "1").replace("ASKS", "both = request.Parrived(0)")
WHOLE = PARTITIONS.replace("PARTS", "2").replace("ASKS", "both = request.Test()")
TESTALL = """
room = memoryview(bytearray(2))
if comm.rank == 0:
    requests = [comm.Irecv(room[:1], source=1), comm.Irecv(room[1:], source=2)]
    both = MPI.Request.Testall(requests)
    MPI.Request.Waitall(requests)
    assert WHAT
else:
    comm.Send(b"x", dest=0)
"""
# the sender goes on when its message is taken, or later
CANCELLED = """
room, status = bytearray(1), MPI.Status()
if comm.rank == 0:
    request = comm.Irecv(room, source=SOURCE, tag=1)
    BETWEEN
    request.Cancel()
    request.Wait(status)
    late = not status.Is_cancelled()
    comm.recv(source=1, tag=3)
    if not late:
        comm.Recv(room, source=SOURCE, tag=1)
    assert room == b"x" and (WHAT)
elif comm.rank == 1:
    send = comm.SENDS(room[:0] + b"x", dest=0, tag=1)
    told = comm.isend(None, dest=0, tag=3)
    AFTER
    told.wait()
    send.Wait()
else:
    comm.send(None, dest=0, tag=2)
"""


def cancelled(source: str, sends: str, between: str, after: str = "pass") -> str:
    """A program that cancels a receive behind another call."""
    program = CANCELLED.replace("SOURCE", source).replace("SENDS", sends)
    return program.replace("BETWEEN", between).replace("AFTER", after)


BESIDE_OTHERS = cancelled("1", "Isend", "comm.recv(source=2, tag=2)")
SYNCHRONOUS = cancelled("1", "Issend", "comm.recv(source=2, tag=2)")
OF_ANYBODY = cancelled("MPI.ANY_SOURCE", "Issend", "comm.recv(source=2, tag=2)")
BARRIER = cancelled("1", "Isend", "comm.Barrier()", "comm.Barrier()")
KNOWN = cancelled("1", "Isend", "comm.recv(source=1, tag=4)", "comm.send(None, dest=0, tag=4)")
# who cancels waits in the other case, and only a receive that is not cancelled ends that
ONE_OF_TWO = """
room, status = bytearray(1), MPI.Status()
if comm.rank == 0:
    request = comm.Irecv(room, source=1, tag=1)
    if comm.recv(source=MPI.ANY_SOURCE, tag=2) == 1:
        request.Wait()
    else:
        request.Cancel()
        request.Wait(status)
        if status.Is_cancelled():
            comm.Recv(room, source=1, tag=1)
        assert WHAT
    comm.recv(source=MPI.ANY_SOURCE, tag=2)
else:
    if comm.rank == 1:
        send = comm.Isend(b"x", dest=0, tag=1)
    comm.send(comm.rank, dest=0, tag=2)
    if comm.rank == 1:
        send.Wait()
"""
# what is loaded behind a Win.Sync, while others may change it
LOADED = """
memory = MPI.Win.Allocate(16 if comm.rank == 0 else 0, 8, comm=comm)
one = (1).to_bytes(8, "little")
value = memory.tomemory().cast("q")
if comm.rank == 0:
    value[0] = 0
comm.Barrier()
memory.Lock_all()
if comm.rank == 0:
    TOLD
    SYNC
    found = value[0]
else:
    memory.Accumulate([one, 1, MPI.INT64_T], 0, op=MPI.SUM)
    TELLS
memory.Unlock_all()
assert comm.rank or (WHAT)
memory.Free()
"""


def loaded(told: str = "pass", tells: str = "pass", sync: str = "memory.Sync()") -> str:
    """A program that loads from its own part of a window."""
    return LOADED.replace("TOLD", told).replace("TELLS", tells).replace("SYNC", sync)


BESIDE = loaded()
TOLD = loaded("comm.recv(source=1)", "comm.send(None, dest=0)")
FLUSHED = loaded("comm.recv(source=1)", "memory.Flush(0); comm.send(None, dest=0)")
UNSEEN = loaded(sync="pass")
AGAIN = loaded(sync="while not value[0]: memory.Sync()")
# each with BEGIN, which gives `request`, before which the rest is made and behind which it is freed
REQUEST = """
from array import array
room, other = array("i", [0]), array("i", [0])
BEFORE
if comm.rank == 0 or TOGETHER:
    BEGIN
    done = request.Test()
    request.Wait()
    assert WHAT
BEHIND
"""
WINDOW = (
    "window = MPI.Win.Create(array('i', [7]), 4, comm=comm); window.Lock_all()",
    "window.Unlock_all(); window.Free()",
)
FILE = (
    "file = MPI.File.Open(comm, 'numbers', MPI.MODE_RDWR | MPI.MODE_CREATE)",
    "file.Close()",
)


def requested(begin: str, around: tuple[str, str], *, together: bool = False) -> str:
    """A program that tests what it has begun once, and then waits for it."""
    before, behind = around
    program = REQUEST.replace("BEFORE", before).replace("BEHIND", behind)
    return program.replace("BEGIN", begin).replace("TOGETHER", str(together))


IDUP = requested("made, request = comm.Idup()", ("pass", "made.Free()"), together=True)
RPUT = requested("request = window.Rput(room, 1)", WINDOW)
RGET = requested("request = window.Rget(room, 1)", WINDOW)
RACCUMULATE = requested("request = window.Raccumulate(room, 1)", WINDOW)
RGET_ACCUMULATE = requested("request = window.Rget_accumulate(room, other, 1)", WINDOW)
FLUSHED_REQUEST = requested("request = window.Rget(room, 1); window.Flush(1)", WINDOW)
IWRITE = requested("request = file.Iwrite_at(0, room)", FILE)
IWRITE_ALL = requested("request = file.Iwrite_at_all(0, room)", FILE, together=True)
BUFFER = ("MPI.Attach_buffer(MPI.Alloc_mem(9999))", "MPI.Detach_buffer()")
FLUSH = requested(
    "comm.Bsend(room, dest=0); request = comm.Iflush_buffer(); comm.Recv(other, source=0)", BUFFER
)
IBSEND = requested("request = comm.Ibsend(room, dest=0); comm.Recv(other, source=0)", BUFFER)
BSEND_INIT = requested(
    "request = comm.Bsend_init(room, dest=0); request.Start(); comm.Recv(other, source=0)", BUFFER
)
PROBED = requested(
    "sent = comm.isend(None, dest=0); request = comm.mprobe(source=0).irecv()",
    ("pass", "comm.rank or sent.wait()"),
)
ALONE = requested("request = MPI.COMM_SELF.Ibarrier()", ("pass", "pass"))
GET_STATUS = requested(
    "sent = comm.isend(None, dest=0); request = comm.irecv(source=0)", ("pass", "pass")
).replace("request.Test()", "request.Get_status()")
ANY_OF_ANSWERS = """
from array import array
rooms = array("i", [0]), array("i", [0])
window = MPI.Win.Create(array("i", [7]), 4, comm=comm)
window.Lock_all()
if comm.rank == 0:
    requests = [window.Rget(rooms[0], 0), window.Rget(rooms[1], 1)]
    first = MPI.Request.Waitany(requests)
    MPI.Request.Waitall(requests)
    assert rooms[0][0] == rooms[1][0] == 7 and (WHAT)
window.Unlock_all()
window.Free()
"""
# what a flush brings is known then, though nobody has waited for the request
CHANGED = """
from array import array
room, changed = array("i", [0]), array("i", [8])
window = MPI.Win.Create(array("i", [7]), 4, comm=comm)
window.Lock_all()
if comm.rank == 0:
    request = window.Rget(room, 1)
    window.Flush(1)
    found = room[0]
    comm.send(found, dest=2)
    request.Wait()
    assert WHAT
elif comm.rank == 2:
    told = comm.recv(source=0) if LATER else 0
    window.Put(changed, 1)
    told = told or comm.recv(source=0)
window.Unlock_all()
window.Free()
"""
SPINS = """
from array import array
room, changed = array("i", [0]), array("i", [8])
window = MPI.Win.Create(array("i", [7]), 4, comm=comm)
window.Lock_all()
if comm.rank == 0:
    while room[0] != 8:
        window.Rget(room, 1).Wait()
    assert WHAT
else:
    window.Accumulate(changed, 1, op=MPI.REPLACE)
window.Unlock_all()
window.Free()
"""


def explored(folder: Path, program: str, what: str, ranks: int) -> tuple[int, str]:
    """How a program is explored that takes something for granted."""
    words = ["--explore", "--jobs", "1", "-n", str(ranks)]
    done = sim(folder, program.replace("WHAT", what), *words)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("program", "what", "ranks", "says"),
    [
        (IBARRIER, "polls == 0", 2, "finds nothing yet"),
        (IBARRIER, "polls == 1", 2, "AssertionError"),
        (IALLREDUCE, "done", 2, "finds nothing yet"),
        (IALLREDUCE, "not done", 2, ""),
        (TOLD_EARLY, "first != 'early'", 3, "takes the message that rank 0"),
        (ANY_OF_BOTH, "first == 0", 2, "is told first of its operation"),
        (ANY_OF_BOTH, "first == 1", 2, "is told first of its operation"),
        (PERSISTENT, "done", 2, "finds nothing yet"),
        (PERSISTENT, "not done", 2, ""),
        (EXPOSED, "done", 2, "finds nothing yet"),
        (EXPOSED, "not done", 2, ""),
        (EXPOSED, "not done", 3, ""),
        (EACH, "first or not second", 2, "finds nothing yet"),
        (EACH, "second or not first", 2, "finds nothing yet"),
        (EACH, "first or second", 2, "finds nothing yet"),
        (EACH, "not first or not second", 2, ""),
        (BOTH, "both", 2, ""),
        (BOTH, "not both", 2, ""),
        (WHOLE, "both", 2, ""),
        (WHOLE, "not both", 2, ""),
        (TESTALL, "both", 3, ""),
        (BESIDE_OTHERS, "late", 3, "posts a receive that is cancelled before anything comes"),
        (BESIDE_OTHERS, "not late", 3, "takes the message that rank 1"),
        (SYNCHRONOUS, "late", 3, "cancelled before anything comes"),
        (SYNCHRONOUS, "not late", 3, "takes the message that rank 1"),
        (OF_ANYBODY, "late", 3, "cancelled before anything comes"),
        (OF_ANYBODY, "not late", 3, "takes the message that rank 1"),
        (BARRIER, "late", 2, "cancelled before anything comes"),
        (BARRIER, "not late", 2, "takes the message that rank 1"),
        (KNOWN, "not late", 2, ""),
        (ONE_OF_TWO, "status.Is_cancelled()", 3, ""),
        (BESIDE, "found == 0", 2, "serves what rank"),
        (BESIDE, "found == 1", 2, "serves what rank"),
        (BESIDE, "found in (0, 2)", 3, "serves what rank"),
        (TOLD, "found == 1", 2, ""),
        (ONE_OF_TWO, "not status.Is_cancelled()", 3, "cancelled before anything comes"),
        (TESTALL, "not both", 3, "is told at the same time"),
        (IDUP, "done", 2, "finds nothing yet"),
        (IDUP, "not done", 2, ""),
        (RPUT, "done", 2, "finds nothing yet"),
        (RPUT, "not done", 2, ""),
        (RGET, "done", 2, "finds nothing yet"),
        (RGET, "not done", 2, ""),
        (RACCUMULATE, "done", 2, "finds nothing yet"),
        (RGET_ACCUMULATE, "done", 2, "finds nothing yet"),
        (RGET_ACCUMULATE, "not done", 2, ""),
        (FLUSHED_REQUEST, "not done", 2, ""),
        (IWRITE, "done", 2, "finds nothing yet"),
        (IWRITE, "not done", 2, ""),
        (IWRITE_ALL, "done", 2, "finds nothing yet"),
        (IWRITE_ALL, "not done", 2, ""),
        (FLUSH, "done", 2, "finds nothing yet"),
        (FLUSH, "not done", 2, ""),
        (IBSEND, "done", 2, "finds nothing yet"),
        (IBSEND, "not done", 2, ""),
        (BSEND_INIT, "done", 2, "finds nothing yet"),
        (BSEND_INIT, "not done", 2, ""),
        (PROBED, "done", 2, "finds nothing yet"),
        (PROBED, "not done", 2, ""),
        (ALONE, "done", 2, "finds nothing yet"),
        (ALONE, "not done", 2, ""),
        (GET_STATUS, "done", 2, "finds nothing yet"),
        (GET_STATUS, "not done", 2, ""),
        (ANY_OF_ANSWERS, "first == 0", 2, "is told first of its operation"),
        (ANY_OF_ANSWERS, "first == 1", 2, "is told first of its operation"),
        (CHANGED.replace("LATER", "False"), "found == 7", 3, "serves what rank"),
        (CHANGED.replace("LATER", "False"), "found == 8", 3, ""),
    ],
)
def test_an_answer_that_is_taken_for_granted(
    tmp_path: Path, program: str, what: str, ranks: int, says: str
) -> None:
    code, said = explored(tmp_path, program, what, ranks)
    assert code == 1, said
    assert "AssertionError" in said
    assert says in said


@pytest.mark.parametrize(
    ("program", "what", "ranks"),
    [
        (IBARRIER, "polls <= 1", 3),
        (IALLREDUCE, "True", 2),
        (TOLD_EARLY, "first in ('early', 'beside')", 3),
        (ANY_OF_BOTH, "first in (0, 1)", 2),
        (BESIDE_A_PROBE, "True", 3),
        (PERSISTENT, "True", 2),
        (EXPOSED, "polls <= 1", 3),
        (EACH, "True", 2),
        (BOTH, "True", 2),
        (WHOLE, "True", 2),
        (TESTALL, "True", 3),
        (BESIDE_OTHERS, "True", 3),
        (SYNCHRONOUS, "True", 3),
        (OF_ANYBODY, "True", 3),
        (BARRIER, "True", 2),
        (KNOWN, "late", 2),
        (ONE_OF_TWO, "True", 3),
        (BESIDE, "found in (0, 1, 2)", 3),
        (TOLD, "found in (0, 1)", 2),
        (FLUSHED, "found == 1", 2),
        (AGAIN, "found == 1", 2),
        (IDUP, "True", 3),
        (RPUT, "True", 2),
        (RGET, "room[0] == 7", 2),
        (RACCUMULATE, "True", 2),
        (RGET_ACCUMULATE, "other[0] == 7", 2),
        (FLUSHED_REQUEST, "done and room[0] == 7", 2),
        (IWRITE, "True", 2),
        (IWRITE_ALL, "True", 2),
        (FLUSH, "True", 2),
        (IBSEND, "True", 2),
        (BSEND_INIT, "True", 2),
        (PROBED, "True", 2),
        (ALONE, "True", 2),
        (ANY_OF_ANSWERS, "True", 2),
        (CHANGED.replace("LATER", "False"), "found in (7, 8)", 3),
        (CHANGED.replace("LATER", "True"), "found == 7", 3),
        (SPINS, "room[0] == 8", 2),
    ],
)
def test_whatever_is_answered_ends_well(
    tmp_path: Path, program: str, what: str, ranks: int
) -> None:
    code, said = explored(tmp_path, program, what, ranks)
    assert code == 0, said
    assert "; proven " in said


@pytest.mark.parametrize(
    ("program", "unseen"),
    [
        (UNSEEN, True),
        (UNSEEN.replace("Lock_all()", "Fence()").replace("Unlock_all", "Fence"), False),
    ],
    ids=["shared lock", "fences"],
)
def test_what_nobody_sees_is_a_condition(tmp_path: Path, program: str, unseen: bool) -> None:
    code, said = explored(tmp_path, program, "True", 2)
    assert code == 0, said
    assert ("if no rank loads from its own part of a window" in said) is unseen
