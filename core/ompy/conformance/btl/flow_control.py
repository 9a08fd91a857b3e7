"""Flow control: more than there is room for, and nobody may suffer."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.fragment import Arrival
from ompy.conformance.btl.suite import Suite, Worlds, requires
from ompy.frameworks.btl import BTL_OWNERSHIP, NO_ORDER, Descriptor

FLOOD: Final = 1200  # fragments; arbitrary: far more than rings, windows and sockets hold
POLL_MAX: Final = 1024  # fragments one poll may deliver; arbitrary: some milliseconds of work
PAYLOAD: Final = 64  # bytes; arbitrary: so many of them go through one poll in 64 KiB
HELD_MAX: Final = 40  # descriptors; arbitrary: enough to see that a free list has an end
BUSY: Final = 5 * SECOND  # arbitrary: longer than any retransmission time-out should be


class FlowControlSuite(Suite):
    """Full rings, windows and free lists."""

    title: ClassVar[str] = "flow control"

    @requires("reliable")
    def test_thousands_of_fragments(self, worlds: Worlds, seed: int) -> None:
        """Both directions at once; what finds no resources is taken later, and all arrives."""

        def program(driver: Driver) -> None:
            for _ in range(FLOOD):
                for rank in driver.peers:
                    driver.send(rank, driver.data(PAYLOAD))
            driver.quiesce()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)

        worlds.make(seed=seed).run(program)

    @requires("reliable")
    def test_smallest_free_lists(self, worlds: Worlds, seed: int) -> None:
        """With next to no room of its own it is slow, and loses nothing."""

        def program(driver: Driver) -> None:
            random = driver.engine.random
            for _ in range(40):
                for rank in driver.peers:
                    module, _ = driver.rails(rank)[0]
                    size = random.choice((1, 100, module.eager_limit, module.max_send_size))
                    via = random.choice(("alloc", "prepare", "gather", "sendi"))
                    if via == "sendi":
                        size = min(size, module.eager_limit)
                    driver.send(rank, driver.data(size), via=via)
            driver.quiesce()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)

        worlds.make(3, seed=seed, settings=worlds.scarce).run(program)

    @requires("reliable")
    def test_refused_then_accepted(self, worlds: Worlds) -> None:
        """A sender that is refused while its peer is busy gets through afterwards."""

        def program(driver: Driver) -> int:
            if driver.rank != driver.peers[0]:  # one that has somebody else to send to
                driver.rails(driver.peers[0])
            if driver.rank == 1:
                driver.engine.wait_until(lambda: False, SECOND // 100)  # connections come up
                driver.compute(SECOND // 10)
                driver.quiesce()
                driver.check_inbox(ordered=worlds.component.capabilities.ordered)
                return 0
            peer = driver.peers[0]
            largest = driver.rails(peer)[0][0].max_send_size
            for _ in range(FLOOD // 4):
                offered = driver.post(peer, driver.data(largest))
                if offered is None:
                    break
                assert offered.accepted, f"{offered} was rejected with {offered.result}"
            for _ in range(5):
                driver.send(peer, driver.data(largest))
            driver.quiesce()
            return driver.refused

        worlds.make(settings=worlds.scarce).run(program)

    def test_free_lists_keep_their_length(self, worlds: Worlds) -> None:
        """As many descriptors can be had after much use as before, none of them twice."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                driver.send(rank, driver.data(10))
            driver.quiesce()
            before = _available(driver)
            for flags in (0, BTL_OWNERSHIP):
                for number in range(40):
                    rank = driver.peers[number % len(driver.peers)]
                    largest = driver.rails(rank)[0][0].max_send_size
                    driver.send(rank, driver.data(largest), flags=flags)
                driver.quiesce()
                # a module may keep a copy until it hears that the peer has the fragment
                for _ in range(20):
                    if (after := _available(driver)) == before:
                        break
                    driver.idle(SECOND)
                assert after == before, f"changed by sending with flags {flags:#x}"
            driver.quiesce()

        worlds.make().run(program)

    def test_one_poll_is_bounded(self, worlds: Worlds) -> None:
        """However much has arrived, one poll delivers only so much of it."""

        def program(driver: Driver) -> None:
            peer = driver.peers[0]
            if driver.rank == 0:
                for _ in range(FLOOD):
                    if driver.post(peer, driver.data(PAYLOAD)) is None:
                        break
            driver.world.meet(driver)
            if driver.rank == 1:
                driver.compute(SECOND)  # meanwhile it heaps up
            driver.quiesce()
            assert driver.largest_poll <= POLL_MAX, f"one poll delivered {driver.largest_poll}"

        worlds.make().run(program)

    def test_an_echo_does_not_hold_a_poll(self, worlds: Worlds) -> None:
        """Callbacks that send what is delivered by the same rank do not keep one poll going."""

        def program(driver: Driver) -> None:
            left = [FLOOD if driver.peers == [driver.rank] else FLOOD // 10]

            def again(arrival: Arrival) -> None:
                if left[0] > 0:
                    left[0] -= 1
                    driver.post(arrival.source, driver.data(PAYLOAD))

            driver.on_arrival = again
            if driver.rank == 0:
                driver.send(driver.peers[0], driver.data(PAYLOAD))
            driver.idle(SECOND)
            driver.on_arrival = None
            driver.quiesce()
            assert driver.largest_poll <= POLL_MAX, f"one poll delivered {driver.largest_poll}"

        worlds.make().run(program)

    @requires("reliable", "peers")
    def test_a_busy_peer_is_not_a_dead_one(self, worlds: Worlds, seed: int) -> None:
        """A rank that computes for seconds acknowledges nothing, and that is no error."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                driver.send(rank, driver.data(100))
            driver.quiesce()
            if driver.rank == 1:
                driver.compute(BUSY)
            for number in range(50):
                for rank in driver.peers:
                    largest = driver.rails(rank)[0][0].max_send_size
                    driver.send(rank, driver.data(largest if number % 10 == 0 else 100))
            driver.quiesce()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)
            assert not driver.errors, driver.errors[0].reason

        worlds.make(seed=seed).run(program)


def _available(driver: Driver) -> int:
    """How many large descriptors can be had at a time; sees that no two share memory."""
    module, endpoint = driver.rails(driver.peers[0])[0]
    held: list[Descriptor] = []
    while len(held) < HELD_MAX:
        made = module.alloc(endpoint, NO_ORDER, module.max_send_size, 0)
        if made is None:
            break
        made.segment[:] = bytes([len(held)]) * len(made.segment)
        held.append(made)
    for number, made in enumerate(held):
        if made.segment != bytes([number]) * len(made.segment):
            driver.complain("two descriptors that are in use share memory")
    for made in held:
        module.free(made)
    return len(held)
