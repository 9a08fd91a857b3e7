"""Agents that start agents: five "hosts" on this one, by a remote shell that stays here.

What a network does to a tree is in `tests/netns`.
"""

import os
import signal
import sys
import time

import pytest

from tests.support.effort import THOROUGH

from .conftest import assert_gone
from .test_remote import HERE, SHELL, remote_processes

pytestmark = pytest.mark.proc
nightly = pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")

FIVE = "a:1,b:1,c:1,d:1,e:1"
# who has started the agent of a rank: the names in the environment of all above it
ABOVE = 'OMPY_TEST_WAY="$OMPY_TEST_WAY/$OMPY_TEST_HOST"; export OMPY_TEST_WAY\n'
WAITING = "import time; print(1, flush=True); time.sleep(1000)"


@pytest.fixture
def tree(launch, tmp_path):
    """Runs Python code on five other hosts, with so many agents at most started by each."""
    path = tmp_path / "rsh"

    def run(radix, code, *options, last=HERE, start=False, **more):
        path.write_text(SHELL + ABOVE + last)
        path.chmod(0o755)
        arguments = ["--mca", "plm_rsh_agent", path, "--mca", "plm_base_radix", radix]
        arguments += ["--host", FIVE, *options, sys.executable, "-c", code]
        return (launch.start if start else launch)(*arguments, **more)

    return run


WAYS = {
    1: ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b/c/d/e"],
    2: ["/a", "/b", "/a/c", "/a/d", "/b/e"],
    64: ["/a", "/b", "/c", "/d", "/e"],
}


@pytest.mark.parametrize("radix", WAYS if THOROUGH else [2])
def test_ranks_of_a_tree_talk_and_their_agents_were_started_by_each_other(tree, radix):
    code = (
        "import os\nfrom ompy import MPI\nc = MPI.COMM_WORLD\n"
        "print(c.rank, c.allreduce(c.rank), os.environ['OMPY_TEST_WAY'])"
    )
    result = tree(radix, code)
    assert result.code == 0, result
    wanted = [f"{rank} 10 {way}" for rank, way in enumerate(WAYS[radix])]
    assert sorted(result.out.splitlines()) == wanted


@nightly
@pytest.mark.parametrize("radix", [1, 2])
def test_output_and_input_pass_through_and_one_reader_is_not_drowned(tree, radix):
    """More than all windows together, so credits have to come back down the tree."""
    code = "import sys\nfor i in range(60_000): print('x' * 60)\nprint(len(sys.stdin.read()))"
    result = tree(radix, code, "--stdin", 4, data=b"y" * 2_000_000)
    assert result.code == 0, result
    assert result.out.count("x" * 60) == 300_000
    assert sorted(set(result.out.split())) == ["0", "2000000", "x" * 60]


ENDS = [
    ("os._exit(9)", 9, "Rank 4 ended with exit code 9"),
    ("os.kill(os.getpid(), 11)", 139, "Rank 4 was killed by signal 11"),
    ("c.Abort(5)", 5, "Rank 4 aborted the job with code 5"),
]


@pytest.mark.parametrize(("what", "code", "text"), ENDS if THOROUGH else ENDS[1:2])
def test_exits_at_the_far_end_are_the_ranks_own(tree, what, code, text):
    program = (
        f"import os\nfrom ompy import MPI\nc = MPI.COMM_WORLD\nc.rank == 4 and {what}\nc.recv()"
    )
    result = tree(1, program)
    assert result.code == code
    assert text in result.err
    assert "host        e" in result.err


@nightly
def test_signals_pass_down(tree):
    code = (
        "import signal, time\n"
        "def told(*_): print('usr1', flush=True); raise SystemExit\n"
        "signal.signal(signal.SIGUSR1, told)\nprint(1, flush=True)\ntime.sleep(1000)"
    )
    running = tree(2, code, start=True)
    for _ in range(5):
        running.line()
    running.signal(signal.SIGUSR1)
    result = running.end()
    assert (result.code, result.out) == (0, "usr1\n" * 5)


@pytest.mark.parametrize("missing", ["b", "e"] if THOROUGH else ["e"])
def test_a_host_that_cannot_be_reached_is_an_error_before_anything_runs(tree, tmp_path, missing):
    last = f'if [ "$OMPY_TEST_HOST" = {missing} ]; then exit 3; fi\n{HERE}'
    result = tree(1, f"open({str(tmp_path / 'ran')!r}, 'w')", last=last)
    assert result.code == 1
    assert f"no agent on host {missing}: the remote shell ended with exit code 3" in result.err
    assert "was to start it, as plm_base_radix has it" in result.err
    assert not (tmp_path / "ran").exists()


