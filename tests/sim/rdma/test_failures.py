"""Puts and gets when the path or the peer is lost: each completed once, badly; nothing is left."""

from __future__ import annotations

import pytest
from ompy.frameworks.btl import BAD_PARAM, QUEUED, UNREACHABLE
from ompy.net.base import LinkError
from ompy.net.virtual.virtual_copy import VirtualCopy
from ompy.net.virtual.virtual_network import Rail
from ompy_components.btl.sm.component import SINGLE_COPY
from ompy_components.btl.sm.layout import TABLE_SLOTS
from ompy_components.btl.sm.module import SmModule
from ompy_components.btl.tcp.endpoint import TcpEndpoint
from ompy_components.btl.tcp.module import TcpModule

from tests.sim.p2p.programs import pattern
from tests.sim.rdma import programs
from tests.sim.rdma.peer import Peer, Transfer, run
from tests.support.effort import effort

NARROW = (Rail("rail0", latency=50_000, jitter=100_000, window=3000, bandwidth=1000),)


def connection(peer: Peer, rank: int) -> TcpEndpoint:
    endpoint = peer.endpoint(rank)
    assert isinstance(endpoint, TcpEndpoint)
    return endpoint


@pytest.mark.parametrize("seed", range(effort(20)))
def test_a_lost_connection_fails_each_once(seed: int) -> None:
    """The error is told first; what had been completed stays completed, in order."""

    def program(peer: Peer) -> tuple[int, int]:
        memory = bytearray(60_000)
        handles = peer.swap(peer.expose(memory))
        engine = peer.context.engine
        if peer.context.rank == 1:
            engine.wait_until(lambda: False, (1 + seed % 20) * 60_000)
            stream = connection(peer, 0)._stream
            assert stream is not None
            stream.fail("cable pulled")
            connection(peer, 0)._stream.close()  # type: ignore[union-attr]
            engine.wait_until(lambda: connection(peer, 0).lost())
            return 0, 0
        begun = [
            peer.start(("put", "get")[n % 2], 1, bytearray(2000 + n * 300), n * 100, handles[1])
            for n in range(40)
            if not connection(peer, 1).lost()
        ]
        accepted = [transfer for transfer in begun if transfer.result == QUEUED]
        peer.finish(*accepted)
        assert all(len(transfer.statuses) == 1 for transfer in accepted)
        good = [transfer for transfer in accepted if transfer.good]
        bad = [transfer for transfer in accepted if not transfer.good]
        assert all(transfer.statuses == [UNREACHABLE] for transfer in bad)
        assert peer.log.index("error") == len(good)
        assert peer.log.count("error") == 1
        late = peer.start("put", 1, b"late", 0, handles[1])
        assert late.result == UNREACHABLE
        assert not peer.module.landing  # type: ignore[attr-defined]
        return len(good), len(bad)

    good, bad = run("tcp", program, seed=seed, rails=NARROW).results[0]
    assert bad > 0
    if seed % 20 > 15:
        assert good > 0, "the cut came after some had been completed"


@pytest.mark.parametrize("way", ["put", "get"])
@pytest.mark.parametrize("seed", range(effort(5)))
def test_memory_given_back_while_bytes_for_it_come(way: str, seed: int) -> None:
    """The put fails, the memory is not touched any more, and the connection goes on."""

    def program(peer: Peer) -> list[int]:
        memory = bytearray(50_000)
        handle = peer.expose(memory)
        handles = peer.swap(handle)
        module = peer.module
        assert isinstance(module, TcpModule)
        transfers: list[Transfer] = []
        if peer.context.rank == 0:
            big = peer.start("put", 1, b"\x77" * 50_000, 0, handles[1])
            peer.finish(big)
            peer.finish(peer.start("get", 1, bytearray(1), 0, handles[1]))
            peer.tell(1, b"after")
            transfers = [big]
        else:
            peer.wait(lambda: bool(module.landing))
            module.deregister_mem(handle)
            assert not module.registered.get(1)
            seen = bytes(memory)
            assert peer.hear(0) == b"after"
            assert memory == seen, "nothing was written after it was given back"
            assert not all(memory)
            memory.append(1)  # nothing refers to it any more
        peer.meet()
        return [status for transfer in transfers for status in transfer.statuses]

    assert way
    assert run("tcp", program, seed=seed, rails=NARROW).results[0] == [BAD_PARAM]


