#!/usr/bin/env python3
"""Notebooks and pictures of the course, made of its programs: examples/course/01-hello.ipynb ...

    python tools/package course              write them anew
    python tools/package course --check      say which are not what would be written
    python tools/package course --execute    run the notebooks, each in a kernel of Jupyter

`examples/course/lessons.toml` has the lessons in their order. A program's first lines say what its
lesson is about; a line `# %% WORDS` begins a cell. A picture is what `ompy trace` draws of a
simulated run, which a seed decides: it changes only when a protocol or the drawing does.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
EXAMPLES: Final = ROOT / "examples"
COURSE: Final = EXAMPLES / "course"
CELL: Final = re.compile(r"^# %% (.+)$", re.MULTILINE)
TOOLS: Final = (sys.executable, "-m", "ompy.cli.main")
PARTS: Final = ("You learn", "Run", "Change")  # what a lesson's first lines have
CELL_SECONDS: Final = 120  # of a cell; arbitrary: far more than any takes


class Lesson(NamedTuple):
    """A lesson, as lessons.toml has it, and its place from 1 on."""

    number: int
    program: str
    ranks: int
    draw: tuple[str, ...]
    mca: tuple[str, ...] = ()
    simulate: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    note: str = ""

    @property
    def path(self) -> Path:
        """Its program."""
        return EXAMPLES / f"{self.program}.py"

    @property
    def name(self) -> str:
        """Of its notebook and picture, without their endings."""
        return f"{self.number:02}-{self.program}"

    @property
    def settings(self) -> tuple[str, ...]:
        """Options of ompy-run, ompy sim and %%ompy."""
        return ("--mca", *self.mca) if self.mca else ()


def lessons() -> list[Lesson]:
    """The lessons in their order."""
    rows = tomllib.loads((COURSE / "lessons.toml").read_text())["lesson"]
    return [
        Lesson(number, **{key: tuple(v) if isinstance(v, list) else v for key, v in row.items()})
        for number, row in enumerate(rows, 1)
    ]


def headline(lesson: Lesson) -> str:
    """The first line of a program's text."""
    return (ast.get_docstring(ast.parse(lesson.path.read_text())) or "").partition("\n")[0]


def parts(lesson: Lesson) -> dict[str, str]:
    """What the lines below it say, by the words they begin with; lines keep their ends."""
    found: dict[str, str] = {}
    text = ast.get_docstring(ast.parse(lesson.path.read_text())) or ""
    for line in text.splitlines()[2:]:
        word, colon, rest = line.partition(": ")
        if colon and word in PARTS:
            found[word] = rest
        elif found:
            found[list(found)[-1]] += f"\n{line.strip()}"
    return found


# notebooks


def cells(lesson: Lesson) -> Iterator[tuple[str, str]]:
    """The headings and code of a program's cells."""
    pieces = CELL.split(lesson.path.read_text())[1:]
    yield from zip(pieces[::2], (code.strip("\n") for code in pieces[1::2]), strict=True)


def notebook(lesson: Lesson) -> str:
    """The notebook, as Jupyter has it."""
    options = " ".join((f"-n {lesson.ranks}", *lesson.settings))
    made = [markdown(introduction(lesson)), code("%load_ext ompy")]
    for number, (heading, text) in enumerate(cells(lesson)):
        magic = "%%ompy" if number else f"%%ompy {options}"
        made += [markdown(f"## {heading}"), code(f"{magic}\n{text}")]
    made += [markdown(f"## Change it\n\n{parts(lesson)['Change']}"), code("%ompy --stop")]
    numbered = [{**cell, "id": f"cell-{number}"} for number, cell in enumerate(made)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": numbered, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def introduction(lesson: Lesson) -> str:
    """What stands above the cells."""
    said = parts(lesson)
    return (
        f"# {headline(lesson)}\n\n**You learn:** {said['You learn']}\n\n"
        f"This notebook is made of [examples/{lesson.program}.py](../{lesson.program}.py), "
        "which runs without a notebook, too:\n\n"
        + "\n".join(f"    {line}" for line in said["Run"].splitlines())
        + f"\n\n![Messages between the ranks]({lesson.name}.svg)\n\n"
        "It needs `pip install 'ompy[notebook]'`. Each cell runs on all ranks."
        + (f"\n\n{lesson.note}" if lesson.note else "")
    )


def markdown(text: str) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def code(text: str) -> dict[str, Any]:
    """A cell to run."""
    lines = text.splitlines(keepends=True)
    return {
        "cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [],
        "source": lines,
    }  # fmt: skip


def execute(lesson: Lesson) -> str:
    """Run a notebook as people do. Returns what went wrong."""
    import nbclient
    import nbformat

    read = nbformat.read(COURSE / f"{lesson.name}.ipynb", as_version=4)
    client = nbclient.NotebookClient(
        read, timeout=CELL_SECONDS, resources={"metadata": {"path": str(COURSE)}}
    )
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as problem:
        return str(problem)
    said = "".join(str(o.get("text", "")) for cell in read.cells for o in cell.get("outputs", ()))
    print(f"{lesson.name}: {said.strip().splitlines()[-2]}")  # the last says that ranks have gone
    return ""


# pictures


def picture(lesson: Lesson, folder: Path) -> str:
    """What `ompy trace` draws of a simulated run."""
    trace, drawn = folder / "trace", folder / "drawn.svg"
    command = [*TOOLS, "sim", "-q", "-n", str(lesson.ranks), "--seed", "1", "--trace", str(trace)]
    command += ["--mca", "btl", "self,tcp", *lesson.settings, *lesson.simulate]
    command += [str(lesson.path), *lesson.arguments]
    subprocess.run(command, check=True, capture_output=True)
    draw = [*TOOLS, "trace", str(trace), "--sequence", str(drawn), *lesson.draw]
    subprocess.run(draw, check=True, capture_output=True)
    return drawn.read_text()


def main() -> None:
    """Do it; exit 1 when something is not what it was, or went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--execute", action="store_true", help="run the notebooks")
    given = parser.parse_args()
    if given.execute:
        wrong = [text for lesson in lessons() if (text := execute(lesson))]
        sys.exit("\n".join(wrong) or 0)
    other = []
    for lesson in lessons():
        with tempfile.TemporaryDirectory(prefix="ompy-course-") as folder:
            made = {".ipynb": notebook(lesson), ".svg": picture(lesson, Path(folder))}
        for ending, text in made.items():
            path = COURSE / f"{lesson.name}{ending}"
            if not path.exists() or path.read_text() != text:
                other.append(path.name)
                if not given.check:
                    path.write_text(text)
    print(f"other than before: {', '.join(other)}" if other else "all are as they were")
    sys.exit(1 if given.check and other else 0)


if __name__ == "__main__":
    main()
