"""All options of `ompy-run`, as click knows them.

Options are those of Open MPI's `mpirun` (reference openmpi.md 2.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import click

from ompy import __version__
from ompy.cli.completing.completion import (
    complete_directory,
    complete_file,
    complete_parameter,
    complete_rank,
    complete_variable,
)
from ompy.cli.given_words import refuse_empty_words
from ompy.cli.launch.command_line import (
    JOB_WIDE,
    PROGRAM,
    RANKS_MAX,
    Answered,
    CommandError,
    Group,
    split_programs,
)
from ompy.cli.numbers import Number, WholeNumber
from ompy.mca.errors import did_you_mean
from ompy.mca.reporting import FORMATS

ALIASES: Final = {
    "--n": "-n",
    "--np": "-n",
    "-np": "-n",
    "-c": "-n",
    "--gmca": "--mca",
    "--wd": "--wdir",
    "-H": "--host",
    "--machinefile": "--hostfile",
    "-N": "--npernode",
    "--merge-stderr-to-stdout": "--merge-stderr",
    "--cpus-per-proc": "--cpus-per-rank",
    "--cpu-list": "--cpu-set",
    "-rf": "--rankfile",
}  # reference openmpi.md 2.4; any long option may also have one dash
ABSENT: Final = (
    "--npersocket --xml --xml-file --xterm --app --path --noprefix "
    "--enable-recovery --disable-recovery --max-restarts --continuous "
    "--report-child-jobs-separately --tv -d -v --report-pid --report-uri --preload-files "
    "--preload-binary --output --display --report-state-on-timeout --pernode "
    "--nolocal --bynode --byslot --bycore --display-devel-map --display-allocation "
    "--display-topo --display-diffable-map --show-progress --debug-daemons "
    "--leave-session-attached --personality --dvm --ompi-server --index-argv-by-rank "
    "--default-hostfile --set-env --prepend-env --append-env --unset-env --spawn-timeout --rtos "
    "--runtime-options --stream-buffering --with-ft --initial-errhandler"
)  # reference openmpi.md 2.4: options of mpirun that mean nothing here yet
INSTEAD: Final = {
    "--output": "--tag-output, --timestamp-output, --merge-stderr or --output-filename DIR",
    "--display": "--display-map or --report-bindings",
    "--pernode": "--npernode 1",
    "--bynode": "--map-by node",
    "--byslot": "--map-by slot",
    "--bycore": "--map-by core",
    "--npersocket": "--map-by ppr:N:socket",
    "--enable-recovery": "--mca mpi_ft_enable 1",
    "--with-ft": "--mca mpi_ft_enable 1",
    "--path": "-x PATH=FOLDERS",
    "--set-env": "-x NAME=VALUE",
    "--spawn-timeout": "--mca plm_base_start_timeout_ms MS",
    "--stream-buffering": "-x PYTHONUNBUFFERED=1",
    "--xterm": "--debug RANK or --output-filename DIR",
    "-v": "--mca plm_base_verbose component",
    "--ppn": "--npernode N",
    "--perhost": "--npernode N",
    "--genv": "-x NAME=VALUE",
    "--env": "-x NAME=VALUE",
    "--genvlist": "-x NAME for each",
    "--envlist": "-x NAME for each",
    "--hosts": "--host A,B",
    "-f": "--hostfile FILE",
    "-l": "--tag-output",
    "--prepend-rank": "--tag-output",
    "--print-rank-map": "--display-map",
    "--launcher": "--mca plm NAME",
    "--bootstrap": "--mca plm NAME",
    "--iface": "--mca btl_tcp_if_include NAME",
    "-s": "--stdin RANK",
    "--genvnone": "env(1) in front of the line, and -x NAME=VALUE",
    "--envnone": "env(1) in front of the line, and -x NAME=VALUE",
    "--outfile-pattern": "--output-filename DIR",
    "--errfile-pattern": "--output-filename DIR",
    "--prepend-pattern": "--tag-output or --timestamp-output",
    "--configfile": "its programs on the line, as in -n 1 a : -n 2 b",
    "--app": "its programs on the line, as in -n 1 a : -n 2 b",
    "--gdb": "--debug RANK",
    "--ntasks": "-n N",
    "--ntasks-per-node": "--npernode N",
    "--cpus-per-task": "--cpus-per-rank N --bind-to core",
    "--cpu-bind": "--bind-to OBJECT",
    "--nodelist": "--host A,B",
    "--label": "--tag-output",
    "--chdir": "--wdir DIR",
    "--export": "-x NAME=VALUE for each",
    "--time": "--timeout SECONDS",
}  # docs/launch-options.md: what to write for options of other launchers


@click.command(
    PROGRAM,
    options_metavar="[options]",
    epilog="Several programs make one job: ompy-run -n 1 python a.py : -n 3 python b.py. "
    "Parameters for --mca: ompy-info --all. Exit code: that of the first rank that failed, "
    "128 plus the signal that killed it, 110 after a timeout, 3 when --fault-strict has cause, 4 "
    "for a deadlock.",
)
@click.option(
    "-n",
    "-np",
    "count",
    type=WholeNumber(1, RANKS_MAX),
    metavar="N",
    help="Processes to start. Default: as many as the hosts have slots; this host has as many as "
    "cores.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME[:N],...",
    help="Hosts to use and their slots, 1 if nothing is said. Repeatable. With --hostfile: "
    "which of its hosts.",
)
@click.option(
    "--hostfile",
    "hostfiles",
    multiple=True,
    metavar="FILE",
    shell_complete=complete_file,
    help="Hosts to use: lines of NAME slots=N max_slots=N username=U port=P.",
)
@click.option(
    "--map-by",
    metavar="POLICY",
    help="Which rank runs where: slot fills one host after the other (default), node goes round, "
    "ppr:N:node has N on each host, ppr:N:socket (or numa, core, a cache) N on each of these, seq "
    "takes the hosts as they are named; core, numa, package and so on fill hosts likewise, and go "
    "round in each. Behind it: :PE=N, :SPAN, :OVERSUBSCRIBE. See docs/launch-options.md.",
)
@click.option(
    "--rankfile",
    metavar="FILE",
    shell_complete=complete_file,
    help="Host and processors of each rank: lines of rank N=HOST slot=LIST, LIST as 0:1 (package "
    "and core), 0:*, 1,3 or 0-2.",
)
@click.option(
    "--bind-to",
    metavar="POLICY",
    help="What each rank is bound to: none (default), hwthread, core, l1cache, l2cache, l3cache, "
    "numa or package (socket). Behind it: :overload-allowed, :if-supported.",
)
@click.option(
    "--rank-by",
    metavar="POLICY",
    help="In which order ranks are numbered: slot, as they are mapped (default), node, fill, or an "
    "object as for --bind-to.",
)
@click.option("--report-bindings", is_flag=True, help="Show what each rank is bound to.")
@click.option(
    "--cpus-per-rank",
    type=WholeNumber(1, RANKS_MAX),
    metavar="N",
    help="Cores, or hardware threads, that each rank takes: the same as --map-by slot:PE=N.",
)
@click.option(
    "--cpu-set",
    metavar="LIST",
    help="The only hardware threads that ranks are bound to, as 0-3,8.",
)
@click.option(
    "--use-hwthread-cpus", is_flag=True, help="A rank that is bound takes hardware threads."
)
@click.option(
    "--npernode",
    type=WholeNumber(1, RANKS_MAX),
    metavar="N",
    help="The same as --map-by ppr:N:node.",
)
@click.option(
    "--mca",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    shell_complete=complete_parameter,
    help="Set an MCA parameter for the whole job. Repeatable.",
)
@click.option(
    "--tune",
    multiple=True,
    metavar="FILE,...",
    shell_complete=complete_file,
    help="Read -mca and -x from files. Repeatable; the left-most wins.",
)
@click.option(
    "--am",
    multiple=True,
    metavar="NAME,...",
    shell_complete=complete_file,
    help="Use parameter sets: files of configs/ or their names. Repeatable; the left-most wins.",
)
@click.option(
    "--strict-plugins",
    is_flag=True,
    help="Start nothing if an installed component is broken. Also: OMPY_STRICT_PLUGINS=1.",
)
@click.option(
    "-x",
    "exports",
    multiple=True,
    metavar="NAME[=VALUE]",
    shell_complete=complete_variable,
    help="Set an environment variable for the program. Repeatable.",
)
@click.option(
    "--wdir",
    metavar="DIR",
    shell_complete=complete_directory,
    help="Working directory of the program.",
)
@click.option(
    "--timeout",
    type=Number(min=0, min_open=True),
    metavar="SECONDS",
    help="End the job after so long, with exit code 110. Also: MPIEXEC_TIMEOUT.",
)
@click.option(
    "--no-deadlock-detection",
    "detect_deadlocks",
    flag_value=False,
    default=True,
    is_flag=True,
    help="Let a job stand whose ranks wait for each other for ever; else it ends with exit code 4.",
)
@click.option(
    "--log-format",
    type=click.Choice(list(FORMATS)),
    help="How to write what ompy itself says: text for people, or json, a line for each event.",
)
@click.option("--tag-output", is_flag=True, help="Begin each line with [job,rank]<stream>:.")
@click.option(
    "--output-filename",
    metavar="DIR",
    help="Write what ranks write also to DIR/1/rank.N/stdout and stderr; DIR:nocopy writes it only "
    "there, DIR:nojobid without the 1.",
)
@click.option(
    "--merge-stderr", is_flag=True, help="Standard error of ranks goes to their standard output."
)
@click.option("--timestamp-output", is_flag=True, help="Begin each line with the time.")
@click.option(
    "--stdin",
    default="0",
    metavar="RANK",
    shell_complete=complete_rank,
    help="Which rank gets the standard input, or none. Default: 0.",
)
@click.option(
    "--prefix",
    metavar="DIR",
    help="Where ompy is on other hosts: their agents are run by DIR/bin/python.",
)
@click.option(
    "--debug",
    metavar="RANK[:PORT]",
    shell_complete=complete_rank,
    help="Run a rank's Python program in pdb, which has this terminal; with a port, or --debugger "
    "debugpy, it waits there for an editor.",
)
@click.option(
    "--debugger", type=click.Choice(("pdb", "debugpy")), help="Which one --debug is about."
)
@click.option(
    "--get-stack-traces",
    is_flag=True,
    help="When --timeout ends the job, show where each thread of each rank is.",
)
@click.option(
    "--oversubscribe/--nooversubscribe",
    default=True,
    help="Whether there may be more processes than slots. Default: only if no host is named.",
)
@click.option(
    "--all-hosts",
    is_flag=True,
    help="Be ready on all hosts that were named, also where no process is: the program may spawn.",
)
@click.option(
    "--no-mpi4py",
    "mpi4py",
    flag_value=False,
    default=True,
    is_flag=True,
    help="Let `import mpi4py` find what is installed, not ompy.",
)
@click.option(
    "--trace",
    metavar="DIR",
    help="Write the events of all ranks to DIR, for `ompy trace DIR`.",
)
@click.option(
    "--fault",
    multiple=True,
    metavar="SPEC|FILE",
    shell_complete=complete_file,
    help="Disturb the network on purpose: a script, its name, or drop:probability=0.01,rank=0. "
    "Repeatable. See docs/faults.md.",
)
@click.option(
    "--fault-strict", is_flag=True, help="A fault that never struck is an error, exit code 3."
)
@click.option(
    "--spares",
    type=WholeNumber(min=0),
    default=0,
    metavar="K",
    help="Processes that wait on each host to be ranks that the program spawns, as in the place of "
    "those that died. Default: 0.",
)
@click.option(
    "--joinable",
    metavar="FILE",
    shell_complete=complete_file,
    help="Let programs that are started later by --join FILE join this job: they find its ranks by "
    "ports and names. FILE is made, holds the key, and goes with the job. See docs/joining.md.",
)
@click.option(
    "--join",
    metavar="FILE",
    shell_complete=complete_file,
    help="Join the job that has made FILE by --joinable, rather than begin one.",
)
@click.option(
    "--kill",
    "kills",
    multiple=True,
    metavar="SPEC",
    help="Kill a rank or a host on purpose, so long after all ranks have initialised MPI: "
    "rank=3,after=2s or host=NAME,after=2s. Repeatable. "
    "With --mca mpi_ft_enable 1 the job goes on without.",
)
@click.option("--display-map", is_flag=True, help="Show which rank runs where.")
@click.option("--display-comm", is_flag=True, help="Show by which rails hosts reach each other.")
@click.option(
    "--autopsy",
    metavar="FILE",
    shell_complete=complete_file,
    help="If ranks wait for each other for ever: write who waits for whom, as JSON, or as a "
    "picture if FILE ends with .svg.",
)
@click.option(
    "--check",
    "check",
    flag_value="all",
    default=None,
    is_flag=True,
    help="Find what the program does wrong with MPI, and say where; exit code 5 if anything is "
    "found. See docs/whats-wrong.md.",
)
@click.option(
    "--check-buffering",
    "check",
    flag_value="buffering",
    is_flag=True,
    help="The same, with standard sends that wait for their receives. Also: --check=buffering.",
)
@click.option(
    "--check-report",
    metavar="FILE",
    shell_complete=complete_file,
    help="Write what --check finds, as JSON.",
)
@click.option(
    "--record",
    metavar="DIR",
    shell_complete=complete_file,
    help="Write down what the program does not determine: which messages wildcards match, what "
    "tests and probes say, times. ompy replay DIR runs it again so. See docs/replay.md.",
)
@click.option(
    "--record-data",
    is_flag=True,
    help="With --record: the received bytes, too, so that ompy replay DIR --rank R can run one "
    "rank without the others.",
)
@click.option(
    "--report-rails",
    metavar="FILE",
    shell_complete=complete_file,
    help="Write what became of rails that broke, as JSON. See docs/faults.md.",
)
@click.option(
    "--pvars",
    metavar="NAMES",
    help="Show performance variables when the job ends, a sum over ranks, the least and the most: "
    "names separated by commas, as pml_ob1_messages_sent or btl_tcp_*, or all. See ompy-info "
    "--pvars.",
)
@click.option(
    "--watch-rails",
    is_flag=True,
    help="Show what each rail carries, and whether it is broken, while the job runs: a table on a "
    "terminal, otherwise a line for each change.",
)
@click.option(
    "--record-rails",
    metavar="FILE",
    shell_complete=complete_file,
    help="Write what each rail carried over time, as lines of JSON. See docs/faults.md.",
)
@click.option(
    "--view",
    is_flag=True,
    help="Show what each rank is in, and who sends to whom, while the job runs, as ompy top does; "
    "what the job writes goes to a pane, and to the terminal in the end.",
)
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


refuse_empty_words(command)


def parse_by_click(arguments: Sequence[str]) -> list[Group]:
    """Take a command line apart.

    Raises:
        CommandError: it is not valid.
        Answered: help or version was asked for and has been printed.
    """
    groups = []
    parts = split_programs(arguments)
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


def _parse_group(tokens: Sequence[str]) -> Group:
    options, argv = _take_options(tokens)
    try:
        context = command.make_context(PROGRAM, list(options))
    except click.exceptions.Exit as end:
        raise Answered(end.exit_code) from None
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
    taken = arities()
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
        if token == "--check=buffering":  # noqa: S105 - no password
            options.append("--check-buffering")
            continue
        written, equals, value = token.partition("=")
        name = usual_spelling(written, taken)
        values = [value] if equals else []
        missing = taken[name] - len(values)
        values += tokens[position : position + missing]
        if len(values) != taken[name]:
            raise CommandError(f"{written} needs {taken[name]} argument(s), got {len(values)}")
        position += missing
        options += [name, *values]
    return options, tuple(tokens[position:])


def arities() -> dict[str, int]:
    """How many arguments each option takes, by its spellings."""
    found = {}
    for option in command.get_params(click.Context(command)):
        if isinstance(option, click.Option):
            for name in (*option.opts, *option.secondary_opts):
                found[name] = 0 if option.is_flag else option.nargs
    return found


def usual_spelling(written: str, known: Mapping[str, int]) -> str:
    """The spelling of an option that `known` has.

    Raises:
        CommandError: there is no such option.
    """
    for spelling in (written, f"-{written}"):  # `-tag-output` is `--tag-output`
        name = ALIASES.get(spelling, spelling)
        if name in known:
            return name
    for spelling in (written, f"-{written}"):
        if spelling in INSTEAD:
            raise CommandError(
                f"{written} is an option of other launchers; write {INSTEAD[spelling]}"
            )
    if {written, f"-{written}"} & set(ABSENT.split()):
        raise CommandError(f"{written} is an option of mpirun that {PROGRAM} does not have")
    near = did_you_mean(f"--{written.strip('-')}", [*known, *ALIASES])
    raise CommandError(f"there is no option {written}{near}")
