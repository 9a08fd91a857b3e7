"""Which files are the program's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy.check.callees import program_files

ROOT = Path(__file__).parents[3]


def test_ours_are_not_the_program_s_even_where_it_runs_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    files = program_files()
    assert not [name for name in files if name.startswith((f"{ROOT}/core", f"{ROOT}/components"))]
    assert any(name.startswith(f"{ROOT}/tests") for name in files)
