"""Real sockets behind the net contract: non-blocking, polled by whoever waits."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import struct
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ompy.engine.wakeup import Wakeup
from ompy.net import wire
from ompy.net.base import (
    WOULD_BLOCK,
    Address,
    Datagram,
    LinkError,
    Listener,
    Readiness,
    Ready,
    Source,
    Stream,
)
from ompy.net.totals import NOTHING, Totals

BACKLOG: Final = 128  # arbitrary: seldom do more ranks connect to one at the same moment
_SOL_UDP: Final = 17  # Linux
_UDP_GRO: Final = 104  # Linux: have what comes merged
_IN: Final = select.POLLIN | select.POLLHUP | select.POLLERR
_OUT: Final = select.POLLOUT
_SEND_QUEUE: Final = 0x5411  # Linux SIOCOUTQ
_INT: Final = struct.Struct("@i")
_INFO_SIZE: Final = 8  # Linux struct tcp_info: its first fields are bytes
_RETRANSMITS: Final = 2  # Linux struct tcp_info: repetitions since the last acknowledgement
_PROBES: Final = 3  # Linux struct tcp_info: the same for questions whether there is room again
# Linux struct tcp_info: places of total_retrans, bytes_received, bytes_sent and bytes_retrans
_RESENT: Final = 100
_RECEIVED: Final = 128
_SENT: Final = 200
_INFO_LONG: Final = struct.Struct("@Q")
_INFO_PAIR: Final = struct.Struct("@QQ")
_INFO_WHOLE: Final = _SENT + _INFO_PAIR.size  # bytes; Linux 4.19 has so many
# seconds to the first question, between two, and how many go unanswered
_KEEPALIVE: Final = ((4, 1), (5, 1), (6, 2))  # arbitrary: known in 3 s; Linux TCP_KEEP*
_LOOPBACK: Final = b"lo\0"  # Linux: it has no neighbours, and drops what is for nobody here
_NO_LINGER: Final = struct.pack("ii", 1, 0)  # Linux struct linger: on, for 0 s
# Linux; any user may choose it. Within a host nothing is congested, and what paces its packets
# (bbr) carries large messages at two thirds of the speed, measured
_UNPACED: Final = b"reno"
_RECEIVE_ROOM: Final = 1 << 22  # bytes; arbitrary: the kernel gives as much of it as it allows
_DATAGRAM_MAX: Final = 65_507  # Linux: bytes one send over IPv4 has room for
# as good as lost: the ICMP answer to an earlier packet, and what a packet filter has dropped
_LOST: Final = (errno.ECONNREFUSED, errno.EPERM, errno.EACCES)
_FULL: Final = (errno.EAGAIN, errno.EINTR)
_NOTHING_HERE: Final = (errno.EAGAIN, errno.EINTR, errno.ECONNREFUSED)
# what kernels and devices say that cannot cut a send, or not into packets of that size
_CANNOT_SPLIT: Final = (errno.EINVAL, errno.EIO, errno.ENOPROTOOPT, errno.EOPNOTSUPP)
# a socket that is full, or empty, or on its way to be connected
_NOT_NOW: Final = frozenset((errno.EAGAIN, errno.EINTR, errno.ENOTCONN, errno.EINPROGRESS))


def _said(number: int) -> str:
    """What the kernel says, as an `OSError` does."""
    return str(OSError(number, os.strerror(number)))


class SocketSource(Source):
    """Anything with a socket."""

    __slots__ = ("socket",)

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock

    def close(self) -> None:
        """Close the socket."""
        self.socket.close()


class SocketStream(SocketSource, Stream):
    """A TCP connection."""

    __slots__ = ("_descriptor",)

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._descriptor = sock.fileno()
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Hand bytes to the kernel."""
        if len(pieces) == 1:
            taken = wire.send(self._descriptor, pieces[0])
        else:
            taken = wire.send_pieces(self._descriptor, pieces)
        if taken < 0 and -taken not in _NOT_NOW:
            raise LinkError(_said(-taken))
        return max(taken, 0)

    def stay_on_host(self) -> None:
        """Send as fast as the receiver takes it: both ends are on this host."""
        option = getattr(socket, "TCP_CONGESTION", None)
        if option is not None:
            with contextlib.suppress(OSError):  # the kernel was built without it
                self.socket.setsockopt(socket.IPPROTO_TCP, option, _UNPACED)

    def abandon(self) -> None:
        """Linger for no time."""
        with contextlib.suppress(OSError):  # it is reset already
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)

    def block_output(self) -> None:
        """By binding it to the loopback device, which Linux lets anybody do from 5.7 on."""
        option = getattr(socket, "SO_BINDTODEVICE", None)
        if option is not None:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, option, _LOOPBACK)

    def sends_again(self) -> bool:
        """As the kernel counts (Linux)."""
        try:
            info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_SIZE)
        except OSError:  # its next use says why
            return False
        return bool(info[_RETRANSMITS] or info[_PROBES])

    def unacknowledged(self) -> int:
        """As the kernel counts (Linux)."""
        try:
            answer = fcntl.ioctl(self.socket, _SEND_QUEUE, bytes(_INT.size))
        except (OSError, ValueError):  # closed, or another system
            return 0
        return int(_INT.unpack(answer)[0])

    def totals(self) -> Totals:
        """As the kernel counts (Linux)."""
        try:
            info = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO_WHOLE)
        except OSError:  # closed, or no TCP
            return NOTHING
        if len(info) < _INFO_WHOLE:  # an older kernel
            return NOTHING
        (received,) = _INFO_LONG.unpack_from(info, _RECEIVED)
        sent, again = _INFO_PAIR.unpack_from(info, _SENT)
        (segments,) = _INT.unpack_from(info, _RESENT)
        return Totals(sent - again, received, segments)

    def own_address(self) -> Address:
        """As the kernel has it."""
        try:
            return Address(*self.socket.getsockname()[:2])
        except OSError:  # closed
            return Address("", 0)

    def hold_unsent(self, most: int) -> None:
        """By an option of Linux; elsewhere the kernel holds what it likes."""
        option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
        if option is not None:
            self.socket.setsockopt(socket.IPPROTO_TCP, option, most)

    def ask_when_idle(self) -> bool:
        """By keepalive."""
        if sys.platform != "linux":
            return False
        for option, value in _KEEPALIVE:
            self.socket.setsockopt(socket.IPPROTO_TCP, option, value)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return True

    def receive_into(self, view: memoryview) -> int:
        """Take bytes from the kernel."""
        count = wire.receive(self._descriptor, view)
        if count >= 0:
            return count
        if -count in _NOT_NOW:
            return WOULD_BLOCK
        raise LinkError(_said(-count))

    def close(self) -> None:
        """Close the socket."""
        self._descriptor = -1  # its number may soon be another's
        super().close()

    def fail(self, why: str) -> None:
        """End both directions; the kernel says so to whoever waits."""
        with contextlib.suppress(OSError):  # not connected, or gone already
            self.socket.shutdown(socket.SHUT_RDWR)