@pytest.mark.parametrize("seed", range(effort(5)))
def test_a_departed_peer_fails_fragments(seed: int) -> None:
    """A rank that died answers nothing: what waits for it is completed badly."""

    def program(peer: Peer) -> list[list[int]]:
        handles = peer.swap(peer.expose(bytearray(2_000_000)))
        if peer.context.rank == 1:
            peer.context.engine.remove_poller(peer.module)  # it does nothing any more
            peer.context.engine.wait_until(lambda: False, 10**8)
            return []
        begun = [
            peer.start(how, 1, bytearray(1_500_000), 0, handles[1]) for how in ("put", "get", "put")
        ]
        peer.context.engine.wait_until(lambda: False, 10**7)
        assert not any(transfer.done for transfer in begun)
        peer.context.procs[1].departed = "it was killed"
        peer.finish(*begun)
        assert peer.module.remote.idle  # type: ignore[attr-defined]
        return [transfer.statuses for transfer in begun]

    blocks = {"btl_sm_max_send_size": 128 * 1024}  # too few for all that is put
    settings = {"btl_sm_single_copy_mechanism": "emulated", **blocks}
    results = run("sm", program, seed=seed, **settings).results
    assert results[0] == [[UNREACHABLE]] * 3


@pytest.mark.parametrize("seed", range(effort(6)))
@pytest.mark.parametrize("name", ["sm", "tcp"])
def test_finalize_completes_what_is_under_way(name: str, seed: int) -> None:
    """Each once, well or badly, also when the peer ends first; nobody hangs."""

    def program(peer: Peer) -> list[Transfer]:
        handles = peer.swap(peer.expose(bytearray(700_000)))
        if peer.context.rank == 0:
            for how in ("put", "get", "put"):
                peer.start(how, 1, bytearray(400_000 + seed * 10_000), 1, handles[1])
        else:
            peer.context.engine.wait_until(lambda: False, seed * 100_000)
        return peer.transfers

    settings = {"btl_sm_single_copy_mechanism": "emulated"} if name == "sm" else {}
    transfers = run(name, program, seed=seed, **settings).results[0]
    assert [len(transfer.statuses) for transfer in transfers] == [1] * 3


def noted(job: object, name: str) -> list[dict[str, object]]:
    return [dict(e.fields) for e in job.events() if e.name == name]  # type: ignore[attr-defined]


def test_the_kernels_copy_is_tried_and_told() -> None:
    job = run("sm", programs.put_then_tell, trace=True)
    assert {event["peer"] for event in noted(job, "SINGLE_COPY")} == {1}  # rank 0 puts to rank 1
    assert not noted(job, "NO_SINGLE_COPY")
    job = run("sm", programs.put_then_tell, trace=True, btl_sm_single_copy_mechanism="emulated")
    assert not noted(job, "SINGLE_COPY")


@pytest.mark.parametrize("ranks", [2, 3])
def test_what_is_refused_never_reaches_the_kernel(ranks: int) -> None:
    """It would be refused there too, or not at all: a real kernel knows no registrations."""
    job = run("sm", programs.refusals, ranks=ranks, trace=True)
    assert len(noted(job, "SINGLE_COPY")) == ranks
    assert not noted(job, "NO_SINGLE_COPY")


@pytest.mark.parametrize("allowed", [0, 3])
def test_a_kernel_that_refuses(monkeypatch: pytest.MonkeyPatch, allowed: int) -> None:
    """At the first try or later: fragments carry it instead, and a trace event says why."""
    calls = []
    honest = VirtualCopy.write, VirtualCopy.read

    def refusing(index: int):  # type: ignore[no-untyped-def]
        def call(self: VirtualCopy, process: int, address: int, view: memoryview) -> None:
            calls.append(process)
            if len(calls) > allowed:
                raise LinkError("not permitted")
            honest[index](self, process, address, view)

        return call

    monkeypatch.setattr(VirtualCopy, "write", refusing(0))
    monkeypatch.setattr(VirtualCopy, "read", refusing(1))
    job = run("sm", programs.put_then_tell, trace=True)
    assert job.results == [0, 6]  # type: ignore[attr-defined]
    assert [event["why"] for event in noted(job, "NO_SINGLE_COPY")] == ["not permitted"]
    assert len(calls) == allowed + 1


