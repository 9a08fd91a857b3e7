"""An ofi module over every provider, and over devices that refuse, delay, fail and overflow."""

from __future__ import annotations

import errno

import pytest
from ompy.conformance.btl.fragment import Arrival
from ompy.engine.virtual_engine import VirtualEngine
from ompy.frameworks.btl import (
    BAD_PARAM,
    ERROR_FATAL,
    ERROR_NONFATAL,
    OUT_OF_RESOURCE,
    UNREACHABLE,
)
from ompy.frameworks.nic.fabric import Completion, MrMode
from ompy.net.faults.fault_rules import FaultRule
from ompy_components.btl.ofi.headers import HEADER_SIZE, Header, Kind, Seal
from ompy_components.btl.ofi.work_records import OfiFragment, Operation
from ompy_components.nic.ofi_emulated.providers import PROVIDERS, UNUSABLE

from tests.support.effort import effort
from tests.support.ofi_worlds import SECOND, Between, Driver, Hand, Reading, expose, ofi, world

USABLE = [
    provider
    for provider in PROVIDERS
    if provider.atomics == "yes" and not provider.mr_mode & (UNUSABLE | MrMode.LOCAL)
]
REFUSED = [provider for provider in PROVIDERS if provider.mr_mode & (UNUSABLE | MrMode.LOCAL)]
# reference ofi.md A6
ERRORS = (
    errno.EREMOTEIO,
    errno.EHOSTUNREACH,
    errno.ECONNABORTED,
    errno.ECONNRESET,
    errno.ENOTCONN,
    errno.EHOSTDOWN,
    errno.EIO,
)


def everything(driver: Driver) -> None:
    """Fragments of all sizes, a put and a get, in both directions."""
    before = len(driver.errors)
    mover, other = expose(driver)
    (peer,) = driver.peers
    module = ofi(driver)
    for number in range(25):
        driver.send(peer, driver.data((1, 100, 5000, module.max_send_size)[number % 4]))
    data = bytearray(driver.data(6000))
    assert mover.move(False, data, 1000, other.key).good
    got = bytearray(6000)
    assert mover.move(True, got, 1000, other.key).good
    assert got == data
    driver.quiesce()
    driver.check_inbox(ordered=False)
    assert len(driver.errors) == before


@pytest.mark.parametrize("provider", USABLE, ids=lambda provider: provider.name)
def test_every_provider(provider) -> None:  # type: ignore[no-untyped-def]
    """Virtual addresses and offsets, our keys and the provider's."""
    made = world(nic_providers=provider.name)
    made.run([everything, everything])


@pytest.mark.parametrize("provider", REFUSED, ids=lambda provider: provider.name)
def test_modes_that_are_not_supported(provider) -> None:  # type: ignore[no-untyped-def]
    """The seed names LOCAL, MMU_NOTIFY, RMA_EVENT and ENDPOINT."""
    reasons = world(nic_providers=provider.name).run(lambda driver: driver.unavailable)
    assert all("no provider of ofi_emulated can be used" in reason for reason in reasons)


