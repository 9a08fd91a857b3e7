"""The words of code and documents: the field's terms, and functions that say what they act on."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
GLOSSARY_MAX: Final = 40  # entries: more are not read
# words that stood for the field's terms here once, and the terms
TERMS: Final = {
    r"hotels?": "window (seed and reference keep the original's word)",
    r"allowances?": "in flight, or congestion window",
    r"condemn(s|ed|ing)?": "fail",
    r"casualt(y|ies)": "lost",
    r"confidants?": "the name of who is told",
    r"menders?": "path_life",
    r"doom(s|ed)?": "fail",
    r"deafen(s|ed|ing)?": "block receiving",
    r"visitors?": "half-open connection",
    r"desks?": "inquiries",
    r"doors?": "registration socket, or listener",
    r"welcom(e|es|ed)": "admit",
    r"farewells?": "BYE, or barrier",
    r"conductors?": "scheduler",
    r"newcomers?": "the agent or rank that it is",
    r"tellers?": "reporter",
}
# verbs that say nothing of what they act on when they stand alone
VERBS: Final = """
    accept add allocate answer ask attach begin build change check choose combine complete compute
    copy describe detach do end feed fetch fill find flush get give handle install join leave limit
    listen load look make meet move note open pack parse place poll post prepare probe process
    publish put read receive record register report run say scan send serve set settle show speak
    split start step stop store swap take tell transfer unpack update wait warn work write
"""
BARE: Final = frozenset(VERBS.split())
# functions of modules with such a name, where the module's name says the rest (`headers.pack`);
# measured when the rule was made: it may only fall
BARE_MAX: Final = 58
# methods with such a name of classes that extend nothing, so that no contract asks for the name;
# measured when the rule was made: it may only fall
BARE_METHODS_MAX: Final = 287
SOURCES: Final = ("core/ompy", "components/ompy_components")
# methods of mpi4py's, whose names are not ours to choose
OTHERS: Final = frozenset(
    line.split()[1]
    for line in (ROOT / "tests/golden/mpi4py_beside_names.txt").read_text().splitlines()
)


parsed: Final = cache(ast.parse)  # of a thousand files it takes seconds


@cache
def texts() -> dict[Path, str]:
    """What is looked through for words."""
    paths = [*python_files(), *documents()]
    return {path: path.read_text() for path in paths if path.name != "SEED.md"}


def python_files() -> list[Path]:
    return [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]


def documents() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *(ROOT / "docs").glob("*.md")]
    return found + [path for folder in SOURCES for path in (ROOT / folder).rglob("*.md")]


def bare_functions(source: str) -> list[str]:
    """Functions of a module, not of its classes, that are a verb alone."""
    body = parsed(source).body
    functions = [each for each in body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [each.name for each in functions if each.name in BARE]


def bare_methods(source: str) -> list[str]:
    """Methods that are a verb alone, of classes that extend nothing and are nobody's contract."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ClassDef) and all(map(is_generic, node.bases)):
            bodies = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            found += [
                f"{node.name}.{each.name}"
                for each in bodies
                if each.name in BARE
                and not is_contract(each)
                and f"{node.name}.{each.name}" not in OTHERS
            ]
    return found


def is_generic(base: ast.expr) -> bool:
    return ast.unparse(base).startswith("Generic[")


def is_contract(method: ast.FunctionDef) -> bool:
    """Whether it is there to be overridden: its body raises NotImplementedError."""
    return "raise NotImplementedError" in ast.unparse(method)


@pytest.mark.parametrize("word", TERMS)
def test_terms(word: str) -> None:
    pattern = re.compile(rf"(?<![a-z]){word}(?![a-z])", re.I)
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path, text in texts().items()
        if pattern.search(text)
        for line in text.splitlines()
        if pattern.search(line) and "original" not in line
    ]
    assert found == [], f"say: {TERMS[word]}"


def test_the_glossary_can_be_read() -> None:
    rows = [
        line
        for line in (ROOT / "docs" / "glossary.md").read_text().splitlines()
        if line[:2] == "| "
    ]
    assert 20 < len(rows) - 1 <= GLOSSARY_MAX


def test_functions_say_what_they_act_on() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in python_files()
        if (names := bare_functions(path.read_text()))
    }
    count = sum(map(len, found.values()))
    assert count <= BARE_MAX, f"{count}; the newest of these wants an object: {found}"


def test_methods_say_what_they_act_on() -> None:
    found = {
        str(path.relative_to(ROOT)): names
        for path in python_files()
        if (names := bare_methods(path.read_text()))
    }
    count = sum(map(len, found.values()))
    assert count <= BARE_METHODS_MAX, f"{count}; the newest of these wants an object: {found}"


def test_a_bare_verb_is_found() -> None:
    source = "def send():\n pass\ndef send_all():\n pass\nclass A:\n def send(self):\n  pass\n"
    assert bare_functions(source) == ["send"]
    assert bare_methods(source) == ["A.send"]
    assert bare_methods("class B(A):\n def send(self):\n  pass\n") == []
