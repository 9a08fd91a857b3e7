#!/usr/bin/env python3
"""Install the wheel into an empty environment outside the tree, and use it there as people do.

    python tools/package try_wheel           what CI does: the gate `wheel` of tools/check.py
    python tools/package try_wheel --all     also the pages that install what they make, every
                                        BTL's kit, `ompy build` of a pure installation, the
                                        wheel compiled anew in another folder (tools/nightly.py)
    python tools/package try_wheel --tree DIR    only build, and unpack the wheel there
    python tools/package try_wheel --here    build nothing: use the compiled wheel that is installed
                                        here (what cibuildwheel runs for each wheel)

The sdist and a wheel of it have to hold what the wheel of the tree holds. Then, with nothing but
ompy and what it requires: every command that the documents show (`documents.py`), each command
line of ours, each kind of `ompy bench`, the examples, a job over each BTL. The environment then
gets NumPy, `ompy[ofi]` and `OMPY_PURE=1`, one after the other, and what these change is run again.

What is compiled is kept in build/cache, by what went into it: the gates compile once.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from ompy.cli.measuring.bench import KINDS

from tools.package.documents import commands, documents, follow, installs, shell

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / "build" / "cache"
AT_ONCE: Final = 3  # commands; they mostly wait, as in the gate `processes`
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PURE_TOO: Final = ("ompy-run -n 2 python ring.py", "ompy sim -n 2 ring.py", "ompy-info --all")
COMPILED: Final = r"compiled \((\d+) of \1 modules\)"
# one that is stopped half way, and another that finds it at work
STOPPED: Final = "{ OMPY_BUILD_CACHE= timeout -s TERM 15 ompy build; } & sleep 5; ompy build; wait"
COMPLETING: Final = "COMPLETE=bash_complete COMP_CWORD"


class Run(NamedTuple):
    """A command, and what it has to say: a regular expression, and how it ends."""

    line: str
    says: str = ""
    code: int = 0


# Building


def pip(*words: str, **environment: str) -> None:
    """Run pip on this interpreter; ends the program when it fails."""
    command = [sys.executable, "-m", "pip", *words]
    subprocess.run(command, check=True, env={**os.environ, **environment})


def wheel(source: Path, folder: Path, **environment: str) -> Path:
    """Build a wheel of a tree or an sdist, with what is installed here."""
    kept = {"OMPY_PURE": "", "OMPY_BUILD_ALL": "1", "OMPY_BUILD_CACHE": str(CACHE)}
    words = ["wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder), str(source)]
    pip(*words, **{**kept, **environment})
    (made,) = folder.glob("ompy-*.whl")
    return made


def built(folder: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of the tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (sdist,) = folder.glob("ompy-*.tar.gz")
    CACHE.mkdir(parents=True, exist_ok=True)
    made = wheel(ROOT, folder / "wheel")
    for older in sorted(CACHE.iterdir(), key=lambda path: path.stat().st_mtime)[:-2]:
        shutil.rmtree(older)
    return sdist, made


def contents(path: Path) -> dict[str, bytes]:
    """What a wheel holds, apart from the list of it."""
    with zipfile.ZipFile(path) as opened:
        names = [name for name in opened.namelist() if not name.endswith("/RECORD")]
        return {name: opened.read(name) for name in names}


def compare(sdist: Path, made: Path, folder: Path, **environment: str) -> list[str]:
    """What differs between the wheel of the tree and that of the sdist, in another folder."""
    with tarfile.open(sdist) as opened:
        opened.extractall(folder, filter="data")
    (source,) = folder.glob("ompy-*")
    before = os.umask(0o077)  # nor does a wheel tell of this
    again = wheel(source, folder / "wheel", **environment)
    os.umask(before)
    if made.read_bytes() == again.read_bytes():
        return []
    ours, theirs = contents(made), contents(again)
    names = sorted(ours.keys() ^ theirs.keys())
    names += [name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name]]
    return [f"{name} is not the same in a wheel of the sdist" for name in names or ["RECORD"]]


# Installing


class Environment:
    """An empty environment in a folder of its own, and commands run there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "environment"
        self.fill()
        venv = [sys.executable, "-m", "venv", "--without-pip", str(self.home)]
        subprocess.run(venv, check=True)

    def fill(self) -> None:
        """Make the folder that commands run in, with the examples."""
        self.work = self.folder / "work"
        self.work.mkdir()
        for example in (ROOT / "examples").glob("*.py"):
            shutil.copy(example, self.work)

    def install(self, *requirements: str, **environment: str) -> None:
        """Install with pip, as users do."""
        words = ["--python", str(self.home), "install", "-q", *requirements]
        pip(*words, **environment)

    def variables(self, **more: str) -> dict[str, str]:
        """Of a user's shell in which the environment is active."""
        unwanted = ("PYTHON", "OMPY", "VIRTUAL_ENV")
        kept = {key: text for key, text in os.environ.items() if not key.startswith(unwanted)}
        return {**kept, "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}", **more}

    def run(self, runs: Iterable[Run], **more: str) -> list[str]:
        """Run commands, some at a time. Returns what is wrong."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [text for text in pool.map(lambda one: self._one(one, more), runs) if text]

    def _one(self, run: Run, more: dict[str, str]) -> str:
        done = shell(run.line, self.work, self.variables(**more))
        said = done.stdout + done.stderr
        right = done.returncode == run.code and re.search(run.says, said)
        return "" if right and "Traceback" not in said else f"{run.line}: {done.returncode}: {said}"

    def documents(self, *, installing: bool) -> list[str]:
        """Follow the documents, or those that install something. Returns what is wrong."""
        pages = [page for page in documents() if installs(page) is installing]
        folders = [self.folder / f"{page.parent.name}-{page.stem}" for page in pages]
        for folder in folders:
            folder.mkdir()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            wrong = pool.map(follow, pages, folders, [self.variables()] * len(pages))
            return [text for texts in wrong for text in texts]


class Here(Environment):
    """The environment of the Python that runs this, in which somebody has installed a wheel."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = Path(sys.prefix)
        self.fill()


