"""GASNet between real processes: its tests, its tutorial, how a job ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.effort import THOROUGH
from tests.support.gasnet_programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "gasnet.md"
CONDUITS = {
    f"{conduit}, {messages}": (conduit, messages)
    for conduit in ("gemini", "aries")
    for messages in ("smsg", "mailboxes")
}
FEW = (("large_transfers", "gemini, smsg"), ("full_bisection", "aries, mailboxes"))

pytestmark = pytest.mark.proc


def launch(
    ranks: int,
    *program: str,
    conduit: str = "aries",
    messages: str = "smsg",
    pshm: bool = True,
    options: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), "--mca", "conduit", conduit]
    for name, value in (("messages", messages), ("pshm", str(int(pshm)))):
        command += ["--mca", f"conduit_{conduit}_{name}", value]
    command += options
    path = os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    return subprocess.run(
        [*command, sys.executable, *program],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
    )


def run(name: str, ranks: int, **how: Any) -> subprocess.CompletedProcess[str]:
    return launch(ranks, "-m", "tests.support.gasnet_rank", name, **how)


@pytest.mark.parametrize(
    ("program", "conduit"),
    [(program, conduit) for program in PROGRAMS for conduit in CONDUITS] if THOROUGH else FEW,
)
def test_ported(program: str, conduit: str) -> None:
    ranks = PROGRAMS[program].ranks
    name, messages = CONDUITS[conduit]
    done = run(program, ranks, conduit=name, messages=messages, pshm=False)
    assert done.returncode == 0, done.stderr
    said = [f"rank {rank} of {ranks} did {program}" for rank in range(ranks)]
    assert sorted(done.stdout.splitlines()) == said


NEW = (
    "atomic_counters",
    "random_collectives",
    "atomic_operations",
    "every_call",
    "team_barriers",
)
FEW_NEW = (("atomic_counters", "aries, smsg"), ("random_collectives", "gemini, mailboxes"))


@pytest.mark.parametrize(
    ("program", "conduit"),
    [(program, conduit) for program in NEW for conduit in CONDUITS] if THOROUGH else FEW_NEW,
)
def test_atomics_and_collectives(program: str, conduit: str) -> None:
    name, messages = CONDUITS[conduit]
    done = run(program, 3, conduit=name, messages=messages, pshm=name == "gemini")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("program", ["threads", "coroutines", "beside_mpi", "modes_of_waiting"])
def test_with_others(program: str) -> None:
    done = run(program, 2, pshm=program == "threads")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"rank {rank} of 2 did {program}" for rank in (0, 1)
    ]


@pytest.mark.parametrize(
    ("program", "code", "pshm"),
    [
        ("one_exits", 7, False),
        ("handler_exits", 9, True),
        ("exits_before_attach", 5, True),
        ("one_fails", 1, False),
        ("one_is_killed", 137, True),
    ],
)
def test_ends(program: str, code: int, pshm: bool) -> None:
    done = run(program, 3, pshm=pshm)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert ("LookupError: nobody catches this" in done.stderr) is (program == "one_fails")


def test_an_end_of_pythons_own() -> None:
    """`sys.exit` with a code ends the job at once: who waits is told that code, not 0."""
    done = run("one_leaves", 3)
    assert done.returncode == 5, done.stderr
    # who is slow to say it is ended by the launcher meanwhile, as in any job that fails
    assert set(done.stdout.splitlines()) <= {f"rank {rank} was ended with 5" for rank in (0, 2)}


def test_one_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ended, said by number, and that is no success."""
    monkeypatch.setenv("GASNET_EXITTIMEOUT", "1")
    done = run("one_is_silent", 2)
    assert done.returncode == 1, done.stderr
    said = " ".join(done.stderr.split())  # it is wrapped
    assert "has ended GASNet with code 0" in said
    assert "Nothing has come from: 1" in said


def test_all_exit() -> None:
    """What a rank says before its own exit is seen, whoever came first."""
    done = run("all_exit", 4)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} is through" for rank in range(4)]
    assert done.stderr == ""


STUCK = """
import time
from ompy import gasnet

gasnet.init()
take, = gasnet.attach([print], gasnet.PAGE_SIZE)
if gasnet.mynode() == 0:
    gasnet.barrier(7, 0)
elif gasnet.mynode() == 1:
    gasnet.am_request_short(2, take)
    gasnet.block_until(lambda: False)
else:
    time.sleep(60)
"""