def test_looking_again_keeps_its_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each look would have each look wake the rank once more, without end."""
    made: list[int] = []
    later = VirtualEngine.call_later

    def counted(engine, delay, callback):  # type: ignore[no-untyped-def]
        made.append(delay)
        return later(engine, delay, callback)

    def program(driver: Driver) -> None:
        if driver.rank:
            return
        module = ofi(driver)
        monkeypatch.setattr(VirtualEngine, "call_later", counted)
        for _ in range(20):
            module.attention.waits_for_room()
            assert module.arm()
        monkeypatch.undo()

    world().run(program)
    assert len(made) == 1


def test_keys_cannot_be_guessed_and_are_never_the_same() -> None:
    def program(driver: Driver) -> list[int]:
        module = ofi(driver)
        handles = [module.register_mem(None, memoryview(bytearray(8)), 0xF) for _ in range(50)]
        return [handle.region.key for handle in handles]  # type: ignore[attr-defined]

    keys = [key for found in world(nic_providers="emulated;offset").run(program) for key in found]
    assert len(set(keys)) == 100
    assert min(key.bit_length() for key in keys) > 40
    steps = {after - before for before, after in zip(keys, keys[1:], strict=False)}
    assert len(steps) == 99, "one key tells the next"


@pytest.mark.parametrize("seed", range(effort(1)))
@pytest.mark.parametrize(
    "habits",
    [
        {"nic_again_every": 2, "seal": "mac"},
        {"nic_again_every": 3, "nic_inject_size": 0},
        {"nic_tx_size": 1},
        {"nic_completion_delay_us": 700},
        {"nic_inject_size": 0, "rd_num": 1},
        {"disable_inject": 1, "seal": "mac", "num_cq_read": 1, "progress_threshold": 1},
        {"num_contexts_per_module": 4, "seal": "mac"},
        {"nic_delivery_complete": "honoured", "nic_tx_contexts": 1, "num_contexts_per_module": 2},
    ],
    ids=lambda habits: " ".join(habits),
)
@pytest.mark.parametrize("failover", [False, True])
def test_devices_with_habits(habits: dict[str, object], failover: bool, seed: int) -> None:
    world(seed=seed, failover=failover, **habits).run(everything)  # type: ignore[arg-type]


def test_contexts_that_are_asked_for() -> None:
    def program(driver: Driver) -> int:
        mover, other = expose(driver)
        if driver.rank == 0:
            for _ in range(8):
                mover.move(False, bytearray(8), 0, other.key)
        driver.world.meet(driver)
        return len(ofi(driver).contexts)

    assert world(num_contexts_per_module=4).run(program) == [4, 4]
    assert world(num_contexts_per_module=4, disable_sep=1).run(program) == [1, 1]
    asked = world(num_contexts_per_module=17)
    assert all("17" in why for why in asked.run(lambda driver: driver.unavailable))


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("failover", [False, True])
def test_an_error_of_the_path(number: int, failover: bool) -> None:
    """The error is told once, then the work is completed badly; with failover the path heals."""

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        module = ofi(driver)
        if driver.rank == 0:
            driver.send(1, driver.data(10))
        else:  # who has heard of nobody leaves without a word
            driver.wait(lambda: bool(driver.inbox), "the message")
        driver.world.meet(driver)
        if driver.rank == 0:
            hand = Hand(module, Operation, {2: number})
            assert mover.move(False, bytearray(64), 0, other.key).good
            bad = mover.move(False, bytearray(64), 0, other.key)
            assert hand.delivered == 1
            assert bad.statuses == [UNREACHABLE]
            assert [error.rank for error in driver.errors] == [1]
            assert driver.errors[0].flags == (ERROR_NONFATAL if failover else ERROR_FATAL)
            offered = mover.offer(False, bytearray(64), 0, other.key)
            assert offered.result == UNREACHABLE or module.endpoints[1].usable()
        if failover:
            driver.wait(lambda: len(driver.healed) == 1, "the path to be healed", 5 * SECOND)
            driver.world.meet(driver)
            assert len(driver.errors) == 1, "the peer has been told, and once"
            everything(driver)
            assert module.endpoints[1 - driver.rank].generation == 2

    world(failover=failover).run(program if failover else [program, program])


@pytest.mark.parametrize("number", ERRORS[:3], ids=errno.errorcode.get)
def test_work_that_the_device_does_not_do(number: int) -> None:
    """Fragments that end with an error were not sent: with failover each is completed badly."""
    scripts: list[object] = []

    def program(driver: Driver) -> None:
        (peer,) = driver.peers
        for _ in range(12):
            offered = driver.post(peer, driver.data(5000))
            while offered is None:
                driver.idle(20_000)
                offered = driver.post(peer, driver.data(5000))
            if not offered.accepted:
                break
        driver.wait(lambda: bool(driver.errors), "the error callback")
        driver.wait(lambda: not driver.open_fragments, "completions")
        driver.world.meet(driver)
        driver.idle(SECOND)
        here = {arrival.data for arrival in driver.inbox}
        for other in driver.world.drivers.values():
            for fragment in other.sent:
                if fragment.target == driver.rank and fragment.good:
                    assert fragment.data in here, f"{fragment} was completed well"
        driver.check_inbox(ordered=False, whole=False)
        assert len(driver.healed) == 1

    rule = FaultRule("work_error", ranks=(0,), peers=(1,), nth=(4,), error=number)
    made = world(failover=True, rules=[rule], scripts=scripts, nic_inject_size=0)
    made.run(program)
    assert any(sum(script.delivered) for script in scripts)  # type: ignore[attr-defined]


def test_a_completion_queue_that_overflows() -> None:
    """All paths of the module fail, every piece of work is completed once, and nobody hangs."""

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        if driver.rank == 0:
            mover.move(False, bytearray(8), 0, other.key)  # now there is a connection
            offered = [mover.offer(False, bytearray(8), 0, other.key) for _ in range(40)]
            driver.compute(SECOND // 10)
            driver.wait(lambda: all(one.done for one in offered), "the end of all puts")
            assert any(one.statuses == [UNREACHABLE] for one in offered)
            assert [error.rank for error in driver.errors] == [1]
            assert ofi(driver).device.dead

    world(nic_cq_depth=8, rd_num=1, progress_threshold=1000).run(program)


@pytest.mark.parametrize("what", ["beyond the end", "no access", "given back", "another rank's"])
def test_memory_that_may_not_be_used(what: str) -> None:
    """BAD_PARAM of that operation alone; the path is as good as before."""

    def program(driver: Driver) -> None:
        mover, other = expose(driver)
        module = ofi(driver)
        if driver.rank == 0:
            there = ofi(driver.world.drivers[1])
            key, at = other.key, 0
            if what == "beyond the end":
                at = len(other.exposed) - 63
            elif what == "no access":
                key = bytes(there.register_mem(None, memoryview(other.exposed), 0x2))  # type: ignore[call-overload]
            elif what == "given back":
                there.deregister_mem(other.handle)
            else:
                key = mover.key
            offered = mover.offer(False, bytearray(64), at, key)
            while offered.result == OUT_OF_RESOURCE:
                driver.idle(100_000)
                offered = mover.offer(False, bytearray(64), at, key)
            driver.wait(lambda: offered.done, "its end")
            assert offered.result == BAD_PARAM or offered.statuses == [BAD_PARAM]
            assert not driver.errors
            assert module.endpoints[1].usable()
            driver.send(1, driver.data(100))
        driver.quiesce()

    world().run(program)


@pytest.mark.parametrize("seal", ["token", "mac"])
def test_a_stranger_is_not_heard(seal: str) -> None:
    """Who can reach an endpoint and does not know the job's key cannot say anything."""
    arrived: list[Arrival] = []

    def program(driver: Driver) -> None:
        driver.on_arrival = arrived.append
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        if driver.rank == 0:
            module = ofi(driver)
            endpoint = module.endpoints[1]
            seal_of_a_stranger = Seal(bytes(32), 0, whole=seal == "mac")
            for kind in Kind:
                message = memoryview(bytearray(HEADER_SIZE + 5))
                header = Header(0, endpoint.window.next(), 0, endpoint.generation, kind, 0x40)
                seal_of_a_stranger.close(message, 1, header)
                driver.wait(
                    lambda: module.contexts.first.inject(message, endpoint.address),  # noqa: B023
                    "it to be sent",
                )
        driver.idle(SECOND // 10)
        driver.world.meet(driver)
        assert len(driver.inbox) == 1
        if driver.rank == 1:
            assert ofi(driver).receiving.refused == len(Kind)
        driver.world.meet(driver)
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()

    world(seal=seal).run(program)
    assert len(arrived) == 4


def test_what_was_recorded_is_not_heard_again() -> None:
    def program(driver: Driver) -> None:
        module = ofi(driver)
        recorded: list[bytes] = []
        if driver.rank == 0:
            inject = module.contexts.first.inject
            module.contexts.first.inject = (  # type: ignore[method-assign]
                lambda memory, to: inject(memory, to) and not recorded.append(bytes(memory))
            )
        for _ in range(5):
            driver.send(1 - driver.rank, driver.data(50))
        driver.quiesce()
        if driver.rank == 0:
            again = list(recorded)
            assert len(again) >= 5
            for message in again:
                driver.wait(
                    lambda: module.contexts.first.inject(
                        memoryview(bytearray(message)),  # noqa: B023
                        module.endpoints[1].address,
                    ),
                    "it to be sent",
                )
        driver.idle(SECOND // 10)
        driver.world.meet(driver)
        assert len(driver.inbox) == 5
        if driver.rank == 1:
            assert module.receiving.replayed >= 5

    world(seal="mac").run(program)


def test_fragments_have_no_completion_of_the_device_where_they_need_none() -> None:
    """Small ones are injected; large ones are posted; none is copied but by the PML."""

    def program(driver: Driver) -> None:
        module = ofi(driver)
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        posted: list[OfiFragment] = []
        send = module.contexts.first.send
        module.contexts.first.send = (  # type: ignore[method-assign]
            lambda memory, descriptor, to, context: (
                posted.append(context)  # type: ignore[arg-type]
                or send(memory, descriptor, to, context)
            )
        )
        small = module.info.inject_size - HEADER_SIZE
        driver.send(1 - driver.rank, driver.data(small))
        assert not posted
        driver.send(1 - driver.rank, driver.data(small + 1))
        (one,) = [fragment for fragment in posted if fragment.kind == Kind.FRAGMENT]
        assert one.segment.obj is one.message.obj
        driver.quiesce()

    world().run(program)


@pytest.mark.parametrize("number", [256, 265, errno.EACCES, 0])
def test_an_error_of_no_work_breaks_nothing(number: int) -> None:
    """A stranger may have caused it. 256 is FI_EOTHER, 265 FI_ETRUNC."""
    told: list[int] = []

    def program(driver: Driver) -> None:
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        module = ofi(driver)

        def read_more(read: Reading, most: int) -> list[Completion]:
            told.append(number)
            return [Completion(None, 0, number, "odd"), *read(most)]

        between = Between(module, read_more)
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        between.undo()
        everything(driver)

    world().run(program)
    assert told


def test_receives_that_end_badly_are_posted_again() -> None:
    """Whoever can reach an endpoint can send what no buffer holds."""

    def program(driver: Driver) -> None:
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        module = ofi(driver)
        if driver.rank == 0:
            room = module.max_send_size + HEADER_SIZE + 1
            for _ in range(60):
                driver.wait(
                    lambda: module.contexts.first.send(
                        memoryview(bytearray(room)), None, module.endpoints[1].address, None
                    ),
                    "it to be sent",
                )
        driver.idle(SECOND // 10)
        driver.world.meet(driver)
        if driver.rank == 1:
            assert module.receiving.failed + module.receiving.refused == 60
        everything(driver)

    world().run(program)
