"""What two ranks do with a fabric, over every provider and with every habit of the device."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.frameworks.nic.fabric import Caps, MrMode
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.virtual.virtual_network import Rail

from tests.support.effort import effort
from tests.support.fabric_job import Rank, both, run
from tests.support.fabric_programs import OFFERED, PROGRAMS
from tests.support.fabric_streams import random_work

PROVIDERS = (
    "emulated",
    "emulated;offset",
    "emulated;prov_key",
    "emulated;basic",
    "emulated;scalable",
    "emulated;offset_prov_key",
)
HABITS: dict[str, dict[str, Any]] = {
    "again": {"again_every": 2},
    "small": {"tx_size": 1, "rx_size": 2},
    "late": {"completion_delay_us": 300},
    "all": {"again_every": 3, "tx_size": 5, "completion_delay_us": 50},
}
NARROW = Rail("rail0", window=1000)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_provider(name: str, provider: str) -> None:
    _, counter = run(both(PROGRAMS[name], provider))
    counter.require("connecting")


@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_habit(name: str, habit: str) -> None:
    _, counter = run(both(PROGRAMS[name]), rail=NARROW, **HABITS[habit])
    if habit == "late":
        counter.require("delayed")
    elif habit != "small" or name == "many":
        counter.require("again")


@pytest.mark.parametrize("name", PROGRAMS)
def test_who_does_not_ask_for_delivery(name: str) -> None:
    # the answer to a later read says that what came before it has arrived
    run(both(PROGRAMS[name], op_flags=Caps(0)))
    if name != "atomics":
        run(both(PROGRAMS[name], "emulated;early", caps=Caps.MSG | Caps.RMA))


def test_local_memory_is_registered_where_that_is_asked_for() -> None:
    more = {"mr_mode": OFFERED | MrMode.LOCAL}
    run(both(PROGRAMS["writes and reads"], "emulated;local", **more))
    run(both(PROGRAMS["many"], "emulated;local", **more))


RULES = {
    "a fine wire": (),
    "a bad one": (
        FaultRule("delay", probability=0.2, delay=50_000, jitter=500_000),
        FaultRule("rate_limit", rate=500_000_000, buffer=1 << 16),
    ),
}


@pytest.mark.parametrize("seed", range(effort(4)))
@pytest.mark.parametrize("rules", RULES)
def test_random_work(rules: str, seed: int) -> None:
    settings = list(HABITS.values())[seed % len(HABITS)]
    provider = PROVIDERS[seed % len(PROVIDERS)]
    _, counter = run(
        both(lambda side: random_work(side, seed, 150), provider),
        seed=seed,
        rules=RULES[rules],
        rail=NARROW if seed % 3 == 2 else None,
        **settings,
    )
    counter.require(*(rule.what for rule in RULES[rules]))


def test_one_seed_one_trace() -> None:
    def events(seed: int) -> list[Any]:
        job, _ = run(
            both(lambda side: random_work(side, 5, 60)),
            seed=seed,
            rules=RULES["a bad one"],
            trace=True,
            again_every=5,
        )
        return [job.scheduler.time, *job.events()]

    first = events(3)
    assert first == events(3)
    assert first != events(4)


@pytest.mark.nightly
def test_ten_thousand_operations_leave_nothing() -> None:
    """No region, operation, queue entry, timer or stream is left, and none piles up meanwhile."""

    def program(rank: Rank) -> None:
        side = rank.side()
        side.meet()
        if rank.rank == 0:
            most = 0
            for index in range(10_000):
                view = side.memory[8 * (index % 64) :][:8]
                region = side.domain.register(view, Caps.WRITE, 10_000 + index)
                side.write(8 * (index % 64), 8, 8 * (index % 64), index)
                if index % 64 == 63:
                    side.wait(lambda: len(side.done) >= 64, "64 writes")
                    side.done.clear()
                region.close()
                (link,) = side.domain.peers.links  # type: ignore[attr-defined]
                most = max(most, len(link.under_way))
            assert 1 < most <= 64
            side.wait(lambda: len(side.done) >= 10_000 % 64, "the last writes")
            side.done.clear()
        side.meet()
        domain = side.domain
        assert len(domain.regions) == 1  # type: ignore[attr-defined]
        side.close()
        assert not rank.nic.domains
        assert not domain.regions  # type: ignore[attr-defined]
        assert not domain.peers.links  # type: ignore[attr-defined]
        assert not rank.engine._timers.pending()

    run(program)
