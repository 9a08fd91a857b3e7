"""`ompy build` puts all extensions into an installation, or nothing."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner
from ompy.cli import build as command
from ompy.cli import forms
from ompy.cli.building import compiling, installing
from ompy.cli.building.compiling import suffix

HELD = (signal.SIGUSR1,)


class Place:
    """An installation with two modules, an extension that is listed, and one that is not."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "site-packages"
        self.made = folder / "tree"
        information = self.root / "ompy-0.1.0.dist-info"
        for path in (
            self.root / "ompy",
            self.root / "ompy_components",
            self.made / "ompy",
            information,
        ):
            path.mkdir(parents=True)
        self.record = information / "RECORD"
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: ompy\nVersion: 0.1.0\n")
        names = ["__init__.py", "kept.py", "cold.py", f"gone{suffix()}", f"cold{suffix()}"]
        for name in names:
            (self.root / "ompy" / name).write_text("before")
        listed = [f"ompy/{name},," for name in names if name != f"cold{suffix()}"]
        rows = [*listed, "../../bin/ompy,,", "ompy-0.1.0.dist-info/RECORD,,"]
        self.record.write_text("".join(f"{row}\n" for row in rows))
        self.files = [self.made / "ompy" / f"kept{suffix()}", self.made / "ompy" / f"new{suffix()}"]
        for path in self.files:
            path.write_text("after")

    def contents(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setattr(
        metadata,
        "distribution",
        lambda name: next(iter(metadata.distributions(name=name, path=[str(made.root)]))),
    )
    return made


def test_extensions_come_and_those_of_before_go(place: Place) -> None:
    installing.install_extensions(place.files, place.made, place.root, HELD)
    names = {path.name for path in (place.root / "ompy").iterdir()}
    assert names == {"__init__.py", "kept.py", "cold.py", f"kept{suffix()}", f"new{suffix()}"}
    rows = place.record.read_text().splitlines()
    assert [row.partition(",")[0] for row in rows] == [
        "ompy/__init__.py",
        "ompy/kept.py",
        "ompy/cold.py",
        "../../bin/ompy",
        "ompy-0.1.0.dist-info/RECORD",
        f"ompy/kept{suffix()}",
        f"ompy/new{suffix()}",
    ]
    assert rows[-1].split(",")[1].startswith("sha256=")
    again = place.record.read_text()
    installing.install_extensions(place.files, place.made, place.root, HELD)
    assert place.record.read_text() == again


def test_a_copy_that_fails_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = place.contents()
    copy = shutil.copyfile

    def full(source: Path, target: Path) -> None:
        copy(source, target)
        if "new" in source.name:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        installing.install_extensions(place.files, place.made, place.root, HELD)
    assert place.contents() == before


def test_a_signal_while_names_change_comes_too_late(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    replace = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGUSR1)  # to this thread: xdist has others
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    try:
        installing.install_extensions(place.files, place.made, place.root, HELD)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not seen
    assert all((place.root / "ompy" / path.name).read_text() == "after" for path in place.files)


def build(place: Place, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """The command, on that installation."""
    monkeypatch.setattr(command.ompy, "__file__", str(place.root / "ompy" / "__init__.py"))
    monkeypatch.setattr(command, "is_editable", lambda: False)
    done = CliRunner().invoke(command.build)
    return done.exit_code, done.output


def test_a_place_that_cannot_be_written_to(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = place.root / "ompy" / "inner"
    inner.mkdir()
    allowed = os.access
    for shut in (place.record, place.root / "ompy_components", inner):
        monkeypatch.setattr(
            os, "access", lambda path, mode, shut=shut: path != shut and allowed(path, mode)
        )
        code, said = build(place, monkeypatch)
        assert code == 2
        assert f"{shut} cannot be written to" in said


def test_what_pip_has_not_installed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.record.unlink()
    code, said = build(place, monkeypatch)
    assert code == 2
    assert "install ompy with pip" in said


def test_two_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    other = os.open(place.root / "ompy", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    try:
        code, said = build(place, monkeypatch)
    finally:
        os.close(other)
    assert code == 2
    assert "another one is compiling" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_changes_nothing(
    number: signal.Signals,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    before = place.contents()
    handler = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
    request.addfinalizer(partial(signal.signal, number, signal.signal(number, handler)))  # nohup's
    monkeypatch.setattr(compiling, "probe_compiler", lambda: os.kill(os.getpid(), number))
    code, said = build(place, monkeypatch)
    assert code == 128 + number
    assert "nothing has changed" in said
    assert place.contents() == before
    assert signal.getsignal(number) == handler


def test_a_disk_that_is_full_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    before = place.contents()
    monkeypatch.setattr(compiling, "probe_compiler", lambda: None)
    monkeypatch.setattr(compiling, "copy_tree", full)
    code, said = build(place, monkeypatch)
    assert code == 1
    assert "No space left on device" in said
    assert "Traceback" not in said
    assert place.contents() == before


def test_headers_of_python_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_extension(*arguments: object) -> None:
        raise compiling.CompilerError("fatal error: Python.h: No such file or directory")

    monkeypatch.setattr(compiling, "compile_extension", compile_extension)
    with pytest.raises(compiling.CompilerError, match="apt install python3-dev"):
        compiling.probe_compiler()


def test_an_installation_has_its_record_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ompy"
    monkeypatch.setattr(forms.ompy, "__file__", str(package / "__init__.py"))
    (tmp_path / "ompy_mpi4py-1.0.dist-info").mkdir()  # another distribution's
    assert forms.is_editable()
    (tmp_path / "ompy-0.1.0.dist-info").mkdir()
    assert not forms.is_editable()
