"""Standard input goes to one rank, as fast as it reads."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
import threading

import pytest

from .conftest import wait_until_asleep

pytestmark = pytest.mark.proc

ECHO = (
    "import os, sys\n"
    "data = sys.stdin.buffer.read()\n"
    "print(os.environ['OMPY_RANK'], len(data), sum(data) % 1000, flush=True)"
)


def said(result):
    return sorted(result.out.splitlines())


def test_the_first_rank_reads_the_others_have_none(launch):
    assert said(launch.python(3, ECHO, data=b"hello")) == ["0 5 532", "1 0 0", "2 0 0"]


def test_another_rank_reads(launch):
    assert said(launch.python(2, ECHO, "--stdin", "1", data=b"hello")) == ["0 0 0", "1 5 532"]


def test_nobody_reads(launch):
    assert said(launch.python(2, ECHO, "--stdin", "none", data=b"hello")) == ["0 0 0", "1 0 0"]


def test_much_input(launch):
    data = os.urandom(20_000_000)
    result = launch.python(1, ECHO, data=data)
    assert result.out == f"0 {len(data)} {sum(data) % 1000}\n"


@pytest.mark.parametrize("size", [0, 3_000_000])
def test_input_from_a_file(launch, tmp_path, size):
    (tmp_path / "in").write_bytes(b"\1" * size)
    with open(tmp_path / "in", "rb") as file:
        result = launch.python(1, ECHO, stdin=file)
    assert result.out == f"0 {size} {size % 1000}\n"


def test_a_rank_that_does_not_read_makes_nobody_wait(launch):
    running = launch.start("-n", 1, "sleep", "0.2", stdin=subprocess.PIPE)
    with contextlib.suppress(BrokenPipeError):
        while True:
            os.write(running.process.stdin.fileno(), b"x" * 100_000)
    assert running.end().code == 0


def test_a_rank_that_does_not_read_makes_nobody_grow(launch, processes):
    running = launch.start("-n", 1, "sh", "-c", "echo up; sleep 1000", stdin=subprocess.PIPE)
    assert running.line() == "up"
    descriptor = running.process.stdin.fileno()
    os.set_blocking(descriptor, False)
    count = 0
    for _ in range(20):
        with contextlib.suppress(BlockingIOError):
            while count < 50_000_000:
                count += os.write(descriptor, b"x" * 60_000)
        wait_until_asleep(processes(), samples=5)
    assert count < 2_000_000
    running.signal(signal.SIGTERM)
    running.process.stdin.close()
    running.process.stdin = None
    assert running.end().code == 143


def test_a_rank_may_stop_reading(launch):
    code = "import os; print(len(os.read(0, 1))); os.close(0)"
    assert launch.python(1, code, data=b"x" * 5_000_000).out == "1\n"


def test_a_conversation(launch):
    running = launch.start_python(
        2, "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)",
        stdin=subprocess.PIPE,
    )  # fmt: skip
    for word in ("one", "two"):
        running.process.stdin.write(f"{word}\n".encode())
        running.process.stdin.flush()
        assert running.line() == word.upper()
    assert running.end(b"three\n").out == "THREE\n"


def test_a_slow_reader_gets_everything(launch):
    code = (
        "import os, time\n"
        "count = 0\n"
        "while data := os.read(0, 40_000):\n"
        "    count += len(data)\n"
        "    time.sleep(0.0005)\n"
        "print(count)"
    )
    assert launch.python(1, code, data=b"x" * 4_000_000).out == "4000000\n"


class Terminal:
    """A terminal with the launcher as leader of its session, in front or in the background."""

    def __init__(self, launch, *arguments, background):
        self.master, slave = pty.openpty()
        pid = os.fork()
        if pid == 0:
            try:
                self._child(launch, slave, arguments, background)
            finally:
                os._exit(99)
        self.pid = pid
        os.close(slave)

    def _child(self, launch, slave, arguments, background):
        os.login_tty(slave)
        program = [sys.executable, "-m", "ompy.cli.run", *map(str, arguments)]
        if not background:
            os.execve(program[0], program, launch.environment)
        job = os.fork()  # as a shell does for `command &`
        if job == 0:
            os.setpgid(0, 0)
            os.execve(program[0], program, launch.environment)
        _, status = os.waitpid(job, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status)
        if stopped:
            os.kill(job, signal.SIGKILL)
        os._exit(98 if stopped else os.waitstatus_to_exitcode(status))

    def text(self):
        """Everything it shows until the end."""
        shown = b""
        try:
            while data := os.read(self.master, 4096):
                shown += data
        except OSError:  # the other side is gone
            pass
        return shown.decode()

    def end(self):
        _, status = os.waitpid(self.pid, 0)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status)


def test_a_terminal_in_front_is_read(launch):
    terminal = Terminal(launch, "-n", 1, "head", "-n", "1", background=False)
    os.write(terminal.master, b"typed\n")
    assert terminal.text().count("typed") == 2, "the echo and the answer"
    assert terminal.end() == 0


def test_a_terminal_in_the_background_is_left_alone(launch):
    terminal = Terminal(launch, "-n", 1, "echo", "hello", background=True)
    os.write(terminal.master, b"typed for somebody else\n")
    assert "hello" in terminal.text()
    assert terminal.end() == 0


def test_interrupt_key(launch):
    terminal = Terminal(launch, "-n", 2, "sh", "-c", "echo up; sleep 1000", background=False)
    shown = b""
    while shown.count(b"up") < 2:
        shown += os.read(terminal.master, 4096)
    os.write(terminal.master, b"\x03")
    reader = threading.Thread(target=terminal.text)
    reader.start()
    assert terminal.end() == 130
    reader.join(10)


def test_a_prompt_of_one_rank_among_several(launch):
    code = "import os; print(input('name? ') if os.environ['OMPY_RANK'] == '0' else 'other')"
    terminal = Terminal(launch, "-n", 2, sys.executable, "-c", code, background=False)
    shown = b""
    while b"name? " not in shown:
        shown += os.read(terminal.master, 4096)
    os.write(terminal.master, b"somebody\n")
    assert "somebody" in terminal.text()
    assert terminal.end() == 0
