"""docs/write-a-btl.md, followed to the letter: its files, its commands, and what they print."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.effort import THOROUGH

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "write-a-btl.md"
FINISHED = ROOT / "plugins-contrib" / "ompy-btl-udplite"
COMPONENT = "ompy_btl_udplite/component.py"
FAILOVER = "ompy_btl_udplite/failover.py"
BIN = Path(sys.executable).parent
LINES = 80  # the page's promise, imports aside
MORE_LINES = 99  # and what failover adds
SCRIPTS = ("ompy", "ompy-info", "ompy-run", "pip", "pytest")
ENOUGH = 8  # commands there are at least


class File(NamedTuple):
    path: str
    text: str


class Command(NamedTuple):
    line: str
    printed: list[str]


def steps() -> list[File | Command]:
    """What the page asks for, in its order.

    A fenced block after a line "`path`:" is a file. In indented blocks a line that begins with
    `$ ` is a command; what it prints follows.
    """
    found: list[File | Command] = []
    lines = iter(TUTORIAL.read_text().splitlines())
    path = ""
    for line in lines:
        if line.startswith("```"):
            assert path, f"no name above {line}"
            found.append(File(path, "".join(fenced(lines))))
            path = ""
        elif line.startswith("    $ "):
            found.append(Command(line[6:], []))
        elif line.startswith("    ") or not line:
            if found and isinstance(found[-1], Command):
                found[-1].printed.append(line[4:])
        else:
            named = re.fullmatch(r"`([\w./-]+)`:", line)
            path = named[1] if named else ""
            if found and isinstance(found[-1], Command):
                found.append(File("", ""))  # prose: the block is over
    return [step for step in found if step != File("", "")]


def fenced(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line == "```":
            return
        yield line + "\n"
    raise AssertionError("a fence is not closed")


def pattern(printed: list[str]) -> re.Pattern[str]:
    """What may be printed: spaces and numbers may differ, `...` is anything."""
    while printed and not printed[-1]:
        printed = printed[:-1]
    parts = []
    for line in printed:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
            continue
        words = [re.escape(word) for word in line.split()]
        text = r"[ ]+".join(words).replace(re.escape("..."), ".+?")
        parts.append(r"[ ]*" + re.sub(r"\d+", r"\\d+", text) + r"[ ]*\n")
    return re.compile("".join(parts))


def environment(folder: Path) -> dict[str, str]:
    """A virtual environment of its own, in which what is installed here can be imported too."""
    home = folder / "environment"
    venv.create(home, symlinks=True)
    site = next(home.glob("lib/python*/site-packages"))
    ours = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    (site / "ours.pth").write_text(f"import site; site.addsitedir({str(ours)!r})\n")
    for name in SCRIPTS:
        _, rest = (BIN / name).read_text().split("\n", 1)
        (home / "bin" / name).write_text(f"#!{home / 'bin' / 'python'}\n{rest}")
        (home / "bin" / name).chmod(0o755)
    return {
        **{name: text for name, text in os.environ.items() if "OMPY_MCA" not in name},
        "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_BUILD_ISOLATION": "0",  # "no": the build backend is installed here
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def run(line: str, folder: Path, environ: dict[str, str]) -> tuple[str, Path]:
    """What a command prints, and the folder it leaves the shell in."""
    note = folder.parent / "pwd"
    done = subprocess.run(
        ["bash", "-c", f"{line}\ncode=$?\npwd > {note}\nexit $code"],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=200,
    )
    return done.stdout, Path(note.read_text().strip())


@pytest.mark.proc
@pytest.mark.skipif(not THOROUGH, reason="a minute: tools/nightly.py does it")
@pytest.mark.timeout(600)  # a minute's work, on a machine that may be busy with much else
def test_following_it(tmp_path: Path) -> None:
    environ = environment(tmp_path)
    folder = tmp_path / "empty"
    folder.mkdir()
    for step in steps():
        if isinstance(step, File):
            (folder / step.path).write_text(step.text)
            continue
        said, folder = run(step.line, folder, environ)
        assert pattern(step.printed).fullmatch(said), f"{step.line}\nprinted\n{said}"
    tests = ("tests/test_conformance.py", "tests/test_kept_conformance.py")
    for name in (COMPONENT, FAILOVER, "ompy_btl_udplite/__init__.py", *tests):
        assert (folder / name).read_text() == (FINISHED / name).read_text(), name
    # the finished one has settings of ruff and pytest after it
    assert (
        (FINISHED / "pyproject.toml")
        .read_text()
        .startswith((folder / "pyproject.toml").read_text())
    )


def test_the_files_are_those_of_the_finished_package() -> None:
    """The last file of each name; without running anything."""
    shown = {step.path: step.text for step in steps() if isinstance(step, File)}
    for name in (COMPONENT, FAILOVER):
        assert shown[name] == (FINISHED / name).read_text()
    assert len([step for step in steps() if isinstance(step, Command)]) > ENOUGH


def code_lines(path: Path) -> int:
    """Lines that are not blank, comment, docstring or import."""
    source = path.read_text()
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            node = node.body[0]
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        left_out |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(map(str.strip, source.splitlines()), 1)
    code = [line for number, line in lines if number not in left_out]
    return len([line for line in code if line and not line.startswith("#")])


def test_length() -> None:
    page = TUTORIAL.read_text()
    assert code_lines(FINISHED / COMPONENT) <= LINES
    assert f"# Write your own BTL in {LINES} lines" in page
    assert code_lines(FINISHED / FAILOVER) <= MORE_LINES
    assert f"in {MORE_LINES} more lines" in page


@pytest.mark.parametrize(
    ("printed", "said", "fits"),
    [
        (["a 12"], "a   7\n", True),
        (["a 12"], "b 12\n", False),
        (["a", "...", "d"], "a\nb\nc\nd\n", True),
        (["a", "...", "d"], "a\nd\n", True),
        (["a", "...", "d"], "a\nb\n", False),
        (["a ... z", ""], "a b c z\n", True),
        (["a"], "a\nerror\n", False),
        ([], "", True),
        ([], "error\n", False),
    ],
)
def test_pattern(printed: list[str], said: str, fits: bool) -> None:
    assert bool(pattern(printed).fullmatch(said)) is fits
