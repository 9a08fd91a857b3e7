"""tcp's connections in the virtual world: races, strangers, lost paths, orderly ends."""

from __future__ import annotations

from collections import Counter

import pytest
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.paths.path_life import Life
from ompy.frameworks.pml import STANDARD
from ompy.net.base import Address, LinkError
from ompy.net.seals.handshake import HELLO, MAGIC
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.tcp.connecting import Attempt
from ompy_components.btl.tcp.module import TcpModule
from ompy_components.btl.tcp.path import connections

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.effort import effort
from tests.support.worlds import virtual


def tcp(process: RankProcess) -> TcpModule:
    return next(m for m in process.context.btls if isinstance(m, TcpModule))


def exchange(process: RankProcess) -> None:
    """Everybody sends to everybody at once: every pair connects from both ends."""
    comm, pml = world(process), process.pml
    others = [peer for peer in range(comm.size) if peer != comm.rank]
    receives = [(peer, *buffer(300)) for peer in others]
    requests = [pml.irecv(comm, room, peer, 0) for peer, _, room in receives]
    requests += [pml.isend(comm, send(pattern(300, comm.rank)), p, 0, STANDARD) for p in others]
    for request in requests:
        pml.wait(comm, request)
    for peer, memory, _ in receives:
        assert bytes(memory) == pattern(300, peer)


@pytest.mark.parametrize("seed", range(40))
def test_both_connect_at_once_and_one_connection_stays(seed: int) -> None:
    def program(process: RankProcess) -> dict[int, str]:
        exchange(process)
        return {p: e.path.life.life.value for p, e in tcp(process)._endpoints.items()}

    rails = (Rail("rail0", jitter=200_000),)
    job = virtual(4, program, seed=seed, rails=rails, btl="self,tcp", trace=True)
    for rank, states in enumerate(job.results):
        assert set(states) == set(range(4)) - {rank}
        assert set(states.values()) <= {"working", "over"}  # some peers have ended already
    made = Counter(
        tuple(sorted((event.rank, dict(event.fields)["peer"])))
        for event in job.events()
        if event.layer == "btl.tcp" and event.name == "CONNECTED"
    )
    assert set(made.values()) == {2}, "each pair connected once, as both ends see it"


def test_an_attempt_may_be_given_up_after_the_sockets_were_asked() -> None:
    """The peer's own was taken in the same round of polling, before ours had its turn."""

    def program(process: RankProcess) -> int:
        exchange(process)
        endpoint = tcp(process)._endpoints[1 - process.context.rank]
        user = connections(endpoint.path)
        attempt = Attempt(user, endpoint.proc, user._connector)
        attempt.end()
        return attempt.ready(readable=True, writable=True)

    assert virtual(2, program, btl="self,tcp").results == [0, 0]


def test_small_messages_use_every_rail() -> None:
    """A rail that could not send at once for want of a connection gets one."""

    def program(process: RankProcess) -> list[str]:
        comm, pml = world(process), process.pml
        for _ in range(20):
            memory, room = buffer(8)
            request = pml.irecv(comm, room, 1 - comm.rank, 0)
            pml.send(comm, send(pattern(8, 1)), 1 - comm.rank, 0, STANDARD)
            pml.wait(comm, request)
            assert bytes(memory) == pattern(8, 1)
        modules = [m for m in process.context.btls if isinstance(m, TcpModule)]
        return [m._endpoints[1 - comm.rank].path.life.life.value for m in modules]

    rails = (Rail("rail0"), Rail("rail1"))
    job = virtual(2, program, rails=rails, btl="self,tcp")
    assert job.results == [["working"] * 2] * 2


