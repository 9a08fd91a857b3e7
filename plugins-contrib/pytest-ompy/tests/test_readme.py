"""What the README shows is what one sees."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text()
VARIES = (
    (re.compile(r"0x[0-9a-f]+"), "0x*"),
    (re.compile(r"in \d+\.\d\ds"), "in *s"),
    (re.compile(r"=+ (.* in \*s) =+"), r"*\1*"),
    (re.compile(r'File "\.\.\./(.*)", line \d+'), r'File "*/\1", line *'),
    (re.compile(r"\d+ bytes with tag"), "* bytes with tag"),
    # which seeds fail may change with every change of the network's model
    (re.compile(r"\(\d+ of 20 seeds failed: [\d, ]+\)"), "(* of 20 seeds failed: *)"),
    (re.compile(r"seed \d+"), "seed *"),
)
GLOB = re.compile(r"([\[\]?*])")


def blocks(kind: str) -> list[list[str]]:
    return [text.splitlines() for text in re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)]


def pattern(line: str) -> str:
    """A shown line as a pattern: brackets are meant, times and addresses vary."""
    text = GLOB.sub(r"[\1]", line)
    for varying, replacement in VARIES:
        text = varying.sub(replacement, text)
    return text


@pytest.fixture
def shown_files(pytester) -> None:
    for first, *lines in blocks("python"):
        name = re.fullmatch(r"# (test_\w+\.py)", first)[1]
        (pytester.path / name).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("block", blocks("console"), ids=lambda block: block[0][2:])
@pytest.mark.usefixtures("shown_files")
def test_sessions(pytester, run, monkeypatch, block) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    command, *lines = block
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "pytest"
    result = run(*arguments)
    result.stdout.fnmatch_lines([pattern(line) for line in lines if line not in {"", "..."}])


def test_each_argument_and_option_is_told(run) -> None:
    shown = run("--help", "--markers").stdout.str()
    options = set(re.findall(r"--ompy-[a-z-]+", shown)) | set(re.findall(r"ompy_[a-z]+", shown))
    assert len(options) >= 7
    marker = re.search(r"ompy\((.*?)\)", run("--markers").stdout.str())[1].split(", ")
    told = [*options, *marker]
    assert not [name for name in told if not re.search(rf"\| `{name}\b", README)]


def test_paths_exist() -> None:
    folder = Path(__file__).parents[1] / "src" / "pytest_ompy"
    named = set(re.findall(r"`(\w+\.py)`", README.partition("## How it works")[2]))
    files = {path.name for path in folder.glob("*.py")}
    assert named == files - {"__init__.py"}
