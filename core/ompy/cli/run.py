"""`ompy-run`: start a job, show what it writes, end with its exit code.

Options and exit codes are those of Open MPI's `mpirun` (reference openmpi.md 2.4 to 2.6).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from ompy import __version__
from ompy.frameworks.job import App, Job, Placement
from ompy.mca.errors import ComponentError, UsageError, did_you_mean

if TYPE_CHECKING:
    from ompy.frameworks.plm import PlmComponent
    from ompy.mca.registry import Registry

PROGRAM: Final = "ompy-run"
SEPARATOR: Final = ":"  # between the programs of a job
USAGE: Final = UsageError.exit_code
NOT_STARTED: Final = 1  # reference openmpi.md 2.6: the launcher's own failures
INTERRUPTED: Final = 130  # 128 and SIGINT
NOT_EXECUTABLE: Final = 126  # as a shell has it
NOT_FOUND: Final = 127  # as a shell has it

ALIASES: Final = {
    "--n": "-n",
    "--np": "-n",
    "-np": "-n",
    "-c": "-n",
    "--gmca": "--mca",
    "--wd": "--wdir",
}  # reference openmpi.md 2.4; any long option may also have one dash
ABSENT: Final = (
    "--host -H --hostfile --machinefile --map-by --rank-by --bind-to --report-bindings --rankfile "
    "--npernode --pernode --npersocket -N --output-filename --merge-stderr-to-stdout --xml "
    "--xterm --tune --am --app --prefix --path --cpu-set --cpu-list --enable-recovery "
    "--max-restarts --debug --tv -d -v --report-pid --report-uri --preload-files --output "
    "--display --get-stack-traces --report-state-on-timeout"
)  # reference openmpi.md 2.4: options of mpirun that mean nothing here yet
JOB_WIDE: Final = {
    "timeout",
    "tag_output",
    "timestamp_output",
    "stdin",
    "oversubscribe",
    "mpi4py",
    "display_map",
    "do_not_launch",
    "quiet",
}  # options that stand before the first program


class CommandError(Exception):
    """What the user asked for cannot be done. Nothing has been started.

    Attributes:
        exit_code: what `ompy-run` ends with.
    """

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@click.command(
    PROGRAM,
    options_metavar="[options]",
    epilog="Several programs make one job: ompy-run -n 1 python a.py : -n 3 python b.py. "
    "Parameters for --mca: ompy-info --all. Exit code: that of the first rank that failed, "
    "128 plus the signal that killed it, 110 after a timeout.",
)
@click.option(
    "-n",
    "-np",
    "count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Processes to start. Default: as many as there are cores.",
)
@click.option(
    "--mca",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    help="Set an MCA parameter for the whole job. Repeatable.",
)
@click.option(
    "-x",
    "exports",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Set an environment variable for the program. Repeatable.",
)
@click.option("--wdir", metavar="DIR", help="Working directory of the program.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End the job after so long, with exit code 110. Also: MPIEXEC_TIMEOUT.",
)
@click.option("--tag-output", is_flag=True, help="Begin each line with [job,rank]<stream>:.")
@click.option("--timestamp-output", is_flag=True, help="Begin each line with the time.")
@click.option(
    "--stdin",
    default="0",
    metavar="RANK",
    help="Which rank gets the standard input, or none. Default: 0.",
)
@click.option(
    "--oversubscribe/--nooversubscribe",
    default=True,
    help="Whether there may be more processes than cores. Default: yes.",
)
@click.option(
    "--no-mpi4py",
    "mpi4py",
    flag_value=False,
    default=True,
    is_flag=True,
    help="Let `import mpi4py` find what is installed, not ompy.",
)
@click.option("--display-map", is_flag=True, help="Show which rank runs where.")
@click.option("--do-not-launch", is_flag=True, help="Check everything and stop.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about how the job ended.")
@click.option("--allow-run-as-root", is_flag=True, hidden=True)
@click.version_option(__version__, "-V", "--version", message="%(prog)s (ompy) %(version)s")
@click.help_option("-h", "--help")
@click.argument("program", nargs=1, required=False, metavar="PROGRAM [ARGUMENTS]...")
def command(**_options: object) -> None:
    """Run PROGRAM as the processes of one MPI job.

    Options stand before the program; what follows it is the program's own.
    """


class Group(NamedTuple):
    """What stands between two `:` of the command line.

    Attributes:
        options: by name.
        given: names of the options the user wrote.
        argv: program and arguments.
    """

    options: dict[str, Any]
    given: frozenset[str]
    argv: tuple[str, ...]


def parse(arguments: Sequence[str]) -> list[Group]:
    """Take a command line apart.

    Raises:
        CommandError: it is not valid.
        click.exceptions.Exit: help or version was asked for and has been printed.
    """
    groups = []
    parts = _split(arguments)
    for number, part in enumerate(parts, 1):
        where = f"program {number}: " if len(parts) > 1 else ""
        try:
            groups.append(_parse_group(part))
        except click.UsageError as problem:
            raise CommandError(where + problem.format_message()) from None
        except CommandError as problem:
            raise CommandError(where + str(problem), problem.exit_code) from None
    for number, group in enumerate(groups[1:], 2):
        late = JOB_WIDE & group.given
        if late:
            name = min(late).replace("_", "-")
            raise CommandError(f"program {number}: --{name} belongs before the first program")
    return groups


def _split(arguments: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts


def _parse_group(tokens: Sequence[str]) -> Group:
    options, argv = _take_options(tokens)
    context = command.make_context(PROGRAM, list(options))
    given = frozenset(
        name
        for name in context.params
        if context.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
    )
    if not argv:
        raise CommandError(f"no program to run; {PROGRAM} -n 2 python app.py would run one")
    return Group(context.params, given, argv)


def _take_options(tokens: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The options in their usual spelling, and what is left from the program on."""
    arities = _arities()
    options: list[str] = []
    position = 0
    while position < len(tokens) and tokens[position].startswith("-") and tokens[position] != "-":
        token = tokens[position]
        position += 1
        if token == "--":  # noqa: S105 - no password
            break
        if token.startswith("-n") and token[2:].isdigit():
            options += ["-n", token[2:]]
            continue
        written, equals, value = token.partition("=")
        name = _usual_spelling(written, arities)
        values = [value] if equals else []
        missing = arities[name] - len(values)
        values += tokens[position : position + missing]
        if len(values) != arities[name]:
            raise CommandError(f"{written} needs {arities[name]} argument(s), got {len(values)}")
        position += missing
        options += [name, *values]
    return options, tuple(tokens[position:])


