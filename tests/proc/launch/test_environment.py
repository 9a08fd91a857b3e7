"""What ranks find: variables, working directory, descriptors, signals."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from .conftest import PATIENCE, PATIENT, state

pytestmark = pytest.mark.proc

SHOW = "import json, os; print(json.dumps(dict(os.environ)))"


def environments(result):
    assert result.code == 0, result
    found = [json.loads(line) for line in result.out.splitlines()]
    return sorted(found, key=lambda environment: int(environment["OMPY_RANK"]))


def test_identity(launch):
    first, second = environments(launch.python(2, SHOW))
    assert [e["OMPI_COMM_WORLD_RANK"] for e in (first, second)] == ["0", "1"]
    assert second["OMPI_COMM_WORLD_SIZE"] == second["OMPI_COMM_WORLD_LOCAL_SIZE"] == "2"
    assert int(second["OMPI_UNIVERSE_SIZE"]) >= 2
    assert second["OMPI_COMMAND"] == sys.executable
    assert "OMPY_AGENT_FD" in second


def test_several_programs(launch):
    result = launch(
        "-n", 1, "-x", "WHO=a", sys.executable, "-c", SHOW,
        ":", "-n", 2, "-x", "WHO=b", sys.executable, "-c", SHOW, "arg",
    )  # fmt: skip
    found = environments(result)
    assert [e["WHO"] for e in found] == ["a", "b", "b"]
    assert {e["OMPI_FIRST_RANKS"] for e in found} == {"0 1"}
    assert {e["OMPI_APP_CTX_NUM_PROCS"] for e in found} == {"1 2"}
    assert {e["OMPI_NUM_APP_CTX"] for e in found} == {"2"}
    assert found[2]["OMPI_ARGV"].endswith(" arg")


def test_exports(launch):
    env = {"HERE": "there"}
    result = launch.python(1, SHOW, "-x", "HERE", "-x", "NEW=a=b", "-x", "HOME=/x", env=env)
    (found,) = environments(result)
    assert (found["HERE"], found["NEW"], found["HOME"]) == ("there", "a=b", "/x")


def test_exports_of_files_and_parameters(launch, tmp_path):
    (tmp_path / "tune.conf").write_text("-x 'A=of the file' -x B=file -mca btl self,tcp\n-x HERE\n")
    options = ("--tune", "tune.conf", "-x", "B=option")
    (found,) = environments(launch.python(1, SHOW, *options, env={"HERE": "there"}))
    assert (found["A"], found["B"], found["HERE"]) == ("of the file", "option", "there")
    listed = ("--mca", "mca_base_env_list", "A=1; B;C=", "--tune", "tune.conf")
    result = launch.python(1, SHOW, *listed, env={"HERE": "there"})
    (found,) = environments(result)
    assert (found["A"], found["B"], found["C"]) == ("1", "file", "")
    assert result.err == (
        "ompy-run: warning: --mca mca_base_env_list A=1; B;C=: there is no variable B in the "
        "environment\n"
    )


def test_lists_of_exports_and_options_do_not_mix(launch):
    result = launch.python(1, SHOW, "-x", "A=1", "--mca", "mca_base_env_list", "B=1")
    assert result.code == 2
    assert "--mca mca_base_env_list B=1 and -x A=1: variables are exported either by" in result.err


@pytest.mark.parametrize("option", ["--wdir", "-wdir", "--wd"])
def test_working_directory(launch, tmp_path, option):
    (tmp_path / "a b").mkdir()
    code = "import os; print(os.getcwd(), os.environ['PWD'])"
    result = launch.python(1, code, option, "a b")
    assert result.out == f"{tmp_path / 'a b'} {tmp_path / 'a b'}\n"


def test_the_drop_in_comes_first_unless_unwanted(launch):
    (found,) = environments(launch.python(1, SHOW, env={"PYTHONPATH": "/mine"}))
    first, second = found["PYTHONPATH"].split(os.pathsep)
    assert first.endswith("/ompy/dropin")
    assert second == "/mine"
    (found,) = environments(launch.python(1, SHOW, "--no-mpi4py", env={"PYTHONPATH": "/mine"}))
    assert found["PYTHONPATH"] == "/mine"


def test_python_is_ours_when_no_environment_is_active(launch):
    env = {"PATH": "/usr/bin:/bin", "VIRTUAL_ENV": ""}
    del launch.environment["PATH"]
    launch.environment.pop("VIRTUAL_ENV", None)
    result = launch("-n", 1, "python", "-c", "import sys; print(sys.prefix)", env={"PATH": "/bin"})
    assert result.out == sys.prefix + "\n"
    assert launch("-n", 1, "no-such-python", env=env).code == 127


def test_descriptors_of_ranks(launch):
    """Standard streams and the registration socket; nothing of the agent or of other ranks."""
    code = (
        "import os\n"
        "print(sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in range(30)\n"
        "  if os.path.exists(f'/proc/self/fd/{n}') or os.path.islink(f'/proc/self/fd/{n}')))"
    )
    result = launch("-n", 2, "--stdin", "none", sys.executable, "-I", "-c", code)
    assert set(result.out.splitlines()) == {"['/dev/null', 'pipe', 'pipe', 'socket']"}


def test_limits_and_signals_are_the_users(launch):
    code = (
        "import resource, signal\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
        "ignored = open('/proc/self/status').read().split('SigIgn:')[1].split()[0]\n"
        "print(int(ignored, 16) >> (signal.SIGHUP - 1) & 1)\n"
        "print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)\n"
    )
    command = f'ulimit -Sn 200; exec {sys.executable} -m ompy.cli.run -n 1 {sys.executable} -c "$0"'
    done = subprocess.run(
        ["sh", "-c", command, code], capture_output=True, env=launch.environment, check=True
    )
    assert done.stdout.decode().split() == ["200", "0", "True"]


def test_pipes_break_as_usual(launch):
    result = launch("-n", 1, "sh", "-c", "yes | head -n 1; echo done")
    assert (result.out, result.err) == ("y\ndone\n", "")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_user_signals_are_forwarded(launch, number):
    code = (
        "import signal, time\n"
        "def told(*_): print('got', flush=True); raise SystemExit\n"  # before it sleeps, too
        f"signal.signal({int(number)}, told)\n"
        "print('up', flush=True); time.sleep(1000)"
    )
    running = launch.start_python(2, code)
    assert [running.line(), running.line()] == ["up", "up"]
    running.signal(number)
    assert [running.line(), running.line()] == ["got", "got"]
    assert running.end().code == 0


def test_stop_and_continue(launch, processes):
    code = (
        "import os, signal, sys\n"
        "def resumed(*_): print('resumed', flush=True); os._exit(0)\n"
        "signal.signal(signal.SIGCONT, resumed)\n"
        "print('up', flush=True)\n"
        "while True: signal.pause()"
    )
    # a group of its own below us: the kernel stops no orphaned group, as ours may be
    running = launch.start_python(2, code, process_group=0)
    assert [running.line(), running.line()] == ["up", "up"]
    ranks = [pid for pid, command in processes().items() if "ompy.cli.run" not in command]
    running.signal(signal.SIGTSTP)
    wait_for(lambda: all(state(pid) == "T" for pid in [*ranks, running.pid]))
    running.signal(signal.SIGCONT)
    result = running.end()
    assert (result.code, result.out) == (0, "resumed\nresumed\n")


def test_a_stopped_job_is_ended_in_good_order(launch, processes):
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('cleaned', flush=True), os._exit(0)))\n"
        "print('up', flush=True)\n"
        "while True: signal.pause()"
    )
    running = launch.start_python(2, code, *PATIENT)
    assert [running.line(), running.line()] == ["up", "up"]
    for pid, command in processes().items():
        if "ompy.cli.run" not in command:
            os.kill(pid, signal.SIGSTOP)
    running.signal(signal.SIGTERM)
    result = running.end()
    assert (result.code, result.out) == (143, "cleaned\ncleaned\n")


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
