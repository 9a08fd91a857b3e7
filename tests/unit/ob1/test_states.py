"""Every pair of state and event, written out: a change of the table shows here."""

from __future__ import annotations

import pytest
from ompy.data.errors import ERR_INTERN, MPIError
from ompy_components.pml.ob1.states import (
    RDMA_TABLE,
    RECEIVE_TABLE,
    SEND_TABLE,
    RdmaEvent,
    RdmaState,
    ReceiveEvent,
    ReceiveState,
    SendEvent,
    SendState,
    next_state,
    rows_of,
)

SEND = """
started RNDV_SENT await-ack
started RGET_SENT await-get
started ACK -
started PUT -
started PUT_ACK -
started FIN -
started DELIVERED -
await-ack RNDV_SENT -
await-ack RGET_SENT -
await-ack ACK streaming
await-ack PUT await-ack
await-ack PUT_ACK streaming
await-ack FIN -
await-ack DELIVERED -
await-get RNDV_SENT -
await-get RGET_SENT -
await-get ACK streaming
await-get PUT streaming
await-get PUT_ACK -
await-get FIN streaming
await-get DELIVERED -
streaming RNDV_SENT -
streaming RGET_SENT -
streaming ACK streaming
streaming PUT streaming
streaming PUT_ACK streaming
streaming FIN streaming
streaming DELIVERED done
done RNDV_SENT -
done RGET_SENT -
done ACK -
done PUT -
done PUT_ACK -
done FIN -
done DELIVERED -
"""
RDMA = """
planned ASKED await-fin
planned STARTED under-way
planned NO_ROOM -
planned MOVED -
planned FAILED fell-back
await-fin ASKED -
await-fin STARTED -
await-fin NO_ROOM -
await-fin MOVED moved
await-fin FAILED fell-back
under-way ASKED -
under-way STARTED -
under-way NO_ROOM planned
under-way MOVED moved
under-way FAILED fell-back
moved ASKED -
moved STARTED -
moved NO_ROOM -
moved MOVED -
moved FAILED -
fell-back ASKED -
fell-back STARTED -
fell-back NO_ROOM -
fell-back MOVED -
fell-back FAILED -
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


class Told:
    def story(self) -> str:
        return "the story"


def written(states, events, table) -> str:
    lines = [""]
    for state in states:
        for event in events:
            try:
                result = next_state(rows_of(table), state, event, Told()).value
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
        (SEND, (SendState, SendEvent, SEND_TABLE)),
        (RECEIVE, (ReceiveState, ReceiveEvent, RECEIVE_TABLE)),
        (RDMA, (RdmaState, RdmaEvent, RDMA_TABLE)),
    ],
    ids=["send", "receive", "rdma"],
)
def test_all_pairs(snapshot: str, parts) -> None:
    assert written(*parts) == snapshot
