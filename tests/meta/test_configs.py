"""Every parameter file in configs/ is taken as it is, and the listing names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ompy.frameworks.catalog import CATALOG
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "configs").glob("*.conf"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_parameter_exists_and_takes_the_value(path: Path) -> None:
    chosen = re.findall(r"^(?:# )?(\w+ = .*)$", path.read_text(), re.MULTILINE)
    assert chosen
    for line in chosen:  # each alone: the commented ones are alternatives
        name, _, value = line.partition(" = ")
        registry = Registry(CATALOG, gather_settings([(name, value)], {}, files=[]))
        registry.check_settings()
        assert registry.variable(name).origin.source == "command line"


def test_all_are_listed() -> None:
    text = (ROOT / "configs" / "README.md").read_text()
    assert set(re.findall(r"^\| `([\w.-]+)`", text, re.MULTILINE)) == {path.name for path in FILES}
