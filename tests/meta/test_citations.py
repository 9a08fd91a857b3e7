"""What comments and documents cite is there: docs/reference/README.md says how to cite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
ROOTS = ("core", "components", "tests", "tools", "docs", "plugins-contrib", "examples", "configs")
KINDS = {".py", ".pxd", ".md", ".toml", ".conf"}

GAP = r"(?:[ ]*\n[ ]*(?:\#[ ]*)?|[ ]+)"  # a space, or the end of a line of text or comment
SECTION = r"(?:[A-D]\d*|\d+)(?:\.\d+)*[a-z]?\b"
REMARK = rf"(?:{GAP}\([^()]*\))?"
SECTIONS = rf"{SECTION}{REMARK}(?:(?:,{GAP}|{GAP}(?:and|to){GAP}){SECTION}{REMARK})*"
NAME = re.compile(rf"(?P<word>[Rr]eference:?{GAP})?(?<![\w/.-])(?P<file>[a-z0-9-]+)\.md\Z")
BEHIND = re.compile(rf"{GAP}(?P<sections>{SECTIONS})")
NO_FILE = re.compile(rf"[Rr]eference{GAP}(?:[A-D]\d|\d)")
ABSENT = {"design", "users", "ecosystem", "style", "correctness"}  # no files of the repository
SEED = re.compile(
    rf"\b[Ss]eed{GAP}(?P<name>ob1|bfo|usnic|ofi|gasnet)\b(?P<more>-\w)?"
    rf"(?:{GAP}\((?P<headings>(?:[^()]|\([^()]*\))*)\))?"
)
NAMELESS = re.compile(
    rf"\#(?:[^\n\#]*[;,])?[ ]*seed\b(?!{GAP}(?:ob1|bfo|usnic|ofi|gasnet)\b|[-=])"
    rf"|[Ss]ource:[^\n]*\bseed\b(?!{GAP}(?:ob1|bfo|usnic|ofi|gasnet)\b)"
)


def sections(page: str) -> set[str]:
    """Of headings, and of paragraphs that begin with their number."""
    found = re.findall(rf"^(?:\#+ |- \*\*)({SECTION})", page, re.MULTILINE)
    return set(found)


def headings(page: str) -> dict[str, set[str]]:
    """Of each seed, in small letters; one that has a number counts by it alone."""
    found: dict[str, set[str]] = {}
    for name, text in re.findall(r"^### (\w+)\n.*?^Headings: (.*?)$", page, re.M | re.S):
        found[name] = {
            re.sub(r"^(\d+) .*", r"\1", one.strip()).lower() for one in text.split(" · ")
        }
    return found


PAGES = {path.stem: sections(path.read_text()) for path in REFERENCE.glob("[a-z]*.md")}
SEEDS = headings((REFERENCE / "README.md").read_text())
TWINS = {path.stem for path in (ROOT / "docs").glob("*.md")} & set(PAGES)


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Places of bad citations, and what is wrong with them."""
    for hit in re.finditer(r"\.md\b", text):
        found = NAME.search(text, max(0, hit.start() - 60), hit.end())
        if found:
            behind = BEHIND.match(text, hit.end())
            listed = behind["sections"] if behind else None
            for wrong in _of_file(found["file"], bool(found["word"]), listed):
                yield found.start("file"), wrong
    for found in NO_FILE.finditer(text):
        yield found.start(), "a section of which file?"
    if "seed" not in text and "Seed" not in text:
        return
    for found in SEED.finditer(text):
        yield from ((found.start(), wrong) for wrong in _of_seed(found))
    for found in NAMELESS.finditer(text):
        yield found.start(), "which seed?"


