"""`ompy sim --explore`: every schedule of a real program; `--schedule`: one of them again."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

ROOT = Path(__file__).resolve().parents[2]
SIM = [sys.executable, "-m", "ompy.cli.main", "sim"]
DIVERGED = 6  # exit code
PATIENCE = 200.0  # s; far beyond what anything here takes, beside many others too
pytestmark = pytest.mark.proc
nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
HEAD = "from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"

RACE = """
if comm.rank == 0:
    first = comm.recv(source=MPI.ANY_SOURCE)
    comm.recv(source=1)
    if first == 1:
        comm.recv(source=2)
else:
    comm.send(comm.rank, dest=0)
"""
BOTH_SEND = """
comm.send(b"x", dest=1 - comm.rank)
comm.recv(source=1 - comm.rank)
"""
ONE_IN_5040 = """
if comm.rank == 0:
    order, status = [], MPI.Status()
    total = 0
    for _ in range(1, comm.size):
        total += comm.recv(source=MPI.ANY_SOURCE, status=status)
        order.append(status.source)
    same = 0
    for one, other in zip(order, [3, 6, 1, 7, 4, 2, 5]):
        same += one == other
    if same == len(order):
        total -= 1
    assert total == sum(rank * rank for rank in range(comm.size)), order
else:
    comm.send(comm.rank**2, dest=0)
"""
TWO_PHASES = """
if comm.rank == 0:
    for value in (1, 100):
        phase = 0
        for _ in range(1, comm.size):
            phase += comm.recv(source=MPI.ANY_SOURCE)
        assert phase == value * (comm.size - 1), phase
else:
    comm.send(1, dest=0)
    comm.send(100, dest=0)
"""
BCAST_FIRST = """
if comm.rank == 0:
    comm.bcast("x", root=0)
    comm.recv(source=1)
else:
    comm.ssend(1, dest=0)
    comm.bcast(None, root=0)
"""
NEVER_THE_SAME_CODE = """
if comm.rank == 0:
    first = comm.recv(source=MPI.ANY_SOURCE)
    if first == 1:
        with open("count", "a+") as file:
            file.write("x")
            code = 3 + file.tell()
        raise SystemExit(code)
    comm.recv(source=1)
    comm.iprobe(source=1, tag=9)
    comm.recv(source=1, tag=9)
else:
    comm.send(comm.rank, dest=0)
    if comm.rank == 1:
        comm.send(None, dest=0, tag=9)
"""
MASTER = """
status = MPI.Status()
if comm.rank == 0:
    left, got = list(range(4)), []
    for worker in range(1, comm.size):
        comm.send(left.pop(), dest=worker)
    while len(got) < 4:
        got.append(comm.recv(source=MPI.ANY_SOURCE, status=status))
        comm.send(left.pop() if left else None, dest=status.source)
    assert sorted(got) == [0, 1, 4, 9], got
else:
    while (task := comm.recv(source=0)) is not None:
        comm.send(task * task, dest=0)
"""
FIRST_OF_TWO = """
if comm.rank == 0:
    requests = [comm.irecv(source=1), comm.irecv(source=2)]
    place, _ = MPI.Request.waitany(requests)
    MPI.Request.waitall([requests[1 - place]])
    assert place == 0
else:
    comm.send(comm.rank, dest=0)
"""
POLLS = """
if comm.rank == 0:
    polls = 0
    while not comm.iprobe(source=1):
        polls += 1
    comm.recv(source=1)
    comm.send(polls, dest=1)
else:
    comm.send("x", dest=0)
    assert comm.recv(source=0) == 0
"""
LOST_UPDATE = """
window = MPI.Win.Allocate(8, 8, comm=comm)
memory = window.tomemory().cast("q")
memory[0] = 0
comm.Barrier()
if comm.rank:
    value = memoryview(bytearray(8)).cast("q")
    window.Lock(0)
    window.Get(value, 0)
    window.Unlock(0)
    value[0] += 1
    window.Lock(0)
    window.Put(value, 0)
    window.Unlock(0)
comm.Barrier()
if comm.rank == 0:
    window.Lock(0)
    found = memory[0]
    window.Unlock(0)
    assert found == comm.size - 1, found
window.Free()
"""
OWN_PART = """
import numpy as np
memory = np.zeros(2, "i8")  # taken, who is inside
window = MPI.Win.Create(memory if comm.rank == 0 else None, 8, comm=comm)
found, one, inside = (np.full(1, value, "i8") for value in (0, 1, 0))
window.Lock_all()
window.Fetch_and_op(one, found, 0, 0, MPI.NO_OP)
window.Flush(0)
if found[0] == 0:
    window.Accumulate(one, 0, 0, MPI.REPLACE)
    window.Fetch_and_op(one, inside, 0, 1, MPI.SUM)
    window.Flush(0)
    assert inside[0] == 0, "two inside"
