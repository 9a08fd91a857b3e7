"""From a command line of `ompy-run` to a job that has run: everything is checked first."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ompy import outputs
from ompy.cli.launch.command_line import (
    CHECK_DIRECTORY,
    PROGRAM,
    RECORD_DIRECTORY,
    TRACE_DIRECTORY,
    CommandError,
    Group,
    counted,
    parameters_set,
    parse_command_line,
    shown,
    write_error_line,
)
from ompy.cli.launch.exports import common_exports, environment
from ompy.cli.launch.launch_options import job_timeout, launch_options
from ompy.cli.launch.other_mpi4py import complaint
from ompy.frameworks.job import App, Job
from ompy.mca.errors import UsageError, did_you_mean
from ompy.mca.parameters.settings import ENVIRONMENT_PREFIX, LOG_FORMAT
from ompy.mca.reporting import FORMATS, TEXT

if TYPE_CHECKING:
    from ompy.cli.launch.binding import PlaceWishes
    from ompy.cli.launch.hosts import Host
    from ompy.cli.launch.mapping import Layout
    from ompy.cli.launch.recorded_job import JobRecord
    from ompy.cli.launch.traced_job import JobFacts
    from ompy.frameworks.plm import PlmComponent, Target
    from ompy.mca.registry import Registry
    from ompy.runtime.launching.launcher import LaunchOptions, Starts

NOT_STARTED: Final = 1  # reference openmpi.md 2.6: the launcher's own failures
NOT_EXECUTABLE: Final = 126  # as a shell has it
NOT_FOUND: Final = 127  # as a shell has it
INTERPRETERS: Final = ("python", "python3")  # what most programs are run by
OPEN_MPI_PREFIX: Final = "OMPI_MCA_"  # reference openmpi.md 1.7

# in which form people are told something, and about what, as `set_log_format` has it last
_telling: tuple[str, dict[str, object]] = (TEXT, {})


class Checked(NamedTuple):
    """What the user wants to know of mistakes.

    Attributes:
        asked: they are looked for.
        report: file for what is found, or empty.
    """

    asked: bool
    report: str


NOT_CHECKED: Final = Checked(asked=False, report="")


class Plan(NamedTuple):
    """A job before its parameters are known, and where it runs.

    Attributes:
        job: what runs.
        layout: its hosts and their slots.
    """

    job: Job
    layout: Layout


def make_job(
    groups: Sequence[Group],
    host: str,
    common: Sequence[tuple[str, str]] = (),
    wishes: PlaceWishes | None = None,
) -> Plan:
    """The job a command line asks for; parameters are still missing.

    Args:
        groups: the programs.
        host: this host.
        common: variables every program gets, from `common_exports`.
        wishes: where ranks are to run; None for what the command line alone says.

    Raises:
        CommandError: it cannot be run.
    """
    from ompy.cli.launch.binding import place_wishes
    from ompy.cli.launch.placing import cores, place_programs

    first = groups[0].options
    wishes = place_wishes(groups[0]) if wishes is None else wishes
    counts, layout = place_programs(groups, host, wishes)
    elsewhere = any(there.name != host for there in layout.hosts)
    here = {p.app for p in layout.placements if layout.hosts[p.node].name == host}
    apps = tuple(
        _make_app(group, count, common, check=app in here, elsewhere=elsewhere)
        for app, (group, count) in enumerate(zip(groups, counts, strict=True))
    )
    each = wishes.rule.elements if wishes.rule is not None else 1
    limits = [cores() // each if there.name == host else there.slots for there in layout.hosts]
    oversubscribed = any(p.local_rank >= limits[p.node] for p in layout.placements)
    job = Job(
        job_id=os.urandom(8).hex(),
        apps=apps,
        hosts=tuple(there.name for there in layout.hosts),
        placements=layout.placements,
        stdin_rank=_stdin_rank(first["stdin"], len(layout.placements)),
        mpi4py=first["mpi4py"],
        oversubscribed=oversubscribed,
    )
    return Plan(job, layout)


def _make_app(
    group: Group,
    count: int,
    common: Sequence[tuple[str, str]],
    *,
    check: bool,
    elsewhere: bool,
) -> App:
    """One program. It is looked for if it runs here; elsewhere its agent finds out."""
    directory = group.options["wdir"] or ""
    if directory:
        directory = os.path.abspath(directory)
        if check and not os.path.isdir(directory):
            raise CommandError(f"--wdir {group.options['wdir']}: there is no such directory")
    argv = group.argv
    typed = os.path.abspath(argv[0])
    if directory and "/" in argv[0] and os.path.isfile(typed):
        argv = (typed, *argv[1:])  # where the user typed it, not where it will run
    variables, warnings = environment(group.options["exports"], common, os.environ)
    for warning in warnings:
        tell_user(f"warning: {warning}")
    try:
        if check:
            find_program(argv[0], tuple(variables.items()), directory)
    except CommandError as problem:
        raise CommandError(f"{problem}{_swallowed(group)}", problem.exit_code) from None
    if elsewhere and not directory:
        directory = os.getcwd()
    return App(argv, count, tuple(variables.items()), directory)


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
    rank = counted(text)
    if rank is None:
        raise CommandError(f"--stdin {shown(text)}: a rank or none is needed")
    if rank >= size:
        raise CommandError(f"--stdin {text}: the last of {size} ranks is {size - 1}")
    return rank


def find_program(name: str, environment: tuple[tuple[str, str], ...], directory: str) -> None:
    """See that a program can be executed where the ranks will look for it.

    Raises:
        CommandError: it cannot; exit code 127 or 126.
    """
    from ompy.runtime.ranks.environment import search_path

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
    if files:
        hint = f"; a Python program is run by: {PROGRAM} ... python {name}"
        raise CommandError(f"{files[0]} is not executable{hint}", NOT_EXECUTABLE)
    if os.path.isdir(os.path.join(here, name)):
        found = f"{name} is a directory, not a program"
        if os.path.isfile(os.path.join(here, name, "__main__.py")):
            found += f"; the program in it is run by: {PROGRAM} ... python {name}"
        raise CommandError(found, NOT_EXECUTABLE)
    raise CommandError(_not_found(name, here), NOT_FOUND)


def _not_found(name: str, here: str) -> str:
    if "/" in name:
        return f"there is no program {os.path.join(here, name)}"
    from ompy.cli.options import ALIASES, arities

    message = f"there is no program {name}; it was looked for in PATH"
    if os.path.isfile(os.path.join(here, name)):
        right = f"python {name}" if name.endswith(".py") else f"./{name}"
        return f"{message}. There is a file of this name here: write {right}"
    options = {option.lstrip("-"): option for option in [*arities(), *ALIASES]}
    near = did_you_mean(name, [option for option in options if len(option) > 1])
    for word, option in options.items():
        if near.endswith(f" {word}?"):
            return f"{message}; did you mean the option {option}?"
    return message + did_you_mean(name, INTERPRETERS)


def resolve(pairs: Sequence[tuple[str, str]]) -> tuple[Registry, list[PlmComponent]]:
    """Check all parameters of a command line and open what can start agents, the best first.

    Says which settings do not do what they seem to, and which components there are that cannot be
    used, as far as that is known here.

    Raises:
        ComponentsFailed: of these, one that the user named or does not tolerate.
        UsageError: a parameter is wrong.
        ComponentError: a component the user named cannot be used.
        CommandError: no component can start anything here.
    """
    from ompy.frameworks.btl_base.sealing import insist_on_seal
    from ompy.frameworks.catalog import CATALOG
    from ompy.frameworks.plm import PlmComponent
    from ompy.mca.parameters.settings import gather_settings
    from ompy.mca.registry import Registry

    registry = Registry(CATALOG, gather_settings(pairs, os.environ))
    registry.check_settings()
    insist_on_seal(registry)
    for notice in [*registry.notices(), *_meant_for_open_mpi(registry, os.environ)]:
        tell_user(f"warning: {notice}")
    found = registry.open("plm")
    if not found:
        text = "no plm component can start processes here; ompy-info --plugins says why"
        raise CommandError(text, NOT_STARTED)
    plms = [plm for plm in found if isinstance(plm, PlmComponent)]
    _settle(registry)
    return registry, plms


def _meant_for_open_mpi(registry: Registry, environ: Mapping[str, str]) -> Iterator[str]:
    """Variables that set a parameter of ours for Open MPI only. Those it has alone are its own."""
    for variable in environ:
        name = variable.removeprefix(OPEN_MPI_PREFIX)
        if name != variable:
            try:
                registry.declaration(name)
            except UsageError:
                continue
            yield f"{variable} is Open MPI's and sets nothing here: ompy reads OMPY_MCA_{name}"


def choose_starters(
    registry: Registry, plms: Sequence[PlmComponent], hosts: Sequence[Host]
) -> list[tuple[PlmComponent, Target]]:
    """For each host the plm component of highest priority that reaches it.

    Raises:
        CommandError: none does.
    """
    from ompy.frameworks.plm import Target

    starts = []
    for host in hosts:
        target = Target(host.name, host.user, host.port)
        reaching = [plm for plm in plms if plm.reaches(target)]
        if not reaching:
            names = ", ".join(plm.name for plm in plms)
            text = f"no plm component starts agents on host {host.name}; in use: {names}"
            raise CommandError(text, NOT_STARTED)
        starts.append((reaching[0], target))
    used = [plm for plm in plms if any(plm is chosen for chosen, _ in starts)]
    for plm in plms:
        if plm in used:
            registry.select(plm)
        else:
            registry.pass_over(plm, "no host of this job is left for it")
    return starts


def _settle(registry: Registry) -> None:
    """Tell of components that have failed so far, or stop if they are not tolerated."""
    registry.insist()
    registry.tell_warnings(tell_user)


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
    from ompy.cli.simulating.past_the_wire import unstruck
    from ompy.runtime.faults.fault_script import read_faults

    rules = read_faults(options["fault"], len(job.placements))
    for reason in unstruck(rules, job, registry):
        tell_user(f"warning: --fault: {reason}")
    return tuple(rule._asdict() for rule in rules)


def run_command(arguments: Sequence[str]) -> int:
    """Everything but the presentation of errors. Returns the exit code."""
    import socket

    host = socket.gethostname()
    set_log_format(_asked_form(arguments), host=host)
    groups = parse_command_line(arguments)
    _check_working_directory()
    if groups[0].options["join"]:
        from ompy.cli.launch.joining import join_as_guest

        return join_as_guest(groups, host)
    if groups[0].options["joinable"] and groups[0].options["record"]:
        raise CommandError("--record: what guests of --joinable say cannot be replayed")
    return _run_job(groups, host, tuple(arguments))


def _run_job(groups: Sequence[Group], host: str, words: tuple[str, ...]) -> int:
    """Run a job of this launcher's own; `words` are its command line."""
    options = groups[0].options
    job_timeout(options["timeout"], os.environ)  # a mistake in it is found first
    try:
        registry, plms = resolve(parameters_set(groups))
    except UsageError:
        # a program that is not there often explains the rest: it was taken for a value
        make_job(groups, host)
        raise
    from ompy.cli.launch.binding import place_wishes

    exports = [word for group in groups for word in group.options["exports"]]
    wishes = place_wishes(groups[0], registry)
    job, layout = make_job(groups, host, common_exports(registry, exports), wishes)
    set_log_format(str(registry.value(LOG_FORMAT)), job=job.job_id, host=host)
    registry.speak_for(job=job.job_id, host=host)
    job = job._replace(mca=registry.snapshot(), faults=fault_script(options, job, registry))
    universe = max(layout.slots, len(job.placements))
    if options["display_map"]:
        from ompy.runtime.launching.report import job_map

        slots = [(host.slots, host.max_slots) for host in layout.hosts]
        _show(job_map(job, slots, layout.slots))
    _look_at_places(wishes, layout, host, launching=not options["do_not_launch"])
    if options["do_not_launch"]:
        return 0
    for app in job.apps:
        text = complaint(app.argv, ours=job.mpi4py)
        if text:
            tell_user(text)
    starts = choose_starters(registry, plms, layout.hosts)

    try:
        launching = launch_options(registry, options, universe)._replace(place=wishes.rule)
        job, launching = _with_single_ranks(options, job, launching, host)
        return launch_job(registry, starts, job, launching, _checked(options), words=words)
    finally:
        registry.close()


