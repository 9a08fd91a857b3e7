"""The reference of the site is made of the code; what has no words yet ends its build."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tools.site import command_pages, header_page, parameter_pages, small_pages
from tools.site.extension import marked_code, with_toctrees

ROOT = Path(__file__).resolve().parents[2]

INDEX = """# Title

## Start

- [One](one.md)
- [Two](../TWO.md): with words

## More pages

Text.
"""


def test_lists_of_the_index_are_toctrees() -> None:
    made = with_toctrees(INDEX, ["index", "new", "one"])
    assert ":caption: Start\n:hidden:\n:maxdepth: 1\n\nOne <one>\nTwo <../TWO>\n```" in made
    assert ":caption: More pages\n:hidden:\n:maxdepth: 1\n\nnew\n```" in made


def test_code_in_docstrings_is_marked() -> None:
    lines = ["Say hello:", "", "    hello()", "", "    again()", "", "Args:", "    a: what."]
    assert marked_code(lines) == [*lines[:2], "::", "", *lines[2:]]


def test_every_page_of_the_index_is_there() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    named = re.findall(r"^- \[[^]]+\]\((\S+)\)", text, re.MULTILINE)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "docs" / name).exists()] == []


def test_options_in_sentences_keep_their_dashes() -> None:
    """Sphinx made a dash of the two in front of `--hostfile`, in the help of commands."""
    assert runpy.run_path(str(ROOT / "docs" / "conf.py"))["smartquotes"] is False


def test_every_command_has_a_page() -> None:
    pages = command_pages.pages()
    assert {"commands/ompy-run.md", "commands/ompy-info.md", "commands/ompy-sim.md"} <= set(pages)
    assert "| `--timeout SECONDS` |" in pages["commands/ompy-run.md"]
    assert "`ompy trace`" in pages["commands/ompy.md"]


def test_parameters_have_level_unit_default_and_source() -> None:
    rows = [
        {
            "component": "base",
            "name": "btl_base_thing_ms",
            "level": 4,
            "type": "int",
            "unit": "ms",
            "text": "350",
            "source": "default",
            "help": "What | it does.",
            "synonyms": [{"name": "old_thing"}],
            "enumerator": [],
            "choices": [],
        }
    ]
    page = parameter_pages.framework_page("btl", rows, [])
    cells = ["`btl_base_thing_ms`<br>also `old_thing`", "4", "int, ms", "`350`", "default"]
    assert f"| {' | '.join(cells)} | What \\| it does. |" in page


def test_headers_have_the_comments_of_their_declarations() -> None:
    text = '# type u8 @0\n# tag u8 @1\nA_HEADER: Final = Struct("<BB")\nB = 3  # why\n'
    assert header_page.declarations(text) == [("A_HEADER", "type u8 @0 tag u8 @1"), ("B", "why")]
    page = header_page.page("ompy_components.pml.ob1.headers")
    assert "| `MATCH_LAYOUT` | `<BBHiiI` | 16 | type u8 @0, flags u8 @1" in page
    assert "| `FLAG_NORDMA` | `16` |" in page


def test_every_variable_of_the_code_is_described() -> None:
    """And every exit code that is described is in the code."""
    made = small_pages.pages()
    assert "| `OMPY_PURE` |" in made["environment.md"]
    assert re.search(r"^\| 4 \| .*deadlock", made["exit-codes.md"], re.MULTILINE)


def test_a_variable_without_words_is_found() -> None:
    groups = {"set": {"title": "You set", "names": {"OMPY_GONE": "is not in the code"}}}
    with pytest.raises(ValueError, match=r"to be described: .*OMPY_PURE.*; to go: .*OMPY_GONE"):
        small_pages.environment(groups)
