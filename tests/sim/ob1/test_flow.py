"""The window of messages and the credit of bytes: how far a sender may be ahead of a receiver."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

import pytest
from ompy.data.buffered import BufferedConvertor
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import ContiguousConvertor, Convertor, GatherConvertor
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy_components.pml.ob1.flow import MESSAGE_COST
from ompy_components.pml.ob1.headers import SEQUENCE_MASK, credit_words, match_words

from tests.sim.p2p.programs import buffer, pattern, send, wind_on, world
from tests.support.effort import THOROUGH, effort
from tests.support.forms import interpreted_only
from tests.support.worlds import virtual

PMLS = ("ob1", "bfo")
NUMBER = Struct("<Q")
UNEQUAL = (Rail("near"), Rail("far", latency=300_000, jitter=250_000, bandwidth=500))
LAST_TAG = 9


def limits(pml: str, window: int, held: int) -> dict[str, object]:
    """Settings with these limits."""
    return {
        "pml": pml,
        "btl": "self,tcp",
        f"pml_{pml}_message_window": window,
        f"pml_{pml}_unexpected_bytes": held,
    }


def flood(comm: Communicator, target: int, count: int, tag: int = 1) -> list[Request]:
    return [
        comm.pml.isend(comm, send(NUMBER.pack(number)), target, tag, STANDARD)
        for number in range(count)
    ]


def drain(comm: Communicator, source: int, count: int, tag: int = 1) -> None:
    """Receive a flood, in order."""
    for number in range(count):
        memory, room = buffer(8)
        comm.pml.recv(comm, room, source, tag)
        assert NUMBER.unpack(memory) == (number,)


def both(*programs: Callable[[RankProcess], Any]) -> Callable[[RankProcess], Any]:
    """Rank 0 runs the first, rank 1 the other."""
    return lambda process: programs[process.context.rank](process)


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize("first", [1, 2**32 - 100])
@pytest.mark.parametrize("seed", range(effort(2)))
def test_rails_far_apart_do_not_run_apart_further_than_the_window(
    pml: str, first: int, seed: int
) -> None:
    """The defect in small: one rail runs on while the other holds what has to come first."""
    window, count = 40, 400

    def sends(process: RankProcess) -> int:
        comm = world(process)
        wind_on(comm, first)
        requests, most = [], 0
        flow = process.pml.flow.peer(comm.procs[1])
        for number in range(count):
            requests += flood(comm, 1, 1) if not number else [
                comm.pml.isend(comm, send(NUMBER.pack(number)), 1, 1, STANDARD)
            ]  # fmt: skip
            most = max(most, flow.sent - len(flow.waiting) - (flow.sent_max - window))
        for request in requests:
            comm.pml.wait(comm, request)
        return most

    def receives(process: RankProcess) -> int:
        comm = world(process)
        wind_on(comm, first)
        early = 0
        queue = comm.pml_state.peer(0)
        for number in range(count):
            memory, room = buffer(8)
            request = comm.pml.irecv(comm, room, 0, 1)
            while not request.complete:
                process.context.engine.wait(request)
            early = max(early, len(queue.early))
            assert NUMBER.unpack(memory) == (number,)
        return early

    settings = limits(pml, window, 0)
    job = virtual(2, both(sends, receives), seed=seed, rails=UNEQUAL, **settings)
    ahead, early = job.results
    assert ahead == window, "it was full, and never fuller"
    assert 0 < early < window


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize(("window", "held"), [(4, 0), (65536, 200), (1, 1)])
def test_a_message_with_another_tag_gets_past_a_flood(pml: str, window: int, held: int) -> None:
    """A receiver may ask for the last message first: unmatched ones are no obstacle."""
    count = 60

    def sends(process: RankProcess) -> None:
        comm = world(process)
        requests = flood(comm, 1, count)
        requests += flood(comm, 1, 1, LAST_TAG)
        for request in requests:
            comm.pml.wait(comm, request)

    def receives(process: RankProcess) -> None:
        comm = world(process)
        drain(comm, 0, 1, LAST_TAG)
        drain(comm, 0, count)

    virtual(2, both(sends, receives), **limits(pml, window, held))


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize(("window", "held"), [(3, 0), (65536, 500), (2, 1)])
def test_both_flood_each_other_and_themselves(pml: str, window: int, held: int) -> None:
    count = 80

    def program(process: RankProcess) -> None:
        comm = world(process)
        requests = [one for rank in range(comm.size) for one in flood(comm, rank, count)]
        for rank in range(comm.size):
            drain(comm, rank, count)
        for request in requests:
            comm.pml.wait(comm, request)
        for peer in process.pml.flow.peers.values():
            assert not peer.waiting

    virtual(3, program, **limits(pml, window, held))


@pytest.mark.parametrize("pml", PMLS)
def test_ranks_with_different_windows_do_not_wait_for_ever(pml: str) -> None:
    """The receiver would tell at 32,768 messages: a sender that has to wait asks."""
    count = 50

    def sends(process: RankProcess) -> None:
        process.pml.flow.window = 4
        comm = world(process)
        for request in flood(comm, 1, count):
            comm.pml.wait(comm, request)

    virtual(
        2, both(sends, lambda process: drain(world(process), 0, count)), **limits(pml, 65536, 0)
    )


def held_bytes(comm: Communicator, source: int) -> int:
    """Bytes of payload that wait here for a receive."""
    return sum(len(fragment.payload) for fragment in comm.pml_state.peer(source).held())


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize("size", [8, 2048, 70_000])
def test_a_receiver_holds_no_more_than_the_sender_has_credit_for(pml: str, size: int) -> None:
    """2 KiB a million times were 2.1 GiB; what is beyond the credit stays with the sender."""
    count, held = 100, 20_000

    def sends(process: RankProcess) -> tuple[int, int, int]:
        comm = world(process)
        requests = [
            comm.pml.isend(comm, send(pattern(size, number)), 1, 1, STANDARD)
            for number in range(count)
        ]
        requests += flood(comm, 1, 1, LAST_TAG)
        for request in requests:
            comm.pml.wait(comm, request)
        drain(comm, 1, 1)
        flow = process.pml.flow.peer(comm.procs[1])
        return flow.spent, flow.spent_max - held, sum(request.bare for request in requests[:-1])

    def receives(process: RankProcess) -> tuple[int, int]:
        comm = world(process)
        drain(comm, 0, 1, LAST_TAG)
        most = held_bytes(comm, 0)
        for number in range(count):
            memory, room = buffer(size)
            comm.pml.recv(comm, room, 0, ANY_TAG)
            assert bytes(memory) == pattern(size, number)
        for request in flood(comm, 0, 1):
            comm.pml.wait(comm, request)
        return most, process.pml.flow.peer(comm.procs[0]).back

    job = virtual(2, both(sends, receives), trace=True, **limits(pml, 65536, held))
    (spent, told, bare), (most, back) = job.results
    assert most <= held
    assert spent == back, "every byte counted is given back in the end"
    assert told <= back
    fit = held // (size + MESSAGE_COST)
    assert bare == count - min(fit, count)
    assert most == min(fit, count) * size


MODES = {"standard": STANDARD, "ready": READY, "synchronous": SYNCHRONOUS, "buffered": BUFFERED}


def in_pieces() -> Convertor:
    """A message that ends with a large piece of memory."""
    data = memoryview(bytearray(pattern(200_000, 7)))
    return GatherConvertor([data[:100], data[100:]])


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize("btl", ["self,tcp", "self,sm"])
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_and_size_without_any_credit(pml: str, btl: str, mode: str) -> None:
    sizes = (0, 1, 200, 5000, 70_000, 200_000)

    def convertor(size: int) -> Convertor:
        data = ContiguousConvertor(memoryview(bytearray(pattern(size, size % 100))))
        if MODES[mode] != BUFFERED:
            return data
        return BufferedConvertor(data, lambda count: memoryview(bytearray(count)))

    def sends(process: RankProcess) -> None:
        comm = world(process)
        drain(comm, 1, 1)  # its receives are posted
        requests = [comm.pml.isend(comm, convertor(size), 1, 1, MODES[mode]) for size in sizes]
        requests.append(comm.pml.isend(comm, in_pieces(), 1, 1, STANDARD))
        for request in requests:
            comm.pml.wait(comm, request)
        if btl == "self,tcp":
            assert all(request.bare for request in requests)

    def receives(process: RankProcess) -> None:
        comm = world(process)
        rooms = [buffer(size) for size in (*sizes, 200_000)]
        requests = [comm.pml.irecv(comm, room, 0, 1) for _, room in rooms]
        for request in flood(comm, 0, 1):
            comm.pml.wait(comm, request)
        for request in requests:
            comm.pml.wait(comm, request)
        for (memory, _), size in zip(rooms, sizes, strict=False):
            assert bytes(memory) == pattern(size, size % 100)
        assert bytes(rooms[-1][0]) == pattern(200_000, 7)

    virtual(2, both(sends, receives), **{**limits(pml, 65536, 1), "btl": btl})


@pytest.mark.parametrize("pml", PMLS)
def test_probed_messages_count_until_received_and_freed_communicators_give_back(pml: str) -> None:
    count = 6

    def sends(process: RankProcess) -> None:
        comm = world(process)
        other = process.communicator(5, process.context.procs, "OTHER")
        for made in (comm, other):
            for request in flood(made, 1, count):
                comm.pml.wait(comm, request)
        drain(comm, 1, 1)

    def receives(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        flow = pml.flow.peer(comm.procs[0])
        messages = [pml.mprobe(comm, ANY_SOURCE, 1) for _ in range(count)]
        process.context.engine.wait_until(lambda: flow.taken == 2 * count)
        assert flow.orphans == count
        assert flow.back == 0, "what a probe has taken is still here"
        for message in messages:
            _, room = buffer(8)
            pml.wait(comm, pml.imrecv(message, room))
        assert flow.back == count * (8 + MESSAGE_COST)
        other = process.communicator(5, process.context.procs, "OTHER")
        assert flow.taken == 2 * count, "counted once"
        pml.remove_communicator(other)
        assert flow.back == 2 * count * (8 + MESSAGE_COST)
        assert flow.taken == 2 * count
        for request in flood(comm, 0, 1):
            pml.wait(comm, request)

    virtual(2, both(sends, receives), **limits(pml, 65536, 0))


def alone(process: RankProcess) -> tuple[Communicator, Callable[[int], None]]:
    """A receiver, and a way to have a message with a number arrive."""
    comm = world(process)

    def arrive(sequence: int) -> None:
        header = match_words(0, 0, 1, 1, sequence & SEQUENCE_MASK)
        data = header + NUMBER.pack(sequence)
        process.pml.receiving.match_arrived(memoryview(data))

    return comm, arrive


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize("first", [1, 2**32 - 9])
def test_rails_that_are_far_apart_across_the_wrap(pml: str, first: int) -> None:
    """All others come before the first: with 16 bits, those beyond 65,536 took others' places."""
    count = 1_000_000 if THOROUGH else 66_000

    def program(process: RankProcess) -> None:
        if process.context.rank:
            return
        comm, arrive = alone(process)
        wind_on(comm, first)
        queue = comm.pml_state.peer(1)
        for number in range(first + count, first, -1):
            arrive(number)
        assert len(queue.early) == count
        arrive(first)
        assert not queue.early
        for number in range(first, first + count + 1):
            found = comm.pml_state.take(1, 1)
            assert NUMBER.unpack(found.payload) == (number,)
        assert comm.pml_state.take(1, 1) is None

    virtual(2, program, **limits(pml, 1 << 20, 0))


