"""One process is wrong in a call that makes a communicator of two groups, or starts processes.

As `tests/sim/coll/test_leaders.py`, with processes, and of what only a launcher does.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.proc

PROGRAM = """
import sys
from contextlib import suppress
from mpi4py import MPI
world = MPI.COMM_WORLD
rank, size = world.rank, world.size
side = rank % 2
group = world.Split(side, rank)
members = [world.Get_group().Incl(range(which, size, 2)) for which in range(2)]
here = (sys.executable, ["-c", "pass"])
null = MPI.INFO_NULL
code = "from mpi4py import MPI; MPI.Comm.Get_parent().Disconnect()"

def connect(leader=0, peer=world, remote=1 - side, tag=5):
    group.Create_intercomm(leader, peer, remote, tag).Free()

def connect_groups(
    mine=members[side], leader=0, other=members[1 - side], remote=0, tag="t", info=null
):
    MPI.Intercomm.Create_from_groups(mine, leader, other, remote, tag, info).Free()

def together(group=world.Get_group(), tag="all", info=null, handler=None):
    MPI.Intracomm.Create_from_group(group, tag, info, handler).Free()

def some(group=world.Get_group(), tag=4):
    world.Create_group(group, tag).Free()

def spawn(command=sys.executable, args=("-c", code), count=1, info=null, root=0):
    world.Spawn(command, args, count, info, root).Disconnect()

def spawn_many(commands=(sys.executable,), args=(("-c", code),), counts=(1,), info=null, root=0):
    world.Spawn_multiple(commands, args, counts, info, root).Disconnect()

def meet(info=null, root=0, **name):
    port = world.bcast(MPI.Open_port() if rank == 0 else None)
    call = group.Connect if side else group.Accept
    try:
        call(name.get("name", port), info, root).Disconnect()
    except Exception:
        # the other group is not to wait: nobody could know that these were to meet
        with suppress(MPI.Exception):
            MPI.Close_port(port)
        raise

def merge(high=bool(side)):
    between = group.Create_intercomm(0, world, 1 - side, 6)
    try:
        between.Merge(high).Free()
    finally:
        between.Free()

class Odd:
    def __bool__(self):
        raise ValueError("neither true nor false")

CALL, MISTAKES, WRONG = GIVEN
for turn, mistake in enumerate([*MISTAKES, {}]):
    try:
        CALL(**mistake) if rank == WRONG else CALL()
        said = "ok"
    except MPI.Exception as problem:
        said = f"MPI {problem}"
    except (TypeError, ValueError, OverflowError) as problem:
        said = f"{type(problem).__name__} {problem}"
    assert world.allreduce(1) == size
    said = " ".join(said.split())
    sys.stdout.write(f"{turn} {rank} {said}\\n")
    sys.stdout.flush()
"""

# arguments of each call that are wrong
MISTAKES = {
    "connect": ["leader=99", "peer=None", "peer=3", "remote=77", "remote='x'", "tag=-1"],
    "connect_groups": [
        "mine=3, other=4",
        "leader=55",
        "other=None",
        "remote=-1",
        "tag=4",
        "info=3",
    ],
    "together": ["group=3", "tag=3", "tag=None", "group=MPI.GROUP_NULL", "info=4", "handler=5"],
    "some": ["group=3", "group=MPI.GROUP_NULL", "tag=-4", "tag='x'", "tag=None"],
    "spawn": [
        "command=5",
        "command=''",
        "args=7",
        "count=0",
        "count='x'",
        "count=None",
        "info=3",
        "info=MPI.Info.Create({'env': 'no variable'})",
        "info=MPI.Info.Create({'hostfile': 'no file'})",
        "root=77",
        "root='x'",
        "root=-1",
    ],
    "spawn_many": [
        "commands=5",
        "commands='x'",
        "commands=()",
        "args=(1, 2)",
        "counts=(1, 2)",
        "counts=('x',)",
        "info=3",
        "info=(3,)",
        "root=77",
        "root=None",
    ],
    "meet": ["name=3", "name='x'", "name=None", "info=3", "root=88", "root='x'", "root=-5"],
    "merge": ["high=Odd()"],
}


def run(call: str, mistakes: list[str], wrong: int) -> list[list[str]]:
    """What each rank says of each turn: those with a mistake, and one without."""
    words = ", ".join(f"dict({mistake})" for mistake in mistakes)
    text = PROGRAM.replace("GIVEN", f"({call}, [{words}], {wrong})")
    command = [sys.executable, "-m", "ompy.cli.run", "-n", "4", sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [[""] * 4 for _ in range(len(mistakes) + 1)]
    for line in done.stdout.splitlines():
        turn, rank, said = line.split(" ", 2)
        found[int(turn)][int(rank)] = said
    return found


@pytest.mark.parametrize("call", MISTAKES)
@pytest.mark.parametrize("wrong", range(2))
def test_nobody_waits_for_ever(call: str, wrong: int) -> None:
    *turns, right = run(call, ["", *MISTAKES[call]], wrong)
    assert turns[0] == right == ["ok"] * 4
    for mistake, said in zip(MISTAKES[call], turns[1:], strict=True):
        for rank, each in enumerate(said):
            assert rank == wrong or each == "ok" or each.startswith("MPI "), (mistake, said)
        if wrong == 0:  # the root, and a leader: what it gives counts
            assert "ok" not in said, (mistake, said)
