"""Cells of the matrix wait x BTL x way of leaving: one rank leaves, others wait for it.

The waits are those of `leaving_waits.py`. The last rank of a job is the one that leaves. Each other
rank has a communicator with it alone, and a list of waits of its own: the first may have begun when
the rank leaves, the others begin when that is known. Real ranks run this file as their program.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from ompy.data.errors import ERR_IN_STATUS, ERR_PROC_FAILED
from ompy.engine.virtual_engine import Deadlock
from ompy.frameworks.osc_base.module import GRACE
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.leaving_waits import GONE, WAITS

ROOT = Path(__file__).resolve().parents[2]
READY = 999  # tag of the message that all is prepared
# ms, between virtual ranks and real ones, where the whole of a busy machine may be late
VIRTUAL_PATIENCE = 50
REAL_PATIENCE = 200
# ns; what the PML and a window give what is under way, twice for what a collective's other ranks
# wait for; arbitrary beyond
BOUND = 2 * GRACE + 3_000_000_000
PAUSE = 300_000_000  # ns until the rank leaves; arbitrary: others mostly wait by then
# how a rank leaves; of a program that the interpreter itself runs nobody knows how it ends, so that
# it says no LEAVE with ob1
VIRTUAL_WAYS = ("finalizes", "stays", "silently")
REAL_WAYS = ("finalizes", "stays", "exits", "ends", "silently")
# and ends the job, whose exit code this is: without MPI_Finalize, by sys.exit(3), by an exception,
# by SIGKILL (128 + 9)
ENDS_JOB = {"vanishes": 1, "fails": 3, "raises": 1, "killed": 137}
# how an error says why; a BTL whose connection is refused may be the first to know
HOW = (
    "has finalized",
    "has ended",
    "no longer reaches",
    "can no longer be reached",
    "lost its path",
    "lost a fragment",
)
JOB_MAX = 240  # s; arbitrary: far beyond what a job with all waits takes


class Outcome(NamedTuple):
    """What came of one wait.

    Attributes:
        name: of the wait.
        early: it had begun when the other rank left.
        code: error class, 0 for none.
        took: ns.
        said: the error's text.
    """

    name: str
    early: bool
    code: int
    took: int
    said: str

    def wrong(self) -> str:
        """What is wrong with it; empty if nothing is."""
        declared = WAITS[self.name]
        if self.took > BOUND:
            return f"{self.name}: it took {self.took / 1e9:.1f} s, and then {self.code} {self.said}"
        if not self.code:
            well = declared.may_succeed or (declared.late_succeeds and not self.early)
            return "" if well else f"{self.name}: it succeeded"
        if self.code not in {ERR_PROC_FAILED, ERR_IN_STATUS} or "PROC_FAILED" not in self.said:
            return f"{self.name}: error {self.code}: {self.said}"
        return "" if any(how in self.said for how in HOW) else f"{self.name}: why? {self.said}"


def _pair(comm: Any, rank: int) -> Any:
    """The communicator of a rank and the one that leaves; only these two call it."""
    made = comm.Create_group(comm.group.Incl([rank, comm.size - 1]), rank)
    made.Barrier()
    return made


def _prepared(own: Any, names: Iterable[str]) -> list[Any]:
    return [WAITS[name].prepare(own) for name in names]


def get_ready(comm: Any, lists: Sequence[Sequence[str]]) -> list[Any]:
    """What the last rank does before it leaves; returns what has to live as long."""
    kept: list[Any] = []
    for rank, names in enumerate(lists):
        own = _pair(comm, rank)
        made = _prepared(own, names)
        for name, one in zip(names, made, strict=True):
            kept.append(WAITS[name].last(own, one))
        own.Ssend(bytearray(1), 0, READY)  # it has come when the rank leaves
        kept.append((own, made))
    return kept


def wait(
    comm: Any,
    names: Sequence[str],
    hear: Callable[[], object],
    now: Callable[[], int],
    *,
    early: bool,
) -> list[Outcome]:
    """What another rank does: each wait in turn.

    Args:
        comm: all ranks.
        names: of the waits.
        hear: returns when it is known that the last rank has left.
        now: the clock.
        early: the first wait begins before that.
    """
    own = _pair(comm, comm.rank)
    made = _prepared(own, names)
    own.Recv(bytearray(1), GONE, READY)
    found: list[Outcome] = []
    for name, one in zip(names, made, strict=True):
        first = early and not found
        if not first:
            hear()
        found.append(_outcome(name, partial(WAITS[name].call, own, one), now, early=first))
    return found


def _outcome(
    name: str, call: Callable[[], object], now: Callable[[], int], *, early: bool
) -> Outcome:
    began = now()
    code, said = 0, ""
    try:
        call()
    except MPIException as problem:
        code, said = problem.code, str(problem)
    return Outcome(name, early, code, now() - began, said)


def _hear(process: RankProcess) -> None:
    gone = process.context.procs[-1]
    process.context.engine.wait_until(lambda: bool(gone.left))


# --- virtual ranks


def strangers(name: str) -> bool:
    """Whether a wait can be of virtual ranks that have never met."""
    declared = WAITS[name]
    if not declared.in_worlds:
        return False
    return declared.prepare is WAITS["Recv"].prepare and declared.last is WAITS["Recv"].last


class Cell(NamedTuple):
    """One cell of the matrix.

    Attributes:
        wait: its name.
        btl, pml: what is used.
        way: in which the rank leaves.
        early: the wait begins before.
        met: the ranks have talked before.
    """

    wait: str
    btl: str
    pml: str
    way: str
    early: bool
    met: bool

    def __str__(self) -> str:
        when = "early" if self.early else "late"
        return f"{self.wait}: {self.btl} {self.pml} {self.way} {when}{'' if self.met else ' unmet'}"


def virtual_rank(job: VirtualJob, cell: Cell, process: RankProcess) -> list[Outcome]:
    """One of two virtual ranks, and one wait."""
    comm, engine = world_of(process), process.context.engine
    name, way, early, met = cell.wait, cell.way, cell.early, cell.met
    if comm.rank == GONE:
        kept = get_ready(comm, [[name]]) if met else []
        if early:
            engine.spend(PAUSE)
        process.context.leaves = way != "silently"
        if way == "stays":
            process.finalize()
            job.finalized(GONE)
            engine.spend(2 * BOUND)
        del kept
        return []
    hear = partial(_hear, process)
    if met:
        return wait(comm, [name], hear, engine.now, early=early)
    if not early:
        hear()
    return [_outcome(name, partial(WAITS[name].call, comm, None), engine.now, early=early)]


def cells(btls: Iterable[str], pmls: Sequence[str]) -> list[Cell]:
    """The whole matrix of virtual worlds."""
    return [
        Cell(wait, btl, pml, way, early, met)
        for btl in btls
        for pml in pmls
        for wait, declared in WAITS.items()
        if declared.in_worlds
        for way in VIRTUAL_WAYS
        for early in (True, False)
        for met in (True, False)
        if met or strangers(wait)
    ]


def run_virtual(cell: Cell) -> str:
    """What is wrong in a cell; empty if nothing is."""
    from tests.support.worlds import registry

    settings: dict[str, object] = {"btl": f"self,{cell.btl}", "pml": cell.pml}
    settings[f"pml_{cell.pml}_leave_patience_ms"] = VIRTUAL_PATIENCE
    job = VirtualJob(2, registry(**settings), seed=crc32(str(cell).encode()))
    try:
        ((found,), _) = job.run(partial(virtual_rank, job, cell))
    except Deadlock as hang:
        return str(hang)
    return str(found.wrong())


# --- real ranks: python leaving_cells.py WAY EARLY FOLDER NAME...


class Found(NamedTuple):
    """What came of a real job.

    Attributes:
        code: its exit code; None where it had to be ended.
        said: by it, on standard error.
        outcomes: of the waits that ended.
        took: s.
    """

    code: int | None
    said: str
    outcomes: list[Outcome]
    took: float


def real_job(
    names: Sequence[str], way: str, *, early: bool, waiters: int = 4, **settings: object
) -> Found:
    """Have some real ranks wait, each for a part of the names."""
    command = [sys.executable, "-m", "ompy.cli.run", "-n", str(waiters + 1)]
    settings[f"pml_{settings.get('pml', 'ob1')}_leave_patience_ms"] = REAL_PATIENCE
    for setting, value in settings.items():
        command += ["--mca", setting, str(value)]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        if way == "silently":
            command += ["sh", "-c", '"$@"; exit $?', "sh"]  # no agent forks the program then
        command += [sys.executable, __file__, way, "early" if early else "late", folder, *names]
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=JOB_MAX,
                env={**os.environ, "PYTHONPATH": path},
            )
        except subprocess.TimeoutExpired as late:
            code, said = None, (late.stderr or b"").decode(errors="replace")
        else:
            code, said = done.returncode, done.stderr
        found = written(folder)
    return Found(code, said, found, time.monotonic() - began)


def written(folder: str) -> list[Outcome]:
    """What came of the waits of a job."""
    files = [file for file in Path(folder).iterdir() if file.name.isdigit()]
    return [Outcome(*each) for file in files for each in json.loads(file.read_text())]


def main() -> None:
    """Be one rank; who waits writes what came of it to a file of its own."""
    from ompy import MPI

    way, early, folder, *names = sys.argv[1:]
    comm = MPI.COMM_WORLD
    waiters = comm.size - 1
    lists = [names[rank::waiters] for rank in range(waiters)]
    if comm.rank < waiters:
        process = comm._inner.world.process
        hear = partial(_hear, process)
        found = wait(comm, lists[comm.rank], hear, time.monotonic_ns, early=early == "early")
        partly = Path(folder, f"{comm.rank}.part")
        partly.write_text(json.dumps(found))
        partly.rename(Path(folder, str(comm.rank)))
        return
    kept = get_ready(comm, lists)
    time.sleep(PAUSE / 1e9)
    if way in {"finalizes", "stays"}:
        MPI.Finalize()
    while way == "stays" and len(list(Path(folder).glob("[0-9]"))) < waiters:
        time.sleep(0.02)
    _end(way)
    del kept


def _end(way: str) -> None:
    """End the rank that leaves, if not by the last line of its program."""
    if way in {"exits", "silently"}:
        sys.exit(0)
    if way == "fails":
        sys.exit(ENDS_JOB[way])
    if way == "vanishes":
        os._exit(0)
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "raises":
        raise LookupError("this rank ends so")


if __name__ == "__main__":
    main()
