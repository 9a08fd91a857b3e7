"""What stands in front of every datagram of a job: a MAC, and a number that never comes again.

    MAC     16 bytes: of all that follows and of who is to receive it (`seal.py`)
    number   8 bytes, little-endian: of this sender's datagrams to this receiver

A receiver takes each number of a sender once (`replay.py`): what somebody has recorded and sends
again is dropped, however much later that is, and so is what the network repeats. What is sent
again after a loss is a new datagram with a new number. The protocol above has numbers of its own,
which may wrap.

The number is whole and not, as in IPsec (RFC 4303 2.2.1), a low half whose high half is guessed: no
length of silence or loss brings the ends apart, and 4 bytes more are nothing beside a MAC of 16.

Numbers begin at the sender's clock, in ns, so one that is opened anew goes on above what it has
sent before. An epoch or a connection of the protocol above begins no new numbers. The job's key is
of one start of the job, so nothing recorded from another one is right.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, Shown, ccall, cclass
from ompy.data.header_layout import HeaderLayout
from ompy.net.seals.replay import ReplayWindow, Taken
from ompy.net.seals.seal import MAC_SIZE, PacketSeal

NUMBER_SIZE: Final = 8  # bytes; RFC 4303 2.2.1, reference: 64 bits never wrap
SEAL_LAYOUT: Final = HeaderLayout("seal.datagram", "mac b16, number u64")
SEAL_SIZE: Final = MAC_SIZE + NUMBER_SIZE
assert SEAL_LAYOUT.size == SEAL_SIZE
assert SEAL_SIZE == 24


@cclass
class DatagramSeal:
    """Closes datagrams to any receiver, and opens those for us.

    Attributes:
        refused: datagrams whose MAC was not right.
        repeated: genuine ones that were here before.
        late: genuine ones behind the window; who needs them sends them again.
    """

    _begin: int
    _first: U64
    _named: int
    _numbers: Shown[dict[bytes, int]]
    _seal: Shown[PacketSeal]
    _windows: dict[bytes, ReplayWindow]
    late: int
    repeated: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, job_key: bytes, protocol: bytes, sender: tuple[int, int], first: int
    ) -> None:
        """For one protocol of one process.

        Args:
            job_key: secret of the job.
            protocol: its name.
            sender: where behind the seal a datagram names its sender: from which byte to which.
            first: what numbers begin above: the clock, in ns.
        """
        begin, end = sender
        self._begin = SEAL_SIZE + begin
        self._named = end - begin
        self._seal = PacketSeal(job_key, protocol)
        self._first = first
        self._numbers = {}  # the last one, by receiver
        self._windows = {}  # by sender and our own name
        self.repeated = self.late = 0

    @property
    def refused(self) -> int:
        """Datagrams whose MAC was not right."""
        return self._seal.refused

    @ccall
    def close(self, datagram: memoryview, to: bytes) -> None:
        """Write number and MAC into the first bytes of a datagram that is whole otherwise.

        Once for each time it is sent.

        Args:
            datagram: all that will be sent.
            to: who is to receive it, by a name that both ends know; 16 bytes at most.
        """
        number: U64 = self._numbers.get(to, self._first) + 1
        self._numbers[to] = number
        raw.copy(datagram, MAC_SIZE, raw.one_word(number), 0, NUMBER_SIZE)
        self._seal.seal(datagram, to)

    @ccall
    def withdraw(self, to: bytes) -> None:
        """The datagram that was closed last for a receiver was not sent: its number is free.

        Only for what the device has refused as a whole. Who tries again for long would otherwise
        leave what is under way behind the window.
        """
        self._numbers[to] -= 1

    @ccall
    def open(self, datagram: memoryview, own: bytes) -> Taken | None:
        """Whether a datagram is genuine, and taken for the first time; None when it is not genuine.

        Args:
            datagram: all that has arrived.
            own: our name, as `close` has it.
        """
        if not self._seal.genuine(datagram, own):
            return None
        # what the job has sealed is long enough
        who = raw.part(datagram, self._begin, self._named) + own
        window: ReplayWindow | None = self._windows.get(who)
        if window is None:
            window = self._windows[who] = ReplayWindow()
        taken = window.accept_number(raw.word(datagram, MAC_SIZE))
        if taken is Taken.REPEATED:
            self.repeated += 1
        elif taken is Taken.LATE:
            self.late += 1
        return taken