def _arities() -> dict[str, int]:
    """How many arguments each option takes, by its spellings."""
    found = {}
    for option in command.get_params(click.Context(command)):
        if isinstance(option, click.Option):
            for name in (*option.opts, *option.secondary_opts):
                found[name] = 0 if option.is_flag else option.nargs
    return found


def _usual_spelling(written: str, known: Mapping[str, int]) -> str:
    for spelling in (written, f"-{written}"):  # `-tag-output` is `--tag-output`
        name = ALIASES.get(spelling, spelling)
        if name in known:
            return name
    if {written, f"-{written}"} & set(ABSENT.split()):
        raise CommandError(f"{written} is an option of mpirun that {PROGRAM} does not have")
    near = did_you_mean(f"--{written.strip('-')}", [*known, *ALIASES])
    raise CommandError(f"there is no option {written}{near}")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def make_job(groups: Sequence[Group], host: str) -> Job:
    """The job a command line asks for, all on one host; parameters are still missing.

    Raises:
        CommandError: it cannot be run.
    """
    first = groups[0].options
    apps = tuple(_make_app(group, alone=len(groups) == 1) for group in groups)
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
    )


def _make_app(group: Group, *, alone: bool) -> App:
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
    environment = _exports(group.options["exports"])
    find_program(group.argv[0], environment, directory)
    return App(group.argv, count, environment, directory)


