"""Processes that are started later, and groups that meet at ports, as users have them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import assert_gone

pytestmark = pytest.mark.proc
PATIENCE = 60  # s; arbitrary: what is told here takes milliseconds

PROGRAM = """
import os, sys, time
from ompy import MPI
world, parent = MPI.COMM_WORLD, MPI.Comm.Get_parent()
where = os.environ.get("OMPY_TEST_HOST", "here")

def start(count, *words, comm=world, **keys):
    info = MPI.Info.Create(keys)
    return comm.Spawn(sys.executable, [__file__, *map(str, words)], maxprocs=count, info=info)

def say(*words):
    # one piece: nobody keeps the lines of processes apart that nobody launched
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
"""


@pytest.fixture
def program(tmp_path):
    """Makes a program of what its first world does and what those do that it starts."""

    def make(first, later):
        path = tmp_path / "program.py"
        bodies = [
            "".join(f"    {line}\n" for line in part.strip().splitlines())
            for part in (first, later)
        ]
        condition = "if parent == MPI.COMM_NULL:\n"
        path.write_text(f"{PROGRAM}\n{condition}{bodies[0]}else:\n{bodies[1]}")
        return path

    return make


@pytest.fixture
def run(launch, program):
    """Runs such a program on some ranks to the end."""

    def call(ranks, first, later, *options, start=False, **more):
        words = ["-n", ranks, *options, sys.executable, program(first, later)]
        return (launch.start if start else launch)(*words, **more)

    return call


FIRST = """
group = start(3)
say("first", world.rank, group.Get_size(), group.Get_remote_size(), group.Is_inter())
both = group.Merge(False)
say("sum", both.rank, both.allreduce(both.rank))
if world.rank == 0:
    import numpy
    numbers = numpy.arange(500_000.0)
    for _ in range(3):
        group.Send(numbers, dest=2)
        group.Recv(numbers, source=2)
    say(numbers.sum())
