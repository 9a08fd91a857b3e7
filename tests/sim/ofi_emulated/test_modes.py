"""Which infos meet which hints, and what the modes of providers come to."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from ompy.frameworks.nic.fabric import Caps, FabricError, Hints, MrMode, Progress
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Values
from ompy_components.nic.ofi_emulated.choice import chosen
from ompy_components.nic.ofi_emulated.providers import NAMES

from tests.sim.ofi_emulated.test_programs import PROVIDERS
from tests.support.fabric_job import DEFAULTS, Rank, both, run
from tests.support.fabric_programs import NEEDED, OFFERED, PROGRAMS, best

NEVER = ("emulated;local", "emulated;mmu_notify", "emulated;rma_event", "emulated;endpoint")
REFUSED = MrMode.LOCAL | MrMode.MMU_NOTIFY | MrMode.RMA_EVENT | MrMode.ENDPOINT


def names(hints: Hints, **settings: Any) -> list[str]:
    job, _ = run(lambda rank: [info.provider for info in rank.nic.infos(hints)], **settings)
    assert job.results[0] == job.results[1]  # type: ignore[attr-defined]
    found: list[str] = job.results[0]  # type: ignore[attr-defined]
    return found


def test_who_offers_what_the_seed_names_gets_none_of_the_others() -> None:
    found = names(Hints(NEEDED, mr_mode=OFFERED, op_flags=Caps.DELIVERY_COMPLETE))
    assert found == [*PROVIDERS, "emulated;early"]
    assert not set(found) & set(NEVER)
    assert set(names(Hints(Caps.RMA, mr_mode=OFFERED | REFUSED))) == set(NAMES)


@pytest.mark.parametrize("name", NEVER)
def test_what_is_offered_alone_is_enough(name: str) -> None:
    mode = MrMode[name.partition(";")[2].upper()]
    assert name in names(Hints(Caps.RMA, mr_mode=OFFERED | mode))
    assert name not in names(Hints(Caps.RMA, mr_mode=(OFFERED | REFUSED) & ~mode))


def test_each_bit_counts() -> None:
    assert "emulated" not in names(Hints(Caps.RMA, mr_mode=OFFERED & ~MrMode.VIRT_ADDR))
    for bit in OFFERED:
        left = names(Hints(Caps.RMA, mr_mode=OFFERED & ~bit))
        assert not {"emulated;prov_key", "emulated;basic"} & set(left)
        assert {"emulated;offset", "emulated;scalable"} <= set(left)
    assert "emulated;prov_key" in names(Hints(Caps.RMA, mr_mode=MrMode.BASIC))


def test_other_hints() -> None:
    everything = OFFERED | REFUSED
    assert names(Hints(Caps.RMA, mr_mode=everything, datagram=True)) == []
    assert names(Hints(Caps.RMA, mr_mode=everything, progress=Progress.AUTO)) == []
    assert names(Hints(Caps.TAGGED, mr_mode=everything)) == []
    assert names(Hints(Caps.RMA, mr_mode=everything, provider="emulated;offset")) == [
        "emulated;offset"
    ]
    assert "emulated;plain" in names(Hints(Caps.RMA, mr_mode=everything))
    assert "emulated;plain" not in names(Hints(Caps.ATOMIC, mr_mode=everything))
    delivery = Hints(Caps.RMA, mr_mode=everything, op_flags=Caps.DELIVERY_COMPLETE)
    assert "emulated;plain" not in names(delivery)


def test_parameters_overrule_every_provider() -> None:
    hints = Hints(NEEDED, mr_mode=OFFERED, op_flags=Caps.DELIVERY_COMPLETE)
    assert names(hints, providers="emulated;offset,emulated") == ["emulated;offset", "emulated"]
    assert names(hints, mr_mode="local") == []
    assert len(names(hints, mr_mode="none", providers="emulated;local")) == 1
    assert names(hints, atomics="no") == []
    assert names(hints, delivery_complete="unsupported") == []
    for wrong in ({"providers": "verbs"}, {"mr_mode": "virtual"}):
        with pytest.raises(NotAvailable, match="there is no"):
            chosen(Values({**DEFAULTS, **wrong}))


@pytest.mark.parametrize("name", NEVER[1:])
def test_what_the_interface_has_no_calls_for_is_no_domain(name: str) -> None:
    def program(rank: Rank) -> None:
        info = best(rank.nic, name, mr_mode=OFFERED | REFUSED)
        with pytest.raises(FabricError) as told:
            rank.nic.domain(info)
        assert told.value.errno == errno.ENOSYS

    run(program)


def test_local_memory_without_a_registration_is_refused() -> None:
    def program(rank: Rank) -> None:
        side = rank.side("emulated;local", mr_mode=OFFERED | MrMode.LOCAL)
        region = side.domain.register(side.memory[:64], Caps.WRITE, 99)
        for descriptor in (None, region.descriptor):
            with pytest.raises(FabricError) as told:
                side.endpoint.write(side.memory[60:68], descriptor, side.to, 0, 0, "")
            assert told.value.errno == errno.EINVAL
        region.close()
        with pytest.raises(FabricError):
            side.endpoint.write(side.memory[:8], region.descriptor, side.to, 0, 0, "")
        side.meet()
        side.close()

    run(program)


def test_keys_and_addresses() -> None:
    def program(rank: Rank, provider: str) -> tuple[int, int]:
        side = rank.side(provider)
        side.meet()
        found = side.region.base, side.region.key
        side.close()
        return found

    for provider in PROVIDERS:
        job, _ = run(lambda rank, provider=provider: program(rank, provider))  # type: ignore[misc]
        base, key = job.results[0]  # type: ignore[attr-defined]
        assert (base == 0) is (
            provider.partition(";")[2] in ("offset", "scalable", "offset_prov_key")
        )
        assert (key == 0x1234) is (provider in ("emulated", "emulated;offset", "emulated;scalable"))


def test_delivery_complete_waits_for_the_peer_and_ignoring_it_does_not() -> None:
    """The peer computes for a second before it reads its queue."""

    def program(rank: Rank, provider: str) -> float:
        side = rank.side(provider, caps=Caps.MSG | Caps.RMA)
        side.meet()
        if rank.rank == 1:
            rank.compute(1)
        else:
            begun = rank.engine.now()
            side.write(0, 1000, 0, "write")
            side.good("write")
            took = (rank.engine.now() - begun) / 1e9
        side.meet()
        side.close()
        return took if rank.rank == 0 else 0

    job, _ = run(lambda rank: program(rank, "emulated"))
    assert 0.9 < job.results[0] < 1.1  # type: ignore[attr-defined]
    job, _ = run(lambda rank: program(rank, "emulated;early"))
    assert job.results[0] < 0.1  # type: ignore[attr-defined]


def test_scalable_endpoints() -> None:
    def program(rank: Rank) -> None:
        info = best(rank.nic, "emulated")
        domain = rank.nic.domain(info)
        vector = domain.address_vector()
        queues = [domain.completion_queue() for _ in range(3)]
        with pytest.raises(FabricError):
            domain.scalable_endpoint(vector, info.tx_contexts_max + 1)
        whole = domain.scalable_endpoint(vector, 3)
        contexts = [whole.context(index, queue) for index, queue in enumerate(queues)]
        with pytest.raises(FabricError):
            whole.context(1, queues[0])
        whole.enable()
        for context in contexts:
            context.enable()
        assert {context.name() for context in contexts} == {whole.name()}
        to = vector.insert(rank.swap(whole.name()))
        rooms = [memoryview(bytearray(8)) for _ in contexts]
        for index, context in enumerate(contexts):
            assert context.receive(rooms[index], None, ("r", index))
        word = memoryview(b"message.")
        for index, context in enumerate(contexts):
            while not context.send(word, None, to, ("s", index)):
                queues[0].read(1)
                rank.engine.wait_until(lambda: False, 1000)
        found: list[list[Any]] = [[], [], []]

        def all_here() -> bool:
            for queue, done in zip(queues, found, strict=True):
                done += queue.read(10)
            return all(len(done) == 2 for done in found)

        assert rank.engine.wait_until(all_here, 10**9)
        for index, done in enumerate(found):
            assert sorted(one.context for one in done) == [("r", index), ("s", index)]
            assert all(one.error == 0 for one in done)
        rank.engine.wait_until(lambda: bool(queues[0].read(1)), 10**8)  # the peer is not done yet
        for context in contexts:
            context.close()
        whole.close()
        domain.close()

    run(program)
    with pytest.raises(Exception, match="Function not implemented"):
        run(_no_scalable, tx_contexts=1)


def _no_scalable(rank: Rank) -> None:
    domain = rank.nic.domain(best(rank.nic, "emulated"))
    domain.scalable_endpoint(domain.address_vector(), 1)


def test_the_smallest_sizes() -> None:
    run(both(PROGRAMS["messages"]), inject_size=0)
