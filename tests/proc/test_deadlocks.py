"""Ranks that wait for each other for ever, on real ranks and in `ompy sim`: proven and told of."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
BIN: Final = Path(sys.executable).parent
DEADLOCK: Final = 4


class Program(NamedTuple):
    """One that never ends.

    Attributes:
        ranks: it has.
        text: of it, after `comm` and `me`.
        says: what the autopsy has among its lines.
    """

    ranks: int
    text: str
    says: tuple[str, ...]


PROGRAMS: Final = {
    "a partition that is never ready": Program(
        2,
        """
if me == 0:
    request = comm.Psend_init(bytearray(8), 4, 1, tag=3)
    request.Start()
    request.Pready_range(0, 2)
else:
    request = comm.Precv_init(bytearray(8), 2, 0, tag=3)
    request.Start()
request.Wait()
""",
        (
            "waiting for Pready of partition 3 of its own message to rank 1",
            "waiting for partitions of the message with tag 3 from rank 0",
        ),
    ),
    "nobody prepares the other side": Program(
        2,
        """
if me == 0:
    request = comm.Psend_init(bytearray(8), 1, 1, tag=3)
    request.Start()
    request.Pready(0)
    request.Wait()
else:
    request = comm.Precv_init(bytearray(8), 1, 0, tag=4)
    request.Start()
    request.Wait()
""",
        (
            "waiting for Precv_init of rank 1 with tag 3",
            "waiting for Psend_init of rank 0 with tag 4",
        ),
    ),
    "a tag that differs": Program(
        2,
        """
if me == 0:
    comm.Recv(bytearray(8), source=1, tag=8)
else:
    comm.Send(bytes(8), dest=0, tag=7)
    comm.Recv(bytearray(8), source=0, tag=7)
""",
        (
            "each waits for the next: 0 -> 1 -> 0",
            "rank 0 is at app.py:6 in <module>: comm.Recv(bytearray(8), source=1, tag=8)",
            "near: 8 bytes from rank 1 are here, but with tag 7",
        ),
    ),
    "synchronous sends": Program(
        2,
        "comm.Ssend(b'x', 1 - me); comm.Recv(bytearray(1), 1 - me)",
        ("waiting for a receive for its 1 bytes with tag 0, by rank 1 of MPI_COMM_WORLD",),
    ),
    "large sends in a ring": Program(
        3,
        "comm.Send(bytearray(10**7), (me + 1) % 3); comm.Recv(bytearray(10**7), (me - 1) % 3)",
        ("each waits for the next: 0 -> 1 -> 2 -> 0",),
    ),
    "from any rank": Program(
        3,
        """
if me == 0:
    comm.recv(source=MPI.ANY_SOURCE)
comm.barrier()
""",
        ("a message from any rank with any tag", "look first at rank 0, which is elsewhere"),
    ),
    "from any rank that is left": Program(
        4,
        """
if me == 0:
    comm.recv(), comm.recv(), comm.recv()
elif me == 1:
    comm.recv(source=0)
comm.send(me, dest=0)
if me == 3:
    import time
    time.sleep(1)
""",
        (
            "deadlock: ranks 0, 1 can never go on",
            "from any rank with any tag in MPI_COMM_WORLD; ranks 2, 3 sent all, and left",
        ),
    ),
    "a probe of any rank that is left": Program(
        3,
        """
if me == 2:
    comm.recv(source=0)
elif me == 0:
    comm.Probe(tag=1)
""",
        ("from any rank with tag 1 in MPI_COMM_WORLD; rank 1 sent all, and left",),
    ),
    "any of several requests": Program(
        3,
        """
waits = [comm.Irecv(bytearray(8), (me + k) % 3, k) for k in (1, 2)]
MPI.Request.Waitany(waits)
""",
        ("waiting for a message from rank 1 with tag 1", "or a message from rank 2 with tag 2"),
    ),
    "a probe": Program(2, "comm.Probe(source=1 - me)", ("each waits for the next: 0 -> 1 -> 0",)),
    "two communicators": Program(
        2,
        """
other = comm.Dup()
if me == 0:
    comm.Barrier(); other.Barrier()
else:
    other.Barrier(); comm.Barrier()
