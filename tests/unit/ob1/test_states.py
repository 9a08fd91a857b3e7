"""Every pair of state and event, written out: a change of the table shows here."""

from __future__ import annotations

import pytest
from ompy.data.errors import ERR_INTERN, MPIError
from ompy_components.pml.ob1.states import (
    ReceiveEvent,
    ReceiveState,
    SendEvent,
    SendState,
    next_receive_state,
    next_send_state,
)

SEND = """
started RNDV_SENT await-ack
started ACK -
started DELIVERED -
await-ack RNDV_SENT -
await-ack ACK streaming
await-ack DELIVERED -
streaming RNDV_SENT -
streaming ACK -
streaming DELIVERED done
done RNDV_SENT -
done ACK -
done DELIVERED -
"""
RECEIVE = """
posted MATCHED receiving
posted ALL_HERE -
posted CANCEL cancelled
receiving MATCHED -
receiving ALL_HERE done
receiving CANCEL -
done MATCHED -
done ALL_HERE -
done CANCEL -
cancelled MATCHED -
cancelled ALL_HERE -
cancelled CANCEL -
"""


def table(states, events, advance) -> str:
    lines = [""]
    for state in states:
        for event in events:
            try:
                result = advance(state, event, "the story").value
            except MPIError as problem:
                assert problem.code == ERR_INTERN
                assert "the story" in str(problem)
                assert state.value in str(problem)
                result = "-"
            lines.append(f"{state.value} {event.name} {result}")
    return "\n".join([*lines, ""])


@pytest.mark.parametrize(
    ("snapshot", "parts"),
    [
        (SEND, (SendState, SendEvent, next_send_state)),
        (RECEIVE, (ReceiveState, ReceiveEvent, next_receive_state)),
    ],
    ids=["send", "receive"],
)
def test_all_pairs(snapshot: str, parts) -> None:
    assert table(*parts) == snapshot
