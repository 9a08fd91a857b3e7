"""Labelled programs, made of templates and a seed: names, sizes, types, tags, shape of the program.

    python -m tests.support.check_programs.cases deadlock/recv_first/0/faulty    prints one

A case is named by its class, its template, its seed and which twin it is; both twins draw the same.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from ompy.check.findings import CLASSES

from tests.support.check_programs.templates import (
    CORRECT,
    Line,
    Template,
    read_templates,
)

_TYPES: Final = {  # how NumPy and mpi4py call them, and one of the same size that is another
    "d": (("np.float64", '"d"', "float"), "MPI.DOUBLE", "np.int64", "MPI.INT64_T"),
    "f": (("np.float32", '"f"'), "MPI.FLOAT", "np.int32", "MPI.INT32_T"),
    "i": (("np.int32", '"i"'), "MPI.INT", "np.float32", "MPI.FLOAT"),
    "l": (("np.int64", '"int64"'), "MPI.INT64_T", "np.float64", "MPI.DOUBLE"),
}
_NAMES: Final = {  # what a name of a template may be called in a program
    "comm": ("comm", "world", "communicator"),
    "rank": ("rank", "me", "my_rank"),
    "size": ("size", "nprocs", "n_ranks"),
    "right": ("right", "east", "following"),
    "left": ("left", "west", "previous"),
    "peer": ("peer", "partner", "other"),
    "u": ("u", "field", "temperature", "phi"),
    "ghost": ("ghost", "halo", "incoming"),
    "buf": ("buf", "data", "chunk"),
    "req": ("req", "handle", "pending"),
    "reqs": ("reqs", "requests", "handles"),
    "win": ("win", "window"),
    "total": ("total", "result", "combined"),
    "step": ("step", "it", "iteration"),
    "st": ("st", "info", "envelope"),
}
_OPENINGS: Final = (  # what many programs begin with, and none may be accused of
    (),
    (),
    ("start = MPI.Wtime()",),
    ("comm.Barrier()", "start = MPI.Wtime()"),
    ('settings = comm.bcast({"steps": 10, "dt": 0.1} if rank == 0 else None, root=0)',),
    ("here = comm.allreduce(1)", "assert here == size"),
    ("hosts = comm.gather(MPI.Get_processor_name(), root=0)",),
    ("token = comm.sendrecv(rank, dest=(rank + 1) % size, source=(rank - 1) % size)",),
)
_ENDINGS: Final = ((), (), ("if rank == 0:", '    print("done")'), ('print("rank", rank, "ends")',))
_DRAWN: Final = re.compile(r"\$(\w+)")


@dataclass(frozen=True)
class Case:
    """A program, and what a checker has to say of it.

    Attributes:
        name: `CLASS/TEMPLATE/SEED/faulty`, or `.../correct`.
        label: the class of its fault, empty if it is correct.
        also: classes by which that may be called as well.
        text: of the program.
        ranks: that run it.
        lines: numbers of the lines of which a finding has to name one, from 1.
    """

    name: str
    label: str
    also: tuple[str, ...]
    text: str
    ranks: int
    lines: tuple[int, ...]


def make_case(template: Template, seed: int, *, faulty: bool) -> Case:
    """A program of a template.

    Args:
        template: of a class, or of the correct ones.
        seed: of all that is drawn; both twins draw the same.
        faulty: which twin.
    """
    chance = Random(f"{template.label} {template.name} {seed}")
    ranks = chance.choice(template.ranks)
    values = draw_values(chance, ranks)
    names = {name: chance.choice(others) for name, others in _NAMES.items()}
    lines = arrange(template, chance, "-" if faulty else "+")
    text = "\n".join(_DRAWN.sub(lambda found: values[found[1]], line.text) for line in lines)
    text = rename(text.rstrip("\n") + "\n", names)
    guilty = tuple(number for number, line in enumerate(lines, 1) if line.guilty)
    twin = "faulty" if faulty else "correct"
    return Case(
        f"{template.label or CORRECT}/{template.name}/{seed}/{twin}",
        template.label if faulty else "",
        template.also if faulty else (),
        text,
        ranks,
        guilty if faulty else (),
    )


def draw_values(chance: Random, ranks: int) -> dict[str, str]:
    """What `$name` is in a program: sizes, types, tags, ranks."""
    spellings, kind, other, other_kind = _TYPES[chance.choice("ddfil")]
    guilty, root = chance.randrange(ranks), chance.randrange(ranks)
    worker = chance.randrange(1, ranks)
    return {
        "n": str(chance.choice((8, 12, 16, 24, 32))),
        "m": str(chance.choice((4, 5, 6))),
        "k": str(chance.randint(2, 4)),
        "big": str(chance.choice((20_000, 50_000, 80_000))),
        "tag": str(chance.randint(1, 49)),
        "tag2": str(chance.randint(50, 99)),
        "x": str(chance.choice((0.5, 0.25, 1.5))),
        "dt": chance.choice(spellings),
        "mt": kind,
        "dt2": other,
        "mt2": other_kind,
        "g": str(guilty),
        "h": str((guilty + 1) % ranks),
        "root": str(root),
        "other": str((root + 1) % ranks),
        "w": str(worker),
    }


def arrange(template: Template, chance: Random, twin: str) -> list[Line]:
    """The lines of one twin: imports, functions, and the body in a script, a function or a class.

    Args:
        template: of the program.
        chance: draws the shape, and what the program begins and ends with.
        twin: `-` the faulty one, `+` the mended one.
    """
    functions = [line for line in template.functions if line.twin in ("", twin)]
    body = [line for line in template.body if line.twin in ("", twin)]
    shape = chance.choice(("main", "class") if template.whole else ("script", "main", "class"))
    opening, ending = chance.choice(_OPENINGS), chance.choice(_ENDINGS)
    body = [*map(Line.parse, opening), *body, *map(Line.parse, () if template.whole else ending)]
    text = "\n".join(line.text for line in [*functions, *body])
    imports = ["import time", ""] if "time." in text else []
    imports += ["import numpy as np"] if "np." in text or "$dt" in text else []
    imports += ["from mpi4py import MPI", ""]
    above = [Line.parse(text) for text in imports]
    if functions:
        above += [Line.parse(""), *functions, Line.parse("")]
    return above + _SHAPES[shape](body, chance)


def _script(body: Sequence[Line], chance: Random) -> list[Line]:
    """The body stands in the module."""
    rank, size = chance.choice((("rank", "size"), ("Get_rank()", "Get_size()")))
    head = ["comm = MPI.COMM_WORLD", f"rank = comm.{rank}", f"size = comm.{size}", ""]
    return [*map(Line.parse, head), *body]


def _function(body: Sequence[Line], chance: Random) -> list[Line]:
    """The body stands in a function."""
    head = ["", "def main():", "    comm = MPI.COMM_WORLD"]
    head += ["    rank, size = comm.Get_rank(), comm.Get_size()"]
    tail = ["", "", *chance.choice((["main()"], ['if __name__ == "__main__":', "    main()"]))]
    return [*map(Line.parse, head), *_indent(body, 4), *map(Line.parse, tail)]


def _class(body: Sequence[Line], chance: Random) -> list[Line]:
    """The body stands in a method."""
    name = chance.choice(("Solver", "Model", "Simulation", "Experiment"))
    head = ["", f"class {name}:", "    def __init__(self, comm):"]
    head += ["        self.comm = comm", "        self.rank = comm.Get_rank()", ""]
    head += ["    def run(self):", "        comm, rank = self.comm, self.rank"]
    head += ["        size = comm.Get_size()"]
    tail = ["", "", f"{name}(MPI.COMM_WORLD).run()"]
    return [*map(Line.parse, head), *_indent(body, 8), *map(Line.parse, tail)]


_SHAPES: Final = {"script": _script, "main": _function, "class": _class}


def _indent(lines: Sequence[Line], by: int) -> Iterator[Line]:
    for line in lines:
        yield Line(" " * by + line.text if line.text else "", line.twin, line.guilty)


def rename(text: str, names: dict[str, str]) -> str:
    """Give variables other names: neither attributes nor the names of arguments in calls."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    taken = {token.string for token in tokens if token.type == tokenize.NAME}
    names = {old: new for old, new in names.items() if new == old or new not in taken}
    lines, depth = text.splitlines(keepends=True), 0
    found = []
    for before, token, after in zip([tokens[0], *tokens], tokens, tokens[1:], strict=False):
        depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
        argument = depth and after.string == "=" and before.string in ("(", ",")
        if token.string in names and before.string not in (".", "def") and not argument:
            found.append(token)
    for token in reversed(found):
        row, begin = token.start[0] - 1, token.start[1]
        line = lines[row]
        lines[row] = line[:begin] + names[token.string] + line[token.end[1] :]
    return "".join(lines)


def every_template(classes: Sequence[str] = (*CLASSES, CORRECT)) -> Iterator[Template]:
    """The templates of some classes, and of the correct programs."""
    for name in classes:
        yield from read_templates(name)


def make_cases(count: int, seed: int, classes: Sequence[str] = (*CLASSES, CORRECT)) -> list[Case]:
    """So many cases, all templates in turn, each time with another seed.

    Args:
        count: of cases; 0 for each twin of each template once.
        seed: of the first turn.
        classes: of which ones, `correct` for those without a faulty twin.
    """
    templates = list(every_template(classes))
    found: list[Case] = []
    while len(found) < max(count, 1):
        for template in templates:
            found += [make_case(template, seed, faulty=faulty) for faulty in template.twins]
        seed += 1
    return found[: count or None]


def find_case(name: str) -> Case:
    """The case of a name, as `deadlock/recv_first/0/faulty`."""
    label, template, seed, twin = name.split("/")
    (found,) = (one for one in read_templates(label) if one.name == template)
    return make_case(found, int(seed), faulty=twin == "faulty")


if __name__ == "__main__":
    print(find_case(sys.argv[1]).text)
