#!/usr/bin/env python3
"""Run every command of README.md, docs/*.md and plugins-contrib/*/README.md that is shown.

    python tools/package documents                          with the commands of this environment
    python tools/package documents --bin DIR [DOCUMENT...]  with those of another one
    python tools/package documents --write [DOCUMENT...]    and renew what simulations say

The blocks are the test. A line `$ command` in an indented block is run; the lines that follow in
the block are what it prints. `$ cat FILE` shows a file instead, which is written; so is a fenced
block after a line "`FILE`:" or, without that line, with a first line "# FILE". Each document has
an empty folder, in which its commands run in order.
Lines may come in any order, as ranks write in none. `...` stands for any lines, and what differs
from run to run is compared by its form (`FIGURES`).

A line `$ command` in a fenced block is run if what it needs is here: it is for a program that is no
part of ompy, as Wireshark is.

A page whose commands name `examples/` or `plugins-contrib/` finds these folders of the tree there.
Pages that install what they make have an environment of their own (`tutorial_environment.py`), and
docs/write-a-btl.md is followed by `tests/meta/test_tutorial.py`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.package.tutorial_environment import make_environment

ROOT: Final = Path(__file__).resolve().parents[2]
ELSEWHERE: Final = {"write-a-btl.md"}
INSTALLS: Final = "pip install"  # a page with such a command changes its environment
COPIED: Final = ("examples", "plugins-contrib")
OF_OURS: Final = {"pytest": "pytest_ompy"}  # only the environment's own, with this package
MISSING: Final = "pip install 'ompy["  # says a command for which something is not installed
ELISION: Final = "..."
PROMPT: Final = "    $ "
FENCED_PROMPT: Final = "$ "
# what differs from run to run: times, processes, events, what chance has struck, folders
FIGURES: Final = (
    (r"-?\d+\.\d+", r"-?\\d+\\.\\d+"),
    (r"\\d\+ [um]s\b", r"\\d+ [um]s"),  # of a time on a busy machine the unit, too
    (r"process \d+", r"process \\d+"),
    (r"0x[0-9a-f]+", r"0x[0-9a-f]+"),
    (r"={8,}", r"=+"),  # pytest's lines are filled up to 80 columns
    (r"\d+ events", r"\\d+ events"),
    (r"^(ompy-run:) +\d+  ", r"\1 +\\d+  "),
    (r"\.\.\.", r".*"),
)
SIMULATED: Final = "ompy sim:"  # what a seed decides is another thing with each protocol's change
# of a command that fails
TELLS: Final = (
    r"\berror: |\bfailed\b(?!\s+skipped)|aborted the job|ended because|can never go on"
    r"|^ompy sim: deadlock|check: \d+ finding"
)
TIME_LIMIT: Final = 300  # s of a command; arbitrary, far beyond what any takes
TOO_LONG: Final = 124  # coreutils: what `timeout` ends with when it has ended a command


class Command(NamedTuple):
    """A command and what it is said to print."""

    line: str
    printed: list[str]
    optional: bool = False
    block: int = 0


class File(NamedTuple):
    """A file that the document shows."""

    name: str
    text: str


def documents() -> list[Path]:
    """README.md, and the pages of docs/ and plugins-contrib/ that show a command."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    pages += sorted((ROOT / "plugins-contrib").glob("*/README.md"))
    return [page for page in pages if page.name not in ELSEWHERE and commands(page)]


def installs(page: Path) -> bool:
    """Whether a page installs what it makes: such pages take half a minute each."""
    found = [command for command in commands(page) if not command.optional]
    return any(command.line.startswith(INSTALLS) for command in found)


def commands(page: Path) -> list[Command]:
    """The commands of a page."""
    return [step for step in steps(page.read_text()) if isinstance(step, Command)]


def steps(text: str) -> list[Command | File]:
    """What a page asks for, in its order."""
    found: list[Command | File] = []
    lines = iter(text.splitlines())
    named = None
    for line in lines:
        if line.startswith("```"):
            fenced = "".join(_fenced(lines))
            first = re.match(r"# ([\w./-]+\.py)\n", fenced)
            if named or first:
                name = (named or first)[1]  # type: ignore[index]
                found.append(File(name, fenced[first.end() :] if first else fenced))
            elif fenced.startswith(FENCED_PROMPT):
                found += [*_optional(fenced, len(found)), File("", "")]
        elif line.startswith(PROMPT):
            found.append(Command(line.removeprefix(PROMPT), []))
        elif line.startswith("    ") or not line:
            if found and isinstance(found[-1], Command):
                found[-1].printed.append(line[4:])
        elif found and isinstance(found[-1], Command):
            found.append(File("", ""))  # prose: the block is over
        if line:
            named = re.fullmatch(r"`([\w./-]+)`:", line)
    return [_shown(step) for step in found if step != File("", "")]


