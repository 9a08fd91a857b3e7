"""`ompy sim`: whole programs in the virtual world, twice the same."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ompy.cli.simulating.sim import HASH_SEED, PREPARED

pytestmark = pytest.mark.proc

OMPY = [sys.executable, "-m", "ompy.cli.main"]
BEGIN = "import os, sys, time\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\n"
TRAFFIC = (
    BEGIN
    + """
import random, uuid
data = bytes(range(256)) * 300
for i in range(3):
    assert comm.allreduce(i) == i * comm.size
    if comm.rank == 0:
        comm.Send(data, dest=1)
    elif comm.rank == 1:
        room = bytearray(len(data))
        comm.Recv(room, source=0)
        assert room == data
print(comm.rank, time.time(), MPI.Wtime(), random.random(), uuid.uuid4(), list({"a", "b", "c"}))
"""
)


class Sim:
    """Runs `ompy sim` on a program's text."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, code: str, *options: object, program: tuple[str, ...] = (), anew: bool = False
    ):
        """Run it; `anew` in an interpreter started anew, as users do, which takes longer."""
        path = self.folder / "program.py"
        path.write_text(code)
        command = [*OMPY, "sim", *map(str, options), str(path), *program]
        env = os.environ if anew else {**os.environ, PREPARED: "1", "PYTHONHASHSEED": HASH_SEED}
        return subprocess.run(command, capture_output=True, text=True, timeout=100, env=env)


@pytest.fixture
def sim(tmp_path: Path) -> Sim:
    return Sim(tmp_path)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("btl", ["self,usnic", "self,tcp"])
def test_the_same_seed_is_the_same_world(sim: Sim, tmp_path: Path, btl: str) -> None:
    script = "drop:probability=0.1;reorder:probability=0.1;corrupt:probability=0.05"
    said = []
    seeds = (7, 7, 8) if btl == "self,usnic" else (7, 7)
    for run, seed in enumerate(seeds):
        trace = tmp_path / f"trace{run}"
        options = ["-n", 3, "--seed", seed, "--mca", "btl", btl, "--fault", script]
        done = sim(TRAFFIC, *options, "--fault-strict", "--trace", trace, anew=True)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    first, second, *other = (files(tmp_path / f"trace{run}") for run in range(len(seeds)))
    assert set(first) == {"job.json", "rank-0.jsonl", "rank-1.jsonl", "rank-2.jsonl"}
    assert first == second
    assert b"DROP" in b"".join(first.values())
    assert said[0] == said[1]
    assert len(said[0].splitlines()) == 3
    assert re.search(r"ended at \d+\.\d{6} ms of virtual time; seed \d, 3 ranks", done.stderr)
    if other:
        assert first["rank-1.jsonl"] != other[0]["rank-1.jsonl"]
        assert said[2] != said[0]
        assert int(re.search(r"(\d+) retransmissions", done.stderr)[1]) > 0


