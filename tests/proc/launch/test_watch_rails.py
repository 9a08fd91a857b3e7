"""Watching rails: a cable pulled under a real job, the terminal, lines, the record."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pytest
from ompy.net.real import host_interfaces
from ompy.runtime.rails.rail_record import replay
from ompy.runtime.rails.rail_watch import State

from .conftest import OMPY_RUN

pytestmark = pytest.mark.proc
ROOT = Path(__file__).resolve().parents[3]
COLUMNS, LINES = 100, 30
PATIENCE = 60  # s; far beyond what anything here takes


class Screen:
    """As much of a terminal as is used here, and what scrolled out of it."""

    def __init__(self):
        self.lines = [""]
        self.row = self.column = 0

    def feed(self, text):
        for part in re.findall(r"\x1b\[[\d;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", text):
            if part == "\r":
                self.column = 0
            elif part == "\n":
                self.row += 1
                if self.row == len(self.lines):
                    self.lines.append("")
            elif part.startswith("\x1b"):
                self.control(part)
            else:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + part + line[self.column + len(part) :]
                self.column += len(part)
                table = self.lines[self.row].startswith(" ")
                assert not table or self.column <= COLUMNS, f"{part!r} would be broken"

    def control(self, code):
        if code.endswith("A"):
            self.row -= int(code[2:-1])
            assert self.row >= max(0, len(self.lines) - LINES), "above the screen"
        elif code == "\x1b[J":
            self.lines[self.row :] = [self.lines[self.row][: self.column]]
        else:
            assert code.endswith("m"), f"{code!r} would stay behind"


class Terminal:
    """A job of a user who sits at a terminal."""

    def __init__(self, launch, *words):
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.said = b""
        self.process = subprocess.Popen(
            [*OMPY_RUN, *map(str, words)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**launch.environment, "TERM": "xterm", "PYTHONUTF8": "1"},
            cwd=launch.directory,
            start_new_session=True,
            preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
        )

    def read_until(self, done):
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, self.said.decode()
            if select.select([self.master], [], [], 0.05)[0]:
                self.said += os.read(self.master, 1 << 16)

    def press(self, key):
        os.write(self.master, key)

    def end(self):
        """Exit code and the screen, when all is over."""
        self.read_until(lambda: self.process.poll() is not None)
        while select.select([self.master], [], [], 0.1)[0]:
            self.said += os.read(self.master, 1 << 16)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is not what it was"
        screen = Screen()
        screen.feed(self.said.decode())
        return self.process.returncode, screen.lines

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(launch):
    made = []

    def start(*words):
        made.append(Terminal(launch, *words))
        return made[-1]

    yield start
    for one in made:
        one.close()


def two_rails() -> list[str]:
    """Names of two interfaces of this host over which it reaches itself, loopback first."""
    found = {}
    for interface in sorted(host_interfaces(), key=lambda one: not one.loopback):
        with socket.socket() as probe:
            try:
                probe.bind((interface.address, 0))
            except OSError:
                continue
        found.setdefault(interface.name, interface.address)
    return list(found)[:2]


def shown_command(rails: list[str]) -> list[str]:
    """What docs/pull-the-cable.md tells to try, with this host's interfaces, and sooner over."""
    text = (ROOT / "docs" / "pull-the-cable.md").read_text()
    (command,) = re.findall(r"^    ompy-run (.* python examples/pull_the_cable.py) 8$", text, re.M)
    for shown, here in (
        ("lo,eth0", ",".join(rails)),
        ("rail=eth0", f"rail={rails[1]}"),
        ("message=100", "message=8"),
        ("lasts=2s", "lasts=500ms"),
        (" python examples/", f" {sys.executable} {ROOT}/examples/"),
    ):
        assert shown in command
        command = command.replace(shown, here)
    return command.split()


def test_a_cable_is_pulled_and_plugged_in_again(terminal, launch) -> None:
    """In the middle of a message, with the table on the terminal and the record in a file."""
    rails = two_rails()
    if len(rails) < 2:
        pytest.skip("this host has one interface, and nothing else leads to it")
    words = shown_command(rails)
    fault = words[words.index("--fault") + 1]
    for seconds in (2, 10, 30):  # on a machine that is very busy it takes longer to heal
        job = terminal("--record-rails", "rails.jsonl", "--fault-strict", *words, seconds)
        code, lines = job.end()
        text = "\n".join(lines)
        assert code == 0, text
        (struck,) = re.findall(rf"(\d+)  {re.escape(fault)}", text)
        assert int(struck) >= 1
        assert text.count("blocks arrived as they were sent") == 1
        ((broke, healed),) = re.findall(r"rails broke (\d+) times, (\d+) healed", text)
        if broke == healed:
            break
    assert broke == healed, text
    heads = [place for place, line in enumerate(lines) if line.startswith(" rails after ")]
    assert len(heads) == 1, text
    assert {line.split()[0] for line in lines[heads[0] + 1 : heads[0] + 3]} == set(rails)
    assert "up, healed" in "".join(lines[heads[0] :])
    with (launch.directory / "rails.jsonl").open() as file:
        *_, (_, watch) = replay(file)
    assert all(rail.sent > 1_000_000 for rail in watch.rails.values())
    states = [change.state for change in watch.changes]
    assert states[0] is State.BROKEN
    assert states[-1] is State.UP
    assert all(change.rail.startswith(rails[1]) for change in watch.changes)


