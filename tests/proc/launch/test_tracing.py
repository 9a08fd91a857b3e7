"""Real jobs, traced from the command line to the picture; and what stuck ranks say."""

from __future__ import annotations

import json
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
OMPY = [sys.executable, "-c", "from ompy.cli.main import main; main()"]

MESSAGES = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
for size in (10, 5000, 200_000):
    if comm.rank == 0:
        comm.Send(bytearray(size), 1, tag=7)
    else:
        comm.Recv(bytearray(size), 0, tag=7)
if comm.rank == 0:
    comm.Ssend(bytearray(5), 1, tag=8)
else:
    comm.Recv(bytearray(5), 0, tag=8)
comm.Barrier()
"""


def ompy(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*OMPY, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_from_the_job_to_the_picture(launch, tmp_path) -> None:
    folder = tmp_path / "trace"
    result = launch.python(2, MESSAGES, "--trace", folder, "--mca", "btl_sm_eager_limit", 6000)
    assert (result.code, result.err) == (0, "")
    facts = json.loads((folder / "job.json").read_text())
    assert facts["exit_code"] == 0
    assert [rank["rank"] for rank in facts["ranks"]] == [0, 1]
    assert facts["parameters"]["btl_sm_eager_limit"] == {
        "value": 6000,
        "origin": "--mca btl_sm_eager_limit 6000",
    }
    listed = ompy("trace", folder)
    assert (listed.returncode, listed.stderr) == (0, "")
    table, calls = listed.stdout.split("\n\n")
    (row,) = calls.splitlines()[1:]
    assert " ".join(row.split()[3:]) == (
        "Barrier MPI_COMM_WORLD #1 sm: a fragment without data <string>:13"
    )
    rows = [line.split(maxsplit=7) for line in table.splitlines()[1:]]
    assert [row[2:] for row in rows] == [
        ["0", "1", "7", "10", "B", "Eager Send (Immediate)"],
        ["0", "1", "7", "5000", "B", "Eager Send (Immediate)"],
        ["0", "1", "7", "200000", "B", "RDMA Direct Get"],
        ["0", "1", "8", "5", "B", "Send/Receive Pipeline"],
    ]
    times = [float(row[1]) for row in rows]
    assert times == sorted(times)
    _pictures(folder, tmp_path)


def _pictures(folder, tmp_path) -> None:
    drawing, text, line = (tmp_path / name for name in ("m.svg", "m.mmd", "c.json"))
    chosen = ["--rank", 0, "--peer", 1, "--tag", 7, "--message", 3]
    for path in (drawing, text):
        done = ompy("trace", folder, "--sequence", path, *chosen)
        assert done.returncode == 0, done.stderr
    words = [element.text for element in ET.parse(drawing).iter() if element.text]
    assert {"RGET", "get 200000 B over sm", "FIN", "A", "C", "D", "F", "G"} <= set(words)
    letters = [part.split(": ")[1] for part in text.read_text().splitlines() if "FIN" in part]
    assert letters == ["D → F"]
    assert ompy("trace", folder, "--chrome", line).returncode == 0
    events = json.loads(line.read_text())["traceEvents"]
    sent = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
    arrived = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    assert set(sent) == set(arrived)
    assert len(sent) > 5
    # both ranks read one clock, and what is sent is stamped before it is
    assert all(sent[number] <= arrived[number] for number in sent)


def test_a_job_that_fails_leaves_its_trace(launch, tmp_path) -> None:
    """The rank that aborts and the one that is ended with it both close their files."""
    code = "from mpi4py import MPI; c = MPI.COMM_WORLD\n"
    code += "c.Send(b'1', 1 - c.rank)\nif c.rank: c.Recv(bytearray(1)); c.Abort(9)\n"
    code += "c.Recv(bytearray(1)); c.Recv(bytearray(1))\n"
    result = launch.python(2, code, "--trace", tmp_path / "t")
    assert result.code == 9
    ends = {
        rank: json.loads((tmp_path / "t" / f"rank-{rank}.jsonl").read_text().splitlines()[-1])
        for rank in (0, 1)
    }
    assert {rank: end["end"] for rank, end in ends.items()} == {0: "SIGTERM", 1: "abort"}
    shown = ompy("trace", tmp_path / "t")
    assert "exit code 9" in shown.stderr
    assert "rank 1 end early: abort" in shown.stderr
    assert len(shown.stdout.splitlines()) == 3


def test_what_cannot_be_traced_or_shown(launch, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    result = launch.python(1, "print(1)", "--trace", tmp_path / "file")
    assert (result.code, result.out) == (2, "")
    assert "--trace" in result.err
    assert "holds no trace" in ompy("trace", tmp_path).stderr
    assert ".svg or .mmd" in ompy("trace", tmp_path, "--sequence", "a.png").stderr
    assert "--rank A" in ompy("trace", tmp_path, "--peer", 1).stderr


COLLECTIVES = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
buffer = bytearray(8000)
for _ in range(3):
    comm.Allreduce(MPI.IN_PLACE, [buffer, MPI.DOUBLE], op=MPI.MAX)
comm.Bcast(buffer, root=1)
comm.allgather(comm.rank)
half = comm.Split(comm.rank % 2)
half.Ibarrier().Wait()
half.Free()
try:
    comm.Bcast(buffer, root=9)
except MPI.Exception:
    pass
"""