def _with_single_ranks(
    options: Mapping[str, Any], job: Job, launching: LaunchOptions, host: str
) -> tuple[Job, LaunchOptions]:
    """What is asked for single ranks: to be killed, to run under a debugger."""
    if options["kills"]:
        from ompy.runtime.launching.kills import read_kills

        launching = launching._replace(kills=read_kills(options["kills"], job))
    if options["debug"] is not None or options["debugger"]:
        from ompy.cli.launch.debugged_job import debugged_job

        job, debug = debugged_job(options, job, host)
        launching = launching._replace(debug=debug)
        if debug is not None and debug.waits_at and not options["quiet"]:
            tell_user(f"rank {debug.rank} waits for an editor at {debug.waits_at}", "info")
    return job, launching


def _look_at_places(wishes: PlaceWishes, layout: Layout, host: str, *, launching: bool) -> None:
    """See that ranks have room where they are bound; show where, if they are not started."""
    if wishes.rule is None:
        return
    from ompy.cli.launch.binding import check_places

    lines = check_places(wishes.rule, layout, host, launching=launching)
    if wishes.rule.report and not launching:
        for line in lines:
            tell_user(line, "info")


def _checked(options: Mapping[str, Any]) -> Checked:
    report = os.path.abspath(options["check_report"]) if options["check_report"] else ""
    return Checked(bool(options["check"] or report), report)


