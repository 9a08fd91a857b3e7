"""Numbers of the reliability machine, which parameters may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ompy_components.btl.usnic.reliability.congestion_window import CHANCE_LOSS, FIRST
from ompy_components.btl.usnic.reliability.sequence import WINDOW

US: Final = 1_000  # ns; Linux counts so


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of the protocol.

    Attributes:
        window: entries of the send window; one fewer may be unacknowledged.
        retrans_timeout: ns until a segment is sent again for the first time.
        retrans_timeout_max: ns; what doubling that leads to at most.
        retries_max: how often a segment is sent again before the path is in doubt; 0: for ever.
        ack_delay: ns an ACK may wait for company.
        initial_window: segments that may be under way to begin with.
        congestion_control: whether losses and round trips change what may be under way, and how
            long a segment waits; else the window and `retrans_timeout` alone count.
        selective: ACKs say what has arrived behind a gap, with congestion control.
        chance_loss: share of segments whose loss, while round trips are short, is taken for chance.
    """

    window: int = WINDOW
    retrans_timeout: int = 100_000 * US  # seed usnic: 100 ms
    retrans_timeout_max: int = 2_000_000 * US  # arbitrary: a healed path is found within 2 s
    retries_max: int = 15  # arbitrary: with the two numbers above 25.1 s in all
    ack_delay: int = 50 * US  # seed usnic: 50 us
    initial_window: int = FIRST
    congestion_control: bool = True
    selective: bool = True
    chance_loss: float = CHANCE_LOSS

    def __post_init__(self) -> None:
        assert 2 <= self.window <= WINDOW, "one entry of the window stays empty"
        assert 0 < self.retrans_timeout <= self.retrans_timeout_max, "timeouts only get longer"
        assert self.ack_delay < self.retrans_timeout, "an ACK must not come after the resend"

    def timeout(self, attempts: int, least: int = 0) -> int:
        """How long a segment posted `attempts` times in silence waits for its ACK, ns.

        Where round trips are long the first timeout is `least`, if that is longer.
        """
        first = max(self.retrans_timeout, least)
        return min(first << min(attempts - 1, 40), self.retrans_timeout_max)

    @property
    def patience(self) -> int:
        """How long a peer may be silent before the path is in doubt, ns; 0: for ever.

        Longer where round trips are.
        """
        if not self.retries_max:
            return 0
        return sum(self.timeout(attempts) for attempts in range(1, self.retries_max + 2))
