"""How long a job may take: `--timeout`, and the variable that other launchers have for it."""

from __future__ import annotations

from collections.abc import Mapping

from ompy.cli.command_line import CommandError, shown


def job_timeout(option: float | None, environment: Mapping[str, str]) -> tuple[float, str]:
    """Seconds a job may take, 0 for ever, and what said so (reference openmpi.md 2.4).

    Raises:
        CommandError: the variable makes no sense, or says something else than the option.
    """
    text = environment.get("MPIEXEC_TIMEOUT", "")
    if option is not None and not 0 < option < float("inf"):
        raise CommandError(f"--timeout {option}: a number of seconds above 0 is needed")
    if not text:
        return (option, f"--timeout {option:g}") if option else (0.0, "")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise CommandError(f"MPIEXEC_TIMEOUT={shown(text)}: a number of seconds above 0 is needed")
    if option and option != seconds:
        raise CommandError(f"--timeout {option:g} and MPIEXEC_TIMEOUT={text} differ")
    return seconds, f"MPIEXEC_TIMEOUT={text}"
