"""With which code the program of this process ends, as far as that is known when exit hooks run.

Python tells them no code. Who runs the program in this process, as an agent's fork and a simulated
rank do, notes it here; of a program that the interpreter itself runs it stays unknown.
"""

from __future__ import annotations

code: int | None = None
twin = 0  # the process that is the rank, if it is no longer the one that initialised MPI


def note(end: SystemExit | None) -> None:
    """The program has ended, with this or by its last line."""
    global code  # noqa: PLW0603 - a process has one program
    given = end.code if end is not None else 0
    code = given if isinstance(given, int) else int(given is not None)
