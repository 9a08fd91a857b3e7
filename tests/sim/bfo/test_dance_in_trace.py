"""A FRAG in the middle is lost: the trace shows the dance of that message, and of nothing else."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ompy.frameworks.pml import STANDARD
from ompy.trace.drawing.sequence_diagram import arrange
from ompy.trace.message_events import messages

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.failing_rails import US, FailingRail, Fault, failing_world

RAIL = FailingRail(flags=0, latency=2, notice=5 * US)
SIZES = (100, 900, 7_000, 9_000, 20_000, 900)  # one after the other
STRUCK = 3


def program(process: Any) -> None:
    comm, pml = world(process), process.pml
    for tag, size in enumerate(SIZES):
        if comm.rank == 0:
            pml.wait(comm, pml.isend(comm, send(pattern(size, tag)), 1, tag, STANDARD))
            continue
        memory, room = buffer(size)
        pml.recv(comm, room, 0, tag)
        assert bytes(memory) == pattern(size, tag)


def names(job: Any) -> Counter[str]:
    """What went over the rails."""
    return Counter(name for name, _, _ in job.net.log)


def test_the_dance_is_seen_and_nothing_is_sent_again_blindly() -> None:
    quiet = failing_world([program] * 2, [RAIL] * 2)
    before = [name for name, _, _ in quiet.net.log]
    frags = [place for place, name in enumerate(before) if name == "FRAG"]
    rndvs = [place for place, name in enumerate(before) if name == "RNDV"]
    own = [place for place in frags if rndvs[1] < place < rndvs[2]]  # of the message that is struck
    middle = 1 + frags.index(own[len(own) // 2])
    job = failing_world([program] * 2, [RAIL] * 2, [Fault("lost", "FRAG", middle)], trace=True)
    told = [
        (event.name, event.rank, dict(event.fields))
        for event in job.events()
        if event.layer == "pml.bfo" and event.name not in ("FINAL_BARRIER", "DROPPED", "RAIL")
    ]
    steps = [(name, rank, about["what"]) for name, rank, about in told if name != "DANCE"]
    assert steps == [
        ("RNDVRESTARTNOTIFY", 0, "sent"),
        ("RNDVRESTARTNOTIFY", 1, "arrived"),
        ("RNDVRESTARTACK", 1, "sent"),
        ("RNDVRESTARTACK", 0, "arrived"),
    ]
    assert {about["sequence"] for name, _, about in told if name != "DANCE"} == {STRUCK + 1}
    sides = {(about["side"], about["tag"]) for name, _, about in told if name == "DANCE"}
    assert sides == {("send", STRUCK), ("receive", STRUCK)}
    # again: the RNDV of this one, its ACK and its FRAGs; and no other message
    more = names(job) - names(quiet)
    assert more.keys() <= {"RNDV", "ACK", "FRAG", "RNDVRESTARTNOTIFY", "RNDVRESTARTACK"}
    assert (more["RNDV"], more["ACK"]) == (1, 1)
    assert 0 < more["FRAG"] <= len(own)
    (event,) = job.processes[0].context.rail_events
    assert event.messages == 1
    assert event.bytes <= SIZES[STRUCK]


def test_the_picture_of_a_message_that_failed_over_shows_why_and_how() -> None:
    job = failing_world([program] * 2, [RAIL] * 2, [Fault("lost", "FRAG", 3)], trace=True)
    found = messages(job.events())
    (struck,) = [message for message in found if message.failed_over]
    assert len(found) == len(SIZES), "the dance belongs to the message it is about"
    arrows = struck.arrows()
    (notify,) = [arrow for arrow in arrows if arrow.name == "RNDVRESTARTNOTIFY"]
    (answer,) = [arrow for arrow in arrows if arrow.name == "RNDVRESTARTACK"]
    assert (notify.source, notify.target) == (answer.target, answer.source) == (0, 1)
    assert notify.arrived is not None
    assert answer.arrived is not None
    (restart,) = struck.restarts
    for arrow in arrows:  # what went before the restart has not arrived after it
        if arrow.sent.time < restart.time and arrow.arrived is not None:
            assert arrow.arrived.time <= restart.time
    diagram = arrange([struck], {})
    texts = [line.text for line in diagram.lines]
    assert sum("(restart)" in text for text in texts) == 1
    lost = [line.text for line in diagram.lines if line.end.text == "not received"]
    assert any(text.startswith("FRAG ") for text in lost)
    assert {"rail rail0 broke", "rail rail1 broke"} & {point.text for point in diagram.points}