class SocketListener(SocketSource, Listener):
    """A listening TCP socket. `wrap` is applied to each accepted stream."""

    __slots__ = ("_wrap", "address")

    def __init__(self, sock: socket.socket, wrap: object) -> None:
        super().__init__(sock)
        self.address = Address(*sock.getsockname()[:2])
        self._wrap = wrap

    def accept(self) -> Stream | None:
        """A connection from the backlog, or None."""
        try:
            sock, peer = self.socket.accept()
        except OSError:  # nobody there, or gone again, or out of descriptors: try later
            return None
        stream = SocketStream(sock)
        if peer[0] == self.address.host:
            stream.stay_on_host()
        return self._wrap(stream, Address(*peer[:2])) if callable(self._wrap) else stream


class _Packed(dict[tuple[str, int], bytes]):
    """Addresses as the kernel has them: host and port, as the network orders their bytes."""

    def __missing__(self, address: tuple[str, int]) -> bytes:
        host, port = address
        packed = socket.inet_aton(socket.gethostbyname(host)) + port.to_bytes(2)
        self[address] = packed
        return packed


class _Senders(dict[object, Address]):
    """Addresses by what the kernel says of them."""

    def __missing__(self, said: Any) -> Address:
        if isinstance(said, bytes):
            found = Address(socket.inet_ntoa(said[:4]), int.from_bytes(said[4:]))
        else:
            found = Address(*said)
        self[said] = found
        return found


class SocketDatagram(SocketSource, Datagram):
    """A UDP socket. Runs of packets go through the kernel in one call where it can (GSO, GRO)."""

    __slots__ = ("_descriptor", "_merging", "_packed", "_senders", "_splitting", "address")

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._descriptor = sock.fileno()
        self._packed = _Packed()
        self._senders = _Senders()
        self.address = Address(*sock.getsockname()[:2])
        self._splitting = True  # until the kernel says that it cannot
        self._merging: bool | None = None  # asked when it is first needed

    def send(self, packet: memoryview, address: Address) -> bool:
        """Hand one packet to the kernel."""
        taken = wire.send_packets(self.socket, self._descriptor, [packet], address, self._packed)
        if not taken or -taken in _LOST:
            return True
        if -taken in _FULL:
            return False
        raise LinkError(_said(-taken))

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """Take one packet from the kernel."""
        count, _, sender = wire.receive_packets(self.socket, self._descriptor, view)
        if count >= 0:
            return count, self._senders[sender]
        if -count in _NOTHING_HERE:
            return None
        raise LinkError(_said(-count))

    def send_run(self, packets: Sequence[memoryview], address: Address) -> int:
        """Hand the kernel a whole run, which it cuts into packets itself."""
        count = len(packets)
        if count > 1 and (not self._splitting or count * len(packets[0]) > _DATAGRAM_MAX):
            return super().send_run(packets, address)
        known = self._packed
        taken = wire.send_packets(self.socket, self._descriptor, packets, address, known)
        if not taken or -taken in _LOST:
            return count
        if -taken in _FULL:
            return 0
        if count == 1 or -taken not in _CANNOT_SPLIT:
            raise LinkError(_said(-taken))
        self._splitting = False
        return super().send_run(packets, address)

    def receive_run_into(self, view: memoryview) -> tuple[int, int, Address] | None:
        """Take what the kernel has merged."""
        if self._merging is None:
            self._merging = _merges(self.socket)
        count, size, sender = wire.receive_packets(self.socket, self._descriptor, view)
        if count >= 0:
            return count, size, self._senders[sender]
        if -count in _NOTHING_HERE:
            return None
        raise LinkError(_said(-count))

    def close(self) -> None:
        """Close the socket."""
        self._descriptor = -1  # its number may soon be another's
        super().close()