window.Unlock_all()
window.Free()
"""


def counted_under_a_lock(memory: str, take: str, give: str) -> str:
    """A program whose ranks count in the last word of a window, each behind a lock made of others.

    Args:
        memory: the words of the window, and what `take` needs.
        take: how a rank gets the lock.
        give: how it gives the lock back.
    """
    return f"""
import numpy as np
{memory}
window = MPI.Win.Create(memory if comm.rank == 0 else None, 8, comm=comm)
one, count, last = np.full(1, 1, "i8"), np.full(1, 0, "i8"), len(memory) - 1
window.Lock_all()
{take}
window.Get(count, 0, last)
window.Flush(0)
count += 1
window.Put(count, 0, last)
window.Flush(0)
{give}
window.Unlock_all()
comm.Barrier()
if comm.rank == 0:
    window.Lock(0)
    assert memory[last] == comm.size, memory
    window.Unlock(0)
window.Free()
"""


SPIN_LOCK = counted_under_a_lock(
    """
memory = np.zeros(2, "i8")  # whether it is taken, a count
zero, found = np.full(1, 0, "i8"), np.full(1, 1, "i8")
""",
    """
while found[0]:
    window.Compare_and_swap(one, zero, found, 0, 0)
    window.Flush(0)
""",
    "window.Accumulate(zero, 0, 0, op=MPI.REPLACE)",
)
TICKETS = counted_under_a_lock(
    """
memory = np.zeros(3, "i8")  # the next ticket, whose turn it is, a count
mine, now = np.full(1, 0, "i8"), np.full(1, -1, "i8")
""",
    """
window.Fetch_and_op(one, mine, 0, 0, op=MPI.SUM)
window.Flush(0)
while now[0] != mine[0]:
    window.Fetch_and_op(one, now, 0, 1, op=MPI.NO_OP)
    window.Flush(0)
""",
    "window.Accumulate(one, 0, 1, op=MPI.SUM)",
)
FLAG = """
import numpy as np
memory = np.zeros(2, "i8")  # a flag, what it is for
window = MPI.Win.Create(memory if comm.rank == 0 else None, 8, comm=comm)
one, found = np.ones(1, "i8"), np.zeros(1, "i8")
window.Lock_all()
if comm.rank == 1:
    window.Put(one, 0, 1)
    window.Flush(0)
    window.Accumulate(one, 0, 0, op=MPI.REPLACE)
elif comm.rank == 2:
    while not found[0]:
        window.Get(found, 0, 0)
        window.Flush(0)
    window.Get(found, 0, 1)
    window.Flush(0)
    assert found[0]
window.Unlock_all()
window.Free()
"""
LOCKED_POLL = """
import numpy as np
memory = np.zeros(1, "i8")
window = MPI.Win.Create(memory if comm.rank == 0 else None, 8, comm=comm)
one, found = np.ones(1, "i8"), np.zeros(1, "i8")
if comm.rank == 1:
    window.Lock(0)
    window.Put(one, 0)
    window.Unlock(0)
elif comm.rank == 2:
    while not found[0]:
        window.Lock(0)
        window.Get(found, 0)
        window.Unlock(0)
window.Free()
"""
APART = """
import numpy as np
memory = np.zeros(comm.size + 1, "i8")
window = MPI.Win.Create(memory if comm.rank == 0 else None, 8, comm=comm)
value = np.full(1, comm.rank, "i8")
for _ in range(2):
    window.Lock(0, MPI.LOCK_SHARED)
    window.Put(value, 0, comm.rank)
    window.Accumulate(value, 0, comm.size)
    window.Unlock(0)
window.Free()
"""
OWN_LOOK = """
import numpy as np
memory = np.zeros(1, "i8")
window = MPI.Win.Create(memory if comm.rank == 0 else None, 8, comm=comm)
window.Lock_all()
if comm.rank == 0:
    while not memory[0]:
        window.Flush(0)
    window.Put(np.full(1, 2, "i8"), 0)
elif comm.rank == 1:
    window.Accumulate(np.ones(1, "i8"), 0, op=MPI.REPLACE)
window.Unlock_all()
window.Free()
"""
FENCED = """
from array import array
memory = array("i", [-1] * comm.size)
win = MPI.Win.Create(memory, 4, comm=comm)
win.Fence()
for other in range(comm.size):
    win.Put(array("i", [comm.rank]), other, comm.rank)