""",
        ("collective call 2 of MPI_COMM_WORLD, where rank 1 is missing",),
    ),
    "one does not come": Program(
        3,
        """
if me == 2:
    comm.recv(source=0)
comm.allreduce(1)
""",
        ("ranks 0, 1 are at app.py:7", "where rank 2 is missing", "look first at rank 2"),
    ),
    "a collective that was begun": Program(
        2,
        """
from array import array
data, room = array('d', [1.0] * 100), array('d', [0.0] * 100)
if me == 0:
    comm.recv(source=1)
comm.Iallreduce(data, room).Wait()
if me == 1:
    comm.send(1, 0)
""",
        ("Iallreduce, collective call 1 of MPI_COMM_WORLD, where rank 0 is missing",),
    ),
    "persistent collectives in two orders": Program(
        3,
        """
from array import array
data, rooms = array('d', [1.0]), [array('d', [0.0]), array('d', [0.0])]
calls = [comm.Allreduce_init(data, room) for room in rooms]
for turn in range(2):
    for call in calls[:: -1 if turn and me == 1 else 1]:
        call.Start()
        call.Wait()
""",
        (
            "ranks 0, 2 are at app.py:11 in <module>: call.Wait()",
            "start 2 of Allreduce_init, collective call 1 of MPI_COMM_WORLD, where rank 1 is",
            "start 2 of Allreduce_init, collective call 2 of MPI_COMM_WORLD, where ranks 0, 2 are",
        ),
    ),
    "a part of the ranks": Program(
        3,
        """
import time
if me < 2:
    comm.recv(source=1 - me)
else:
    time.sleep(60)
""",
        ("ranks 0, 1 can never go on",),
    ),
    "a fence": Program(
        2,
        """
window = MPI.Win.Allocate(8, comm=comm)
if me == 0:
    window.Fence()
else:
    comm.Barrier()
""",
        ("waiting for Win.Fence, collective call 1",),
    ),
    "crossed locks": Program(
        2,
        """
window = MPI.Win.Allocate(8, comm=comm)
window.Lock(me)
comm.Barrier()
window.Lock(1 - me)
""",
        (
            "rank 0 is at app.py:8 in <module>: window.Lock(1 - me)",
            "waiting for the lock of rank 1 of window 2, which rank 1 holds",
        ),
    ),
    "a lock and a message": Program(
        3,
        """
window = MPI.Win.Allocate(8, comm=comm)
if me == 0:
    window.Lock(2, MPI.LOCK_SHARED)
comm.Barrier()
if me == 1:
    window.Lock(2)
comm.recv(source=(me + 1) % 3)
""",
        ("waiting for the lock of rank 2 of window 2, which rank 0 holds",),
    ),
    "both start": Program(
        2,
        """
window = MPI.Win.Allocate(8, comm=comm)
other = comm.Get_group().Incl([1 - me])
window.Start(other)
window.Complete()
window.Post(other)
window.Wait()
""",
        ("waiting for Win.Post of window 2 by rank 1",),
    ),
    "nobody completes": Program(
        2,
        """
window = MPI.Win.Allocate(8, comm=comm)
if me == 0:
    window.Post(comm.Get_group().Incl([1]))
    window.Wait()
comm.Barrier()
""",
        ("waiting for Win.Complete of window 2 by rank 1",),
    ),
    "a file": Program(
        2,
        """
