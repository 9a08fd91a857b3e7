"""What goes wrong with settings and components, told so that the user can mend it."""

from __future__ import annotations

from collections.abc import Iterable


class UsageError(Exception):
    """The user's settings are wrong: each problem says what, where it was set and what is near.

    Attributes:
        problems: one text per problem.
        exit_code: what a command line ends with.
    """

    exit_code = 2  # as click, argparse and most commands end on a wrong command line

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class ComponentsFailed(UsageError):
    """Components that the settings ask for, or that strict plug-ins do not tolerate, failed.

    One problem for each component, with the traceback of what it raised.
    """

    exit_code = 1  # arbitrary: not 2, nothing is wrong with the settings themselves


class ComponentError(Exception):
    """A component the user asked for by name cannot be used.

    Attributes:
        component: `<framework>:<name>`.
        reason: why, in a sentence.
        traceback: of the original exception, empty when there was none.
        exit_code: what a command line ends with.
    """

    exit_code = 1  # arbitrary: not 2, the command line itself is right

    def __init__(self, component: str, reason: str, where: str = "", traceback: str = "") -> None:
        asked = f" (asked for by {where})" if where else ""
        text = f"component {component}{asked} cannot be used: {reason}"
        super().__init__(f"{text}\n{traceback}".rstrip())
        self.component = component
        self.reason = reason
        self.traceback = traceback


def nearest(word: str, candidates: Iterable[str], likeness: float = 0.6) -> str | None:
    """The candidate a misspelt word is most likely meant to be, or None if none is near.

    Args:
        word: as it was written.
        candidates: what there is.
        likeness: of 0 to 1, from which a candidate is near (difflib's ratio, and its default).
    """
    from difflib import get_close_matches

    matches = get_close_matches(word, sorted(candidates), n=1, cutoff=likeness)
    return matches[0] if matches else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """A clause for the end of a message about an unknown word; empty if nothing is near."""
    match = nearest(word, candidates)
    return f"; did you mean {match}?" if match else ""
