"""Messages of ofi that somebody has recorded and sends again: at once, or after every wrap."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any, Final

import pytest
from ompy.net.seals.datagram_seal import DatagramSeal
from ompy_components.btl.ofi import headers
from ompy_components.btl.ofi.endpoint import OfiEndpoint
from ompy_components.btl.ofi.headers import HEADER_SIZE, Kind
from ompy_components.btl.ofi.module import OfiModule

from tests.support.ofi_worlds import SECOND, Driver, ofi, world

FIELDS: Final = Struct("<IIIHBB")  # behind the seal
BELOW_WRAP: Final = (1 << 32) - 3
MOMENTS: Final = ("at once", "at once, over 2**32", "after the wrap")


class Header:
    """What stands behind the seal of a recorded message."""

    def __init__(self, message: bytes) -> None:
        behind = FIELDS.unpack(message[HEADER_SIZE - FIELDS.size : HEADER_SIZE])
        self.rank, self.number, self.acknowledged, self.generation, self.kind, _ = behind


def record(module: OfiModule) -> list[bytes]:
    """Everything the module's device takes from now on."""
    found: list[bytes] = []
    inject, send = module.first.inject, module.first.send

    def injecting(memory: memoryview, to: int) -> bool:
        return inject(memory, to) and not found.append(bytes(memory))

    def sending(memory: memoryview, descriptor: Any, to: int, context: Any) -> bool:
        return send(memory, descriptor, to, context) and not found.append(bytes(memory))

    module.first.inject, module.first.send = injecting, sending  # type: ignore[method-assign]
    return found


def as_then(endpoint: OfiEndpoint, header: Header) -> None:
    """Have everything that wraps where it was before this message came."""
    window = endpoint.window
    endpoint.bye_number = 0
    endpoint.generation = endpoint.path.life.number = header.generation
    if header.kind in (Kind.FRAGMENT, Kind.BYE):
        window.taken = window.told = header.number - 1
    elif header.kind == Kind.ACK:
        window.acknowledged = header.acknowledged - 1
        window.sent = header.acknowledged
    elif header.kind == Kind.HELLO:
        endpoint.generation = endpoint.path.life.number = header.generation - 1


def state(driver: Driver, endpoint: OfiEndpoint) -> dict[str, object]:
    """What a message could change."""
    window, module = endpoint.window, ofi(driver)
    return {
        "heard": endpoint.heard,
        "path": (
            endpoint.generation,
            endpoint.broken,
            endpoint.path.life.life,
            endpoint.bye_number,
        ),
        "window": (window.sent, window.acknowledged, window.taken, window.told),
        "told": (len(driver.inbox), len(driver.errors), len(driver.healed)),
        "paths": dict(module.failover.counted),
        "sent": module.sending.counters(),
    }


@pytest.fixture
def seals(monkeypatch: pytest.MonkeyPatch) -> Callable[[int | None], list[DatagramSeal]]:
    """The seals of all modules, whose numbers begin above what is given."""
    made: list[DatagramSeal] = []

    def begin_above(wanted: int | None) -> list[DatagramSeal]:
        def make(key: bytes, protocol: bytes, sender: Any, first: int) -> DatagramSeal:
            made.append(DatagramSeal(key, protocol, sender, first if wanted is None else wanted))
            return made[-1]

        monkeypatch.setattr(headers, "DatagramSeal", make, raising=False)
        return made

    return begin_above


