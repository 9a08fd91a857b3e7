"""A number has a source or the word arbitrary."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = re.compile(
    r"reference|seed|arbitrary|measured|Open MPI|libfabric|Linux|HMAC|x86|mpi4py|MPI[- ]\d"
    r"|POSIX|PEP|DLPack|shells?\b",
    re.I,
)
# constants named after their own standard: MPI's error classes and flag bits carry one note
TABLES = {
    "core/ompy/data/errors.py",
    "core/ompy/data/constants.py",
    "core/ompy/mpi/constants.py",
    "core/ompy/frameworks/btl.py",
    "core/ompy/frameworks/pml.py",
    "core/ompy/frameworks/coll.py",
}


def numbers(path: Path) -> list[tuple[int, str]]:
    """Module-level constants whose value is a number, by line."""
    found = []
    for node in ast.parse(path.read_text()).body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        if not isinstance(target, ast.Name) or not target.id.lstrip("_").isupper():
            continue
        try:
            value = eval(compile(ast.Expression(node.value), "", "eval"), {})
        except Exception:
            continue  # derived from other names
        # up to 2 a number is a label, not a quantity
        if isinstance(value, int | float) and abs(value) > 2:
            found.append((node.lineno, target.id))
    return found


def sources() -> list[Path]:
    roots = ("core/ompy", "components/ompy_components", "plugins-contrib")
    every = sorted(path for root in roots for path in (ROOT / root).rglob("*.py"))
    return [path for path in every if "tests" not in path.parts and numbers(path)]


def without_a_source(path: Path) -> list[str]:
    """Of a file, the numbers whose comment names none."""
    text = path.read_text()
    if str(path.relative_to(ROOT)) in TABLES:
        return [] if SOURCE.search(text) else ["the table"]
    lines = text.splitlines()
    missing = []
    for number, name in numbers(path):
        note = lines[number - 1].partition("#")[2]
        above = number - 2
        while above >= 0 and (lines[above].startswith("#") or re.match(r"_?[A-Z]", lines[above])):
            note += lines[above].partition("#")[2]
            above -= 1
        if not SOURCE.search(note) and not re.search(
            r"kinds of|values of|header (types|flags)", note
        ):
            missing.append(f"{number}: {name}")
    return missing


def test_numbers_have_a_source() -> None:
    missing = [f"{path}:{line}" for path in sources() for line in without_a_source(path)]
    assert not missing, "\n".join(missing)