IMPOSSIBLE = {
    "is here already": (3, 3),
    "has been here, 1 messages ago": (1, 1),
    "may not be so far": (102,),
}


@pytest.mark.parametrize("why", IMPOSSIBLE)
def test_what_cannot_come_is_an_error_in_ob1(why: str) -> None:
    def program(process: RankProcess) -> None:
        if process.context.rank:
            return
        _, arrive = alone(process)
        *before, last = IMPOSSIBLE[why]
        for number in before:
            arrive(number)
        with pytest.raises(MPIError, match=why) as caught:
            arrive(last)
        assert caught.value.code == ERR_INTERN

    virtual(2, program, **limits("ob1", 100, 0))


def test_in_bfo_a_duplicate_is_dropped_and_counted() -> None:
    def program(process: RankProcess) -> None:
        if process.context.rank:
            return
        comm, arrive = alone(process)
        for number in (3, 3, 1, 1, 2, 2, 3):
            arrive(number)
        assert process.pml.counters == {"MATCH": 4}
        assert [one.sequence for one in comm.pml_state.peer(1).held()] == [1, 2, 3]
        with pytest.raises(MPIError, match="may not be so far"):
            arrive(4 + 100)

    virtual(2, program, **limits("bfo", 100, 0))


@interpreted_only
def test_the_count_of_what_is_told_grows_whatever_comes_when() -> None:
    """An older CREDIT that comes late changes nothing."""

    def program(process: RankProcess) -> None:
        flow, proc = process.pml.flow, process.context.procs[1]
        for taken, back in ((5, 900), (3, 100), (5, 900), (4, 1000)):
            flow.credit_arrived(proc, memoryview(credit_words(0, 100, taken, back)))
        peer = flow.peer(proc)
        assert (peer.sent_max, peer.spent_max) == (105, 51_000)

    virtual(2, program, **limits("ob1", 100, 50_000))
