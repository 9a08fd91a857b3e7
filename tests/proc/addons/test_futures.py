"""Pools over the ranks of a real job: `python -m mpi4py.futures`, MPICommExecutor."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from random import Random

import ompy
import pytest

from tests.support.effort import THOROUGH, effort

pytestmark = pytest.mark.proc

BOUND = 30  # s; arbitrary: what is told here takes milliseconds
COMMON = """
import os, sys, time
from mpi4py import MPI
from mpi4py.futures import *

def square(number): return number * number
def fails(text): raise KeyError(text)
def leaves():
    MPI.Finalize()
    os._exit(0)
def rank(): return MPI.COMM_WORLD.Get_rank()
def note(): global noted; noted = get_comm_workers().Get_size()
def noted_here(): return noted
"""
MAIN = COMMON + 'if __name__ == "__main__":\n'


def job(
    ranks: int, *words: object, options: tuple[str, ...] = (), **more: object
) -> subprocess.CompletedProcess[str]:
    """Run Python on some ranks."""
    command = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), *options, sys.executable]
    return subprocess.run(
        [*command, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        **more,  # type: ignore[call-overload]
    )


def script(folder: Path, body: str) -> Path:
    """A program whose main module has the functions above."""
    path = folder / "program.py"
    path.write_text(MAIN + "".join(f"    {line}\n" for line in body.strip().splitlines()))
    return path


def ran(folder: Path, ranks: int, body: str) -> str:
    """What a program prints that rank 0 runs with the others for workers."""
    done = job(ranks, "-m", "mpi4py.futures", script(folder, body))
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


EVERYTHING = """
with MPIPoolExecutor(initializer=note) as pool:
    print(pool.num_workers, list(pool.map(square, range(5))))
    print(sorted(pool.map(square, range(7), chunksize=3, unordered=True)))
    print(list(pool.starmap(pow, [(2, 3), (3, 2)], buffersize=1)))
    problem = pool.submit(fails, "why").exception()
    print(repr(problem), "in fails" in str(problem.__cause__), "worker" in str(problem.__cause__))
    print(sorted({pool.submit(rank).result() for _ in range(50)} - {0}) != [])
    print({pool.submit(noted_here).result() for _ in range(9)})
    try:
        get_comm_workers()
    except RuntimeError:
        print("no worker")
second = MPIPoolExecutor()
print(second.submit(square, 9).result())
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_program_with_workers(ranks: int, tmp_path: Path) -> None:
    workers = ranks - 1
    assert ran(tmp_path, ranks, EVERYTHING).splitlines() == [
        f"{workers} [0, 1, 4, 9, 16]",
        "[0, 1, 4, 9, 16, 25, 36]",
        "[8, 9]",
        "KeyError('why') True True",
        "True",
        f"{{{workers}}}",
        "no worker",
        "81",
    ]


def test_a_program_alone_has_a_thread_for_a_worker(tmp_path: Path) -> None:
    body = "with MPIPoolExecutor() as pool: print(pool.num_workers, *pool.map(square, range(3)))"
    assert ran(tmp_path, 1, body) == "1 0 1 4\n"


@pytest.mark.parametrize("form", ["-m", "-c", "folder", "archive", "standard input"])
def test_other_forms_of_a_program(form: str, tmp_path: Path) -> None:
    called = "abs" if form in ("-c", "standard input") else "square"  # which have no main module
    body = f"print(*MPIPoolExecutor().map({called}, [-1, 2]), *sys.argv[1:])"
    path = script(tmp_path, body)
    words: list[object] = {"-m": ["-m", "program"], "-c": ["-c", path.read_text()]}.get(form, ["-"])
    if form == "folder":
        path.rename(tmp_path / "__main__.py")
        words = [tmp_path]
    if form == "archive":
        words = [tmp_path / "program.zip"]
        with zipfile.ZipFile(words[0], "w") as archive:
            archive.writestr("__main__.py", path.read_text())
    more = {"input": path.read_text()} if form == "standard input" else {}
    done = job(3, "-m", "mpi4py.futures", *words, "argument", cwd=tmp_path, **more)
    expected = "1 2 argument\n" if called == "abs" else "1 4 argument\n"
    assert (done.stdout, done.returncode) == (expected, 0), done


