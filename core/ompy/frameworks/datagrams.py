"""Datagrams between the processes of a job, for components that need no more than that.

A datagram may be lost or overtaken; it is never altered, never made up and never repeated. In
front of what is sent stand a seal and the sender's rank:

    MAC    16 bytes: BLAKE2b of all that follows and of the receiver's rank, under a key derived
           from the job's key and the name the datagrams go by
    number  8 bytes: of the sender's datagrams to this receiver (`ompy.net.seals.datagram_seal`)
    sender  4 bytes: rank in the world, little-endian

Nothing of a datagram is looked at before its MAC is right, so a stranger can make us compute a
hash and nothing else; the MAC is the checksum too. A recorded datagram is right for one receiver
and one name only, and once: what comes again, whoever has sent it, is dropped. Number what you send
all the same: it may be lost, and what you send again is another datagram.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.data.errors import ERR_ARG, MPIError
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.component import NotAvailable
from ompy.net.base import Address, Datagram, LinkError
from ompy.net.seals.replay import Taken

if TYPE_CHECKING:
    from ompy.net.seals.datagram_seal import DatagramSeal

# bytes; RFC 4303 2.2.1, reference: a number of 8 beside the MAC; as `ompy.net.seals.datagram_seal`
# has it
SEAL_SIZE: Final = 24
RANK_SIZE: Final = 4  # arbitrary: no job has more than 2**32 ranks
DATAGRAM_MAX: Final = 65_507  # Linux: bytes a UDP datagram over IPv4 has room for
BURST: Final = 16  # arbitrary: bounded work a poll
_FIRST: Final = SEAL_SIZE + RANK_SIZE  # arbitrary: behind the sender's rank is what was sent
LARGEST: Final = DATAGRAM_MAX - _FIRST


class JobDatagrams:
    """One socket of this rank, and the way to every process that has one of the same name.

    Attributes:
        refused: datagrams that arrived and were not from this job, or damaged.
        replayed: datagrams that had arrived before, or came too late to tell.
    """

    def __init__(self, context: RankContext, name: str, host: str = "") -> None:
        """Open a socket and publish its address in the modex under `name`.

        It is on loopback when the whole job is on this host, else on the first interface that is
        not.

        Args:
            context: the rank.
            name: such as `btl.udplite`; only sockets of the same name hear each other.
            host: address of the interface it is on instead.

        Raises:
            NotAvailable: the host has no interface to use.
        """
        self.refused = self.replayed = 0
        self._context = context
        self._name = name
        self._seal: DatagramSeal | None = None
        self._addresses: dict[int, Address | None] = {}
        self._room = memoryview(bytearray(DATAGRAM_MAX))
        self._socket = _open(context, host)
        self._socket.carries(name)
        self._readiness = context.network.readiness()
        self._readiness.add(self._socket, self)
        self._open = True
        host, port = self._socket.address
        context.wireup.publish(name, f"{host} {port}".encode())

    def ends(self, proc: Proc) -> tuple[str, str, str]:
        """Name and address of the interface that the socket is on, and the address of a peer's."""
        own, there = self._socket.address.host, self._address(proc)
        return self._context.network.rail_to(own), own, there.host if there is not None else ""

    def reaches(self, proc: Proc) -> bool:
        """Whether `proc` has a socket of this name; waits until it has said so."""
        return self._address(proc) is not None

    def send(self, proc: Proc, *pieces: bytes) -> bool:
        """Send `pieces` as one datagram to a process this one reaches.

        Returns:
            False when the system does not take it now, for want of room or of a network.

        Raises:
            MPIError: ERR_ARG, it is larger than `LARGEST`.
        """
        address = self._address(proc)
        assert address is not None, f"{proc} has no socket of the name {self._name}"
        head = bytes(SEAL_SIZE), self._context.rank.to_bytes(RANK_SIZE, "little")
        packet = bytearray().join((*head, *pieces))
        if len(packet) > DATAGRAM_MAX:
            raise MPIError(
                ERR_ARG,
                f"{self._name}: {len(packet) - SEAL_SIZE - RANK_SIZE} bytes do not fit a datagram, "
                f"which holds {LARGEST}: lower the size limits of the component",
            )
        self._sealed.close(memoryview(packet), _name(proc.rank))
        try:
            return self._socket.send(memoryview(packet), address)
        except LinkError:
            return False  # the interface is down, or the route is gone; either may come back

    def arrived(self) -> list[tuple[Proc, memoryview]]:
        """The datagrams that are here, some of them if they are many, each with its sender.

        What was sent is the caller's to keep.
        """
        found = []
        for _ in range(BURST):
            packet = self._next() if self.ready() else None
            if packet is None:
                break
            taken = self._sealed.open(packet, _name(self._context.rank))
            if taken is None:
                self.refused += 1
            elif taken is Taken.NEW:
                sender = int.from_bytes(packet[SEAL_SIZE:_FIRST], "little")
                found.append((self._context.proc(sender), packet[_FIRST:]))
            else:
                self.replayed += 1
        return found

    def ready(self) -> bool:
        """Whether a datagram is here. A rank that sleeps is woken when one comes."""
        return self._open and bool(self._readiness.poll())

    def close(self) -> None:
        """Give the socket back; what comes from now on is lost. Harmless the second time."""
        if self._open:
            self._open = False
            self._readiness.remove(self._socket)
            self._readiness.close()
            self._socket.close()

    def _address(self, proc: Proc) -> Address | None:
        if proc.rank not in self._addresses:
            text = self._context.modex(proc).get(self._name, b"").decode()
            host, _, port = text.partition(" ")
            address = Address(host, int(port)) if text else None
            self._addresses[proc.rank] = address
            if address is not None:
                self._context.network.introduce(proc.rank, [address])
        return self._addresses[proc.rank]

    def _next(self) -> memoryview | None:
        found = self._socket.receive_into(self._room)
        return memoryview(bytes(self._room[: found[0]])) if found is not None else None

    @property
    def _sealed(self) -> DatagramSeal:
        if self._seal is None:
            from ompy.net.seals.datagram_seal import DatagramSeal  # late: most ranks never need one

            context = self._context
            name, first = self._name.encode(), context.engine.now()
            self._seal = DatagramSeal(context.job_key, name, (0, RANK_SIZE), first)
        return self._seal


def _name(rank: int) -> bytes:
    """What a rank is called in seals."""
    return rank.to_bytes(RANK_SIZE, "little")


def _open(context: RankContext, host: str) -> Datagram:
    one_host = context.one_host
    found = sorted(context.network.interfaces(), key=lambda other: other.loopback is not one_host)
    try:
        return context.network.datagram(host or found[0].address)
    except IndexError:
        raise NotAvailable("this host has no network interface") from None
    except LinkError as problem:
        raise NotAvailable(str(problem)) from problem