win.Fence()
assert memory.tolist() == list(range(comm.size))
win.Free()
"""
SMALL_BUFFER = """
if comm.rank == 0:
    MPI.Attach_buffer(bytearray(8 + MPI.BSEND_OVERHEAD))
    comm.Bsend(bytes(8), dest=1)
    comm.Bsend(bytes(8), dest=1)
    MPI.Detach_buffer()
else:
    comm.Recv(bytearray(8), source=0)
    comm.Recv(bytearray(8), source=0)
"""
SPAWN = """
import sys
parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    children = comm.Spawn(sys.executable, [__file__], maxprocs=2)
    got = [children.recv(source=MPI.ANY_SOURCE) for _ in range(2)]
    assert sorted(got) == [0, 1]
    children.Disconnect()
else:
    parent.send(comm.rank, dest=0)
    parent.Disconnect()
"""
SOME = """
if comm.rank == 0:
    rooms = [bytearray(1) for _ in range(1, comm.size)]
    requests = [comm.Irecv(room, source=place + 1) for place, room in enumerate(rooms)]
    while MPI.Request.Waitsome(requests) is not None:
        pass
else:
    comm.Send(b"x", dest=0)
"""
SOME_TOGETHER = """
if comm.rank == 0:
    rooms = [bytearray(1) for _ in range(1, comm.size)]
    requests = [comm.Irecv(room, source=place + 1) for place, room in enumerate(rooms)]
    first = MPI.Request.Waitsome(requests)
    MPI.Request.Waitall(requests)
    assert len(first) == 1
else:
    comm.Send(b"x", dest=0)
"""
CANCELLED = """
if comm.rank == 0:
    room, st = bytearray(1), MPI.Status()
    request = comm.Irecv(room, source=1)
    request.Cancel()
    request.Wait(st)
    assert WHAT
    if st.Is_cancelled():
        comm.Recv(room, source=1)
elif comm.rank == 1:
    comm.Send(b"x", dest=0)
"""
PORT = """
if comm.rank == 0:
    port = MPI.Open_port()
    for other in 1, 2:
        comm.send(port, dest=other)
    for _ in range(2):
        MPI.COMM_SELF.Accept(port).Disconnect()
else:
    MPI.COMM_SELF.Connect(comm.recv(source=0)).Disconnect()
"""
BOTH_READ = """
memory, room = bytearray(4), bytearray(4)
window = MPI.Win.Create(memory, 1, comm=comm)
window.Lock_all()
for target in range(comm.size):
    window.Rget(room, target)