@pytest.mark.parametrize("coll", ["tuned,basic", pytest.param("sm,tuned,basic", marks=nightly)])
def test_a_program_of_collectives(launch, tmp_path, coll) -> None:
    """It is never answered that there is no such message: the calls are there."""
    folder = tmp_path / "t"
    result = launch.python(4, COLLECTIVES, "--trace", folder, "--mca", "coll", coll)
    assert (result.code, result.err) == (0, "")
    listed = ompy("trace", folder)
    assert (listed.returncode, listed.stderr) == (0, "")
    rows = listed.stdout.splitlines()[1:]
    names = [row.split()[3] for row in rows]
    assert names[:6] == ["Allreduce"] * 3 + ["Bcast", "allgather", "Split"]
    assert names.count("Ibarrier") == 2
    assert "8000 B, MAX" in rows[0]
    assert rows[0].endswith("<string>:6")
    assert "objects, as messages" in rows[4]
    (wrong,) = [row for row in rows if "root 9" in row]
    assert "MPI_ERR_ROOT at ranks 0-3" in wrong
    only = ompy("trace", folder, "--call", "allreduce", "--from", 2, "--count", 1).stdout
    assert only.startswith("call 2: Allreduce of 8000 B, MAX, MPI_COMM_WORLD #2\nserved by ")
    assert ("in shared memory" in only) == ("sm" in coll)
    assert ("  round 1      8000 B" in only) == ("sm" not in coll)
    _drawn(folder, tmp_path, "sm" in coll)


def _drawn(folder, tmp_path, memory: bool) -> None:
    """More than twenty messages take several pages; what has none says why."""
    call = "2" if memory else "Allreduce"  # the first call makes the memory known, by messages
    one = ompy("trace", folder, "--sequence", tmp_path / "p.svg", "--call", call)
    if memory:
        assert "they were served in shared memory" in one.stderr
        return
    assert one.returncode == 0, one.stderr
    all_pages = ompy("trace", folder, "--sequence", tmp_path / "a.svg")
    assert [line.split(":")[1] for line in all_pages.stdout.splitlines()][:1] == [" 20 messages"]
    assert (tmp_path / "a-2.svg").exists()
    part = ompy(
        "trace", folder, "--calls", "--sequence", tmp_path / "b.mmd", "--from", 3, "--count", 25
    )
    assert part.stdout.split(": ")[1] == "25 messages\n"
    assert ompy("trace", folder, "--tag", -5).stderr.count("the tag of Allreduce") == 3