@pytest.mark.parametrize("seed", range(60))
def test_a_connection_nobody_needed_is_ended_in_order(seed: int) -> None:
    """Small messages open a second rail; the job may end before that is ready."""

    def program(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        if comm.rank:
            for _ in range(1 + seed % 3):
                pml.send(comm, send(pattern(8, comm.rank)), 0, 0, STANDARD)
        else:
            for _ in range(1 + seed % 3):
                for source in range(1, comm.size):
                    memory, room = buffer(8)
                    pml.wait(comm, pml.irecv(comm, room, source, 0))
                    assert bytes(memory) == pattern(8, source)

    rails = (Rail("rail0", jitter=200_000), Rail("rail1", jitter=200_000))
    virtual(4, program, seed=seed, rails=rails, btl="self,tcp")


class Stranger:
    """Talks to a rank's listener without knowing the key."""

    def __init__(self, process: RankProcess, peer: int, say: bytes) -> None:
        lines = process.context.modex(process.context.procs[peer])["btl.tcp"].decode().split()
        self.stream = process.context.network.connect(Address(lines[0], int(lines[1])))
        self.say = say

    def act(self) -> None:
        try:
            if self.say:
                self.say = self.say[self.stream.send([memoryview(self.say)]) :]
            self.stream.receive_into(memoryview(bytearray(64)))
        except LinkError:
            self.say = b""


SAYINGS = {
    "http": b"GET / HTTP/1.1\r\n\r\n",
    "silence": b"",
    "half": b"ompytcp2\0\0",
    "hello-then-garbage": None,
    "zeros": bytes(5000),
}


@pytest.mark.parametrize("saying", sorted(SAYINGS))
@pytest.mark.parametrize("seed", range(5))
def test_strangers_disturb_nobody(saying: str, seed: int) -> None:
    def program(process: RankProcess) -> int:
        comm = world(process)
        say = SAYINGS[saying]
        if say is None:
            job = process.context.job_id
            say = HELLO.pack(MAGIC, job, 0, 1 - comm.rank, 1, b"n" * 16) + b"\1" * 32
        strangers = [Stranger(process, 1 - comm.rank, say) for _ in range(6)]
        for _ in range(30):
            for stranger in strangers:
                stranger.act()
            process.context.engine.progress()
        exchange(process)
        for stranger in strangers:
            stranger.act()
        exchange(process)
        return len(tcp(process).accepting.half_open)

    held = virtual(2, program, seed=seed, btl="self,tcp", btl_tcp_half_open_max=4).results
    assert all(count <= 4 for count in held)


def test_half_open_connections_are_dropped_in_time() -> None:
    def program(process: RankProcess) -> int:
        comm = world(process)
        stranger = Stranger(process, 1 - comm.rank, b"")
        engine = process.context.engine
        engine.wait_until(lambda: bool(tcp(process).accepting.half_open), 10**9)
        assert tcp(process).accepting.half_open
        gone = engine.wait_until(lambda: not tcp(process).accepting.half_open, 10**9)
        stranger.stream.close()
        return gone

    assert virtual(2, program, btl="self,tcp", btl_tcp_handshake_timeout_ms=20).results == [1, 1]


@pytest.mark.parametrize("seed", range(effort(6)))
def test_a_peer_that_computes_for_ten_minutes_is_no_lost_path(seed: int) -> None:
    """It lets nobody in meanwhile; both have to find each other afterwards."""

    def program(process: RankProcess) -> None:
        if process.context.rank == 1:
            process.context.engine.spend(600 * 10**9)  # type: ignore[attr-defined]
        exchange(process)

    virtual(3, program, seed=seed, btl="self,tcp")


@pytest.mark.parametrize("seed", range(effort(6)))
def test_a_lost_path_fails_what_waits_for_the_peer(seed: int) -> None:
    """No failover in ob1: requests fail in bounded time, they do not hang."""

    def program(process: RankProcess) -> list[int]:
        comm, pml = world(process), process.pml
        exchange(process)
        if comm.rank == 1:
            endpoint = tcp(process)._endpoints[0]
            endpoint.close()  # as a crash would: no BYE
            return []
        waiting = [
            pml.irecv(comm, buffer(10)[1], 1, 5),
            pml.isend(comm, send(pattern(900_000, 1)), 1, 5, STANDARD),
        ]
        codes = []
        for request in waiting:
            try:
                pml.wait(comm, request)
            except MPIError as problem:
                codes.append(problem.code)
                assert "rank 1 on host0" in str(problem) or "from rank" in str(problem)
        return codes

    results = virtual(2, program, seed=seed, btl="self,tcp").results
    assert len(results[0]) == 2
    assert ERR_PROC_FAILED in results[0]


def test_ends_say_bye_and_lose_nothing() -> None:
    """The last message before the end arrives although its sender leaves at once."""

    def program(process: RankProcess) -> bytes:
        comm, pml = world(process), process.pml
        if comm.rank == 0:
            pml.isend(comm, send(pattern(60_000, 9)), 1, 0, STANDARD)
            return b""
        process.context.engine.spend(50_000_000)  # the sender is long gone
        memory, room = buffer(60_000)
        pml.recv(comm, room, 0, 0)
        return bytes(memory)

    for seed in range(5):
        results = virtual(2, program, seed=seed, btl="self,tcp").results
        assert results[1] == pattern(60_000, 9)


def test_sending_to_who_has_left_is_an_error() -> None:
    def program(process: RankProcess) -> None:
        comm, pml = world(process), process.pml
        exchange(process)
        if comm.rank == 0:
            return
        endpoint = tcp(process)._endpoints[0]
        process.context.engine.wait_until(lambda: endpoint.path.life.life is Life.OVER, 10**10)
        pml.send(comm, send(b"x" * 1000), 0, 0, STANDARD)

    with pytest.raises(RankFailed, match="no longer reaches rank 0"):
        virtual(2, program, btl="self,tcp")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"btl_tcp_if_include": "b"}, ["b"]),
        ({"btl_tcp_if_include": " a , b"}, ["a", "b"]),
        ({"btl_tcp_if_exclude": "a"}, ["b"]),
        ({}, ["a", "b"]),
    ],
)
def test_interfaces_by_list(settings: dict[str, str], expected: list[str]) -> None:
    def program(process: RankProcess) -> list[str]:
        exchange(process)
        return [m.interface.name for m in process.context.btls if isinstance(m, TcpModule)]

    rails = (Rail("a"), Rail("b"))
    assert virtual(2, program, rails=rails, btl="self,tcp", **settings).results == [expected] * 2