window.Unlock_all()
comm.Barrier()
window.Free()
"""
ENDED_THREADS = """
import threading
if comm.rank == 0:
    threads = [threading.Thread(target=comm.send, args=(tag, 1)) for tag in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    assert [comm.recv(source=0) for _ in range(2)] == [1, 2]
"""
THREADS = """
import threading
ended = threading.Event()
threading.Thread(target=ended.wait).start()
if comm.rank:
    comm.send(1, dest=0)
else:
    for _ in range(1, comm.size):
        comm.recv(source=MPI.ANY_SOURCE)
ended.set()
"""
ORDERS = """
if comm.rank == 0:
    for _ in range(3 * (comm.size - 1)):
        comm.recv(source=MPI.ANY_SOURCE)
else:
    for number in range(3):
        comm.send(number, dest=0)
"""
COLLECTIVES = """
assert comm.allreduce(comm.rank) == sum(range(comm.size))
assert comm.bcast(comm.rank, root=1) == 1
assert comm.alltoall([comm.rank] * comm.size) == list(range(comm.size))
request = comm.Ibarrier()
request.Wait()
part = comm.Split(comm.rank % 2)
part.allgather(1)
part.Free()
comm.scatter([1] * comm.size if comm.rank == 0 else None)
comm.gather(1, root=comm.size - 1)
comm.reduce(1)
comm.scan(1)
ring = comm.Create_cart([comm.size], periods=[True])
ring.neighbor_alltoall([1, 2])
ring.Dup().Barrier()
"""
READY_SEND = """got = bytearray(1)
if comm.rank == 0:
    TOLD
    comm.Rsend(b"x", 1, 1)
else:
    POSTS
    request.Wait()
"""
NBX = """
to, status = (comm.rank + 1) % comm.size, MPI.Status()
start = comm.START if comm.rank == 1 else comm.issend
send = start(comm.rank, dest=to, tag=7)
got, barrier = [], None
while barrier is None or not barrier.Test():
    if comm.iprobe(source=MPI.ANY_SOURCE, tag=7, status=status):
        got.append(comm.recv(source=status.source, tag=7))
    if barrier is None and send.Test():
        barrier = comm.Ibarrier()
assert len(got) == 1, got
"""


def sim(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(HEAD + program)
    command = [*SIM, *words, "program.py"]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=folder, check=False
    )


@pytest.mark.parametrize(
    ("program", "ranks", "schedules"),
    [(COLLECTIVES, 4, 1), (MASTER, 3, 8), (FIRST_OF_TWO.replace("== 0\nelse", ">= 0\nelse"), 3, 2)],
    ids=["collectives", "master", "first of two"],
)
def test_what_always_ends_well_is_proven(
    tmp_path: Path, program: str, ranks: int, schedules: int
) -> None:
    done = sim(tmp_path, program, "--explore", "-n", str(ranks))
    assert done.returncode == 0, done.stderr
    said = f"{schedules} schedule{'s' if schedules > 1 else ''}, 2 modes of buffering"
    assert said in done.stderr
    assert f"proven for -n {ranks} and this input" in done.stderr
    assert not (tmp_path / "sim-failures").exists()


@pytest.mark.parametrize(
    ("program", "ranks", "code", "says"),
    [
        (RACE, 3, 4, "rank 0 at program.py:5 takes the message that rank"),
        (FIRST_OF_TWO, 3, 1, "rank 0 at program.py:6 is told first of its operation 2"),
        pytest.param(POLLS, 2, 1, "rank 0 at program.py:6 finds nothing yet", marks=nightly),
        pytest.param(LOST_UPDATE, 3, 1, "rank 0's part of a window serves what", marks=nightly),
    ],
    ids=["race", "first of two", "polls", "lost update"],
)
def test_a_schedule_that_fails(
    tmp_path: Path, program: str, ranks: int, code: int, says: str
) -> None:
    words = ["-n", str(ranks)]
    done = sim(tmp_path, program, "--explore", *words)
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "it ends well" in done.stderr
    path = "sim-failures/program-schedule.json"
    picture = (tmp_path / "sim-failures" / "program.svg").read_text()
    columns = (tmp_path / "sim-failures" / "program.txt").read_text()
    assert "it ends well" in picture
    assert len(re.findall(r"(?:^|\s)> ", columns, re.MULTILINE)) == 2, "one mark in each column"
    (choice,) = json.loads((tmp_path / path).read_text())["choices"]
    assert choice["says"] in done.stderr
    again = sim(tmp_path, program, "--schedule", path, *words)
    assert again.returncode == code, again.stderr
    saved = json.loads((tmp_path / path).read_text())
    (tmp_path / "other.json").write_text(json.dumps({**saved, "choices": []}))
    as_it_comes = code if "in world 1:" in done.stderr else 0
    assert sim(tmp_path, program, "--schedule", "other.json", *words).returncode == as_it_comes


def test_a_sparse_exchange_needs_synchronous_sends(tmp_path: Path) -> None:
    done = sim(tmp_path, NBX.replace("START", "isend"), "--explore", "--jobs", "1", "-n", "3")
    assert done.returncode == 1, done.stderr
    assert "rank 2 at program.py:9 finds nothing yet" in done.stderr


@nightly
def test_a_sparse_exchange_is_proven(tmp_path: Path) -> None:
    done = sim(tmp_path, NBX.replace("START", "issend"), "--explore", "-n", "3")
    assert done.returncode == 0, done.stderr
    assert "; proven within --polls for -n 3" in done.stderr


POSTED = "request = comm.Irecv(got, 0, 1)"


@pytest.mark.parametrize(
    ("told", "posts", "says"),
    [
        ("comm.recv(source=1)", f"{POSTED}; comm.send(None, 0)", ""),
        ("comm.ssend(None, 1, 2)", f"{POSTED}; comm.recv(source=0, tag=2)", ""),
        ("comm.Barrier()", f"{POSTED}; comm.Barrier()", ""),
        ("comm.recv(source=1)", f"comm.send(None, 0); {POSTED}", "may begin before its receive"),
        ("pass", POSTED, "at program.py:6 to rank 1 may begin before its receive at program.py:8"),
    ],
    ids=["message", "synchronous send", "barrier", "told too early", "not told"],
)
def test_a_ready_send_needs_a_receive_that_is_posted(
    tmp_path: Path, told: str, posts: str, says: str
) -> None:
    program = READY_SEND.replace("TOLD", told).replace("POSTS", posts)
    done = sim(tmp_path, program, "--explore", "--jobs", "1", "-n", "2")
    assert done.returncode == bool(says), done.stderr
    assert says in done.stderr


def test_sends_that_buffer_hide_a_deadlock(tmp_path: Path) -> None:
    done = sim(tmp_path, BOTH_SEND, "--explore", "-n", "2")
    assert done.returncode == 4, done.stderr
    assert "deadlock with standard sends that wait" in done.stderr
    assert "every schedule ends well where standard sends buffer" in done.stderr
    assert "can never go on; each waits for the next: 0 -> 1 -> 0" in done.stderr


def test_collective_calls_that_need_not_wait_do_where_sends_wait(tmp_path: Path) -> None:
    done = sim(tmp_path, BCAST_FIRST, "--explore", "-n", "2")
    assert done.returncode == 4, done.stderr
    assert "deadlock with standard sends that wait" in done.stderr
    assert "every schedule ends well where standard sends buffer" in done.stderr


@pytest.mark.nightly
def test_one_order_of_5040_is_found_and_shown(tmp_path: Path) -> None:
    done = sim(tmp_path, ONE_IN_5040, "--explore", "-n", "8")
    assert done.returncode == 1, done.stderr
    assert "AssertionError: [3, 6, 1, 7, 4, 2, 5]" in done.stderr
    saved = json.loads((tmp_path / "sim-failures" / "program-schedule.json").read_text())
    assert len(saved["choices"]) <= 6  # of seven senders the last has no choice
    assert (tmp_path / "sim-failures" / "program.svg").exists()


@pytest.mark.nightly
def test_bounds_are_said(tmp_path: Path) -> None:
    done = sim(tmp_path, MASTER, "--explore", "-n", "4", "--worlds", "3")
    assert done.returncode == 0, done.stderr
    assert "not proven: 6 worlds all ended well, at least " in done.stderr
    done = sim(tmp_path, POLLS.replace("== 0\n", ">= 0\n"), "--explore", "--polls", "2")
    assert "3 schedules" in done.stderr
    assert "finds nothing at most 2 times in a row (--polls)" in done.stderr


def test_a_random_failure_that_does_not_come_again_leaves_polls_as_they_were(
    tmp_path: Path,
) -> None:
    # with this seed the first world ends well, and the random one fails without a poll
    words = ["--explore", "-n", "3", "--worlds", "1", "--pct", "2", "--seed", "8"]
    done = sim(tmp_path, NEVER_THE_SAME_CODE, *words)
    assert (tmp_path / "count").exists()
    assert "at least 4 are left" in done.stderr  # of each mode: a message, and nothing
    assert "random priorities" not in done.stderr  # they did not all end well


@pytest.mark.nightly
def test_a_search_that_was_stopped_goes_on(tmp_path: Path) -> None:
    words = ["--explore", "-n", "3", "--jobs", "1", "--resume", "kept.json"]
    done = sim(tmp_path, ORDERS, *words, "--worlds", "8", "--pct", "2")
    assert "not proven: 16 worlds all ended well" in done.stderr
    assert "8 worlds of random priorities with standard sends that buffer ended" in done.stderr
    assert "1/(n k^1) = 1/" in done.stderr
    assert "on by: ompy sim --explore -n 3 --worlds 8 --resume kept.json program.py" in done.stderr
    done = sim(tmp_path, ORDERS, "--explore", "-n", "2", "--resume", "kept.json")
    assert done.returncode == 2
    assert "it is a search of another number of ranks" in done.stderr
    done = sim(tmp_path, ORDERS, *words)
    assert done.returncode == 0, done.stderr
    assert "20 schedules, 2 modes of buffering: every one ends well (40 worlds)" in done.stderr
    assert not (tmp_path / "kept.json").exists()


def test_ctrl_c_keeps_the_search(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        HEAD + ORDERS.replace("3 *", "9 *").replace("range(3)", "range(9)")
    )
    command = [*SIM, "--explore", "-n", "3", "program.py"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for_twins(process.pid)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "not proven: " in said
    assert "(interrupted)" in said
    kept = json.loads((tmp_path / "sim-failures" / "program-search.json").read_text())
    assert all(mode["left"] for mode in kept["modes"])


def wait_for_twins(process: int) -> None:
    """Until the ranks of the first worlds are there."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = subprocess.run(
            ["pgrep", "-P", str(process)], capture_output=True, text=True, check=False
        )
        ranks = found.stdout.split()
        if any(Path(f"/proc/{rank}/task/{rank}/children").read_text() for rank in ranks):
            return
        time.sleep(0.05)
    raise AssertionError("no rank has forked")


