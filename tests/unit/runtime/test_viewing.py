"""What the launcher's machine tells who watches: questions in, rounds of ranks, answers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.agents.agent_tree import Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import Act, Inform, Send
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen
from ompy.runtime.machines.launcher.job import JobMachine
from ompy.runtime.machines.launcher.job_rules import JobRules
from ompy.runtime.machines.launcher.job_table import JobPhase
from ompy.runtime.machines.launcher.viewing import ROUND

SIZE = 2


def word(kind: Kind, body: bytes = b"", /, **header: object) -> Event:
    return Event(Seen.BELOW, 0, kind, header, body)


def machine(*, in_mpi: int = SIZE) -> JobMachine:
    places = tuple(Placement(rank, 0, 0, rank) for rank in range(SIZE))
    job = Job("0123456789abcdef", (App(("python", "a.py"), SIZE),), ("here",), places)
    made = JobMachine(job, Tree([]), [Child(0, 100, remote=False)], JobRules(grace_ms=1000))
    made.handle(Event(Seen.BEGUN), 10.0)
    for rank in range(SIZE):
        made.handle(word(Kind.STARTED, rank=rank, pid=1000 + rank), 10.0)
    for rank in range(in_mpi):
        made.handle(word(Kind.STAGE, rank=rank, stage="initialized"), 10.0)
    return made


def ask(made: JobMachine, what: object, now: float, who: int = 1) -> list[Act]:
    return made.handle(Event(Seen.INQUIRED, who, header={"ask": what}), now)


def where(rank: int, line: str, waits: str = "", **more: object) -> Event:
    body = json.dumps(more).encode() if more else b""
    return word(Kind.WHERE, body, rank=rank, line=line, waits=waits)


def answers(acts: list[Act]) -> list[tuple[int, Any]]:
    return [(act.watcher, act.answer) for act in acts if isinstance(act, Inform)]


def told(acts: list[Act]) -> list[tuple[Kind, Any]]:
    return [(act.kind, act.header) for act in acts if isinstance(act, Send)]


def test_a_job_is_described_at_once() -> None:
    ((who, said),) = answers(ask(machine(in_mpi=1), "job", 13.5))
    assert who == 1
    assert said == {
        "ask": "job",
        "job": "0123456789abcdef",
        "program": "python a.py",
        "hosts": ["here"],
        "ranks": 2,
        "phase": "running",
        "states": {"initialized": 1, "started": 1},
        "age_s": 3.5,
    }


def test_ranks_are_asked_and_told_of_when_all_have_answered() -> None:
    made = machine()
    acts = ask(made, "ranks", 20.0)
    assert told(acts) == [(Kind.REPORT, {})]
    assert not answers(acts)
    sent = {"messages": [[1, 3]], "asleep": 4.0, "threads": [["MainThread", []]]}
    assert not answers(made.handle(where(0, "a.py:3", "a receive", **sent), 20.1))
    ((_, said),) = answers(made.handle(where(1, "a.py:9"), 20.2))
    first, second = said["ranks"]
    assert (first["line"], first["waits"], first["messages"]) == ("a.py:3", "a receive", [[1, 3]])
    assert (first["pid"], first["host"], first["state"]) == (1000, "here", "initialized")
    assert first["for_s"] == 4.0, "it says how long it sleeps"
    assert "threads" not in first, "these have a question of their own"
    assert second["for_s"] == 0.0


def test_who_stays_where_it_is_is_there_since_it_was_seen_there() -> None:
    made = machine(in_mpi=1)
    for now, line, since in ((20.0, "3", 0.0), (21.0, "3", 1.0), (22.0, "4", 0.0), (23.0, "4", 1)):
        ask(made, "ranks", now)
        ((_, said),) = answers(made.handle(where(0, line), now))
        assert said["ranks"][0]["for_s"] == since


def test_several_who_ask_share_a_round() -> None:
    made = machine()
    ask(made, "ranks", 20.0, who=1)
    assert not told(ask(made, "stacks", 20.1, who=2)), "the ranks are asked once"
    threads = [["MainThread", [["a.py", 3, "f"]]]]
    made.handle(where(0, "a.py:3", threads=threads), 20.2)
    found = dict(answers(made.handle(where(1, "a.py:3"), 20.2)))
    assert found[1]["ask"] == "ranks"
    assert found[2]["stacks"] == [{"rank": 0, "threads": threads}, {"rank": 1, "threads": []}]


def test_nobody_is_waited_for_longer_than_a_round() -> None:
    made = machine()
    ask(made, "ranks", 20.0)
    ask(made, "stacks", 20.0, who=2)
    made.handle(where(1, "a.py:3"), 20.1)
    assert made.due == 20.0 + ROUND
    found = dict(answers(made.handle(Event(Seen.TIME), 20.0 + ROUND)))
    assert [row["told"] for row in found[1]["ranks"]] == [False, True]
    assert found[2]["silent"] == [0]
    assert made.due is None
    assert not answers(made.handle(where(0, "a.py:3"), 21.0)), "it is too late"


def test_who_is_not_in_mpi_is_not_asked() -> None:
    made = machine(in_mpi=0)
    acts = ask(made, "ranks", 20.0)
    ((_, said),) = answers(acts)
    assert not told(acts)
    assert [row["state"] for row in said["ranks"]] == ["started", "started"]


def test_how_ranks_stand_ends_nothing() -> None:
    """Two ranks that wait for each other: of a question of a watcher nothing is concluded."""
    made = machine()
    (report, (kind, header)) = told(ask(made, "autopsy", 20.0))
    assert (report, kind) == ((Kind.REPORT, {}), Kind.STAND)
    assert header["question"] < 0
    assert header["ranks"] == [0, 1]
    found = []
    for rank in range(SIZE):
        said = json.dumps(standing(1 - rank)).encode()
        question = header["question"]
        found += answers(made.handle(where(rank, "a.py:3", asleep=1.0), 20.1))
        acts = made.handle(word(Kind.STILL, said, rank=rank, question=question), 20.1)
        found += answers(acts)
    ((_, said),) = found
    assert said["lines"][0].startswith("ranks 0, 1 cannot go on, it seems (asked once: no proof)")
    assert said["autopsy"]["ranks"] == [0, 1]
    assert said["autopsy"]["proven"] is False
    assert any("each waits for the next" in line for line in said["lines"])
    assert made.due is None
    assert made.phase is JobPhase.RUNNING


def standing(source: int) -> dict[str, Any]:
    need = {"what": "receive", "comm": 0, "name": "MPI_COMM_WORLD", "ranks": [source]}
    need |= {"every": True, "tag": 7, "sequence": 0, "size": 0, "number": 0, "text": "a message"}
    at = {"file": "a.py", "line": 3, "function": "f", "text": "recv()"}
    waits = [{"since": 1, "at": at, "needs": [need]}]
    messages = {"begun": {"0": 0}, "sent": {"0": []}, "received": {"0": []}, "unmatched": []}
    return {"live": "", "waits": waits, "tasks": [], **messages}


def test_an_answer_to_an_old_question_is_none() -> None:
    made = machine(in_mpi=1)
    ask(made, "autopsy", 20.0)
    made.handle(Event(Seen.TIME), 21.0)
    ask(made, "autopsy", 22.0)
    said = json.dumps({"live": "it runs"}).encode()
    assert not answers(made.handle(where(0, "a.py:3", asleep=1.0), 22.0))
    assert not answers(made.handle(word(Kind.STILL, said, rank=0, question=-1), 22.1))
    ((_, found),) = answers(made.handle(word(Kind.STILL, said, rank=0, question=-2), 22.2))
    assert found["lines"][0] == "asked once, which proves nothing:"


@pytest.mark.parametrize("what", [None, "", "everything", 7, ["job"], {}])
def test_a_question_that_is_none_is_answered_so(what: object) -> None:
    ((_, said),) = answers(ask(machine(), what, 20.0))
    assert "error" in said


def test_a_job_that_ends_asks_nobody() -> None:
    made = machine()
    made.handle(word(Kind.ABORTED, b"why", rank=0, pid=1, code=3), 15.0)
    assert made.phase is JobPhase.ENDING
    acts = ask(made, "ranks", 16.0)
    assert not told(acts)
    assert len(answers(acts)) == 1


def test_rails_are_told_of_where_they_are_counted() -> None:
    made = machine(in_mpi=0)
    row = [1, "tcp over eth0", "eth0", "10.0.0.1", "10.0.0.2", 4096, "sound"]
    made.handle(word(Kind.CARRIED, json.dumps([row]).encode(), rank=0, before=0, at=1), 12.0)
    ((_, said),) = answers(ask(made, "ranks", 20.0))
    assert said["rails"] == [[0, *row]]
    assert said["broken"] == []