# What is run


def needs_numpy(example: Path) -> bool:
    """Whether an example imports it."""
    return "import numpy" in example.read_text()


def examples(*, numpy: bool, shown: bool) -> Iterator[Run]:
    """The examples that need NumPy, or those that do not.

    Args:
        numpy: which.
        shown: those, too, that the page of the course runs.
    """
    course = " ".join(command.line for command in commands(ROOT / "docs" / "course.md"))
    for path in sorted((ROOT / "examples").glob("*.py")):
        if needs_numpy(path) == numpy and (shown or path.name not in course):
            end = " 1" if path.stem == "pull_the_cable" else ""  # second
            options = " --mca mpi_ft_enable 1" if path.stem == "go_on" else ""
            yield Run(f"ompy-run -n 2{options} python {path.name}{end}")


def btls() -> Iterator[Run]:
    """A job over each BTL; ofi over what is there without a library."""
    for name in PROJECT["entry-points"]["ompy.btl"]:
        ranks = 1 if name == "self" else 2
        used = dict.fromkeys(["self", name])
        nic = " --mca btl_ofi_nic ofi_emulated" if name == "ofi" else ""
        yield Run(f"ompy-run -n {ranks} --mca btl {','.join(used)}{nic} python ring.py", "token")


def first(*, shown: bool) -> Iterator[Run]:
    """With nothing but what ompy requires; `shown` as `examples` has it."""
    yield Run("ompy-info --version", COMPILED)
    yield Run("ompy-info --all")
    yield Run("ompy-info --plugins", r"libfabric .*not-available\s+cffi is missing")
    yield Run("ompy sim -n 2 ring.py", "ended at")
    yield Run("ompy sim -n 2 --mca btl self,ofi ring.py", "ended at")
    yield Run("ompy explain --size 1m --peer 1", "RDMA")
    yield Run("ompy-run -n 2 --trace traced python ring.py && ompy trace traced", "Eager")
    yield Run("ompy conformance btl self", r"ompy\[conformance\]", 2)
    yield Run("ompy new coll mine", "ompy-coll-mine has pyproject.toml, README.md")
    yield Run("ompy build", r"ompy\[build\]", 2)
    yield Run("ompy completion bash", "complete")
    yield Run(f"_OMPY_INFO_{COMPLETING}=2 COMP_WORDS='ompy-info --why nic_l' ompy-info", "nic_lib")
    yield Run(f"_OMPY_{COMPLETING}=3 COMP_WORDS='ompy sim --mca btl_sm' ompy", "btl_sm_")
    yield from (Run(f"ompy bench {kind} --sizes 8 --rounds 1") for kind in KINDS)
    yield from btls()
    yield from examples(numpy=False, shown=shown)


