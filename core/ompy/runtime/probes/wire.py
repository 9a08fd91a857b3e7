"""What agents ask each other, as datagrams.

    MAC      16  BLAKE2b of all that follows, under a key derived from the job's
    kind      1  1 question, 2 answer
    asker     4  rank for which it is asked
    peer      4  rank at the other end of the path
    nonce     8  of the agent that asks, drawn when it starts
    watch     4  which of its paths
    number    4  of the question

Little-endian. An answer is the question with another kind. A question that is recorded and sent
again is answered again, which tells nobody anything; an answer is taken once, by its asker only.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

MAC_SIZE: Final = 16  # bytes; arbitrary: nobody guesses 128 bits
NONCE_SIZE: Final = 8  # bytes; arbitrary: agents that ask at once differ
QUESTION: Final = 1  # arbitrary, and the next
ANSWER: Final = 2
_FIELDS: Final = Struct("<BII8sII")
SIZE: Final = MAC_SIZE + 25
assert MAC_SIZE + _FIELDS.size == SIZE
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

    def __init__(self, job_key: bytes) -> None:
        from ompy.net.seal import PacketSeal  # late: most agents never ask

        self._seal = PacketSeal(job_key, _PURPOSE)

    def pack(self, message: Message) -> bytes:
        """The datagram."""
        said = _FIELDS.pack(*message)
        return self._seal.mac(said) + said

    def unpack(self, datagram: bytes) -> Message:
        """What it says.

        Raises:
            BadProbe: it is too short or too long, its MAC is wrong, or its kind unknown.
        """
        if len(datagram) != SIZE:
            raise BadProbe(f"{len(datagram)} bytes, {SIZE} were expected")
        if not self._seal.genuine(datagram):
            raise BadProbe("the MAC is wrong")
        message = Message(*_FIELDS.unpack(datagram[MAC_SIZE:]))
        if message.kind not in (QUESTION, ANSWER):
            raise BadProbe(f"unknown kind {message.kind}")
        return message