def test_options_of_the_workers(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "only_there.py").write_text("VALUE = 5\n")
    body = f"""
there = {str(tmp_path / "beside")!r}
pool = MPIPoolExecutor(path=[there], env={{"SAID": "so"}}, wdir=there)
print(pool.submit(os.getcwd).result() == there, pool.submit(os.getenv, "SAID").result())
print(pool.submit(__import__, "importlib").exception() is not None)
print(pool.submit(eval, "__import__('only_there').VALUE").result())
"""
    assert ran(tmp_path, 3, body).splitlines() == ["True so", "True", "5"]


def test_a_worker_that_leaves_breaks_the_pool(tmp_path: Path) -> None:
    body = """
pool, began = MPIPoolExecutor(), time.monotonic()
futures = [pool.submit(time.sleep, 0.05), pool.submit(leaves)]
futures += [pool.submit(time.sleep, 0.01) for _ in range(200)]
broken = [isinstance(future.exception(), BrokenExecutor) for future in futures]
print(broken[1], all(broken[-100:]), pool.num_workers, time.monotonic() - began < 20)
try:
    pool.submit(square, 1)
except BrokenExecutor as problem:
    print("has ended" in str(problem) and "worker" in str(problem))
try:
    MPIPoolExecutor().submit(square, 1).result()
except BrokenExecutor:
    print("the next one too")
"""
    expected = ["True True 0 True", "True", "the next one too"]
    assert ran(tmp_path, 3, body).splitlines() == expected


def test_an_initializer_that_fails(tmp_path: Path) -> None:
    body = """
pool = MPIPoolExecutor(initializer=fails, initargs=("early",))
try:
    pool.submit(square, 1).result()
except BrokenExecutor as problem:
    print(problem)
print(pool.num_workers)
print(MPIPoolExecutor().submit(square, 3).result())
"""
    assert ran(tmp_path, 3, body).splitlines() == [
        "initializer failed: KeyError: 'early'",
        "0",
        "9",
    ]


def test_what_no_worker_has_yet_is_cancelled(tmp_path: Path) -> None:
    body = """
pool = MPIPoolExecutor()
futures = [pool.submit(time.sleep, 0.2) for _ in range(50)]
time.sleep(0.1)
pool.shutdown(cancel_futures=True)
done = [not future.cancelled() for future in futures]
print(done[:2], sum(done) < 5, all(future.done() for future in futures))
"""
    assert ran(tmp_path, 3, body) == "[True, True] True True\n"


def test_a_program_that_fails_ends_the_job(tmp_path: Path) -> None:
    done = job(3, "-m", "mpi4py.futures", script(tmp_path, "MPIPoolExecutor().bootup(); 1 / 0"))
    assert done.returncode == 1
    assert done.stderr.count("ZeroDivisionError") >= 1
    done = job(3, "-m", "mpi4py.futures", script(tmp_path, "sys.exit(7)"))
    assert done.returncode == 7


def test_a_main_module_that_workers_cannot_run(tmp_path: Path) -> None:
    path = script(tmp_path, "print(type(MPIPoolExecutor().submit(square, 1).exception()).__name__)")
    path.write_text(f"{path.read_text()}else:\n    1 / 0\n")
    done = job(3, "-m", "mpi4py.futures", path)
    assert done.stdout == "BrokenExecutor\n"
    assert "ZeroDivisionError" in done.stderr


def test_members_that_work_for_one_and_go_on(tmp_path: Path) -> None:
    path = tmp_path / "members.py"
    path.write_text(
        COMMON
        + """
for root in range(MPI.COMM_WORLD.Get_size()):
    with MPICommExecutor(root=root, initializer=note) as pool:
        if pool is not None:
            print(root, rank() == root, pool.num_workers, *pool.map(square, range(3)))
            print(pool.submit(noted_here).result())
print("on", MPI.COMM_WORLD.allreduce(1))
"""
    )
    done = job(3, path)
    assert (done.returncode, done.stderr) == (0, ""), done
    expected = [f"{root} True 2 0 1 4" for root in range(3)] + ["2"] * 3 + ["on 3"] * 3
    assert sorted(done.stdout.splitlines()) == sorted(expected)


STARTED = """
with MPIPoolExecutor(3, initializer=note) as pool:
    print(pool.num_workers, *pool.map(square, range(4)), pool.submit(noted_here).result())
with ProcessPoolExecutor() as pool:
    print(pool.num_workers, type(pool.submit(noted_here).exception()).__name__)
pool = MPIPoolExecutor(2)
print(type(pool.submit(os._exit, 3).exception()).__name__)
pool.shutdown()
with MPIPoolExecutor(2, python_exe="/there/is/none") as pool:
    print(type(pool.submit(square, 1).exception()).__name__)
"""


