"""The probes of agents: the machine that asks, the datagrams, and two agents on loopback."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.frameworks.paths.path_watch import MS, PathVerdict, Probing
from ompy.net.carrier import has_no_carrier
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.seals import datagram_seal
from ompy.net.seals.replay import WINDOW
from ompy.runtime.probes import probe_datagrams
from ompy.runtime.probes.machine import RELAXED, PathProbe, because
from ompy.runtime.probes.probe_datagrams import ANSWER, QUESTION, SIZE, BadProbe, Message, ProbeSeal
from ompy.runtime.probes.prober import Prober

KEY = b"the job's secret".ljust(32)
QUICK = 2 * MS  # arbitrary: between two questions here
LOOPBACK = "127.0.0.1"
PLACE = bytes((127, 0, 0, 1)), 7000  # arbitrary
NONCE = b"an agent"
MESSAGE = Message(QUESTION, 3, 70_000, b"12345678", 9, 4_000_000_000)


def test_a_path_that_never_answers_is_dead_after_so_many_questions() -> None:
    probe = PathProbe(10, 3)
    said = [(probe.turn(), probe.verdict, probe.pause) for _ in range(5)]
    unknown, dead = PathVerdict.UNKNOWN, PathVerdict.DEAD
    assert said[:3] == [(1, unknown, 10), (2, unknown, 10), (3, unknown, 10)]
    assert said[3:] == [(4, dead, 10 * RELAXED), (5, dead, 10 * RELAXED)]
    assert because(dead, 4) == "the agents of both hosts did not reach each other in 4 attempts"
    assert probe.answer(2), "one that took its time"
    assert probe.verdict is PathVerdict.ALIVE, "a dead path may come back"


def test_who_is_answered_rests() -> None:
    probe = PathProbe(10, 3)
    assert probe.turn() == 1
    assert probe.answer(1)
    assert (probe.turn(), probe.pause) == (0, 10 * (RELAXED - 1))
    assert (probe.turn(), probe.pause) == (2, 10)
    assert (probe.turn(), probe.pause) == (3, 10), "no rest while an answer is missing"
    assert not probe.answer(1), "an old one"
    assert not probe.answer(9), "one to nothing that was asked"
    assert probe.unanswered == 2


@given(st.lists(st.booleans(), max_size=200), st.integers(1, 12))
def test_dead_means_so_many_turns_without_an_answer(answers: list[bool], turns_max: int) -> None:
    """Whatever comes when, compared with a count of the turns."""
    probe, silent, expected = PathProbe(10, turns_max), 0, PathVerdict.UNKNOWN
    for answered in answers:
        number = probe.turn()
        if number:
            if silent >= turns_max:
                expected = PathVerdict.DEAD
            silent += 1
        if answered and number:
            assert probe.answer(number)
            silent, expected = 0, PathVerdict.ALIVE
        assert (probe.verdict, probe.unanswered) == (expected, silent)


def test_how_many_turns_the_times_are() -> None:
    probing = Probing(interval=10, timeout=35, patience=100)
    assert probing.turns(failover=True, least=0) == 4
    assert probing.turns(failover=False, least=0) == 10
    assert probing.turns(failover=True, least=95) == 10
    assert probing._replace(patience=0).turns(failover=False, least=0) == 4


def test_datagrams_as_they_are() -> None:
    seal = ProbeSeal(KEY, NONCE, first=255)
    data = seal.pack(MESSAGE, PLACE)
    assert len(data) == SIZE == 61
    assert probe_datagrams.SEAL_SIZE == datagram_seal.SEAL_SIZE
    assert data[16:32] == bytes.fromhex("0001000000000000") + NONCE
    assert data[32:] == bytes.fromhex(
        "01 03000000 70110100 3132333435363738 09000000 00286bee00000000"
    )
    assert data[:16].hex() == "5d668c630976aaf6dd1ec2ecee5139c9"
    assert seal.unpack(data, PLACE) == MESSAGE


@pytest.mark.parametrize("position", range(SIZE))
def test_an_altered_datagram_is_none(position: int) -> None:
    seal = ProbeSeal(KEY, NONCE)
    altered = bytearray(seal.pack(MESSAGE, PLACE))
    altered[position] ^= 0x10
    with pytest.raises(BadProbe, match="MAC"):
        seal.unpack(bytes(altered), PLACE)


def test_what_else_is_none() -> None:
    seal = ProbeSeal(KEY, NONCE)
    data = seal.pack(MESSAGE, PLACE)
    other = ProbeSeal(b"another".ljust(32), NONCE)
    for bad in (b"", data[:-1], data + b"x", other.pack(MESSAGE, PLACE)):
        with pytest.raises(BadProbe):
            seal.unpack(bad, PLACE)
    with pytest.raises(BadProbe, match="unknown kind 7"):
        seal.unpack(seal.pack(MESSAGE._replace(kind=7), PLACE), PLACE)


def test_a_recorded_datagram_is_none() -> None:
    """At once, late, at another address or port, and beside those of an agent of another life."""
    ours, theirs = ProbeSeal(KEY, NONCE), ProbeSeal(KEY, b"another1")
    data = ours.pack(MESSAGE, PLACE)
    for place in ((PLACE[0], 7001), (bytes((127, 0, 0, 2)), 7000)):
        with pytest.raises(BadProbe, match="MAC"):
            theirs.unpack(data, place)
    assert theirs.unpack(data, PLACE) == MESSAGE
    with pytest.raises(BadProbe, match="here before"):
        theirs.unpack(data, PLACE)
    for _ in range(WINDOW):
        theirs.unpack(ours.pack(MESSAGE, PLACE), PLACE)
    with pytest.raises(BadProbe, match="behind the window"):
        theirs.unpack(data, PLACE)
    anew = ProbeSeal(KEY, b"new life")  # with numbers that the other one has used up
    assert theirs.unpack(anew.pack(MESSAGE, PLACE), PLACE) == MESSAGE


class Agents:
    """Two agents on one loop; rank 0 is the first one's, rank 1 the other's."""

    def __init__(self, *rules: FaultRule, keys: tuple[bytes, bytes] = (KEY, KEY)) -> None:
        self.loop = asyncio.new_event_loop()
        script = [dict(rule._asdict()) for rule in rules]
        self.near, self.far = (Prober(self.loop, key, lambda: script) for key in keys)
        self.said: list[tuple[str, int]] = []

    def watch(self, turns: int = 20) -> None:
        header = {
            "watch": 1, "peer": 1, "source": LOOPBACK, "target": LOOPBACK, "rail": "lo",
            "port": self.far.port(), "interval": QUICK, "turns": turns,
        }  # fmt: skip
        self.near.watch(0, header, self._told)

    def _told(self, header: dict[str, Any]) -> None:
        self.said.append((header["verdict"], header["unanswered"]))
        self.loop.stop()

    def until_told(self) -> tuple[str, int]:
        before = len(self.said)
        self.loop.call_later(20, self.loop.stop)  # s; arbitrary: only where nothing is ever told
        self.loop.run_forever()
        assert len(self.said) > before, "nothing was told"
        return self.said[-1]

    def close(self) -> None:
        for agent in (self.near, self.far):
            agent.close()
            assert not agent._timers
            assert not agent._watches
            assert not agent._numbers
        self.loop.close()

    def run(self, seconds: float) -> None:
        self.loop.call_later(seconds, self.loop.stop)
        self.loop.run_forever()


@pytest.fixture
def agents():
    made = Agents()
    yield made
    made.close()


def test_nothing_is_asked_over_an_interface_without_a_carrier(
    agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel would look for the neighbour in vain, and be slow when the cable is back."""
    asked: list[str] = []
    there = [False]

    def has_no_carrier(name: str) -> bool:
        asked.append(name)
        return not there[0]

    monkeypatch.setattr("ompy.runtime.probes.prober.has_no_carrier", has_no_carrier)
    agents.watch(turns=5)
    assert agents.until_told()[0] == "dead"
    assert len(asked) >= 5
    assert set(asked) == {"lo"}
    there[0] = True
    assert agents.until_told() == ("alive", 0)


