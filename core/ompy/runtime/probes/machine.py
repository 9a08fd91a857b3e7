"""What the asking side of one path makes of answers; no input, no output, no clock.

Turns are counted, not time: who was stopped for a while has not asked, and takes nobody for dead.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.paths.path_watch import PathVerdict

RELAXED: Final = 10  # arbitrary: intervals between questions once the last one was answered


class PathProbe:
    """Questions about one path and what follows from their answers.

    Attributes:
        verdict: what is known by now.
        asked: questions so far; the number of the last one.
        unanswered: turns since the last answer.
    """

    __slots__ = (
        "_answered",
        "_interval",
        "_resting",
        "_turns_max",
        "asked",
        "unanswered",
        "verdict",
    )

    def __init__(self, interval: int, turns_max: int) -> None:
        """Begin with nothing known.

        Args:
            interval: ns from one question to the next.
            turns_max: questions without an answer after which the path is dead.
        """
        self._interval = interval
        self._turns_max = max(1, turns_max)
        self._answered = 0
        self._resting = False
        self.verdict = PathVerdict.UNKNOWN
        self.asked = 0
        self.unanswered = 0

    def turn(self) -> int:
        """It is time: ask again. Returns the number of the question to send; 0 for none."""
        if self.asked and not self.unanswered and not self._resting:
            self._resting = True  # the last turn was answered
            return 0
        self._resting = False
        if self.unanswered >= self._turns_max:
            self.verdict = PathVerdict.DEAD
        self.unanswered += 1
        self.asked += 1
        return self.asked

    @property
    def pause(self) -> int:
        """Nanoseconds until the next turn.

        Longer while all is well, and when it was found that it is not: then nobody is in a hurry.
        """
        if self.verdict is PathVerdict.DEAD:
            return self._interval * RELAXED
        return self._interval * (RELAXED - 1 if self._resting else 1)

    def answer(self, number: int) -> bool:
        """An answer to question `number` is here.

        Returns:
            Whether it is news; one that was overtaken by a later one is not, nor one to nothing.
        """
        if not self._answered < number <= self.asked:
            return False
        self._answered = number
        self.unanswered = 0
        self.verdict = PathVerdict.ALIVE
        return True


def because(verdict: PathVerdict, unanswered: int) -> str:
    """What a verdict rests on."""
    if verdict is PathVerdict.DEAD:
        return f"the agents of both hosts did not reach each other in {unanswered} attempts"
    if verdict is PathVerdict.ALIVE:
        return "the agents of both hosts reach each other"
    return ""
