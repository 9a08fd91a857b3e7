"""One bit of one packet is turned, of each packet in turn: nobody notices, and nothing is altered.

The matrix's corrupted fragments (`tests/support/fault_matrix.py`) as they really are: the NIC's MAC
finds it, what is altered is none, and its transport sends it again.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import pytest
from ompy.frameworks.btl import FAILOVER_SUPPORT, GET, PUT, RDMA_COMPLETION, SEND, ReceiveCallback
from ompy.net.base import Address, Datagram
from ompy.net.faults.middleware import DatagramFault, FaultCounter
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.pml.ob1.headers import NAMES

from tests.sim.ob1.programs import one_message
from tests.support.effort import THOROUGH
from tests.support.worlds import registry

from .test_mixtures import RAILS

ALONE = SEND | FAILOVER_SUPPORT
PUTS = ALONE | PUT | RDMA_COMPLETION
# BTL, its flags, the message's bytes, and the fragments that go over the wire
CASES: dict[str, tuple[str, int, int, set[str]]] = {
    "openib, MATCH": ("openib", ALONE, 900, {"MATCH"}),
    "openib, FRAG": ("openib", ALONE, 90_000, {"RNDV", "ACK", "FRAG"}),
    "openib, put": ("openib", PUTS, 90_000, {"RNDV", "PUT", "FIN"}),
    "openib, get": ("openib", PUTS | GET, 90_000, {"RGET", "FIN"}),
    "usnic, MATCH": ("usnic", ALONE, 900, {"MATCH"}),
    "usnic, FRAG": ("usnic", ALONE, 90_000, {"RNDV", "ACK", "FRAG"}),
    "usnic, put": ("usnic", PUTS, 90_000, {"RNDV", "PUT", "FIN"}),
}


class Turned(DatagramFault):
    """Turns a bit of one packet, counted over all ranks and rails."""

    kind: ClassVar[str] = "corrupt"

    def __init__(self, engine: Any, counter: FaultCounter, packets: Counter[str], nth: int) -> None:
        super().__init__(engine, counter)
        self._packets = packets
        self._nth = nth

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        self._packets["all"] += 1
        if self._packets["all"] != self._nth:
            return inner.send(packet, address)
        altered = bytearray(packet)
        altered[self._nth % len(altered)] ^= 1 << self._nth % 8
        self.delivered(size=len(packet), to=address)
        return inner.send(memoryview(altered), address)


class Seen(ReceiveCallback):
    """Notes which fragments come."""

    def __init__(self, inner: ReceiveCallback, names: set[str]) -> None:
        self._inner = inner
        self._names = names

    def received(self, module: Any, endpoint: Any, tag: int, fragment: memoryview) -> None:
        self._names.add(NAMES[tag])
        self._inner.received(module, endpoint, tag, fragment)


def packets_of(case: str, nth: int) -> int:
    """Run a world in which this packet is altered, 0 for none; how many it had."""
    btl, flags, size, fragments = CASES[case]
    settings = {"pml": "bfo", "btl": f"self,{btl}", f"btl_{btl}_flags": flags}
    job = VirtualJob(2, registry(**settings), rails=RAILS, hosts=[0, 1])
    counter, packets = FaultCounter(), Counter[str]()
    seen: set[str] = set()
    for rank, network in enumerate(job.networks):
        network.install(Turned(job._board.engines[rank], counter, packets, nth))

    def program(process: Any) -> None:
        handlers = process.context.active_messages.handlers
        for tag in NAMES:
            if handlers[tag] is not None:
                handlers[tag] = Seen(handlers[tag], seen)
        one_message(size)(process)
        assert not process.context.rail_events

    job.run(program)
    assert seen - {"LEAVE"} == fragments  # who finalizes says so behind them
    assert counter.delivered["corrupt"] == bool(nth)
    return packets["all"]


@pytest.mark.parametrize("case", CASES)
def test_every_packet_is_altered_once(case: str) -> None:
    count = packets_of(case, 0)
    assert count > 3
    # in CI every ninth, and the first and last ones
    chosen = {*range(1, count + 1, 1 if THOROUGH else 9), 2, 3, count - 1, count}
    for nth in sorted(chosen):
        packets_of(case, nth)
