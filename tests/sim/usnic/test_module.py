"""usnic's modules in virtual worlds: channels, order of sending, losses, the end of patience."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Worlds
from ompy.conformance.watched_network import Wire
from ompy.frameworks.btl import BTL_OWNERSHIP, PRIORITY, UNREACHABLE
from ompy.net.base import Address
from ompy.net.faults.middleware import BlackHole, Corrupt, Drop, Duplicate, Fault, Reorder
from ompy_components.btl.usnic import headers
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.headers import FRAG, HEADER_SIZE, SEAL_SIZE, Header
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.reliability.limits import Limits
from ompy_components.btl.usnic.seal import Seal, recipient
from ompy_components.btl.usnic.send_engine import SendEngine

from tests.support.effort import THOROUGH, effort
from tests.support.forms import interpreted_only

MS = 1_000_000
SECOND = 1_000 * MS
TINY = 768 - SEAL_SIZE - HEADER_SIZE  # the seed's priority packet, less what stands in front


def world(ranks: int = 2, *, seed: int = 0, plan: Any = lambda _: (), **settings: object) -> World:
    # every packet is counted here: those of the connectivity checker have tests of their own
    settings = {"connectivity_check": 0, **settings}
    full = {
        name if name.startswith("btl_") else f"btl_usnic_{name}": value
        for name, value in settings.items()
    }
    return Worlds(COMPONENT, {}).make(ranks, seed=seed, plan=plan, settings=full)


def usnic(driver: Driver) -> UsnicModule:
    (module,) = driver.modules
    assert isinstance(module, UsnicModule)
    return module


def channel_sends(driver: Driver) -> tuple[int, int]:
    """Packets on the priority and on the data channel, ACKs left out."""
    module = usnic(driver)
    priority, data = module._channels
    return priority.sends - module.statistics.num_ack_sends, data.sends


@pytest.mark.parametrize("data_only", [False, True])
@pytest.mark.parametrize(
    ("size", "packets"), [(0, 1), (TINY, 1), (TINY + 1, 1), (1423, 1), (1424, 2), (30_000, 22)]
)
def test_tiny_fragments_use_the_priority_channel(size: int, packets: int, data_only: bool) -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            driver.send(1, driver.data(size))
        driver.quiesce()
        driver.check_inbox(ordered=False)
        driver.idle(MS)  # the ACK waits for company
        if driver.rank == 0:
            fast = size <= TINY and not data_only
            assert channel_sends(driver) == ((1, 0) if fast else (0, packets))
            counted = usnic(driver).statistics
            assert counted.num_frag_sends + counted.num_chunk_sends == packets
            assert bool(counted.num_chunk_sends) is (packets > 1)
        else:
            assert channel_sends(driver) == (0, 0)
            assert usnic(driver).statistics.num_ack_sends, "ACKs alone go by the priority channel"

    world(all_data_on_data_channel=int(data_only)).run(program)


@pytest.mark.parametrize(("flags", "expected"), [(BTL_OWNERSHIP, 0), (BTL_OWNERSHIP | PRIORITY, 5)])
def test_queued_fragments_use_it_when_they_are_urgent(flags: int, expected: int) -> None:
    """With failover nothing is sent fast, so all of these are queued."""

    def program(driver: Driver) -> None:
        if driver.rank == 0:
            for _ in range(5):
                driver.send(1, driver.data(100), flags=flags)
        driver.quiesce()
        if driver.rank == 0:
            assert channel_sends(driver) == (expected, 5 - expected)

    world(flags="send,failover").run(program)


def test_a_fast_send_is_complete_at_once() -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            fast = driver.send(1, driver.data(100))
            assert fast.done
            assert fast.result == 1
            slow = driver.send(1, driver.data(5000))
            assert not slow.done
        driver.quiesce()

    world().run(program)


@interpreted_only
def test_resends_come_first_and_acks_last() -> None:
    """In one round: what is sent again, then what is new with the ACK that is owed."""

    def plan(driver: Driver) -> Sequence[Fault]:
        return [BlackHole(driver.engine, driver.world.counter, gives_up=SECOND)]

    def program(driver: Driver) -> None:
        (hole,) = driver.faults
        assert isinstance(hole, BlackHole)
        module = usnic(driver)
        if driver.rank == 0:
            driver.send(1, driver.data(2000))
            hole.open()
            driver.idle(50 * MS)  # both packets are lost
            assert module.statistics.num_chunk_sends == 2
            hole.close()
            driver.compute(200 * MS)  # their time runs out
            driver.post(1, driver.data(800))
            sent: list[tuple[str, int, bool]] = []
            post = SendEngine._post

            def noting(engine, endpoint, packet, channel, acknowledged, inline):  # type: ignore[no-untyped-def]
                if engine is module.sending:
                    kind = "again" if packet.attempts > 1 else "new"
                    sent.append((kind, channel.index, acknowledged is not None))
                post(engine, endpoint, packet, channel, acknowledged, inline)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(SendEngine, "_post", noting)
                driver.quiesce()
            assert sent == [("again", 1, False), ("again", 1, False), ("new", 1, True)]
        else:
            driver.idle(120 * MS)
            driver.post(0, driver.data(800))  # the ACK it is owed goes with the new packet
            driver.quiesce()

    world(plan=plan).run(program)


def lossy(rate: float) -> Any:
    def plan(driver: Driver) -> Sequence[Fault]:
        engine, counter = driver.engine, driver.world.counter
        return [
            Drop(engine, counter, rate=rate),
            Duplicate(engine, counter, rate=0.1),
            Reorder(engine, counter, rate=0.1, delay=300_000),
            Corrupt(engine, counter, rate=0.1),
        ]

    return plan


@pytest.mark.parametrize("flags", ["send", "send,failover"])
@pytest.mark.parametrize("rate", [0.02, 0.3])
@pytest.mark.parametrize("seed", range(effort(1)))
def test_mixed_traffic_over_a_bad_wire(
    monkeypatch: pytest.MonkeyPatch, seed: int, rate: float, flags: str
) -> None:
    """Everything arrives once and unaltered; every counter of trouble has counted."""
    monkeypatch.setattr(Wire, "entropy", lambda wire, count: b"\xff\x80"[:count])
    counted: Counter[str] = Counter()

    def program(driver: Driver) -> None:
        random = driver.engine.random
        for _ in range(600 if THOROUGH else 150):
            for rank in driver.peers:
                size = random.choice((random.randrange(700), random.randrange(20_000)))
                driver.send(rank, driver.data(size), via=random.choice(("alloc", "prepare")))
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not driver.errors
        module = usnic(driver)
        counted.update(module.statistics.nonzero())
        (endpoint,) = module.endpoints.values()
        assert endpoint.reliability.next_sequence < 0xFF80, "the numbers have not wrapped"
        endpoint.reliability.check_invariants()

    made = world(seed=seed, plan=lossy(rate), flags=flags)
    made.run(program)
    made.counter.require("drop", "duplicate", "reorder", "corrupt")
    for name in (
        "num_resends",
        *(["num_timeout_retrans"] if rate > 0.1 else []),  # few losses cost no timeout
        "num_fast_retrans",
        "num_selective_acks",
        "num_replayed_recvs",
        "num_oow_low_recvs",
        "num_dup_acks",
        "num_old_dup_acks",
        "num_window_full",
        "num_crc_errors",
    ):
        assert counted[name], f"{name} stayed 0"
    held = counted["num_total_recvs"] - counted["num_recv_reposts"]
    assert 0 <= held <= 2, "a buffer of each rank may be held for its bookkeeping"


def test_a_forged_packet_with_a_valid_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever knows addresses and numbers, and not the job's key, gets nothing in."""
    monkeypatch.setattr(Wire, "entropy", lambda wire, count: bytes(count))

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        driver.world.shared[driver.rank] = usnic(driver)
        driver.world.meet(driver)
        if driver.rank == 0:
            target: UsnicModule = driver.world.shared[1]
            socket = driver.context.network.datagram(driver.context.network.interfaces()[0].address)
            for key in (driver.context.job_key, b"x" * 32):
                packet = memoryview(bytearray(SEAL_SIZE + HEADER_SIZE + 4))
                headers.pack_into(Header(0, FRAG, 0, 0, 4, 0, 0x41), packet[SEAL_SIZE:])
                if key != driver.context.job_key:
                    Seal(key, 0, 0).close(packet, recipient(1, 0))
                for channel in range(2):
                    assert socket.send(packet, Address(*target.record.addresses[channel]))
            socket.close()
        driver.idle(10 * MS)
        driver.world.meet(driver)
        if driver.rank == 1:
            assert not driver.inbox
            module = usnic(driver)
            assert module.statistics.num_crc_errors == 4
            assert module.statistics.num_ack_sends == 0
            assert module.endpoints[0].reliability.arrived.expected == 0
        driver.world.meet(driver)
        if driver.rank == 0:
            driver.send(1, driver.data(4))
        driver.quiesce()
        driver.check_inbox(ordered=False)

    world().run(program)


