#!/usr/bin/env python3
"""Run every gate of the project, each with a time budget, and say how it went.

    python tools/check.py              all gates
    python tools/check.py lint types   some of them

The gates: `lint` (ruff), `types` (mypy), `floors` (import-linter), `tests` (everything but real
processes), `compiled` (the suites on the way of a message with the hot modules compiled),
`wheel` (what people install, used as the documents say: `try_wheel.py`), `processes` (real ranks,
compiled too), `plugins` (the contributed distributions). The compiled form is the wheel's, which is
built once. Without a C compiler `compiled` and `wheel` say so and are left out, and `processes` is
interpreted.

All gates: those that only compute (`BEHIND`) run behind the others, which mostly wait, at the
lowest priority and in a process of their own; what they print comes when the others are done.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.repository import ROOT, git

BIN = Path(sys.executable).parent
HOT_SUITES = (
    "tests/sim/p2p",
    "tests/sim/rdma",
    "tests/sim/bfo",
    "tests/sim/ofi/test_module.py",
    "tests/sim/test_tcp_connections.py",
    "tests/property/ob1",
    "tests/unit/engine",
    "tests/unit/btl",
    "tests/unit/ob1",
    "tests/meta/test_forms.py",
)
IN_BOTH_FORMS = (  # of what is written in C and not translated, or otherwise where it is compiled
    "tests/unit/data/test_every_place.py",
    "tests/unit/mpi/test_released_late.py",
    "tests/unit/mpi/test_spec.py",
    "tests/unit/net/test_process_copy.py",
)
BUILD_NEEDS = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
FIFTH = "0.2"  # of the cases of a test; nights take all
REPEATED = 30  # last lines of a command that failed, said once more at the end; arbitrary
FAILED: list[str] = []
PYTEST = (sys.executable, "-m", "pytest", "-q")


def commit_turn() -> str:
    """A number of this commit; 0 where there is no git."""
    commit = git("rev-parse", "HEAD")
    return str(int(commit[-3:] or "0", 16))


# what CI takes of the tests: tests/support/share.py
SHARE = {
    "OMPY_SHARE": os.environ.get("OMPY_SHARE", FIFTH),
    "OMPY_TURN": os.environ.get("OMPY_TURN", commit_turn()),
}


def run(*command: str, environment: dict[str, str] | None = None, folder: Path = ROOT) -> bool:
    """Run one command, at the project's root if nothing else is said; true when it succeeded."""
    where = f"cd {folder.relative_to(ROOT)} && " if folder != ROOT else ""
    print("$", where + " ".join(command), flush=True)
    env = {**os.environ, **(environment or {})}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # thousands of ranks would compile all they import
    last: deque[str] = deque(maxlen=REPEATED)
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last.append(line)
    if process.returncode:
        FAILED.append(f"$ {where}{' '.join(command)}\n{''.join(last)}")
    return process.returncode == 0


def lint() -> bool:
    """Style and defects that can be seen without running."""
    return run(str(BIN / "ruff"), "check", ".") and run(str(BIN / "ruff"), "format", "--check", ".")


def types() -> bool:
    """Mypy --strict over both roots; stubs against the modules they describe."""
    drop_in = str(ROOT / "core" / "ompy" / "dropin")
    stubs = (sys.executable, "-m", "mypy.stubtest", "ompy.MPI", "ompy.typing", "mpi4py")
    allowed = ("--concise", "--allowlist", "tools/package/stubtest_allowed.txt")
    paths = {"PYTHONPATH": drop_in, "MYPYPATH": f"{drop_in}:{ROOT / 'core'}"}
    return run(str(BIN / "mypy")) and run(*stubs, *allowed, environment=paths)


def floors() -> bool:
    """Which package may import which."""
    return run(str(BIN / "lint-imports"))


def tests() -> bool:
    """Unit, property, virtual-world and meta tests, interpreted; `tools/nightly.py` takes more.

    What the gate `compiled` runs is left to it where there is a compiler, but for tests that plant
    defects, which they can in the interpreted form only.
    """
    environment = {**SHARE, "OMPY_EFFORT": os.environ.get("OMPY_EFFORT", FIFTH)}
    command = (*PYTEST, "-m", "not proc", "-n", "2", "tests")
    if not has_compiler():
        return run(*command, environment=environment)
    left = [f"--ignore={path}" for path in HOT_SUITES]
    planting = [
        str(path.relative_to(ROOT))
        for suite in HOT_SUITES
        for path in sorted((ROOT / suite).rglob("test_*.py"))
        if "interpreted_only" in path.read_text()
    ]
    passed = run(*command, *left, environment=environment)
    chosen = ("-m", "interpreted", "-n", "2", *planting)
    return run(*PYTEST, *chosen, environment=environment) and passed


def has_compiler() -> bool:
    """Whether the hot modules can be compiled here."""
    return any(shutil.which(name) for name in ("cc", "gcc", "clang"))


@cache
def compiled_tree() -> dict[str, str] | None:
    """Unpack the compiled wheel: the environment that tests it; None without a compiler."""
    if not has_compiler():
        print(
            "SKIPPED: there is no C compiler on this machine to compile the hot modules", flush=True
        )
        return None
    target = ROOT / "build" / "compiled"
    if not run(sys.executable, "tools/package", "try_wheel", "--tree", str(target)):
        sys.exit("check: there is no wheel")
    if not any(target.rglob("*.so")):
        sys.exit("check: the hot modules do not compile")
    return {"PYTHONPATH": str(target), "OMPY_TEST_COMPILED": "1"}


