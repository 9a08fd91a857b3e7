"""usnic's parameters that Open MPI's has, too: ports, queues, ACKs by rounds, warnings."""

from __future__ import annotations

import pytest
from ompy.conformance.btl.driver import Driver
from ompy.frameworks.nic.base import NicError
from ompy.mca.parameter import Flag
from ompy.net.base import Address
from ompy_components.btl.usnic.channel import DATA
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.headers import HEADER_SIZE, SEAL_SIZE
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.reliability.limits import US

from tests.sim.usnic.test_module import MS, usnic, world
from tests.support.forms import interpreted_only

# reference usnic.md 17
ORIGINAL = {
    "max_btls",
    "if_include",
    "if_exclude",
    "stats",
    "stats_relative",
    "mpool_hints",
    "rcache",
    "want_numa_device_assignment",
    "sd_num",
    "rd_num",
    "prio_sd_num",
    "prio_rd_num",
    "cq_num",
    "av_eq_num",
    "base_udp_port",
    "retrans_timeout",
    "max_resends_per_iteration",
    "ack_iteration_delay",
    "priority_limit",
    "eager_limit",
    "rndv_eager_limit",
    "pack_lazy_threshold",
    "max_short_packets",
    "show_route_failures",
    "connectivity_check",
    "connectivity_ack_timeout",
    "connectivity_error_num_retries",
    "connectivity_map",
}


def test_every_parameter_of_the_original_is_taken() -> None:
    taken = {parameter.name: parameter for parameter in COMPONENT.parameters}
    assert set(taken) >= ORIGINAL
    idle = {name for name in ORIGINAL if taken[name].flags & Flag.WITHOUT_MEANING}
    assert idle == {
        "av_eq_num",
        "mpool_hints",
        "rcache",
        "want_numa_device_assignment",
    }
    assert all("no meaning here: " in taken[name].help for name in idle)


def exchange(driver: Driver) -> None:
    for size in (10, 5_000):
        driver.send(driver.peers[0], driver.data(size))
    driver.quiesce()
    driver.check_inbox(ordered=False)


def test_ports_of_ones_choice() -> None:
    """Both ranks are the first of their hosts."""

    def program(driver: Driver) -> None:
        ports = [address.port for address in usnic(driver).record.addresses]
        assert ports == [4_000, 4_001]
        exchange(driver)

    world(base_udp_port=4_000).run(program)


def test_a_port_that_is_taken_is_an_error() -> None:
    def program(driver: Driver) -> None:
        driver.world.meet(driver)
        own = usnic(driver)
        host, taken = own.nic.identity.address, own.record.addresses[DATA].port
        queue = own.nic.domain().completion_queue(2)
        with pytest.raises(NicError, match="address in use"):
            own.nic.domain().queue_pair(queue, 1, 1, 100, port=taken)
        assert own.record.addresses[DATA] == Address(host, taken)
        driver.world.meet(driver)

    world().run(program)


@pytest.mark.parametrize(("entries", "works"), [(-1, True), (2048, True), (2047, False)])
def test_completion_queues_have_so_many_entries(entries: int, works: bool) -> None:
    def program(driver: Driver) -> None:
        if not works:
            assert "2047 entries, too few" in driver.unavailable
            return
        queue = usnic(driver)._channels[DATA]._queue
        assert queue.depth == 2048  # type: ignore[attr-defined]
        exchange(driver)

    world(cq_num=entries).run(program)


@pytest.mark.parametrize("rounds", [0, 2])
def test_an_ack_waits_for_rounds_or_for_its_time(rounds: int) -> None:
    def program(driver: Driver) -> None:
        exchange(driver)
        driver.idle(MS)
        if driver.rank == 1:
            sending, counted = usnic(driver).sending, usnic(driver).statistics
            endpoint = usnic(driver).endpoints[0]
            now, before = driver.engine.now(), counted.num_ack_sends
            endpoint.reliability.ack_at, endpoint.reliability.ack_needed = now + 50 * US, True
            sending.owe(endpoint)
            sent = []
            for _ in range(4):
                sending.progress(now)
                sent.append(counted.num_ack_sends - before)
            assert sent == ([0, 1, 1, 1] if rounds else [0, 0, 0, 0])
            sending.progress(now + 50 * US)
            assert counted.num_ack_sends - before == 1

    world(ack_iteration_delay=rounds).run(program)


@pytest.mark.parametrize("most", [0, 3])
def test_short_packets_are_warned_of_once(capsys: pytest.CaptureFixture[str], most: int) -> None:
    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        driver.world.shared[driver.rank] = usnic(driver)
        driver.world.meet(driver)
        if driver.rank == 0:
            target: UsnicModule = driver.world.shared[1]
            network = driver.context.network
            socket = network.datagram(network.interfaces()[0].address)
            for size in (0, 1, 20, SEAL_SIZE, SEAL_SIZE + HEADER_SIZE - 1):
                assert socket.send(memoryview(bytes(size)), target.record.addresses[DATA])
            socket.close()
        driver.idle(10 * MS)
        driver.world.meet(driver)
        if driver.rank == 1:
            counted = usnic(driver).statistics
            assert counted.num_short_recvs == counted.num_crc_errors == 5
        exchange(driver)

    world(max_short_packets=most).run(program)
    told = capsys.readouterr().err
    assert told.count("rank 1 has got 3 packets") == (1 if most else 0)
    assert told.count("too short") == (1 if most else 0)


@interpreted_only
@pytest.mark.parametrize("told", [True, False])
def test_a_peer_whose_packets_have_another_size(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], told: bool
) -> None:
    plain = UsnicModule.record.fget
    assert plain is not None

    def other(module: UsnicModule) -> object:
        record = plain(module)
        return record._replace(max_message=8972) if module.context.rank else record

    monkeypatch.setattr(UsnicModule, "record", property(other))

    def program(driver: Driver) -> None:
        assert usnic(driver).reach(driver.context.procs[1 - driver.rank]) is None

    world(show_route_failures=int(told)).run(program)
    text = capsys.readouterr().err
    assert ("rank 0 cannot reach rank 1" in text) is told
    assert ("packets have 1472 bytes here and 8972 there" in text) is told