@pytest.mark.parametrize("launched", [True, False])
def test_workers_that_are_started(launched: bool, tmp_path: Path) -> None:
    """By a rank of a job, and by a program that nobody launched."""
    path = script(tmp_path, STARTED)
    if launched:
        done = job(1, path)
    else:
        path.write_text(path.read_text().replace("from mpi4py", "from ompy", 1))
        dropin = Path(ompy.__file__).parent / "dropin"
        variables = {**os.environ, "PYTHONPATH": str(dropin)}
        done = subprocess.run(
            [sys.executable, path],
            env=variables,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )
    assert done.returncode == 0, done
    lines = ["3 0 1 4 9 3", "1 NameError", "BrokenExecutor", "BrokenExecutor"]
    assert done.stdout.splitlines() == lines
    assert "the job goes on without it" in done.stderr


UNGUARDED = """
from mpi4py.futures import MPIPoolExecutor
try:
    print(MPIPoolExecutor(2).submit(abs, -1).result())
except Exception as problem:
    print(type(problem).__name__, problem)
"""


def test_a_program_that_starts_workers_wherever_it_is_imported(tmp_path: Path) -> None:
    path = tmp_path / "unguarded.py"
    path.write_text(UNGUARDED)
    done = job(1, path)
    assert "RuntimeError" in done.stdout + done.stderr
    assert "if __name__ == '__main__':" in done.stdout + done.stderr


SERVED = """
import sys, time
from mpi4py import MPI
from mpi4py.futures import MPIPoolExecutor
from ompy.addons.futures.spawned import serve_service

def wait_for_service():
    for _ in range(1000):
        try:
            return MPI.Lookup_name("numbers")
        except MPI.Exception:
            time.sleep(0.01)

if __name__ == "__main__":
    parent = MPI.Comm.Get_parent()
    if parent == MPI.COMM_NULL:
        group = MPI.COMM_SELF.Spawn(sys.executable, [__file__], maxprocs=2)
        wait_for_service()
        with MPIPoolExecutor(service="numbers") as pool:
            print(pool.num_workers, *pool.map(abs, range(-3, 0)))
        group.Disconnect()
    else:
        serve_service("numbers")
        parent.Disconnect()
"""


