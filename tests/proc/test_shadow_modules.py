"""Files of the working directory that are named like modules: no process of ours imports one.

The user's own program is elsewhere, so it is not its folder that Python would import from.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import ompy
import ompy_components
import pytest

from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc

BIN = Path(sys.executable).parent
IMPORTED = re.compile(r"^\s*(?:import|from) (\w+)", re.MULTILINE)
PATIENCE = 120  # s; far beyond what anything here takes, beside many others too
OURS = [Path(ompy.__file__).parent, Path(ompy_components.__path__[0])]
# a shadow tells of itself, and is then of no more use to whoever wanted the real one
SHADOW = """
import os as _os, sys as _sys
_file = _os.open({log!r}, _os.O_WRONLY | _os.O_APPEND | _os.O_CREAT, 0o644)
_os.write(_file, (__name__ + " in " + " ".join(_sys.orig_argv) + "\\n").encode())
_os._exit(77)
"""
PROGRAM = "from mpi4py import MPI\nprint(MPI.COMM_WORLD.allreduce(1))\n"
SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do case "$1" in -l|-p|-o) shift;; esac; shift; done
shift
exec sh -c "$*"
"""


@cache
def imported() -> frozenset[str]:
    """Top names of all that our own code imports, and a few that the interpreter looks for."""
    found = {"sitecustomize", "usercustomize", "conftest", "ompy", "ompy_components", "mpi4py"}
    for root in OURS:
        for file in root.rglob("*.py"):
            found.update(IMPORTED.findall(file.read_text()))
    return frozenset(found | (sys.stdlib_module_names - {"this", "antigravity"}))


class Place:
    """A folder full of shadows, and beside it the user's program.

    Attributes:
        folder: of the shadows.
        program: path of the program.
        shell: path of a remote shell that stays here.
    """

    def __init__(self, path: Path) -> None:
        self.folder, beside = path / "here", path / "beside"
        self.folder.mkdir()
        beside.mkdir()
        self._log = path / "imported"
        text = SHADOW.format(log=str(self._log))
        for name in imported():
            (self.folder / f"{name}.py").write_text(text)
        self.program = str(beside / "program.py")
        Path(self.program).write_text(PROGRAM)
        self.shell = str(beside / "rsh")
        Path(self.shell).write_text(SHELL)
        os.chmod(self.shell, 0o755)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        self._log.unlink(missing_ok=True)
        environment = {**os.environ, **variables}
        return subprocess.run(
            words, cwd=self.folder, env=environment, capture_output=True, text=True,
            timeout=PATIENCE, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def shadows(self) -> str:
        """Which were imported, and by whom."""
        return self._log.read_text() if self._log.exists() else ""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("shadows"))


ALWAYS = {"ranks in forks", "other hosts", "bench", "info", "help"}  # tools/nightly.py does all
# name: words of a command; {program} and {shell} are of the place
COMMANDS = {
    "ranks in forks": "ompy-run -n 2 {python} {program}",
    "ranks executed": "ompy-run --mca plm_base_fork_ranks 0 -n 2 {python} {program}",
    "watched and traced": "ompy-run -n 2 --mca btl self,tcp --trace {other}/t --watch-rails"
    " --record-rails {other}/r --fault delay:delay=1ms {python} {program}",
    "other hosts": "ompy-run --mca plm_rsh_agent {shell} --host a,b {python} {program}",
    "a tree of agents": "ompy-run --mca plm_rsh_agent {shell} --mca plm_base_radix 1"
    " --host a,b,c {python} {program}",
    "bench": "ompy bench latency --sizes 8 --rounds 1",
    "bench gasnet": "ompy bench gasnet --sizes 8 --rounds 1",
    "explain": "ompy explain --size 1m",
    "sim": "ompy sim {program}",
    "sim, many": "ompy sim --seeds 2 --jobs 2 --keep {other}/k {program}",
    "info": "ompy-info --all",
    "info, plugins": "ompy-info --plugins",
    "info, version": "ompy-info --version",
    "conformance": "ompy conformance btl self --test test_import_is_light"
    " --test test_hash_seed_has_no_part",
    "completion": "ompy completion bash",
    "help": "ompy-run --help",
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS if THOROUGH else [n for n in COMMANDS if n in ALWAYS])
def test_a_command_imports_no_shadow(place: Place, tmp_path: Path, name: str) -> None:
    values = {"python": sys.executable, "program": place.program, "shell": place.shell}
    words = [word.format(**values, other=tmp_path) for word in COMMANDS[name].split()]
    done = place.run(str(BIN / words[0]), *words[1:])
    assert (place.shadows(), done.returncode) == ("", 0), done.stderr
    if "{program}" in COMMANDS[name] and "sim" not in COMMANDS[name]:
        said = done.stdout.splitlines()
        assert said == [str(len(said))] * len(said)
    if (tmp_path / "t").exists():
        shown = place.run(str(BIN / "ompy"), "trace", str(tmp_path / "t"), "--text")
        assert (place.shadows(), shown.returncode) == ("", 0), shown.stderr


