"""Surroundings in which something is missing, and an example of every command to run there."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from ompy.cli.main import main

BIN = Path(sys.executable).parent
RING = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.sendrecv(comm.rank, (comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
if comm.rank == 0:
    print("well")
"""
# words of an example of each command of `ompy`; ring.py, trace and recorded are in its directory
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "agent": ("--help",),
    "bench": ("latency --sizes 8 --rounds 1",),
    "build": ("",),
    "completion": ("bash",),
    "conformance": ("btl self",),
    "explain": ("--size 8",),
    "k8s": ("manifest -n 2 --image image python ring.py",),
    "mpiexec": ("--link links",),
    "new": ("coll mine",),
    "ps": ("", "--json"),
    "replay": ("recorded", "recorded --rank 1"),
    "sim": (
        "ring.py",
        "--trace traced --report-rails rails.json ring.py",
        "--seeds 2 --jobs 1 --keep kept ring.py",
    ),
    "top": ("--help",),
    "trace": ("trace", "trace --sequence picture.svg", "trace --chrome picture.json"),
}
OTHERS = (
    "ompy --help",
    "ompy-info --version",
    "ompy-info --all",
    "ompy-info --all --json",
    "ompy-run --help",
    "ompy-run -n 2 PYTHON ring.py",
    "ompy-run -n 2 --trace traced PYTHON ring.py",
    "ompy-run -n 2 --record made --record-data PYTHON ring.py",
)

# take seconds; for the night
LONG = (
    "ompy bench latency --sizes 8 --rounds 1",
    "ompy conformance btl self",
    "ompy sim --trace traced --report-rails rails.json ring.py",
    "ompy sim --seeds 2 --jobs 1 --keep kept ring.py",
    "ompy explain --size 8",
    "ompy replay recorded",
    "ompy replay recorded --rank 1",
    "ompy-run -n 2 --trace traced PYTHON ring.py",
    "ompy-run -n 2 --record made --record-data PYTHON ring.py",
)


def commands() -> list[str]:
    """Examples of every command there is, of those that click knows by its registry."""
    assert set(main.commands) == set(EXAMPLES), "a command has no example"
    known = [f"ompy {name} {words}".rstrip() for name, all_ in EXAMPLES.items() for words in all_]
    return [*known, *OTHERS]


def argv(command: str) -> list[str]:
    """The words to start it by."""
    words = [sys.executable if word == "PYTHON" else word for word in command.split()]
    return [str(BIN / words[0]), *words[1:]]


class Condition(NamedTuple):
    """What is missing.

    Attributes:
        name: of it.
        prepare: called in the child before it becomes the command.
        variables: of the environment; None takes one away.
        fatal: the command need not succeed.
    """

    name: str
    prepare: Callable[[], object] = lambda: None
    variables: Mapping[str, str | None] = {}
    fatal: bool = False


def _limit(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, most))


def _close(number: int) -> Callable[[], None]:
    return lambda: os.close(number)


def _open(number: int, path: str, flags: int) -> Callable[[], None]:
    def act() -> None:
        found = os.open(path, flags)
        os.dup2(found, number)
        os.close(found)

    return act


def _no_reader(number: int) -> Callable[[], None]:
    def act() -> None:
        reading, writing = os.pipe()
        os.dup2(writing, number)
        os.close(writing)
        os.close(reading)

    return act


def _leave() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


MIB = 1 << 20
CONDITIONS = (
    Condition("HOME unset", variables={"HOME": None}),
    Condition("HOME missing", variables={"HOME": "/nonexistent/home"}),
    Condition("HOME is a file", variables={"HOME": "/etc/passwd"}),
    Condition("HOME cannot be written", variables={"HOME": "/proc/sys"}),
    Condition("HOME is relative", variables={"HOME": "nowhere"}),
    Condition("TMPDIR missing", variables={"TMPDIR": "/nonexistent/tmp"}),
    Condition("TMPDIR cannot be written", variables={"TMPDIR": "/proc/sys"}),
    Condition("TMPDIR is a file", variables={"TMPDIR": "/etc/passwd"}),
    Condition("LC_ALL C", variables={"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}),
    Condition("ascii", variables={"PYTHONIOENCODING": "ascii"}),
    Condition("no locale there is", variables={"LC_ALL": "xx_YY.klingon"}),
    Condition("dumb terminal", variables={"TERM": "dumb"}),
    Condition("no terminal", variables={"TERM": None, "COLUMNS": None, "LINES": None}),
    Condition("COLUMNS 0", variables={"COLUMNS": "0"}),
    Condition("COLUMNS 1", variables={"COLUMNS": "1"}),
    Condition("COLUMNS no number", variables={"COLUMNS": "wide"}),
    Condition("no PATH", variables={"PATH": None}),
    Condition("stdin closed", _close(0)),
    Condition("stdout closed", _close(1)),
    Condition("stderr closed", _close(2)),
    Condition("all closed", lambda: os.closerange(0, 3)),
    Condition("stdout full", _open(1, "/dev/full", os.O_WRONLY), fatal=True),
    Condition("stderr full", _open(2, "/dev/full", os.O_WRONLY)),
    Condition("stdout cannot be written", _open(1, "/dev/null", os.O_RDONLY), fatal=True),
    Condition("nobody reads stdout", _no_reader(1), fatal=True),
    Condition("nobody reads stderr", _no_reader(2)),
    Condition("the working directory is gone", _leave, fatal=True),
    Condition("SIGHUP ignored", lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)),
    Condition("SIGPIPE not ignored", lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)),
    Condition("SIGCHLD ignored", lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)),
    *(
        Condition(f"{most} descriptors", _limit(resource.RLIMIT_NOFILE, most), fatal=True)
        for most in (4, 6, 8, 12, 16, 24)
    ),
    *(
        Condition(f"{most} MiB of memory", _limit(resource.RLIMIT_AS, most * MIB), fatal=True)
        for most in (24, 40, 60, 90, 130, 200)
    ),
    *(
        Condition(f"files of {size} bytes", _limit(resource.RLIMIT_FSIZE, size), fatal=True)
        for size in (0, 100)
    ),
)
