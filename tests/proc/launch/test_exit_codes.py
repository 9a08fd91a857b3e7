"""The exit code of a job, row by row of reference openmpi.md 2.6, with real processes."""

import re
import signal
import sys
import time

import pytest

from tests.support.effort import THOROUGH

from .conftest import PATIENT

pytestmark = pytest.mark.proc

ATTACH = (
    "import os, sys, time, signal\nfrom ompy.runtime.ranks.client import attach\nc = attach()\n"
)
RULE = "-" * 74
FOREVER = "time.sleep(1000)"


def blocks(result):
    """What stands between rules on standard error."""
    lines = result.err.splitlines()
    assert lines.count(RULE) % 2 == 0, result
    return lines.count(RULE) // 2


def test_all_well_without_mpi(launch):
    result = launch("-n", 3, "true")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_all_well_with_mpi(launch):
    result = launch.python(3, ATTACH + "c.commit(); c.fence(); c.finalized()")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_exit_code_of_the_rank_that_failed(launch):
    code = ATTACH + f"sys.exit(7) if c.rank == 1 else {FOREVER}"
    result = launch.python(3, code)
    assert result.code == 7
    assert blocks(result) == 1
    assert "Rank 1 ended with exit code 7" in result.err
    assert "process     " in result.err


def test_exit_code_after_finalizing(launch):
    code = ATTACH + "c.commit(); c.fence(); c.finalized(); sys.exit(c.rank * 5)"
    assert launch.python(2, code).code == 5


# with bfo it waited in MPI_Finalize for those that waited for it
@pytest.mark.parametrize(
    ("btl", "pml"),
    [("self,tcp", "bfo"), *([("self,sm", "ob1"), ("self,tcp", "ob1")] if THOROUGH else [])],
)
def test_who_waits_for_a_rank_that_fails_is_no_cause(launch, btl, pml):
    """The rank that fails finalizes as it ends, which those that wait for it hear first."""
    program = (
        "import sys\nfrom mpi4py import MPI\nc = MPI.COMM_WORLD\n"
        "c.sendrecv(0, 1 - c.rank, source=1 - c.rank)\n"
        "sys.exit(7) if c.rank == 1 else c.recv(source=1)"
    )
    for _ in range(3):
        settings = ("--mca", "btl", btl, "--mca", "pml", pml)
        result = launch("-n", 2, *settings, sys.executable, "-c", program)
        assert result.code == 7, result
        assert "Rank 1 ended with exit code 7" in result.err


def test_first_failure_wins(launch):
    code = (
        ATTACH
        + "signal.signal(signal.SIGTERM, lambda *_: os._exit(9))\n"
        + "c.commit(); c.fence()\n"
        + f"sys.exit(4) if c.rank == 2 else {FOREVER}"
    )
    result = launch.python(3, code)
    assert result.code == 4
    assert blocks(result) == 1
    assert "Rank 2 " in result.err


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_signal(launch, number):
    code = ATTACH + f"os.kill(os.getpid(), {int(number)}) if c.rank == 1 else {FOREVER}"
    result = launch.python(2, code)
    assert result.code == 128 + number
    assert f"Rank 1 was killed by signal {int(number)} ({number.name}" in result.err
    assert blocks(result) == 1


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (6, 6), (300, 44), (-1, 255)])
def test_abort(launch, code, expected):
    program = ATTACH + f"c.abort({code}, 'no more') if c.rank == 1 else {FOREVER}"
    result = launch.python(2, program)
    assert result.code == expected
    assert f"Rank 1 aborted the job with code {code}: no more" in result.err
    assert blocks(result) == 1


@pytest.mark.parametrize(
    ("call", "headline"),
    [
        ("comm.Abort(7)", "Rank 1 aborted the job with code 7.\n"),
        (
            "MPI.COMM_SELF.Abort(7)",
            "Rank 1 aborted the job with code 7: called Abort(7) of",
        ),
    ],
)
def test_the_box_of_an_abort_says_it_once(launch, call, headline):
    head = "from ompy import MPI\ncomm = MPI.COMM_WORLD\n"
    result = launch.python(2, f"{head}{call} if comm.rank == 1 else comm.barrier()")
    assert result.code == 7
    assert headline in result.err


def test_abort_writes_what_was_printed(launch):
    result = launch.python(1, ATTACH + "print('last words', end=''); c.abort(1, 'x')")
    assert result.out == "last words"


