"""Modules that are imported before anybody needs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy.mca.plugins.loading import import_ahead


@pytest.mark.parametrize("line", ["import no_such_package.part", "from click import no_such_name"])
def test_what_needs_a_strangers_package_is_left_out(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needs_a_package.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    assert import_ahead("needs_a_package") is None


@pytest.mark.parametrize(
    "line", ["import ompy.no_such_module", "from ompy.mca import no_such_name", "1 / 0"]
)
def test_what_is_wrong_with_ours_is_told(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "is_broken.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises((ImportError, ZeroDivisionError)):
        import_ahead("is_broken")


def test_the_module_itself() -> None:
    found = import_ahead("ompy.mca.plugins.loading")
    assert found is not None
    assert found.import_ahead is import_ahead