@nightly
def test_a_bound_of_depth_is_said(tmp_path: Path) -> None:
    done = sim(tmp_path, ORDERS, "--explore", "-n", "3", "--depth", "2")
    assert done.returncode == 0, done.stderr
    assert "4 schedules, 2 modes of buffering: every one ends well (8 worlds); not p" in done.stderr
    assert "choices beyond the first 2 of a world took their first value" in done.stderr
    assert "nothing is proven beyond" in done.stderr


@nightly
def test_what_writes_files_is_explored_all_the_same(tmp_path: Path) -> None:
    """A rank that does not do the same again cannot be asked once: whole worlds are run."""
    program = """
    import os
    if comm.rank == 0:
        got = [comm.recv(source=MPI.ANY_SOURCE), comm.recv(source=MPI.ANY_SOURCE)]
        again = os.path.exists("seen")
        open("seen", "w").close()
        comm.send(again, dest=1)
        comm.recv(source=1)
    else:
        comm.send(0, dest=0)
        if comm.rank == 1:
            comm.send(comm.recv(source=0), dest=0)
    """
    done = sim(tmp_path, textwrap.dedent(program), "--explore", "-n", "3")
    assert done.returncode == 0, done.stderr
    assert "every one ends well" in done.stderr


@nightly
def test_failing_seeds_are_grouped_and_come_down_to_a_schedule(tmp_path: Path) -> None:
    done = sim(tmp_path, RACE, "-n", "3", "--seed", "6", "--seeds", "2")
    assert done.returncode == 1, done.stderr
    assert "cause: failed by Exception: 2 seeds (6, 7)" in done.stderr
    assert "seed 6: explored, a schedule of the program fails: deadlock" in done.stderr
    assert "this choice decides:" in done.stderr
    assert (tmp_path / "sim-failures" / "seed-6" / "program.svg").exists()


