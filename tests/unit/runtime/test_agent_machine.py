"""An agent's machine: the tables of agents, relays and passive mode, and single steps."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import pytest
from ompy.data.errors import ERR_UNSUPPORTED_OPERATION
from ompy.runtime.agents.agent_tree import Branch, Tree
from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.modex import bundle, unbundle
from ompy.runtime.machines.acts import (
    PARENT,
    Act,
    CancelStep,
    Grow,
    Kill,
    KillRank,
    Look,
    Reap,
    Say,
    Send,
    Stop,
    Sweep,
    Terminate,
    ToRank,
    TurnAway,
)
from ompy.runtime.machines.agents.agent import (
    CAUSE_PATIENCE,
    RETRY,
    WRAPPER_GRACE,
    AgentMachine,
    Beat,
    HostMachine,
)
from ompy.runtime.machines.agents.agent_table import (
    PASSIVE,
    RELAY,
    STARTED_RANKS,
    AgentPhase,
    Table,
)
from ompy.runtime.machines.agents.joining import JoiningMachine, Step
from ompy.runtime.machines.agents.local_ranks import RankLife
from ompy.runtime.machines.agents.relaying import RelayMachine
from ompy.runtime.machines.children import Child
from ompy.runtime.machines.events import Event, Seen, WrongPhase
from ompy.runtime.machines.leave_news import COLLECTING, pack_news, unpack_news
from ompy.runtime.machines.stages import Stage

P = AgentPhase
START = {
    "heartbeat_ms": 100,
    "heartbeat_misses": 3,
    "agent_misses": 3,
    "start_timeout_ms": 5000,
    "grace_ms": 500,
}


def seen(what: Seen, who: int = 0, **header: object) -> Event:
    return Event(what, who, None, header)


def above(kind: Kind, body: bytes = b"", /, **header: object) -> Event:
    return Event(Seen.ABOVE, PARENT, kind, header, body)


def said(rank: int, kind: Kind, body: bytes = b"", /, **header: object) -> Event:
    return Event(Seen.RANK, rank, kind, {"call": 1, **header}, body)


def host_machine(*, committed: bool = True) -> HostMachine:
    """Two ranks; a fence has been passed by neither."""
    made = HostMachine(
        0, Beat(0.1, 3), [RankLife(0, 10), RankLife(1, 11)], [0, 0, 1, 1], several=True
    )
    made.handle(seen(Seen.BEGUN), 0.0)
    for rank in (0, 1):
        made.handle(seen(Seen.ATTACHED, rank, pid=20 + rank), 0.0)
        if committed:
            made.handle(said(rank, Kind.COMMIT), 0.0)
    return made


def host_in(phase: AgentPhase) -> HostMachine:
    made = host_machine()
    if phase in {P.ENDING, P.KILLING}:
        made.handle(above(Kind.END, grace_ms=500 if phase is P.ENDING else 0), 0.0)
    elif phase is P.FINISHED:
        made.handle(seen(Seen.REAPED, ended=True, left=False), 0.0)
    elif phase is P.OVER:
        made.handle(seen(Seen.PARENT_GONE), 0.0)
    assert made.phase is phase
    return made


def relay_in(phase: AgentPhase) -> RelayMachine:
    tree = Tree([Branch(2, 1, "h2", ("ssh",))], 1)
    children = [Child(1, 5, remote=False), Child(2, 6, remote=True)]
    made = RelayMachine(1, tree, children, b"key")
    made.handle(seen(Seen.BEGUN), 0.0)
    if phase is not P.READY:
        made.handle(above(Kind.START, **START), 0.0)
    if phase is P.SWEEPING:
        made.handle(seen(Seen.CHILD_GONE, 1), 0.0)
    elif phase is P.OVER:
        made.handle(seen(Seen.PARENT_GONE), 0.0)
    assert made.phase is phase
    return made


def hello(rank: int) -> dict[str, object]:
    return {
        "rank": rank,
        "local_rank": rank,
        "pid": 20 + rank,
        "parent": 3,
        "argv": ["a"],
        "cores": [0],
    }


JOB = json.dumps({"placements": [{"node": rank // 2} for rank in range(4)]}).encode()


def joining_in(phase: AgentPhase) -> JoiningMachine:
    made = JoiningMachine(Step("srun", 4, 2, "other", False, "here", watched=True, orphans=True))
    made.handle(seen(Seen.BEGUN), 0.0)
    events = {
        P.GATHERING: [seen(Seen.CAME, 0, **hello(0))],
        P.MEETING: [seen(Seen.CAME, 1, **hello(1))],
        P.WAITING: [seen(Seen.MET, leads=False)],
        P.RUNNING: [
            above(Kind.START, JOB, node=0, **START),
            *(seen(Seen.ATTACHED, rank, pid=20 + rank) for rank in (0, 1)),
        ],
        P.RELEASED: [above(Kind.FINISHED)],
    }
    for reached, way in events.items():
        if phase is P.ENDING and reached is P.RELEASED:
            way = [above(Kind.END, code=3)]
        if made.phase is not phase or made.phase is P.GATHERING:
            for event in way:
                made.handle(event, 0.0)
        if made.phase is phase:
            break
    if phase is P.OVER:
        for rank in (0, 1):
            made.handle(seen(Seen.EXITED, rank), 0.0)
    assert made.phase is phase, made.phase
    return made


HEADERS: dict[Kind, dict[str, object]] = {
    Kind.CREDIT: {"bytes": 1, "to": 2},
    Kind.INPUT: {"to": 2},
    Kind.INPUT_END: {"to": 2},
    Kind.SIGNAL: {"signal": signal.SIGTSTP},
    Kind.END: {"grace_ms": 500, "code": 1},
    Kind.DEPARTED: {"rank": 3, "finalized": False},
    Kind.START: {**START, "node": 1},
    Kind.GROW: {"first": 4, "nodes": [[0, 1], [1, 2]]},
    Kind.DISCARD: {"first": 4, "size": 3},
    Kind.KILL: {"rank": -1, "to": 2},
    Kind.MODEX: {"to": 2},
    Kind.ANSWER: {"rank": 1, "ask": 1, "code": 0, "to": 2},
    Kind.STAND: {"question": 1, "ranks": [0, 3]},
    Kind.STILL: {"question": 1},
    Kind.ASK: {"ask": 1, "what": "open"},
    Kind.EXITED: {
        "rank": 3,
        "status": 0,
        "stage": "started",
        "reason": "ended",
        "expendable": False,
        "known": False,
    },
    Kind.LOOKUP: {"rank": 3},
    Kind.LEAVING: {"told": []},
    Kind.EXPENDABLE: {"on": True},
    Kind.ABORT: {"code": 3},
}
BODIES = {Kind.START: JOB, Kind.MODEX: bundle({3: b"x"}), Kind.LEFT: pack_news([(3, True, None)])}
FACTS: dict[Seen, dict[str, object]] = {
    Seen.EXITED: {"status": 0},
    Seen.REAPED: {"ended": True, "left": True},
    Seen.OUTLOOK: {"ending": []},
    Seen.ATTACHED: {"pid": 20},
    Seen.FORKED: {"pid": 20},
    Seen.UNEXECUTABLE: {"code": 126},
    Seen.CAME: hello(0),
    Seen.MET: {"leads": False},
}


def every_event(who: int) -> list[Event]:
    words = {Seen.ABOVE, Seen.BELOW, Seen.RANK}
    events = [seen(what, who, **FACTS.get(what, {})) for what in set(Seen) - words]
    for kind in Kind:
        header = {"call": 1, **HEADERS.get(kind, {})}
        body = BODIES.get(kind, b"{}")
        events += [
            Event(what, PARENT if what is Seen.ABOVE else who, kind, header, body) for what in words
        ]
    return events


@pytest.mark.parametrize(
    ("table", "make", "who"),
    [(STARTED_RANKS, host_in, 0), (RELAY, relay_in, 2), (PASSIVE, joining_in, 0)],
    ids=["ranks", "relay", "passive"],
)
def test_all_pairs(table: Table, make: Callable[[AgentPhase], AgentMachine], who: int) -> None:
    """What cannot happen is an error that says so; all that can leads where the table says."""
    phases = {phase for phase, _, _ in table}
    assert {then for row in table.values() for then in row} == phases
    for phase in phases:
        for event in every_event(who):
            made = make(phase)
            if isinstance(made, HostMachine):
                begun(made, event)
            pair = phase, event.what, event.kind
            if pair in table:
                made.handle(event, 50.0)
                assert made.phase in table[pair], pair
            else:
                with pytest.raises(WrongPhase, match=f"that is {phase.value} cannot be told"):
                    made.handle(event, 50.0)


@pytest.mark.parametrize(
    ("make", "before", "after", "what"),
    [
        (host_in, P.RUNNING, P.ENDING, "those that are to end are killed"),
        (relay_in, P.PASSING, P.SWEEPING, "what an agent has left is ended"),
        (joining_in, P.WAITING, P.GATHERING, "all are here"),
        (joining_in, P.MEETING, P.RELEASED, "who has come is served or turned away"),
    ],
)
def test_what_cannot_be_is_noticed(
    make: Callable[[AgentPhase], AgentMachine], before: AgentPhase, after: AgentPhase, what: str
) -> None:
    """A machine that is where it does not belong says so after the next event."""
    made = make(before)
    made.phase = after
    with pytest.raises(AssertionError, match=what):
        made._check()


def begun(made: HostMachine, event: Event) -> None:
    """What has begun already begins once more: it is another rank, or the same from its start."""
    if event.what is Seen.ATTACHED:
        made._ranks[event.who].stage = Stage.STARTED
    elif event.what is Seen.FORKED:
        del made._ranks._ranks[event.who]


def kinds(acts: list[Act]) -> list[Kind]:
    return [act.kind for act in acts if isinstance(act, Send | ToRank)]


def test_an_abort_waits_for_its_cause() -> None:
    made = host_machine()
    acts = made.handle(said(0, Kind.ABORT, code=3), 1.0)
    assert [type(act) for act in acts] == [Reap, Look]
    assert not made.handle(seen(Seen.OUTLOOK, ending=[0, 1]), 1.0), "rank 1 is on its way out"
    acts = made.handle(seen(Seen.EXITED, 1, status=-11), 1.1)
    assert kinds(acts) == [Kind.EXITED]
    assert [type(act) for act in made.handle(seen(Seen.REAPED, ended=True, left=True), 1.1)] == [
        Look
    ]
    assert kinds(made.handle(seen(Seen.OUTLOOK, ending=[0]), 1.1)) == [Kind.ABORTED]
    assert not made.handle(seen(Seen.OUTLOOK, ending=[]), 1.2), "it is told once"


def test_an_abort_is_told_at_the_latest_after_a_second() -> None:
    made = host_machine()
    made.handle(said(0, Kind.ABORT, code=3), 1.0)
    made.handle(seen(Seen.OUTLOOK, ending=[1]), 1.0)
    assert Kind.ABORTED in kinds(made.handle(seen(Seen.TIME), 1.0 + CAUSE_PATIENCE))


def test_what_sigkill_leaves_is_killed_again() -> None:
    made = host_machine()
    assert isinstance(made.handle(above(Kind.END, grace_ms=500), 1.0)[0], Terminate)
    for moment in (1.5, 1.5 + RETRY, 1.5 + 3 * RETRY):
        acts = made.handle(seen(Seen.TIME), moment)
        assert any(isinstance(act, Kill) for act in acts), moment


def test_a_wrapper_may_outlive_its_process_for_a_second() -> None:
    made = host_machine()
    made.handle(seen(Seen.CLIENT_GONE, 1), 1.0)
    assert Kind.LOST in kinds(made.handle(seen(Seen.TIME), 1.0 + WRAPPER_GRACE))
    made = host_machine()
    made.handle(seen(Seen.CLIENT_GONE, 1), 1.0)
    made.handle(seen(Seen.EXITED, 1, status=0), 1.1)
    assert Kind.LOST not in kinds(made.handle(seen(Seen.TIME), 1.0 + WRAPPER_GRACE))


def test_ranks_that_leave_are_told_of_together() -> None:
    made = host_machine()
    made.handle(said(0, Kind.LEAVING, told=[]), 1.0)
    made.handle(said(0, Kind.FINALIZED), 1.01)
    acts = made.handle(seen(Seen.TIME), 1.0 + COLLECTING)
    told = [(act.rank, unpack_news(act.body)) for act in acts if isinstance(act, ToRank)]
    assert told == [(1, [(0, True, True)])], "only those that have not finalized"
    assert Kind.LEFT in kinds(acts)


def news_up(acts: list[Act]) -> list[tuple[Kind, object]]:
    """What the launcher is told that is news for other hosts."""
    news = {Kind.MODEX, Kind.LEFT, Kind.EXITED, Kind.FENCED}
    return [
        (act.kind, unbundle(act.body) if act.kind is Kind.MODEX else act.header.get("known"))
        for act in acts
        if isinstance(act, Send) and act.to == PARENT and act.kind in news
    ]


def test_what_the_ranks_of_a_host_commit_is_told_in_one_word() -> None:
    made = host_machine(committed=False)
    assert not news_up(made.handle(said(0, Kind.COMMIT, b"a", call=1), 1.0))
    acts = made.handle(said(1, Kind.COMMIT, b"b", call=1), 1.001)
    assert news_up(acts) == [(Kind.MODEX, {0: b"a", 1: b"b"})], "all have: nobody is waited for"
    acts = made.handle(said(0, Kind.COMMIT, b"again", call=2), 1.002)
    assert news_up(acts) == [(Kind.MODEX, {0: b"again"})]


def test_a_commit_waits_a_moment_for_the_others_of_its_host() -> None:
    made = host_machine(committed=False)
    made.handle(said(0, Kind.COMMIT, b"a", call=1), 1.0)
    assert not news_up(made.handle(seen(Seen.TIME), 1.0 + COLLECTING / 2))
    acts = made.handle(seen(Seen.TIME), 1.0 + COLLECTING)
    assert news_up(acts) == [(Kind.MODEX, {0: b"a"})]


def test_what_was_committed_comes_before_what_others_conclude_from_it() -> None:
    made = host_machine(committed=False)
    made.handle(said(0, Kind.COMMIT, b"a", call=1), 1.0)
    acts = made.handle(seen(Seen.EXITED, 0, status=3), 1.001)
    assert news_up(acts) == [(Kind.MODEX, {0: b"a"}), (Kind.EXITED, False)]


def test_that_a_process_ends_is_no_news_when_it_was_done() -> None:
    made = host_machine(committed=False)
    for rank in (0, 1):
        made.handle(said(rank, Kind.COMMIT, b"a", call=1), 0.6)
        made.handle(said(rank, Kind.LEAVING, told=[]), 1.0)
        made.handle(said(rank, Kind.FINALIZED), 1.0)
    acts = made.handle(seen(Seen.EXITED, 0, status=0), 1.001)
    assert news_up(acts) == [(Kind.LEFT, None), (Kind.EXITED, True)], "the news go first"
    acts = made.handle(seen(Seen.EXITED, 1, status=5), 1.002)
    assert news_up(acts) == [(Kind.EXITED, False)], "others hear of how it failed"


def fetched(acts: list[Act]) -> list[int]:
    return [act.header["host"] for act in acts if isinstance(act, Send) and act.kind is Kind.FETCH]


def replies(acts: list[Act]) -> list[tuple[int, Kind, bytes]]:
    return [(act.rank, act.kind, act.body) for act in acts if isinstance(act, ToRank)]


def test_what_another_host_published_is_fetched_when_a_rank_looks_for_it() -> None:
    made = host_machine()
    assert fetched(made.handle(said(0, Kind.LOOKUP, call=1, rank=2), 1.0)) == [1]
    assert not fetched(made.handle(said(1, Kind.LOOKUP, call=1, rank=2), 1.0)), "it is on its way"
    come = Event(Seen.ABOVE, PARENT, Kind.MODEX, {"host": 1}, bundle({2: b"two"}))
    acts = made.handle(come, 1.1)
    assert replies(acts) == [(0, Kind.REPLY, b"two"), (1, Kind.REPLY, b"two")]
    acts = made.handle(said(0, Kind.LOOKUP, call=2, rank=3), 1.2)
    assert not acts, "the launcher tells what is new of that host, without being asked again"
    acts = made.handle(Event(Seen.ABOVE, PARENT, Kind.MODEX, {}, bundle({3: b"three"})), 1.3)
    assert replies(acts) == [(0, Kind.REPLY, b"three")]


@pytest.mark.parametrize("told_first", [True, False])
def test_of_a_rank_that_ended_all_is_fetched_before_it_is_given_up(told_first: bool) -> None:
    """It may have published what it had before it ended, and others may still need it."""
    made = host_machine()
    gone = [above(Kind.DEPARTED, rank=rank, finalized=True) for rank in (2, 3)]
    events = [said(0, Kind.LOOKUP, call=1, rank=2), said(1, Kind.LOOKUP, call=1, rank=3)]
    acts = [made.handle(event, 1.0) for event in [*gone, *events][:: 1 if told_first else -1]]
    assert not [kind for each in acts for _, kind, _ in replies(each) if kind is not Kind.DEPARTED]
    come = Event(Seen.ABOVE, PARENT, Kind.MODEX, {"host": 1}, bundle({2: b"two"}))
    found = replies(made.handle(come, 1.1))
    assert [one[:2] for one in found] == [(0, Kind.REPLY), (1, Kind.REFUSED)]
    assert replies(made.handle(said(0, Kind.LOOKUP, call=2, rank=3), 1.2))[0][1] is Kind.REFUSED


def test_news_of_all_hosts_say_nothing_new_of_the_own_ranks() -> None:
    made = host_machine()
    own, other = (0, True, []), (3, True, [])
    come = Event(Seen.ABOVE, PARENT, Kind.LEFT, {}, pack_news([own, other]))
    told = [unpack_news(act.body) for act in made.handle(come, 1.0) if isinstance(act, ToRank)]
    assert told == [[(3, True, True)], [(3, True, True)]]
    assert not made.handle(above(Kind.DEPARTED, rank=1, finalized=True), 1.0)


def test_a_relay_passes_on_in_one_word_that_ranks_of_several_hosts_leave() -> None:
    made = relay_in(P.PASSING)
    for child, rank in ((1, 2), (2, 4)):
        body = pack_news([(rank, True, [])])
        assert not made.handle(Event(Seen.BELOW, child, Kind.LEFT, {}, body), 1.0)
    acts = made.handle(seen(Seen.TIME), 1.0 + COLLECTING)
    said_up = [act for act in acts if isinstance(act, Send) and act.kind is Kind.LEFT]
    assert [(act.to, len(unpack_news(act.body))) for act in said_up] == [(PARENT, 2)]


def test_that_a_rank_has_left_comes_before_its_end_through_a_relay() -> None:
    made = relay_in(P.PASSING)
    made.handle(Event(Seen.BELOW, 2, Kind.LEFT, {}, pack_news([(3, True, [])])), 1.0)
    ended = Event(Seen.BELOW, 2, Kind.EXITED, HEADERS[Kind.EXITED], b"")
    assert kinds(made.handle(ended, 1.001)) == [Kind.LEFT, Kind.EXITED]
    assert Kind.LEFT not in kinds(made.handle(seen(Seen.TIME), 1.0 + COLLECTING))


def test_a_failed_rank_is_told_of_when_all_are_told_to_end() -> None:
    made = host_machine()
    assert kinds(made.handle(seen(Seen.EXITED, 0, status=1), 1.0)) == [Kind.EXITED]
    acts = made.handle(above(Kind.END, grace_ms=500), 1.1)
    assert [(act.rank, act.kind) for act in acts if isinstance(act, ToRank)] == [(1, Kind.DEPARTED)]


def test_a_rank_that_others_can_do_without_is_told_of_at_once() -> None:
    made = host_machine()
    made.handle(said(0, Kind.EXPENDABLE, on=True), 1.0)
    acts = made.handle(seen(Seen.EXITED, 0, status=-9), 1.0)
    told = {act.kind: act.header for act in acts if isinstance(act, Send | ToRank)}
    assert told[Kind.EXITED]["expendable"]
    assert [(act.rank, act.kind) for act in acts if isinstance(act, ToRank)] == [(1, Kind.DEPARTED)]
    assert told[Kind.DEPARTED] == {"rank": 0, "dead": True}
    made = host_machine()
    for on in (True, False):
        made.handle(said(0, Kind.EXPENDABLE, on=on), 1.0)
    assert kinds(made.handle(seen(Seen.EXITED, 0, status=-9), 1.0)) == [Kind.EXITED]


def test_who_comes_later_hears_of_the_dead() -> None:
    made = host_machine()
    made.handle(above(Kind.GROW, first=4, nodes=[[0, 1]]), 1.0)
    made.handle(seen(Seen.FORKED, 4, pid=14), 1.0)
    for dead in (False, True):
        made.handle(above(Kind.DEPARTED, b"was", rank=2 + dead, finalized=True, dead=dead), 1.0)
    acts = made.handle(seen(Seen.ATTACHED, 4, pid=24), 1.0)
    told = [act.header for act in acts if isinstance(act, ToRank)]
    assert told == [{"rank": 2, "dead": False}, {"rank": 3, "dead": True}]


def test_a_rank_or_the_host_is_killed_on_purpose() -> None:
    made = host_machine()
    assert made.handle(above(Kind.KILL, rank=1), 1.0) == [KillRank(1)]
    assert made.handle(above(Kind.KILL, rank=-1), 1.0) == [KillRank(0), KillRank(1), Stop()]
    assert made.phase is P.OVER


def test_turns_are_counted_not_time() -> None:
    """Who has been stopped for a while does not take the launcher for dead."""
    made = host_machine()
    made.handle(seen(Seen.TIME), 100.0)
    assert made.phase is P.RUNNING
    for turn in range(1, 4):
        made.handle(seen(Seen.TIME), 100.0 + turn)
    assert made.phase is P.OVER


def test_a_launcher_that_is_stopped_is_not_missed() -> None:
    made = host_machine()
    made.handle(above(Kind.SIGNAL, signal=signal.SIGTSTP), 1.0)
    for turn in range(20):
        made.handle(seen(Seen.TIME), 2.0 + turn)
    made.handle(above(Kind.SIGNAL, signal=signal.SIGCONT), 30.0)
    for turn in range(3):
        made.handle(seen(Seen.TIME), 31.0 + turn)
    assert made.phase is P.RUNNING
    made.handle(seen(Seen.TIME), 35.0)
    assert made.phase is P.OVER


def test_a_relay_sweeps_what_its_dead_agent_has_left() -> None:
    made = relay_in(P.PASSING)
    acts = made.handle(seen(Seen.CHILD_GONE, 1), 1.0)
    assert acts[0] == Send(PARENT, Kind.AGENT_GONE, {"node": 1, "pid": 5, "alone": True}, b"")
    assert isinstance(acts[1], Sweep)
    assert any(isinstance(act, Sweep) for act in made.handle(seen(Seen.TIME), 1.0 + RETRY))
    acts = relay_in(P.PASSING).handle(seen(Seen.CHILD_GONE, 2), 1.0)
    assert [(act.kind, act.header["alone"]) for act in acts] == [(Kind.AGENT_GONE, False)]


def test_a_relay_gives_the_key_to_its_own_agent_only() -> None:
    made = relay_in(P.READY)
    acts = made.handle(above(Kind.START, b"job", **START), 0.0)
    assert [(act.to, act.body) for act in acts] == [(1, b"keyjob"), (2, b"job")]
    assert [act.header["heartbeat_ms"] for act in acts] == [0, 100]


def test_a_rank_that_comes_twice_or_late_is_turned_away() -> None:
    made = joining_in(P.GATHERING)
    (act,) = made.handle(seen(Seen.CAME, 7, **hello(0)), 0.0)
    assert isinstance(act, TurnAway)
    assert (act.who, act.code) == (7, 1)
    assert "another process already" in act.text
    (act,) = joining_in(P.RELEASED).handle(seen(Seen.CAME, 7, **hello(0)), 0.0)
    assert isinstance(act, TurnAway)
    assert act.code is None, "it finds the agent of its own job"


def test_finalize_waits_for_the_whole_job() -> None:
    made = joining_in(P.RUNNING)
    assert Kind.REPLY not in kinds(made.handle(said(0, Kind.FINALIZED), 0.0))
    acts = made.handle(above(Kind.FINISHED), 0.0)
    assert [(act.rank, act.kind) for act in acts] == [(0, Kind.REPLY)]


def test_an_agent_without_ranks_leaves_when_all_are_released() -> None:
    """Its processes may have gone before the word came."""
    made = joining_in(P.RUNNING)
    for rank in (0, 1):
        made.handle(said(rank, Kind.FINALIZED), 0.0)
        made.handle(seen(Seen.EXITED, rank), 0.0)
    acts = made.handle(above(Kind.FINISHED), 0.0)
    assert isinstance(acts[-1], Stop)


def test_tasks_that_never_came_end_the_step() -> None:
    made = joining_in(P.GATHERING)
    acts = made.handle(Event(Seen.MISSING, body=b"a task ended"), 1.0)
    assert [type(act) for act in acts] == [Say, CancelStep, TurnAway, Terminate]


def grown(**more: object) -> Event:
    return above(Kind.GROW, b"{}", first=4, nodes=[[0, 2], [1, 1]], **more)


def starts_of(acts: list[Act]) -> list[tuple[int, ...]]:
    return [act.start for act in acts if isinstance(act, Grow)]


def told_up(acts: list[Act]) -> list[tuple[Kind, object]]:
    return [
        (act.kind, act.header.get("rank")) for act in acts if isinstance(act, Send) and act.to < 0
    ]


def test_ranks_of_a_later_world_are_started_and_are_ranks_like_others() -> None:
    made = host_in(P.RUNNING)
    assert starts_of(made.handle(grown(), 1.0)) == [(4, 5)]
    assert told_up(made.handle(seen(Seen.FORKED, 4, pid=40), 1.0)) == [(Kind.STARTED, 4)]
    acts = made.handle(Event(Seen.UNFORKED, 5, body=b"no process"), 1.0)
    assert told_up(acts) == [(Kind.UNSTARTED, 5)]
    made.handle(seen(Seen.ATTACHED, 4, pid=50), 1.0)
    acts = made.handle(Event(Seen.RANK, 4, Kind.LOOKUP, {"call": 1, "rank": 0}), 1.0)
    assert [(act.rank, act.kind) for act in acts if isinstance(act, ToRank)] == [(4, Kind.REPLY)]
    acts = made.handle(Event(Seen.RANK, 4, Kind.LOOKUP, {"call": 1, "rank": 7}), 1.0)
    assert [(act.rank, act.kind) for act in acts if isinstance(act, ToRank)] == [(4, Kind.REFUSED)]
    (told,) = [act for act in made.handle(seen(Seen.EXITED, 4, status=3), 1.0) if send_up(act)]
    assert isinstance(told, Send)
    assert (told.header["status"], told.header["expendable"]) == (3, False)


def send_up(act: Act) -> bool:
    return isinstance(act, Send) and act.to == PARENT and act.kind is Kind.EXITED


def test_an_agent_that_has_finished_begins_anew() -> None:
    made = host_in(P.FINISHED)
    assert starts_of(made.handle(above(Kind.GROW, b"{}", first=4, nodes=[[1, 2]]), 1.0)) == []
    assert made.phase is P.FINISHED
    assert starts_of(made.handle(above(Kind.GROW, b"{}", first=6, nodes=[[0, 1]]), 1.0)) == [(6,)]
    assert made.phase is P.RUNNING
    made.handle(seen(Seen.FORKED, 6, pid=40), 1.0)
    made.handle(seen(Seen.EXITED, 6, status=0), 1.0)
    acts = made.handle(seen(Seen.REAPED, ended=True, left=False), 1.0)
    (finished,) = [act for act in acts if isinstance(act, Send) and act.kind is Kind.FINISHED]
    assert finished.header == {"node": 0, "known": 7}


@pytest.mark.parametrize("phase", [P.ENDING, P.KILLING])
def test_where_all_is_being_ended_nothing_begins(phase: AgentPhase) -> None:
    made = host_in(phase)
    acts = made.handle(grown(), 1.0)
    assert starts_of(acts) == []
    assert told_up(acts) == [(Kind.UNSTARTED, 4), (Kind.UNSTARTED, 5)]


def test_a_world_that_does_not_come_about_ends_without_a_word() -> None:
    made = host_in(P.RUNNING)
    made.handle(grown(), 1.0)
    for rank in (4, 5):
        made.handle(seen(Seen.FORKED, rank, pid=40 + rank), 1.0)
    acts = made.handle(seen(Seen.UNEXECUTABLE, 4, code=127), 1.0)
    assert told_up(acts) == [(Kind.UNSTARTED, 4)]
    (told,) = [act for act in made.handle(seen(Seen.EXITED, 4, status=127), 1.0) if send_up(act)]
    assert isinstance(told, Send)
    assert told.header["expendable"]
    assert told.header["stage"] == "finalized"
    acts = made.handle(above(Kind.DISCARD, first=4, size=3), 1.0)
    assert [act.rank for act in acts if isinstance(act, KillRank)] == [5]
    acts = made.handle(above(Kind.DISCARD, first=0, size=2), 1.0)
    assert acts == [], "those that the job begins with are never discarded"


def test_under_another_launcher_nothing_is_asked() -> None:
    made = joining_in(P.RUNNING)
    (answer,) = made.handle(said(0, Kind.ASK, ask=3, what="spawn"), 1.0)
    assert isinstance(answer, ToRank)
    assert (answer.kind, answer.header["ask"]) == (Kind.ANSWER, 3)
    assert answer.header["code"] == ERR_UNSUPPORTED_OPERATION
    assert b"srun has started this job" in answer.body
