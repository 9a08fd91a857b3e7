#!/usr/bin/env python3
"""Real packages from PyPI under ompy-run, each used for what it is for, beside another MPI.

    python tools/sweep packages                           all, once
    python tools/sweep packages --only emcee --only pySDC
    python tools/sweep packages --beside MPIEXEC PYTHON --write

Makes an environment of its own (build/packages) with ompy and the packages, and keeps it. A
package that cannot be installed here is told of, and is no failure. What is run are the programs of
`package_programs`: each compares what ranks compute together with what one process does.

`--beside` runs each with another MPI, too, in turns: its `mpiexec`, and a Python that has the same
packages and mpi4py for it. `--write` writes docs/figures/packages.json and docs/packages.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from tools.repository import ROOT, commit_name

HOME: Final = ROOT / "build" / "packages"
BIN: Final = HOME / "bin"
PROGRAMS: Final = Path(__file__).with_name("package_programs")
DATA: Final = ROOT / "docs" / "figures" / "packages.json"
PAGE: Final = ROOT / "docs" / "packages.md"
PATIENCE: Final = 300  # s; arbitrary: each takes some seconds on an idle machine
NOT_INSTALLED: Final = "not installable here"
FINE: Final = "fine"


class Package(NamedTuple):
    """A package and its program.

    Attributes:
        name: of the distribution.
        requirements: for pip, with versions.
        words: behind `python`: the program first, a file of `package_programs` or `-m` a module.
        ranks: of the job; 0 if the package starts them itself, by an mpiexec that it finds.
        expected: what the program says when all is well.
        way: which of several ways to use it this is.
    """

    name: str
    requirements: tuple[str, ...]
    words: tuple[str, ...]
    ranks: int
    expected: str = FINE
    way: str = ""

    @property
    def row(self) -> str:
        """What it is called in the table."""
        return f"{self.name}, {self.way}" if self.way else self.name


POOL: Final = ("-m", "mpi4py.futures")
PYTEST: Final = ("-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider")
DISTWQ: Final = ("distwq==1.3.*",)
PACKAGES: Final = (
    Package("adaptive", ("adaptive==1.5.*",), (*POOL, "adaptive_pool.py"), 3),
    Package("dask-mpi", ("dask-mpi==2026.3.*",), ("dask_mpi_client.py",), 4),
    Package("deephyper", ("deephyper==0.13.*",), ("deephyper_search.py",), 3),
    Package("distwq", DISTWQ, ("distwq_groups.py", "spawn"), 3, way="spawned"),
    Package("distwq", DISTWQ, ("distwq_groups.py", "split"), 4, way="split"),
    Package("emcee", ("emcee==3.1.*", "schwimmbad==0.4.*"), ("emcee_pool.py",), 3),
    Package("executorlib", ("executorlib==1.11.*",), ("executorlib_calls.py",), 0),
    Package("gprMax", ("gprMax==4.0.*",), ("gprmax_dipole.py",), 4),
    Package("libensemble", ("libensemble==1.6.*",), ("libensemble_sampling.py",), 3),
    Package("mpi-pytest", ("mpi-pytest==2026.*",), (*PYTEST, "mpi_pytest_tests.py"), 3, "3 passed"),
    Package("mpi-sppy", ("mpi-sppy==0.14.*", "highspy==1.*"), ("mpi_sppy_farmer.py",), 3),
    Package("mpi4py-fft", ("mpi4py-fft==2.0.*",), ("mpi4py_fft_transforms.py",), 4),
    Package("mpipool", ("mpipool==2.2.*",), ("mpipool_map.py",), 3),
    Package("nautilus-sampler", ("nautilus-sampler==1.0.*",), (*POOL, "nautilus_pool.py"), 3),
    Package("pshmem", ("pshmem==1.3.*",), ("pshmem_array.py",), 3),
    Package("PTMCMCSampler", ("PTMCMCSampler==2.1.*",), ("ptmcmc_chains.py",), 2),
    Package("pylops-mpi", ("pylops-mpi==0.8.*",), ("pylops_cgls.py",), 3),
    Package("pySDC", ("pySDC==5.9.*",), ("pysdc_pfasst.py",), 3),
    Package("ultranest", ("ultranest==4.*",), ("ultranest_sampler.py",), 3),
    Package("yt", ("yt==4.4.*",), ("yt_quantities.py",), 3),
)


@dataclass
class Result:
    """What came of one package.

    Attributes:
        package: its row's name.
        version: that was installed; empty if none could be.
        ranks: of the job.
        outcome: `fine`, or what went wrong in a line.
        seconds: median of the rounds under ompy-run.
        beside: outcome with the other MPI; empty if there was none.
        beside_seconds: median of the rounds with it.
        rounds: how many there were.
        date: of them.
        commit: of ompy.
    """

    package: str
    version: str
    ranks: int
    outcome: str
    seconds: float = 0.0
    beside: str = ""
    beside_seconds: float = 0.0
    rounds: int = 0
    date: str = ""
    commit: str = ""


def parser() -> argparse.ArgumentParser:
    """What the command line may say."""
    found = argparse.ArgumentParser("tools/sweep packages", description=__doc__.splitlines()[0])
    names = list(dict.fromkeys(package.name for package in PACKAGES))
    found.add_argument("--only", choices=names, action="append", help="default: all")
    found.add_argument("--rounds", type=int, default=1, help="runs of each, in turns")
    found.add_argument("--beside", nargs=2, metavar=("MPIEXEC", "PYTHON"), help="another MPI")
    found.add_argument("--write", action="store_true", help="the page and its data")
    return found


def pip(*words: str) -> subprocess.CompletedProcess[str]:
    """Run pip for the environment."""
    command = (sys.executable, "-m", "pip", "--python", str(HOME), *words)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def prepare_environment() -> None:
    """Have the environment, with the present ompy, compiled where that can be.

    Raises:
        SystemExit: it cannot be made.
    """
    if not HOME.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(HOME)], check=True)
    os.environ.setdefault("OMPY_BUILD_CACHE", str(ROOT / "build" / "cache"))
    done = pip("install", "-q", "--force-reinstall", "--no-deps", str(ROOT))
    done = pip("install", "-q", str(ROOT)) if done.returncode == 0 else done
    if done.returncode:
        sys.exit(f"packages: ompy cannot be installed: {done.stderr[-500:]}")
    linked = HOME / "mpiexec"
    subprocess.run([BIN / "ompy", "mpiexec", "--link", linked], check=True, capture_output=True)


def installed_version(package: Package) -> str:
    """Install a package if it is not there. Returns its version; empty where that fails."""
    if pip("install", "-q", *package.requirements).returncode:
        return ""
    shown = pip("show", package.name).stdout.splitlines()
    return next((line.split()[1] for line in shown if line.startswith("Version:")), "")


def one_run(package: Package, launcher: Sequence[str], python: str) -> tuple[str, float]:
    """Run its program once. Returns the outcome and the seconds."""
    words = [str(PROGRAMS / word) if word.endswith(".py") else word for word in package.words]
    start = [*launcher, "-n", str(package.ranks)] if package.ranks else []
    environment = {
        **os.environ,
        "PATH": f"{Path(launcher[0]).parent}:{Path(python).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(PROGRAMS),
        "OMP_NUM_THREADS": "1",  # ranks share the cores
        "OPENBLAS_NUM_THREADS": "1",
    }
    begin = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:  # some write what nobody asked for
            done = subprocess.run(
                [*start, python, *words], capture_output=True, text=True, timeout=PATIENCE,
                check=False, env=environment, cwd=folder,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"hangs for {PATIENCE} s", PATIENCE
    seconds = time.perf_counter() - begin
    if done.returncode == 0 and package.expected in done.stdout:
        return FINE, seconds
    lines = (done.stderr.strip() or done.stdout).splitlines()
    said = [line for line in lines if line.strip("- ")] or ["it says nothing"]
    telling = next((line for line in said if "Error" in line or "MPI_ERR" in line), said[-1])
    return f"exit code {done.returncode}: {telling[:200]}", seconds


def examine(package: Package, rounds: int, beside: Sequence[str] | None) -> Result:
    """Install a package and run it in turns."""
    version = installed_version(package)
    if not version:
        return Result(package.row, "", package.ranks, NOT_INSTALLED)
    sides = {"ours": ([str(HOME / "mpiexec" / "mpiexec")], str(BIN / "python"))}
    if beside:
        sides["theirs"] = ([beside[0], "--oversubscribe"], beside[1])
    outcomes: dict[str, list[tuple[str, float]]] = {side: [] for side in sides}
    for _ in range(rounds):
        for side, (launcher, python) in sides.items():
            outcomes[side].append(one_run(package, launcher, python))
    found = {side: next((said for said, _ in runs if said != FINE), FINE)
             for side, runs in outcomes.items()}  # fmt: skip
    times = {side: median(seconds for _, seconds in runs) for side, runs in outcomes.items()}
    return Result(
        package.row, version, package.ranks, found["ours"], round(times["ours"], 2),
        found.get("theirs", ""), round(times.get("theirs", 0.0), 2),
        rounds, f"{datetime.now(UTC):%Y-%m-%d}", commit_name(),
    )  # fmt: skip


def write_results(results: Sequence[Result]) -> None:
    """Write the data and the page; packages that were not tried keep their rows."""
    about = {
        "command": "python tools/sweep packages --write",
        "machine": f"{platform.machine()} {os.cpu_count()} cores",
    }
    before = {row["package"]: Result(**row) for row in json.loads(DATA.read_text())["rows"]}
    found = before | {result.package: result for result in results}
    rows = [found[package.row] for package in PACKAGES if package.row in found]
    data = {"about": about, "rows": [asdict(row) for row in rows]}
    DATA.write_text(json.dumps(data, indent=1) + "\n")
    head, _, _ = PAGE.read_text().partition("| package |")
    PAGE.write_text(head + "\n".join(_table(rows)) + "\n")


def _table(results: Sequence[Result]) -> list[str]:
    lines = [
        "| package | version | ranks | under ompy-run | s | Open MPI, s |",
        "|---|---|---:|---|---:|---:|",
    ]
    for each in results:
        theirs = f"{each.beside_seconds:.1f}" if each.beside == FINE else each.beside
        ours = f"{each.seconds:.1f}" if each.version else ""
        cells = (each.package, each.version, each.ranks or "by mpiexec", each.outcome, ours, theirs)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def main() -> None:
    """Run what the command line asks for; exit 1 when a package that is there does not work."""
    options = parser().parse_args()
    prepare_environment()
    results = []
    for package in PACKAGES:
        if options.only and package.name not in options.only:
            continue
        result = examine(package, options.rounds, options.beside)
        results.append(result)
        print(
            f"{result.package} {result.version}: {result.outcome}, {result.seconds} s", flush=True
        )
    if options.write:
        write_results(results)
    sys.exit(any(result.outcome not in {FINE, NOT_INSTALLED} for result in results))


if __name__ == "__main__":
    main()
