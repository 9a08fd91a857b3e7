"""The rank's side of its agent, with the agent's end of the connection in the test's hand."""

import json
import os
import select
import socket
import threading

import pytest
from ompy.engine.real import RealEngine
from ompy.frameworks.job import App, Job, Placement
from ompy.frameworks.paths.path_watch import PathVerdict, Probing
from ompy.frameworks.proc import Proc
from ompy.runtime.connections.control import KEY_SIZE, Decoder, Frame, Kind, encode
from ompy.runtime.probes.client import AgentPaths
from ompy.runtime.ranks import client

NEWS = {"watch": 1, "verdict": "alive", "unanswered": 0}
ROUNDS = 100  # of polling: more than between two looks at what is polled seldom


@pytest.fixture
def agent(monkeypatch):
    """A client, and the socket its agent would have."""
    monkeypatch.setattr(client, "_die_with_writer", lambda _: None)  # it would kill this process
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    placements = tuple(Placement(rank, 0, 0, rank) for rank in range(2))
    job = Job("0" * 16, (App(("true",), 2),), ("here",), placements)
    body = bytes(KEY_SIZE) + json.dumps(job.to_dict()).encode()
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    made = client.AgentClient(ours, Decoder(), Frame(Kind.ADMITTED, {"rank": 0}, body, (-1,)))
    yield made, theirs
    made.close()
    theirs.close()


def test_a_departure_that_came_with_an_answer_is_told(agent):
    """Nothing would make the connection readable again, and a rank that waits would hang."""
    made, theirs = agent
    gone = []
    made.on_departure = lambda rank, reason: gone.append((rank, reason))
    answer = encode(Kind.REPLY, {"call": 1})
    theirs.send(answer + encode(Kind.DEPARTED, {"rank": 1}, b"has finalized and ended"))
    made.fence()
    assert gone == [(1, "has finalized and ended")]


def test_a_notice_is_not_taken_from_under_a_call_of_another_thread(agent, monkeypatch):
    """What polls meanwhile would throw the call's answer away, and it would wait for ever."""
    made, theirs = agent
    told, looked, receive = [], threading.Event(), client.receive_frames
    made.on_path = lambda *news: told.append(news)
    calling = threading.Thread(target=made.fence, daemon=True)

    def late(*args):
        if threading.current_thread() is calling:
            looked.wait()
        return receive(*args)

    monkeypatch.setattr(client, "receive_frames", late)
    calling.start()
    assert theirs.recv(4096)  # it has asked
    theirs.send(encode(Kind.REPLY, {"call": 1}) + encode(Kind.PATH, NEWS))
    made.on_readable()
    looked.set()
    calling.join(5)
    assert not calling.is_alive()
    assert told == [tuple(NEWS.values())]


class Rank:
    """What paths know of their rank."""

    def __init__(self):
        self.engine = RealEngine()
        self.me = Proc(0, 0, 0, "here")

    def poll(self):
        for _ in range(ROUNDS):
            self.engine.progress()


def test_a_rank_that_never_sleeps_hears_of_its_paths(agent):
    """Its waits are all shorter than what makes it park: a healed rail would stay unused."""
    made, theirs = agent
    rank, heard = Rank(), []
    paths = AgentPaths(made, rank, Probing(), made.on_readable)
    made.on_path = paths.told
    peer = Proc(1, 0, 1, "here")
    watch = paths.watch(peer, "10.0.0.1", "10.0.0.2", "rail1", lambda: heard.append(1))
    try:
        theirs.send(encode(Kind.PATH, NEWS))
        rank.poll()
        assert (watch.verdict, heard) == (PathVerdict.ALIVE, [1])
        watch.end()
        theirs.send(encode(Kind.PATH, NEWS))
        rank.poll()
        assert select.select([made], [], [], 0)[0], "nobody has to look any more"
    finally:
        rank.engine.close()
