"""The README of a folder names files that are there."""

from __future__ import annotations

import os.path
import re
from fnmatch import filter as matches
from pathlib import Path

import pytest

from tests.meta.test_documents import ROOT, braces

FOLDERS = ("core", "components", "plugins-contrib", "configs", "examples", "tests", "tools")
READMES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("README.md"))
# `folder/file`, `folder/`, `file.py`
PATH = re.compile(r"`([\w{},.*-]+/[\w{},.*/-]*|[\w-]+\.(?:py|pxd|md|toml|csv|json))`")
OTHERS = {"address/bits", "heapq.py"}  # a form of addresses, a module of Python's
UNWANTED = {".git", ".venv", "build", "__pycache__", "node_modules"}


def tree() -> list[str]:
    """Every file and folder."""
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = sorted(set(folders) - UNWANTED)
        found += [f"/{Path(folder, name).relative_to(ROOT)}" for name in (*folders, *files)]
    return found


TREE = tree()


def is_there(page: Path, name: str) -> bool:
    """Whether the tree has such a path: beside the page, or anywhere with this end."""
    end = name.rstrip("/")
    if end.startswith(".."):
        return any((page.parent / path).exists() for path in (end, f"{end}.py"))
    return any(matches(TREE, f"*/{path}") for path in (end, f"{end}.py"))


def missing(page: Path) -> list[str]:
    """Paths that a page names, and that are nowhere."""
    named = {path for name in PATH.findall(page.read_text()) for path in braces(name)}
    return sorted(path for path in named - OTHERS if not is_there(page, path))


@pytest.mark.parametrize("page", READMES, ids=lambda page: str(page.parent.relative_to(ROOT)))
def test_what_a_readme_names_is_there(page: Path) -> None:
    assert missing(page) == []


def test_what_is_missing_is_found(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("`pml/ob1/module.py` `ob1/{module,modul}.py` `../gone.py` `no_file.py` `a/b/`")
    assert missing(page) == ["../gone.py", "a/b/", "no_file.py", "ob1/modul.py"]
