"""What ompy itself says of a job, as structlog events: sentences for people, or lines of JSON.

An event has a name (`rail lost`), a level, what it is about (job, host and rank, bound once; fields
of its own) and a text. As `text` the user reads the text. As `json` each event is an object on a
line of its own, its text among the fields, so that no program need read sentences.

structlog takes longer to import than a small job to start: it is imported for the first event.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

TEXT: Final = "text"
JSON: Final = "json"
FORMATS: Final = {
    TEXT: "sentences for people",
    JSON: "for programs, an object on a line of its own for each event",
}
_FIRST: Final = ("timestamp", "level", "event", "job", "host", "rank")  # keys, where they are there


class Finding(NamedTuple):
    """Something a job's user should know.

    Attributes:
        name: of the kind, a few words that are always the same: `job failed`, `rails`.
        text: whole lines for people; empty if there are none.
        level: info, warning or error.
        fields: what a program wants to know of it, as JSON carries it.
    """

    name: str
    text: str
    level: str = "info"
    fields: Mapping[str, object] = MappingProxyType({})


class Reporter:
    """Makes lines of events.

    Attributes:
        form: one of `FORMATS`.
        bound: what each of its events is about: job, host, rank.
    """

    __slots__ = ("bound", "form")

    def __init__(self, form: str = TEXT, bound: Mapping[str, object] | None = None) -> None:
        assert form in FORMATS, form
        self.form = form
        self.bound = dict(bound or {})

    def bind(self, **more: object) -> Reporter:
        """One whose events are about these, too."""
        return Reporter(self.form, {**self.bound, **more})

    def lines(self, finding: Finding) -> str:
        """What to write for a finding: whole lines, or nothing if it has no text."""
        if not finding.text:
            return ""
        render = _as_json if self.form == JSON else _as_text
        fields = {"text": finding.text, **finding.fields}
        return self._rendered(render, finding.name, finding.level, fields)

    def rendered(self, name: str, text: str, level: str) -> str:
        """What to write for a text of whole lines, as `outputs.speak` wants it."""
        return self.lines(Finding(name, text, level))

    def report_step(self, framework: str, step: str, details: Mapping[str, str]) -> str:
        """The line for a step of a framework, which its verbosity has asked for."""
        render = _as_json if self.form == JSON else _as_console_line
        filled = {key: value for key, value in details.items() if value}
        return self._rendered(render, f"mca:{framework}: {step}", "info", filled)

    def _rendered(
        self, render: Callable[..., str], event: str, level: str, fields: Mapping[str, object]
    ) -> str:
        import structlog

        logger = structlog.wrap_logger(
            structlog.ReturnLogger(),
            processors=[structlog.processors.add_log_level, render],
        )
        return str(getattr(logger.bind(**self.bound), level)(event, **fields))


def _as_text(_logger: object, _name: str, event: Mapping[str, Any]) -> str:
    """The sentences alone."""
    return str(event["text"])


def _as_json(logger: object, name: str, event: Mapping[str, Any]) -> str:
    from structlog.processors import JSONRenderer, TimeStamper

    stamped = TimeStamper(fmt="iso", utc=True)(logger, name, dict(event))
    if "text" in stamped:
        stamped["text"] = stamped["text"].rstrip("\n")
    ordered = {key: stamped[key] for key in _FIRST if key in stamped} | dict(stamped)
    return f"{JSONRenderer(default=str)(logger, name, ordered)!s}\n"


def _as_console_line(logger: object, name: str, event: Mapping[str, Any]) -> str:
    """As structlog shows events to developers."""
    from structlog.dev import ConsoleRenderer
    from structlog.processors import TimeStamper

    shown = {key: value for key, value in event.items() if key not in {"level", *_FIRST[3:]}}
    stamped = TimeStamper(fmt="%H:%M:%S.%f", utc=False)(logger, name, {**shown, "pid": os.getpid()})
    console = ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)
    return f"{console(logger, name, stamped)}\n"
