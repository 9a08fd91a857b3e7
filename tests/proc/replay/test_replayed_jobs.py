"""`ompy-run --record` and `ompy replay` on real ranks: what was told is told again."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.recorded_programs import ACTS, BEGIN, END

pytestmark = pytest.mark.proc
BIN: Final = Path(sys.executable).parent
PATIENCE: Final = 120  # s; arbitrary, far beyond what any program takes
RETRIES: Final = 10
DEADLOCK: Final = 4  # exit code of `ompy-run`
DIVERGED: Final = 6
USAGE: Final = 2
CHOSEN: Final = (
    "any tag, too", "some of them", "tested", "looked for", "probed, taken and received later",
    "cancelled, or not", "the time", "collectives under way", "between two groups", "too long",
    "never received", "in parts", "partition by partition", "threads that receive",
    "threads that look", "threads that send to one place", "a thread that polls until it is told",
    "met at a port",
)  # fmt: skip
WINDOWS: Final = (
    "who had the lock", "a window that is tested", "who was first at a counter",
    "accumulated under fences", "who replaced it last", "started and posted",
    "a flag that another one sets",
)  # fmt: skip
# what a rank alone cannot do
SHARING: Final = """\
from mpi4py import MPI
window = MPI.Win.Allocate_shared(8, 8)
window.Fence()
window.Free()
"""
# who is late is not the program's to know: a recording says who came first
RACE: Final = """\
import os, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
if comm.rank == int(os.environ["LATE"]):
    time.sleep(0.5)
if comm.rank == 0:
    first = comm.recv(source=MPI.ANY_SOURCE)
    comm.recv(source=3 - first)
    print("first", first)
    if os.environ.get("ODD"):
        comm.iprobe()
    assert first == 2
else:
    comm.send(comm.rank, dest=0)
"""
KILLED: Final = """\
import os
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    print("told", comm.recv(source=MPI.ANY_SOURCE))
    os.kill(os.getpid(), 9)
comm.send(comm.rank, dest=0)
comm.recv(source=MPI.ANY_SOURCE)
"""


# what a rank says hangs on the environment; then each waits for the other
STANDS: Final = """\
import os
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.send(os.environ.get("WORD", "one"), dest=1)
else:
    comm.recv(source=0)
comm.recv(source=MPI.ANY_SOURCE)
"""
WORLD: Final = """\
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    first = comm.recv(source=MPI.ANY_SOURCE)
    raise SystemExit(f"{first} came first")
comm.send(comm.rank, dest=0)
"""


FAILS = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 0:
    comm.recv(source=MPI.ANY_SOURCE)
    comm.recv(source=1)
elif comm.rank == 1:
    comm.send(1, dest=0)
"""


