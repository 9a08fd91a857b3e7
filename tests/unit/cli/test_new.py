"""`ompy new`: what it writes, and what it refuses without a trace."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ompy.cli.main import main
from ompy.cli.new import distribution
from ompy.cli.new.kinds import KINDS
from ompy.frameworks.catalog import CATALOG

ROOT = Path(__file__).resolve().parents[3]
UDPLITE = ROOT / "plugins-contrib" / "ompy-btl-udplite"


def new(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(main, ["new", *words, "--into", str(folder)])


def refused(folder: Path, *words: str) -> str:
    """What it says, having written nothing."""
    before = sorted(folder.rglob("*"))
    done = new(folder, *words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("ompy new: error: ")
    assert done.stderr.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
    return done.stderr


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_is_written(tmp_path: Path, kind: str) -> None:
    done = new(tmp_path, kind, "my_own2")
    assert done.exit_code == 0, done.output
    folder = tmp_path / f"ompy-{kind}-my-own2"
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]
    assert f"cd {folder}\n" in done.stdout
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["name"] == folder.name
    ((group, points),) = project["entry-points"].items()
    assert group == f"ompy.{KINDS[kind].framework}"
    module, _, attribute = points["my_own2"].partition(":")
    source = (folder / f"{module.replace('.', '/')}.py").read_text()
    assert not attribute or f"{attribute} = MyOwn2Component()" in source
    assert "my_own2" in source
    for path in folder.rglob("*.*"):
        assert "$" not in path.read_text(), path
        if path.suffix == ".py":
            ast.parse(path.read_text())


def test_the_contract_is_todays() -> None:
    today = {info.name: info.api for info in CATALOG}
    for kind in KINDS.values():
        assert today.get(kind.framework, (1, 0)) == kind.api


def test_folder_and_files_have_the_modes_of_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert new(tmp_path, "coll", "mine").exit_code == 0
    finally:
        os.umask(before)
    assert (tmp_path / "ompy-coll-mine").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_sources_are_as_ruff_wants_them(tmp_path: Path, kind: str) -> None:
    assert new(tmp_path, kind, "mine").exit_code == 0
    folder = tmp_path / f"ompy-{kind}-mine"
    chosen = ["--line-length", "100", "--select", "E,F,I,UP,B,ARG,PL", "--ignore", "ARG002,PLR"]
    for words in (["check", *chosen], ["format", "--check", "--line-length", "100"]):
        command = [sys.executable, "-m", "ruff", words[0], "--isolated", *words[1:], "."]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_the_btl_is_the_tutorials() -> None:
    """One text: what the template has is what docs/write-a-btl.md builds."""
    made = distribution.rendered(KINDS["btl"], "udplite")["ompy_btl_udplite/component.py"]
    shown = (UDPLITE / "ompy_btl_udplite" / "component.py").read_text()
    for ours, theirs in (("UdpLiteModule", "UdpliteModule"), ("UdpLite(", "UdpliteComponent(")):
        shown = shown.replace(ours, theirs)
    assert made == shown


@pytest.mark.parametrize("name", ["Ring", "9lives", "my-ring", "r ing", "../x", "class", "ö"])
def test_bad_names(tmp_path: Path, name: str) -> None:
    assert "is no name for a component" in refused(tmp_path, "coll", name)


def test_names_that_are_taken(tmp_path: Path) -> None:
    said = refused(tmp_path, "coll", "tuned")
    assert "ompy 0.1.0 has coll tuned already: choose another name" in said
    assert "has btl vader already" in refused(tmp_path, "btl", "vader"), "an alias"
    assert "stands for the framework" in refused(tmp_path, "btl", "base")
    assert new(tmp_path, "osc", "tuned").exit_code == 0, "another framework's name is free"


def test_unknown_kinds(tmp_path: Path) -> None:
    said = refused(tmp_path, "col", "mine")
    assert "there is no kind 'col'; did you mean coll? (there are btl, coll, hook, nic" in said


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "ompy-coll-mine").mkdir()
    assert "ompy-coll-mine is there already" in refused(tmp_path, "coll", "mine")
    (tmp_path / "ompy-pml-mine").symlink_to("nowhere")
    assert "ompy-pml-mine is there already" in refused(tmp_path, "pml", "mine")
    (tmp_path / "ompy-osc-mine").write_text("a file")
    assert "ompy-osc-mine is there already" in refused(tmp_path, "osc", "mine")


def test_folders_that_cannot_be_written(tmp_path: Path) -> None:
    done = new(tmp_path / "nowhere", "coll", "mine")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "nothing can be written in" in done.stderr
    assert "No such file or directory" in done.stderr
    (tmp_path / "file").write_text("")
    assert "Not a directory" in new(tmp_path / "file", "coll", "mine").stderr
    assert new(Path("/proc/self"), "coll", "mine").exit_code == 2


def test_half_of_it_is_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full in the middle, or the user ends it."""
    write = Path.write_text
    for problem in (OSError(28, "No space left on device"), KeyboardInterrupt()):

        def fails(path: Path, *words: str, why: BaseException = problem, **more: str) -> int:
            if path.name == "test_conformance.py":
                raise why
            return write(path, *words, **more)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_text", fails)
            done = new(tmp_path, "coll", "mine")
        assert done.exit_code in (1, 2)
        assert list(tmp_path.iterdir()) == []


def test_without_two_words(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["new"]).exit_code == 2
    assert CliRunner().invoke(main, ["new", "coll"]).exit_code == 2
