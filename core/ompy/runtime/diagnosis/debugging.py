"""A rank whose Python program runs under a debugger: `ompy-run --debug`. Pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

PDB: Final = "pdb"
DEBUGPY: Final = "debugpy"
PORT: Final = 5678  # arbitrary: what debugpy's documentation has, and editors look for
LOOPBACK: Final = "127.0.0.1"  # debugpy asks nobody who he is: only this host may connect
_WITH_WORD: Final = ("-W", "-X", "--check-hash-based-pycs")  # options of Python that take a word


class NotDebuggable(Exception):
    """Why a program cannot be run so."""


def debugger_words(debugger: str, port: int) -> list[str]:
    """What stands between Python's options and the program.

    Args:
        debugger: `PDB` or `DEBUGPY`.
        port: of debugpy, where an editor attaches.
    """
    if debugger == PDB:
        return [PDB]
    frozen = ["-X", "frozen_modules=off"]  # with them it may miss breakpoints, and says so
    return [*frozen, "-m", DEBUGPY, "--listen", f"{LOOPBACK}:{port}", "--wait-for-client"]


def debugged_words(argv: Sequence[str], words: Sequence[str]) -> list[str]:
    """A program's command line, with a debugger in it.

    Args:
        argv: `python [options] file ...`, or with `-m` or `-c`.
        words: of `debugger_words`.

    Raises:
        NotDebuggable: it is no such line.
    """
    place = _program_at(argv)
    if argv[place] == "-c" and PDB in words:
        raise NotDebuggable("pdb runs a file, or -m with a module, and no -c")
    if list(words) == [PDB]:  # the file is where this host has it
        words = [os.path.join(os.path.dirname(__file__), "rank_pdb.py")]
    return [*argv[:place], *words, *argv[place:]]


def _program_at(argv: Sequence[str]) -> int:
    """Index of the word where Python's own options end."""
    if not os.path.basename(argv[0]).startswith("python"):
        raise NotDebuggable(f"{argv[0]} is no Python: python FILE is what can be debugged")
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] not in {"-c", "-m", "-"}:
        at += 2 if argv[at] in _WITH_WORD else 1
    if at >= len(argv) or argv[at] == "-":
        raise NotDebuggable("python is given no file to run")
    return at