def test_time_is_the_worlds(sim: Sim) -> None:
    begun = time.monotonic()
    done = sim(
        BEGIN
        + """
before = time.monotonic()
if comm.rank == 0:
    time.sleep(1000)
    comm.send("late", dest=1)
else:
    assert comm.recv(source=0) == "late"
    assert 1000 < time.monotonic() - before < 1001
end = time.time() + 0.001
while time.time() < end:
    pass
print(time.gmtime().tm_year, comm.rank)
"""
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["2020 0", "2020 1"]
    assert time.monotonic() - begun < 90


def test_a_deadlock_says_who_waits_for_what(sim: Sim) -> None:
    done = sim(BEGIN + "if comm.rank < 2:\n    comm.recv(source=1 - comm.rank, tag=5)\n", "-n", 3)
    assert done.returncode == 4
    assert "deadlock: nothing can happen any more, and ranks 0, 1 wait" in done.stderr
    for rank in (0, 1):
        assert f"  rank {rank} is at " in done.stderr
        assert f"a message from rank {1 - rank} with tag 5 in MPI_COMM_WORLD" in done.stderr
    assert "program.py:5 in <module>: comm.recv(source=1 - comm.rank, tag=5)" in done.stderr


@pytest.mark.parametrize(
    ("code", "ends", "said"),
    [
        ("if comm.rank: raise ValueError('mine')\ncomm.barrier()", 1, "ValueError: mine"),
        ("comm.Abort(9) if comm.rank else comm.barrier()", 9, "called Abort(9)"),
        ("sys.exit(7) if comm.rank else comm.barrier()", 7, "ended with exit code 7\n"),
        ("os._exit(3) if comm.rank else comm.barrier()", 1, "its process has gone"),
    ],
    ids=["exception", "Abort", "exit", "_exit"],
)
def test_failures(sim: Sim, tmp_path: Path, code: str, ends: int, said: str) -> None:
    done = sim(f"{BEGIN}comm.barrier()\n{code}", "--trace", tmp_path / "trace")
    assert done.returncode == ends, done.stderr
    assert said in done.stderr
    assert "rank.py" not in done.stderr, "no frame of ours in a program's traceback"
    assert '"end"' in (tmp_path / "trace" / "rank-0.jsonl").read_text().splitlines()[-1]


@pytest.mark.nightly
def test_worlds_without_end(sim: Sim) -> None:
    code = BEGIN + "while True: time.sleep(1)"
    done = sim(code, "--limit", "10min")
    assert done.returncode == 5
    assert "no end after 600 s of virtual time" in done.stderr
    assert sim(code, "--limit", "10min").stderr == done.stderr
    done = sim("import os, time\nprint(os.getpid(), flush=True)\nwhile True: pass", "--patience", 1)
    assert done.returncode == 5
    assert "has computed for 1 s" in done.stderr
    assert "program.py:3 in <module>: while True: pass" in done.stderr, "and where"
    for process in done.stdout.split():
        assert not Path("/proc", process).exists(), "nothing is left"


@pytest.mark.parametrize("to_all", [False, True], ids=["to one", "to all, as a terminal does"])
def test_interrupts_leave_nothing(sim: Sim, to_all: bool) -> None:
    path = sim.folder / "program.py"
    path.write_text(f"{BEGIN}print(os.getpid(), flush=True)\nwhile True: comm.barrier()\n")
    command = [*OMPY, "sim", "-n", "2", str(path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, start_new_session=True, **pipes) as process:
        ranks = [int(process.stdout.readline()) for _ in range(2)]
        (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert "interrupted at " in said
    for rank in range(2):
        told = rf"^  (ranks 0, 1 are|rank {rank} is) at {path}:"
        assert re.search(told, said, re.MULTILINE), said
    deadline = time.monotonic() + 60
    while any(Path("/proc", str(rank)).exists() for rank in ranks):
        assert time.monotonic() < deadline, "a rank is left"
        time.sleep(0.05)


def test_calls_that_differ_and_need_nothing_of_each_other_are_found_at_the_end(sim: Sim) -> None:
    done = sim(BEGIN + "comm.bcast(1, root=comm.rank)")
    assert done.returncode == 1
    assert "rank 0 called bcast with root 0, rank 1 called bcast with root 1" in done.stderr
    assert sim(BEGIN + "comm.Dup().Free()\ncomm.bcast(1, root=0)").returncode == 0


def test_the_program_is_the_users(sim: Sim, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("ANSWER = 42\n")
    code = (
        "import sys, os, atexit, beside\n"
        "class Thing: pass\n" + BEGIN + "import pickle\n"
        "assert pickle.loads(pickle.dumps(Thing())).__class__ is Thing\n"
        "atexit.register(print, 'last', beside.ANSWER)\n"
        "print(__name__, sys.argv[1:], os.environ['OMPI_COMM_WORLD_RANK'] == str(comm.rank))\n"
    )
    done = sim(code, "-n", 1, program=("--seed", "x"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["__main__ ['--seed', 'x'] True", "last 42"]


IMPATIENT = (
    BEGIN
    + """
if comm.rank == 0:
    request = comm.irecv(source=1)
    deadline = MPI.Wtime() + 0.05
    while not request.test()[0]:
        assert MPI.Wtime() < deadline, "rank 1 is dead"
        time.sleep(0.001)
else:
    comm.send(1, dest=0)
"""
)


def test_a_sweep_keeps_failures_and_shrinks_their_faults(sim: Sim, tmp_path: Path) -> None:
    """A program that takes a slow peer for a dead one: a single lost packet is enough."""
    keep = tmp_path / "kept"
    script = "drop:probability=0.4;reorder:probability=0.5;duplicate:probability=0.3"
    options = ["--fault", script, "--seeds", 6, "--seed", 20, "--keep", keep]
    done = sim(IMPATIENT, *options, "--fault-strict")
    assert done.returncode == 1, done.stderr
    seeds = sorted(int(path.name.removeprefix("seed-")) for path in keep.iterdir())
    assert seeds
    assert set(seeds) < set(range(20, 26))
    assert re.search(r"6 seeds in [\d.]+ s: \d ended, \d failed", done.stderr)
    first = keep / f"seed-{seeds[0]}"
    assert "rank 1 is dead" in (first / "output.txt").read_text()
    least = (first / "faults.toml").read_text()
    assert "exit code 1, AssertionError: rank 1 is dead" in least.splitlines()[0]
    assert least.count("[[fault]]") == 1
    assert 'what = "drop"\nrank = 1\npeer = 0\nrail = "rail0"\nnth = 1\n' in least
    # the script replays, and what the sweep traced is what the seed alone gives
    again = sim(IMPATIENT, "--seed", seeds[0], "--fault", first / "faults.toml", "--fault-strict")
    assert again.returncode == 1
    assert "rank 1 is dead" in again.stderr
    alone = sim(IMPATIENT, "--seed", seeds[0], "--fault", script, "--trace", tmp_path / "alone")
    assert alone.returncode == 1
    assert files(tmp_path / "alone") == files(first / "trace")


RACE = (
    BEGIN
    + """
for turn in range(2):
    if comm.rank == 0:
        status, heard = MPI.Status(), []
        for _ in range(2):
            comm.recv(source=MPI.ANY_SOURCE, tag=turn, status=status)
            heard.append(status.source)
        assert turn < 1 or heard[0] == 1, f"rank {heard[0]} was first"
    else:
        comm.send("x", dest=0, tag=turn)
    comm.Barrier()
"""
)


def test_a_race_is_not_blamed_on_a_fault(sim: Sim, tmp_path: Path) -> None:
    """In some seeds a fault decides who is first; in others it is the other without any."""
    keep = tmp_path / "kept"
    script = "reorder:probability=0.3,delay=300us"
    options = ["-n", 3, "--seed", 7, "--seeds", 1, "--fault", script, "--keep", keep]
    done = sim(RACE, *options)
    assert done.returncode == 1, done.stderr
    assert "no fault is needed" in done.stderr
    told = done.stderr.partition("no fault is needed")[2]
    again = sim(RACE, *re.findall(r"ompy sim (-n 3 --seed \d+) ", told)[0].split())
    assert again.returncode == 1
    assert "rank 2 was first" in again.stderr


PAIRS = (
    BEGIN
    + """
other = comm.rank ^ 1
for turn in range(10):
    comm.sendrecv("x" * 3000, other, source=other)
"""
)


@pytest.mark.nightly
def test_a_fault_that_is_taken_away_changes_nothing_else(sim: Sim, tmp_path: Path) -> None:
    """What one wire suffers decides nothing on the others: delays, draws and turns are by flow."""
    struck = []
    for name, other in (("with", "drop:rank=2,nth=1+2+3;"), ("without", "")):
        script = f"{other}drop:rank=0,probability=0.3"
        trace = tmp_path / name
        done = sim(PAIRS, "-n", 4, "--seed", 3, "--fault", script, "--trace", trace)
        assert done.returncode == 0, done.stderr
        struck.append([(trace / f"rank-{rank}.jsonl").read_bytes() for rank in range(4)])
    with_it, without = struck
    assert b"DROP" in with_it[0]
    assert with_it[:2] == [text.replace(b'"rule":0', b'"rule":1') for text in without[:2]]
    assert with_it[2:] != without[2:]


SPAWNS = (
    BEGIN
    + """
parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    for count in (2, 3):
        group = comm.Spawn(sys.executable, [__file__], maxprocs=count)
        both = group.Merge(False)
        print(comm.rank, both.size, both.allreduce(both.rank), os.environ["OMPI_UNIVERSE_SIZE"])
        group.Disconnect()
    for words in (["sh", []], [sys.executable, ["/there/is/none.py"]]):
        try:
            comm.Spawn(*words)
        except MPI.Exception as problem:
            print(problem)
else:
    both = parent.Merge(True)
    print("later", comm.rank, comm.size, both.allreduce(both.rank))
    parent.Disconnect()
"""
)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "options",
    [
        ("--fault", "drop:probability=0.1"),
        ("--mca", "btl", "self,sm,tcp", "--ranks-per-host", 2),
        ("--mca", "pml", "bfo", "--rails", 2, "--fault", "link_down:rail=rail0,from=2.1ms"),
    ],
    ids=["drops", "memory", "a rail goes"],
)
def test_ranks_that_are_started_later(
    sim: Sim, tmp_path: Path, options: tuple[object, ...]
) -> None:
    """Twice the same, event by event; their packets meet the faults too."""
    ends = []
    for name in ("one", "two"):
        ended = sim(SPAWNS, "-n", 2, "--seed", 5, "--trace", tmp_path / name, *options)
        assert ended.returncode == 0, ended
        ends.append((sorted(ended.stdout.splitlines()), files(tmp_path / name)))
    assert ends[0] == ends[1]
    lines, traces = ends[0]
    assert [line for line in lines if line.startswith("later")] == sorted(
        [f"later {rank} 2 6" for rank in range(2)] + [f"later {rank} 3 10" for rank in range(3)]
    )
    assert sum("5 10 2" in line for line in lines) == 2
    assert sum("runs Python's programs only" in line for line in lines) == 2
    assert sum("there is no program /there/is/none.py" in line for line in lines) == 2
    assert {f"rank-{rank}.jsonl" for rank in range(7)} <= set(traces)


def test_a_later_rank_that_fails_ends_the_world(sim: Sim) -> None:
    code = BEGIN + (
        "if MPI.Comm.Get_parent() == MPI.COMM_NULL:\n"
        "    comm.Spawn(sys.executable, [__file__], maxprocs=2).recv(source=0)\n"
        "elif comm.rank:\n    sys.exit(7)\nelse:\n    comm.recv()\n"
    )
    ended = sim(code, "-n", 1)
    assert ended.returncode == 7, ended
    assert "rank 2: it ended with exit code 7" in ended.stderr


TALK = """
import threading
other = 1 - comm.rank
def talk(tag):
    for _ in range(3):
        comm.sendrecv(tag, other, tag, None, other, tag)
threads = [threading.Thread(target=talk, args=(tag,)) for tag in range(2)]
for each in threads:
    each.start()
for each in threads:
    each.join()
"""
FIRST = """
import threading
other = 1 - comm.rank
thread = threading.Thread(target=comm.recv, args=(None, other, 7))
thread.start()
comm.ssend(1, other, 7)
thread.join()
"""


@pytest.mark.parametrize("code", [TALK, FIRST], ids=["that talk", "that receive"])
@pytest.mark.parametrize("options", [(), ("--explore",)], ids=["a world", "all"])
def test_threads_in_calls_are_refused_and_not_accused(
    sim: Sim, code: str, options: tuple[str, ...]
) -> None:
    done = sim(BEGIN + code, "-n", 2, *options)
    assert done.returncode == 1, done.stderr
    assert "several threads of it are in calls of MPI" in done.stderr
    assert "deadlock" not in done.stderr
    assert "it is kept" not in done.stderr
    assert "Traceback" not in done.stderr