def every_kind(driver: Driver, endpoint: OfiEndpoint) -> None:
    """Have every kind of message sent by one of the ends."""
    fragments(driver, 5)
    if driver.rank == 0:
        endpoint.path.broke("the test says so")
    driver.wait(lambda: len(driver.healed) == 1, "the path to be healed", 5 * SECOND)
    fragments(driver, 2)
    if driver.rank == 0:
        driver.wait(lambda: ofi(driver).sending.say(endpoint, Kind.BYE), "it to be sent")
    driver.idle(SECOND // 10)
    driver.world.meet(driver)


def fragments(driver: Driver, count: int) -> None:
    for _ in range(count):
        driver.send(1 - driver.rank, driver.data(50))
    driver.quiesce()
    driver.world.meet(driver)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
def test_a_recorded_message_is_not_heard_again(
    kind: Kind, moment: str, seals: Callable[[int | None], list[DatagramSeal]]
) -> None:
    over = moment == "at once, over 2**32"
    made = seals(BELOW_WRAP if over else None)
    recorded: dict[int, list[bytes]] = {}
    replays: list[int] = []

    def program(driver: Driver) -> None:
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        driver.world.meet(driver)
        module = ofi(driver)
        endpoint = module.endpoints[1 - driver.rank]
        if over:
            window = endpoint.window
            window.sent = window.acknowledged = window.taken = window.told = BELOW_WRAP
        recorded[driver.rank] = record(module)
        driver.world.meet(driver)
        every_kind(driver, endpoint)
        found = [one for rank in (0, 1) for one in recorded[rank] if one[HEADER_SIZE - 2] == kind]
        message = found[0]
        if moment == "after the wrap":
            if driver.rank == 0:
                for seal in made:
                    for to in seal._numbers:
                        seal._numbers[to] += 1 << 32
            driver.world.meet(driver)
            fragments(driver, 1)
            module.sending.say(endpoint, Kind.ACK)
            driver.idle(SECOND // 10)
            driver.world.meet(driver)
        replay(driver, endpoint, message)

    def replay(driver: Driver, endpoint: OfiEndpoint, message: bytes) -> None:
        header = Header(message)
        module, window = ofi(driver), endpoint.window
        kept = (endpoint.generation, window.sent, window.acknowledged, window.taken)
        bye_number, number = endpoint.bye_number, endpoint.path.life.number
        if driver.rank != header.rank:
            as_then(endpoint, header)
        before, counted = state(driver, endpoint), module.counters().get("replayed", 0)
        driver.world.meet(driver)
        if driver.rank == header.rank:
            for _ in range(2):
                again = memoryview(bytearray(message))
                inject = module.first.inject
                driver.wait(lambda: inject(again, endpoint.address), "it to be sent")  # noqa: B023
        driver.idle(SECOND // 10)
        driver.world.meet(driver)
        assert state(driver, endpoint) == before
        if driver.rank != header.rank:
            assert module.counters()["replayed"] == counted + 2
            replays.append(header.kind)
        endpoint.generation, window.sent, window.acknowledged, window.taken = kept
        window.told, endpoint.bye_number = window.taken, bye_number
        endpoint.path.life.number = number
        driver.world.meet(driver)

    world(seal="mac", failover=True).run(program)
    assert replays == [kind]


def test_numbers_go_on_over_a_healed_path_and_every_refusal(
    seals: Callable[[int | None], list[DatagramSeal]],
) -> None:
    """Neither a new generation nor contexts begin new ones; what is refused uses none up."""
    seals(None)
    refusals: list[int] = []

    def program(driver: Driver) -> None:
        module = ofi(driver)
        driver.send(1 - driver.rank, driver.data(10))
        driver.quiesce()
        recorded = record(module)
        driver.world.meet(driver)
        endpoint = module.endpoints[1 - driver.rank]
        inject = module.first.inject
        module.first.inject = lambda memory, to: bool(refusals.append(to))  # type: ignore[method-assign]
        for _ in range(9000):  # more than a seal's window
            assert not module.sending.say(endpoint, Kind.ACK)
        module.first.inject = inject  # type: ignore[method-assign]
        every_kind(driver, endpoint)
        for ordered in (True, False):
            numbers = [
                int.from_bytes(one[16:24], "little")
                for one in recorded
                if (Header(one).kind in (Kind.FRAGMENT, Kind.BYE)) is ordered
            ]
            assert numbers
            assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert "replayed" not in module.counters()

    world(seal="mac", failover=True, num_contexts_per_module=4).run(program)
    assert len(refusals) == 18_000
