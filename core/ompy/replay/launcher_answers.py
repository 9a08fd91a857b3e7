"""What the launcher has answered: ports and names, who has met whom, which processes were started.

Recorded at the rank that asks. In a replay of the whole job the launcher is asked again: a port has
another name then, but the program is told the old one, so files in the meeting place say which is
which. Who connects waits for the Accept that it met. A rank alone is told the answer, and the
messages by which groups meet are in its data.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ompy.data.errors import MPIError
from ompy.replay.events import QUESTIONS, Answered
from ompy.replay.looking import look_until

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.replay.follower import Follower
    from ompy.replay.recorder import Recorder

LOOKS_S: Final = 0.001  # s; arbitrary: between two looks at what others have asked
AS_BEFORE: Final = {"accept": ("ranks", "root"), "connect": ("ranks", "root"),
                    "spawn": ("first", "size")}  # fmt: skip

Ask = Callable[[dict[str, Any]], bytes]


class RecordedAnswers:
    """Writes answers down."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(self, what: str, header: dict[str, Any], ask: Ask) -> bytes:
        """Ask, and write the answer down."""
        code, text = 0, ""
        try:
            answer = ask(header)
            text = answer.decode("utf-8", "surrogateescape")
            return answer
        except MPIError as problem:
            code, text = problem.code, problem.detail
            raise
        finally:
            recorder = self._recorder
            question = QUESTIONS.index(what)
            recorder.write_event(Answered(recorder.prefix(), question, code, text))


class AnswersAlone:
    """Those of the recording, for a rank without the others."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def __call__(self, what: str, _header: dict[str, Any], _ask: Ask) -> bytes:
        """The answer that there was."""
        return _recorded(self._follower, what).text.encode("utf-8", "surrogateescape")


class AnswersAgain:
    """Those of the launcher, as they were."""

    def __init__(self, follower: Follower, engine: Engine, place: Path) -> None:
        """Ask for answers.

        Args:
            follower: of the rank.
            engine: of it.
            place: a folder that all ranks of the replay have.
        """
        self._follower = follower
        self._engine = engine
        self._place = place

    def __call__(self, what: str, header: dict[str, Any], ask: Ask) -> bytes:
        """Ask again; does not return if it is not the answer that there was.

        Raises:
            MPIError: the error that there was, or one that there was not.
        """
        if what == "made":
            return self._made_again(header, ask)
        event = _recorded(self._follower, what)
        answer = event.text.encode("utf-8", "surrogateescape")
        if what == "lookup":
            return answer
        if what == "open":
            self._write(self._port_file(event.text), ask(header))
            return answer
        if "port" in header:
            header = {**header, "port": self._real_port(header["port"], must=what == "connect")}
        if what not in AS_BEFORE:
            return ask(header)
        then = json.loads(event.text)
        meeting = self._place / f"accept-{then['bridge']}"
        if what == "accept":
            self._write(meeting, b"")
        elif what == "connect":
            self._wait_for(meeting)
        answer = ask(header)
        now = json.loads(answer)
        if any(now[name] != then[name] for name in AS_BEFORE[what]):
            self._follower.answers_differ(event, _shown(what, now), _shown(what, then))
        return answer

    def _made_again(self, header: dict[str, Any], ask: Ask) -> bytes:
        """A world that did not come about then is not to be now."""
        try:
            _recorded(self._follower, "made")
        except MPIError as problem:
            with suppress(MPIError):
                ask({**header, "why": header["why"] or problem.detail})
            raise
        return ask(header)

    def _port_file(self, recorded: str) -> Path:
        return self._place / f"port-{quote(recorded, safe='')}"

    def _real_port(self, recorded: str, *, must: bool) -> str:
        """The name that a port has now; a name that nobody opened stands for itself."""
        path = self._port_file(recorded)
        if must:
            self._wait_for(path)
        return path.read_text() if path.exists() else recorded

    def _write(self, path: Path, data: bytes) -> None:
        """Whoever sees it sees all of it."""
        self._place.mkdir(exist_ok=True)
        new = path.with_name(f"new-{path.name}")
        new.write_bytes(data)
        os.replace(new, path)

    def _wait_for(self, path: Path) -> None:
        look_until(self._engine, path.exists, LOOKS_S)


def _recorded(follower: Follower, what: str) -> Answered:
    """What there was.

    Raises:
        MPIError: it was an error.
    """
    event = follower.next_event(Answered(follower.prefix(), QUESTIONS.index(what), 0, ""))
    assert isinstance(event, Answered), "the questions agree"
    if event.code:
        raise MPIError(event.code, event.text)
    return event


def _shown(what: str, answer: dict[str, Any]) -> str:
    if what == "spawn":
        return f"{answer['size']} processes from rank {answer['first']} of the job on"
    return f"ranks {', '.join(map(str, answer['ranks']))} of the job"
