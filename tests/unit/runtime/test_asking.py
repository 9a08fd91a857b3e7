"""What ranks ask of the launcher: worlds that come later, ports, names."""

from __future__ import annotations

import json

import pytest
from ompy.data.errors import ERR_NAME, ERR_PORT, ERR_SERVICE, ERR_SPAWN
from ompy.frameworks.job import FIRST_BRIDGE, LAST_BRIDGE, App, Job, Placement
from ompy.runtime.machines.launcher.asking import (
    Answer,
    Asked,
    Discarded,
    Growth,
    Reply,
    packed_world,
    runs_of,
    widened,
)


def job(hosts: int = 2, per_host: int = 1) -> Job:
    size = hosts * per_host
    places = tuple(Placement(rank, 0, rank // per_host, rank % per_host) for rank in range(size))
    names = tuple(f"h{node}" for node in range(hosts))
    return Job("0" * 16, (App(("a",), size),), names, places)


def spawn(asked: Asked, *counts: int, hosts: tuple[str, ...] = (), rank: int = 0) -> list[Reply]:
    apps = [{**App((f"b{count}",), count)._asdict(), "hosts": list(hosts)} for count in counts]
    body = json.dumps({"apps": apps, "parents": [0, 1]}).encode()
    return asked.heard(rank, {"ask": 7, "what": "spawn"}, body)


def answer_of(replies: list[Reply]) -> Answer:
    (answer,) = (reply for reply in replies if isinstance(reply, Answer))
    return answer


def test_a_world_goes_on_with_the_jobs_numbers() -> None:
    asked = Asked(job())
    (growth,) = spawn(asked, 2, 1)
    assert isinstance(growth, Growth)
    assert growth.world == (2, 3, 1, (0, 1), 0, FIRST_BRIDGE)
    assert growth.job is asked.job
    assert [place[:3] for place in asked.job.placements[2:]] == [(2, 1, 0), (3, 1, 1), (4, 2, 0)]
    assert [asked.job.world_of(rank).first for rank in range(5)] == [0, 0, 2, 2, 2]
    assert asked.job.apps_of(growth.world) == asked.job.apps[1:]
    assert asked.job.apps_of(asked.job.worlds[0]) == asked.job.apps[:1]
    (second,) = spawn(asked, 1)
    assert isinstance(second, Growth)
    assert second.world[:3] == (5, 1, 3)
    assert asked.job.apps_of(growth.world) == asked.job.apps[1:3]


def test_agents_widen_their_job_alike() -> None:
    asked, agents = Asked(job()), job()
    for counts in ((2, 1), (3,)):
        (growth,) = spawn(asked, *counts)
        assert isinstance(growth, Growth)
        agents = widened(agents, packed_world(growth.job, growth.world))
        assert agents == asked.job
        again = Job.from_dict(json.loads(agents.packed()))
        assert again._replace(faults=(), mca=agents.mca) == agents


def test_who_asked_is_answered_when_all_have_come() -> None:
    asked = Asked(job())
    spawn(asked, 2, rank=1)
    assert asked.attached(3) == []
    assert asked.attached(0) == [], "a rank of the first world"
    answer = answer_of(asked.attached(2))
    assert answer[:3] == (1, 7, 0)
    assert json.loads(answer.body) == {"first": 2, "size": 2, "bridge": FIRST_BRIDGE}
    assert asked.attached(2) == []


def test_one_that_cannot_be_started_is_the_end_of_its_world() -> None:
    asked = Asked(job())
    spawn(asked, 3)
    asked.attached(2)
    replies = asked.unstarted(4, "no such program")
    assert replies is not None
    discarded, answer = replies
    assert isinstance(discarded, Discarded)
    assert discarded.world[:2] == (2, 3)
    assert isinstance(answer, Answer)
    assert answer[:3] == (0, 7, ERR_SPAWN)
    assert answer.body == b"rank 2 of 3 could not be started: no such program"
    assert asked.unstarted(3, "no such program") == [], "that is known"
    assert asked.attached(3) == []
    assert asked.unstarted(1, "no process") is None, "of the first world it ends the job"


def made(asked: Asked, first: int, why: str = "") -> list[Reply]:
    return asked.heard(0, {"ask": 8, "what": "made", "first": first, "why": why}, b"")


def test_a_rank_that_ends_is_the_end_of_its_world_until_that_is_made() -> None:
    asked = Asked(job())
    spawn(asked, 2)
    assert asked.is_being_made(3)
    asked.attached(2)
    replies = asked.ended(2, "was killed")
    assert replies is not None
    discarded, answer = replies
    assert isinstance(discarded, Discarded)
    assert answer == (0, 7, ERR_SPAWN, b"rank 0 of 2 could not be started: was killed")
    assert asked.ended(3, "was killed") is None, "that is known"
    assert not asked.is_being_made(3)


def test_a_rank_that_ends_while_its_parents_meet_it() -> None:
    """The root has been answered: it hears of it when it says how that went."""
    asked = Asked(job())
    spawn(asked, 1)
    asked.attached(2)
    replies = asked.ended(2, "was killed")
    assert replies is not None
    assert [type(reply) for reply in replies] == [Discarded]
    assert asked.ended(2, "was killed") is None
    told = answer_of(made(asked, 2, "it has gone"))
    assert told == (0, 8, ERR_SPAWN, b"rank 0 of 1 could not be started: was killed")


def test_once_a_world_is_made_its_ranks_are_as_all_others() -> None:
    asked = Asked(job())
    spawn(asked, 1)
    asked.attached(2)
    assert made(asked, 2) == [Answer(0, 8, 0, b"")]
    assert asked.ended(2, "was killed") is None
    assert not asked.is_being_made(2)


def test_a_world_that_its_parents_cannot_reach_is_not_to_be() -> None:
    asked = Asked(job())
    spawn(asked, 1)
    asked.attached(2)
    discarded, answer = made(asked, 2, "no path")
    assert isinstance(discarded, Discarded)
    assert answer == (0, 8, ERR_SPAWN, b"they cannot be reached: no path")


@pytest.mark.parametrize("here", [False, True])
def test_who_asked_for_a_world_ends_before_that_is_made(here: bool) -> None:
    asked = Asked(job())
    spawn(asked, 1, rank=1)
    if here:
        asked.attached(2)
    (discarded,) = asked.gone(1)
    assert isinstance(discarded, Discarded)
    assert asked.gone(1) == []


@pytest.mark.parametrize("here", [False, True])
def test_a_host_is_lost_on_which_ranks_of_two_worlds_were_to_be(here: bool) -> None:
    asked = Asked(job())
    for _ in range(2):
        spawn(asked, 2)
    if here:
        for rank in range(2, 6):
            asked.attached(rank)
    lost = [reply for reply in asked.lose_hosts([1]) if isinstance(reply, Discarded)]
    assert [reply.world.first for reply in lost] == [2, 4]
    assert asked.lose_hosts([1]) == []
    for first in (2, 4) if here else ():
        assert answer_of(made(asked, first, "?")).code == ERR_SPAWN


def test_which_ranks_the_job_can_do_without() -> None:
    asked = Asked(job())
    apps = [{**App(("b",), 2)._asdict(), "hosts": [], "expendable": free} for free in (False, True)]
    body = json.dumps({"apps": apps, "parents": [0]}).encode()
    (growth,) = asked.heard(0, {"ask": 7, "what": "spawn"}, body)
    assert isinstance(growth, Growth)
    assert growth.expendable == (4, 5)


@pytest.mark.parametrize(
    ("hosts", "nodes"),
    [((), [0, 1, 2, 0]), (("h1",), [1, 1, 1, 1]), (("h2", "localhost"), [2, 0, 2, 0])],
)
def test_where_processes_go(hosts: tuple[str, ...], nodes: list[int]) -> None:
    asked = Asked(job(3))
    spawn(asked, 4, hosts=hosts)
    assert [place.node for place in asked.job.placements[3:]] == nodes
    assert [place.local_rank for place in asked.job.placements if place.node == nodes[0]] == list(
        range(1 + nodes.count(nodes[0]))
    )


def test_a_host_that_the_job_does_not_have() -> None:
    answer = answer_of(spawn(Asked(job()), 1, hosts=("h0", "elsewhere")))
    assert answer.code == ERR_SPAWN
    assert b"host 'elsewhere' is none of this job's, which are h0, h1" in answer.body


def test_bridges_are_taken_in_turn() -> None:
    asked = Asked(job())
    seen = [asked._bridge() for _ in range(LAST_BRIDGE - FIRST_BRIDGE + 2)]
    assert seen[0] == seen[-1] == FIRST_BRIDGE
    assert len(set(seen)) == len(seen) - 1
    assert max(seen) == LAST_BRIDGE


def named(asked: Asked, rank: int, what: str, **header: str) -> Answer:
    return answer_of(asked.heard(rank, {"ask": 1, "what": what, **header}, b""))


def meet(asked: Asked, rank: int, what: str, port: str, *group: int) -> list[Reply]:
    body = json.dumps(group or [rank]).encode()
    return asked.heard(rank, {"ask": 1, "what": what, "port": port}, body)


def test_who_accepts_and_who_connects_are_paired_in_order() -> None:
    asked = Asked(job(4))
    port = named(asked, 0, "open").body.decode()
    assert meet(asked, 0, "accept", port, 0, 1) == []
    assert meet(asked, 1, "accept", port) == []
    for index, rank in enumerate((2, 3)):
        ours, theirs = meet(asked, rank, "connect", port)
        assert isinstance(ours, Answer)
        assert isinstance(theirs, Answer)
        assert (ours.rank, theirs.rank) == (rank, index)
        told = json.loads(ours.body)
        assert told["ranks"] == ([0, 1], [1])[index]
        assert told["root"] == index
        assert json.loads(theirs.body) == {"ranks": [rank], "root": rank, "bridge": told["bridge"]}


def test_a_port_that_is_closed_while_somebody_waits() -> None:
    asked = Asked(job(4))
    port = named(asked, 0, "open").body.decode()
    meet(asked, 1, "connect", port)
    waiting, closed = asked.heard(0, {"ask": 2, "what": "close", "port": port}, b"")
    assert isinstance(waiting, Answer)
    assert (waiting.rank, waiting.code) == (1, ERR_PORT)
    assert closed == Answer(0, 2, 0, b"")
    for what in ("accept", "connect"):
        assert answer_of(meet(asked, 1, what, port)).code == ERR_PORT
    assert b"no port of this job" in answer_of(meet(asked, 1, "connect", "ompy:ff:1")).body


def test_who_connects_may_withdraw_until_somebody_accepts() -> None:
    """The launcher decides which was first: both sides hear of each other, or neither."""
    asked = Asked(job(4))
    port = named(asked, 0, "open").body.decode()
    meet(asked, 1, "connect", port)
    meet(asked, 2, "connect", port)
    withdraw = {"ask": 2, "what": "withdraw", "port": port, "of": 1}
    waiting, done = asked.heard(1, withdraw, b"")
    assert isinstance(waiting, Answer)
    assert (waiting.rank, waiting.ask, waiting.code) == (1, 1, ERR_PORT)
    assert done == Answer(1, 2, 0, b"")
    ours, theirs = meet(asked, 0, "accept", port)
    assert isinstance(ours, Answer)
    assert isinstance(theirs, Answer)
    assert (ours.rank, theirs.rank) == (0, 2), "the next one in the queue"
    assert asked.heard(2, withdraw, b"") == [Answer(2, 2, 0, b"")], "it is too late"
    named(asked, 0, "close", port=port)
    assert asked.heard(3, withdraw, b"") == [Answer(3, 2, 0, b"")], "the port has gone"


def test_names() -> None:
    asked = Asked(job(3))
    assert named(asked, 1, "lookup", service="s").code == ERR_NAME
    assert not named(asked, 0, "publish", service="s", port="p").code
    assert named(asked, 1, "publish", service="s", port="q").code == ERR_SERVICE
    assert named(asked, 2, "lookup", service="s").body == b"p"
    assert named(asked, 0, "unpublish", service="s", port="q").code == ERR_SERVICE
    assert not named(asked, 0, "unpublish", service="s", port="p").code
    assert named(asked, 1, "lookup", service="s").code == ERR_NAME


def test_a_rank_that_ends_takes_its_ports_names_and_questions_along() -> None:
    asked = Asked(job(4))
    port = named(asked, 0, "open").body.decode()
    named(asked, 0, "publish", service="s", port=port)
    meet(asked, 1, "connect", port)
    meet(asked, 2, "connect", port)
    assert asked.gone(1) == []
    (failed,) = asked.gone(0)
    assert isinstance(failed, Answer)
    assert (failed.rank, failed.code) == (2, ERR_PORT)
    assert named(asked, 1, "lookup", service="s").code == ERR_NAME


def test_runs() -> None:
    assert runs_of([0, 0, 1, 0]) == [(0, 2), (1, 1), (0, 1)]
    assert runs_of([]) == []
