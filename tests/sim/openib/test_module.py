"""openib's modules in virtual worlds: connections, queues, rings, and what becomes of failures."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.fragment import Fragment
from ompy.frameworks.btl import ERROR_NONFATAL
from ompy.frameworks.paths.path_life import Life
from ompy.net.faults.middleware import Drop, Fault
from ompy_components.btl.openib.connections.broken_notices import BrokenNotices
from ompy_components.btl.openib.headers import EP_BROKEN, EP_EAGER_RDMA_ERROR
from ompy_components.nic.hca.headers import BASE, SEAL_SIZE

from tests.support.effort import effort
from tests.support.openib_worlds import RAILS, Errors, Switch, delivered, openib, world

MS = SECOND // 1000
SHARED = "S,128,64,48,32:S,1024,64,48,32:S,12288,64,48,32:S,65536,32,16,16"


# -- connections


@pytest.mark.parametrize("seed", range(effort(12)))
def test_everybody_connects_to_everybody_at_once(seed: int) -> None:
    """Whoever is quicker, and whatever HELLOs are lost: one attempt each, and one connection."""
    crossed = [0]

    def plan(driver: Driver) -> Sequence[Fault]:
        return [Drop(driver.engine, driver.world.counter, rate=0.3 if seed % 2 else 0.0)]

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        for rank in driver.peers:
            for size in (50, 500):
                driver.send(rank, driver.data(size))
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not errors.told
        for endpoint in openib(driver).endpoints.values():
            assert endpoint.path.up
            assert endpoint.path.life.number == 1
        crossed[0] += openib(driver).connecting.read

    made = world(3, seed=seed, plan=plan)
    made.run(program)
    assert crossed[0] >= 6
    if seed % 2:
        made.counter.require("drop")


def test_a_peer_that_computes_is_waited_for() -> None:
    """It answers no HELLO for five seconds, and that is no error."""

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        if driver.rank == 1:
            driver.compute(5 * SECOND)
        driver.send(driver.peers[0], driver.data(100))
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not errors.told

    world().run(program)


def test_a_peer_that_begins_anew_before_it_is_agreed() -> None:
    """World 748 of the sim sweep: what was made for the first attempt is given back before."""
    seen = []

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        driver.rails(driver.peers[0])
        (endpoint,) = openib(driver).endpoints.values()
        if driver.rank == 0:
            driver.post(driver.peers[0], driver.data(100))
            endpoint.path.broke("its first attempt has failed")
            driver.wait(lambda: bool(errors.mended), "a second attempt", 5 * SECOND)
            driver.send(driver.peers[0], driver.data(200))
        else:
            driver.wait(lambda: endpoint.path.life.life is Life.AGREEING, "a HELLO")
            seen.append(endpoint.path.life.number)
            driver.wait(lambda: endpoint.path.life.number == 2, "another one", 5 * SECOND)
        driver.wait(lambda: endpoint.path.up, "the connection", 5 * SECOND)
        driver.wait(lambda: not driver.open_fragments, "completions")
        driver.world.meet(driver)
        assert endpoint.path.life.number == 2
        delivered(driver)

    world(rails=RAILS[:1]).run(program)  # nor is there a rail to tell of the first one
    assert seen == [1], "the other end was in the first attempt"


# -- queues


def flood(driver: Driver, sizes: Sequence[int], count: int) -> list[Fragment]:
    """Offer many fragments to the first peer, as long as they are taken."""
    taken = []
    for number in range(count):
        offered = driver.post(driver.peers[0], driver.data(sizes[number % len(sizes)]))
        if offered is not None and offered.accepted:
            taken.append(offered)
    return taken


@pytest.mark.parametrize("resize", [1, 0])
def test_a_shared_queue_grows_when_few_buffers_are_left(resize: int) -> None:
    """The receiver computes meanwhile: the sender finds it not ready, and all arrives."""

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        driver.send(driver.peers[0], driver.data(10))
        driver.quiesce()
        if driver.rank == 0:
            assert len(flood(driver, (600,), 120)) == 120
        else:
            driver.compute(50 * MS)
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not errors.told
        if driver.rank == 1:
            assert bool(openib(driver).counters().get("srq_resizes")) is bool(resize)

    queues = "S,65536,64,48,32,4,2"
    world(receive_queues=queues, enable_srq_resize=resize, use_eager_rdma=0).run(program)


def test_credits_come_back_without_traffic_the_other_way() -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            assert len(flood(driver, (60, 2000), 200)) == 200
        driver.quiesce()
        driver.check_inbox(ordered=False)
        counted = openib(driver).counters()
        if driver.rank == 0:
            assert counted["pending"] > 100
        else:
            assert counted["credit_messages"] > 20
            assert counted["sends"] <= counted["credit_messages"] + 3

    queues = "P,128,6,4,2,2:P,4096,4:P,65536,2"
    world(receive_queues=queues, use_eager_rdma=0, use_message_coalescing=0).run(program)


@pytest.mark.parametrize("peers", [0, 1, 2])
def test_rings_for_peers_that_send_much(peers: int) -> None:
    """From the sixteenth fragment on, for so many peers; a ring is used as long as it has slots."""

    def program(driver: Driver) -> None:
        for number in range(40):
            for rank in driver.peers:
                driver.send(rank, driver.data(100 + number))
                driver.quiesce()
                module = openib(driver)
                rings = sum(end.incoming is not None for end in module.endpoints.values())
                assert len(module.receiving.rings) == rings <= peers
        driver.check_inbox(ordered=False)
        counted = openib(driver).counters()
        assert rings == min(peers, 2)
        written = counted.get("eager_rdma", 0)
        assert written <= 2 * 25, "none before there is a ring"
        assert bool(peers) or not written

    settings = {"eager_rdma_num": 16, "eager_rdma_threshold": 16}
    world(3, receive_queues=SHARED, max_eager_rdma=peers, **settings).run(program)


# -- failures


def connected(driver: Driver, *, ring: bool = False) -> Errors:
    """Connect both rails, and have a ring on the first if that is asked for."""
    errors = Errors(driver)
    for _ in range(6 if ring else 1):
        driver.post(driver.peers[0], driver.data(20))
        driver.post(driver.peers[0], driver.data(20), rail=1)
        driver.quiesce()
    driver.world.meet(driver)
    return errors


def test_coalesced_fragments_are_completed_each_by_itself() -> None:
    """They wait as a few; the path breaks; each ends badly, in the order they were sent."""
    switch = Switch()

    def program(driver: Driver) -> None:
        errors = connected(driver)
        if driver.rank == 1:
            driver.compute(20 * MS)
            driver.wait(lambda: bool(errors.told), "news of the other end")
            return
        ended: list[Fragment] = []
        driver.on_completion = ended.append
        switch.broken = True
        sent = flood(driver, (20,), 60)
        module = openib(driver)
        assert module.sending.counted["coalesced"] > 30
        (endpoint,) = module.endpoints.values()
        assert len(endpoint.pending) < 25, "they wait as a few"
        driver.wait(lambda: len(ended) == 60, "completions", 2 * SECOND)
        assert ended == sent
        assert not any(fragment.good for fragment in sent)
        assert errors.told == [(0, 1, ERROR_NONFATAL)]

    made = world(switch=switch, use_eager_rdma=0)
    made.run(program)
    made.counter.require("rail")


def test_the_other_end_is_told_over_the_other_rail() -> None:
    """It has nothing under way itself, and would never notice."""
    switch = Switch()
    told: dict[int, int] = {}

    def program(driver: Driver) -> None:
        errors = connected(driver)
        switch.broken = True
        if driver.rank == 0:
            driver.post(1, driver.data(30))
        driver.wait(lambda: bool(errors.told), "the error", 2 * SECOND)
        told[driver.rank] = driver.engine.now()
        assert [index for index, _, _ in errors.told] == [0]
        if driver.rank == 1:
            assert errors.reasons == ["the other end has given the path up"]
        driver.world.meet(driver)

    made = world(switch=switch)
    made.run(program)
    made.counter.require("rail")
    assert 0 < told[1] - told[0] < MS


def test_alone_it_learns_of_it_when_the_rail_is_back() -> None:
    """With one rail nobody can be told; a new attempt of the peer tells it."""
    switch = Switch()

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        driver.send(driver.peers[0], driver.data(20))
        driver.quiesce()
        driver.world.meet(driver)
        switch.broken = True
        if driver.rank == 0:
            driver.post(1, driver.data(30))
            driver.wait(lambda: bool(errors.told), "the error", 2 * SECOND)
        driver.world.meet(driver)
        assert len(errors.told) == (driver.rank == 0)
        switch.broken = False
        driver.wait(lambda: bool(errors.mended), "the rail to be healed", 3 * SECOND)
        assert len(errors.told) == 1
        driver.world.meet(driver)
        driver.send(driver.peers[0], driver.data(20))
        driver.wait(lambda: not driver.open_fragments, "completion")

    world(switch=switch, rails=RAILS[:1]).run(program)


def test_one_peer_s_failure_is_no_other_s() -> None:
    """Tokens are the module's; what waits for them to another peer is sent all the same."""
    switch = Switch(victim=1)

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        for rank in driver.peers:
            driver.send(rank, driver.data(20))
        driver.quiesce()
        driver.world.meet(driver)
        if driver.rank == 0:
            switch.broken = True
            for _ in range(30):
                for rank in (1, 2):
                    driver.post(rank, driver.data(5000))
            assert openib(driver).sending.counted["pending"] > 20
            driver.wait(lambda: not driver.open_fragments, "completions", 5 * SECOND)
            assert errors.told == [(0, 1, ERROR_NONFATAL)]
            large = [one for one in driver.sent if len(one.data) == 5000]
            assert all(one.good == (one.target == 2) for one in large)
        driver.world.meet(driver)
        if driver.rank == 2:
            assert len(driver.received_from(0)) == 31
            delivered(driver)

    made = world(3, switch=switch)
    made.run(program)
    made.counter.require("rail")