file = MPI.File.Open(comm, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
if me == 0:
    file.Write_ordered(b"data")
else:
    comm.Barrier()
""",
        ("waiting for File.Write_ordered, collective call 4 of file 2, where rank 1 is missing",),
    ),
    "a file that is closed": Program(
        2,
        """
file = MPI.File.Open(comm, "data", MPI.MODE_CREATE | MPI.MODE_RDWR)
if me == 0:
    file.Close()
else:
    comm.Barrier()
""",
        ("waiting for File.Close, collective call", "of file 2, where rank 1 is missing"),
    ),
    "nobody connects": Program(
        2,
        """
if me == 0:
    MPI.COMM_SELF.Accept(MPI.Open_port())
comm.Barrier()
""",
        ("waiting for a Connect to port ompy:",),
    ),
    "a barrier of GASNet": Program(
        3,
        """
from ompy import gasnet
gasnet.init()
gasnet.attach(segment_size=gasnet.PAGE_SIZE)
gasnet.barrier()
if me == 0:
    gasnet.barrier()
comm.Barrier()
""",
        (
            "each waits for the next: 0 -> 1 -> 0",
            "waiting for barrier 2 of GASNet, where ranks 1, 2 are missing",
        ),
    ),
    "a communicator of some": Program(
        3,
        """
some = comm.Get_group().Incl([0, 1])
if me == 0:
    comm.Create_group(some, 5)
elif me == 1:
    comm.recv(source=0, tag=3)
    comm.Create_group(some, 5)
""",
        (
            "each waits for the next: 0 -> 1 -> 0",
            "waiting for Create_group of some members of MPI_COMM_WORLD, of which rank 1 is one",
        ),
    ),
    "where a message was sent": Program(
        2,
        """
if me == 0:
    comm.Recv(bytearray(10**6), source=1, tag=8)
else:
    comm.Send(bytearray(10**6), dest=0, tag=7)
""",
        ("near: 1000000 bytes from rank 1 are here, but with tag 7; sent at", "app.py:8"),
    ),
    "in a function, below a library's": Program(
        2,
        """
from concurrent.futures import Future
def fetch():
    return comm.recv(source=1 - me)
def work():
    future = Future()
    future.add_done_callback(lambda _done: fetch())
    future.set_result(1)
work()
""",
        ("in fetch: return comm.recv(source=1 - me)",),
    ),
}
# others like these are for the night
CI: Final = (
    *("a tag that differs", "one does not come", "a collective that was begun", "a fence"),
    *("crossed locks", "nobody connects", "a partition that is never ready"),
    *("nobody prepares the other side", "persistent collectives in two orders"),
    "a communicator of some",
)
SIMULATED: Final = (
    "a tag that differs",
    "one does not come",
    "persistent collectives in two orders",
    "crossed locks",
    "a barrier of GASNet",
)
OVER_MESSAGES: Final = {
    "large sends in a ring": "0 -> 1 -> 2 -> 0",
    "a lock and a message": "which rank 0 holds since",
    "both start": "Win.Post of window 2 by rank 0",
    "nobody completes": "Win.Complete of window 2 by rank 1",
    "a fence": "Win.Fence, collective call 1 of window 2, where rank 1 is missing",
}


def run(folder: Path, text: str, ranks: int, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(
        f"from mpi4py import MPI\ncomm = MPI.COMM_WORLD\nme = comm.rank\n{text}"
    )
    words = [str(BIN / "ompy-run"), "-n", str(ranks), "--oversubscribe", *options]
    words += [sys.executable, "app.py"]
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("name", PROGRAMS if THOROUGH else CI)
def test_real_ranks(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    began = time.monotonic()
    done = run(tmp_path, program.text, program.ranks)
    assert done.returncode == DEADLOCK, done.stderr
    assert time.monotonic() - began < 20, "some ten times what it takes on a busy machine"
    for says in program.says:
        assert says.replace("app.py", f"{tmp_path}/app.py") in done.stderr or says in done.stderr, (
            done.stderr
        )


@pytest.mark.parametrize("btl", ["tcp", "usnic"] if THOROUGH else ["tcp"])
@pytest.mark.parametrize("name", OVER_MESSAGES if THOROUGH else list(OVER_MESSAGES)[:1])
def test_over_other_transports(name: str, btl: str, tmp_path: Path) -> None:
    program = PROGRAMS[name]
    done = run(tmp_path, program.text, program.ranks, "--mca", "btl", f"self,{btl}")
    assert done.returncode == DEADLOCK, done.stderr
    assert OVER_MESSAGES[name] in done.stderr


@pytest.mark.parametrize("name", PROGRAMS if THOROUGH else SIMULATED)
def test_simulated_ranks(name: str, tmp_path: Path) -> None:
    if name == "a part of the ranks":
        pytest.skip("virtual time goes on to the end of the sleep")
    program = PROGRAMS[name]
    (tmp_path / "app.py").write_text(
        f"from mpi4py import MPI\ncomm = MPI.COMM_WORLD\nme = comm.rank\n{program.text}"
    )
    words = [str(BIN / "ompy"), "sim", "-n", str(program.ranks), "app.py"]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == DEADLOCK
    for says in program.says:
        assert says in done.stderr, done.stderr


ENDED: Final = {
    "a receive": "comm.recv(source=0)",
    "a receive from anybody": "comm.recv()",
    "a synchronous send": "comm.ssend(1, dest=0)",
    "one of several requests": "MPI.Request.waitall([comm.irecv(source=0, tag=t) for t in (1, 2)])",
    "a barrier": "comm.barrier()",
}


@pytest.mark.parametrize("name", ENDED if THOROUGH else list(ENDED)[:4:3])
def test_who_waits_for_a_rank_that_has_ended(name: str, tmp_path: Path) -> None:
    text = f"if me: {ENDED[name]}"
    done = run(tmp_path, text, 2)
    assert done.returncode == DEADLOCK, done.stderr
    assert f'app.py", line {4}' in done.stderr
    assert "deadlock" in done.stderr
    words = [str(BIN / "ompy"), "sim", "-n", "2", "app.py"]
    simulated = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert simulated.returncode == DEADLOCK, simulated.stderr


def test_who_starts_when_others_have_ended(tmp_path: Path) -> None:
    """The news of rank 0 come before rank 1 has anything that could take them in."""
    (tmp_path / "app.py").write_text(
        "import os, time\n"
        "time.sleep(0.7 * int(os.environ['OMPY_RANK']))\n"
        "from mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank: MPI.COMM_WORLD.recv(source=0)\n"
    )
    words = [str(BIN / "ompy-run"), "-n", "2", "--oversubscribe", "--timeout", "20"]
    done = subprocess.run(
        [*words, sys.executable, "app.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == DEADLOCK, done.stderr
    assert 'app.py", line 4' in done.stderr


def test_the_files(tmp_path: Path) -> None:
    """Who waits for whom, for programs and as a picture."""
    program = PROGRAMS["one does not come"]
    run(tmp_path, program.text, program.ranks, "--autopsy", "autopsy.json")
    told = json.loads((tmp_path / "autopsy.json").read_text())
    assert (told["class"], told["ranks"], told["cycle"]) == ("deadlock", [0, 1, 2], [0, 2])
    assert {wait["line"] for wait in told["waits"]} == {6, 7}
    run(tmp_path, program.text, program.ranks, "--autopsy", "autopsy.svg")
    root = ET.parse(tmp_path / "autopsy.svg").getroot()
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[:3] == ["0", "2", "1"], "the circle first"


def test_it_can_be_left_alone(tmp_path: Path) -> None:
    program = PROGRAMS["a probe"]
    done = run(tmp_path, program.text, 2, "--no-deadlock-detection", "--timeout", "3")
    assert done.returncode == 110
    assert "never go on" not in done.stderr


WAITS_IN_VAIN: Final = {
    "a receive from anybody that fails, as nobody is left": """
if me == 0:
    try:
        comm.recv()
    except MPI.Exception:
        pass
""",
    "a thread that will send": """
import threading, time
def later():
    time.sleep(1.5)
    comm.send(1, me)
threading.Thread(target=later).start()
comm.recv(source=me)
comm.barrier()
""",
    "one computes": """
import time
if me == 0:
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        pass
    comm.send(1, 1)
else:
    comm.recv(source=0)
""",
    "an alarm": """
import signal
class Late(Exception):
    pass
def ring(*_):
    raise Late
if me == 0:
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 1.5)
try:
    comm.recv(source=1 - me)
