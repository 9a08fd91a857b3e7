"""What becomes of a queue pair when it is taken to another state: the table.

Source: InfiniBand specification 1, 10.3.1 (queue pair state machine); `verbs.ALLOWED`.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.frameworks.nic.verbs import ALLOWED, State


class Step(Enum):
    """What `modify` does, and what it needs for it."""

    FORGET = "forget"  # all work, without a word
    FLUSH = "flush"  # all work, told
    KEEP = "keep"  # nothing changes but the state
    CONNECT = "connect"  # needs the peer's end, and the timing
    BEGIN = "begin"  # needs the timing
    RETIME = "retime"  # timing may be given
    REFUSE = "refuse"


_STEPS: Final = {
    (State.RESET, State.INIT): Step.KEEP,
    (State.INIT, State.INIT): Step.KEEP,
    (State.INIT, State.RTR): Step.CONNECT,
    (State.RTR, State.RTS): Step.BEGIN,
    (State.RTS, State.RTS): Step.RETIME,
    (State.SQE, State.RTS): Step.RETIME,
}
assert frozenset(_STEPS) == ALLOWED

# states in which the responder takes requests, and the requester sends and takes answers
RECEIVING: Final = frozenset({State.RTR, State.RTS})


def step(state: State, wanted: State) -> Step:
    """What going from one state to another takes."""
    if wanted is State.RESET:
        return Step.FORGET
    if wanted is State.ERR:
        return Step.KEEP if state is State.ERR else Step.FLUSH
    return _STEPS.get((state, wanted), Step.REFUSE)
