"""Runs of datagrams through the kernel, and what it says when it cannot take them."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from typing import Any

import pytest
from ompy.net import sockets
from ompy.net.base import RUN_MAX, Address, LinkError
from ompy.net.sockets import SocketDatagram

from tests.support.forms import interpreted_only

PACKETS = [memoryview(bytes([number]) * 100) for number in range(20)] + [memoryview(b"short")]


class Kernel:
    """A socket that answers as it is told, and counts."""

    def __init__(self, problem: OSError | None = None, run_problem: OSError | None = None) -> None:
        self.problem, self.run_problem = problem, run_problem
        self.sent: list[bytes] = []
        self.runs = 0

    def setblocking(self, flag: bool) -> None: ...

    def fileno(self) -> int:
        return -1

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    def sendto(self, packet: memoryview, address: Address) -> None:
        if self.problem is not None:
            raise self.problem
        self.sent.append(bytes(packet))

    def sendmsg(self, packets: Sequence[memoryview], note: Any, flags: int, to: Address) -> None:
        self.runs += 1
        if self.run_problem is not None:
            raise self.run_problem
        self.sent += map(bytes, packets)


def over(kernel: Kernel) -> SocketDatagram:
    return SocketDatagram(kernel)  # type: ignore[arg-type]


def test_a_run_is_one_call_each_way() -> None:
    near, far = sockets.bind_udp("127.0.0.1", 0), sockets.bind_udp("127.0.0.1", 0)
    room = memoryview(bytearray(RUN_MAX))
    assert far.receive_run_into(room) is None
    assert near.send_run(PACKETS, far.address) == len(PACKETS)
    got: list[bytes] = []
    while len(got) < len(PACKETS):
        found = far.receive_run_into(room)
        assert found is not None
        total, size, sender = found
        assert sender == near.address
        got += [bytes(room[at : min(at + size, total)]) for at in range(0, total, size)]
    assert got == [bytes(packet) for packet in PACKETS]
    near.close()
    far.close()


def test_what_a_real_kernel_says() -> None:
    near, far = sockets.bind_udp("127.0.0.1", 0), sockets.bind_udp("127.0.0.1", 0)
    room = memoryview(bytearray(RUN_MAX))
    assert near.receive_into(room) is None
    assert near.send(PACKETS[1], far.address) is True
    found = far.receive_into(room)
    assert found == (100, near.address)
    assert bytes(room[:100]) == bytes(PACKETS[1])
    with pytest.raises(LinkError, match=r"Errno \d+"):
        near.send(memoryview(bytes(70_000)), far.address)  # more than a datagram holds
    gone = far.address
    far.close()
    assert all(near.send(PACKETS[1], gone) for _ in range(3)), "its port is closed: lost"
    near.receive_into(room)
    assert near.receive_into(room) is None
    near.close()
    with pytest.raises(LinkError, match="descriptor"):
        near.send(PACKETS[1], gone)
    with pytest.raises(LinkError, match="descriptor"):
        near.receive_run_into(room)


@interpreted_only
@pytest.mark.parametrize("code", [errno.EINVAL, errno.EIO, errno.ENOPROTOOPT, errno.EOPNOTSUPP])
def test_a_kernel_that_cannot_split_is_asked_once(code: int) -> None:
    kernel = Kernel(run_problem=OSError(code, "no"))
    socket = over(kernel)
    for _ in range(2):
        assert socket.send_run(PACKETS, Address("", 1)) == len(PACKETS)
    assert kernel.sent == 2 * [bytes(packet) for packet in PACKETS]
    assert kernel.runs == 1


@interpreted_only
@pytest.mark.parametrize(
    ("problem", "one", "run"),
    [
        (BlockingIOError(), False, 0),
        (PermissionError(errno.EPERM, "a packet filter"), True, len(PACKETS)),
        (ConnectionRefusedError(), True, len(PACKETS)),
    ],
)
def test_what_a_busy_kernel_says(problem: OSError, one: bool, run: int) -> None:
    socket = over(Kernel(problem, problem))
    assert socket.send(PACKETS[0], Address("", 1)) is one
    assert socket.send_run(PACKETS, Address("", 1)) == run


@interpreted_only
def test_a_network_that_is_down() -> None:
    socket = over(Kernel(OSError(errno.ENETDOWN, "down"), OSError(errno.ENETDOWN, "down")))
    with pytest.raises(LinkError, match="down"):
        socket.send(PACKETS[0], Address("", 1))
    with pytest.raises(LinkError, match="down"):
        socket.send_run(PACKETS, Address("", 1))


@interpreted_only
def test_too_much_for_one_call_goes_one_by_one() -> None:
    kernel = Kernel()
    large = [memoryview(bytes(9000))] * 8
    assert over(kernel).send_run(large, Address("", 1)) == 8
    assert kernel.runs == 0
    assert len(kernel.sent) == 8