def test_an_interface_that_is_not_there_has_no_lost_carrier() -> None:
    assert not has_no_carrier("lo")
    assert not has_no_carrier("port 1")


def test_agents_reach_each_other(agents: Agents) -> None:
    agents.watch()
    assert agents.until_told() == ("alive", 0)
    agents.run(0.1)
    assert len(agents.said) == 1, "a verdict is told once"
    watch = agents.near._watches[0, 1]
    assert watch.probe.asked < 12, "seldom while there are answers"
    for _ in range(100):  # a process that gets no core asks later
        if watch.probe.asked == 1:
            agents.run(0.1)
    assert watch.probe.asked > 1, "again and again"
    agents.near.gone(0)
    assert not agents.near._timers
    assert not agents.near._watches
    assert not agents.near._numbers


@pytest.mark.parametrize("end", ["source", "target"])
@pytest.mark.parametrize("address", ["", "fi_shm://1", "localhost", "127.1", "::1"])
def test_a_path_that_is_none_of_ip_is_not_asked_over(
    agents: Agents, end: str, address: str
) -> None:
    """A fabric's rails may have other addresses; the agent goes on."""
    header = {
        "watch": 1, "peer": 1, "source": LOOPBACK, "target": LOOPBACK, "rail": "shm",
        "port": agents.far.port(), "interval": QUICK, "turns": 5,
    }  # fmt: skip
    agents.near.watch(0, {**header, end: address}, agents._told)
    agents.run(0.05)
    assert agents.said == []
    agents.near.unwatch(0, 1)
    agents.watch()
    assert agents.until_told() == ("alive", 0)


