"""Agents on "other hosts": a remote shell that stays on this one, so all but the network is real.

What a network does to it is in `tests/netns`.
"""

import os
import signal
import sys
import time

import pytest

from tests.support.effort import THOROUGH

from .conftest import assert_gone

pytestmark = pytest.mark.proc
nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")

SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case "$1" in -l|-p|-o) shift;; esac; shift; done
OMPY_TEST_HOST=$1; export OMPY_TEST_HOST
shift
"""
HERE = 'exec sh -c "$*"\n'
MPI = "from ompy import MPI\nc = MPI.COMM_WORLD\n"


@pytest.fixture
def shell(tmp_path):
    """Makes a remote shell with these last lines."""

    def make(last=HERE):
        path = tmp_path / "rsh"
        path.write_text(SHELL + last)
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture
def hosts(launch, shell):
    """Runs Python code on two other hosts with two ranks each."""

    def run(code, *options, last=HERE, start=False, **more):
        arguments = ["--mca", "plm_rsh_agent", shell(last), "--host", "a:2,b:2", *options]
        arguments += [sys.executable, "-c", code]
        return (launch.start if start else launch)(*arguments, **more)

    return run


def test_ranks_of_several_hosts_talk_and_know_where_they_are(hosts, tmp_path):
    code = (
        f"import os\n{MPI}"
        "host = os.environ['OMPY_TEST_HOST']\n"
        "print(c.rank, host, os.environ['OMPI_COMM_WORLD_LOCAL_RANK'], os.getcwd(),"
        " c.allreduce(c.rank), c.Split_type(MPI.COMM_TYPE_SHARED).size)"
    )
    result = hosts(code)
    assert result.code == 0, result
    assert sorted(result.out.splitlines()) == [
        f"{rank} {'ab'[rank // 2]} {rank % 2} {tmp_path} 6 2" for rank in range(4)
    ]


def test_the_key_is_neither_on_a_command_line_nor_in_an_environment(hosts, processes):
    code = (
        "from ompy.runtime.ranks.client import attach\nimport time\n"
        "c = attach(); print(c.job_key.hex(), flush=True); time.sleep(1000)"
    )
    running = hosts(code, "-n", 1, start=True)
    key = running.line()
    assert len(key) == 64
    seen = 0
    for pid in processes():
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                text = file.read()
            seen += b"ompy.runtime.agents.remote_agent" in text
            assert key.encode() not in text
            assert bytes.fromhex(key) not in text
    assert seen, "no agent was looked at"
    running.signal(signal.SIGTERM)
    assert running.end().code == 143


@nightly
def test_login_scripts_may_print(hosts):
    noisy = 'echo "Admit, nothing to see"\n' + HERE
    assert hosts(MPI + "print(c.size)", last=noisy).out == "4\n" * 4


REFUSALS = [
    ("echo go away; exit 3\n", "remote shell ended with exit code 3"),
    ("echo go away; exit 3\n", "it said: go away"),
    ("kill -9 $$\n", "remote shell was killed by signal 9"),
    ("exec sleep 1000\n", "it was not ready within 0.3 s"),
    ("exec yes\n", "no agent was started, only this was said"),
    (
        "exec "
        + sys.executable
        + ' -c "import os; from ompy.runtime.agents import agent_start as g;'
        " from ompy.runtime.connections.control import Kind, encode;"
        " f = dict(version='0.0.1', pid=1, cores=1);"
        ' os.write(1, g.BANNER + encode(Kind.READY, f))"\n',
        "ompy is 0.0.1 on host a and",
    ),
    (
        f"exec {sys.executable} -c 'import os; from ompy.runtime.agents.agent_start import BANNER;"
        ' os.write(1, BANNER + b"x" * 100)\'\n',
        "its agent talks nonsense",
    ),
]


@pytest.mark.parametrize(("last", "text"), REFUSALS if THOROUGH else REFUSALS[1:6:4])
def test_a_host_without_an_agent_is_an_error_before_anything_runs(hosts, tmp_path, last, text):
    last = f'if [ "$OMPY_TEST_HOST" = b ]; then {HERE.strip()}; fi\n{last}'
    options = ["--mca", "plm_base_start_timeout_ms", "300"] if "sleep" in last else []
    result = hosts(f"open({str(tmp_path / 'ran')!r}, 'w')", *options, last=last)
    assert result.code == 1
    assert "the job could not be started: " in result.err
    assert text in result.err
    assert "host a" in result.err
    assert not (tmp_path / "ran").exists()


ENDS = [
    ("c.rank == 3 and os._exit(9)", 9, "Rank 3 ended with exit code 9"),
    ("c.rank == 1 and os.kill(os.getpid(), 11)", 139, "Rank 1 was killed by signal 11"),
    ("c.rank == 2 and c.Abort(5)", 5, "Rank 2 aborted the job with code 5"),
]


@pytest.mark.parametrize(("what", "code", "text"), ENDS if THOROUGH else ENDS[1:2])
def test_exit_codes_and_signals_are_those_of_the_rank(hosts, what, code, text):
    result = hosts(f"import os\n{MPI}{what}\nc.recv()")
    assert result.code == code
    assert text in result.err
    assert f"host        {'a' if code == 139 else 'b'}" in result.err


def test_connections_that_end_with_their_rank_are_no_lost_rails(hosts):
    """The others notice that first, and it says nothing of the network."""
    code = (
        f"import os, time\n{MPI}c.Set_errhandler(MPI.ERRORS_RETURN)\n"
        "c.allreduce(1)\n"
        "if c.rank == 3: time.sleep(0.2); os.kill(os.getpid(), 9)\n"
        "try: c.recv(source=3)\n"
        "except MPI.Exception: pass\n"
        "time.sleep(1000)"
    )
    result = hosts(code)
    assert result.code == 137
    assert "Rank 3 was killed by signal 9" in result.err
    assert "Rails as they were chosen" not in result.err


@nightly
def test_what_cannot_be_executed_there_is_named_with_its_host(launch, shell, tmp_path):
    start = ["--mca", "plm_rsh_agent", shell(), "--host", "a", "-n", 1]
    result = launch(*start, "no-such-program")
    assert result.code == 127
    assert "Rank 0 could not be started: No such file or directory: no-such-program" in result.err
    result = launch(*start, "--wdir", "/no/such/place", "true")
    assert "/no/such/place" in result.err
    assert "host        a" in result.err


def test_ctrl_c_ends_all_hosts(hosts):
    running = hosts("print(1, flush=True)\nimport time; time.sleep(1000)", start=True)
    for _ in range(4):
        running.line()
    running.signal(signal.SIGINT)
    assert running.end().code == 130


@nightly
def test_timeouts_end_all_hosts(hosts):
    assert hosts("import time; time.sleep(1000)", "--timeout", "0.5").code == 110


def test_much_output_and_input(hosts):
    code = "import sys\nfor i in range(20_000): print('x' * 60)\nprint(sys.stdin.read())"
    result = hosts(code, data=b"typed")
    assert result.code == 0
    assert sorted(set(result.out.split())) == ["typed", "x" * 60]
    assert result.out.count("x" * 60) == 80_000


def remote_processes(processes):
    """Guards, agents and shells by name."""
    found = {}
    for pid in processes():
        try:
            with open(f"/proc/{pid}/comm") as file:
                found.setdefault(file.read().strip(), []).append(pid)
        except OSError:
            pass
    return found


KILLED = ["ompy-agent", "ompy-guard", "launcher"]


@pytest.mark.parametrize("name", KILLED if THOROUGH else KILLED[:1])
def test_nothing_stays_whoever_is_killed(launch, hosts, processes, name):
    """A process that has left its session too, which only a guard or an agent can find."""
    code = (
        "import os, subprocess, sys, time\n"
        "subprocess.Popen(['setsid', 'sleep', '1000'])\n"
        "print(1, flush=True); time.sleep(1000)"
    )
    running = hosts(code, start=True)
    for _ in range(4):
        running.line()
    there = remote_processes(processes)
    assert {len(there["ompy-agent"]), len(there["ompy-guard"])} == {2}
    if name == "launcher":
        running.signal(signal.SIGKILL)
    else:
        os.kill(there[name][0], signal.SIGKILL)
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])
    assert running.end().code == (-9 if name == "launcher" else 1)


@nightly
def test_an_agent_that_says_nothing_is_lost_in_two_seconds(hosts, processes):
    code = "import time; print(1, flush=True); time.sleep(1000)"
    running = hosts(code, start=True)
    for _ in range(4):
        running.line()
    time.sleep(0.5)  # its first heartbeat
    (agent, _) = remote_processes(processes)["ompy-agent"]
    began = time.monotonic()
    os.kill(agent, signal.SIGSTOP)
    result = running.end()
    took = time.monotonic() - began
    assert result.code == 1
    assert "Nothing was heard of it for 1.5 s" in result.err
    assert 1.0 < took < 10


def test_an_agent_that_was_ready_and_never_begins(hosts):
    mute = (
        f"exec {sys.executable} -c 'import os, time; from ompy import __version__ as v;"
        " from ompy.runtime.agents.agent_start import BANNER;"
        " from ompy.runtime.connections.control import Kind, encode;"
        " facts = dict(version=v, pid=1, cores=1);"
        " os.write(1, BANNER + encode(Kind.READY, facts)); time.sleep(1000)'\n"
    )
    last = f'if [ "$OMPY_TEST_HOST" = b ]; then {HERE.strip()}; fi\n{mute}'
    patience = ("--mca", "plm_base_start_timeout_ms", "2000")
    result = hosts("import time; time.sleep(1000)", *patience, last=last)
    assert result.code == 1
    assert "host        a" in result.err
    assert "Nothing was heard of it for 2 s" in result.err


@nightly
def test_an_agent_gives_up_a_launcher_that_says_nothing(hosts, processes):
    code = "import time; print(1, flush=True); time.sleep(1000)"
    running = hosts(code, "--mca", "plm_base_launcher_misses", "4", start=True)
    for _ in range(4):
        running.line()
    running.signal(signal.SIGSTOP)
    deadline = time.monotonic() + 10
    while "ompy-agent" in remote_processes(processes):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    running.signal(signal.SIGCONT)
    assert running.end().code == 1


@nightly
def test_ctrl_z_is_no_silence(hosts, processes):
    """Launcher and ranks stop for longer than the agents' patience, and go on."""
    code = (
        "import sys, time\nprint(1, flush=True)\n"
        "end = time.monotonic() + 3\n"
        "while time.monotonic() < end: time.sleep(0.01)\n"
        "print(2)"
    )
    running = hosts(code, "--mca", "plm_base_launcher_misses", "3", start=True)
    for _ in range(4):
        running.line()
    running.signal(signal.SIGTSTP)
    time.sleep(2.5)
    assert len(remote_processes(processes)["ompy-agent"]) == 2
    running.signal(signal.SIGCONT)
    result = running.end()
    assert (result.code, result.out) == (0, "2\n" * 4)
