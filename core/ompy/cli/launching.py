"""From a command line of `ompy-run` to a job that has run: everything is checked first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from ompy.cli.command_line import (
    ALIASES,
    PROGRAM,
    TRACE_DIRECTORY,
    CommandError,
    Group,
    arities,
    parameters,
    parse,
)
from ompy.cli.exports import common_exports, environment
from ompy.frameworks.job import App, Job, Placement
from ompy.mca.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from ompy.frameworks.plm import PlmComponent
    from ompy.mca.registry import Registry
    from ompy.runtime.launcher import LaunchOptions

NOT_STARTED: Final = 1  # reference openmpi.md 2.6: the launcher's own failures
NOT_EXECUTABLE: Final = 126  # as a shell has it
NOT_FOUND: Final = 127  # as a shell has it


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def make_job(groups: Sequence[Group], host: str, common: Sequence[tuple[str, str]] = ()) -> Job:
    """The job a command line asks for, all on one host; parameters are still missing.

    Args:
        groups: the programs.
        host: this host.
        common: variables every program gets, from `common_exports`.

    Raises:
        CommandError: it cannot be run.
    """
    first = groups[0].options
    apps = tuple(_make_app(group, common, alone=len(groups) == 1) for group in groups)
    ranks = [app for app, count in enumerate(apps) for _ in range(count.ranks)]
    if not first["oversubscribe"] and len(ranks) > cores():
        raise CommandError(
            f"{len(ranks)} processes were asked for, {cores()} cores are available and "
            "--nooversubscribe was given"
        )
    return Job(
        job_id=os.urandom(8).hex(),
        apps=apps,
        hosts=(host,),
        placements=tuple(Placement(rank, app, 0, rank) for rank, app in enumerate(ranks)),
        stdin_rank=_stdin_rank(first["stdin"], len(ranks)),
        mpi4py=first["mpi4py"],
        oversubscribed=len(ranks) > cores(),
    )


def _make_app(group: Group, common: Sequence[tuple[str, str]], *, alone: bool) -> App:
    count = group.options["count"]
    if count is None:
        if not alone:
            raise CommandError(f"each of several programs needs its -n: {group.argv[0]} has none")
        count = cores()
    directory = group.options["wdir"] or ""
    if directory:
        directory = os.path.abspath(directory)
        if not os.path.isdir(directory):
            raise CommandError(f"--wdir {group.options['wdir']}: there is no such directory")
    variables, warnings = environment(group.options["exports"], common, os.environ)
    for warning in warnings:
        say(f"warning: {warning}")
    try:
        find_program(group.argv[0], tuple(variables.items()), directory)
    except CommandError as problem:
        raise CommandError(f"{problem}{_swallowed(group)}", problem.exit_code) from None
    return App(group.argv, count, tuple(variables.items()), directory)


def _swallowed(group: Group) -> str:
    """A hint when `--mca btl python a.py` has taken the interpreter for a value."""
    import shutil

    for name, value in group.options["mca"]:
        if value.startswith("python") and shutil.which(value):
            return f". {value} was taken as the value of --mca {name}: is the value missing?"
    return ""


def _stdin_rank(text: str, size: int) -> int:
    if text == "none":
        return -1
    if not text.isdecimal():
        raise CommandError(f"--stdin {text}: a rank or none is needed")
    if int(text) >= size:
        raise CommandError(f"--stdin {text}: the last of {size} ranks is {size - 1}")
    return int(text)


def find_program(name: str, environment: tuple[tuple[str, str], ...], directory: str) -> None:
    """See that a program can be executed where the ranks will look for it.

    Raises:
        CommandError: it cannot; exit code 127 or 126.
    """
    from ompy.runtime.environment import search_path

    if not name:
        raise CommandError("the name of the program is empty")
    here = directory or os.getcwd()
    if "/" in name:
        candidates = [os.path.join(here, name)]
    else:
        path = search_path(environment)
        candidates = [os.path.join(here, part, name) for part in path.split(os.pathsep)]
    files = [candidate for candidate in candidates if os.path.isfile(candidate)]
    if any(os.access(file, os.X_OK) for file in files):
        return
    if files or os.path.isdir(candidates[0]):
        hint = f"; a Python program is run by: {PROGRAM} ... python {name}"
        shown = files[0] if files else candidates[0]
        raise CommandError(f"{shown} is not executable{hint}", NOT_EXECUTABLE)
    raise CommandError(_not_found(name, here), NOT_FOUND)


def _not_found(name: str, here: str) -> str:
    if "/" in name:
        return f"there is no program {os.path.join(here, name)}"
    message = f"there is no program {name}; it was looked for in PATH"
    if os.path.isfile(os.path.join(here, name)):
        right = f"python {name}" if name.endswith(".py") else f"./{name}"
        return f"{message}. There is a file of this name here: write {right}"
    options = {option.lstrip("-"): option for option in [*arities(), *ALIASES]}
    near = did_you_mean(name, [option for option in options if len(option) > 1])
    for word, option in options.items():
        if near.endswith(f" {word}?"):
            return f"{message}; did you mean the option {option}?"
    return message


def resolve(pairs: Sequence[tuple[str, str]]) -> tuple[Registry, PlmComponent]:
    """Check all parameters of a command line and choose what starts agents.

    Says which settings do not do what they seem to, and which components there are that cannot be
    used, as far as that is known here.

    Raises:
        ComponentsFailed: of these, one that the user named or does not tolerate.
        UsageError: a parameter is wrong.
        ComponentError: a component the user named cannot be used.
        CommandError: no component can start anything here.
    """
    from ompy.frameworks.catalog import CATALOG
    from ompy.frameworks.plm import PlmComponent
    from ompy.mca.registry import Registry
    from ompy.mca.settings import gather

    registry = Registry(CATALOG, gather(pairs, os.environ))
    registry.check()
    for notice in registry.notices():
        say(f"warning: {notice}")
    found = registry.open("plm")
    if not found:
        text = "no plm component can start processes here; ompy-info --plugins says why"
        raise CommandError(text, NOT_STARTED)
    best, *others = found
    assert isinstance(best, PlmComponent)
    registry.select_over(best, others)
    _settle(registry)
    return registry, best


def _settle(registry: Registry) -> None:
    """Tell of components that have failed so far, or stop if they are not tolerated."""
    registry.insist()
    registry.tell_warnings(say)


def timeout(option: float | None, environment: Mapping[str, str]) -> tuple[float, str]:
    """Seconds a job may take, 0 for ever, and what said so (reference openmpi.md 2.4).

    Raises:
        CommandError: the variable makes no sense, or says something else than the option.
    """
    text = environment.get("MPIEXEC_TIMEOUT", "")
    if not text:
        return (option, f"--timeout {option:g}") if option else (0.0, "")
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise CommandError(f"MPIEXEC_TIMEOUT={text}: a number of seconds above 0 is needed")
    if option and option != seconds:
        raise CommandError(f"--timeout {option:g} and MPIEXEC_TIMEOUT={text} differ")
    return seconds, f"MPIEXEC_TIMEOUT={text}"


def fault_script(
    options: Mapping[str, Any], job: Job, registry: Registry
) -> tuple[Mapping[str, Any], ...]:
    """The rules of all `--fault` options, for the ranks.

    Raises:
        UsageError: a script is wrong.
        CommandError: the options make no sense together.
    """
    if not options["fault"]:
        if options["fault_strict"]:
            raise CommandError("--fault-strict: there is no --fault")
        return ()
    from ompy.runtime.fault_script import read_faults

    rules = read_faults(options["fault"], len(job.placements))
    if len(job.hosts) < len(job.placements) and through_memory(str(registry.value("btl"))):
        say(
            "warning: --fault: ranks of one host talk through shared memory (btl sm), where there "
            "is no wire for a fault to strike; --mca btl self,tcp or self,usnic takes the network"
        )
    return tuple(rule._asdict() for rule in rules)


def through_memory(btl: str) -> bool:
    """Whether a value of the parameter `btl` lets sm in."""
    names = set(btl.lstrip("^").split(","))
    return not btl or bool({"sm", "vader"} & names) is not btl.startswith("^")


def run(arguments: Sequence[str]) -> int:
    """Everything but the presentation of errors. Returns the exit code."""
    import socket

    groups = parse(arguments)
    options = groups[0].options
    seconds, source = timeout(options["timeout"], os.environ)
    try:
        registry, plm = resolve(parameters(groups))
    except UsageError:
        # a program that is not there often explains the rest: it was taken for a value
        make_job(groups, socket.gethostname())
        raise
    exports = [word for group in groups for word in group.options["exports"]]
    job = make_job(groups, socket.gethostname(), common_exports(registry, exports))
    job = job._replace(mca=registry.snapshot(), faults=fault_script(options, job, registry))
    universe = max(cores(), len(job.placements))
    if options["display_map"]:
        from ompy.runtime.report import job_map

        click.echo(job_map(job, universe), nl=False)
    if options["do_not_launch"]:
        return 0

    from ompy.runtime.launcher import LaunchOptions

    launch_options = LaunchOptions(
        universe=universe,
        kill_grace_ms=registry.values("plm").kill_grace_ms,
        tag=options["tag_output"],
        timestamp=options["timestamp_output"],
        timeout_s=seconds,
        timeout_source=source,
        quiet=options["quiet"],
        fault_strict=options["fault_strict"],
    )
    try:
        return _launch(registry, plm, job, launch_options)
    finally:
        registry.close()


def _launch(registry: Registry, plm: PlmComponent, job: Job, options: LaunchOptions) -> int:
    """Run the job, with all who want to know of it told. Returns the exit code."""
    from ompy.cli.traced_job import start_trace
    from ompy.mca.hooks import hook_caller
    from ompy.runtime.launcher import launch

    directory = str(registry.value(TRACE_DIRECTORY))
    trace = start_trace(directory, job, registry) if directory else None
    hooks = hook_caller(registry)
    hooks.ompy_job_launching(job)
    _settle(registry)
    job = job._replace(mca=registry.snapshot())  # with what has become of the hooks
    code = launch(job, plm, options)
    hooks.ompy_job_finished(code)
    if trace is not None:
        trace.ended(code)
    return code


def say(text: str) -> None:
    """Tell the user, on standard error."""
    click.echo(f"{PROGRAM}: {text}", err=True)