def test_calls_that_are_no_collectives(launch, tmp_path) -> None:
    result = launch.python(2, MESSAGES, "--trace", tmp_path / "t")
    assert result.code == 0
    rows = ompy("trace", tmp_path / "t", "--calls", "--rank", 0).stdout.splitlines()[1:]
    assert ["to 1, tag 8" in row for row in rows] == [False, False, False, True, False]
    assert "Ssend (rank 0)" in rows[3]
    number = rows[2].split()[0]
    told = ompy("trace", tmp_path / "t", "--call", number).stdout
    assert "Send of 200000 B, to 1, tag 7" in told
    assert "rank 0 at <string>:6 in <module>" in told
    drawn = ompy("trace", tmp_path / "t", "--call", number, "--sequence", tmp_path / "m.svg")
    assert drawn.stdout.endswith("1 message\n")
    for wrong in (("--call", 99), ("--call", "Gather"), ("--call", 1, "--tag", 7), ("--from", 99)):
        assert ompy("trace", tmp_path / "t", *wrong).returncode


OTHERS = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
window = MPI.Win.Allocate(64, comm=comm)
window.Fence()
window.Put(bytearray(8), 1 - comm.rank)
window.Fence()
window.Free()
again = comm.Allreduce_init(MPI.IN_PLACE, [bytearray(8), MPI.DOUBLE])
for _ in range(2):
    again.Start()
    again.Wait()
again.Free()
between = MPI.Intracomm.Create_intercomm(MPI.COMM_SELF, 0, comm, 1 - comm.rank)
between.Barrier()
comm.barrier()
"""


def test_windows_persistent_calls_and_two_groups(launch, tmp_path) -> None:
    """Each of them is one call of both ranks, or a rank's own."""
    result = launch.python(2, OTHERS, "--trace", tmp_path / "t")
    assert (result.code, result.err) == (0, "")
    rows = ompy("trace", tmp_path / "t", "--calls").stdout.splitlines()[1:]
    names = [row.split()[3] for row in rows]
    for name in ("Win.Allocate", "Win.Free", "Allreduce_init", "barrier"):
        assert names.count(name) == 1, rows
    assert (names.count("Win.Fence"), names.count("Win.Put")) == (2, 2)
    assert (names.count("Request.Start"), names.count("Request.Wait")) == (4, 4)
    assert sum("inter: straight to the other group" in row for row in rows) == 1


def test_nothing_stands_in_front_of_an_untraced_program(launch, tmp_path) -> None:
    code = "from mpi4py import MPI; c = MPI.COMM_WORLD; c.Barrier()\n"
    code += "import sys; print('ompy.calls' in sys.modules, 'ompy.check' in sys.modules)\n"
    code += "print(hasattr(MPI.Intracomm.Barrier, 'ompy_call_traced'))\n"
    plain = launch.python(1, code)
    assert plain.out.split() == ["False", "False", "False"]
    traced = launch.python(1, code, "--trace", tmp_path / "t")
    assert traced.out.split() == ["True", "True", "True"]


def test_a_traced_job_may_be_checked(launch, tmp_path) -> None:
    result = launch.python(2, MESSAGES, "--trace", tmp_path / "t", "--check")
    assert result.code == 0, result.err
    rows = ompy("trace", tmp_path / "t", "--calls").stdout.splitlines()
    assert len(rows) == 10


def test_a_program_with_its_own_sigusr1_keeps_it(launch) -> None:
    code = "import signal\nsignal.signal(signal.SIGUSR1, lambda *_: print('mine'))\n"
    code += "from mpi4py import MPI\nimport os\nos.kill(os.getpid(), signal.SIGUSR1)\n"
    result = launch.python(1, code)
    assert (result.out, result.err) == ("mine\n", "")


def test_an_uncaught_error_of_a_message_tells_its_story(launch) -> None:
    code = "from mpi4py import MPI; c = MPI.COMM_SELF\n"
    code += "r = c.Irecv(bytearray(2), 0, 5); c.Send(b'123', 0, 5); r.Wait()\n"
    result = launch.python(1, code)
    assert result.code == 1
    assert "MPI_ERR_TRUNCATE" in result.err
    assert "> send   to rank 0 in MPI_COMM_SELF, tag 5, message 1, 3 bytes" in result.err
    quiet = launch.python(1, "from mpi4py import MPI; MPI.COMM_WORLD.Send(b'', 5)")
    assert "MPI_ERR_RANK" in quiet.err
    assert "its last" not in quiet.err