@pytest.mark.parametrize("broken_is_told", [True, False])
def test_a_stuck_slot_is_passed_over(monkeypatch: pytest.MonkeyPatch, broken_is_told: bool) -> None:
    """A write through one queue pair is lost, the next one through another arrived and is good.

    The receiver waits for the first, which will never come. The sender tells it so: also where
    the receiver does not hear that the connection is broken.
    """
    switch = Switch()
    lost: set[int] = set()
    notify = BrokenNotices.notify
    told: list[int] = []

    def notified(self: BrokenNotices, endpoint: object, kind: int, number: int = 0) -> bool:
        told.append(kind)
        if kind != EP_BROKEN or broken_is_told:
            notify(self, endpoint, kind, number)  # type: ignore[arg-type]
        return True

    monkeypatch.setattr(BrokenNotices, "notify", notified)

    def strikes(rank: int, packet: bytes) -> bool:
        if rank or len(packet) < SEAL_SIZE + BASE.size:
            return False
        return bool(lost & {*BASE.unpack_from(packet, SEAL_SIZE)[5:7]})

    def program(driver: Driver) -> None:
        errors = connected(driver, ring=True)
        module = openib(driver)
        (endpoint,) = module.endpoints.values()
        if driver.rank == 0:
            assert endpoint.outgoing is not None
            assert endpoint.outgoing.tokens >= 2
            lost.add(endpoint.pairs[1].number)
            switch.strikes = strikes
            stuck = driver.post(1, driver.data(500))
            behind = driver.post(1, driver.data(50))
            assert stuck is not None
            assert behind is not None
            driver.wait(lambda: behind.done, "the second write")
            assert behind.good
            assert not stuck.done
            driver.idle(100 * MS)
            there = driver.world.drivers[1].inbox
            assert behind.data not in [item.data for item in there], "the receiver is stuck"
            switch.broken = True
            driver.wait(lambda: stuck.done, "the first write", 2 * SECOND)
            assert not stuck.good
        driver.wait(
            lambda: any(len(item.data) == 50 for item in driver.inbox) or driver.rank == 0,
            "what lies behind the stuck slot",
            3 * SECOND,
        )
        driver.world.meet(driver)
        delivered(driver)
        assert bool(errors.told) is (broken_is_told or driver.rank == 0)

    made = world(switch=switch, receive_queues=SHARED)
    made.run(program)
    made.counter.require("rail")
    assert told[:2] == [EP_BROKEN, EP_EAGER_RDMA_ERROR]