both.Free()
group.Disconnect()
"""
LATER = """
group = parent
assert parent.name == "MPI_COMM_PARENT"
say("later", world.rank, world.size, world.Get_attr(MPI.APPNUM), os.environ["OMPY_RANK"],
    os.environ["OMPI_COMM_WORLD_SIZE"], os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
both = parent.Merge(True)
say("sum", both.rank, both.allreduce(both.rank))
if world.rank == 2:
    import numpy
    numbers = numpy.empty(500_000)
    for _ in range(3):
        parent.Recv(numbers, source=0)
        numbers += 1
        parent.Send(numbers, dest=0)
both.Free()
parent.Disconnect()
assert MPI.Comm.Get_parent() == MPI.COMM_NULL
"""
TOGETHER = [
    *(f"first {rank} 2 3 True" for rank in range(2)),
    *(f"later {rank} 3 0 {rank} 3 {rank}" for rank in range(3)),
    *(f"sum {rank} 10" for rank in range(5)),
    str(500_000 * 499_999 / 2 + 3 * 500_000),
]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--mca", "btl", "self,tcp"),
        ("--mca", "btl", "self,sm"),
        ("--mca", "btl", "self,usnic"),
        ("--mca", "btl_sm_single_copy_mechanism", "emulated"),
        ("--mca", "pml", "bfo"),
        ("--mca", "plm_base_fork_ranks", "0"),
    ],
    ids=" ".join,
)
def test_two_worlds_talk(run, options):
    result = run(2, FIRST, LATER, *options)
    assert (result.code, result.err) == (0, ""), result
    assert sorted(result.out.splitlines()) == sorted(TOGETHER)


def test_a_rank_that_is_alone_on_its_host(run):
    first = "group = start(2)\nsay(group.recv(source=1))\ngroup.Disconnect()"
    later = "if world.rank: parent.send(world.rank, dest=0)\nparent.Disconnect()"
    result = run(1, first, later)
    assert (result.code, result.out, result.err) == (0, "1\n", ""), result


def test_worlds_that_start_worlds(run):
    first = """
group = start(1, 1)
both = group.Merge()
say(both.size, both.allreduce(1))
group.Disconnect()
"""
    later = """
depth = int(sys.argv[1])
if depth < 3:
    own = start(depth, depth + 1)
    both = own.Merge(False)
    say(depth, both.size, both.allreduce(1))
    both.Free()
    own.Disconnect()
both = parent.Merge(True)
both.allreduce(1)
parent.Disconnect()
"""
    result = run(1, first, later)
    assert result.code == 0, result
    assert sorted(result.out.splitlines()) == ["1 2 2", "2 3 3", "2 2"] or sorted(
        result.out.splitlines()
    ) == ["1 2 2", "2 2", "2 3 3"]


SLOW_TO_MEET = """
import os, sys, time
from ompy.runtime.ranks.other_worlds import OtherWorlds

if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
    meet = OtherWorlds._meet_world
    OtherWorlds._meet_world = lambda *given: (time.sleep(1), meet(*given))

from ompy import MPI
parent = MPI.Comm.Get_parent()
if parent == MPI.COMM_NULL:
    group = MPI.COMM_SELF.Spawn(sys.executable, [__file__], maxprocs=2)
    group.bcast(7, root=MPI.ROOT)
    print(group.recv(source=1))
elif parent.bcast(None, root=0) == 7 and parent.Get_rank():
    parent.send("well", dest=0)
"""


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp", "self,usnic"])
def test_a_rank_meets_its_parents_when_its_sibling_has_ended(launch, btl):
    """What the first shared with the world that started them is there for the second."""
    (launch.directory / "program.py").write_text(SLOW_TO_MEET)
    options = ("--mca", "btl", btl, "--mca", "plm_base_fork_ranks", "0")
    result = launch("-n", 1, *options, sys.executable, "program.py")
    assert (result.code, result.out, result.err) == (0, "well\n", ""), result


NOTHING = "both = parent.Merge()\nboth.Barrier()\nboth.Free()\nparent.Disconnect()"


def test_nothing_is_left_of_worlds_that_have_gone(run):
    """No descriptors, neither in the rank that started them nor in the agent."""
    first = """
import gc
counts = []
for _ in range(9):
    group = start(2)
    both = group.Merge()
    both.Barrier()
    both.Free()
    group.Disconnect()
    time.sleep(0.3)
    world.Barrier()
    gc.collect()
    counts.append([len(os.listdir(f"/proc/{pid}/fd")) for pid in (os.getpid(), os.getppid())])
few = [count + 6 for count in counts[3]]  # a module of the last world may wait for its timer
assert all(map(int.__le__, counts[-1], few)), counts
say("done")
"""
    result = run(1, first, NOTHING)
    assert (result.code, result.out) == (0, "done\n"), result


FAILS = {
    "exit": ("os._exit(7)", 7, "Rank 3 ended with exit code 7"),
    "kill": ("os.kill(os.getpid(), 9)", 137, "Rank 3 was killed by signal 9"),
    "abort": ("world.Abort(5)", 5, "Rank 3 aborted the job with code 5"),
    "raise": ("raise KeyError('why')", 1, "uncaught KeyError"),
    "leave": ("os._exit(0)", 1, "without MPI_Finalize"),
}


@pytest.mark.parametrize("how", FAILS)
def test_the_first_failure_decides_and_ends_all(run, how):
    code, expected, text = FAILS[how]
    result = run(2, "start(2).recv(source=0)", f"if world.rank:\n    {code}\ntime.sleep(100)")
    assert result.code == expected, result
    assert text in " ".join(result.err.split())
    assert "rank 1 of 2 that rank 0 spawned" in result.err


@pytest.mark.parametrize("victim", ["launcher", "agent", "first", "later"])
def test_no_process_survives(launch, run, victim):
    first = "group = start(2)\nsay('first', os.getpid(), os.getppid())\ngroup.recv(source=0)"
    running = run(1, first, "say('later', os.getpid())\ntime.sleep(100)", start=True)
    pids = {}
    while len(pids) < 4:
        name, *numbers = running.line().split()
        pids.setdefault(name, int(numbers[0]))
        pids[f"{name} {len(pids)}"] = int(numbers[0])
        if name == "first":
            pids["agent"] = int(numbers[1])
    pids["launcher"] = running.pid
    os.kill(pids[victim], signal.SIGKILL)
    assert running.end().code != 0
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])


REFUSED = """
def attempt(*words, **keys):
    try:
        world.Spawn(*words, **keys)
    except MPI.Exception as problem:
        say(world.rank, MPI.Get_error_class(problem.Get_error_code()), problem)
info = MPI.Info.Create
attempt("/there/is/none", maxprocs=2)
attempt(sys.executable, [__file__], 2, info({"wdir": "/there/is/none"}))
attempt(sys.executable, [__file__], 2, info({"host": "elsewhere"}))
attempt(sys.executable, [__file__], 2, info({"add-host": "elsewhere"}))
attempt(sys.executable, [__file__], 0)
codes = []
group = world.Spawn(sys.executable, [__file__], 2, info({"wdir": "/", "env": "A=1\\nB=2 3"}),
                    errcodes=codes)
say(codes)
group.Disconnect()
"""


def test_what_cannot_be_started_is_an_error_and_nothing_more(run):
    later = "say(os.getcwd(), os.environ['A'], os.environ['B'])\nparent.Disconnect()"
    result = run(2, REFUSED, later)
    assert result.code == 0, result
    lines = result.out.splitlines()
    for text, count in (
        ("could not be started: No such file or directory: /there/is/none", 2),
        ("(in /there/is/none)", 2),
        ("host 'elsewhere' is none of this job's", 2),
        ("info key add-host", 2),
        ("0 processes; at least one is started", 2),
        ("[0, 0]", 2),
        ("/ 1 2 3", 2),
    ):
        assert sum(text in line for line in lines) == count, (text, result)


EARLY = """
import os, sys
stage, victim = sys.argv[1], sys.argv[2]
later = os.environ.get("OMPI_COMM_WORLD_LOCAL_RANK") if len(sys.argv) > 3 else None

def die(*_, **__):
    os.kill(os.getpid(), 9)

if later is not None and os.environ["OMPI_COMM_WORLD_RANK"] == victim:
    if stage == "begin":
        die()
    if stage == "exit":
        sys.exit(3)
    from ompy.mpi.processes import spawning
    from ompy.mpi.communicators.between import Leaders, connect
    if stage == "meet":
        spawning.connect = die
    elif stage == "met":
        spawning.connect = lambda *given: (connect(*given), die())

from ompy import MPI
if later is None:
    program = [__file__, stage, victim]
    for _ in range(2):
        try:
            MPI.COMM_WORLD.Spawn(sys.executable, [*program, "later"], maxprocs=2)
        except MPI.Exception as problem:
            print(problem.Get_error_class() == MPI.ERR_SPAWN, problem, flush=True)
    group = MPI.COMM_WORLD.Spawn(sys.executable, [__file__, "", "", "later"], maxprocs=2)
    print("sum", group.Merge().allreduce(1), flush=True)
    group.Disconnect()
else:
    MPI.Comm.Get_parent().Merge(True).allreduce(1)
"""


@pytest.mark.parametrize("stage", ["begin", "exit", "meet", "met"])
@pytest.mark.parametrize(("victim", "btl"), [("0", "self,sm"), ("1", "self,tcp")])
def test_a_process_that_ends_before_it_is_up_is_an_error_of_spawn(launch, stage, victim, btl):
    """Whenever that is, the job goes on, and so may the program; nothing is left of the others."""
    (launch.directory / "program.py").write_text(EARLY)
    words = ("-n", 2, "--mca", "btl", btl, sys.executable, "program.py", stage, victim)
    result = launch(*words)
    if stage == "met" and result.code:  # the parents were faster: it was a rank of the job
        assert result.code == 137
        assert "was killed by signal 9" in " ".join(result.err.split())
        assert_gone(launch.environment["OMPY_TEST_TOKEN"])
        return
    assert result.code == 0, result
    lines = result.out.splitlines()
    how = "ended with exit code 3" if stage == "exit" else "was killed by signal 9"
    text = f"rank {victim} of 2 could not be started: {how}"
    assert sum(line.startswith("True") and text in line for line in lines) == 4, result
    assert lines.count("sum 4") == 2
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])


def test_ranks_that_the_job_can_do_without(run):
    """From the first moment, by an info key; a wrong value is an error."""
    first = """
group = start(2, ompy_expendable="true")
try:
    group.recv(source=1)
except MPI.Exception as problem:
    say(problem.Get_error_class() == MPI.ERR_PROC_FAILED)
try:
    start(2, ompy_expendable="perhaps")
except MPI.Exception as problem:
    say(problem.Get_error_class() == MPI.ERR_INFO_VALUE)
"""
    result = run(1, first, "if world.rank:\n    os.kill(os.getpid(), 9)")
    assert (result.code, result.out) == (0, "True\nTrue\n"), result
    assert "the job goes on without it" in result.err


DIES_LAST = """
import os, sys, time
from pathlib import Path
later, spawned = len(sys.argv) > 1, Path("spawned")

def die_when_they_go_on(*given):
    for _ in range(6000):
        if spawned.exists():
            break
        time.sleep(0.01)
    os.kill(os.getpid(), 9)

def armed(*given):
    made = connect(*given)
    calls = [between.exchange_values, die_when_they_go_on]
    between.exchange_values = lambda *given: calls.pop(0)(*given)
    return made

if later and os.environ["OMPI_COMM_WORLD_RANK"] == "0":
    from ompy.mpi.communicators import between
    from ompy.mpi.processes import spawning
    connect, spawning.connect = spawning.connect, armed

from ompy import MPI
if not later:
    info = MPI.Info.Create({"ompy_expendable": "true"})
    group = MPI.COMM_SELF.Spawn(sys.executable, [__file__, "later"], maxprocs=3, info=info)
    spawned.touch()
    for source in range(3):
        try:
            group.recv(source=source)
        except MPI.Exception as problem:
            print(problem.Get_error_class() == MPI.ERR_PROC_FAILED, flush=True)
"""


def test_a_sibling_that_dies_when_the_parents_have_gone_on_does_not_end_the_job(launch):
    """The others are in MPI_Init still: they cannot begin, and the job goes on without them."""
    (launch.directory / "program.py").write_text(DIES_LAST)
    result = launch("-n", 1, "--mca", "btl", "self,tcp", sys.executable, "program.py")
    assert (result.code, result.out) == (0, "True\n" * 3), result
    assert result.err.count("the job goes on without it") == 3, result.err
    assert "MPI_Abort" not in result.err
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])


def test_output_variables_and_the_clock_reach_later_ranks(run):
    first = "group = start(2)\nsay('a')\ngroup.Disconnect()"
    result = run(1, first, "say(os.environ['C'])\nparent.Disconnect()", "--tag-output", "-x", "C=d")
    assert result.code == 0, result
    assert sorted(result.out.splitlines()) == [
        "[1,0]<stdout>:a",
        "[2,0]<stdout>:d",
        "[2,1]<stdout>:d",
    ]
    options = ("--no-deadlock-detection", "--timeout", 2)
    result = run(1, "start(1).recv()", "world.recv()", *options)
    assert result.code == 110, result
    assert "initialized ranks 0, 1" in " ".join(result.err.split())


def test_faults_and_traces_reach_later_ranks(run, tmp_path):
    trace = tmp_path / "trace"
    options = ("--mca", "btl", "self,usnic", "--trace", trace)
    result = run(2, FIRST, LATER, *options, "--fault", "drop:probability=0.2", "--fault-strict")
    assert result.code == 0, result
    assert sorted(result.out.splitlines()) == sorted(TOGETHER)
    assert "faults delivered" in result.err
    assert {path.name for path in trace.iterdir()} >= {f"rank-{rank}.jsonl" for rank in range(5)}
    command = [sys.executable, "-m", "ompy.cli.main", "trace", str(trace)]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert re.search(r" 0 +4 ", shown.stdout), shown.stdout


PORTS = """
half = world.Split(world.rank // 2, world.rank)
port = None
if world.rank == 0:
    port = MPI.Open_port()
    MPI.Publish_name("service", port)
world.Barrier()
if world.rank < 2:
    group = half.Accept(port)
else:
    group = half.Connect(MPI.Lookup_name("service") if half.rank == 0 else None)
say(world.rank, group.remote_size, group.allgather(world.rank))
group.Disconnect()
world.Barrier()
if world.rank == 0:
    MPI.Unpublish_name("service", port)
    MPI.Close_port(port)
world.Barrier()
if world.rank == 3:
    for call in (lambda: MPI.Lookup_name("service"), lambda: MPI.COMM_SELF.Connect("ompy:0:1")):
        try:
            call()
        except MPI.Exception as problem:
            say(problem.Get_error_class() in (MPI.ERR_NAME, MPI.ERR_PORT))
"""


def test_groups_find_each_other_by_a_port(run):
    result = run(4, PORTS, "pass")
    assert (result.code, result.err) == (0, ""), result
    assert sorted(result.out.splitlines()) == sorted(
        [f"{rank} 2 {[2, 3] if rank < 2 else [0, 1]}" for rank in range(4)] + ["True", "True"]
    )


def test_worlds_that_know_nothing_of_each_other_meet_at_a_port(run):
    """Both were spawned apart: neither has been told where the other's ranks are."""
    first = """
port = MPI.Open_port()
groups = [start(2, name) for name in ("accept", "connect")]
for group in groups:
    group.bcast(port, root=MPI.ROOT)
for group in groups:  # it is this process's port, and goes with it
    group.Barrier()
    group.Disconnect()
"""
    later = """
port = parent.bcast(None, root=0)
group = world.Accept(port) if sys.argv[1] == "accept" else world.Connect(port)
both = group.Merge(sys.argv[1] == "connect")
say(sys.argv[1], both.rank, both.allreduce(both.rank))
both.Free()
group.Disconnect()
parent.Barrier()
parent.Disconnect()
"""
    result = run(1, first, later)
    assert (result.code, result.err) == (0, ""), result
    expected = [f"{'accept' if rank < 2 else 'connect'} {rank} 6" for rank in range(4)]
    assert sorted(result.out.splitlines()) == expected


def test_two_processes_join_by_a_socket(run):
    first = """
import socket
if world.rank == 0:
    with socket.create_server(("127.0.0.1", 0)) as server:
        world.send(server.getsockname(), dest=1)
        connection, _ = server.accept()
else:
    connection = socket.create_connection(world.recv(source=0))
with connection:
    group = MPI.Comm.Join(connection.fileno())
    say(world.rank, group.sendrecv(world.rank, dest=0, source=0))
    group.Disconnect()
"""
    result = run(2, first, "pass")
    assert (result.code, sorted(result.out.splitlines())) == (0, ["0 1", "1 0"]), result


SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case "$1" in -l|-p|-o) shift;; esac; shift; done
OMPY_TEST_HOST=$1; export OMPY_TEST_HOST
shift
exec sh -c "$*"
"""


@pytest.fixture
def hosts(run, tmp_path):
    """Runs a program on "other hosts", by a remote shell that stays on this one."""
    shell = tmp_path / "rsh"
    shell.write_text(SHELL)
    shell.chmod(0o755)

    def call(names, first, later, *options, ranks):
        named = ("--mca", "plm_rsh_agent", shell, "--host", names)
        return run(ranks, first, later, *named, *options)

    return call


PLACED = """
for keys in ({}, {"host": "b"}, {"host": "c,a"}):
    group = start(3, **keys)
    both = group.Merge(False)
    total = both.allreduce(1)
    if world.rank == 0:
        say(group.gather(None, root=MPI.ROOT), total)
    else:
        group.gather(None, root=MPI.PROC_NULL)
    group.Disconnect()
"""
PLACED_LATER = """
both = parent.Merge(True)
both.allreduce(1)
parent.gather(where, root=0)
parent.Disconnect()
"""


@pytest.mark.parametrize("radix", [64, 1])
def test_on_several_hosts(hosts, radix):
    """Agents start what is theirs, also below a relay."""
    options = ("--mca", "plm_base_radix", radix)
    result = hosts("a:1,b:1,c:1", PLACED, PLACED_LATER, *options, ranks=3)
    assert (result.code, result.err) == (0, ""), result
    assert result.out.splitlines() == [
        "['a', 'b', 'c'] 6",
        "['b', 'b', 'b'] 6",
        "['c', 'a', 'c'] 6",
    ]


def test_on_hosts_where_no_process_is_yet_or_any_more(hosts):
    first = """
for _ in range(2):
    group = start(2, host="b")
    say(group.gather(None, root=MPI.ROOT))
    group.Disconnect()
    time.sleep(0.5)
"""
    later = "parent.gather(where, root=0)\nparent.Disconnect()"
    result = hosts("a:1,b:2", first, later, "--all-hosts", ranks=1)
    assert (result.code, result.out) == (0, "['b', 'b']\n" * 2), result
    result = hosts("a:1,b:2", first, later, ranks=1)
    assert result.code == 1
    assert "host 'b' is none of this job's, which are a" in " ".join(result.err.split())


def singleton(path, *words):
    """A program that nobody launched."""
    return subprocess.run(
        [sys.executable, path, *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_a_program_that_nobody_launched(program):
    done = singleton(program(FIRST, LATER))
    assert (done.returncode, done.stderr) == (0, ""), done
    expected = [
        "first 0 1 3 True",
        *(f"later {rank} 3 0 {rank} 3 {rank}" for rank in range(3)),
        *(f"sum {rank} 6" for rank in range(4)),
        str(500_000 * 499_999 / 2 + 3 * 500_000),
    ]
    assert sorted(done.stdout.splitlines()) == sorted(expected)


@pytest.mark.parametrize("victim", ["parent", "child"])
def test_what_nobody_launched_fails_as_a_whole(program, victim):
    """The program is killed, or what it has started is: nothing of either is left."""
    later = "say(os.getpid())\ntime.sleep(100)"
    path = program("group = start(2)\nsay('up', os.getpid())\ngroup.recv(source=0)", later)
    process = subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline().split() for _ in range(3)]
    children = [int(line[0]) for line in lines if len(line) == 1]
    os.kill(process.pid if victim == "parent" else children[0], signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode != 0
    assert "job was ended" in " ".join(err.split())
    deadline = time.monotonic() + PATIENCE
    while any(is_running(pid) for pid in children):
        assert time.monotonic() < deadline, "a child is left"
        time.sleep(0.05)


def is_running(pid):
    """Whether there is such a process, and it is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
