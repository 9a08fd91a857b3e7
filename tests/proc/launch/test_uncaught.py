"""An uncaught exception on one rank ends the job at once, with its traceback."""

import sys

import pytest

pytestmark = pytest.mark.proc

HEAD = """
import atexit, os, sys, threading, time
from ompy.runtime.ranks.client import attach
from ompy.runtime.diagnosis.uncaught import install_excepthook, line_buffer_output
c = attach()
c.commit()
def finalize():
    c.fence()
    c.finalized()
atexit.register(finalize)
install_excepthook(c)
line_buffer_output()
"""
FAIL = "def guilty(): raise LookupError('the reason')\n"


def test_it_ends_the_job_at_once_with_its_traceback(launch):
    code = HEAD + FAIL + "if c.rank == 1: guilty()\ntime.sleep(1000)"
    result = launch.python(3, code)
    assert result.code == 1
    assert result.err.count("Traceback") == 1
    assert "in guilty\n" in result.err
    assert result.err.count("\nLookupError: the reason\n") == 1
    text = " ".join(result.err.split())
    assert "Rank 1 aborted the job with code 1: uncaught LookupError: the reason" in text


def test_a_long_traceback_is_complete(launch):
    code = HEAD + "if c.rank == 1: raise ValueError('x' * 200_000 + '-end')\ntime.sleep(1000)"
    result = launch.python(2, code, "--tag-output")
    assert result.code == 1
    assert "[1,1]<stderr>:ValueError: " + "x" * 200_000 + "-end\n" in result.err


def test_what_was_printed_before_is_not_lost(launch):
    code = HEAD + FAIL + "print('before', end=''); guilty()"
    result = launch.python(1, code)
    assert (result.code, result.out) == (1, "before")


def test_the_users_hook_runs_first(launch):
    code = "import sys\nsys.excepthook = lambda *a: print('mine', a[1])\n" + HEAD + FAIL
    result = launch.python(1, code + "guilty()")
    assert (result.code, result.out) == (1, "mine the reason\n")


def test_a_later_hook_that_prints_what_ours_says_is_not_cut_off(launch):
    later = """
import io
ours = sys.excepthook
def prefixed(*args):
    stderr, sys.stderr = sys.stderr, io.StringIO()
    ours(*args)
    said, sys.stderr = sys.stderr.getvalue(), stderr
    print("prefix:", said, file=sys.stderr)
sys.excepthook = prefixed
"""
    code = HEAD + later + FAIL + "guilty() if c.rank else time.sleep(1000)"
    result = launch.python(2, code)
    assert result.code == 1
    assert "prefix: Traceback" in result.err
    assert "uncaught LookupError" in result.err


def test_a_hook_that_fails_does_not_save_the_job(launch):
    code = "import sys\nsys.excepthook = lambda *a: 1 / 0\n" + HEAD + FAIL
    result = launch.python(2, code + "guilty() if c.rank else time.sleep(1000)")
    assert result.code == 1
    assert "uncaught LookupError" in result.err


def test_a_hook_set_later_does_not_save_the_job(launch):
    """The exit hooks that wait for other ranks are not reached."""
    code = HEAD + FAIL + "sys.excepthook = lambda *a: print('mine', a[1])\n"
    result = launch.python(2, code + "guilty() if c.rank else time.sleep(1000)")
    assert (result.code, result.out) == (1, "mine the reason\n")
    assert "Rank 1 aborted" in result.err


def test_an_exception_without_text(launch):
    code = HEAD + ("class Odd(Exception):\n    def __str__(self): raise RuntimeError\nraise Odd")
    result = launch.python(1, code)
    assert result.code == 1
    assert "uncaught Odd" in result.err


def test_an_ordinary_end_is_one(launch):
    result = launch.python(2, HEAD + "print('end', c.rank)")
    assert (result.code, sorted(result.out.splitlines())) == (0, ["end 0", "end 1"])


@pytest.mark.parametrize(("end", "code"), [("sys.exit(5)", 5), ("raise KeyboardInterrupt", 130)])
def test_other_ends_are_left_alone(launch, end, code):
    result = launch.python(1, HEAD + end)
    assert result.code == code
    assert "aborted" not in result.err


def test_a_handled_exception_is_none(launch):
    result = launch.python(1, HEAD + FAIL + "try: guilty()\nexcept LookupError: print('fine')")
    assert (result.code, result.out, result.err) == (0, "fine\n", "")


def test_an_exception_in_a_forked_child_is_the_childs(launch):
    code = HEAD + (
        "if os.fork() == 0:\n"
        "    raise ValueError('in the child')\n"
        "_, status = os.wait()\n"
        "print('child', os.waitstatus_to_exitcode(status))"
    )
    result = launch.python(1, code)
    assert (result.code, result.out) == (0, "child 1\n")
    assert "in the child" in result.err


def test_output_is_written_line_by_line(launch):
    running = launch.start_python(1, HEAD + "print('line'); sys.stdin.read()", stdin=-1)
    assert running.line() == "line"
    assert running.end(b"").code == 0


def test_a_standard_output_that_is_none(launch):
    code = HEAD.replace("line_buffer", "sys.stdout = None\nline_buffer", 1)
    code = HEAD.replace("\nline_buffer_output()", "\nsys.stdout = None; line_buffer_output()")
    assert launch("-n", 1, sys.executable, "-c", code).code == 0


@pytest.mark.parametrize("call", ["comm.barrier()", "comm.send('a word', 1 - comm.rank)"])
def test_an_error_of_mpi_is_told_at_the_line_of_the_program(launch, call):
    """Frames of ompy say nothing to who reads it, and nothing has happened that a report has."""
    code = f"from mpi4py import MPI\ncomm = MPI.COMM_WORLD\n{call}"
    words = [sys.executable, "-c", code]
    result = launch("-n", 2, "--mca", "btl", "self", "--mca", "coll", "^sm", *words)
    assert result.code == 1
    shown = result.err.partition("-----")[0]
    assert "cannot reach" in shown
    assert "/ompy/" not in shown
    assert "has no message" not in shown
    assert shown.count("Traceback") == shown.count("  File ") <= 2
