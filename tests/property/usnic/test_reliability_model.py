"""Two reliability machines with a wire that Hypothesis holds in its hands."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ompy_components.btl.usnic.reliability.limits import Limits

from tests.support.effort import effort
from tests.support.usnic_pair import MS, US, Side, Wire

WINDOW = 6


class HeldWire(Wire):
    """Packets wait in `held` until somebody says what becomes of them."""

    def __init__(self, first: tuple[int, int]) -> None:
        super().__init__(Limits(window=WINDOW, retries_max=0), first=first)
        self.held: list[tuple[Side, bytes]] = []
        self.holding = True

    def carry(self, sender: Side, packet: bytes) -> None:
        if self.holding:
            self.held.append((self.sides[1 - sender.rank], packet))
        else:
            super().carry(sender, packet)


class ReliabilityModel(RuleBasedStateMachine):
    @initialize(
        near=st.sampled_from([0, 65530, 65535, 30000]), far=st.sampled_from([0, 65533, 32767])
    )
    def begin(self, near: int, far: int) -> None:
        self.wire = HeldWire((near, far))
        self.sent: tuple[list[bytes], list[bytes]] = [], []

    def progress(self) -> None:
        for side in self.wire.sides:
            side.progress(self.wire.now)

    @rule(rank=st.integers(0, 1), count=st.integers(1, 4))
    def send(self, rank: int, count: int) -> None:
        for _ in range(count):
            text = f"{rank}.{len(self.sent[rank])}".encode()
            self.sent[rank].append(text)
            self.wire.sides[rank].send(text)
        self.progress()

    @precondition(lambda self: self.wire.held)
    @rule(data=st.data(), copies=st.integers(0, 2), flip=st.integers(0, 30))
    def fate(self, data: st.DataObject, copies: int, flip: int) -> None:
        """Any packet is lost, arrives, or arrives twice, now and then altered."""
        index = data.draw(st.integers(0, len(self.wire.held) - 1))
        target, packet = self.wire.held.pop(index)
        if flip < len(packet):
            packet = packet[:flip] + bytes([packet[flip] ^ 0x40]) + packet[flip + 1 :]
            refused = target.seal.refused
            target.arrive(packet, self.wire.now)
            assert target.seal.refused == refused + 1
        else:
            for _ in range(copies):
                target.arrive(packet, self.wire.now)
        self.progress()

    @rule(passing=st.sampled_from([US, 60 * US, MS, 99 * MS, 150 * MS, 3000 * MS]))
    def time(self, passing: int) -> None:
        self.wire.now += passing
        self.progress()

    @invariant()
    def nothing_twice_nothing_made_up(self) -> None:
        if not hasattr(self, "wire"):
            return
        for side in self.wire.sides:
            side.machine.check_invariants()
            sent = self.sent[1 - side.rank]
            assert not Counter(side.got) - Counter(sent)
            # what counts as delivered has been, and in the order of the numbers
            assert side.done == self.sent[side.rank][: len(side.done)]
            assert set(side.done) <= set(self.wire.sides[1 - side.rank].got)

    def teardown(self) -> None:
        if not hasattr(self, "wire"):
            return
        self.wire.holding = False
        for target, packet in self.wire.held:
            target.arrive(packet, self.wire.now)
        self.wire.settle(until=self.wire.now + 3_600_000 * MS)
        for side in self.wire.sides:
            assert sorted(side.got) == sorted(self.sent[1 - side.rank])
            assert side.done == self.sent[side.rank]
            assert not side.machine.failure
            assert side.machine.outstanding == 0


TestReliability = ReliabilityModel.TestCase
TestReliability.settings = settings(max_examples=effort(20), stateful_step_count=40, deadline=None)