def _fenced(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if line.startswith("```"):
            return
        yield f"{line}\n"


def _optional(fenced: str, block: int) -> Iterator[Command]:
    """The commands of a fenced block, which has a number."""
    for part in fenced.removeprefix(FENCED_PROMPT).split(f"\n{FENCED_PROMPT}"):
        line, *printed = part.splitlines()
        yield Command(line, printed, True, block)


def _shown(step: Command | File) -> Command | File:
    """A command as it is, or the file that `cat` shows."""
    if isinstance(step, File):
        return step
    printed = "\n".join(step.printed).strip("\n")
    shown = re.fullmatch(r"cat ([\w./-]+)", step.line)
    if shown:
        return File(shown[1], f"{printed}\n")
    return Command(step.line, printed.splitlines(), step.optional, step.block)


def difference(expected: list[str], said: list[str]) -> str:
    """What is wrong with the lines a command has said; empty if nothing is."""
    left = list(said)
    for line in expected:
        if line in (ELISION, ""):
            continue
        found = next((one for one in left if re.fullmatch(pattern(line), one)), None)
        if found is None:
            return f"no line like {line!r}"
        left.remove(found)
    left = [line for line in left if line]
    return f"also {left}" if expected and left and ELISION not in expected else ""


def pattern(line: str) -> str:
    """A regular expression for what a shown line may be in another run."""
    escaped = re.escape(line).replace(r"\ ", " ").replace(r"\-", "-").replace(r"\.", ".")
    if escaped.startswith(SIMULATED):
        escaped = re.sub(r"\d+(\.\d+)?", r"[\\d.]+", escaped)
    for figure, form in FIGURES:
        escaped = re.sub(figure, form, escaped)
    return re.sub(" +", " +", escaped)


def shell(line: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line as a user's shell does; what takes too long is ended, with all it has started."""
    command = ["timeout", "-k", "10", str(TIME_LIMIT), "sh", "-c", line]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def today(expected: list[str], said: list[str]) -> dict[str, str]:
    """What a simulator's lines of a page are now, where they have other figures."""
    left = [line for line in said if line.startswith(SIMULATED)]
    found = {}
    for line in expected:
        if line.startswith(SIMULATED):
            now = next((one for one in left if re.fullmatch(pattern(line), one)), line)
            if now in left:
                left.remove(now)
            if now != line and "..." not in line:
                found[f"    {line}"] = f"    {now}"
    return found


def may_fail(printed: list[str]) -> bool:
    """Whether a page shows a traceback, or leaves out how what is printed begins."""
    return printed[:1] == ["..."] or any("Traceback" in line for line in printed)


def follow(
    page: Path, folder: Path, environment: dict[str, str], now: dict[str, str] | None = None
) -> list[str]:
    """Run the commands of a page in a folder. Returns what is wrong, a line for each.

    Into `now` comes what a simulator's lines are today, by what they are in the page.
    """
    wrong = []
    left_out = -1  # the block of which a command cannot be run: what follows there wants its files
    environment = prepare(page, folder, environment)
    for step in steps(page.read_text()):
        if isinstance(step, File):
            (folder / step.name).write_text(step.text)
            continue
        if step.optional and (step.block == left_out or not is_here(step.line, environment)):
            continue
        done = shell(step.line, folder, environment)
        if step.optional and done.returncode and MISSING in done.stderr:
            left_out = step.block
            continue
        said = (done.stdout + ("" if step.optional else done.stderr)).splitlines()
        if now is not None:
            now |= today(step.printed, said)
        problem = problem_of(step, done, said)
        if problem:
            told = "\n    ".join(said)
            wrong.append(f"{page.name}: {step.line}: {problem}; it said:\n    {told}")
    return wrong


def prepare(page: Path, folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Put into a folder what a page counts on. Returns the variables of its commands."""
    jobs = folder / ".jobs"  # what is listed, and attached to, is of this page
    jobs.mkdir(mode=0o700)
    environment = {**environment, "XDG_RUNTIME_DIR": str(jobs)}
    for name in COPIED:
        if any(f"{name}/" in command.line for command in commands(page)):
            wanted = shutil.ignore_patterns("__pycache__", "course", "build", "dist", "*.egg-info")
            shutil.copytree(ROOT / name, folder / name, ignore=wanted)
    return make_environment(jobs, environment) if installs(page) else environment


def problem_of(step: Command, done: subprocess.CompletedProcess[str], said: Sequence[str]) -> str:
    """What is wrong with a command that has ended; empty if nothing is."""
    if done.returncode == TOO_LONG:
        return f"it was ended after {TIME_LIMIT} s"
    problem = difference(step.printed, list(said))
    told = any(re.search(TELLS, line) for line in said)
    fails = told and " | " not in step.line
    if not problem and bool(done.returncode) != fails:
        problem = f"it ended with {done.returncode}"
    if not problem and "Traceback" in done.stderr and not may_fail(step.printed):
        problem = "a traceback"
    return problem


def is_here(line: str, environment: dict[str, str]) -> bool:
    """Whether the program of a command is installed; nothing is installed for it.

    A pytest without our plug-in, or of an environment further behind in the path, is not it.
    """
    program = line.split(maxsplit=1)[0]
    path = environment["PATH"]
    if program not in OF_OURS:
        return not line.startswith(INSTALLS) and bool(shutil.which(program, path=path))
    home = path.split(os.pathsep)[0]
    asked = [f"{home}/python", "-c", f"import {OF_OURS[program]}"]
    here = bool(shutil.which(program, path=home)) and bool(shutil.which(asked[0]))
    return here and not subprocess.run(asked, capture_output=True, check=False).returncode


def main() -> None:
    """Run them; exit 1 when one prints something else."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", type=Path, default=Path(sys.executable).parent)
    parser.add_argument("--write", action="store_true", help="the pages, with today's figures")
    parser.add_argument("documents", nargs="*", type=Path, default=documents())
    given = parser.parse_args()
    path = f"{given.bin.absolute()}{os.pathsep}{os.environ['PATH']}"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    wrong = []
    for page in given.documents:
        with tempfile.TemporaryDirectory(prefix="ompy-documents-") as folder:
            now: dict[str, str] = {}
            wrong += follow(page, Path(folder), {**environment, "PATH": path}, now)
        if given.write:
            lines = page.read_text().splitlines()
            page.write_text("".join(f"{now.get(line, line)}\n" for line in lines))
    print("\n".join(wrong) or f"{len(given.documents)} documents show what one sees")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
