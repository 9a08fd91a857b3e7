"""The launcher's machine: its table, and agents that end at every step of a job."""

from __future__ import annotations

import json
import signal
from collections import Counter
from itertools import product
from random import Random

import pytest
from ompy.data.errors import ERR_SPAWN
from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.agents.agent_tree import Branch, Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.modex import bundle
from ompy.runtime.diagnosis.autopsy import DEADLOCK
from ompy.runtime.launching.kills import Kill
from ompy.runtime.machines.acts import (
    Act,
    Drop,
    Find,
    KeepAutopsy,
    Send,
    Show,
    Stop,
    Suspend,
    TakeInput,
)
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.diagnosis.inquest import PATIENCE as ASK_PATIENCE
from ompy.runtime.machines.events import Event, Seen, WrongPhase
from ompy.runtime.machines.launcher.job import CUT_PATIENCE, PATIENCE, JobMachine
from ompy.runtime.machines.launcher.job_rules import JobRules
from ompy.runtime.machines.launcher.job_table import LAUNCHED, JobPhase
from ompy.runtime.machines.leave_news import COLLECTING, pack_news
from ompy.runtime.rails.rail_report import FIELDS

RULES = JobRules(grace_ms=1000, heartbeat_s=0.1, misses=3, start_s=10.0, timeout_s=60.0)
SIZE = 4  # ranks, two on each of two hosts


