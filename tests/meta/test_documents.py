"""What the documents name exists, and what the README shows is what one sees."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ("docs/faults.md", "docs/gasnet.md", "docs/seeing.md", "docs/simulation.md")
DOCUMENTS = ("README.md", "ARCHITECTURE.md", "docs/deviations.md", *GUIDES)
# where the documents' short paths begin
BASES = (ROOT, ROOT / "docs", ROOT / "core" / "ompy", ROOT / "components" / "ompy_components")
OUTPUT = "the token went around 4 rank(s) and collected 6"
BIN = Path(sys.executable).parent


def setups() -> list[str]:
    """The README's two commands."""
    return re.findall(r"^    (python3 -m venv .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)


def braces(text: str) -> list[str]:
    """`a/{b,c}/d` as a/b/d and a/c/d."""
    found = re.search(r"\{([^}]*)\}", text)
    if not found:
        return [text]
    words = found.group(1).split(",")
    return [text[: found.start()] + word + text[found.end() :] for word in words]


def session() -> list[tuple[str, list[str]]]:
    """The commands after `$ ` in the README's indented blocks, each with what follows it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"(?:^    .*\n|^\n)+", (ROOT / "README.md").read_text(), re.MULTILINE):
        lines = [line[4:] for line in block.splitlines()]
        for line in lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and any(other.startswith("$ ") for other in lines) and line:
                found[-1][1].append(line)
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    text = (ROOT / document).read_text()
    named = set(re.findall(r"`([\w{},.-]+/[\w{},./-]*)`", text))
    named |= set(re.findall(r"\]\(([\w./-]+)\)", text))
    assert named
    missing = [
        path
        for name in named
        for path in braces(name)
        if not any((base / path).exists() for base in BASES)
    ]
    assert not missing


def test_ci_runs_the_second_command() -> None:
    first, second = setups()
    assert "ompy-run -n 4" in first
    assert second in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.proc
def test_what_the_readme_shows(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    shown = session()
    assert len(shown) > 3
    for command, expected in shown:
        if command.startswith("cat "):
            (tmp_path / command[4:]).write_text("\n".join(expected) + "\n")
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == (2 if "error" in "".join(expected) else 0), done.stderr
        said = (done.stdout + done.stderr).splitlines()
        if expected:  # ranks write in no order, and times differ
            assert sorted(map(timeless, said)) == sorted(map(timeless, expected)), command


def timeless(line: str) -> str:
    """A line without the figures that differ from run to run."""
    return re.sub(r" +\d+\.\d{3} ", " (us) ", line)


@pytest.mark.proc
@pytest.mark.network
@pytest.mark.timeout(600)
def test_the_first_command_in_a_fresh_copy(tmp_path: Path) -> None:
    """Without a C compiler: nothing needs one."""
    probe = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path)]
    reached = subprocess.run([*probe, "pluggy"], capture_output=True, text=True)
    if reached.returncode:
        pytest.skip(f"no package index here: {reached.stderr.strip().splitlines()[-1:]}")
    unwanted = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".*_cache")
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, ignore=unwanted)
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run(
        setups()[0],
        shell=True,
        cwd=copy,
        env={**kept, "CC": "false", "CXX": "false"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == OUTPUT