CHATTER = """
import sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
for number in range(60):
    world.Sendrecv(bytearray(1000), 1 - world.rank, 0, bytearray(1000), 1 - world.rank, 0)
    if world.rank == number % 2:
        print("line", number, file=(sys.stdout, sys.stderr)[number % 3 == 0])
    sys.stdout.flush()
    time.sleep(0.01)
if sys.argv[1:]:
    sys.stdout.write("and no end of line")
    sys.stdout.flush()
    world.Barrier()
    while True:
        world.Sendrecv(bytearray(9), 1 - world.rank, 0, bytearray(9), 1 - world.rank, 0)
        time.sleep(0.01)
"""


def test_what_ranks_write_stays_readable_and_ctrl_c_leaves_the_terminal(terminal) -> None:
    words = ("--mca", "btl", "self,tcp", "--watch-rails", sys.executable, "-c", CHATTER, "stay")
    job = terminal("-n", 2, *words)
    job.read_until(lambda: b"line 59" in job.said and b"line 58" in job.said)
    before = len(job.said)
    job.read_until(lambda: job.said.count(b"rails after", before) >= 2)  # it is drawn again
    job.press(b"\x03")
    code, lines = job.end()
    assert code == 128 + signal.SIGINT, lines
    said = [int(line.split()[1]) for line in lines if line.startswith("line ")]
    assert sorted(said) == list(range(60)), "each stands there once"
    assert sum(line.startswith(" rails after ") for line in lines) == 1
    cut_off = [line for line in lines if "no end of line" in line]
    assert all(line.strip() == "and no end of line" for line in cut_off), cut_off


def test_the_launcher_ends_what_a_rank_left_of_a_line(terminal) -> None:
    """Also if the rank wrote to the other stream, as both are one terminal."""
    job = terminal("-n", 2, "--mca", "btl", "self,tcp", sys.executable, "-c", CHATTER, "stay")
    job.read_until(lambda: b"no end of line" in job.said)
    job.press(b"\x03")
    _, lines = job.end()
    cut_off = [line for line in lines if "no end of line" in line]
    assert cut_off
    assert not [line for line in cut_off if "ompy-run" in line]


FAILING_OVER = """
import time
from mpi4py import MPI
from ompy.frameworks.paths.rail_events import RailEvent
from ompy.mpi.processes.life import current

world = MPI.COMM_WORLD
world.Sendrecv(bytearray(99), 1 - world.rank, 0, bytearray(99), 1 - world.rank, 0)
process = current().process
context = process.context
if world.rank == 1:  # what a PML that fails over does
    (rail,) = process.rails(context.procs[0])
    event = RailEvent(1, 0, rail, "the cable was pulled", context.engine.now())
    context.rail_events.append(event)
    context.tell_rail(event)
    time.sleep(0.5)  # several samples
    event.healed = context.engine.now() + 1
    context.tell_rail(event)
    time.sleep(0.5)
world.Barrier()
"""


def test_without_a_terminal_there_are_lines(launch, tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FAILING_OVER)
    ended = launch("-n", 2, "--mca", "btl", "self,tcp", "--watch-rails", sys.executable, program)
    assert ended.code == 0, ended
    assert "\x1b" not in ended.err
    said = [line for line in ended.err.splitlines() if " rail lo " in line]
    assert [line.partition(" is ")[2] for line in said] == [
        "broken: the cable was pulled",
        "up again",
    ]


def test_nobody_counts_where_nobody_watches(launch) -> None:
    code = """
import sys
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
print([name for name in ("ompy.net.meter", "ompy.runtime.rails.rail_samples", "rich")
       if name in sys.modules])
"""
    assert launch.python(2, code, "--mca", "btl", "self,tcp").out == "[]\n" * 2
    watched = launch.python(2, code, "--mca", "btl", "self,sm", "--watch-rails")
    assert "no rail to watch" in watched.err
    assert watched.out == "['ompy.net.meter', 'ompy.runtime.rails.rail_samples']\n" * 2, watched
