"""The course: programs, notebooks, pictures and the page for teachers say the same.

The nightly run executes the notebooks and draws the pictures anew (`tools/package course`); the
gate `wheel` runs the page's commands.
"""

from __future__ import annotations

import ast
import json
import re

import pytest

from tools.package import course
from tools.package.course import COURSE, PARTS, Lesson, lessons, notebook, parts
from tools.package.documents import commands

PAGE = course.ROOT / "docs" / "course.md"
LESSONS = pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)


def sections() -> list[str]:
    return re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]


def test_there_are_twelve() -> None:
    assert len(lessons()) == 12
    numbered = [text for text in sections() if re.match(r"\d+\. ", text)]
    assert len(numbered) == 12
    kept = {path.name for path in COURSE.iterdir() if path.is_file()}
    made = {f"{lesson.name}{ending}" for lesson in lessons() for ending in (".ipynb", ".svg")}
    assert kept == {"lessons.toml"} | made


@LESSONS
def test_its_first_lines_say_what_it_is_about(lesson: Lesson) -> None:
    assert re.match(rf"Lesson {lesson.number}, [\w ]+: .*\.$", course.headline(lesson))
    said = parts(lesson)
    assert list(said) == list(PARTS)
    run = said["Run"].splitlines()
    assert all(line.startswith(("ompy-run -n ", "ompy sim ")) for line in run)
    assert all(f"examples/{lesson.program}.py" in line for line in run)
    assert "numpy" not in lesson.path.read_text()


@LESSONS
def test_its_notebook_is_made_of_it(lesson: Lesson) -> None:
    text = (COURSE / f"{lesson.name}.ipynb").read_text()
    assert text == notebook(lesson), "python tools/package course"
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    code = "".join("".join(cell["source"]).partition("\n")[2] + "\n" for cell in cells)
    program = ast.parse(lesson.path.read_text())
    del program.body[0]  # its text, which is not in the cells
    assert ast.dump(ast.parse(code)) == ast.dump(program)


@LESSONS
def test_the_page_for_teachers_has_it(lesson: Lesson) -> None:
    text = next(text for text in sections() if text.startswith(f"{lesson.number}. "))
    assert "**Aim:**" in text
    assert re.search(r"\*\*Ask:\*\* .*\?", text)
    for name in (
        f"{lesson.program}.py",
        f"course/{lesson.name}.ipynb",
        f"course/{lesson.name}.svg",
    ):
        assert f"](../examples/{name})" in text
    shown = [
        command for command in commands(PAGE) if f"examples/{lesson.program}.py" in command.line
    ]
    assert shown
    assert all(command.printed for command in shown)
    # what the page runs, the program's first lines say, too
    assert {command.line for command in shown if "--trace" not in command.line} <= set(
        parts(lesson)["Run"].splitlines()
    )


def test_a_program_that_has_changed_is_found(tmp_path, monkeypatch) -> None:
    (tmp_path / "hello.py").write_text(lessons()[0].path.read_text() + "print('more')\n")
    monkeypatch.setattr(course, "EXAMPLES", tmp_path)
    assert notebook(lessons()[0]) != (COURSE / "01-hello.ipynb").read_text()
