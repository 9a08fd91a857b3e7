"""Programs that would import another mpi4py than ours: their processes would be no ranks.

ompy's package is found by PYTHONPATH, which `python -E` and `-I` ignore and `--no-mpi4py` leaves
alone. An mpi4py over a C library then makes each process a job of its own, and nothing fails.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

_PYTHON: Final = re.compile(r"python(\d(\.\d+)?)?$")
_VALUED: Final = "WXcm"  # options of Python that take a word, or end the options
_IGNORING: Final = "EI"  # those with which it ignores PYTHONPATH
_LOOK: Final = (
    "import importlib.util as u; s = u.find_spec('mpi4py'); "
    "print(s.origin if s is not None and '/ompy/dropin/' not in str(s.origin) else '')"
)
PATIENCE: Final = 10  # s; arbitrary: a Python that does not start for so long has other troubles


def python_options(argv: Sequence[str]) -> list[str] | None:
    """The options a program gives its Python, or None if it is no Python."""
    if not argv or not _PYTHON.match(os.path.basename(argv[0])):
        return None
    found = []
    for word in argv[1:]:
        if not word.startswith("-") or word in {"-", "--"} or word[1:2] in _VALUED:
            break
        found.append(word)
    return found


def ignores_path(options: Sequence[str]) -> bool:
    """Whether Python ignores PYTHONPATH with these options."""
    return any(set(word[1:]) & set(_IGNORING) for word in options if not word.startswith("--"))


def complaint(argv: Sequence[str], *, ours: bool) -> str:
    """What is wrong with a program that would find another mpi4py; empty where nothing is.

    Args:
        argv: the program.
        ours: ompy's package is to be found: no `--no-mpi4py`.
    """
    options = python_options(argv)
    if options is None or (ours and not ignores_path(options)):
        return ""
    import subprocess  # late: few programs come so far

    try:
        words = [argv[0], *options, "-c", _LOOK]
        done = subprocess.run(  # noqa: S603 - the program the user gave
            words, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    origin = done.stdout.strip()
    if not origin:
        return ""
    why = f"{' '.join([argv[0], *options])} ignores PYTHONPATH" if ours else "--no-mpi4py"
    return (
        f"warning: {why}: `import mpi4py` finds {origin}, not ompy's. Processes that use it are no "
        "ranks of this job, but each a job of its own with one rank"
    )
