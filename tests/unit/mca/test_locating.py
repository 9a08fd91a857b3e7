"""Source files, found without importing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ompy.mca.plugins.locating import source_file


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages none of which can be imported."""
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("quarry", "quarry/inner", "quarry_space"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("quarry/__init__", "quarry/inner/__init__", "quarry/inner/part", "quarry_single"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported')")
    (tmp_path / "quarry_space" / "part.py").write_text("raise SystemExit('imported')")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("quarry:COMPONENT", "quarry/__init__.py"),
        ("quarry.inner:A.B", "quarry/inner/__init__.py"),
        ("quarry.inner.part:COMPONENT", "quarry/inner/part.py"),
        ("quarry.inner.part", "quarry/inner/part.py"),
        ("quarry_single:COMPONENT", "quarry_single.py"),
        ("quarry_space.part:COMPONENT", "quarry_space/part.py"),
        ("quarry_space:COMPONENT", ""),
        ("quarry.nothing:COMPONENT", ""),
        ("quarry_single.nothing:COMPONENT", ""),
        ("no_such_module_anywhere:COMPONENT", ""),
        (":COMPONENT", ""),
        ("", ""),
        (".relative:COMPONENT", ""),
        ("quarry..inner:COMPONENT", ""),
        ("sys:path", ""),
    ],
)
def test_file(tree: Path, target: str, expected: str) -> None:
    assert source_file(target) == (str(tree / expected) if expected else "")
    assert not {name for name in sys.modules if name.startswith("quarry")}


def test_a_loaded_module_tells_itself() -> None:
    assert (
        source_file("ompy.mca.plugins.locating:source_file")
        == sys.modules["ompy.mca.plugins.locating"].__file__
    )


def test_an_odd_module_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "odd_module", object())
    assert source_file("odd_module:COMPONENT") == ""
    assert source_file("odd_module.inner:COMPONENT") == ""
