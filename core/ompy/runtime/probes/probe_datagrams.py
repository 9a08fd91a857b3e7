"""What agents ask each other, as datagrams.

    seal     24  MAC and a number that never comes again (`ompy.net.seals.datagram_seal`)
    sender    8  agent that sends: what it has drawn when it started
    kind      1  1 question, 2 answer
    asker     4  rank for which it is asked
    peer      4  rank at the other end of the path
    nonce     8  of the agent that asks, as sender has it
    watch     4  which of its paths
    number    8  of the question

Little-endian. An answer is the question with another kind and sender. A datagram is taken once, at
the address and port it was sent to: a question that is recorded and sent again has no answer.
Beyond that an answer is taken by its asker only, and only for a question that it still waits for.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

# bytes; RFC 4303 2.2.1, reference: a number of 8 beside the MAC; as `ompy.net.seals.datagram_seal`
# has it
SEAL_SIZE: Final = 24
NONCE_SIZE: Final = 8  # bytes; arbitrary: agents that ask at once differ
QUESTION: Final = 1  # arbitrary, and the next
ANSWER: Final = 2
_FIELDS: Final = Struct("<8sBII8sIQ")
_SENDER: Final = (0, NONCE_SIZE)
SIZE: Final = SEAL_SIZE + 37
assert SEAL_SIZE + _FIELDS.size == SIZE
_PLACE: Final = Struct("<4sH")  # address and port of IPv4
_PURPOSE: Final = b"ompy path probes"  # arbitrary: no other key of the job is derived with it


class BadProbe(Exception):
    """It is not a datagram of an agent of this job."""


class Message(NamedTuple):
    """A question or its answer."""

    kind: int
    asker: int
    peer: int
    nonce: bytes
    watch: int
    number: int


class ProbeSeal:
    """Makes datagrams that only agents of the job can make, and opens them."""

    def __init__(self, job_key: bytes, nonce: bytes, first: int = 0) -> None:
        """For one agent.

        Args:
            job_key: secret of the job.
            nonce: of the agent, which is a new one each time an agent starts.
            first: what the numbers of its datagrams begin above.
        """
        from ompy.net.seals.datagram_seal import DatagramSeal  # late: most agents never ask

        self._seal = DatagramSeal(job_key, _PURPOSE, _SENDER, first)
        self._nonce = nonce

    def pack(self, message: Message, to: tuple[bytes, int]) -> bytes:
        """The datagram, for an address of 4 bytes and a port."""
        datagram = bytearray(SIZE)
        _FIELDS.pack_into(datagram, SEAL_SIZE, self._nonce, *message)
        self._seal.close(memoryview(datagram), _PLACE.pack(*to))
        return bytes(datagram)

    def unpack(self, datagram: bytes, own: tuple[bytes, int]) -> Message:
        """What a datagram says that has arrived at an address and a port of ours.

        Raises:
            BadProbe: it is too short or too long, its MAC is wrong, it was here before, or its kind
                is unknown.
        """
        from ompy.net.seals.replay import Taken

        if len(datagram) != SIZE:
            raise BadProbe(f"{len(datagram)} bytes, {SIZE} were expected")
        taken = self._seal.open(memoryview(datagram), _PLACE.pack(*own))
        if taken is None:
            raise BadProbe("the MAC is wrong")
        if taken is not Taken.NEW:
            raise BadProbe(f"it is {taken.value}")
        message = Message(*_FIELDS.unpack_from(datagram, SEAL_SIZE)[1:])
        if message.kind not in (QUESTION, ANSWER):
            raise BadProbe(f"unknown kind {message.kind}")
        return message
