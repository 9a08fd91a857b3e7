"""Reference: exit codes and environment variables.

What they mean is said in `docs/site/reference.toml`. Numbers and names come from the code: a
variable that the code has and the file has not ends the build, and so does one that is gone.
"""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from tools.site.markdown import cell, code, table

ROOT: Final = Path(__file__).resolve().parents[2]
MEANINGS: Final = ROOT / "docs" / "site" / "reference.toml"
SOURCES: Final = ("core/ompy", "components/ompy_components", "plugins-contrib/pytest-ompy/src")
VARIABLE: Final = re.compile(r"(OMPY|MPIEXEC|MPI4PY)_[A-Z_]+")
CODES: Final = """# Exit codes

A job that ends well has the code 0. When a rank fails, its own code is that of the job: the first
failure decides. 2 is for a wrong command line or a wrong setting, in every command. These are the
codes that ompy adds.

"""
ELSEWHERE: Final = """
Ranks also find `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`, `OMPI_COMM_WORLD_LOCAL_RANK`,
`OMPI_COMM_WORLD_LOCAL_SIZE`, `OMPI_COMM_WORLD_NODE_RANK` and `OMPI_UNIVERSE_SIZE`, as Open MPI sets
them. Parameters of the conduits have GASNet's names as well ([conduit](parameters/conduit.md)).
In a Slurm allocation the hosts come from `SLURM_JOB_NODELIST` and `SLURM_TASKS_PER_NODE`.
`NO_COLOR` and `TERM=dumb` switch colours off.
"""


def pages() -> dict[str, str]:
    """Both pages."""
    meanings = tomllib.loads(MEANINGS.read_text())
    return {
        "exit-codes.md": exit_codes(meanings["codes"]),
        "environment.md": environment(meanings["variables"]),
    }


def exit_codes(codes: list[dict[str, str]]) -> str:
    """Codes, with the number the code has today."""
    rows = []
    for one in codes:
        module, _, name = one["declared"].rpartition(".")
        number = getattr(importlib.import_module(module), name)
        shown = [str(number), cell(one["command"]), cell(one["meaning"]), code(one["declared"])]
        rows.append((number, shown))
    rows.sort(key=lambda row: row[0])
    return CODES + table(["code", "command", "meaning", "declared as"], (row for _, row in rows))


def environment(groups: dict[str, Any]) -> str:
    """Variables, with the modules that name them.

    Raises:
        ValueError: the file and the code have other names.
    """
    found = variables()
    known = {name for group in groups.values() for name in group["names"]}
    unknown, gone = sorted(found.keys() - known), sorted(known - found.keys())
    if unknown or gone:
        raise ValueError(f"{MEANINGS}: to be described: {unknown}; to go: {gone}")
    parts = ["# Environment variables\n"]
    for group in groups.values():
        rows = (
            [code(name), cell(text), _homes(found[name])] for name, text in group["names"].items()
        )
        columns = ["variable", "what it does", "read or set in"]
        parts += [f"## {group['title']}\n", table(columns, rows)]
    return "\n".join(parts) + ELSEWHERE


def _homes(paths: list[str]) -> str:
    more = f" and {len(paths) - 2} more" if len(paths) > 2 else ""
    return ", ".join(map(code, paths[:2])) + more


def variables() -> dict[str, list[str]]:
    """Every name in a string of the code that looks like a variable of ours, and where."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            for name in _named(path.read_text()):
                found[name].append(str(path.relative_to(ROOT)))
    return dict(found)


def _named(text: str) -> list[str]:
    if not VARIABLE.search(text):
        return []
    strings = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    named = [string.partition("=")[0] for string in strings]
    return list(dict.fromkeys(name for name in named if VARIABLE.fullmatch(name)))