except Late:
    comm.send(1, 1)
""",
    "a condition that a late active message makes true": """
import time
from ompy import gasnet
gasnet.init()
heard = []
def hear(token, payload, word):
    heard.append(word)
gasnet.attach([hear], segment_size=gasnet.PAGE_SIZE)
if me == 0:
    gasnet.block_until(lambda: heard)
else:
    time.sleep(1.5)
    gasnet.am_request_short(0, hear, 1)
gasnet.barrier()
comm.Barrier()
""",
    "a lock is given back, and who connects is late": """
import time
window = MPI.Win.Allocate(8, comm=comm)
port = comm.bcast(MPI.Open_port() if me == 0 else None)
if me == 1:
    window.Lock(0)
comm.Barrier()
if me == 1:
    time.sleep(0.8)
else:
    window.Lock(0)
window.Unlock(0)
if me == 0:
    between = MPI.COMM_SELF.Accept(port)
else:
    time.sleep(0.8)
    between = MPI.COMM_SELF.Connect(port)
between.Disconnect()
window.Free()
""",
    "asking again and again": """
import time
request = comm.irecv(source=1 - me)
end = time.monotonic() + 1.5
while not request.Test() and time.monotonic() < end:
    time.sleep(0.01)
comm.send(1, 1 - me)
request.wait()
""",
}


@pytest.mark.parametrize("name", WAITS_IN_VAIN)
def test_who_may_go_on_is_not_accused(name: str, tmp_path: Path) -> None:
    done = run(tmp_path, WAITS_IN_VAIN[name], 2)
    assert "never go on" not in done.stderr
    assert done.returncode == 0, done.stderr


QUEUED: Final = """
import time
window = MPI.Win.Allocate(8, comm=comm)
if me == 1:
    window.Lock(3, MPI.LOCK_SHARED)
    window.Get(bytearray(8), 3)
    window.Flush(3)