@pytest.mark.parametrize("survives", [True, False])
def test_the_end_of_patience(survives: bool) -> None:
    """With a limit, an outage that ends before the last try is survived, and no longer one.

    Where agents are not asked; what they change is in `test_doubts.py`.
    """
    limits = Limits(retries_max=4)
    last_try = limits.patience - limits.timeout(5)

    def plan(driver: Driver) -> Sequence[Fault]:
        hole = BlackHole(driver.engine, driver.world.counter, gives_up=SECOND, active=True)
        return [hole] if driver.rank == 0 else []

    def program(driver: Driver) -> None:
        if driver.rank == 1:
            driver.idle(10 * SECOND)
            return
        (hole,) = driver.faults
        assert isinstance(hole, BlackHole)
        driver.rails(1)
        begun = driver.engine.now()
        sent = [driver.post(1, driver.data(size), flags=0) for size in (100, 5000)]
        driver.idle(last_try - MS if survives else last_try + 2 * MS)
        hole.close()
        driver.wait(lambda: not driver.open_fragments, "completions", 10 * SECOND)
        statuses = {status for fragment in sent if fragment for _, status in fragment.completions}
        if survives:
            assert not driver.errors
            assert statuses == {0}
        else:
            assert [error.rank for error in driver.errors] == [1]
            reason = driver.errors[0].reason
            assert "tried 5 times without an answer" in reason
            assert "the path is unknown" in reason
            assert statuses == {UNREACHABLE}
            assert driver.engine.now() - begun < limits.patience + 10 * MS
            again = driver.post(1, driver.data(10))
            assert again is None or not again.accepted

    made = world(plan=plan, retries_max=4, btl_base_probe_timeout_ms=0)
    made.run(program)
    made.counter.require("black hole")