def run(folder: Path, *words: str, said: str = "", **variables: str) -> tuple[int, str, str]:
    """Exit code, what was printed and what was told of it."""
    done = subprocess.run(
        [str(BIN / words[0]), *words[1:]], capture_output=True, text=True, cwd=folder, input=said,
        timeout=PATIENCE, check=False, env={**os.environ, "LATE": "0", **variables},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def record(folder: Path, program: str, *options: str, **variables: str) -> tuple[int, str, str]:
    """A recording of three ranks in `recording`."""
    (folder / "program.py").write_text(program)
    words = ["-n", "3", "--record", "recording", *options, sys.executable, "program.py"]
    return run(folder, "ompy-run", *words, **variables)


def test_a_receive_that_failed_fails_again(tmp_path: Path) -> None:
    code, _, errors = record(tmp_path, FAILS, "--record-data")
    assert code == DEADLOCK, errors
    code, _, errors = run(tmp_path, "ompy", "replay", "recording")
    assert code == DEADLOCK, errors
    assert "MPI_ERR_PROC_FAILED" in errors
    code, _, errors = run(tmp_path, "ompy", "replay", "recording", "--rank", "0")
    assert code == DEADLOCK, errors
    assert "ends at program.py:6, in a wait for a message that never came: it failed" in errors


@pytest.mark.nightly
def test_whatever_ranks_were_told_they_are_told_again(tmp_path: Path) -> None:
    acts = [
        f"turn, count, root = {turn}, {(8, 70_000)[turn % 2]}, {turn % 3}\n{ACTS[name]}"
        for turn, name in enumerate(CHOSEN, 1)
    ]
    code, told, errors = record(tmp_path, "\n".join([BEGIN, *acts, END]), "--record-data")
    assert code == 0, errors
    lines = sorted(told.splitlines())
    assert len(lines) == 3
    code, again, errors = run(tmp_path, "ompy", "replay", "recording")
    assert (code, sorted(again.splitlines())) == (0, lines), errors
    for rank, line in enumerate(lines):
        code, alone, errors = run(tmp_path, "ompy", "replay", "recording", "--rank", str(rank))
        assert (code, alone) == (0, line + "\n"), errors


def test_a_race_is_lost_again_and_looked_at_alone(tmp_path: Path) -> None:
    code, told, errors = record(tmp_path, RACE, "--record-data", LATE="2")
    assert (code, told) == (1, "first 1\n"), errors
    code, told, errors = run(tmp_path, "ompy", "replay", "recording", LATE="1")
    assert (code, told) == (1, "first 1\n"), errors
    assert "AssertionError" in errors
    code, told, _ = run(tmp_path, "ompy", "replay", "recording", "--events", "--rank", "0")
    assert code == 0
    assert told.endswith("program.py:13 its end by AssertionError\n"), "nobody has killed it"
    alone = ("ompy", "replay", "recording", "--rank", "0")
    code, _, errors = run(tmp_path, *alone, "--until-event", "4")
    assert (code, errors.endswith("--until-event 4: rank 0 has 3 events\n")) == (2, True), errors
    code, told, errors = run(tmp_path, *alone)
    assert (code, told) == (1, "first 1\n")
    assert 'program.py", line 13' in errors
    assert "core/ompy" not in errors, "no frames of ours"
    code, told, _ = run(tmp_path, *alone, "--pdb", "--until-event", "1", said="n\np first\nq\n")
    assert code == 0
    assert "program.py(8)<module>()" in told
    assert "(Pdb) 1\n" in told
    for words in (alone, alone[:3]):
        code, _, errors = run(tmp_path, *words, ODD="1")
        assert code == DIVERGED
        assert "rank 0 does not do what it did, at event 3" in errors
        assert "in the recording: program.py:13: its end by AssertionError" in errors
        assert "now:            program.py:12: Iprobe from any source, any tag" in errors
    (tmp_path / "program.py").write_text(RACE.replace("assert first == 2", "assert first"))
    assert run(tmp_path, *alone)[:2] == (0, "first 1\n"), "mended, it goes well"


def test_the_recording_of_a_killed_job_goes_as_far_as_that(tmp_path: Path) -> None:
    code, told, errors = record(tmp_path, KILLED, "--record-data")
    assert code == 137, errors
    assert run(tmp_path, "ompy", "replay", "recording")[:2] == (137, told)
    code, _, errors = run(tmp_path, "ompy", "replay", "recording", "--rank", "1")
    assert code == 137, "what the job has ended with"
    where = "program.py:8, in Recv from any source, any tag"
    assert errors == f"ompy replay: the recording of rank 1 ends at {where}\n"
    for kind in ("events", "data"):  # a rank may be killed before it has begun either
        (tmp_path / "recording" / f"rank-2.{kind}").unlink(missing_ok=True)
    assert run(tmp_path, "ompy", "replay", "recording")[:2] == (137, told)


@pytest.mark.nightly
def test_a_job_that_stood_ends_as_it_did_and_other_bytes_are_noticed(tmp_path: Path) -> None:
    code, _, errors = record(tmp_path, STANDS, "--record-data")
    assert code == DEADLOCK, errors
    code, _, errors = run(tmp_path, "ompy", "replay", "recording")
    assert code == DEADLOCK
    assert "ompy replay: the job ended there with exit code 4" in errors
    assert run(tmp_path, "ompy", "replay", "recording", "--rank", "1")[0] == DEADLOCK
    code, _, errors = run(tmp_path, "ompy", "replay", "recording", WORD="two")
    assert code == DIVERGED
    assert "rank 1 does not get what it got, in the message from rank 0, tag 0: byte" in errors
    assert "  now at program.py:7\n" in errors


@pytest.mark.nightly
def test_a_virtual_world_that_failed_is_a_recording(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WORLD)
    code, _, errors = run(tmp_path, "ompy", "sim", "-n", "3", "--seed", "3", "program.py")
    assert code == 1
    kept = "sim-failures/program-seed-3.json"
    assert errors.endswith(f"in a debugger: ompy replay {kept} --rank 0 --pdb\n")
    (came,) = [line for line in errors.splitlines() if line.endswith(" came first")]
    (tmp_path / "elsewhere").mkdir()
    words = ("replay", f"../{kept}", "--rank", "0", "--pdb")
    code, told, errors = run(tmp_path / "elsewhere", "ompy", *words, said="b 5\nc\np first\nq\n")
    assert code == 0, errors
    assert f"(Pdb) {came.split()[0]}\n" in told
    code, told, errors = run(tmp_path, "ompy", *words[:1], kept, *words[2:], said="restart\nc\nq\n")
    assert "begins again with the command" in told
    assert "Traceback" not in errors.partition("AssertionError")[0]
    code, told, errors = run(
        tmp_path, "ompy", "replay", kept, "--rank", "1", "--pdb", said="c\nq\n"
    )
    assert "bdb.py" not in told, "the program of rank 1 has ended when rank 0 fails"


def test_control_c_at_the_prompt_of_a_world_gives_a_new_prompt(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WORLD)
    assert run(tmp_path, "ompy", "sim", "-n", "3", "--seed", "3", "program.py")[0] == 1
    command = [str(BIN / "ompy"), "replay", "sim-failures/program-seed-3.json"]
    with subprocess.Popen(
        [*command, "--rank", "0", "--pdb"], cwd=tmp_path, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        try:
            told = _until_asked(process)
            assert "program.py(1)<module>()" in told
            for _ in range(RETRIES):  # one that comes just before the read waits for its end
                os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
                if select.select([process.stdout], [], [], 3)[0]:
                    break
            assert "--KeyboardInterrupt--" in _until_asked(process)
            told, errors = process.communicate("n\nq\n", PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert "program.py(2)<module>()" in told
    assert "interrupted" not in errors


def _until_asked(process: subprocess.Popen[str]) -> str:
    """What it says before it asks."""
    assert process.stdout is not None
    told = ""
    while not told.endswith("(Pdb) "):
        letter = process.stdout.read(1)
        assert letter, told
        told += letter
    return told


def test_a_window_is_ready_where_it_was(tmp_path: Path) -> None:
    """`Win.Test` hangs on time alone, and the polls are counted by the program."""
    act = f"turn, root = 1, 0\n{ACTS['a window that is tested']}"
    code, told, errors = record(tmp_path, "\n".join([BEGIN, act, END]))
    assert code == 0, errors
    for _ in range(3):
        code, again, errors = run(tmp_path, "ompy", "replay", "recording")
        assert (code, sorted(again.splitlines())) == (0, sorted(told.splitlines())), errors


def test_windows_are_served_in_the_same_order_and_alone(tmp_path: Path) -> None:
    """With the bytes: who was first at a counter, had a lock, or set a flag between two polls."""
    acts = [
        f"turn, count, root = {turn}, {(8, 70_000)[turn % 2]}, {turn % 3}\n{ACTS[name]}"
        for turn, name in enumerate(WINDOWS, 1)
    ]
    code, told, errors = record(tmp_path, "\n".join([BEGIN, *acts, END]), "--record-data")
    assert code == 0, errors
    lines = sorted(told.splitlines())
    code, again, errors = run(tmp_path, "ompy", "replay", "recording")
    assert (code, sorted(again.splitlines()), errors) == (0, lines, ""), "and warns of nothing"
    for rank, line in enumerate(lines):
        code, alone, errors = run(tmp_path, "ompy", "replay", "recording", "--rank", str(rank))
        assert (code, alone) == (0, line + "\n"), errors


def test_what_no_call_tells_of_a_window_refuses_a_rank_alone(tmp_path: Path) -> None:
    code, _, errors = record(tmp_path, SHARING, "--record-data")
    assert code == 0, errors
    assert run(tmp_path, "ompy", "replay", "recording")[0] == 0
    code, _, errors = run(tmp_path, "ompy", "replay", "recording", "--rank", "0")
    assert code == USAGE
    assert "program.py:2: Win.Allocate_shared: others load from its memory" in errors
    dynamic = SHARING.replace("Allocate_shared(8, 8)", "Create_dynamic()")
    assert record(tmp_path, dynamic, "--record-data")[0] == 0
    code, _, errors = run(tmp_path, "ompy", "replay", "recording", "--rank", "1")
    assert code == USAGE
    assert "program.py:2: Win.Create_dynamic: its places are addresses" in errors


def test_without_the_bytes_who_was_first_is_a_warning(tmp_path: Path) -> None:
    act = f"turn, root = 1, 0\n{ACTS['who was first at a counter']}"
    code, _, errors = record(tmp_path, "\n".join([BEGIN, act, END]))
    assert code == 0, errors
    code, _, errors = run(tmp_path, "ompy", "replay", "recording")
    assert "Win.Fetch_and_op: what it finds hangs on who was first" in errors
