"""What the site does beside Sphinx: it writes the reference first, and reads lists as toctrees."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.site import command_pages, header_page, parameter_pages, python_pages, small_pages

if TYPE_CHECKING:
    from docutils.nodes import Element
    from sphinx.application import Sphinx

ROOT: Final = Path(__file__).resolve().parents[2]
GENERATED: Final = ROOT / "docs" / "generated"
INDEX: Final = "docs/index"
REST: Final = "More pages"  # the section of the index that takes what nobody lists
LINK: Final = re.compile(r"^- \[([^\]]+)\]\(([\w./-]+)\.md\)", re.MULTILINE)
MAKERS: Final = (command_pages, parameter_pages, header_page, python_pages, small_pages)


def version() -> str:
    """Of the tree."""
    text = (ROOT / "core" / "ompy" / "__init__.py").read_text()
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found
    return found[1]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect with Sphinx."""
    app.connect("config-inited", _write_reference)
    app.connect("source-read", _read_index)
    app.connect("doctree-read", _refer_exactly)
    app.connect("autodoc-process-docstring", _mark_code, priority=100)  # before napoleon
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _write_reference(_app: Sphinx, _config: object) -> None:
    """Write the pages of docs/generated; a page that has not changed is left as it is."""
    pages: dict[str, str] = {}
    for maker in MAKERS:
        pages |= maker.pages()
    for path in GENERATED.rglob("*.*") if GENERATED.exists() else ():
        if str(path.relative_to(GENERATED)) not in pages:
            path.unlink()
    for name, text in pages.items():
        path = GENERATED / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def _mark_code(*event: Any) -> None:
    """The last argument of the event are the lines of a docstring, to be changed in place."""
    lines: list[str] = event[-1]
    lines[:] = marked_code(lines)


def marked_code(lines: list[str]) -> list[str]:
    """Docstrings have code as indented paragraphs, as Markdown does; reST wants a mark above it."""
    made: list[str] = []
    for line in lines:
        begins = line.startswith("    ") and len(made) > 1 and not made[-1]
        if begins and made[-2] and not made[-2].startswith(" "):
            made += ["::", ""]
        made.append(line)
    return made


def _refer_exactly(_app: Sphinx, doctree: Element) -> None:
    """Types in signatures are looked for by their whole names only.

    Else each is compared with the ends of all names there are, which takes a third of the build and
    finds `Request` in three modules.
    """
    from sphinx.addnodes import pending_xref

    for reference in doctree.findall(pending_xref):
        reference.attributes.pop("refspecific", None)


def _read_index(_app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == INDEX:
        pages = sorted(path.stem for path in (ROOT / "docs").glob("*.md"))
        source[0] = with_toctrees(source[0], pages)


def with_toctrees(text: str, pages: list[str]) -> str:
    """The index with a hidden toctree behind each of its lists of links.

    A section is one caption of the site's navigation. Pages of docs/ that no list has come into
    the last section, so a new page needs no entry to be found.
    """
    head, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    listed = {target for _, target in LINK.findall(text)}
    made = head
    for section in sections:
        caption = section.partition("\n")[0]
        entries = [f"{title} <{target}>" for title, target in LINK.findall(section)]
        if caption == REST:
            entries += [page for page in pages if page not in listed and page != "index"]
        made += f"## {section.rstrip()}\n\n"
        if entries:
            options = f":caption: {caption}\n:hidden:\n:maxdepth: 1"
            made += f"```{{toctree}}\n{options}\n\n" + "\n".join(entries) + "\n```\n\n"
    return made


if __name__ == "__main__":
    sys.exit("Sphinx loads this: python tools/package site")