def _check_working_directory() -> None:
    gone = outputs.working_directory_gone()
    if gone:
        raise CommandError(gone)


def _show(text: str) -> None:
    """Write to standard output; where it takes nothing, what is only looked at is left out."""
    try:
        if sys.stdout is not None:
            sys.stdout.write(text)
            sys.stdout.flush()
    except (OSError, UnicodeError) as problem:
        sys.stdout = io.StringIO()  # what is left of it would be tried again at the end
        tell_user(f"warning: --display-map: standard output cannot be written: {problem}")


def launch_job(
    registry: Registry,
    starts: Starts,
    job: Job,
    options: LaunchOptions,
    checked: Checked = NOT_CHECKED,
    words: Sequence[str] = (),
) -> int:
    """Run the job, with all who want to know of it told. Returns the exit code."""
    from ompy.mca.hooks import hook_caller
    from ompy.runtime.launching.job_events import Reporting
    from ompy.runtime.launching.launcher import launch

    kept = _begin_files(registry, job, words)
    hooks = hook_caller(registry)
    check = None
    if checked.asked:
        from ompy.cli.launch.checked_job import begin_check

        check = begin_check(job, checked.report, registry.reporter(), hooks, quiet=options.quiet)
        hooks = check.listener
    hooks.ompy_job_launching(job)
    _settle(registry)
    snapshot = registry.snapshot()  # with what has become of the hooks
    for parameter, observer in kept.items():
        if observer is None:  # it cannot be written, which every rank need not find out
            snapshot["values"][parameter] = ""
    if check is not None:
        snapshot["settings"].append([CHECK_DIRECTORY, check.directory, "set", "--check"])
        snapshot["values"][CHECK_DIRECTORY] = check.directory
    job = job._replace(mca=snapshot)
    code = launch(job, starts, options, Reporting(registry.reporter(), hooks))
    if check is not None:
        code = check.ended(code)
    hooks.ompy_job_finished(code)
    for observer in kept.values():
        if observer is not None:
            observer.ended(code)
    return code


