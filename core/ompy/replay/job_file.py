"""`job.json` of a recording: what ran, and how; and the names of the files beside it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ompy import __version__, outputs
from ompy.frameworks.job import Job
from ompy.replay.entries import KINDS, RecordingError

NAME: Final = "job.json"
FORMAT: Final = "ompy recording"
VERSION: Final = 2
AGAIN: Final = "record the job again: ompy-run --record DIR"
_OURS: Final = re.compile(r"rank-(\d+)\.(events|data)")


class RecordedJob(NamedTuple):
    """What a recording is of.

    Attributes:
        directory: of the recording.
        words: of the command line behind `ompy-run`.
        folder: where that was typed.
        data: the received bytes are there.
        job: as its ranks had it.
        exit_code: it has ended with; None if the launcher was killed, or runs still.
    """

    directory: str
    words: tuple[str, ...]
    folder: str
    data: bool
    job: Job
    exit_code: int | None = None

    @property
    def size(self) -> int:
        """Ranks that it began with."""
        return self.job.worlds[0].size


def file_of(directory: str, rank: int, kind: int) -> str:
    """Where a rank's events are, or its data."""
    return os.path.join(directory, f"rank-{rank}.{KINDS[kind]}")


def ranks_in(directory: str) -> int:
    """Ranks that have files, those that were started later, too."""
    found = [_OURS.fullmatch(name) for name in os.listdir(directory)]
    return max((int(match[1]) + 1 for match in found if match), default=0)


def prepare_directory(directory: str) -> None:
    """Make a directory ready: a recording that is in it goes.

    Raises:
        OSError: it cannot be made or written, or is a stranger's.
    """
    outputs.clear_directory(directory, lambda name: name == NAME or _OURS.fullmatch(name))


def write_job(recorded: RecordedJob) -> None:
    """Write what it is, all at once.

    Raises:
        OSError: it cannot be written; what was there before still is.
    """
    values: dict[str, Any] = {"format": FORMAT, "version": VERSION, "ompy": __version__}
    values |= recorded._asdict()
    values.pop("directory")
    values["job"] = recorded.job.to_dict()
    values["checksum"] = outputs.json_checksum(values)
    outputs.replace_text(recorded.directory, NAME, json.dumps(values, indent=1) + "\n")


def read_job(directory: str) -> RecordedJob:
    """What a recording is of.

    Raises:
        RecordingError: there is none, or it is damaged.
    """
    path = os.path.join(directory, NAME)
    try:
        values = json.loads(Path(path).read_bytes())
        check = values.pop("checksum", None) if isinstance(values, dict) else None
    except OSError as problem:
        raise RecordingError(
            f"{directory}: no recording: {NAME}: {problem.strerror}; "
            "ompy-run --record DIR makes one"
        ) from None
    except (ValueError, RecursionError) as problem:
        raise RecordingError(f"{path}: damaged or truncated: {problem}; {AGAIN}") from None
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise RecordingError(f"{path}: it is not of a recording; {AGAIN}")
    if values.get("version") != VERSION:
        raise RecordingError(
            f"{path}: its format has version {values.get('version')}, this ompy reads {VERSION}: "
            "replay it with the ompy that recorded it"
        )
    if check != outputs.json_checksum(values):
        raise RecordingError(f"{path}: damaged: its checksum is wrong; {AGAIN}")
    try:
        return _recorded(directory, values)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        text = f"{type(problem).__name__}: {problem}"
        raise RecordingError(f"{path}: damaged: {text}; {AGAIN}") from None


def _recorded(directory: str, values: dict[str, Any]) -> RecordedJob:
    words: Sequence[Any] = values["words"]
    if not all(isinstance(word, str) for word in [*words, values["folder"]]):
        raise TypeError("words of the command line are no texts")
    code = values["exit_code"]
    if not isinstance(values["data"], bool) or not isinstance(code, int | None):
        raise TypeError("data or exit_code is of another type")
    job = Job.from_dict(values["job"])
    if not job.placements:
        raise ValueError("it has no ranks")
    return RecordedJob(directory, tuple(words), values["folder"], values["data"], job, code)