def test_abort_from_a_thread_while_the_main_thread_waits(launch):
    code = (
        ATTACH
        + "import threading\n"
        + "if c.rank == 0:\n"
        + "    threading.Timer(0.1, c.abort, (3, 'from a thread')).start()\n"
        + "c.commit(); c.lookup(1)\n"
        + FOREVER
    )
    code = code.replace("c.commit(); ", "") + "\n"
    result = launch.python(2, code)
    assert result.code == 3
    assert "from a thread" in result.err


def test_end_without_init_while_others_called_it(launch):
    code = ATTACH + f"c.rank and (c.commit(), {FOREVER})"
    result = launch.python(2, code)
    assert result.code == 1
    assert "Rank 0 ended without MPI_Init or gasnet.init, while other" in result.err
    assert blocks(result) == 1


def test_a_program_without_mpi_beside_one_with(launch):
    mpi = ATTACH + f"c.commit(); {FOREVER}"
    result = launch("-n", 1, "true", ":", "-n", 1, sys.executable, "-c", mpi)
    assert result.code == 1
    assert "Rank 0 ended without MPI_Init or gasnet.init" in result.err


def test_end_without_finalize(launch):
    code = ATTACH + f"c.commit(); c.fence(); c.rank == 1 or {FOREVER}"
    result = launch.python(2, code)
    assert result.code == 1
    assert "Rank 1 ended after MPI_Init or gasnet.init, without" in result.err


def test_finalize_does_not_wait_for_others(launch, tmp_path):
    """Rank 1 goes on only when it sees that rank 0 is through."""
    code = (
        "import pathlib, time\n"
        "from ompy import MPI\n"
        f"sign = pathlib.Path({str(tmp_path / 'through')!r})\n"
        "if MPI.COMM_WORLD.rank == 0: MPI.Finalize(); sign.touch()\n"
        "while not sign.exists(): time.sleep(0.01)\n"
    )
    result = launch.python(2, code)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_quiet_says_nothing(launch):
    result = launch.python(2, ATTACH + "c.commit()", "--quiet")
    assert (result.code, result.err) == (1, "")


@pytest.mark.parametrize("how", ["option", "variable"])
def test_timeout(launch, how):
    for seconds in ("0.4", "4", "40"):  # until the ranks have had the time to begin
        options = ["--timeout", seconds] if how == "option" else []
        env = {} if how == "option" else {"MPIEXEC_TIMEOUT": seconds}
        result = launch.python(2, ATTACH + f"c.commit(); {FOREVER}", *options, env=env)
        assert result.code == 110
        assert f"longer than {seconds} s" in result.err
        assert blocks(result) == 1
        if "initialized ranks 0, 1" in result.err:
            break
    assert "initialized ranks 0, 1" in result.err


def test_timeout_that_is_not_reached(launch):
    assert launch("--timeout", 20, "true").code == 0


def test_a_rank_that_ignores_sigterm_is_killed(launch):
    code = (
        ATTACH
        + "signal.signal(signal.SIGTERM, signal.SIG_IGN); c.commit(); c.fence()\n"
        + f"sys.exit(3) if c.rank == 0 else {FOREVER}"
    )
    assert launch.python(2, code).code == 3


def test_a_rank_may_clean_up_on_sigterm(launch):
    code = (
        ATTACH
        + "signal.signal(signal.SIGTERM, lambda *_: (print('cleaned', flush=True), os._exit(0)))\n"
        + "c.commit(); c.fence()\n"
        + f"sys.exit(3) if c.rank == 0 else {FOREVER}"
    )
    result = launch.python(2, code, *PATIENT)
    assert (result.code, result.out) == (3, "cleaned\n")


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_the_launcher_is_told_to_end(launch, number, expected):
    running = launch.start_python(2, "import time; print('up', flush=True); time.sleep(1000)")
    assert [running.line(), running.line()] == ["up", "up"]
    running.signal(number)
    result = running.end()
    assert result.code == expected
    assert f"ended by {number.name} to ompy-run" in result.err


def test_a_second_interrupt_waits_for_nothing(launch):
    code = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('no', flush=True))\n"
        "print('up', flush=True)\n"
        "while True: time.sleep(1000)"
    )
    running = launch.start_python(1, code, "--mca", "plm_base_kill_grace_ms", 600_000)
    assert running.line() == "up"
    running.signal(signal.SIGINT)
    assert running.line() == "no"
    running.signal(signal.SIGINT)
    assert running.end().code == 130  # or its patience ends


