"""`ompy-run --debug`: which rank runs under a debugger, and who talks to it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ompy.cli.launch.command_line import RANKS_MAX, CommandError, counted, shown
from ompy.cli.launch.hosts import PORT_MAX
from ompy.frameworks.job import Job
from ompy.runtime.diagnosis.debugging import (
    DEBUGPY,
    LOOPBACK,
    PDB,
    PORT,
    NotDebuggable,
    debugged_words,
    debugger_words,
)
from ompy.runtime.launching.launcher import Debugged


def debugged_job(options: Mapping[str, Any], job: Job, host: str) -> tuple[Job, Debugged | None]:
    """The job whose standard input is the debugger's, and the rank that has it, if one has.

    Raises:
        CommandError: no rank can be debugged so.
    """
    if options["debug"] is None:
        if options["debugger"]:
            raise CommandError(f"--debugger {options['debugger']}: --debug RANK says which rank")
        return job, None
    rank, port = _rank_and_port(options["debug"], len(job.placements))
    debugger = options["debugger"] or (DEBUGPY if port else PDB)
    if port and debugger == PDB:
        raise CommandError(f"--debug {options['debug']}: pdb has no port; --debugger debugpy has")
    words = debugger_words(debugger, port or PORT)
    app = job.apps[job.placements[rank].app]
    try:
        debugged_words(app.argv, words)
    except NotDebuggable as problem:
        raise CommandError(f"--debug {rank}: {problem}") from None
    home = job.hosts[job.placements[rank].node]
    here = home == host
    if debugger == DEBUGPY:
        if here:
            _insist_on_debugpy(app.argv[0])
        waits_at = f"{LOOPBACK}:{port or PORT}" + ("" if here else f" of {home}")
        return job, Debugged(rank, tuple(words), waits_at=waits_at)
    if job.stdin_rank not in {0, rank} or options["view"]:
        other = "--view" if options["view"] else f"--stdin {job.stdin_rank}"
        raise CommandError(f"--debug {rank} and {other}: both want the terminal")
    terminal = _terminal() if here else ""
    return job._replace(stdin_rank=-1 if terminal else rank), Debugged(rank, tuple(words), terminal)


def _rank_and_port(text: str, size: int) -> tuple[int, int]:
    """Of `RANK` or `RANK:PORT`; 0 for no port."""
    word, colon, number = text.partition(":")
    rank, port = counted(word), counted(number) if colon else 0
    if rank is None or rank > RANKS_MAX or port is None or (colon and not 1 <= port <= PORT_MAX):
        raise CommandError(f"--debug {shown(text)}: write RANK, or RANK:PORT for an editor")
    if rank >= size:
        raise CommandError(f"--debug {rank}: the last of {size} ranks is {size - 1}")
    return rank, port


def _insist_on_debugpy(python: str) -> None:
    """See that the program's Python has it, as far as that is this one."""
    import importlib.util
    import shutil
    import sys

    found = shutil.which(python)
    if found is None or os.path.realpath(found) != os.path.realpath(sys.executable):
        return
    if importlib.util.find_spec(DEBUGPY) is None:
        text = "--debugger debugpy: debugpy is not installed"
        raise CommandError(f"{text}; pip install 'ompy[debug]' has it, and pdb needs nothing")


def _terminal() -> str:
    """The path of the terminal that is our standard input and output; empty if none is."""
    try:
        name = os.ttyname(0)
        return name if os.ttyname(1) == name and os.access(name, os.R_OK | os.W_OK) else ""
    except OSError:
        return ""
