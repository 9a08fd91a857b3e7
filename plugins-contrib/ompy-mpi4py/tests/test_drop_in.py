"""The drop-in package as it is installed, beside a real mpi4py and alone."""

from __future__ import annotations

import base64
import hashlib
import os
import site
import subprocess
import sys
import zipfile
from pathlib import Path

import ompy
import pytest

HERE = Path(__file__).resolve().parent.parent
WHICH = "import mpi4py, os; print(os.path.dirname(mpi4py.__file__), mpi4py.__version__)"
REAL = "__version__ = 'real'\n"


def ran(*command: object, **environment: str) -> str:
    """What a command prints; it must end well."""
    found = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command],
        check=False,
        capture_output=True,
        text=True,
        env={**found, **environment},
        timeout=100,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def real_wheel(folder: Path) -> Path:
    """A wheel of a distribution mpi4py, with the files and nothing of the real one."""
    info = "mpi4py-9.9.dist-info"
    files = {
        "mpi4py/__init__.py": REAL,
        "mpi4py/MPI.py": "COMM_WORLD = 'real'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: mpi4py\nVersion: 9.9\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheel = folder / "mpi4py-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        record = []
        for name, text in files.items():
            archive.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record.append(f"{name},sha256={digest.decode().rstrip('=')},{len(text)}\n")
        archive.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels of both distributions, by name."""
    folder = tmp_path_factory.mktemp("wheels")
    ran(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
        "-w", folder, HERE)  # fmt: skip
    (ours,) = folder.glob("ompy_mpi4py-*.whl")
    return {"ompy-mpi4py": ours, "mpi4py": real_wheel(folder)}


class Environment:
    """An empty environment that sees ompy, with pip working on it from outside."""

    def __init__(self, folder: Path) -> None:
        ran(sys.executable, "-m", "venv", "--without-pip", folder)
        self.python = folder / "bin" / "python"
        (self.packages,) = folder.glob("lib/python*/site-packages")
        paths = [str(Path(ompy.__file__).parent.parent), *site.getsitepackages()]
        (self.packages / "zz_ompy.pth").write_text("\n".join(paths) + "\n")

    def pip(self, *words: object) -> str:
        return ran(sys.executable, "-m", "pip", "--python", self.python,
                   "--disable-pip-version-check", *words)  # fmt: skip

    def install(self, wheel: Path) -> None:
        # it sees the environment of this test, which may have them: that is no reason not to
        self.pip("install", "-q", "--no-deps", "--no-index", "--ignore-installed", wheel)

    def finds(self) -> str:
        """Whose mpi4py is imported."""
        where, version = ran(self.python, "-c", WHICH).split()
        if version == "real":
            assert where == str(self.packages / "mpi4py")
            said = "from mpi4py import MPI; print(MPI.COMM_WORLD)"
            assert ran(self.python, "-c", said) == "real"
            return "real"
        assert Path(where).parts[-3:] == ("ompy", "dropin", "mpi4py")
        return "ompy"


@pytest.mark.parametrize("first", ["mpi4py", "ompy-mpi4py"])
def test_a_real_one_stays_whole(tmp_path: Path, wheels: dict[str, Path], first: str) -> None:
    place = Environment(tmp_path / "place")
    order = sorted(wheels, key=lambda name: name != first)
    for name in order:
        place.install(wheels[name])
    assert place.finds() == "real"
    place.pip("uninstall", "-q", "-y", first)
    assert place.finds() == ("ompy" if first == "mpi4py" else "real")
    if first == "mpi4py":
        assert not (place.packages / "mpi4py").exists()
    else:
        assert (place.packages / "mpi4py" / "__init__.py").read_text() == REAL
        left = [path for path in place.packages.rglob("*") if path.is_file()]
        assert not [path for path in left if "ompy_mpi4py" in str(path.relative_to(place.packages))]
    place.install(wheels[first])
    assert place.finds() == "real"


def test_nothing_of_ours_is_in_its_folder(wheels: dict[str, Path]) -> None:
    names = zipfile.ZipFile(wheels["ompy-mpi4py"]).namelist()
    assert not [name for name in names if name.startswith("mpi4py/")]
    assert "ompy_mpi4py.pth" in names
    assert not [name for name in names if "stubs" in name and name.endswith(".py")]


def test_the_environment_is_sound() -> None:
    ran(sys.executable, "-m", "pip", "check", "--disable-pip-version-check")


def test_plain_python_is_a_job_of_one() -> None:
    code = "from mpi4py import MPI; import ompy.MPI; print(MPI is ompy.MPI, MPI.COMM_WORLD.size)"
    assert ran(sys.executable, "-c", code) == "True 1"
    code = "import mpi4py.typing, sys; print('ompy.MPI' in sys.modules)"
    assert ran(sys.executable, "-c", code) == "False"


def test_ranks_have_it() -> None:
    code = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))"
    run = Path(sys.executable).parent / "ompy-run"
    assert ran(run, "-n", 2, sys.executable, "-c", code).split() == ["2", "2"]


def test_a_real_one_wherever_it_is_wins(tmp_path: Path) -> None:
    real = tmp_path / "mpi4py"
    real.mkdir()
    (real / "__init__.py").write_text(REAL)
    before = ran(sys.executable, "-c", WHICH, PYTHONPATH=str(tmp_path))
    assert before == f"{real} real"
    behind = f"import sys; sys.path.append({str(tmp_path)!r}); {WHICH}"
    assert ran(sys.executable, "-c", behind) == f"{real} real"
    finder = (
        "import sys\nfrom importlib.machinery import PathFinder\n"
        "class Editable:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        if name == 'mpi4py':\n"
        f"            return PathFinder.find_spec(name, [{str(tmp_path)!r}])\n"
        "sys.meta_path.append(Editable)\n"
    )
    assert ran(sys.executable, "-c", finder + WHICH) == f"{real} real"


def test_a_type_checker_finds_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from typing import assert_type\n"
        "from mpi4py import MPI, rc\n"
        "from mpi4py.typing import BufSpec\n"
        "def call(buf: BufSpec) -> None:\n"
        "    assert_type(MPI.COMM_WORLD.Isend(buf, 0), MPI.Request)\n"
        "rc(threads=False)\n"
    )
    ran(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir",
        tmp_path / "cache", program)  # fmt: skip
