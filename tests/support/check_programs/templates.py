"""The text files of check programs: templates, the lines of the two twins, the guilty lines.

A file has templates, each below a line `=== NAME KEY=VALUE...`:

    === head_to_head ranks=2,4
    def helper(comm):
        ...
    ---
    comm.Send(u, peer, $tag)  #-@
    comm.Sendrecv(u, peer, $tag, ghost, peer, $tag)  #+

What stands above `---` are functions of the module, the rest is the program's body, which knows
`comm`, `rank` and `size`. `$name` is drawn for each case (`cases.py`). The marks at the end of a
line never reach a program: `#-` is a line of the faulty twin only, `#+` one of the mended twin
only, and `#@`, `#-@` are lines that a finding has to name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "templates"
CORRECT: Final = "correct"  # what the files of programs without a faulty twin begin with
_MARK: Final = re.compile(r"\s*#(?P<twin>[-+]?)(?P<guilty>@?)$")
_HEADER: Final = re.compile(r"^=== ", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """A line of a template.

    Attributes:
        text: without the mark, with `$name` for what is drawn.
        twin: `-` for the faulty one only, `+` for the mended one only, or empty.
        guilty: a finding has to name it.
    """

    text: str
    twin: str
    guilty: bool

    @classmethod
    def parse(cls, text: str) -> Line:
        """A line as the file has it."""
        mark = _MARK.search(text)
        if mark is None:
            return cls(text, "", guilty=False)
        return cls(text[: mark.start()], mark["twin"], bool(mark["guilty"]))


@dataclass(frozen=True)
class Template:
    """Two programs that look alike, or a correct one alone.

    Attributes:
        name: within its file.
        label: the class of the faulty twin; empty if there is none.
        ranks: how many there may be.
        also: classes by which the fault may be called as well.
        functions: lines above the body, of the module.
        body: the lines that know `comm`, `rank` and `size`.
        whole: the body may stand in a function only, as it has a `return`.
    """

    name: str
    label: str
    ranks: tuple[int, ...]
    also: tuple[str, ...]
    functions: tuple[Line, ...]
    body: tuple[Line, ...]
    whole: bool

    @property
    def twins(self) -> tuple[bool, ...]:
        """Whether each program that can be made of it is faulty."""
        return (True, False) if self.label else (False,)


def parse(text: str, label: str) -> list[Template]:
    """The templates of a file.

    Args:
        text: of the file.
        label: of all its faulty twins, or empty.
    """
    found = []
    for part in _HEADER.split(text)[1:]:
        header, _, rest = part.partition("\n")
        name, *words = header.split()
        settings = dict(word.split("=") for word in words)
        above, cut, below = rest.rpartition("\n---\n")
        functions = above if cut else ""
        body = (below if cut else rest).strip("\n")
        found.append(
            Template(
                name,
                label,
                _numbers(settings.pop("ranks", "2..4")),
                tuple(filter(None, settings.pop("also", "").split(","))),
                tuple(map(Line.parse, functions.strip("\n").splitlines())),
                tuple(map(Line.parse, body.splitlines())),
                whole=settings.pop("in", "") == "function",
            )
        )
        assert not settings, f"{name}: {settings}"
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of `2..4` or `2,4`."""
    first, dots, last = text.partition("..")
    if dots:
        return tuple(range(int(first), int(last) + 1))
    return tuple(map(int, text.split(",")))


@cache
def read_templates(name: str) -> tuple[Template, ...]:
    """The templates of a class, or those of `correct`, as the files have them."""
    if name == CORRECT:
        files = sorted(FOLDER.glob(f"{CORRECT}-*.txt"))
        return tuple(one for file in files for one in parse(file.read_text(), ""))
    return tuple(parse((FOLDER / f"{name}.txt").read_text(), name))