def test_a_timeout_says_what_every_rank_waits_for() -> None:
    command = [sys.executable, "-m", "ompy.cli.run", "-n", "3", "--timeout", "3"]
    program = [sys.executable, "-c", STUCK]
    done = subprocess.run([*command, *program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 110
    said = re.split(r"ompy-run:   rank (?=\d is at )", done.stderr)[1:]
    assert [text[0] for text in said] == ["0", "1", "2"]
    assert "is at <string>:8 in <module>" in said[0]
    assert "waiting for barrier 1 of GASNet, where rank 1 is missing" in said[0]
    assert "the condition of a block_until" in said[1]
    assert "rank 2 to give 1 credits of requests back" in said[1]
    assert "not complete" not in said[2]


def test_faults_between_neighbours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The NIC within a host is struck between real processes too; GASNet's own files show more."""
    monkeypatch.setenv("GASNET_TRACEFILE", str(tmp_path / "trace.%"))
    monkeypatch.setenv("GASNET_TRACEMASK", "P")
    monkeypatch.setenv("GASNET_STATSFILE", "stdout")
    where = "probability=0.2,rail=aries_0"
    fault = f"delay:delay=1ms,{where};work_error:error=EAGAIN,{where}"
    done = run("values", 2, pshm=False, options=("--fault", fault, "--fault-strict"))
    assert done.returncode == 0, done.stderr
    assert "no wire for a fault to strike" not in done.stderr
    assert re.search(r"^1> \(P\) PUT: \d+ times, ", done.stdout, re.M)
    for rank in range(2):
        lines = (tmp_path / f"trace.{rank}").read_text().splitlines()
        assert lines
        assert all(re.match(rf"{rank} \d+\.\d{{6}}> \(P\) PUT: peer=", line) for line in lines)


def test_bench() -> None:
    """Each row has its figure, and says which way its bytes went."""
    command = [sys.executable, "-m", "ompy.cli.main", "bench", "gasnet", "--rounds", "1", "--json"]
    command += ["--sizes", "8,8200", "--mca", "conduit", "gemini"]
    command += ["--mca", "conduit_gemini_pshm", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    ways = {(row["operation"], row["local"], row["bytes"]): row["way"] for row in rows}
    assert ways["put flood", "out", 8] == "FMA"
    assert ways["put flood", "out", 8200] == "BTE register"
    assert ways["get flood", "in", 8200] == "BTE segment"
    assert ways["get", "out", 8] == "FMA immediate"
    assert all(row["seconds"][0] > 0 for row in rows)


def tutorials() -> list[tuple[str, list[str]]]:
    """The programs of the page, each with what it prints."""
    block = r"```python\n(.*?)```\n((?:\n|    [^\n]*\n)*)"
    blocks = re.findall(block, TUTORIAL.read_text(), re.DOTALL)
    return [
        (text, [line[4:] for line in said.splitlines() if line and "$" not in line])
        for text, said in blocks
    ]


@pytest.mark.parametrize(("number", "ranks"), [(0, 2), (1, 3), (2, 3), (3, 3)])
def test_the_tutorial(number: int, ranks: int, tmp_path: Path) -> None:
    text, expected = tutorials()[number]
    path = tmp_path / "program.py"
    path.write_text(text)
    done = launch(ranks, str(path))
    assert done.returncode == 0, done.stderr
    assert expected
    assert sorted(done.stdout.splitlines()) == sorted(expected)


def test_the_tutorial_has_no_other_programs() -> None:
    assert len(tutorials()) == 4


PIECES = """
from ompy import gasnet
gasnet.init()
gasnet.attach(segment_size=4 * gasnet.PAGE_SIZE)
peer = 1 - gasnet.mynode()
data = bytes(n % 251 for n in range(9000))
gasnet.putv_bulk(peer, [(6000, 8000), (10, 1000)], [data[:5], data[5:]])
gasnet.wait_syncnb(gasnet.puts_nb_bulk(peer, 3000, (7,), data, (3,), (2, 100)))
gasnet.barrier()
memory = gasnet.segment().memory
assert bytes(memory[6000:14000]) + bytes(memory[10:1010]) == data
assert all(memory[3000 + 7 * n : 3002 + 7 * n] == data[3 * n : 3 * n + 2] for n in range(100))
room = [bytearray(4000), bytearray(5000)]
gasnet.getv_nbi_bulk(room, peer, [(6000, 8000), (10, 1000)])
gasnet.wait_syncnbi_all()
assert b"".join(room) == data
gasnet.barrier()
"""


@pytest.mark.parametrize("pshm", [False, True])
def test_several_pieces_in_one_call(pshm: bool) -> None:
    done = launch(2, "-c", PIECES, pshm=pshm)
    assert done.returncode == 0, done.stderr
