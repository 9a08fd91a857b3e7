"""The command line of `ompy-run`: options, and the programs they belong to.

Options are those of Open MPI's `mpirun` (reference openmpi.md 2.4). What most command lines are
made of is taken apart here. As soon as there is anything else in one, a mistake, a call for
help, click looks at all of it (`cli/options.py`), which knows every option; it takes as long to
import as a small job to run.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ompy.mca.errors import UsageError
from ompy.mca.parameters.base_parameters import DEADLOCK_DETECTION
from ompy.mca.parameters.settings import LOG_FORMAT, PARAMETER_SETS, STRICT_PLUGINS, TUNE_FILES
from ompy.mca.performance import PVARS

PROGRAM: Final = "ompy-run"
SEPARATOR: Final = ":"  # between the programs of a job
USAGE: Final = UsageError.exit_code

JOB_WIDE: Final = {
    "am",
    "tune",
    "strict_plugins",
    "log_format",
    "timeout",
    "tag_output",
    "timestamp_output",
    "stdin",
    "oversubscribe",
    "map_by",
    "npernode",
    "rankfile",
    "all_hosts",
    "mpi4py",
    "display_map",
    "display_comm",
    "do_not_launch",
    "quiet",
    "trace",
    "fault",
    "fault_strict",
    "kills",
    "spares",
    "joinable",
    "join",
    "report_rails",
    "watch_rails",
    "record_rails",
    "view",
    "pvars",
    "autopsy",
    "detect_deadlocks",
    "check",
    "check_report",
    "record",
    "record_data",
    "bind_to",
    "rank_by",
    "report_bindings",
    "cpus_per_rank",
    "cpu_set",
    "use_hwthread_cpus",
    "output_filename",
    "merge_stderr",
    "prefix",
    "debug",
    "debugger",
    "get_stack_traces",
}  # options that stand before the first program

DISPLAY_COMM: Final = "bml_base_display_comm"  # the parameter behind --display-comm
SAMPLE_RAILS: Final = "bml_base_sample_rails"  # behind --watch-rails and --record-rails
TRACE_DIRECTORY: Final = "trace_base_directory"  # the parameter behind --trace
CHECK_DIRECTORY: Final = "check_base_directory"  # where --check has the records
CHECK_BUFFERING: Final = "check_base_buffering"  # behind --check=buffering
RECORD_DIRECTORY: Final = "record_base_directory"  # behind --record
RECORD_DATA: Final = "record_base_data"  # behind --record-data
RECORD_REPLAY: Final = "record_base_replay"  # the recording that `ompy replay` runs again


# options that set a parameter to true
_BEHIND: Final = {
    "strict_plugins": STRICT_PLUGINS,
    "display_comm": DISPLAY_COMM,
    "watch_rails": SAMPLE_RAILS,
    "record_rails": SAMPLE_RAILS,
}

REMOTE_PYTHONS: Final = ("plm_ssh_python", "plm_slurm_python")  # behind --prefix

RANKS_MAX: Final = 1_000_000  # of a job; arbitrary: more than any machine runs
_DIGITS_MAX: Final = 18  # of a number that is looked at; C: int64_t has all of these
_SHOWN_MAX: Final = 80  # characters; arbitrary: a line of a terminal


def counted(text: str) -> int | None:
    """The number that is written in decimal digits; None if it is none, or too large."""
    plain = text.isascii() and text.isdecimal() and len(text.lstrip("0")) <= _DIGITS_MAX
    return int(text.lstrip("0") or "0") if plain else None


def shown(text: str) -> str:
    """A piece of input for a message: on one line, and only its beginning where it is long."""
    short = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    return short if short.isprintable() else repr(short)


class CommandError(Exception):
    """What the user asked for cannot be done. Nothing has been started.

    Attributes:
        exit_code: what `ompy-run` ends with.
    """

    def __init__(self, message: str, exit_code: int = USAGE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Answered(Exception):
    """The user asked for help or the version, and has it.

    Attributes:
        exit_code: what `ompy-run` ends with.
    """

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


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


def write_error_line(text: str) -> None:
    """Write a line to standard error, if there is one."""
    with suppress(OSError):  # its reader has gone
        print(text, file=sys.stderr or io.StringIO(), flush=True)


class _NotPlain(Exception):
    """This is for click."""


def _positive(text: str) -> int:
    value = counted(text)
    if not value or value > RANKS_MAX:
        raise _NotPlain
    return value


# what click makes of a command line without options; a test compares the two
_DEFAULTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("count", "map_by", "npernode", "wdir", "timeout", "trace", "program")),
    **dict.fromkeys(("report_rails", "record_rails", "log_format", "pvars", "autopsy")),
    **dict.fromkeys(("check", "check_report", "record", "joinable", "join")),
    **dict.fromkeys(("bind_to", "rank_by", "rankfile", "cpus_per_rank", "cpu_set")),
    **dict.fromkeys(("output_filename", "prefix", "debug", "debugger")),
    **dict.fromkeys(
        ("report_bindings", "use_hwthread_cpus", "merge_stderr", "get_stack_traces"), False
    ),
    **dict.fromkeys(("hosts", "hostfiles", "mca", "tune", "am", "exports", "fault", "kills"), ()),
    **dict.fromkeys(
        ("strict_plugins", "tag_output", "timestamp_output", "fault_strict", "display_map"), False
    ),
    **dict.fromkeys(
        ("watch_rails", "display_comm", "do_not_launch", "quiet", "allow_run_as_root"), False
    ),
    "all_hosts": False,
    "view": False,
    "record_data": False,
    "spares": 0,
    "stdin": "0",
    "oversubscribe": True,
    "mpi4py": True,
    "detect_deadlocks": True,
}
_COUNT: Final = ("count", _positive)
# options that take one word, by spelling: name, what is made of the word
_WITH_WORD: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    **dict.fromkeys(("-n", "--n", "-np", "--np", "-c"), _COUNT),
    "--stdin": ("stdin", str),
    "--check-report": ("check_report", str),
    "--record": ("record", str),
    "--wdir": ("wdir", str),
    "--bind-to": ("bind_to", str),
    "--map-by": ("map_by", str),
}
# options that are switches, by spelling: name and value
_SWITCHES: Final = {
    "--oversubscribe": ("oversubscribe", True),
    "--nooversubscribe": ("oversubscribe", False),
    "--no-mpi4py": ("mpi4py", False),
    "--all-hosts": ("all_hosts", True),
    "--no-deadlock-detection": ("detect_deadlocks", False),
    "--check": ("check", "all"),
    **dict.fromkeys(("--check=buffering", "--check-buffering"), ("check", "buffering")),
    "--record-data": ("record_data", True),
    "--tag-output": ("tag_output", True),
    "--report-bindings": ("report_bindings", True),
    "--allow-run-as-root": ("allow_run_as_root", True),
    "-q": ("quiet", True),
    "--quiet": ("quiet", True),
}


def parse_command_line(arguments: Sequence[str]) -> list[Group]:
    """Take a command line apart.

    Raises:
        CommandError: it is not valid.
        Answered: help or version was asked for and has been printed.
    """
    try:
        groups = [_plain_group(part) for part in split_programs(arguments)]
        if any(JOB_WIDE & group.given for group in groups[1:]):
            raise _NotPlain
    except _NotPlain:
        from ompy.cli.options import parse_by_click

        return parse_by_click(arguments)
    return groups


def _plain_group(tokens: Sequence[str]) -> Group:
    """One program and its options, if these are plain.

    Raises:
        _NotPlain: they are not, or there is no program.
    """
    options = dict(_DEFAULTS)
    given: set[str] = set()
    words = list(reversed(tokens))
    value: Any
    while words and words[-1].startswith("-") and words[-1] != "-":
        option = words.pop()
        if option in _SWITCHES:
            name, value = _SWITCHES[option]
        elif option in _WITH_WORD and words and words[-1]:
            name, made = _WITH_WORD[option]
            value = made(words.pop())
        elif option == "--mca" and len(words) > 1:
            name, value = "mca", (*options["mca"], (words.pop(), words.pop()))
        elif option == "-x" and words and words[-1]:
            name, value = "exports", (*options["exports"], words.pop())
        else:
            raise _NotPlain
        options[name] = value
        given.add(name)
    if not words:
        raise _NotPlain
    return Group(options, frozenset(given), tuple(reversed(words)))


def parameters_set(groups: Sequence[Group]) -> list[tuple[str, str]]:
    """Name and value of every parameter a command line sets."""
    pairs = [pair for group in groups for pair in group.options["mca"]]
    for option, name in (("tune", TUNE_FILES), ("am", PARAMETER_SETS)):
        files = groups[0].options[option]
        if files:
            pairs.append((name, ",".join(files)))
    options = groups[0].options
    pairs += dict.fromkeys((parameter, "1") for name, parameter in _BEHIND.items() if options[name])
    if options["log_format"]:
        pairs.append((LOG_FORMAT, options["log_format"]))
    if not options["detect_deadlocks"]:
        pairs.append((DEADLOCK_DETECTION, "0"))
    if options["check"] == "buffering":
        pairs.append((CHECK_BUFFERING, "1"))
    if options["pvars"]:
        pairs.append((PVARS, options["pvars"]))
    pairs += _recording(options, pairs)
    if options["prefix"]:
        python = os.path.join(_whole_path(options["prefix"]), "bin", "python")
        pairs += [(parameter, python) for parameter in REMOTE_PYTHONS]
    if options["trace"]:
        pairs.append((TRACE_DIRECTORY, os.path.abspath(options["trace"])))
    return pairs


def _recording(options: dict[str, Any], pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parameters behind `--record` and `--record-data`; none where a recording is replayed."""
    if not options["record"] and not options["record_data"]:
        return []
    from ompy.cli.launch.recorded_job import record_parameters, with_data

    record_parameters(options, pairs)
    found = with_data(pairs) if options["record_data"] else []
    if any(name == RECORD_REPLAY for name, _ in pairs):
        return found
    found.append((RECORD_DIRECTORY, os.path.abspath(options["record"])))
    return [*found, (RECORD_DATA, "1")] if options["record_data"] else found


def _whole_path(prefix: str) -> str:
    if not os.path.isabs(prefix):
        raise CommandError(f"--prefix {shown(prefix)}: the path of a folder begins with /")
    return prefix


def split_programs(arguments: Sequence[str]) -> list[list[str]]:
    """The words of each program of a job."""
    parts: list[list[str]] = [[]]
    for argument in arguments:
        if argument == SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(argument)
    return parts