def _merges(sock: socket.socket) -> bool:
    """Ask the kernel to hand out packets of one size together; whether it will."""
    try:
        sock.setsockopt(_SOL_UDP, _UDP_GRO, 1)
    except OSError:
        return False
    return True


class SocketReadiness(Readiness):
    """One poll set over many sockets, itself one of the rank's wake-up descriptors."""

    __slots__ = ("_held", "_owners", "_poll", "_wakeup")

    def __init__(self, wakeup: Wakeup) -> None:
        self._poll = select.epoll()
        self._owners: dict[int, object] = {}
        self._held: set[int] = set()  # descriptors of what is readable whatever the kernel says
        self._wakeup = wakeup
        wakeup.watch_descriptor(self._poll.fileno(), _nothing)

    def add(self, source: Source, owner: object) -> None:
        """Watch a source made by this module, or one wrapped around it."""
        descriptor = descriptor_of(source)
        self._owners[descriptor] = owner
        self._poll.register(descriptor, _IN)
        if isinstance(source, Stream) and source.holds():
            self._held.add(descriptor)

    def hold(self, source: Stream, *, held: bool) -> None:
        """Report a source without asking the kernel, or no longer."""
        descriptor = descriptor_of(source)
        if held and descriptor in self._owners:
            self._held.add(descriptor)
        else:
            self._held.discard(descriptor)

    def want_write(self, source: Source, *, wanted: bool) -> None:
        """Watch for room to write, or no longer."""
        descriptor = descriptor_of(source)
        if descriptor in self._owners:
            self._poll.modify(descriptor, _IN | _OUT if wanted else _IN)

    def remove(self, source: Source) -> None:
        """Forget a source."""
        descriptor = descriptor_of(source)
        self._held.discard(descriptor)
        if self._owners.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def poll(self) -> list[Ready]:
        """Ask the kernel once."""
        if not self._owners:
            return []
        owners = self._owners
        found = self._poll.poll(0)
        if not found and not self._held:
            return []
        if self._held:
            masks = dict.fromkeys(self._held, 0) | dict(found)
            found = [(at, mask | _IN if at in self._held else mask) for at, mask in masks.items()]
        return [
            Ready(owners[descriptor], bool(mask & _IN), bool(mask & _OUT))
            for descriptor, mask in found
            if descriptor in owners
        ]

    def close(self) -> None:
        """Close the poll set."""
        if not self._poll.closed:
            self._wakeup.remove(self._poll.fileno())
            self._poll.close()
        self._owners.clear()
        self._held.clear()


def descriptor_of(source: Source) -> int:
    """The descriptor under a source, through any middleware around it."""
    while not isinstance(source, SocketSource):
        source = source.inner  # type: ignore[attr-defined]
    return source.socket.fileno()


def listen_tcp(host: str, ports: Iterable[int], wrap: object) -> SocketListener:
    """Listen at the first free port. Raises LinkError when there is none."""
    problem: OSError | None = None
    for port in ports:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.bind((host, port))
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            problem = error
            continue
        return SocketListener(sock, wrap)
    raise LinkError(f"cannot listen at {host}: {problem or 'the port range is empty'}")


def connect_tcp(address: Address, source: str) -> SocketStream:
    """Begin a TCP connection. Raises LinkError when it fails at once."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        stream = SocketStream(sock)
        if source:
            sock.bind((source, 0))
            if source == address.host:
                stream.stay_on_host()
        outcome = sock.connect_ex(address)
    except OSError as problem:
        sock.close()
        raise LinkError(f"cannot connect to {address.host}:{address.port}: {problem}") from problem
    if outcome not in (0, errno.EINPROGRESS):
        sock.close()
        raise LinkError(
            f"cannot connect to {address.host}:{address.port}: {errno.errorcode.get(outcome)}"
        )
    return stream


def bind_udp(host: str, port: int) -> SocketDatagram:
    """A bound UDP socket."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.bind((host, port))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_ROOM)
    except OSError as problem:
        sock.close()
        raise LinkError(f"cannot bind to {host}:{port}: {problem}") from problem
    return SocketDatagram(sock)


def _nothing() -> None:
    """The rank is awake: whoever owns the set polls it."""