@pytest.mark.nightly
def test_what_the_checker_guesses_is_decided(tmp_path: Path) -> None:
    done = sim(tmp_path, RACE, "--explore", "--check", "-n", "3")
    assert done.returncode == 4
    assert "decided: order B fails, in which rank 0 at program.py:5 takes" in done.stderr
    mended = RACE.replace("source=1", "source=MPI.ANY_SOURCE").replace("== 1", "== 9")
    done = sim(tmp_path, mended, "--explore", "--check", "-n", "3")
    assert done.returncode == 0, done.stderr
    assert "message-race: " in done.stderr
    assert "decided: both orders end well" in done.stderr


@nightly
def test_a_race_that_only_exploring_sees_is_a_finding(tmp_path: Path) -> None:
    """One run tells nothing: a sum is the same in each order, but for that of two phases."""
    done = sim(tmp_path, TWO_PHASES, "--explore", "--check", "--jobs", "1", "-n", "3")
    assert done.returncode == 1, done.stderr
    assert "check: 1 finding\nmessage-race: a receive from any source took" in done.stderr
    assert "  rank 0 at program.py:8: phase += comm.recv(source=MPI.ANY_SOURCE)" in done.stderr
    assert "decided: order B fails, in which rank 0 at program.py:8 takes" in done.stderr


@nightly
def test_what_only_the_checker_has_fail_fails_again(tmp_path: Path) -> None:
    """Memory of a pending send is not writable with it."""
    written = """
import numpy
data = numpy.zeros(9)
if comm.rank == 0:
    request = comm.Isend(data, dest=1)
    data[0] = 1
    request.Wait()
else:
    comm.Recv(data, source=0)
"""
    done = sim(tmp_path, written, "--explore", "--check", "--jobs", "1")
    assert done.returncode == 1, done.stderr
    assert "buffer-in-use: data is written while comm.Isend sends it" in done.stderr
    words = done.stderr.partition("again by: ompy sim ")[2].splitlines()[0].split()
    for command in ([*SIM, *words], [*SIM[:-1], "replay", words[words.index("--schedule") + 1]]):
        again = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, cwd=tmp_path, check=False
        )
        assert again.returncode == 1, again.stderr
        assert "assignment destination is read-only" in again.stderr


@nightly
def test_what_fails_is_not_called_nothing(tmp_path: Path) -> None:
    done = sim(tmp_path, "comm.recv(source=1 - comm.rank)", "--explore", "--check")
    assert done.returncode == 4, done.stderr
    assert "check: nothing else was found" in done.stderr


@pytest.mark.parametrize(
    ("program", "ranks", "says"),
    [
        (OWN_PART, 2, "two inside"),
        (SMALL_BUFFER, 2, "MPI_ERR_BUFFER"),
    ],
    ids=["a rank's own part of a window", "a buffer for one message"],
)
def test_what_a_rank_does_to_itself_has_orders_too(
    tmp_path: Path, program: str, ranks: int, says: str
) -> None:
    done = sim(tmp_path, program, "--explore", "--jobs", "1", "-n", str(ranks))
    assert done.returncode == 1, done.stderr
    assert says in done.stderr


