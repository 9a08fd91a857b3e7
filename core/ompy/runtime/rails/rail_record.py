"""The record of a job's rails: what the ranks told, when, in lines of JSON.

    {"what": "job", "version": 1, "interval_ms": 100, "hosts": ["h1", "h2"]}     host of each rank
    {"what": "hosts", "time": 0.5, "hosts": ["h1", "h2", "h1"]}     of more ranks
    {"what": "carried", "time": 0.512, "rank": 0, "before": ..., "at": ..., "rails": [[...], ...]}
    {"what": "rail", "time": 1.204, ...}                 as in the report (`rail_report.py`)
    {"what": "end", "time": 6.001}

Times are s since the launcher began to listen; `before` and `at` are ns of the rank; a rail is a
list of `Carried`'s fields (`rail_samples.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

from ompy.runtime.rails.rail_watch import RailWatch

VERSION: Final = 1  # arbitrary: the first


class RecordError(Exception):
    """A file is no record of rails; the text says where."""


class RailRecord:
    """Writes one."""

    def __init__(self, file: IO[str], hosts: list[str], interval_ms: int) -> None:
        """Begin.

        Args:
            file: where to; the caller closes it.
            hosts: name of the host of each rank.
            interval_ms: between two samples of a rank.
        """
        self._file = file
        first = {"what": "job", "version": VERSION, "interval_ms": interval_ms, "hosts": hosts}
        self._write(first)

    def add(self, what: str, time: float, told: Mapping[str, Any]) -> None:
        """Something was told, at `time` s.

        Raises:
            OSError: it cannot be written.
        """
        self._write({"what": what, "time": round(time, 6), **told})

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")


def lines_of(file: IO[str]) -> Iterator[dict[str, Any]]:
    """The lines of a record; one that was cut off in the middle ends it.

    Raises:
        RecordError: it is none.
    """
    for number, text in enumerate(file, 1):
        if not text.endswith("\n"):
            return
        try:
            line = json.loads(text)
            what = line["what"]
        except (ValueError, TypeError, KeyError):
            raise RecordError(f"line {number} is not one of a record of rails") from None
        if number == 1 and (what != "job" or line.get("version") != VERSION):
            raise RecordError(f"line 1 is not the first of a record of version {VERSION}")
        yield line


def replay(file: IO[str]) -> Iterator[tuple[float, RailWatch]]:
    """What was watched, again: after each interval the time in s, and the rails as they were.

    It is one `RailWatch` throughout, which changes.

    Raises:
        RecordError: the file is no record.
    """
    lines = lines_of(file)
    first = next(lines, None)
    if first is None:
        raise RecordError("it is empty")
    interval = first["interval_ms"] / 1000
    watch = RailWatch(first["hosts"], interval)
    ticks = 1
    for line in lines:
        while line["time"] >= ticks * interval:
            watch.tick(ticks * interval)
            yield ticks * interval, watch
            ticks += 1
        feed(watch, line)


def feed(watch: RailWatch, line: Mapping[str, Any]) -> None:
    """Take one line in."""
    if line["what"] == "carried":
        watch.carried(line["time"], line)
    elif line["what"] == "rail":
        watch.event(line["time"], line)
    elif line["what"] == "hosts":
        watch.set_hosts(line["hosts"])