def _begin_files(
    registry: Registry, job: Job, words: Sequence[str]
) -> dict[str, JobFacts | JobRecord | None]:
    """The trace and the recording that are asked for, by parameter; None: not to be written."""
    kept: dict[str, JobFacts | JobRecord | None] = {}
    if directory := str(registry.value(TRACE_DIRECTORY)):
        from ompy.cli.launch.traced_job import start_trace

        kept[TRACE_DIRECTORY] = start_trace(directory, job, registry)
    if directory := str(registry.value(RECORD_DIRECTORY)):
        from ompy.cli.launch.recorded_job import start_record

        kept[RECORD_DIRECTORY] = start_record(directory, job, words, os.getcwd())
    return kept


def tell_user(text: str, level: str = "warning", advice: str = "") -> None:
    """Tell the user, on standard error, in the form that was asked for.

    Args:
        text: a sentence.
        level: error, warning or info.
        advice: another sentence, for people.
    """
    form, about = _telling
    if form == TEXT:
        write_error_line(f"{PROGRAM}: {text}")
        if advice:
            write_error_line(advice)
        return
    from ompy.mca.reporting import Finding, Reporter

    told = Finding(level, text.removeprefix(f"{level}: "), level)
    write_error_line(Reporter(form, about).lines(told).rstrip("\n"))


def set_log_format(form: str, **about: object) -> None:
    """From now on tell the user in this form, about this job and host."""
    global _telling  # noqa: PLW0603 - the errors of a command line are told where it is not known
    _telling = (form, about)


def _asked_form(arguments: Sequence[str]) -> str:
    """In which form to tell of what is wrong with the command line, before it is understood.

    What the words say that may ask for one, else the environment, as for any parameter.
    """
    asked = os.environ.get(f"{ENVIRONMENT_PREFIX}{LOG_FORMAT}", "")
    for word, following in pairwise((*arguments, "")):
        name, is_one, value = word.partition("=")
        if name == "--log-format":
            asked = value if is_one else following
    return asked if asked in FORMATS else TEXT
