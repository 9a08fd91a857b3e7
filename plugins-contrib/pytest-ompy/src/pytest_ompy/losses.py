"""Failures of ranks that made no report: they hang, or their process has gone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from pytest_ompy.merge import CONSEQUENCE, Report, text_failure
from pytest_ompy.remote_rank import Loss
from pytest_ompy.stacks import Frame, innermost_user_frame, parse, show, source_of, trim

_UNKNOWN: Final = "  (its stack could not be had)"


class View:
    """How much of a stack is shown, and with which paths.

    Attributes:
        directory: paths below it are shortened.
        full: show all frames.
    """

    def __init__(self, directory: str, *, full: bool) -> None:
        self.directory = directory
        self.full = full

    def stack(self, frames: Sequence[Frame]) -> str:
        """Frames, as text."""
        return show(trim(frames, full=self.full), self.directory) or _UNKNOWN


def failed_report(phase: str, failure: Report, *, consequence: bool = False) -> Report:
    """The report of a rank that failed in a phase, with nothing but the failure."""
    now = time.time()
    return {
        "$report_type": "TestReport",
        "when": phase,
        "outcome": "failed",
        "longrepr": failure,
        "sections": [],
        "user_properties": [],
        "start": now,
        "stop": now,
        "duration": 0.0,
        CONSEQUENCE: consequence,
    }


def report_of(loss: Loss, timeout: float, view: View) -> Report:
    """The report of a rank that was lost.

    Args:
        loss: what is known.
        timeout: seconds the test had.
        view: of stacks.
    """
    if loss.kind != "hung":
        failure = _gone(loss)
    else:
        stacks = parse(loss.text)
        when = "when another rank had failed" if loss.consequence else f"after {timeout:g} s"
        failure = stuck_failure(f"no end {when}", stacks.test, view, stacks.others)
    return failed_report(loss.phase, failure, consequence=loss.consequence)


def _gone(loss: Loss) -> Report:
    text = loss.text.strip()
    headline = text.partition("\n\n")[0].replace("\n", " ")
    return text_failure(text, headline)


def stuck_failure(
    what: str, frames: Sequence[Frame], view: View, others: Sequence[Sequence[Frame]] = ()
) -> Report:
    """The failure of a rank that does not go on.

    Args:
        what: in a few words.
        frames: where it is, outermost first.
        view: of stacks.
        others: where other threads of it are.
    """
    text = f"{what}; it was here (most recent call last):\n{view.stack(frames)}"
    for thread in others:
        text += f"\nanother thread:\n{view.stack(thread)}"
    place = innermost_user_frame(frames)
    message = f"{what}, in: {source_of(place)}" if place is not None else what
    return text_failure(text, message, tuple(frames) or None)