def test_explain(launch) -> None:
    found = ompy("explain", "--size", "1m", "--mca", "btl", "self,tcp", "--json")
    answer = json.loads(found.stdout)
    assert answer["protocol"] == "RDMA Direct Put"
    assert answer["parameters"]["btl_tcp_eager_limit"] == {"value": "65536", "origin": "default"}
    shown = ompy("explain", "--size", "9000", "--mca", "btl_sm_eager_limit", "9056")
    assert "Protocol: Eager Send (Immediate)" in shown.stdout
    assert "btl_sm_eager_limit = 9056 (--mca btl_sm_eager_limit 9056)" in shown.stdout
    assert "btl_sm_eager_limit below 9056: RDMA Direct Get" in shown.stdout
    assert ompy("explain", "--size", "many").returncode == 2
    assert shown.returncode == 0
    words = ("--size", "1m", "--mca", "pml", "bfo", "--mca", "btl", "self,tcp")
    other = ompy("explain", *words, "--mca", "pml_bfo_send_pipeline_depth", "5")
    assert "pml_bfo_send_pipeline_depth = 5 (--mca" in other.stdout
    assert "pml_ob1" not in other.stdout


GASNET = """
from ompy import gasnet
heard = []
def ask(token, payload, number):
    gasnet.am_reply_short(token, answer, number)
def answer(token, payload, number):
    heard.append(number)
gasnet.init()
gasnet.attach([ask, answer])
right = (gasnet.mynode() + 1) % gasnet.nodes()
gasnet.am_request_medium(right, ask, b"abc", 5)
gasnet.put(right, 0, b"four")
gasnet.block_until(lambda: heard)
gasnet.exit(0)
"""


def test_a_job_of_gasnet(launch, tmp_path) -> None:
    mca = ("--mca", "conduit", "aries", "--mca", "conduit_aries_pshm", 0)
    result = launch.python(2, GASNET, "--trace", tmp_path / "t", *mca)
    assert (result.code, result.err) == (0, "")
    listed = ompy("trace", tmp_path / "t")
    assert (listed.returncode, listed.stderr) == (0, "")
    rows = [line.split(maxsplit=6) for line in listed.stdout.splitlines()[1:]]
    told = sorted((row[2], row[3], row[4], row[6].split(",")[0]) for row in rows)
    assert told == [
        ("0", "1", "0", "AMReplyShort answer: SMSG"),
        ("0", "1", "3", "AMRequestMedium ask: SMSG"),
        ("0", "1", "4", "put: FMA put"),
        ("1", "0", "0", "AMReplyShort answer: SMSG"),
        ("1", "0", "3", "AMRequestMedium ask: SMSG"),
        ("1", "0", "4", "put: FMA put"),
    ]
    drawn = ompy("trace", tmp_path / "t", "--sequence", tmp_path / "m.mmd", "--handler", "ask")
    assert drawn.returncode == 0, drawn.stderr
    assert (
        "r0->>r1: AMRequestMedium ask 3 B (SMSG, 11 credits left)"
        in (tmp_path / "m.mmd").read_text()
    )
    assert "--tag is of MPI" in ompy("trace", tmp_path / "t", "--tag", 1, "--gasnet").stderr


@nightly
def test_explain_gasnet() -> None:
    mca = ("--mca", "conduit", "aries", "--mca", "conduit_aries_pshm", 0)
    shown = ompy("explain", "--gasnet", "put", "--size", 9000, *mca)
    assert "Protocol: BTE put, registered" in shown.stdout, shown.stderr
    assert "conduit_aries_put_fma_rdma_cutover = 4096 (default)" in shown.stdout
    assert "means nothing" in ompy("explain", "--gasnet", "short", "--size", 0, "--inside").stderr
    assert "--offset is of GASNet" in ompy("explain", "--size", 1, "--offset", 3).stderr
    refused = ompy("explain", "--gasnet", "medium", "--size", 569, *mca)
    assert "ompy explain: error: a Medium brings up to 568 bytes, not 569" in refused.stderr
