"""usnic's goodput on a simulated link of 10 Gbit/s and 10 us, against what the numbers allow."""

from __future__ import annotations

from statistics import median

import pytest
from ompy.net.faults.fault_rules import FaultRule

from tests.support.effort import THOROUGH, effort
from tests.support.usnic_streams import stream

US = 1e-6
PACKET = 1472  # bytes of a full packet: an MTU of 1500 less IP's and UDP's headers
PAYLOAD = PACKET - 16 - 40  # MAC and chunk header
LINK = 10_000  # Mbit/s
LATENCY = 10 * US
JITTER = 5 * US  # at most, each way; half of it on average
ACK_DELAY = 50 * US
ON_THE_LINK = PACKET * 8 / LINK * US


def theory(window: int) -> float:
    """Mbit/s that a window of so many packets allows, or the link.

    The window's first packet takes its time on the link and the latency, its ACK waits for company
    and takes the latency back; then the next window begins. (The ACK of a fragment's last packet
    does not wait, so fragments have a hundred packets here.)
    """
    round_trip = ON_THE_LINK + 2 * (LATENCY + JITTER / 2) + ACK_DELAY
    return min(LINK * PAYLOAD / PACKET, window * PAYLOAD * 8 / round_trip / 1e6)


@pytest.mark.parametrize("window", [8, 16, 32, 4095])
def test_without_losses(window: int) -> None:
    """Within a tenth of the theory, whether the window or the link is the limit."""
    run = stream(fragments=20, size=140_000, window=window + 1)
    assert run.resends == 0
    assert run.goodput == pytest.approx(theory(window), rel=0.1)
    assert (theory(window) < LINK / 2) is (window <= 32), "both limits are tried"


def test_losses_cost_something_and_not_everything() -> None:
    few, many = (stream(FaultRule("drop", probability=rate)).goodput for rate in (0.001, 0.1))
    assert 1 < many < few < theory(4095)


@pytest.mark.parametrize(
    "loss", [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5] if THOROUGH else [0.01, 0.3]
)
def test_no_loss_rate_is_better_off_without_it(loss: float) -> None:
    """Never below 0.9 of the better of two: duplicate ACKs alone, and the seed's plain window."""
    rule = FaultRule("drop", probability=loss)
    ways: dict[str, dict[str, object]] = {
        "selective": {},
        "duplicates": {"selective_ack": 0},
        "seed": {"congestion_control": 0},
    }
    goodput = {
        name: median(
            stream(rule, fragments=40, seed=seed, **settings).goodput for seed in range(effort(1))
        )
        for name, settings in ways.items()
    }
    assert goodput["selective"] >= 0.9 * max(goodput["duplicates"], goodput["seed"]), goodput