def test_an_interrupt_says_where_the_ranks_are(launch):
    program = (
        "from mpi4py import MPI\n"
        "import time\n"
        "comm = MPI.COMM_WORLD\n"
        "print('up', flush=True)\n"
        "if comm.rank < 3: comm.recv(source=3, tag=7)\n"
        "time.sleep(1000)"
    )
    expected = [
        "ompy-run:   ranks 0-2 are at <string>:5 in <module>",
        "ompy-run:   rank 3 is at <string>:6 in <module>",
    ]
    for pause in (0.5, 5, 30):  # until they are where they will stay
        running = launch.start_python(4, program)
        assert [running.line() for _ in range(4)] == ["up"] * 4
        time.sleep(pause)
        running.signal(signal.SIGINT)
        result = running.end()
        assert result.code == 130
        lines = result.err.splitlines()
        told = [line for line in lines if re.match(r"ompy-run:   ranks? .* (is|are) at ", line)]
        if told == expected:
            break
    assert told == expected
    assert "ended by SIGINT to ompy-run" in result.err


def test_an_interrupt_waits_no_longer_for_a_rank_that_says_nothing(launch):
    program = (
        "from mpi4py import MPI\n"
        "import os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN + 9})\n"
        "print('up', flush=True)\n"
        "os.read(os.pipe()[0], 1)"
    )
    running = launch.start_python(1, program)
    assert running.line() == "up"
    running.signal(signal.SIGINT)
    result = running.end()
    assert result.code == 130
    assert "ompy-run:   rank 0 has not said where" in result.err


def test_ignored_signals_stay_ignored(launch):
    """As under `nohup`."""
    running = launch.start_python(
        1,
        "print('up', flush=True); print('bye:', input())",
        stdin=-1,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert running.line() == "up"
    running.signal(signal.SIGHUP)
    result = running.end(b"x\n")
    assert (result.code, result.out) == (0, "bye: x\n")


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [("#!/no/such/interpreter\n", 0o755, 127), ("\0\0", 0o755, 126), ("#!/bin/sh\n", 0o644, 126)],
)
def test_programs_that_cannot_be_executed(launch, tmp_path, content, mode, expected):
    program = tmp_path / "prog"
    program.write_text(content)
    program.chmod(mode)
    result = launch("-n", 2, "./prog")
    assert result.code == expected
    assert "prog" in result.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["--no-such-option", "true"], 2),
        (["-n", "0", "true"], 2),
        (["-n", "1", "no-such-program"], 127),
        (["--wdir", "/no/such/directory", "true"], 2),
        (["--mca", "btl_no_such_parameter", "1", "true"], 2),
        (["--mca", "plm", "no-such-component", "true"], 2),
        (["--nooversubscribe", "-n", "100000", "true"], 2),
    ],
)
def test_bad_command_lines_start_nothing(launch, arguments, code):
    result = launch(*arguments)
    assert result.code == code
    assert result.out == ""
    assert result.err.startswith("ompy-run: error: ")
    assert "Traceback" not in result.err


def test_do_not_launch(launch):
    result = launch("-n", 2, "--display-map", "--do-not-launch", "sh", "-c", "echo started")
    assert result.code == 0
    assert "JOB MAP" in result.out
    assert result.out.count("Process rank:") == 2
    assert "started" not in result.out


def test_version(launch):
    assert launch("-V").out.startswith("ompy-run (ompy) ")


LOST = ATTACH + "c.commit(); os.kill(os.getpid(), 9)"


def test_an_mpi_process_dies_below_a_wrapper_that_stays(launch):
    result = launch("-n", 2, "sh", "-c", f'"{sys.executable}" -c "{LOST}"; sleep 1000')
    assert result.code == 1
    text = " ".join(result.err.split())
    assert "went without MPI_Finalize, while the program that started it goes on" in text


def test_an_mpi_process_dies_below_a_wrapper_that_hides_it(launch):
    result = launch("-n", 1, "sh", "-c", f'"{sys.executable}" -c "{LOST}"; true')
    assert result.code == 1
    assert "without MPI_Finalize" in result.err


def test_the_cause_is_reported_not_the_consequence(launch):
    """Rank 1 crashes; rank 0 notices by the broken connection and aborts."""
    code = ATTACH + (
        "import socket\n"
        "if c.rank == 1:\n"
        "    s = socket.create_server(('127.0.0.1', 0))\n"
        "    c.publish('port', str(s.getsockname()[1]).encode()); c.commit()\n"
        "    connection, _ = s.accept(); connection.recv(1)\n"
        "    os.kill(os.getpid(), signal.SIGSEGV)\n"
        "c.commit()\n"
        "s = socket.create_connection(('127.0.0.1', int(c.lookup(1)['port'])))\n"
        "s.send(b'x')\n"
        "try: s.recv(1)\n"
        "finally: c.abort(75, 'rank 1 has gone')\n"
    )
    for _ in range(4):
        result = launch.python(2, code)
        assert result.code == 128 + signal.SIGSEGV, result