@pytest.mark.parametrize(
    ("program", "ranks", "schedules"),
    [
        (SPIN_LOCK, 2, 8),
        (TICKETS, 2, 8),
        (FLAG, 3, 2),
        (LOCKED_POLL, 3, 3),
        (APART, 3, 1),
        pytest.param(SPIN_LOCK, 3, 360, marks=nightly),
        pytest.param(TICKETS, 3, 288, marks=nightly),
    ],
    ids=["swap", "tickets", "flag", "locked poll", "apart", "swap of 3", "tickets of 3"],
)
def test_windows_need_few_schedules(
    tmp_path: Path, program: str, ranks: int, schedules: int
) -> None:
    done = sim(tmp_path, program, "--explore", "-n", str(ranks))
    assert done.returncode == 0, done.stderr
    assert f": {schedules} schedule{'s' if schedules > 1 else ''}, 2 modes" in done.stderr
    assert "; proven " in done.stderr


@pytest.mark.parametrize(
    ("program", "old", "new"),
    [
        (FLAG, "window.Put(one, 0, 1)\n    window.Flush(0)", "window.Put(one, 0, 1)"),
        (TICKETS, "window.Put(count, 0, last)\nwindow.Flush(0)", "window.Put(count, 0, last)"),
        (SPIN_LOCK, "window.Compare_and_swap(one, zero, found", "window.Get(found"),
    ],
    ids=["flag without flush", "ticket without flush", "lock without swap"],
)
def test_windows_that_are_used_wrongly_fail(
    tmp_path: Path, program: str, old: str, new: str
) -> None:
    assert old in program
    done = sim(tmp_path, program.replace(old, new), "--explore", "-n", "3")
    assert done.returncode == 1, done.stderr
    assert "rank 0's part of a window serves what rank" in done.stderr


@pytest.mark.parametrize(
    "beside", ["", 'MPI.Publish_name(str(comm.rank), "y")\n'], ids=["", "whole worlds"]
)
def test_a_rank_that_looks_at_its_own_part_is_no_proof(tmp_path: Path, beside: str) -> None:
    done = sim(tmp_path, OWN_LOOK + beside, "--explore", "-n", "2")
    assert done.returncode == 0, done.stderr
    assert "not proven for -n 2" in done.stderr
    assert "a rank looks at its own part of a window" in done.stderr


def test_puts_to_the_own_part_between_fences_need_no_order(tmp_path: Path) -> None:
    done = sim(tmp_path, FENCED, "--explore", "--jobs", "1", "-n", "2")
    assert done.returncode == 0, done.stderr
    assert "1 schedule, 2 modes of buffering: every one ends well" in done.stderr


def test_processes_that_come_later_are_explored(tmp_path: Path) -> None:
    done = sim(tmp_path, SPAWN, "--explore", "--jobs", "1", "-n", "1")
    assert done.returncode == 0, done.stderr
    assert "2 schedules" in done.stderr
    done = sim(tmp_path, SPAWN.replace("sorted(got)", "got"), "--explore", "-n", "1")
    assert done.returncode == 1, done.stderr
    assert "this choice decides" in done.stderr


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (SOME_TOGETHER, "is told at the same time of its operation"),
        (CANCELLED.replace("WHAT", "st.Is_cancelled()"), "takes the message that rank 1 sent"),
        (CANCELLED.replace("WHAT", "not st.Is_cancelled()"), "before anything comes"),
    ],
    ids=["several at once", "too late", "in time"],
)
def test_what_comes_together_or_too_late(tmp_path: Path, program: str, says: str) -> None:
    done = sim(tmp_path, program, "--explore", "--jobs", "1", "-n", "3")
    assert done.returncode == 1, done.stderr
    assert says in done.stderr
    path = "sim-failures/program-schedule.json"
    again = sim(tmp_path, program, "--schedule", path, "-n", "3")
    assert again.returncode == 1, again.stderr


def test_some_of_three_have_thirteen_orders(tmp_path: Path) -> None:
    done = sim(tmp_path, SOME, "--explore", "--jobs", "1", "-n", "4")
    assert done.returncode == 0, done.stderr
    assert "13 schedules" in done.stderr


def test_whose_turn_it_is_at_a_port_is_no_proof(tmp_path: Path) -> None:
    done = sim(tmp_path, PORT, "--explore", "--jobs", "1", "-n", "3")
    assert done.returncode == 1
    assert "port that another has come to" in done.stderr


def test_what_is_done_for_others_renumbers_nothing(tmp_path: Path) -> None:
    done = sim(tmp_path, BOTH_READ, "--explore", "--jobs", "1", "--worlds", "120")
    assert done.returncode == 0, done.stderr  # some other schedule was refused as impossible
    assert "every one ends well" in done.stderr