def _of_file(name: str, word: bool, listed: str | None) -> Iterator[str]:
    if name in ABSENT or name.endswith("-review"):
        yield f"{name}.md is not in the repository"
    elif name not in PAGES:
        if word:
            yield f"there is no docs/reference/{name}.md"
    elif listed is None:
        if word:
            yield f"which section of {name}.md?"
    elif name in TWINS and not word:
        yield f"reference {name}.md, or docs/{name}.md?"
    else:
        bare = re.sub(r"\([^()]*\)", "", listed)
        for section in re.findall(SECTION, bare):
            if section not in PAGES[name]:
                yield f"docs/reference/{name}.md has no {section}"


def _of_seed(found: re.Match[str]) -> Iterator[str]:
    if found["more"]:
        yield f"the seed is named {found['name']}"
    for heading in re.split(rf",{GAP}", found["headings"] or ""):
        plain = re.sub(GAP, " ", heading).lower()
        if plain and plain not in SEEDS[found["name"]]:
            yield f"seed {found['name']} has no {heading!r}"


def files() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for root in ROOTS:
        for path in (ROOT / root).rglob("*.*"):
            if path.suffix in KINDS and path != Path(__file__):
                yield path


def test_what_is_cited_is_there() -> None:
    wrong = []
    for path in files():
        text = path.read_text(errors="replace")
        for place, problem in problems(text):
            line = text.count("\n", 0, place) + 1
            wrong.append(f"{path.relative_to(ROOT)}:{line}: {problem}")
    assert not wrong, "\n".join(wrong)


def test_the_pages_are_read() -> None:
    """What the next test relies on."""
    assert {"openmpi", "usnic", "ofi", "gasnet"} <= set(PAGES)
    assert {"0.6", "1", "1.6.5", "4.14", "5.7"} <= PAGES["openmpi"]
    assert {"A0.1", "B1", "C7"} <= PAGES["ofi"]
    assert set(SEEDS) == {"ob1", "bfo", "usnic", "ofi", "gasnet"}
    assert "8" in SEEDS["bfo"]
    assert "eager send (immediate)" in SEEDS["ob1"]


@pytest.mark.parametrize(
    "text",
    [
        "# reference usnic.md 17",
        "# reference usnic.md 17: 0 is 768",
        "reference gasnet.md 1 (Errors), 8.",
        "reference openmpi.md 3.13, 5.2 to 5.6 and 5.7.",
        "Source: seed bfo (9), reference ofi.md A6,\n    openmpi.md 4.15.",
        "# seed usnic: 100 ms",
        "Source: seed ob1 (RDMA Direct Get, Eager Send\n    (Immediate)), steps C to G.",
        "README, row 132, [usnic.md](usnic.md)",
        "seed: int = 0,  # of the world",
        "    # with this seed there were fewer packets",
    ],
)
def test_good_citations(text: str) -> None:
    assert not list(problems(text))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# reference usnic.md 99", "has no 99"),
        ("reference openmpi.md 3.11 to 3.99", "has no 3.99"),
        ("(reference openmpi.md 1.3 and\n# 1.33)", "has no 1.33"),
        ("openmpi.md 9", "has no 9"),
        ("# reference ucx.md 3", "no docs/reference/ucx.md"),
        ("# reference usnic.md", "which section"),
        ("see reference users.md 4.3", "not in the repository"),
        ("as house-review.md has it", "not in the repository"),
        ("reference openmpi.md 4, gasnet.md 5", "or docs/gasnet.md"),
        ("# reference 3.5.2", "of which file"),
        ("# seed: 100 ms", "which seed"),
        ("12,  # seed", "which seed"),
        ("# the modes; seed: standard", "which seed"),
        ("Source: seed nobody (3)", "which seed"),
        ("Source: seed btl-ofi-design-notes", "which seed"),
        ("seed usnic-btl-design-notes (sending)", "is named usnic"),
        ("seed usnic (retries)", "has no 'retries'"),
        ("seed bfo (8, 12)", "has no '12'"),
    ],
)
def test_bad_citations(text: str, problem: str) -> None:
    assert any(problem in said for _, said in problems(text))