comm.Barrier()
if me == 3:
    while True:
        comm.Iprobe()
        time.sleep(0.01)
elif me == 1:
    comm.recv(source=0)
elif me == 0:
    time.sleep(0.3)
window.Lock(3, MPI.LOCK_SHARED if me == 0 else MPI.LOCK_EXCLUSIVE)
window.Put(bytes(8), 3)
window.Flush(3)
"""


def test_a_queue_that_its_owner_tells_of_while_it_runs(tmp_path: Path) -> None:
    """Rank 1 shares the lock, 2 has asked to have it alone, so 0 does not share it."""
    done = run(tmp_path, QUEUED, 4, "--mca", "osc", "pt2pt", "--timeout", "30")
    assert done.returncode == DEADLOCK, done.stderr
    assert "ranks 0-2 can never go on" in done.stderr
    assert "the lock of rank 3 of window 2, which rank 2 asked for before" in done.stderr


REVOKED: Final = """
import time
if me == 2:
    time.sleep(2.5)
    comm.Revoke()
else:
    try:
        comm.recv(source=1 - me)
    except MPI.Exception as problem:
        assert problem.Get_error_class() == MPI.ERR_REVOKED
print("over")
"""


def test_who_may_be_freed_by_a_revocation_is_not_accused(tmp_path: Path) -> None:
    """Where ranks may die: ranks 0 and 1 wait for each other, and rank 2 revokes."""
    done = run(tmp_path, REVOKED, 3, "--mca", "mpi_ft_enable", "1")
    assert "never go on" not in done.stderr
    assert (done.returncode, done.stdout.count("over")) == (0, 3), done.stderr


def test_with_nobody_left_to_revoke_they_are(tmp_path: Path) -> None:
    text = "comm.recv(source=(me + 1) % comm.size)"
    done = run(tmp_path, text, 3, "--mca", "mpi_ft_enable", "1")
    assert done.returncode == DEADLOCK, done.stderr


def test_a_rank_that_has_left_revokes_nothing(tmp_path: Path) -> None:
    """Where ranks may die, it is in MPI_Finalize until the others come."""
    text = "me == 1 or comm.recv(source=2 - me)"
    done = run(tmp_path, text, 3, "--mca", "mpi_ft_enable", "1")
    assert done.returncode == DEADLOCK, done.stderr


KILLED = """
import os
if me == 1:
    os.kill(os.getpid(), 9)
try:
    comm.recv(source=1)
except MPI.Exception:
    comm.recv(source=2 - me)
"""


def test_the_dead_revoke_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, KILLED, 3, "--mca", "mpi_ft_enable", "1")
    assert done.returncode == DEADLOCK, done.stderr


def test_random_programs_are_not_accused(tmp_path: Path) -> None:
    """Each of them waits in every way, and ranks say how they stand after a millisecond."""
    program = Path(__file__).parents[1] / "support" / "waiting_programs.py"
    words = [str(BIN / "ompy-run"), "-n", "3", "--oversubscribe"]
    words += ["--mca", "mca_base_deadlock_patience_ms", "1", sys.executable, str(program)]
    done = subprocess.run(
        [*words, "0", "300" if THOROUGH else "40"],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[1:]) == (0, ["programs", "ended"]), done.stderr
