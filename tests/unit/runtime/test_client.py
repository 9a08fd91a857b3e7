"""The rank's side of its agent, with the agent's end of the connection in the test's hand."""

import json
import os
import socket

import pytest
from ompy.frameworks.job import App, Job, Placement
from ompy.runtime import client
from ompy.runtime.control import KEY_SIZE, Decoder, Frame, Kind, encode


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
    made = client.AgentClient(ours, Decoder(), Frame(Kind.WELCOME, {"rank": 0}, body, (-1,)))
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