def test_another_process_behind_the_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the probe reads is not what the peer wrote: its memory is not ours to copy with."""

    def read(self: VirtualCopy, process: int, address: int, view: memoryview) -> None:
        view[:] = bytes(len(view))

    monkeypatch.setattr(VirtualCopy, "read", read)
    job = run("sm", programs.put_then_tell, trace=True)
    assert job.results == [0, 6]  # type: ignore[attr-defined]
    assert "another" in str(noted(job, "NO_SINGLE_COPY")[0]["why"])


@pytest.mark.parametrize("mechanism", sorted(SINGLE_COPY))
def test_more_registrations_than_the_table_has(mechanism: str) -> None:
    """Those beyond it are reached by fragments; given back, their places are used again."""

    def program(peer: Peer) -> int:
        many = [bytearray(10) for _ in range(TABLE_SLOTS + 5)]
        handles = [peer.expose(memory) for memory in many]
        last = peer.swap(handles[-1])
        put = peer.start(
            "put", 1 - peer.context.rank, b"0123456789", 0, last[1 - peer.context.rank]
        )
        peer.finish(put)
        assert put.good
        peer.meet()
        assert many[-1] == b"0123456789"
        for handle in handles:
            peer.module.deregister_mem(handle)
        first = peer.expose(many[0])
        again = peer.swap(first)
        get = peer.start(
            "get", 1 - peer.context.rank, bytearray(10), 0, again[1 - peer.context.rank]
        )
        peer.finish(get)
        assert get.good
        peer.meet()
        peer.module.deregister_mem(first)
        return len(peer.module.remote._table)  # type: ignore[attr-defined]

    job = run("sm", program, btl_sm_single_copy_mechanism=mechanism)
    assert job.results == [0, 0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("way", ["self", "single copy", "fragments", "tcp"])
def test_nothing_is_left(way: str) -> None:
    """No registration, exposed address, operation or poller, when all were given back."""
    from tests.sim.rdma.test_put_and_get import WAYS

    def program(peer: Peer) -> tuple[int, int]:
        before = len(peer.context.engine._pollers)
        programs.refusals(peer)
        programs.many_at_once(peer)
        peer.meet()
        module = peer.module
        if isinstance(module, SmModule):
            left = len(module.remote._table) + (not module.remote.idle)
        elif isinstance(module, TcpModule):
            ends = module._endpoints.values()
            left = len(module.registered) + sum(not end.remote.idle for end in ends)
        else:
            left = len(module.registered)  # type: ignore[attr-defined]
        return left, len(peer.context.engine._pollers) - before

    name, settings = WAYS[way]
    job = run(name, program, ranks=1 if way == "self" else 2, **settings)
    assert set(job.results) == {(0, 0)}  # type: ignore[attr-defined]
    assert not job.networks[0]._fabric.memory.exposed


def test_same_seed_same_trace() -> None:
    def lines(name: str, seed: int) -> list[str]:
        job = run(name, programs.many_at_once, seed=seed, trace=True, rails=NARROW)
        return [event.line() for event in job.events()] + [str(job.scheduler.time)]

    for name in ("sm", "tcp"):
        assert lines(name, 5) == lines(name, 5)
    assert lines("tcp", 5) != lines("tcp", 6)


def test_data_of_all_kinds_of_buffers() -> None:
    """Doubles and two dimensions count as bytes."""

    def program(peer: Peer) -> None:
        memory = memoryview(bytearray(64)).cast("d", (2, 4))
        handle = peer.expose(memory)
        handles = peer.swap(handle)
        there = 1 - peer.context.rank
        put = peer.start("put", there, pattern(60, 1), 4, handles[there])
        peer.finish(put)
        assert put.good
        peer.meet()
        assert memory.tobytes()[4:] == pattern(60, 1)
        peer.module.deregister_mem(handle)

    for name in ("sm", "tcp"):
        run(name, program)