def test_threads_that_have_ended_are_no_proof(tmp_path: Path) -> None:
    done = sim(tmp_path, ENDED_THREADS, "--explore", "--jobs", "1")
    assert done.returncode == 1
    assert "several threads of it" in done.stderr


@pytest.mark.nightly
def test_what_cannot_be_explored_is_said(tmp_path: Path) -> None:
    done = sim(tmp_path, THREADS, "--explore", "-n", "3")
    assert done.returncode == 1
    assert "a rank has more than one thread" in done.stderr
    done = sim(tmp_path, "while not comm.iprobe():\n    pass\n", "--explore")
    assert done.returncode == 5
    assert "polls without end" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--explore", "--fault", "lossy"], "--fault has no meaning with --explore"),
        (["--explore", "--mca", "btl", "self,tcp"], "--mca btl self,tcp: --explore has a PML"),
        (["--explore", "--resume", "odd.json"], "--resume odd.json: it is no search: "),
        (["--schedule", "none.json"], "--schedule none.json: "),
        (["--schedule", "program.py"], "--schedule program.py: "),
        (["--schedule", "odd.json"], "can be chosen nowhere"),
        (["--schedule", "of3.json"], "it is of 3 ranks: run it with that -n"),
    ],
)
def test_bad_input(tmp_path: Path, words: list[str], says: str) -> None:
    odd = {"rank": 0, "operation": 1, "value": ["sideways"]}
    whole = {"ranks": 2, "buffers": True, "polls": 1, "choices": [odd]}
    (tmp_path / "odd.json").write_text(json.dumps(whole))
    (tmp_path / "of3.json").write_text(json.dumps({**whole, "ranks": 3, "choices": []}))
    done = sim(tmp_path, BOTH_SEND, *words)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_schedule_of_a_changed_program_names_the_first_other_call(tmp_path: Path) -> None:
    words = ["-n", "3"]
    code = sim(tmp_path, RACE, "--explore", *words).returncode
    path = "sim-failures/program-schedule.json"
    again = ["--schedule", path, *words]
    moved = RACE.replace("if comm.rank == 0:", "\n\nif comm.rank == 0:")
    done = sim(tmp_path, moved, *again)
    assert done.returncode == code, "other lines are no other calls"
    assert "has been changed since" in done.stderr
    changed = moved.replace("dest=0)", "dest=0, tag=comm.rank - 1)")
    done = sim(tmp_path, changed, *again)
    assert done.returncode == DIVERGED, done.stderr
    line = (HEAD + changed).partition("dest=0")[0].count("\n") + 1
    for said in (
        "rank 2 does not do what it did, at its call 1: the calls differ",
        f"now:             program.py:{line}: a message to rank 0 with tag 1",
        f"in the schedule: program.py:{line - 2}: a message to rank 0 with tag 0",
        "--go-on",
    ):
        assert said in done.stderr
    for more, ends in (((), DIVERGED), (("--go-on",), code)):
        replay = [sys.executable, "-m", "ompy.cli.main", "replay", path, *more]
        done = subprocess.run(replay, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == ends, done.stderr
    two = "if comm.rank == 2:\n    pass\nelif comm.rank == 0:"
    done = sim(tmp_path, RACE.replace("if comm.rank == 0:", two), *again)
    assert done.returncode == DIVERGED, done.stderr
    assert "rank 2 does not do what it did, at its call 1: it has come to its end" in done.stderr
    assert sim(tmp_path, RACE, "--go-on", *words).returncode == 2, "there is no schedule"


def test_a_schedule_of_another_program_is_said(tmp_path: Path) -> None:
    odd = {"rank": 0, "operation": 2, "value": ["from", 1, 77]}
    whole = {"ranks": 3, "buffers": True, "polls": 1, "choices": [odd]}
    (tmp_path / "other.json").write_text(json.dumps(whole))
    program = RACE.replace("if comm.rank == 0:", "if comm.rank == 0:\n    comm.send(0, dest=0)")
    done = sim(tmp_path, program, "--schedule", "other.json", "-n", "3")
    assert done.returncode != 0
    assert "what was to be chosen cannot be" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.nightly
def test_what_is_known_only_at_the_end_of_a_program_is_found(tmp_path):
    """A rank that has chosen is another process; it finalizes all the same."""
    program = tmp_path / "program.py"
    body = "for _ in range(2):\n        comm.recv(source=MPI.ANY_SOURCE)"
    program.write_text(
        f"{HEAD}if comm.rank == 0:\n    {body}\nelse:\n    comm.send(1, dest=0)\ncomm.Dup()\n"
    )
    words = [*SIM, "--explore", "--check", "-n", "3", str(program)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 5, done.stderr
    assert "leak: comm.Dup" in done.stderr