def compiled() -> bool:
    """What is on the way of a message once more, with the hot modules compiled.

    All of the rest is a part of `tools/nightly.py`.
    """
    environment = compiled_tree()
    if environment is None:
        return True
    # a part of the seeds; nights take more
    environment = {**environment, **SHARE, "OMPY_EFFORT": FIFTH}
    # real ranks are the gate `processes`'s, compiled too
    suites = (*HOT_SUITES, *IN_BOTH_FORMS)
    return run(*PYTEST, "-m", "not proc", "-n", "2", *suites, environment=environment)


def wheel() -> bool:
    """The wheel in an empty environment; every kit, and `ompy build`, are `tools/nightly.py`'s."""
    return compiled_tree() is None or run(sys.executable, "tools/package", "try_wheel")


def processes() -> bool:
    """Tests of real ranks, compiled where that can be; interpreted they are `tools/nightly.py`'s.

    They mostly wait, so more of them run at once than there are cores. To collect the many others
    only to leave them out would take each worker seconds.
    """
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    chosen = [str(path.relative_to(ROOT)) for path in paths if "mark.proc" in path.read_text()]
    environment = {**SHARE, **(compiled_tree() or {})}
    return run(*PYTEST, "-m", "proc", "-n", "3", *chosen, environment=environment)


def plugins() -> bool:
    """The contributed distributions, installed beside ompy as strangers' are, and their tests."""
    home = ROOT / "build" / "plugins"
    folders = sorted(path.parent for path in (ROOT / "plugins-contrib").glob("*/pyproject.toml"))
    shutil.rmtree(home, ignore_errors=True)
    python = str(home / "bin" / "python")
    wanted = [f"{ROOT}[conformance]", *(f"{folder}[test]" for folder in folders)]
    # compiled, as the other gates have it already: a job then takes half of the processor time
    kept = {"OMPY_BUILD_ALL": "1", "OMPY_BUILD_CACHE": str(ROOT / "build" / "cache")}
    form = {"OMPY_PURE": "1"} if compiled_tree() is None else kept
    install = (sys.executable, "-m", "pip", "--python", str(home), "install", "-q")
    # what builds all of them is there once: an environment for each would take twice as long
    installed = (
        run(sys.executable, "-m", "venv", "--without-pip", str(home))
        and run(*install, *BUILD_NEEDS, "pip")  # some tests install something
        and run(*install, "--no-build-isolation", *wanted, environment=form)
    )
    # each from its own folder, with its own settings: they know nothing of this repository
    pytest = (python, "-m", "pytest", "-q", "-n", "3")
    passed = [run(*pytest, folder=folder) for folder in folders if installed]
    return installed and all(passed)


# gate and its budget in seconds on 2 cores, where it runs beside what `main` has run beside it
GATES: dict[str, tuple[Callable[[], bool], int]] = {
    "lint": (lint, 5),
    "floors": (floors, 10),
    "types": (types, 180),
    "tests": (tests, 720),
    "compiled": (compiled, 250),
    "wheel": (wheel, 150),
    "processes": (processes, 400),
    "plugins": (plugins, 180),
}
BEHIND = ("types", "tests")
LOWEST = 19  # reference: nice(2)
Report = list[tuple[bool, str]]


def processor_time() -> float:
    """Of all that was started here and has ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report_on(chosen: list[str]) -> Report:
    """Run gates, one after another: whether each passed, and a line about it."""
    report = []
    for name in chosen:
        gate, budget = GATES[name]
        begun, used = time.monotonic(), processor_time()
        passed = gate()
        took, used = time.monotonic() - begun, processor_time() - used
        late = " OVER BUDGET" if took > budget else ""
        line = f"{name:<10} {took:6.0f} s of {budget:>4} s, {used:6.0f} s of processor time{late}"
        report.append((passed, line))
    return report


@contextmanager
def behind(folder: Path) -> Iterator[Callable[[], Report]]:
    """Run the gates `BEHIND` meanwhile; what is given waits for them and prints what they said."""
    told, printed = folder / "report.json", folder / "printed"
    command = (sys.executable, __file__, "--behind", str(told))
    with (
        printed.open("w") as file,
        subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):

        def wait() -> Report:
            process.wait()
            print(printed.read_text(errors="replace"), flush=True)
            if not told.exists():
                return [(False, f"{', '.join(BEHIND)}: ended with {process.returncode}")]
            said = json.loads(told.read_text())
            FAILED.extend(said["failed"])
            return [(passed, line) for passed, line in said["report"]]

        try:
            yield wait
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)


def run_behind(told: Path) -> None:
    """Be the process that runs the gates `BEHIND`, and tell how it went in a file."""
    os.nice(LOWEST)
    group = Path("/proc/self/autogroup")  # with one, Linux minds a session's niceness alone
    with suppress(OSError):  # some kernels have none, and some containers let nobody write
        group.write_text(str(LOWEST))
    report = report_on(list(BEHIND))
    told.write_text(json.dumps({"report": report, "failed": FAILED}))


def main() -> None:
    """Run the gates asked for; exit 1 when one failed."""
    if sys.argv[1:2] == ["--behind"]:
        return run_behind(Path(sys.argv[2]))
    unknown = [name for name in sys.argv[1:] if name not in GATES]
    if unknown:
        sys.exit(f"check: no gate {', '.join(unknown)}; there are {', '.join(GATES)}")
    if sys.argv[1:]:
        report = report_on(sys.argv[1:])
    else:
        with tempfile.TemporaryDirectory() as folder, behind(Path(folder)) as wait:
            report = report_on([name for name in GATES if name not in BEHIND])
            report += wait()
    print("", *FAILED, sep="\n")
    for passed, line in report:
        print("pass" if passed else "FAIL", line)
    sys.exit(0 if all(passed for passed, _ in report) else 1)


if __name__ == "__main__":
    main()
