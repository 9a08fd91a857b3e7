"""The launcher's part of `--record`: the directory, and `job.json` with what the job is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ompy.cli.command_line import (
    PROGRAM,
    RECORD_DATA,
    RECORD_REPLAY,
    CommandError,
    write_error_line,
)
from ompy.outputs import PlantedError
from ompy.replay.job_file import RecordedJob, prepare_directory, write_job

if TYPE_CHECKING:
    from ompy.frameworks.job import Job

COLL = "basic,inter"  # with received bytes: all collective calls go as messages then


def record_parameters(options: Mapping[str, Any], pairs: Sequence[tuple[str, str]]) -> None:
    """See that the options of a recording make sense with the others.

    Raises:
        CommandError: they do not.
    """
    if options["record_data"] and not options["record"]:
        raise CommandError("--record-data: there is no --record DIR")
    if options["record_data"] and not any(name == RECORD_REPLAY for name, _ in pairs):
        for name, value in pairs:
            if name == "coll" and value != COLL:
                raise CommandError(
                    f"--mca coll {value}: --record-data has collectives of its own ({COLL}), "
                    "whose messages it can record"
                )


class JobRecord:
    """Writes `job.json`: when the job starts, and again when it has ended."""

    def __init__(self, recorded: RecordedJob) -> None:
        self._recorded = recorded
        write_job(recorded)

    def ended(self, code: int) -> None:
        """The job has ended."""
        try:
            write_job(self._recorded._replace(exit_code=code))
        except OSError as problem:
            write_error_line(
                f"{PROGRAM}: warning: --record {self._recorded.directory}: {problem.strerror}; "
                "job.json does not say how the job ended"
            )


def start_record(directory: str, job: Job, words: Sequence[str], folder: str) -> JobRecord | None:
    """Make the directory of a recording ready and write down what the job is.

    Returns:
        None if it cannot be written, which has been said: the job runs unrecorded.

    Raises:
        CommandError: it is no directory, or a stranger's.
    """
    data = bool(job.mca["values"].get(RECORD_DATA))
    try:
        prepare_directory(directory)
        return JobRecord(RecordedJob(directory, tuple(words), folder, data, job))
    except (FileExistsError, NotADirectoryError):
        raise CommandError(f"--record {directory}: it is not a directory") from None
    except PlantedError as problem:
        raise CommandError(f"--record {directory}: {problem}") from None
    except OSError as problem:
        write_error_line(
            f"{PROGRAM}: warning: --record {directory}: {problem.strerror}; nothing is recorded"
        )
        return None
