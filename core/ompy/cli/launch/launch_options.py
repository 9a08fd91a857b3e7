"""How the launcher is to behave, from the options of `ompy-run` and from parameters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ompy import outputs
from ompy.cli.launch.command_line import CommandError, shown
from ompy.mca.parameters.base_parameters import DEADLOCK_PATIENCE

if TYPE_CHECKING:
    from ompy.mca.registry import Registry
    from ompy.runtime.launching.launcher import LaunchOptions, OutputFiles


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


def launch_options(registry: Registry, options: Mapping[str, Any], universe: int) -> LaunchOptions:
    """How the launcher is to behave.

    Args:
        registry: its parameters.
        options: of the command line.
        universe: how many ranks the hosts are meant for.
    """
    from ompy.runtime.launching.launcher import LaunchOptions

    values = registry.values("plm")
    seconds, source = job_timeout(options["timeout"], os.environ)
    still_ms = registry.value(DEADLOCK_PATIENCE)
    assert isinstance(still_ms, int), "by its type"
    return LaunchOptions(
        universe=universe,
        kill_grace_ms=values.kill_grace_ms,
        tag=options["tag_output"],
        timestamp=options["timestamp_output"],
        timeout_s=seconds,
        timeout_source=source,
        quiet=options["quiet"],
        start_timeout_ms=values.start_timeout_ms,
        attach_timeout_ms=values.attach_timeout_ms,
        heartbeat_ms=values.heartbeat_ms,
        heartbeat_misses=values.heartbeat_misses,
        launcher_misses=values.launcher_misses,
        radix=values.radix,
        concurrent=values.num_concurrent,
        fault_strict=options["fault_strict"],
        survives=registry.values("pml").ft_enable,
        spares=options["spares"],
        joinable=os.path.abspath(options["joinable"]) if options["joinable"] else "",
        join_address=values.join_address,
        fork_ranks=values.fork_ranks,
        display_rails=registry.values("bml").display_rails,
        report_rails=os.path.abspath(options["report_rails"]) if options["report_rails"] else "",
        autopsy=os.path.abspath(options["autopsy"]) if options["autopsy"] else "",
        still_ms=still_ms,
        sample_interval_ms=registry.values("bml").sample_interval_ms,
        watch_rails=options["watch_rails"],
        merged=options["merge_stderr"],
        output=_output_files(options["output_filename"]),
        stacks=_stacks_wanted(options, seconds),
        record_rails=os.path.abspath(options["record_rails"]) if options["record_rails"] else "",
    )


def _output_files(text: str | None) -> OutputFiles | None:
    """What `DIR:nocopy,nojobid` asks for."""
    if not text:
        return None
    from ompy.runtime.launching.launcher import OutputFiles

    directory, _, after = text.partition(":")
    words = {word.lower() for word in after.split(",")} - {""}
    if not directory or words - {"nocopy", "nojobid"}:
        why = "write DIR, DIR:nocopy or DIR:nojobid, or DIR:nocopy,nojobid"
        raise CommandError(f"--output-filename {shown(text)}: {why}")
    directory = os.path.abspath(directory)
    try:
        os.close(outputs.open_directory(directory))
    except OSError as problem:
        raise CommandError(f"--output-filename {directory}: {problem.strerror}") from None
    return OutputFiles(directory, "nocopy" not in words, "nojobid" not in words)


def _stacks_wanted(options: Mapping[str, Any], seconds: float) -> bool:
    if options["get_stack_traces"] and not seconds:
        raise CommandError("--get-stack-traces shows them at a timeout: add --timeout SECONDS")
    return bool(options["get_stack_traces"])