def test_workers_that_wait_for_a_client(tmp_path: Path) -> None:
    path = tmp_path / "served.py"
    path.write_text(SERVED)
    done = job(1, path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 3 2 1\n", ""), done


KILLED = """
import random
seed, victims = int(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
pool = MPIPoolExecutor()
pids = set(pool.map(pause_and_tell, [0.05] * pool.num_workers * 3))
print(*pids, os.getpid(), flush=True)
futures = [pool.submit(time.sleep, chance.random() / 5) for _ in range(100)]
time.sleep(chance.random() / 10)
for pid in chance.sample(sorted(pids), victims):
    os.kill(pid, 9)
ends = {type(future.exception()).__name__ for future in futures}
print(*sorted(ends), pool.num_workers, flush=True)
try:
    pool.submit(square, 1)
except BrokenExecutor as problem:
    print("has ended" in str(problem))
"""
ENDED_MAX = 20  # s; arbitrary: a death is believed after 5 s where messages may be on their way


WAYS = [(), ("--mca", "btl", "self,tcp"), ("--mca", "pml", "bfo")]


@pytest.mark.parametrize("options", WAYS if THOROUGH else WAYS[2:])
@pytest.mark.parametrize("seed", range(effort(1)))
def test_workers_that_are_killed_break_the_pool_and_not_the_job(
    options: tuple[str, ...], seed: int, tmp_path: Path
) -> None:
    path = script(tmp_path, KILLED)
    pause = "def pause_and_tell(seconds):\n    time.sleep(seconds)\n    return os.getpid()\n"
    path.write_text(path.read_text().replace("def square", f"{pause}\ndef square", 1))
    began = time.monotonic()
    victims = 2 - seed % 2
    done = job(4, "-m", "mpi4py.futures", path, seed, victims, options=options)
    assert time.monotonic() - began < ENDED_MAX
    assert done.returncode == 0, done
    pids, ends, told = done.stdout.splitlines()
    assert ends in {"BrokenExecutor 0", "BrokenExecutor NoneType 0"}
    assert told == "True"
    assert done.stderr.count("was killed by signal 9; the job goes on without it.") == victims
    assert len(pids.split()) >= 2
    deadline = time.monotonic() + 5
    while any(map(_lives, pids.split())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in pids.split() if _lives(pid)]


KILLED_EARLY = """
import threading
delay = float(sys.argv[1])
agent = os.getppid()

def workers():
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                rest = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(rest[1]) == agent and int(name) != os.getpid() and rest[0] != "Z":
            found.append(int(name))
    return found

def kill_one():
    while len(here := workers()) < 2:
        time.sleep(0.001)
    time.sleep(delay)
    victim = workers()[-1]
    print("killed", victim, flush=True)
    os.kill(victim, 9)

thread = threading.Thread(target=kill_one)
thread.start()
ends = set()
with MPIPoolExecutor(2) as pool:
    try:
        futures = [pool.submit(time.sleep, 0.01) for _ in range(300)]
        ends |= {type(future.exception()).__name__ for future in futures}
        pool.submit(square, 3)
        ends.add("all")
    except BrokenExecutor:
        ends.add("broken")
thread.join()
print(*sorted(ends), flush=True)
with MPIPoolExecutor(2) as pool:
    print(*pool.map(square, range(3)), flush=True)
"""


@pytest.mark.parametrize("seed", range(effort(4)))
def test_started_workers_that_are_killed_at_any_moment(seed: int, tmp_path: Path) -> None:
    """From their first on, before they are ranks and before they serve: the next pool is whole."""
    path = script(tmp_path, KILLED_EARLY)
    delay = Random(f"early {seed}").random() * (0.1, 0.4, 0.8, 1.6)[seed % 4]
    began = time.monotonic()
    done = job(1, path, delay, options=("--mca", "plm_base_fork_ranks", str(seed % 2)))
    assert time.monotonic() - began < ENDED_MAX
    assert done.returncode == 0, done
    killed, ends, told = done.stdout.splitlines()
    assert ends.split()[-1] == "broken", done
    assert told == "0 1 4"
    assert not _lives(killed.split()[1])


DIES_FIRST = """
import os, runpy, sys
stage = sys.argv.pop(1)
from ompy import MPI
from ompy.addons.futures import world_pool

def die(comm, root):
    if stage == "between":
        comm.Split(1, comm.Get_rank())
    os.kill(os.getpid(), 9)

world_pool.split_members = die
runpy.run_module("mpi4py.futures", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("stage", ["before", "between"])
@pytest.mark.parametrize("victim", [1, 2])
def test_a_rank_that_is_killed_before_it_serves_breaks_the_pool(
    stage: str, victim: int, tmp_path: Path
) -> None:
    """The program runs, and the executors that it makes are broken; the others leave."""
    path, dies = script(tmp_path, CAUGHT), tmp_path / "dies.py"
    dies.write_text(DIES_FIRST)
    usual = [sys.executable, "-m", "mpi4py.futures", path]
    last = [":", "-n", 2, *usual] if victim == 1 else []
    began = time.monotonic()
    done = job(victim, *usual[1:], ":", "-n", 1, sys.executable, dies, stage, path, *last)
    assert time.monotonic() - began < ENDED_MAX
    assert (done.returncode, done.stdout) == (0, "broken\nbroken\n"), done
    assert done.stderr.count("was killed by signal 9; the job goes on without it.") == 1
    assert "did not make the same" not in done.stderr


CAUGHT = """
for _ in range(2):
    try:
        with MPIPoolExecutor() as pool:
            print(*pool.map(square, range(3)))
    except BrokenExecutor:
        print("broken")
"""


def test_a_client_that_is_killed_ends_the_job(tmp_path: Path) -> None:
    body = "MPIPoolExecutor().submit(square, 3).result(); os.kill(os.getpid(), 9)"
    done = job(3, "-m", "mpi4py.futures", script(tmp_path, body))
    assert done.returncode == 128 + 9


def test_a_worker_that_serves_no_more_is_a_rank_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "members.py"
    path.write_text(
        COMMON
        + """
with MPICommExecutor() as pool:
    if pool is not None:
        print(*pool.map(square, range(3)), flush=True)
if rank() == 1:
    os.kill(os.getpid(), 9)
MPI.COMM_WORLD.Barrier()
"""
    )
    done = job(3, path)
    assert (done.stdout, done.returncode) == ("0 1 4\n", 128 + 9)


def _lives(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True
