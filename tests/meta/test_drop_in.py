"""The drop-in package `mpi4py`: mpi4py's names, what is not built says so, stubs are whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ompy
import pytest
from ompy import MPI

from tests.support.drop_in_facts import table, unavailable
from tests.support.forms import COMPILED

ROOT = Path(__file__).resolve().parents[2]
DROP_IN = Path(ompy.__file__).parent / "dropin"
# what is another thing here, and why
DIFFERENT = {
    "mpi4py.futures.pool MPIPoolExecutor.__init__": "options without an effect come as any other",
}
MISSING = """
import sys
sys.path.insert(0, {root!r})
from tests.support.drop_in_facts import of_module
for line in open({golden!r}):
    module, name, fact = line.rstrip("\\n").split(" ", 2)
    try:
        found = of_module(module, name, fact)
    except AttributeError:
        found = "nothing"
    if found != fact:
        print(module, name, "|", fact, "|", found)
"""


@pytest.mark.skipif(COMPILED, reason="sources are looked at")
def test_its_names_and_parameters_are_mpi4pys() -> None:
    golden = str(ROOT / "tests" / "golden" / "mpi4py_beside_names.txt")
    code = MISSING.format(root=str(ROOT), golden=golden)
    environment = {**os.environ, "PYTHONPATH": f"{DROP_IN}:{ROOT / 'core'}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    differing = {line.split(" | ")[0]: line for line in done.stdout.splitlines()}
    assert differing.keys() == DIFFERENT.keys(), "\n".join(differing.values())


def test_every_name_of_mpi_is_there() -> None:
    missing = []
    for line in (ROOT / "tests" / "golden" / "mpi4py_names.txt").read_text().splitlines():
        found: Any = MPI
        for part in line.split(" ", 1)[0].split("."):
            found = getattr(found, part, AttributeError)
        if found is AttributeError:
            missing.append(line)
    assert [line.split()[0] for line in missing] == ["__pyx_capi__"]  # there is no C interface


@pytest.mark.parametrize(
    ("call", "what"), [(call, what) for what, calls in unavailable().items() for call in calls]
)
def test_what_is_not_built_names_the_feature(call: str, what: str) -> None:
    owner, _, name = call.rpartition(".")
    handle = {
        "Intracomm": MPI.COMM_SELF,
        "Group": MPI.GROUP_EMPTY,
        "Comm": MPI.COMM_SELF,
    }.get(owner) or (getattr(MPI, owner)() if owner else MPI)
    function = getattr(handle, name)
    code = getattr(function, "__func__", function).__code__
    needed = code.co_argcount - len(getattr(function, "__func__", function).__defaults__ or ())
    bound = int(hasattr(function, "__self__"))
    with pytest.raises(NotImplementedError, match=f"MPI.{call}: {what} are not available"):
        function(*[None] * (needed - bound))


def test_the_page_lists_what_is_not_built() -> None:
    assert table() in (ROOT / "docs" / "mpi4py.md").read_text(), f"write this there:\n{table()}"


def test_stubs_are_what_their_tool_writes() -> None:
    command = [sys.executable, "tools/package", "drop_in_stubs", "--check"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"run tools/package drop_in_stubs\n{done.stdout}{done.stderr}"


def test_every_module_has_a_stub() -> None:
    without = [
        path for path in (DROP_IN / "mpi4py").rglob("*.py") if not path.with_suffix(".pyi").exists()
    ]
    assert without == []


def test_pools_and_tools_are_imported_by_those_who_want_them() -> None:
    code = "import mpi4py.MPI, mpi4py.util, sys; print(*(n for n in sys.modules if 'addons' in n))"
    environment = {**os.environ, "PYTHONPATH": f"{DROP_IN}:{ROOT / 'core'}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


NAMES = """
import pickle, sys
from mpi4py import MPI
kinds = sorted({value for name in dir(MPI) if not name.startswith("_")
                for value in [getattr(MPI, name)] if isinstance(value, type)}, key=str)
print(*(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds))
print(all(pickle.loads(pickle.dumps(kind)) is kind for kind in kinds))
print(repr(MPI.COMM_WORLD).split(" ")[0], type(MPI.Alloc_mem(1)))
MPI.COMM_WORLD.Send(b"", 5)
"""


def test_classes_say_that_they_are_mpi4pys() -> None:
    """As doctests, logs and what looks at `type(comm).__module__` expect."""
    environment = {**os.environ, "PYTHONPATH": f"{DROP_IN}:{DROP_IN.parents[1]}"}
    command = [sys.executable, "-c", NAMES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    names, pickled, texts = done.stdout.splitlines()
    foreign = [name for name in names.split() if not name.startswith("mpi4py.MPI.")]
    assert foreign == ["ompy.mpi.buffers.objects.Pickle"] * COMPILED
    assert len(names.split()) > 20
    assert (pickled, texts) == ("True", "<mpi4py.MPI.Intracomm <class 'mpi4py.MPI.buffer'>")
    assert "\nmpi4py.MPI.Exception: MPI_ERR_RANK" in done.stderr
