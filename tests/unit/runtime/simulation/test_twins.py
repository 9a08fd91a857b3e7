"""Processes that become two: what the second is beside the first."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.runtime.simulation import twins

HUGE = 1 << 21
POLICY = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def huge_bytes() -> int:
    """How much of this process's own memory is in huge pages."""
    found = re.search(r"AnonHugePages:\s+(\d+)", Path("/proc/self/smaps_rollup").read_text())
    assert found is not None
    return int(found[1]) * 1024


@pytest.mark.skipif(
    not POLICY.exists() or "[never]" in POLICY.read_text(), reason="this kernel has no huge pages"
)
def test_pages_are_joined_and_keep_what_is_in_them() -> None:
    memory = mmap.mmap(-1, 4 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pattern = os.urandom(4096)
    for at in range(0, len(memory), 4096):
        memory[at : at + 4096] = pattern
    before = huge_bytes()
    twins.join_pages()
    assert huge_bytes() >= before + HUGE, "some region of four has a whole huge page"
    assert memory[:] == pattern * (len(memory) // 4096)


PROGRAM = """
import os, signal, socket
from ompy.runtime.simulation import twins
from ompy.runtime.simulation.line import FORK, Line

told = []
handler = lambda number, frame: told.append(number)
signal.signal(signal.SIGCHLD, handler)
here, there = socket.socketpair()
own = os.getpid()
if not os.fork():
    there.close()
    here.sendall(FORK)  # once more than Python is asked
    asker = Line(here)
    for _ in range(2):
        end, twin = asker.receive_end()
        line = Line(end)
        print(twin != own, *line.receive(60), flush=True)
    asker.send("enough")
    os._exit(0)
here.close()
asked = Line(there)
twins.make_twin(asked)
if os.getpid() == own:
    assert asked.receive(60) == "enough"
    assert not told, "nobody waits for twins"
else:
    assert signal.getsignal(signal.SIGCHLD) is handler
    child = os.fork()
    if not child:
        os._exit(7)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    asked.send((code, told == [signal.SIGCHLD]))
    os._exit(0)
"""


def test_a_twin_hears_of_its_own_children() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True 7 True\n" * 2