@nightly
def test_one_at_a_time(tree, tmp_path):
    """No remote shell is begun before the last has brought its agent."""
    log = tmp_path / "log"
    last = f'echo begin >> {log}; sleep 0.3; exec sh -c "echo ready >> {log}; $*"\n'
    assert tree(0, "pass", "--mca", "plm_base_num_concurrent", 1, last=last).code == 0
    assert log.read_text() == "begin\nready\n" * 5


@nightly
def test_a_host_that_is_late_is_named_though_another_was_to_start_it(tree):
    last = f'if [ "$OMPY_TEST_HOST" = d ]; then exec sleep 1000; fi\n{HERE}'
    # so long that the others are ready on a busy machine: with 3 s, at a load of 30, c was late too
    result = tree(2, "pass", "--mca", "plm_base_start_timeout_ms", "15000", last=last)
    assert result.code == 1
    assert "no agent on host d: it was not ready within 15 s" in result.err


INNER = ["ompy-relay", "ompy-agent", "ompy-guard", "launcher"]


@pytest.mark.parametrize("name", INNER if THOROUGH else INNER[:1])
@pytest.mark.parametrize("radix", [1, 2] if THOROUGH else [1])
def test_nothing_stays_whoever_is_killed_in_a_tree(launch, tree, processes, name, radix):
    code = f"import os, subprocess\nsubprocess.Popen(['setsid', 'sleep', '1000'])\n{WAITING}"
    running = tree(radix, code, start=True)
    for _ in range(5):
        running.line()
    there = remote_processes(processes)
    assert len(there["ompy-agent"]) == len(there["ompy-guard"]) == 5
    assert len(there["ompy-relay"]) == {1: 4, 2: 2}[radix]
    if name == "launcher":
        running.signal(signal.SIGKILL)
    else:
        os.kill(there[name][-1], signal.SIGKILL)
    result = running.end()
    assert_gone(launch.environment["OMPY_TEST_TOKEN"])
    assert result.code == (-9 if name == "launcher" else 1)
    if name != "launcher":
        assert "looks after the ranks of a host is gone" in result.err


@nightly
def test_a_relay_that_says_nothing_is_lost_in_two_seconds_with_all_below(tree, processes):
    """By its parent in the tree, and its children end by themselves when they hear nothing."""
    running = tree(1, WAITING, start=True)
    for _ in range(5):
        running.line()
    time.sleep(0.5)  # the first heartbeats
    began = time.monotonic()
    victim = max(remote_processes(processes)["ompy-relay"])  # the last that was started
    os.kill(victim, signal.SIGSTOP)
    result = running.end()
    assert result.code == 1
    assert time.monotonic() - began < 60  # arbitrary: a busy machine took 15, the ranks take 1000
    assert "Nothing was heard of it for 1.5 s" in result.err
    assert "with it     e" in result.err


@nightly
def test_ctrl_z_is_no_silence_in_a_tree(tree, processes):
    code = (
        "import time\nprint(1, flush=True)\nend = time.monotonic() + 3\n"
        "while time.monotonic() < end: time.sleep(0.01)\nprint(2)"
    )
    running = tree(1, code, "--mca", "plm_base_launcher_misses", "3", start=True)
    for _ in range(5):
        running.line()
    running.signal(signal.SIGTSTP)
    time.sleep(2.5)
    assert len(remote_processes(processes)["ompy-relay"]) == 4
    running.signal(signal.SIGCONT)
    result = running.end()
    assert (result.code, result.out) == (0, "2\n" * 5)


@nightly
@pytest.mark.parametrize("where", ["launcher", "relay"])
def test_an_agent_killed_while_others_start_is_known_at_once(tree, processes, where):
    """The launcher's own, or one that is ready: nobody waits for the last host then."""
    host = os.uname().nodename if where == "launcher" else "b"
    last = f'if [ "$OMPY_TEST_HOST" = e ]; then exec sleep 1000; fi\n{HERE}'
    hosts = ("--host", f"{os.uname().nodename}:1") if where == "launcher" else ()
    running = tree(1 if where == "relay" else 0, "pass", *hosts, last=last, start=True)
    name, count = ("ompy-agent", 5) if where == "launcher" else ("ompy-relay", 4)
    deadline = time.monotonic() + 20
    while len(found := remote_processes(processes).get(name, ())) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.5)  # they are ready
    began = time.monotonic()
    os.kill(min(found) if where == "launcher" else sorted(found)[1], signal.SIGKILL)
    result = running.end()
    assert result.code == 1
    assert f"no agent on host {host}" in result.err
    assert time.monotonic() - began < 5
