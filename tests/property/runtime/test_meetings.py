"""Ports under any order of calls: each question has one answer, and both sides hear the same."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from ompy.data.errors import ERR_PORT
from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.machines.launcher.asking import Answer, Asked

RANKS = 6
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["accept", "connect", "connect", "withdraw", "withdraw", "close", "gone"]),
        st.integers(0, RANKS - 1),
        st.integers(0, 1),  # which port
        st.integers(0, 40),  # which question is withdrawn
    ),
    max_size=40,
)


def job() -> Job:
    places = tuple(Placement(rank, 0, rank, 0) for rank in range(RANKS))
    names = tuple(f"h{node}" for node in range(RANKS))
    return Job("0" * 16, (App(("a",), RANKS),), names, places)


class Meetings:
    """What ranks have asked and heard."""

    def __init__(self) -> None:
        self.asked = Asked(job())
        self.questions: list[tuple[str, int, str]] = []  # what, rank, port; by number
        self.answers: dict[int, Answer] = {}
        self.dead: set[int] = set()
        self.ports = [self.ask("open", 0), self.ask("open", 1)]

    def ask(self, what: str, rank: int, port: str = "", of: int = 0) -> str:
        number = len(self.questions)
        self.questions.append((what, rank, port))
        header = {"ask": number, "what": what, "port": port, "of": of}
        self.hear(self.asked.heard(rank, header, json.dumps([rank]).encode()))
        return self.answers[number].body.decode() if number in self.answers else ""

    def hear(self, replies: object) -> None:
        for reply in replies:  # type: ignore[attr-defined]
            assert isinstance(reply, Answer)
            assert reply.ask not in self.answers, "one answer"
            assert self.questions[reply.ask][1] == reply.rank, "to who has asked"
            assert reply.rank not in self.dead
            self.answers[reply.ask] = reply

    def take(self, what: str, rank: int, port: int, of: int) -> None:
        if rank in self.dead:
            return
        if what == "gone":
            self.dead.add(rank)
            self.hear(self.asked.gone(rank))
        elif what == "withdraw":
            mine = [
                number
                for number, (kind, who, _) in enumerate(self.questions)
                if who == rank and kind == "connect"
            ]
            if mine:
                chosen = mine[of % len(mine)]
                self.ask(what, rank, self.questions[chosen][2], chosen)
                assert chosen in self.answers, "whoever has withdrawn waits no longer"
        else:
            self.ask(what, rank, self.ports[port])


@given(CALLS)
def test_both_sides_hear_the_same(calls: list[tuple[str, int, int, int]]) -> None:
    meetings = Meetings()
    for call in calls:
        meetings.take(*call)
    met: dict[int, list[str]] = {}
    for number, (what, _, port) in enumerate(meetings.questions):
        answer = meetings.answers.get(number)
        if what in {"accept", "connect"} and answer is not None:
            assert answer.code in {0, ERR_PORT}
            if not answer.code:
                told = json.loads(answer.body)
                met.setdefault(told["bridge"], []).append(f"{what} {port} {told['root']}")
    for sides in met.values():
        kinds = sorted(side.split(" ")[0] for side in sides)
        assert kinds == ["accept", "connect"]
        assert len({side.split(" ")[1] for side in sides}) == 1
    for port in meetings.ports:
        waiting = {
            what
            for number, (what, rank, name) in enumerate(meetings.questions)
            if name == port and number not in meetings.answers and rank not in meetings.dead
        }
        assert len(waiting) < 2, "nobody waits where the other side does"