@pytest.mark.parametrize("command", ["ompy", "ompy-run", "ompy-info"][: 3 if THOROUGH else 1])
def test_completion_imports_no_shadow(place: Place, command: str) -> None:
    variable = f"_{command.replace('-', '_').upper()}_COMPLETE"
    asked = {variable: "bash_complete", "COMP_WORDS": f"{command} --mca bt", "COMP_CWORD": "2"}
    done = place.run(str(BIN / command), **asked)
    assert (place.shadows(), done.returncode) == ("", 0), done.stderr


def test_the_passive_agent_imports_no_shadow(place: Place) -> None:
    """Started by the first rank of a host, in whatever directory that is."""
    variables = {
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "TORCHELASTIC_RUN_ID": f"shadows-{os.getpid()}",
        "PYTHONPATH": f"{Path(ompy.__file__).parent / 'dropin'}",
    }

    def rank(number: str) -> subprocess.CompletedProcess[str]:
        own = {**variables, "RANK": number, "LOCAL_RANK": number}
        return place.run(sys.executable, place.program, **own)

    with ThreadPoolExecutor(2) as pool:
        for done in pool.map(rank, "01"):
            assert (place.shadows(), done.returncode, done.stdout) == ("", 0, "2\n"), done.stderr


@pytest.mark.nightly
def test_all_pythons_for_our_own_code_leave_the_working_directory_out() -> None:
    """What is not run above, as srun's watchers, at least says so where it is started."""
    started = 0
    for root in OURS:
        for file in root.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                words = [ast.unparse(e) for e in getattr(node, "elts", ())]
                if "sys.executable" in words and {"'-m'", "'-c'"} & set(words):
                    started += 1
                    if any("BEGAN_IN" in word for word in words):
                        continue  # ranks are forks of it: its code takes the directory off
                    assert words[words.index("sys.executable") + 1] == "*OWN_CODE", (file, words)
    assert started >= 5


def test_a_program_beside_the_shadows_keeps_pythons_own_rule(place: Place, tmp_path: Path) -> None:
    """It imports what lies beside it, as plain Python has it; with -P it does not."""
    (tmp_path / "heapq.py").write_text("mine = True\n")
    program = tmp_path / "program.py"
    program.write_text("import heapq\nprint(hasattr(heapq, 'mine'))\nimport mpi4py.MPI\n")
    for options, said in (([], "True\n"), (["-P"], "False\n"))[: 2 if THOROUGH else 1]:
        words = ["-n", "1", sys.executable, *options, str(program)]
        done = place.run(str(BIN / "ompy-run"), *words)
        assert (done.returncode, done.stdout) == (0, said), done.stderr
    assert not place.shadows()


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_forks_see_the_flags_of_a_plain_interpreter(place: Place) -> None:
    """Agents of other hosts keep the working directory out in a way that programs cannot see."""
    code = "import sys; print(sys.flags.safe_path, sys.path[0] == '', sys.argv, len(sys.orig_argv))"
    (elsewhere := Path(place.program).parent / "empty").mkdir()
    where = ["--wdir", str(elsewhere), "-n", "1", "--host", "a"]
    words = ["--mca", "plm_rsh_agent", place.shell, *where, sys.executable, "-c", code]
    seen = set()
    for forked in ("0", "1"):
        done = place.run(str(BIN / "ompy-run"), "--mca", "plm_base_fork_ranks", forked, *words)
        assert done.returncode == 0, done.stderr
        seen.add(done.stdout)
    assert seen == {"False True ['-c'] 3\n"}
    assert not place.shadows()