def test_interface_lists_that_cannot_be() -> None:
    rails = (Rail("a"), Rail("b"))
    with pytest.raises(
        RankFailed, match="names c, which is not here or has no cable; in use are a .*, b "
    ):
        virtual(2, exchange, rails=rails, btl="self,tcp", btl_tcp_if_include="c")
    with pytest.raises(RankFailed, match="only one of btl_tcp_if_include and btl_tcp_if_exclude"):
        virtual(
            2, exchange, rails=rails, btl="self,tcp", btl_tcp_if_include="a", btl_tcp_if_exclude="b"
        )


def test_ports_by_range() -> None:
    def program(process: RankProcess) -> int:
        exchange(process)
        return tcp(process).listener.address.port

    ports = virtual(
        3, program, btl="self,tcp", btl_tcp_port_min_v4=5000, btl_tcp_port_range_v4=10
    ).results
    assert all(5000 <= port < 5010 for port in ports)


def test_a_path_is_given_up_when_nothing_is_acknowledged_for_long_without_a_break(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program(process: RankProcess) -> list[bool]:
        exchange(process)
        if process.context.rank:
            return []
        module = tcp(process)
        endpoint = module._endpoints[1]
        stream, states = type(endpoint._stream), []
        looks = [(True, 1), (False, 2), (True, 3), (True, module.silence.limit + 2)]
        for repeats, now in [*looks, (True, module.silence.limit + 3)]:
            monkeypatch.setattr(stream, "sends_again", lambda _, repeats=repeats: repeats)
            watched = endpoint.look(now)
            states.append(endpoint.up)
            assert watched == endpoint.up
        return states

    job = virtual(2, program, seed=1, btl="self,tcp")
    assert job.results[0] == [True] * 4 + [False]
