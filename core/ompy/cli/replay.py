"""`ompy replay`: a recorded job again, or one of its ranks without the others."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from ompy import outputs
from ompy.cli.launch.command_line import RECORD_REPLAY
from ompy.cli.numbers import WholeNumber
from ompy.cli.refusing import Refused
from ompy.cli.simulating.kept_world import WORLD
from ompy.replay.entries import RecordingError
from ompy.replay.events import ALONE, NEVER, ORDER, Raised
from ompy.replay.job_file import RecordedJob, read_job
from ompy.replay.program_lines import shown_path
from ompy.replay.recording import RankRecording, read_rank, read_streams

if TYPE_CHECKING:
    from ompy.replay.replaying.debuggers import NoDebugger

USAGE: Final = 2  # exit code: what was asked for cannot be done
UNFINISHED: Final = "record_base_unfinished"


@click.command()
@click.argument("directory", metavar="DIR|FILE")
@click.option(
    "--rank",
    type=WholeNumber(0),
    metavar="R",
    help="Run this rank alone; of a FILE, with --pdb.",
)
@click.option("--pdb", is_flag=True, help="With --rank: in Python's debugger.")
@click.option(
    "--debugpy",
    type=WholeNumber(0, 65535),
    metavar="PORT",
    help="With --rank: wait until an editor is attached at this port; 0 for any that is free.",
)
@click.option(
    "--until-event",
    "until",
    type=WholeNumber(1),
    metavar="N",
    help="With --rank: stop before its Nth event, in the debugger if there is one.",
)
@click.option(
    "--go-on",
    "goes_on",
    is_flag=True,
    help="Of a FILE with a schedule: go on where the program's calls are not those of it.",
)
@click.option("--events", "lists", is_flag=True, help="Run nothing: list what was recorded.")
def replay(
    directory: str,
    rank: int | None,
    pdb: bool,
    debugpy: int | None,
    until: int | None,
    goes_on: bool,
    lists: bool,
) -> None:
    """Run a job again that `ompy-run --record DIR` has recorded.

    Wildcards match what they matched, tests and probes say what they said, Wtime gives what it
    gave. If the program does something else, both lines are said, and the exit code is 6.

    With --rank the rank runs alone in this process, fed from the recording, which has to be made
    with --record-data. The others are not needed, and neither are their hosts.

    FILE is what `ompy sim` keeps of a world that fails, of a seed or a schedule: that world runs
    again, all of it, and with --rank R --pdb one of its ranks is in the debugger.
    """
    _check_options(rank, debugpy, until, pdb=pdb)
    directory = os.path.abspath(directory)
    if os.path.isfile(directory):
        from ompy.cli.simulating.replayed_world import replay_world

        if debugpy is not None or until or lists or pdb != (rank is not None):
            raise click.UsageError(
                f"{directory} keeps a virtual world: it takes --rank R together with --pdb, "
                "and no other option"
            )
        replay_world(directory, rank, goes_on=goes_on)
    if goes_on:
        raise click.UsageError(f"--go-on is of a schedule in a file, and {directory} is none")
    _check_directory(directory)
    sys.exit(_replay(directory, rank, debugpy, until, pdb=pdb, lists=lists))


def _check_directory(directory: str) -> None:
    """See that a recording may be there.

    Raises:
        click.UsageError: the name is nobody's, or of what `ompy sim` keeps in a directory.
    """
    if not os.path.exists(directory):
        raise click.UsageError(
            f"{directory}: there is no such directory or file; ompy-run --record DIR makes a "
            "recording, ompy sim keeps the worlds that fail"
        )
    kept = os.path.join(directory, WORLD)
    if os.path.isfile(kept):
        raise click.UsageError(f"{directory}: the world that failed is in {kept}: replay that")


def _replay(
    directory: str, rank: int | None, port: int | None, until: int | None, *, pdb: bool, lists: bool
) -> int:
    """What was asked for of a recording. Returns the exit code."""
    try:
        recorded = read_job(directory)
        if rank is not None and rank >= recorded.size:
            raise RecordingError(
                f"--rank {rank}: the recorded job has ranks 0 to {recorded.size - 1}"
            )
        if lists:
            for line in _listed(recorded, rank):
                click.echo(line)
            return 0
        if rank is None:
            return _replay_job(recorded)
        return _replay_rank(recorded, rank, until or 0, pdb=pdb, port=port)
    except RecordingError as problem:
        raise Refused(str(problem)) from None


def _check_options(rank: int | None, port: int | None, until: int | None, *, pdb: bool) -> None:
    """See that they make sense together.

    Raises:
        click.UsageError: they do not.
    """
    for name, given in (
        ("--pdb", pdb),
        ("--debugpy", port is not None),
        ("--until-event", until),
    ):
        if given and rank is None:
            raise click.UsageError(f"{name} is of one rank: name it with --rank R")
    if pdb and port is not None:
        raise click.UsageError("--pdb and --debugpy are two debuggers: choose one")


def _listed(recorded: RecordedJob, rank: int | None) -> Iterator[str]:
    """The events of one rank, or of all, a line each."""
    for number in range(recorded.size) if rank is None else (rank,):
        recording = read_rank(recorded, number)
        for place, event in enumerate(recording.events, 1):
            where = recording.place_of_site(event.prefix.site)
            name = f"{shown_path(where.file)}:{where.line}" if where.file else "-"
            yield f"rank {number} event {place} {name} {recording.said_of(event)}"
        for note in recording.notes:
            yield f"rank {number} note {_noted(recording, note.site)}{note.text}"
        if not recording.complete and not _failed(recording):
            yield f"rank {number} ends here: it was killed, or the job was"


def _failed(recording: RankRecording) -> bool:
    """Whether a rank ended by an exception or Abort, which is its last event."""
    return bool(recording.events) and isinstance(recording.events[-1], Raised)


def _noted(recording: RankRecording, site: int) -> str:
    where = recording.place_of_site(site)
    return f"{shown_path(where.file)}:{where.line}: " if where.file else ""


def _refuse(recording: RankRecording, scopes: tuple[int, ...], what: str) -> None:
    """See that nothing was done that cannot be replayed.

    Raises:
        RecordingError: there was; the text has the line.
    """
    for note in recording.notes:
        text = f"rank {recording.rank}: {_noted(recording, note.site)}{note.text}"
        if note.scope in scopes:
            raise RecordingError(f"{what}: {text}")
        if note.scope == ORDER:
            outputs.tell(f"ompy replay: warning: {text}\n", "order", "warning")


def _replay_job(recorded: RecordedJob) -> int:
    """All ranks again, as they were started. Returns the exit code."""
    from ompy.cli.run import main
    from ompy.replay.replaying.outcomes import MEETING, is_over

    unfinished = 0
    for rank in range(recorded.size):
        recording = read_rank(recorded, rank)
        _refuse(recording, (NEVER,), "this job cannot be replayed")
        unfinished += not recording.complete
        if recorded.data:
            read_streams(recorded, rank)  # damage is said once, and not by each rank
    _change_to(recorded.folder)
    own = ["--mca", RECORD_REPLAY, recorded.directory, "--mca", UNFINISHED, str(unfinished)]
    try:
        code = main([*own, *recorded.words])
        return code or (_code_of_end(recorded) if is_over(recorded.directory) else 0)
    finally:
        for folder in Path(recorded.directory).glob(f"{MEETING}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _code_of_end(recorded: RecordedJob) -> int:
    """What the job ended with where its recording ends; it is said."""
    code = recorded.exit_code
    text = "how the job ended is not known: its launcher was killed"
    if code is not None:
        text = f"the job ended there with exit code {code}"
    outputs.tell(f"ompy replay: {text}\n", "job ended")
    return code or 0


def _replay_rank(
    recorded: RecordedJob, rank: int, until: int, *, pdb: bool, port: int | None
) -> int:
    """One rank in this process. Returns the exit code of its program."""
    from ompy.replay.replaying.alone import run_alone
    from ompy.runtime.simulation.program import problem_of

    recording = read_rank(recorded, rank)
    _refuse(recording, (ALONE, NEVER), f"rank {rank} cannot be replayed alone")
    if until > len(recording.events):
        known = len(recording.events)
        has = f"has {known} event{'s' * (known > 1)}" if known else "has no event"
        raise RecordingError(f"--until-event {until}: rank {rank} {has}")
    streams = read_streams(recorded, rank)
    _change_to(recorded.folder)
    problem = problem_of(recorded.job.apps[recorded.job.placements[rank].app])
    if problem:
        raise RecordingError(f"rank {rank} cannot be replayed alone: {problem}")
    debugger = _debugger(pdb=pdb, port=port, at_once=not until)
    return run_alone(recorded, recording, streams, debugger, until)


def _debugger(*, pdb: bool, port: int | None, at_once: bool) -> NoDebugger:
    from ompy.replay.replaying.debuggers import DebuggerMissing, Debugpy, NoDebugger, Pdb

    if pdb:
        return Pdb(at_once=at_once)
    if port is None:
        return NoDebugger()
    try:
        return Debugpy(port, at_once=at_once)
    except DebuggerMissing as problem:
        raise RecordingError(f"--debugpy: {problem}") from None


def _change_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as problem:
        raise RecordingError(
            f"{folder}: {problem.strerror}; the job was started there, and its paths begin there"
        ) from None