def test_an_agent_of_another_job_does_not_answer() -> None:
    agents = Agents(keys=(KEY, b"another job's".ljust(32)))
    agents.watch(turns=5)
    assert agents.until_told() == ("dead", 6)
    agents.close()


def test_a_forged_and_a_recorded_answer_are_nothing(agents: Agents) -> None:
    """Nobody listens at the port that is asked; others answer at random, or with old words."""
    stranger = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with stranger:
        stranger.bind((LOOPBACK, 0))
        header = {
            "watch": 1, "peer": 1, "source": LOOPBACK, "target": LOOPBACK, "rail": "lo",
            "port": stranger.getsockname()[1], "interval": QUICK, "turns": 30,
        }  # fmt: skip
        agents.near.watch(0, header, agents._told)
        question = stranger.recv(100)
        to = (LOOPBACK, agents.near.port())
        place = PLACE[0], agents.near.port()
        forged, theirs = ProbeSeal(b"a guess".ljust(32), NONCE), ProbeSeal(KEY, NONCE)
        asked = theirs.unpack(question, (PLACE[0], stranger.getsockname()[1]))
        old = asked._replace(kind=ANSWER, nonce=b"old ones")
        answer = forged.pack(asked._replace(kind=ANSWER), place)
        for data in (answer, theirs.pack(old, place), b"junk"):
            stranger.sendto(data, to)
        assert agents.until_told()[0] == "dead"


@pytest.mark.parametrize(
    "rule",
    [
        FaultRule("black_hole", ranks=(0,), nth=(5,)),
        FaultRule("black_hole", ranks=(1,), nth=(5,)),
        FaultRule("link_down", ranks=(1,), rails=("lo",), nth=(5,)),
        FaultRule("nic_gone", ranks=(0,), nth=(5,)),
    ],
)
def test_lasting_faults_of_ranks_take_probes_along(rule: FaultRule) -> None:
    agents = Agents(rule)
    began = time.monotonic_ns()
    for rank, agent in enumerate((agents.near, agents.far)):
        agent.outages(rank, {"began": began, "fired": {}})
    agents.watch()
    assert agents.until_told()[0] == "alive", "no packet has set it off yet"
    struck = rule.ranks[0]
    fired = {"began": began, "fired": {"0": time.monotonic_ns() - began}}
    (agents.near, agents.far)[struck].outages(struck, fired)
    assert agents.until_told()[0] == "dead"
    agents.close()


def test_a_hole_that_closes_gives_the_path_back() -> None:
    lasts = 300 * MS
    agents = Agents(FaultRule("black_hole", ranks=(0,), since=0, until=lasts))
    agents.near.outages(0, {"began": time.monotonic_ns(), "fired": {}})
    agents.watch(turns=10)
    assert agents.until_told()[0] == "dead"
    assert agents.until_told()[0] == "alive"
    agents.close()


def test_an_agent_that_was_stopped_takes_nobody_for_dead(agents: Agents) -> None:
    """Turns are counted, not time."""
    agents.watch(turns=5)
    assert agents.until_told()[0] == "alive"
    time.sleep(0.1)  # ten times what the path may be silent for
    agents.run(0.05)
    assert [verdict for verdict, _ in agents.said] == ["alive"]


def test_a_recorded_question_is_answered_once(agents: Agents) -> None:
    """Whoever sends it again, from wherever, hears nothing."""
    port = agents.far.port()
    question = ProbeSeal(KEY, NONCE).pack(MESSAGE, (PLACE[0], port))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as spy:
        spy.bind((LOOPBACK, 0))
        spy.setblocking(False)
        heard = []
        for _ in range(3):
            spy.sendto(question, (LOOPBACK, port))
            agents.run(0.05)
            with suppress(BlockingIOError):
                heard.append(spy.recv(100))
    assert len(heard) == 1
    assert len(heard[0]) == len(question), "nobody is sent more than he has sent"


@pytest.mark.parametrize("target", [LOOPBACK, "127.0.0.7"])
def test_an_agent_of_one_host_listens_at_the_addresses_of_its_paths_alone(target: str) -> None:
    loop, said = asyncio.new_event_loop(), []
    agent = Prober(loop, KEY, list, one_host=True)
    header = {
        "watch": 1, "peer": 1, "source": LOOPBACK, "target": target, "rail": "lo",
        "port": 0, "interval": QUICK, "turns": 20,
    }  # fmt: skip
    agent.watch(0, header, lambda told: (said.append(told["verdict"]), loop.stop()))
    loop.call_later(20, loop.stop)  # s; arbitrary: only where nothing is ever told
    loop.run_forever()
    assert said == ["alive"]
    assert {opened.getsockname()[0] for opened in agent._sockets.values()} == {LOOPBACK, target}
    agent.close()
    loop.close()