def with_fabric() -> Iterator[Run]:
    """With `ompy[ofi]`: whether libfabric is on this machine or not."""
    has_library = Path("/etc/ld.so.cache").read_bytes().find(b"libfabric.so.1") >= 0
    yield Run("ompy-info --plugins", "libfabric .*opened" if has_library else "apt install lib")
    yield Run("ompy sim -n 2 ring.py", "ended at")
    if has_library:
        yield Run("ompy-run -n 2 --mca btl self,ofi python ring.py", "token")


def try_it(environment: Environment, made: Path) -> list[str]:
    """What CI does. Returns what is wrong."""
    environment.install(str(made))
    wrong = environment.documents(installing=False) + environment.run(first(shown=False))
    environment.install("numpy")
    again = [Run("ompy bench object --rounds 1", "ndarray"), Run("ompy sim -n 2 ring.py")]
    wrong += environment.run([*again, *examples(numpy=True, shown=False)])
    environment.install(f"{made}[ofi]")
    wrong += environment.run(with_fabric())
    pure = [Run("ompy-info --version", "interpreted .*OMPY_PURE is set"), *map(Run, PURE_TOO)]
    return wrong + environment.run(pure, OMPY_PURE="1")


def try_the_rest(environment: Environment, made: Path, folder: Path) -> list[str]:
    """What takes minutes. Returns what is wrong."""
    wrong = environment.documents(installing=True)
    environment.install(f"{made}[conformance]")
    names = list(PROJECT["entry-points"]["ompy.btl"])
    wrong += environment.run(Run(f"ompy conformance btl {name}") for name in names)
    wrong += environment.run([Run(f"ompy-run -n 2 python {name}.py") for name in ("ring", "heat")])
    pure = wheel(ROOT, folder / "pure", OMPY_PURE="1")
    environment.install("--force-reinstall", "--no-deps", str(pure))
    environment.install(f"{pure}[build]")
    steps = (
        Run("ompy-info --version", r"interpreted (?s:.)*ompy build"),
        Run("CC=false ompy build", "there is no C compiler", 2),
        Run(STOPPED, r"another one is compiling(?s:.)*interrupted; nothing has changed"),
        Run("ompy-info --version", "interpreted"),
        Run("ompy build", COMPILED),
        Run("ompy build", COMPILED),  # what is there is replaced
        *map(Run, PURE_TOO),
        Run("ompy-info --version", COMPILED),
    )
    for step in steps:
        wrong += environment.run([step], OMPY_BUILD_CACHE=str(CACHE))
    pip("--python", str(environment.home), "uninstall", "-q", "-y", "ompy")
    inside = (path.relative_to(environment.home) for path in environment.home.rglob("*"))
    left = [path for path in inside if "ompy" in str(path)]
    return wrong + [f"uninstalled, {path} is still there" for path in left]


def main() -> None:
    """Do it; exit 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="what takes minutes, too")
    parser.add_argument("--tree", type=Path, help="only unpack the wheel of the tree there")
    parser.add_argument("--here", action="store_true", help="try what is installed here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ompy-wheel-") as name:
        folder = Path(name)
        if given.here:
            wrong = Here(folder).run(first(shown=True))
            print("\n".join(wrong) or f"what is installed in {sys.prefix} works")
            sys.exit(1 if wrong else 0)
        sdist, made = built(folder)
        if given.tree:
            shutil.rmtree(given.tree, ignore_errors=True)
            with zipfile.ZipFile(made) as opened:
                opened.extractall(given.tree)  # noqa: S202 - made by us a moment ago
            (information,) = given.tree.glob("*.dist-info")
            shutil.rmtree(information)  # whose tests run has ompy installed already
            return
        anew = {"OMPY_BUILD_CACHE": ""} if given.all else {}
        wrong = compare(sdist, made, folder / "sdist", **anew)
        environment = Environment(folder)
        wrong += try_it(environment, made)
        if given.all:
            wrong += try_the_rest(environment, made, folder)
    print("\n".join(wrong) or f"{made.name} does what the documents say")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
