"""Paths of usnic that break and are taken back: cuts, losses of the handshake, late packets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations

import pytest
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.frameworks.btl import ERROR_NONFATAL
from ompy.frameworks.paths.path_life import TRYING, Life
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.middleware import Fault, Reorder
from ompy.net.faults.scripted import ScriptedFaults
from ompy_components.btl.usnic.headers import OPEN

from tests.support.effort import THOROUGH, effort
from tests.support.scripted_world import plan_of
from tests.support.switched_rails import (
    RAILS,
    Errors,
    Switch,
    Transfers,
    delivered,
    know_rails,
)
from tests.support.usnic_worlds import header, path, usnic, world

MS = SECOND // 1000
SIZES = (60, 0, 100, 900, 60, 5000, 60, 100, 30_000, 20, 1432, 900)
STEP = 1 if THOROUGH else 41
ONE = RAILS[:1]


def exchange(driver: Driver) -> None:
    """Both ranks send in every way over the first rail, and a little over the second."""
    mine = driver.world.shared[driver.rank] = Transfers(driver)
    driver.world.meet(driver)
    (peer,) = driver.peers
    for _ in range(2):
        for number, size in enumerate(SIZES):
            driver.post(peer, driver.data(size))
            if number % 4 == 0:
                driver.idle(20_000)
        if len(driver.modules) > 1:
            driver.post(peer, driver.data(500), rail=1)
        mine.begin("put", driver.world.shared[peer])
    driver.wait(lambda: not (driver.open_fragments or mine.open), "completions", 20 * SECOND)


def use_again(driver: Driver, errors: Errors) -> None:
    """Both ranks, over the path that was healed."""
    driver.world.meet(driver)
    before = len(driver.inbox)
    driver.world.meet(driver)
    for size in SIZES:
        driver.send(driver.peers[0], driver.data(size))
    driver.wait(lambda: len(driver.inbox) >= before + len(SIZES), "news over the healed path")
    driver.wait(lambda: not driver.open_fragments, "completions")
    driver.world.meet(driver)
    assert len(errors.told) == len(errors.mended), "a path broke that nobody has cut"
    delivered(driver)


@cache
def packets() -> int:
    """How many packets of the first rail an undisturbed exchange has."""
    switch = Switch()

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        exchange(driver)
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not errors.told
        mine = driver.world.shared[driver.rank]
        assert [status for _, status, _ in mine.statuses] == [0, 0]

    world(switch=switch).run(program)
    return switch.packets


@pytest.mark.parametrize("kind", ["down", "hole"])
@pytest.mark.parametrize("at", range(1, 240, STEP))
def test_cut_at_a_packet(at: int, kind: str) -> None:
    """Both ends are told once, before anything ends badly; what is good is there; it heals."""
    assert packets() < 240, "every packet is cut at"
    if at > packets():
        pytest.skip("the exchange is over")
    switch = Switch(kind=kind, at=at)

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        (peer,) = driver.peers
        exchange(driver)
        if not switch.broken:  # with this seed there were fewer packets: cut when all is over
            switch.broken, switch.at = True, None
        driver.post(peer, driver.data(60))  # the last packet may be an ACK that nobody misses
        driver.wait(lambda: bool(errors.told), "the error callback", 5 * SECOND)
        assert errors.told == [(0, peer, ERROR_NONFATAL)]
        driver.wait(lambda: not driver.open_fragments, "completions", SECOND)
        driver.idle(SECOND // 2)  # stragglers
        driver.world.meet(driver)
        delivered(driver)
        for fragment in driver.sent:
            assert fragment.good or fragment.errors_before
            assert fragment.good or fragment.module is driver.modules[0], "the other rail is well"
        assert not errors.mended
        driver.world.meet(driver)
        switch.broken = False
        again = driver.engine.now()
        driver.wait(lambda: bool(errors.mended), "the rail to be healed", 5 * SECOND)
        assert errors.mended[0][0] == 0
        assert errors.mended[0][1] - again < SECOND
        use_again(driver, errors)
        assert path(driver).path.life.number == 2

    made = world(switch=switch, seed=at)
    made.run(program)
    made.counter.require("rail")


def heal_with_losses(lost: Sequence[int], victim: int | None, *, spare: bool) -> int:
    """Break a path at both ends or at one, and heal it, while some OPENs are lost.

    Args:
        lost: which of them, of both ranks together.
        victim: the rank that notices; None: both.
        spare: there is another rail, by which the other one is told.

    Returns:
        How many OPENs there were.
    """
    switch = Switch()
    seen = 0

    def strikes(_rank: int, packet: bytes) -> bool:
        nonlocal seen
        if header(packet).kind != OPEN:
            return False
        seen += 1
        return seen - 1 in lost

    switch.strikes = strikes

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        (peer,) = driver.peers
        know_rails(driver)
        driver.send(peer, driver.data(2000))
        driver.wait(lambda: not driver.open_fragments, "completion")
        driver.world.meet(driver)
        if victim in (None, driver.rank):
            path(driver).path.broke("it is pulled")
        driver.wait(lambda: bool(errors.mended), "the path to be healed", 10 * SECOND)
        driver.world.meet(driver)
        driver.idle(SECOND)
        driver.world.meet(driver)
        use_again(driver, errors)
        assert len(errors.told) == 1, "one break makes one"

    made = world(switch=switch, rails=RAILS if spare else ONE, seed=7)
    made.run(program)
    if lost:
        made.counter.require("rail")
    return seen


@pytest.mark.parametrize("spare", [True, False], ids=["two rails", "one rail"])
@pytest.mark.parametrize("victim", [0, 1, None], ids=["lower", "higher", "both"])
def test_every_single_and_double_loss_of_the_handshake(victim: int | None, spare: bool) -> None:
    """Whoever noticed the break, with and without another rail to hear of it."""
    count = heal_with_losses((), victim, spare=spare)
    assert 3 <= count <= 8, "an OPEN, its answer, and the answer to that"
    hit = range(5 if THOROUGH else 4)
    cases = [(one,) for one in hit] + list(combinations(hit, 2))
    for lost in cases if THOROUGH else cases[:: 2 if victim is None and spare else 4]:
        heal_with_losses([one for one in lost if one < count], victim, spare=spare)


def test_packets_of_the_epoch_before_are_not_taken() -> None:
    """A wire that holds packets for two seconds: they come out when the path is healed."""
    old = []

    def plan(driver: Driver) -> Sequence[Fault]:
        return [Reorder(driver.engine, driver.world.counter, rate=0.3, delay=2 * SECOND)]

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        (peer,) = driver.peers
        exchange_begun = driver.world.shared[driver.rank] = Transfers(driver)
        driver.world.meet(driver)
        for size in SIZES:
            driver.post(peer, driver.data(size))
        exchange_begun.begin("put", driver.world.shared[peer])
        driver.idle(MS)
        path(driver).path.broke("it is pulled")
        driver.wait(lambda: not driver.open_fragments, "completions")
        driver.wait(lambda: bool(errors.mended), "the path to be healed", 10 * SECOND)
        driver.world.meet(driver)
        memory = bytes(exchange_begun.memory)
        driver.idle(3 * SECOND)
        assert bytes(exchange_begun.memory) == memory, "a put of the epoch before was taken"
        use_again(driver, errors)
        old.append(usnic(driver).statistics.num_old_epoch_recvs)

    made = world(plan=plan, rails=ONE)
    made.run(program)
    made.counter.require("reorder")
    assert all(old), "no packet of the epoch before came late"


@pytest.mark.parametrize("spare", [True, False], ids=["two rails", "one rail"])
def test_what_comes_over_a_path_that_was_given_up_is_not_acknowledged(spare: bool) -> None:
    """One end has given up and the other goes on: good still means delivered."""
    switch = Switch()
    refused = []

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        if driver.rank == 0:
            path(driver).path.broke("it is pulled")
        for size in SIZES:  # the other rank has not noticed
            driver.post(driver.peers[0], driver.data(size))
        driver.wait(lambda: not driver.open_fragments, "completions", 10 * SECOND)
        driver.wait(lambda: bool(errors.mended), "the path to be healed", 10 * SECOND)
        driver.world.meet(driver)
        delivered(driver)
        refused.append(usnic(driver).statistics.num_given_up_recvs)
        use_again(driver, errors)

    world(switch=switch, rails=RAILS if spare else ONE).run(program)
    assert any(refused), "nothing came over the path that was given up"


@pytest.mark.parametrize("seed", range(effort(1)))
def test_a_flapping_rail(seed: int) -> None:
    """Told and healed in turn at each end; nothing is lost, twice or altered; at last it works."""
    switch = Switch(kind="down" if seed % 2 else "hole", victim=None if seed % 3 else 1)
    lasts = 3 * SECOND

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        random = driver.engine.random
        mine = driver.world.shared[driver.rank] = Transfers(driver)
        driver.world.meet(driver)
        (peer,) = driver.peers
        toggle = random.randrange(300) * MS
        while driver.engine.now() < lasts:
            if driver.rank == 0 and driver.engine.now() > toggle:
                switch.broken = not switch.broken
                least = 20 if errors.told or not switch.broken else 700
                toggle += random.randrange(least, 900) * MS
            for _ in range(random.randrange(8)):
                driver.post(peer, driver.data(random.choice((20, 60, 900, 5000, 40_000))))
            if random.random() < 0.3:
                mine.begin("put", driver.world.shared[peer])
            driver.idle(random.choice((10_000, 1 * MS, 40 * MS)))
        switch.broken = False
        driver.wait(lambda: not (driver.open_fragments or mine.open), "completions", 20 * SECOND)
        driver.world.meet(driver)
        driver.wait(lambda: path(driver).path.up, "the path to be healed", 60 * SECOND)
        driver.idle(SECOND)
        driver.world.meet(driver)
        delivered(driver)
        assert len(errors.told) >= 1
        use_again(driver, errors)

    made = world(switch=switch, seed=seed, rails=RAILS if seed % 4 < 2 else ONE)
    made.run(program)
    made.counter.require("rail")


def test_a_path_that_takes_small_packets_only_is_not_taken_back() -> None:
    """The agents reach each other; a packet of the full size does not get through."""
    made: list[ScriptedFaults] = []
    hole = FaultRule("black_hole", above=1000, since=0, until=3 * SECOND)

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        path(driver).path.broke("it is pulled")
        driver.idle(2 * SECOND)
        assert not errors.mended
        assert path(driver).path.life.life in TRYING, "it is tried on"
        driver.wait(lambda: bool(errors.mended), "the path to be healed", 3 * SECOND)
        use_again(driver, errors)

    world(plan=plan_of((hole,), made), rails=ONE).run(program)
    assert sum(sum(one.delivered) for one in made) > 5


@pytest.mark.parametrize("busy", [0, 1])
def test_a_peer_that_computes_is_waited_for(busy: int) -> None:
    """It answers when it comes back, in the epoch that was begun long before."""

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        path(driver).path.broke("it is pulled")
        if driver.rank == busy:
            driver.compute(5 * SECOND)
        begun = driver.engine.now()
        driver.wait(lambda: bool(errors.mended), "the path to be healed", 10 * SECOND)
        assert driver.rank != busy or driver.engine.now() - begun < SECOND
        use_again(driver, errors)
        assert len(errors.told) == 1

    world(rails=ONE).run(program)


def test_a_device_that_is_gone_is_not_mended() -> None:
    """The other end asks on, and nobody answers; the end of the job does not wait for it."""
    gone = FaultRule("nic_gone", ranks=(1,), rails=("first",), since=SECOND // 2)
    made: list[ScriptedFaults] = []

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        driver.idle(SECOND)
        driver.post(driver.peers[0], driver.data(100))
        driver.wait(lambda: bool(errors.told), "the error callback", 5 * SECOND)
        driver.idle(3 * SECOND)
        driver.world.meet(driver)
        assert not errors.mended
        assert path(driver).path.life.life is Life.OVER or driver.rank != 1

    world(plan=plan_of((gone,), made)).run(program)
    assert sum(sum(one.delivered) for one in made)


def test_nothing_is_begun_anew_without_a_pml_that_fails_over() -> None:
    """As before: the path is gone for good, and an OPEN is not answered."""

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        path(driver).path.broke("it is pulled")
        driver.idle(3 * SECOND)
        assert not path(driver).path.up
        assert not usnic(driver).statistics.num_probe_sends
        driver.world.meet(driver)

    world(rails=ONE).run(program)