def test_a_port_that_is_down_is_no_way_to_begin() -> None:
    """What is sent over it ends badly at once, after the error; then it heals."""
    switch = Switch(kind="down")

    def program(driver: Driver) -> None:
        errors = connected(driver)
        switch.broken = True
        driver.post(driver.peers[0], driver.data(30))
        begun = driver.engine.now()
        driver.wait(lambda: bool(errors.told), "the error", SECOND)
        assert driver.engine.now() - begun < 50 * MS
        driver.wait(lambda: not driver.open_fragments, "completions", SECOND)
        refused = driver.post(driver.peers[0], driver.data(30))
        assert refused is not None
        assert not refused.accepted
        driver.idle(SECOND)
        driver.world.meet(driver)
        assert not errors.mended
        switch.broken = False
        driver.wait(lambda: bool(errors.mended), "the rail to be healed", SECOND)
        driver.world.meet(driver)

    made = world(switch=switch)
    made.run(program)
    made.counter.require("rail")


def test_a_device_that_is_gone_reports_nothing() -> None:
    """All that it had is completed badly, the other port goes on, and nobody tries to mend it."""

    def program(driver: Driver) -> None:
        errors = connected(driver)
        if driver.rank == 0:
            flood(driver, (20, 5000), 20)
            openib(driver).nic.report_fatal("it has been pulled out")
        driver.wait(lambda: bool(errors.told), "the error", 3 * SECOND)
        driver.wait(lambda: not driver.open_fragments, "completions", 3 * SECOND)
        # its own rank hears once, for all peers
        assert errors.told == [(0, -1 if driver.rank == 0 else 0, ERROR_NONFATAL)]
        driver.idle(SECOND)
        driver.world.meet(driver)
        delivered(driver)
        before = len(driver.inbox)
        driver.world.meet(driver)
        driver.post(driver.peers[0], driver.data(100), rail=1)
        driver.wait(lambda: len(driver.inbox) > before, "news over the other port")
        assert not errors.mended

    world().run(program)