def _exports(exports: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Variables for the ranks; one without a value is the launcher's own."""
    found = {}
    for export in exports:
        name, equals, value = export.partition("=")
        if not name:
            raise CommandError(f"-x {export}: there is no name before the =")
        if not equals and name not in os.environ:
            _say(f"warning: -x {name}: there is no such variable in the environment")
            continue
        found[name] = value if equals else os.environ[name]
    return tuple(found.items())


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
    options = {option.lstrip("-"): option for option in [*_arities(), *ALIASES]}
    near = did_you_mean(name, [option for option in options if len(option) > 1])
    for word, option in options.items():
        if near.endswith(f" {word}?"):
            return f"{message}; did you mean the option {option}?"
    return message


def resolve(parameters: Sequence[tuple[str, str]]) -> tuple[Registry, PlmComponent]:
    """Check all parameters and choose what starts agents.

    Raises:
        UsageError: a parameter is wrong.
        ComponentError: a component the user named cannot be used.
        CommandError: no component can start anything here.
    """
    from ompy.frameworks.catalog import CATALOG
    from ompy.frameworks.plm import PlmComponent
    from ompy.mca.registry import Registry
    from ompy.mca.settings import gather

    registry = Registry(CATALOG, gather(parameters, os.environ))
    registry.check()
    found = registry.open("plm")
    if not found:
        text = "no plm component can start processes here; ompy-info --plugins says why"
        raise CommandError(text, NOT_STARTED)
    best, *others = found
    assert isinstance(best, PlmComponent)
    registry.select(best)
    for other in others:
        registry.pass_over(other, f"{best.name} has the higher priority")
    return registry, best


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


def run(arguments: Sequence[str]) -> int:
    """Everything but the presentation of errors. Returns the exit code."""
    import socket

    groups = parse(arguments)
    options = groups[0].options
    seconds, source = timeout(options["timeout"], os.environ)
    job = make_job(groups, socket.gethostname())
    registry, plm = resolve([pair for group in groups for pair in group.options["mca"]])
    job = job._replace(mca=registry.snapshot())
    universe = max(cores(), len(job.placements))
    if options["display_map"]:
        from ompy.runtime.report import job_map

        click.echo(job_map(job, universe), nl=False)
    if options["do_not_launch"]:
        return 0

    from ompy.mca.hooks import hook_caller
    from ompy.runtime.launcher import LaunchOptions, launch

    launch_options = LaunchOptions(
        universe=universe,
        kill_grace_ms=registry.values("plm").kill_grace_ms,
        tag=options["tag_output"],
        timestamp=options["timestamp_output"],
        timeout_s=seconds,
        timeout_source=source,
        quiet=options["quiet"],
    )
    hooks = hook_caller(registry)
    hooks.ompy_job_launching(job)
    try:
        code = launch(job, plm, launch_options)
        hooks.ompy_job_finished(code)
        return code
    finally:
        registry.close()


def _say(text: str) -> None:
    click.echo(f"{PROGRAM}: {text}", err=True)


def _keep_standard_streams() -> None:
    """Let no socket of ours get the number of a standard stream that is closed."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point. Returns the exit code."""
    _keep_standard_streams()
    return _guarded(lambda: run(sys.argv[1:] if arguments is None else arguments))


def _guarded(action: Callable[[], int]) -> int:
    from ompy.mca.component import NotAvailable
    from ompy.runtime.control import ControlError

    try:
        return action()
    except click.exceptions.Exit as end:  # after --help or --version
        return end.exit_code
    except UsageError as problem:
        for text in problem.problems:
            _say(f"error: {text}")
        return problem.exit_code
    except (CommandError, ComponentError) as problem:
        _say(f"error: {problem}")
        if problem.exit_code == USAGE:
            click.echo(f"Try '{PROGRAM} --help'.", err=True)
        return problem.exit_code
    except (NotAvailable, ControlError) as problem:
        _say(f"error: the job could not be started: {problem}")
        return NOT_STARTED
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
