"""The labelled programs of the checker's sweep: enough of each class, twins that look alike."""

from __future__ import annotations

import ast
import difflib
import re
from pathlib import Path

import pytest
from ompy.check.findings import CLASSES

from tests.support.check_programs.cases import (
    Case,
    every_template,
    find_case,
    make_case,
    make_cases,
    rename,
)
from tests.support.check_programs.templates import (
    CORRECT,
    FOLDER,
    Line,
    Template,
    parse,
    read_templates,
)
from tools.sweep.programs import checker

SEEDS = range(4)
FAULTS = 8  # templates of a class, at least
SUSPICIOUS = 40  # correct programs without a twin, at least
BETRAYING = re.compile(
    r"#|\b(fault|faulty|bug|wrong|error_here|guilty|race|racy|deadlock|leak|leaks|mismatch|"
    r"forgot|missing|illegal|ompy)\b",
    re.IGNORECASE,
)
TEMPLATES = [pytest.param(one, id=f"{one.label or CORRECT}-{one.name}") for one in every_template()]


def cases_of(template: Template) -> list[Case]:
    return [make_case(template, seed, faulty=twin) for seed in SEEDS for twin in template.twins]


def test_each_class_has_enough_templates_each_with_a_name_of_its_own() -> None:
    files = {path.stem for path in FOLDER.glob("*.txt")}
    assert {name for name in files if not name.startswith(CORRECT)} == set(CLASSES)
    for name in (*CLASSES, CORRECT):
        names = [template.name for template in read_templates(name)]
        assert len(names) == len(set(names)), name
        assert len(names) >= (SUSPICIOUS if name == CORRECT else FAULTS), name


@pytest.mark.parametrize("template", TEMPLATES)
def test_programs_compile_have_a_realistic_size_and_betray_nothing(template: Template) -> None:
    for case in cases_of(template):
        ast.parse(case.text, case.name)
        assert 9 <= len(case.text.splitlines()) <= 62, case.name
        assert "$" not in case.text, case.name
        assert not BETRAYING.search(case.text), f"{case.name}:\n{case.text}"
        assert "from mpi4py import MPI" in case.text
        assert 2 <= case.ranks <= 4


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_faulty_twin_names_its_class_and_lines_and_a_mended_one_nothing(
    template: Template,
) -> None:
    for case in cases_of(template):
        text = case.text.splitlines()
        if case.name.endswith("/correct"):
            assert (case.label, case.also, case.lines) == ("", (), ())
        else:
            assert case.label == template.label
            assert set(case.also) <= set(CLASSES)
            assert case.lines
            assert all(text[number - 1].strip() for number in case.lines)


@pytest.mark.parametrize("template", [one for one in TEMPLATES if one.values[0].label])  # type: ignore[union-attr]
def test_twins_differ_and_look_alike(template: Template) -> None:
    for seed in SEEDS:
        faulty, mended = (make_case(template, seed, faulty=twin) for twin in (True, False))
        assert faulty.ranks == mended.ranks
        assert faulty.text != mended.text
        lines = faulty.text.splitlines(), mended.text.splitlines()
        assert difflib.SequenceMatcher(None, *lines).ratio() > 0.5, faulty.name


def test_seeds_vary_the_programs_and_repeat_them() -> None:
    (template,) = (one for one in read_templates("deadlock") if one.name == "recv_first")
    texts = {make_case(template, seed, faulty=True).text for seed in range(20)}
    assert len(texts) == 20
    assert find_case("deadlock/recv_first/3/faulty") == make_case(template, 3, faulty=True)
    shapes = {"class " in text for text in texts} | {"def main" in text for text in texts}
    assert shapes == {True, False}


def test_as_many_cases_as_are_asked_for() -> None:
    once = make_cases(0, 0, ["leak", CORRECT])
    names = [case.name for case in once]
    assert len(names) == len(set(names))
    assert len(names) == 2 * len(read_templates("leak")) + len(read_templates(CORRECT))
    more = make_cases(len(once) + 5, 0, ["leak", CORRECT])
    assert [case.name for case in more[: len(once)]] == names
    assert more[-1].name.split("/")[2] == "1"


def test_marks_of_a_line() -> None:
    assert Line.parse("u[0] = 1  #-@") == Line("u[0] = 1", "-", guilty=True)
    assert Line.parse("u[0] = 1  #+") == Line("u[0] = 1", "+", guilty=False)
    assert Line.parse("u[0] = 1  #@") == Line("u[0] = 1", "", guilty=True)
    assert Line.parse("u[0] = 1") == Line("u[0] = 1", "", guilty=False)


def test_a_template_of_a_file() -> None:
    (one,) = parse("=== x ranks=2,4 also=leak\ndef f():\n    pass\n---\nf()  #@\n", "epoch")
    assert (one.name, one.ranks, one.also, one.whole) == ("x", (2, 4), ("leak",), False)
    assert [line.text for line in one.functions] == ["def f():", "    pass"]
    assert one.body == (Line("f()", "", guilty=True),)


def test_renaming_leaves_attributes_and_names_of_arguments() -> None:
    text = "st = f(comm.rank, st=rank)\nrank = {'a': rank}[rank]\n"
    assert rename(text, {"rank": "me", "st": "info"}) == (
        "info = f(comm.rank, st=me)\nme = {'a': me}[me]\n"
    )
    assert rename("me = rank\n", {"rank": "me"}) == "me = rank\n"


def outcome(case: Case, *found: tuple[str, int], code: int = 5) -> checker.Outcome:
    findings = [
        {"class": name, "message": "m", "sites": [{"rank": 0, "file": "/x/app.py", "line": line}]}
        for name, line in found
    ]
    return checker.Outcome(case, code, findings, "", 0.1)


def test_the_figures_of_some_outcomes(tmp_path: Path) -> None:
    fault = find_case("leak/dup/0/faulty")
    mended = find_case("leak/dup/0/correct")
    (line,) = fault.lines
    outcomes = [
        outcome(fault, ("leak", line)),
        outcome(fault, ("leak", line + 1), ("epoch", 1)),
        outcome(fault, ("epoch", line)),
        outcome(fault, code=0),
        outcome(mended, ("leak", line)),
        outcome(mended, code=1),
        outcome(mended, code=0),
    ]
    words = [one.verdict().split(" ", 2)[:2] for one in outcomes]
    assert [" ".join(one) for one in words] == [
        "",
        "other line",
        "other class:",
        "missed; ends",
        "accused: leak",
        "ends with",
        "",
    ]
    sums = checker.sum_up(outcomes)
    table = checker.make_table(sums)
    cells = [cell.strip() for cell in table[-1].strip("|").split("|")]
    assert cells == ["**all**", "4", "3", "2", "1", "1", "2", "3", "1", "1"]
    rates = checker.make_rates(sums["leak"])
    assert rates.startswith("Recall 75.0% (3 of 4), with the right class 50.0% (2 of 4)")
    assert "specificity 66.7% (2 of 3)" in rates
    assert len(checker.list_wrong(outcomes)) == 5
