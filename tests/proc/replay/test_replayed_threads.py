"""Several threads of a rank that call MPI: recorded, and heard again in their order."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.proc.replay.test_replayed_jobs import DIVERGED, run

pytestmark = pytest.mark.proc
# which thread receives what hangs on the scheduler alone. Each notes it for itself: threads that
# are told at once go on in an order that is the program's, and no recording has it
SHARED: Final = """\
import random, threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
late, told = random.SystemRandom(), [[], [], []]
def work(place):
    for step in range(4):
        time.sleep(late.uniform(0, 0.004))
        if comm.rank:
            comm.send((place, step), dest=0)
        else:
            told[place].append(comm.recv(source=MPI.ANY_SOURCE))
threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if not comm.rank:
    print(told)
"""
# no event but the sends: in which order they go is what rank 0 is told
SENDS: Final = """\
import random, threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
late = random.SystemRandom()
def work(place):
    for step in range(4):
        time.sleep(late.uniform(0, 0.004))
        comm.send((place, step), dest=0)
if comm.rank:
    threads = [threading.Thread(target=work, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
else:
    print([comm.recv(source=1) for _ in range(12)])
"""
# who has the program's own lock first is not MPI's to know
LOCKED: Final = """\
import os, threading, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
lock = threading.Lock()
def work(place):
    if place == int(os.environ["LATE"]):
        time.sleep(0.3)
    with lock:
        comm.send(place, dest=0, tag=1)
        comm.recv(source=0, tag=1)
threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
CHANGED: Final = """\
import os, threading
from mpi4py import MPI
comm = MPI.COMM_WORLD
def work():
    comm.send(1, dest=0, tag=int(os.environ["TAG"]))
    comm.recv(source=0)
def other():
    comm.iprobe()
for target in (work, other) if "WITH" in os.environ else (work,):
    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
"""
# what a window takes back when a target refuses it is ompy's own, and no thread's turn
REFUSED: Final = """\
import random, threading, time
from array import array
from mpi4py import MPI
comm = MPI.COMM_WORLD
peer, late, told = 1 - comm.rank, random.SystemRandom(), []
def work(place):
    for step in range(3):
        time.sleep(late.uniform(0, 0.004))
        comm.send((place, step), dest=peer)
        told.append(comm.recv(source=MPI.ANY_SOURCE))
def together():
    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
together()
window = MPI.Win.Create_dynamic(comm=comm)
window.Set_errhandler(MPI.ERRORS_RETURN)
window.Lock_all()
for call in (window.Get, window.Put):
    try:
        call(array("q", [0]), peer, 64)
        window.Flush(peer)
    except MPI.Exception as problem:
        assert problem.Get_error_class() == MPI.ERR_RMA_RANGE
window.Unlock_all()
window.Free()
together()
"""
STRANGER: Final = """\
import _thread, time
from mpi4py import MPI
comm, over = MPI.COMM_WORLD, []
def work():
    over.append(comm.iprobe())
_thread.start_new_thread(work, ())
while not over:
    time.sleep(0.01)
"""


def record(folder: Path, program: str, ranks: int, **variables: str) -> str:
    """What a recording of a program prints."""
    (folder / "program.py").write_text(program)
    words = ["-n", str(ranks), "--record", "recording", "--record-data", sys.executable]
    code, told, errors = run(folder, "ompy-run", *words, "program.py", **variables)
    assert code == 0, errors
    return told


@pytest.mark.parametrize("program", [SHARED, SENDS])
def test_threads_are_told_the_same(tmp_path: Path, program: str) -> None:
    told = record(tmp_path, program, 2)
    for words in ((), ("--rank", "0")):
        for _ in range(2):
            code, again, errors = run(tmp_path, "ompy", "replay", "recording", *words)
            assert (code, again) == (0, told), errors


def test_what_a_window_takes_back_is_no_turn(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(REFUSED)
    words = ["-n", "2", "--mca", "btl", "self,tcp", "--record", "recording", sys.executable]
    code, _, errors = run(tmp_path, "ompy-run", *words, "program.py")
    assert code == 0, errors
    for _ in range(3):
        code, _, errors = run(tmp_path, "ompy", "replay", "recording")
        assert code == 0, errors


def test_a_lock_that_another_thread_has_is_named(tmp_path: Path) -> None:
    record(tmp_path, LOCKED, 1, LATE="0")
    patience = ("OMPY_MCA_record_base_thread_patience", "1")
    code, _, errors = run(
        tmp_path, "ompy", "replay", "recording", LATE="1", **{patience[0]: patience[1]}
    )
    assert code == DIVERGED
    assert "thread main.2, whose call comes now, sleeps outside of MPI for 1 s" in errors
    assert "now:            program.py:9 in work: a call of thread main.1" in errors
    assert "in the recording: program.py:10 in work: the end of a wait" in errors


def test_threads_that_do_something_else_are_named(tmp_path: Path) -> None:
    record(tmp_path, CHANGED, 1, WITH="", TAG="1")
    for said, variables in (
        ("peers or tags differ from those of the recording", {"WITH": "", "TAG": "2"}),
        ("thread main.2, whose call comes now, is never started", {"TAG": "1"}),
    ):
        code, _, errors = run(tmp_path, "ompy", "replay", "recording", **variables)
        assert code == DIVERGED
        assert said in errors


def test_a_thread_that_nobody_can_name_is_refused(tmp_path: Path) -> None:
    record(tmp_path, STRANGER, 1)
    code, _, errors = run(tmp_path, "ompy", "replay", "recording")
    assert code == 2
    assert "program.py:5: a thread that threading.Thread did not start calls MPI" in errors
