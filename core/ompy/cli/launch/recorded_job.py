"""The launcher's part of `--record`: the directory, and `job.json` with what the job is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ompy.cli.launch.command_line import RECORD_DATA, RECORD_REPLAY, CommandError
from ompy.cli.launch.kept_files import begin_in, end_in
from ompy.replay.job_file import RecordedJob, prepare_directory, write_job

if TYPE_CHECKING:
    from ompy.frameworks.job import Job

COLL = "basic,inter"  # with received bytes: all collective calls go as messages then
OSC_PRIORITY = "osc_pt2pt_priority"  # likewise all that is done in windows
FIRST_OF_ALL = "1000"  # points; arbitrary: more than any other component has


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


def with_data(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parameters by which all that ranks are told travels in messages.

    Args:
        pairs: the other parameters.
    """
    found = [("coll", COLL)]
    if not any(name == OSC_PRIORITY for name, _ in pairs):
        found.append((OSC_PRIORITY, FIRST_OF_ALL))
    return found


class JobRecord:
    """Writes `job.json`: when the job starts, and again when it has ended."""

    def __init__(self, recorded: RecordedJob) -> None:
        self._recorded = recorded
        write_job(recorded)

    def ended(self, code: int) -> None:
        """The job has ended."""
        ended = self._recorded._replace(exit_code=code)
        end_in("--record", ended.directory, lambda: write_job(ended))


def start_record(directory: str, job: Job, words: Sequence[str], folder: str) -> JobRecord | None:
    """Make the directory of a recording ready and write down what the job is.

    Returns:
        None if it cannot be written, which has been said: the job runs unrecorded.

    Raises:
        CommandError: it is no directory, or a stranger's.
    """
    data = bool(job.mca["values"].get(RECORD_DATA))

    def begin() -> JobRecord:
        prepare_directory(directory)
        return JobRecord(RecordedJob(directory, tuple(words), folder, data, job))

    return begin_in("--record", directory, "nothing is recorded", begin)