def test_a_peer_that_computes_for_a_minute_is_well() -> None:
    """Without a limit, which is the default, silence is no reason to give up a peer."""

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        if driver.rank == 1:
            driver.compute(60 * SECOND)
        else:
            driver.post(1, driver.data(3000))
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not driver.errors
        if driver.rank == 0:
            counted = usnic(driver).statistics
            assert 60 < counted.num_resends < 120, "three packets, every 2 s at last"

    world().run(program)


def test_the_fast_receive_path() -> None:
    """A tiny fragment is handed over before anything is noted; the ACK follows all the same."""

    def program(driver: Driver) -> None:
        module = usnic(driver)
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        deferred: list[bool] = []
        if driver.rank == 1:
            first = module.isn
            endpoint = module.endpoints[0]
            expected = endpoint.reliability.arrived.expected

            def seen(arrival: object) -> None:
                deferred.append(endpoint.reliability.arrived.expected == expected)

            driver.on_arrival = seen  # type: ignore[assignment]
            assert first >= 0
        else:
            driver.send(1, driver.data(50))
        driver.quiesce()
        driver.idle(MS)
        if driver.rank == 1:
            assert deferred == [True]
            arrived = module.endpoints[0].reliability.arrived
            assert arrived.expected == (expected + 1) % 65536
        else:
            assert module.endpoints[1].reliability.outstanding == 0
            assert module.statistics.num_resends == 0

    world().run(program)