def job_of(hosts: int = 2) -> Job:
    places = tuple(Placement(rank, 0, rank * hosts // SIZE, rank % 2) for rank in range(SIZE))
    return Job("0" * 16, (App(("a",), SIZE),), tuple(f"h{n}" for n in range(hosts)), places)


def machine(rules: JobRules = RULES) -> JobMachine:
    """The launcher's own host and another one."""
    tree = Tree([Branch(1, -1, "h1", ("ssh",))])
    children = [Child(0, 100, remote=False), Child(1, 200, remote=True)]
    made = JobMachine(job_of(), tree, children, rules)
    made.handle(Event(Seen.BEGUN), 0.0)
    return made


def word(who: int, kind: Kind, body: bytes = b"", /, **header: object) -> Event:
    return Event(Seen.BELOW, who, kind, header, body)


WORDS = {
    Kind.OUTPUT: {"rank": 0, "stream": 1},
    Kind.INPUT_TAKEN: {"bytes": 3},
    Kind.MODEX: {},
    Kind.FETCH: {"node": 0, "host": 1},
    Kind.LEFT: {},
    Kind.FAULTS: {"rank": 0, "delivered": []},
    Kind.PATHS: {"rank": 0, "peer": 1, "reason": "why"},
    Kind.STARTED: {"rank": 0, "pid": 7},
    Kind.STAGE: {"rank": 0, "stage": "attached"},
    Kind.UNSTARTED: {"rank": 0, "code": 1},
    Kind.EXITED: {
        "rank": 0,
        "status": 0,
        "stage": "started",
        "reason": "ended",
        "expendable": False,
        "known": False,
    },
    Kind.LOST: {"rank": 0, "pid": 7},
    Kind.ABORTED: {"rank": 0, "pid": 7, "code": 4},
    Kind.AGENT_GONE: {"node": 1, "pid": 200, "alone": True},
    Kind.FINISHED: {"node": 0},
    Kind.WHERE: {"rank": 0, "line": "", "waits": ""},
    Kind.STILL: {"rank": 0, "question": 0},
    Kind.CARRIED: {"rank": 0},
    Kind.ASK: {"rank": 0, "ask": 1, "what": "open"},
    Kind.COUNTED: {"rank": 0, "values": {}},
    Kind.UNREACHABLE: {"rank": 0, "peer": 1},
    Kind.RAIL: {**dict.fromkeys(FIELDS, 0), "number": 0},
}


BODIES = {Kind.PATHS: b"[]", Kind.STILL: b'{"live": "so"}', Kind.LEFT: b"[[0, true, null]]"}


def brought_to(phase: JobPhase) -> JobMachine:
    """A job in a phase, by what leads there."""
    made = machine()
    if phase is JobPhase.ASKING:
        made.handle(word(0, Kind.STARTED, rank=0, pid=7), 0.0)
        made.handle(word(0, Kind.STAGE, rank=0, stage="initialized"), 0.0)
        made.handle(Event(Seen.TIME), 60.0)
    elif phase is JobPhase.ENDING:
        made.handle(Event(Seen.TOLD_TO_END, signal.SIGTERM), 0.0)
    elif phase is not JobPhase.RUNNING:
        for node in (0, 1):
            made.handle(word(node, Kind.FINISHED, node=node), 0.0)
        if phase is JobPhase.OVER:
            made.handle(Event(Seen.IDLE), 0.0)
    assert made.phase is phase
    return made


PHASES = [phase for phase in JobPhase if phase not in {JobPhase.GATHERING, JobPhase.RELEASED}]


@pytest.mark.parametrize("phase", PHASES)
def test_all_pairs(phase: JobPhase) -> None:
    """What cannot happen is an error that says so; all that can leads where the table says."""
    words = {Seen.ABOVE, Seen.BELOW, Seen.RANK}
    events = [Event(what, 1) for what in set(Seen) - words - {Seen.WRITTEN}]
    events.append(Event(Seen.WRITTEN, -1, None, {"node": 0, "bytes": 1}))
    for kind in Kind:
        body = BODIES.get(kind, b"")
        events.append(Event(Seen.BELOW, 1, kind, WORDS.get(kind, {}), body))
        events.append(Event(Seen.RANK, 1, kind))
    for event in events:
        made = brought_to(phase)
        pair = phase, event.what, event.kind
        if pair in LAUNCHED:
            made.handle(event, 61.0)
            assert made.phase in LAUNCHED[pair], pair
        else:
            with pytest.raises(WrongPhase, match=f"a job that is {phase.value} cannot be told"):
                made.handle(event, 61.0)


def test_every_phase_is_reached_and_left() -> None:
    """No row leads where the table has nothing."""
    begins = {phase for phase, _, _ in LAUNCHED}
    assert {then for rows in LAUNCHED.values() for then in rows} == begins == set(PHASES)


# a host's ranks, as its agent tells of them


def life(rank: int, node: int) -> list[Event]:
    told = [word(node, Kind.STARTED, rank=rank, pid=1000 + rank)]
    told += [word(node, Kind.STAGE, rank=rank, stage="attached")]
    told += [word(node, Kind.STAGE, rank=rank, stage="initialized")]
    told += [word(node, Kind.MODEX, bundle({rank: b"x"}))]
    told += [word(node, Kind.STAGE, rank=rank, stage="finalized")]
    return [*told, ended(rank, node, 0)]


def ended(
    rank: int, node: int, status: int, *, stage: str = "finalized", expendable: bool = False
) -> Event:
    said = {"rank": rank, "pid": 1, "status": status, "stage": stage, "reason": "ended"}
    said["known"] = False
    return word(node, Kind.EXITED, expendable=expendable, **said)


def host(node: int) -> list[Event]:
    first, second = life(2 * node, node), life(2 * node + 1, node)
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    fence = word(node, Kind.FENCED)
    return [*mixed[:8], fence, *mixed[8:], word(node, Kind.FINISHED, node=node)]


def mixed(first: list[Event], second: list[Event], seed: int) -> list[Event]:
    """Both in one order, each in its own."""
    chance, left = Random(seed), [list(first), list(second)]
    order = []
    while any(left):
        chosen = chance.choice([one for one in left if one])
        order.append(chosen.pop(0))
    return order


def run(made: JobMachine, events: list[Event]) -> list[Act]:
    """Tell all of it; agents that are told to end do so, and in the end nobody is waited for."""
    acts, now = [], 0.0
    for event in events:
        now += 0.01
        acts += made.handle(event, now)
    while made.phase is not JobPhase.CLOSING:
        assert made.due is not None, "somebody is waited for, and for ever"
        now = max(now, made.due)
        acts += made.handle(Event(Seen.TIME), now)
        assert now < 100, "this takes too long"
    acts += made.handle(Event(Seen.IDLE), now)
    assert acts[-1] == Stop()
    return acts


def failures(acts: list[Act]) -> list[str]:
    found = [act.finding for act in acts if isinstance(act, Find)]
    return [str(finding.fields["headline"]) for finding in found if finding.name == "job failed"]


def test_a_job_that_ends_well_in_every_order() -> None:
    for seed in range(200):
        made = machine()
        acts = run(made, mixed(host(0), host(1), seed))
        assert made.exit_code == 0
        assert not failures(acts)
        fences = [act for act in acts if isinstance(act, Send) and act.kind is Kind.FENCED]
        assert [act.to for act in fences] == [0, 1], "once, to both, when both have come"


@pytest.mark.parametrize("node", [0, 1])
def test_an_agent_that_goes_at_every_step(node: int) -> None:
    """What it does not say any more ends the job, unless it was done."""
    steps = len(host(node))
    for step, seed in product(range(steps + 1), range(8)):
        hosts = [host(0), host(1)]
        hosts[node] = [*hosts[node][:step], Event(Seen.CHILD_GONE, node)]
        made = machine()
        told = failures(run(made, mixed(*hosts, seed)))
        assert made.exit_code == (0 if step == steps else 1), step
        assert len(told) == int(step < steps)
        assert all("looks after the ranks of a host" in one for one in told)


@pytest.mark.parametrize("node", [0, 1])
def test_an_agent_that_is_silent_from_every_step_on(node: int) -> None:
    """Of another host that is noticed; this one's is no network away, and is waited for."""
    steps = len(host(node))
    for step in range(steps):
        hosts = [host(0), host(1)]
        hosts[node] = hosts[node][:step]
        made = machine(RULES._replace(timeout_s=20.0))
        acts = run(made, mixed(*hosts, step))
        assert made.exit_code == (1 if node else 110), step
        dropped = {act.node for act in acts if isinstance(act, Drop)}
        assert 0 not in dropped
        assert not node or dropped == {1}
        (told,) = failures(acts)
        assert ("looks after the ranks" in told) == bool(node)


def test_the_first_failure_decides() -> None:
    for status, code in ((3, 3), (-9, 137)):
        made = machine()
        acts = run(made, [*host(0)[:8], ended(0, 0, status), Event(Seen.CHILD_GONE, 1)])
        assert made.exit_code == code
        assert len(failures(acts)) == 1
        told = [act.to for act in acts if isinstance(act, Send) and act.kind is Kind.END]
        assert told == [0, 1]


@pytest.mark.parametrize("first", [True, False])
def test_paths_that_end_with_the_job_are_not_lost(first: bool) -> None:
    """A rank that is ended takes its connections along; before that it would be the network's."""
    lost = word(0, Kind.PATHS, b"[]", rank=1, peer=2, reason="ended without a word")
    failed = ended(3, 1, -9, stage="initialized")
    order = [lost, failed] if first else [failed, lost]
    acts = run(machine(), [*host(0)[:8], *order, Event(Seen.CHILD_GONE, 1)])
    told = [act.finding.name for act in acts if isinstance(act, Find)]
    assert ("path lost" in told) is first


def test_agents_that_do_not_end_are_not_waited_for() -> None:
    made = machine(RULES._replace(heartbeat_s=0.0))
    made.handle(ended(0, 0, 1), 5.0)
    assert made.phase is JobPhase.ENDING
    assert made.due == 5.0 + 1.0 + PATIENCE
    made.handle(Event(Seen.TIME), made.due)
    assert made.phase is JobPhase.CLOSING


def test_a_signal_ends_and_a_second_one_at_once() -> None:
    made = machine()
    acts = made.handle(Event(Seen.TOLD_TO_END, signal.SIGTERM), 1.0)
    assert [act.kind for act in acts] == [Kind.END, Kind.END]
    assert made.handle(Event(Seen.TOLD_TO_END, signal.SIGTERM), 1.0) == [Stop()]
    assert made.exit_code == 128 + signal.SIGTERM


def asked(acts: list[Act]) -> list[tuple[Kind, object]]:
    """What the first agent is told."""
    return [(act.kind, act.header) for act in acts if isinstance(act, Send) and act.to == 0]


def up() -> JobMachine:
    """Ranks 0 and 2 are in MPI."""
    made = machine(RULES._replace(heartbeat_s=0.0))
    for event in (*life(0, 0)[:3], *life(2, 1)[:3]):
        made.handle(event, 0.0)
    return made


def where(rank: int, **more: object) -> Event:
    at = {"file": "a.py", "line": 3, "function": "f", "text": ""}
    body = json.dumps({"at": at, "asleep": 0.0, **more}).encode()
    return word(rank // 2, Kind.WHERE, body, rank=rank, line="a.py:3 in f", waits="Recv")


QUESTION = [(Kind.REPORT, {}), (Kind.STAND, {"question": -1, "ranks": [0, 2]})]


def test_an_interrupt_asks_first() -> None:
    made = up()
    assert asked(made.handle(Event(Seen.TOLD_TO_END, signal.SIGINT), 1.0)) == QUESTION
    made.handle(where(0), 1.1)
    acts = made.handle(where(2), 1.2)
    assert isinstance(acts[0], Find)
    assert "ompy-run:   ranks 0, 2 are at a.py:3 in f\n" in acts[0].finding.text
    assert "proves nothing" in acts[0].finding.text
    assert (acts[0].finding.name, acts[0].finding.fields["proven"]) == ("interrupted", False)
    assert acts[1] == KeepAutopsy()
    assert made.phase is JobPhase.ENDING


def test_a_timeout_asks_first() -> None:
    made = machine(RULES._replace(heartbeat_s=0.0, timeout_s=5.0))
    for event in (*life(0, 0)[:3], *life(2, 1)[:3]):
        made.handle(event, 0.0)
    assert asked(made.handle(Event(Seen.TIME), 5.0)) == QUESTION
    assert made.phase is JobPhase.ASKING
    made.handle(where(0), 5.1)
    acts = made.handle(where(2), 5.2)
    assert acts[0].finding.name == "timed out"
    assert (made.phase, made.exit_code) == (JobPhase.ENDING, 110)


def test_who_sleeps_says_also_how_it_stands() -> None:
    made = up()
    made.handle(Event(Seen.TOLD_TO_END, signal.SIGINT), 1.0)
    made.handle(where(0, asleep=3.0), 1.1)
    made.handle(where(2), 1.1)
    assert made.phase is JobPhase.ASKING, "it has not said what it needs"
    made.handle(standing(0, 2, 0), 1.2)
    assert made.phase is JobPhase.ASKING, "that was no answer"
    acts = made.handle(standing(0, 2, -1), 1.2)
    assert "waiting for rank 2" in acts[0].finding.text
    assert made.phase is JobPhase.ENDING


def test_who_dies_of_being_asked_is_not_waited_for() -> None:
    made = up()
    made.handle(Event(Seen.TOLD_TO_END, signal.SIGINT), 1.0)
    made.handle(where(0), 1.1)
    acts = made.handle(ended(2, 1, 9), 1.2)
    (told,) = [act.finding for act in acts if isinstance(act, Find)]
    assert "rank 0 is at a.py:3" in told.text
    assert "2" not in told.text
    assert made.phase is JobPhase.ENDING


def test_sigusr1_tells_how_ranks_stand_and_they_go_on() -> None:
    """Those that have a use of their own for it get it, and are not told of."""
    made = up()
    assert asked(made.handle(Event(Seen.FORWARDED, signal.SIGUSR1), 1.0)) == QUESTION
    assert made.handle(Event(Seen.FORWARDED, signal.SIGUSR1), 1.0) == [], "they are asked already"
    made.handle(where(0), 1.1)
    acts = made.handle(where(2, own_signal=True), 1.2)
    assert "rank 0 is at a.py:3" in acts[0].finding.text
    assert "2" not in acts[0].finding.text
    assert asked(acts) == [(Kind.SIGNAL, {"signal": signal.SIGUSR1, "but": [0]})]
    assert made.phase is JobPhase.RUNNING
    assert made.due == RULES.timeout_s
    made.handle(Event(Seen.FORWARDED, signal.SIGUSR1), 2.0)
    made.handle(Event(Seen.TOLD_TO_END, signal.SIGINT), 2.1)
    made.handle(where(0), 2.1)
    acts = made.handle(where(2, own_signal=True), 2.2)
    assert "ranks 0, 2 are at" in acts[0].finding.text, "who presses Ctrl-C hears of all"
    assert made.phase is JobPhase.ENDING


def test_programs_that_all_have_a_use_for_sigusr1_get_it_alone() -> None:
    made = up()
    made.handle(Event(Seen.FORWARDED, signal.SIGUSR1), 1.0)
    made.handle(where(0, own_signal=True), 1.1)
    acts = made.handle(where(2, own_signal=True), 1.2)
    assert [act.header for act in acts] == [{"signal": signal.SIGUSR1}] * 2
    assert machine().handle(Event(Seen.FORWARDED, signal.SIGUSR1), 1.0)[0].kind is Kind.SIGNAL


def test_an_interrupt_does_not_ask_for_ever() -> None:
    made = up()
    made.handle(Event(Seen.TOLD_TO_END, signal.SIGINT), 1.0)
    assert made.due == 1.0 + ASK_PATIENCE
    acts = made.handle(Event(Seen.TIME), made.due)
    assert "ranks 0, 2 have not said where" in acts[0].finding.text
    assert made.phase is JobPhase.ENDING


def test_what_only_passes_through() -> None:
    made = machine()
    assert made.handle(word(1, Kind.OUTPUT, b"x\n", rank=3, stream=2), 0.0) == [
        Show(1, 3, 2, b"x\n")
    ]
    assert made.handle(word(0, Kind.INPUT_TAKEN, bytes=4), 0.0) == [TakeInput(4)]
    assert made.handle(word(0, Kind.INPUT_CLOSED), 0.0) == [TakeInput(0)]
    assert made.handle(Event(Seen.READ, body=b"a"), 0.0) == [Send(0, Kind.INPUT, {"to": 0}, b"a")]
    written = Event(Seen.WRITTEN, -1, None, {"node": 1, "bytes": 1 << 17})
    assert made.handle(written, 0.0) == [Send(1, Kind.CREDIT, {"bytes": 1 << 17, "to": 1})]
    acts = made.handle(Event(Seen.STOPPED, signal.SIGTSTP), 0.0)
    assert [act.to for act in acts[:-1]] == [0, 1]
    assert acts[-1] == Suspend(signal.SIGTSTP)


def test_other_hosts_hear_of_an_end() -> None:
    (act,) = machine().handle(ended(3, 1, 0), 1.0)
    assert isinstance(act, Send)
    assert (act.to, act.kind, act.body) == (0, Kind.DEPARTED, b"ended")
    assert act.header == {"rank": 3, "finalized": True, "dead": False}


def test_nothing_goes_on_without_a_rank_that_ends_with_the_job() -> None:
    made = machine()
    first = ended(2, 1, 3, stage="initialized")
    second = ended(1, 0, -15, stage="initialized", expendable=True)
    acts = run(made, [*life(0, 0)[:4], *life(1, 0)[:4], *life(2, 1)[:4], first, second])
    assert made.exit_code == 3
    assert "rank lost" not in [act.finding.name for act in acts if isinstance(act, Find)]


@pytest.mark.parametrize("status", [0, 3, -9])
def test_a_rank_that_others_can_do_without_ends_nothing(status: int) -> None:
    for seed in range(50):
        lives, dies = life(0, 0), life(1, 0)
        gone = ended(1, 0, status, stage="initialized", expendable=True)
        here = [*lives[:4], *dies[:4], word(0, Kind.FENCED), gone, *lives[4:]]
        made = machine()
        acts = run(made, mixed([*here, word(0, Kind.FINISHED, node=0)], host(1), seed))
        assert made.exit_code == 0
        assert not failures(acts)
        told = [act.finding.name for act in acts if isinstance(act, Find)]
        assert told.count("rank lost") == 1
        news = [act for act in acts if isinstance(act, Send) and act.kind is Kind.DEPARTED]
        assert {(act.to, act.header["rank"]) for act in news if act.header["rank"] < 2} == {
            (1, 0),
            (1, 1),
        }
        assert all(act.header["finalized"] for act in news)
        assert not any(isinstance(act, Send) and act.kind is Kind.END for act in acts)


SURVIVES = RULES._replace(survives=True)


def lost_host(rules: JobRules, *, after: int) -> tuple[JobMachine, list[Act]]:
    """A job whose second host goes after so many words of its agent, and the other ends well."""
    made = machine(rules)
    gone = [*host(1)[:after], Event(Seen.CHILD_GONE, 1)]
    return made, run(made, [*host(0)[:8], *gone, *host(0)[8:]])


def test_a_host_that_is_lost_takes_its_ranks_along_and_the_others_are_told() -> None:
    reached = [event.kind for event in host(1)].index(Kind.MODEX)
    made, acts = lost_host(SURVIVES, after=reached)
    assert made.exit_code == 0
    told = [act.header for act in acts if isinstance(act, Send) and act.kind is Kind.DEPARTED]
    assert [h for h in told if h["dead"]] == [
        {"rank": rank, "finalized": True, "dead": True} for rank in (2, 3)
    ]
    found = [act.finding.name for act in acts if isinstance(act, Find)]
    assert "host lost" in found
    assert not any(isinstance(act, Send) and act.kind is Kind.END for act in acts)
    for rules, after in ((RULES, reached), (SURVIVES, reached - 1)):  # one is not in MPI yet
        made, acts = lost_host(rules, after=after)
        assert made.exit_code == 1
        assert any(isinstance(act, Send) and act.kind is Kind.END for act in acts)


def test_without_a_survivor_the_job_fails() -> None:
    made = machine(SURVIVES)
    for rank in range(SIZE):
        started = life(rank, rank // 2)[:4]
        died = ended(rank, rank // 2, -9, stage="initialized", expendable=True)
        for event in (*started, died):
            made.handle(event, 1.0)
    assert made.exit_code == 128 + 9


@pytest.mark.parametrize(
    ("cuts", "ended_ranks"),
    [
        ([(0, 1)], [1]),
        ([(0, 3), (3, 0), (1, 3), (3, 2)], [3]),
        ([(2, 0), (2, 1), (2, 3)], [2]),
        ([(0, 1), (2, 3)], [3, 1]),
    ],
)
def test_of_ranks_that_do_not_reach_each_other_few_are_ended(
    cuts: list[tuple[int, int]], ended_ranks: list[int]
) -> None:
    for survives in (True, False):
        made = machine(RULES._replace(survives=survives))
        for rank in range(SIZE):
            for event in life(rank, rank // 2)[:4]:
                made.handle(event, 1.0)
        for rank, peer in cuts:
            made.handle(word(rank // 2, Kind.UNREACHABLE, rank=rank, peer=peer), 1.0)
        acts = made.handle(Event(Seen.TIME), 1.0 + CUT_PATIENCE)
        kills = [act for act in acts if isinstance(act, Send) and act.kind is Kind.KILL]
        assert [act.header["rank"] for act in kills] == (ended_ranks if survives else [])


def test_who_has_died_is_cut_off_from_nobody() -> None:
    made = machine(SURVIVES)
    for rank in range(SIZE):
        for event in life(rank, rank // 2)[:4]:
            made.handle(event, 1.0)
    made.handle(word(0, Kind.UNREACHABLE, rank=0, peer=1), 1.0)
    made.handle(ended(1, 0, -9, stage="initialized", expendable=True), 1.1)
    acts = made.handle(Event(Seen.TIME), 1.0 + CUT_PATIENCE)
    assert not any(isinstance(act, Send) and act.kind is Kind.KILL for act in acts)


def test_somebody_is_killed_when_it_is_time() -> None:
    made = machine(RULES._replace(kills=(Kill(1.0, 0, 1), Kill(2.0, 1, -1))))
    made.handle(Event(Seen.TIME), 4.0)
    for rank in range(SIZE):
        for event in life(rank, rank // 2)[:4]:
            made.handle(event, 5.0)
    kills = []
    for now in (5.9, 6.0, 6.9, 7.0, 8.0):
        for act in made.handle(Event(Seen.TIME), now):
            if isinstance(act, Send) and act.kind is Kind.KILL:
                kills.append((now, act.to, act.header))
    assert kills == [(6.0, 0, {"rank": 1, "to": 0}), (7.0, 1, {"rank": -1, "to": 1})]


def spawned(made: JobMachine, count: int = 2, host: str = "h1") -> list[Act]:
    app = {**App(("b",), count)._asdict(), "hosts": [host]}
    body = json.dumps({"apps": [app], "parents": [0]}).encode()
    return made.handle(word(0, Kind.ASK, body, rank=0, ask=1, what="spawn"), 1.0)


def test_a_later_world_is_told_to_all_and_its_root_is_answered() -> None:
    made = machine()
    acts = spawned(made)
    grow = [act for act in acts if isinstance(act, Send) and act.kind is Kind.GROW]
    assert [act.to for act in grow] == [0, 1]
    assert grow[0].header == {"first": 4, "nodes": [(1, 2)]}
    made.handle(word(1, Kind.STAGE, rank=4, stage="attached"), 1.0)
    (answer,) = made.handle(word(1, Kind.STAGE, rank=5, stage="attached"), 1.0)
    assert isinstance(answer, Send)
    assert (answer.to, answer.kind, answer.header["rank"]) == (0, Kind.ANSWER, 0)
    assert not answer.header["code"]
    (answer,) = made.handle(word(0, Kind.ASK, rank=0, ask=8, what="made", first=4, why=""), 1.0)
    assert isinstance(answer, Send)
    assert (answer.header["ask"], answer.header["code"]) == (8, 0)
    made.handle(word(1, Kind.EXITED, **{**WORDS[Kind.EXITED], "rank": 5, "status": 3}), 1.0)
    assert made.exit_code == 3
    assert made.verdict.failure is not None
    assert ("rank", "5 (rank 1 of 2 that rank 0 spawned)") in made.verdict.failure.facts


@pytest.mark.parametrize("how", ["EXITED", "LOST", "ABORTED"])
@pytest.mark.parametrize("here", [1, 2])
def test_a_rank_that_ends_before_its_world_is_made(how: str, here: int) -> None:
    """Its world is not to be, whatever its end was, and the job goes on."""
    made = machine()
    spawned(made)
    for rank in (4, 5)[:here]:
        made.handle(word(1, Kind.STAGE, rank=rank, stage="attached"), 1.0)
    told = {**WORDS[Kind[how]], "rank": 5}
    acts = made.handle(word(1, Kind[how], b"why", **told), 1.0)
    kinds = Counter(act.kind for act in acts if isinstance(act, Send))
    assert kinds[Kind.DISCARD] == 2
    if here == 2:  # the root has been told that they are here: it is told the rest when it asks
        acts = made.handle(word(0, Kind.ASK, rank=0, ask=8, what="made", first=4, why="?"), 1.0)
    (answer,) = [act for act in acts if isinstance(act, Send) and act.kind is Kind.ANSWER]
    assert answer.header["code"] == ERR_SPAWN
    assert answer.body.startswith(b"rank 1 of 2 could not be started: ")
    for rank in (4, 5):
        gone = {**WORDS[Kind.EXITED], "rank": rank, "status": -9, "expendable": True}
        assert made.handle(word(1, Kind.EXITED, **gone), 1.0) == [], "all know that"
    assert (made.phase, made.exit_code) == (JobPhase.RUNNING, 0)


def test_a_host_that_has_finished_is_waited_for_again() -> None:
    made = machine()
    made.handle(word(1, Kind.FINISHED, node=1, known=4), 0.0)
    spawned(made)
    made.handle(word(0, Kind.FINISHED, node=0, known=4), 1.0)
    assert made.phase is JobPhase.RUNNING, "h1 has ranks to start"
    made.handle(word(1, Kind.FINISHED, node=1, known=4), 1.0)
    assert made.phase is JobPhase.RUNNING, "that was said before it knew of them"
    made.handle(word(1, Kind.FINISHED, node=1, known=6), 1.0)
    assert made.phase is JobPhase.CLOSING


def test_a_world_that_cannot_be_started_is_no_end_of_the_job() -> None:
    made = machine()
    spawned(made)
    made.handle(word(1, Kind.STAGE, rank=4, stage="attached"), 1.0)
    acts = made.handle(word(1, Kind.UNSTARTED, b"no such program", rank=5, code=127), 1.0)
    discards = [act for act in acts if isinstance(act, Send) and act.kind is Kind.DISCARD]
    assert [act.header for act in discards] == [{"first": 4, "size": 2}] * 2
    (answer,) = [act for act in acts if isinstance(act, Send) and act.kind is Kind.ANSWER]
    assert answer.header["code"] == ERR_SPAWN
    for kind, header in (
        (Kind.STAGE, {"rank": 4, "stage": "initialized"}),  # were under way
        (Kind.ABORTED, {"rank": 4, "pid": 7, "code": 4}),
        (Kind.LOST, {"rank": 4, "pid": 7}),
        (Kind.EXITED, {**WORDS[Kind.EXITED], "rank": 4, "status": -9}),
    ):
        made.handle(word(1, kind, **header), 1.0)
    assert made.phase is JobPhase.RUNNING
    assert not made.exit_code


def test_a_job_that_ends_answers_nothing() -> None:
    made = brought_to(JobPhase.ENDING)
    assert spawned(made) == []


def standing(rank: int, other: int, question: int) -> Event:
    """A rank sleeps in a receive from another one."""
    need = {"what": "receive", "comm": 0, "name": "W", "ranks": [other], "every": True}
    need |= {"tag": 1, "sequence": 0, "size": 0, "number": 0, "text": f"rank {other}"}
    place = {"file": "a.py", "line": rank, "function": "f", "text": "comm.recv()"}
    wait = {"since": 1, "at": place, "needs": [need]}
    told = {"live": "", "waits": [wait], "tasks": [], "begun": {"0": 0}, "unmatched": []}
    told |= {"sent": {"0": []}, "received": {"0": []}}
    return word(0, Kind.STILL, json.dumps(told).encode(), rank=rank, question=question)


def test_ranks_that_never_go_on_end_the_job():
    """What they say by themselves makes the launcher ask, twice; then it is proven."""
    made = machine()
    assert made.handle(standing(0, 1, 0), 1.0) == []
    assert made.handle(standing(1, 0, 0), 1.0) == []
    made.handle(Event(Seen.TIME), 1.1)
    acts = made.handle(Event(Seen.TIME), 1.2)
    for question in (1, 2):
        asked = [act for act in acts if isinstance(act, Send) and act.kind is Kind.STAND]
        assert [act.header for act in asked] == [{"question": question, "ranks": [0, 1]}] * 2
        made.handle(standing(0, 1, question), 1.2)
        acts = made.handle(standing(1, 0, question), 1.2)
    assert made.phase is JobPhase.ENDING
    assert made.exit_code == DEADLOCK
    (found,) = [act.finding for act in acts if isinstance(act, Find)]
    assert found.name == "deadlock"
    assert found.fields["ranks"] == [0, 1]
    assert "a.py:1 in f: comm.recv()" in found.text


def test_a_rank_that_runs_is_waited_for():
    """It answers nothing, and is not accused."""
    made = machine(JobRules(grace_ms=1000))
    made.handle(standing(0, 1, 0), 1.0)
    made.handle(standing(1, 0, 0), 1.0)
    made.handle(Event(Seen.TIME), 1.1)
    made.handle(Event(Seen.TIME), 1.2)
    made.handle(standing(0, 1, 1), 1.2)
    for moment in (2.0, 4.0, 20.0):
        made.handle(Event(Seen.TIME), moment)
    assert made.phase is JobPhase.RUNNING


def test_a_second_signal_while_ranks_are_asked_where_they_are() -> None:
    """`timeout` sends its signal to the process and to its group."""
    made = machine()
    for rank in range(SIZE):
        made.handle(word(0, Kind.STAGE, rank=rank, stage="attached"), 1.0)
        made.handle(word(0, Kind.STAGE, rank=rank, stage="initialized"), 1.0)
    made.handle(Event(Seen.TOLD_TO_END, signal.SIGINT), 2.0)
    assert made.phase is JobPhase.ASKING
    acts = made.handle(Event(Seen.TOLD_TO_END, signal.SIGINT), 2.0)
    assert any(isinstance(act, Stop) for act in acts)
    assert made.due is None or made.phase is JobPhase.OVER
    assert made.exit_code == 130


def told(acts: list[Act]) -> list[tuple[int, Kind]]:
    news = {Kind.LEFT, Kind.DEPARTED, Kind.MODEX}
    return [(act.to, act.kind) for act in acts if isinstance(act, Send) and act.kind in news]


def test_ranks_that_leave_are_told_of_together_after_a_moment() -> None:
    made = machine()
    assert not told(made.handle(word(0, Kind.LEFT, pack_news([(0, True, [])])), 1.0))
    assert not told(made.handle(word(1, Kind.LEFT, pack_news([(2, True, [])])), 1.01))
    acts = made.handle(Event(Seen.TIME), 1.0 + COLLECTING)
    assert told(acts) == [(0, Kind.LEFT), (1, Kind.LEFT)]
    assert not told(made.handle(Event(Seen.TIME), 1.0 + 2 * COLLECTING))


def test_an_agent_that_alone_has_said_something_is_not_told_the_same() -> None:
    made = machine()
    made.handle(word(0, Kind.LEFT, pack_news([(0, True, [])])), 1.0)
    assert told(made.handle(Event(Seen.TIME), 1.0 + COLLECTING)) == [(1, Kind.LEFT)]


def test_who_leaves_is_told_of_before_an_end_that_is_news() -> None:
    made = machine()
    made.handle(word(0, Kind.LEFT, pack_news([(0, True, [])])), 1.0)
    acts = made.handle(ended(1, 0, 0), 1.001)
    assert told(acts) == [(1, Kind.LEFT), (1, Kind.DEPARTED)]


def test_what_is_new_of_a_host_goes_to_those_that_have_asked_for_it() -> None:
    made = machine()
    assert not told(made.handle(word(0, Kind.MODEX, bundle({0: b"x"})), 1.0))
    assert told(made.handle(word(1, Kind.FETCH, node=1, host=0), 1.1)) == [(1, Kind.MODEX)]
    assert told(made.handle(word(0, Kind.MODEX, bundle({1: b"y"})), 1.2)) == [(1, Kind.MODEX)]
