"""Mutual proof of the job key, before anything else is read from a connection.

    initiator                                        acceptor
    HELLO  magic, job id, own rank, target, seal, nonce ->
                                                        <- CHALLENGE  nonce, proof of the key
    PROOF  proof of the key                             ->
                                                        <- VERDICT  taken or refused, with a proof

Every message has a fixed size, so an unproven peer can make us hold that many bytes and no
more. A proof is an HMAC-SHA256 under the job key over its role and everything said before,
so none can be replayed in another role, job, direction or connection. A connection is
*refused* after both sides are proven, when the two ranks opened one to each other at the
same time: the one the lower rank opened stays. Both ends have the same idea of how what follows is
sealed (`SealLevel`), or there is no connection: the initiator's is in its HELLO, so in every proof,
and nobody in between can have them agree on less. The keys of that seal come from the job key and
from HELLO and CHALLENGE, with both nonces in them (`transcript`).

Sans-IO: feed bytes in, send what is in `outgoing`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Final

from ompy.data.header_layout import HeaderLayout

MAGIC: Final = b"ompytcp2"  # of btl/tcp; another protocol has another word
MAGIC_SIZE: Final = 8  # bytes; arbitrary: of the word a connection begins with
NONCE_SIZE: Final = 16  # arbitrary: 128 bits never repeat
PROOF_SIZE: Final = 32  # HMAC-SHA256
HELLO_LAYOUT: Final = HeaderLayout(
    "handshake.hello", "magic b8, job b8, rank u32, target u32, seal u8, nonce b16"
)
HELLO: Final = HELLO_LAYOUT.struct
# for an acceptor of a job that may have grown; arbitrary: beyond what HELLO can say
ANY_RANK: Final = 1 << 32
assert len(MAGIC) == MAGIC_SIZE
assert HELLO.size == 41
CHALLENGE_SIZE: Final = NONCE_SIZE + PROOF_SIZE
VERDICT_SIZE: Final = 1 + PROOF_SIZE
TAKEN: Final = b"\x01"
REFUSED: Final = b"\x02"
UNLIKE: Final = b"\x03"  # the two ends would seal differently


class SealLevel(IntEnum):
    """How what follows a handshake is protected."""

    NONE = 0
    MAC = 1
    ENCRYPT = 2


def _no_seal(_rank: int) -> SealLevel:
    return SealLevel.NONE


class HandshakeError(Exception):
    """The other side is not a process of this job, or not the one it should be."""


class Outcome(Enum):
    """How far a handshake is."""

    UNDER_WAY = "under way"
    PROVEN = "proven"  # acceptor: the initiator is who it says; a verdict is due
    TAKEN = "taken"
    REFUSED = "refused"


def _proof(key: bytes, role: bytes, *said: bytes) -> bytes:
    import hmac  # late: a rank that never connects need not load the library of hashes

    return hmac.digest(key, role + b"".join(said), "sha256")


class Initiator:
    """The side that opened the connection.

    Attributes:
        outgoing: bytes to send; the caller takes them away.
        outcome: how far it is.
        seal: of what follows, once it is TAKEN.
    """

    def __init__(
        self,
        key: bytes,
        job_id: bytes,
        rank: int,
        target: int,
        nonce: bytes,
        magic: bytes = MAGIC,
        seal: SealLevel = SealLevel.NONE,
    ) -> None:
        self._key = key
        self._hello = HELLO.pack(magic, job_id, rank, target, seal, nonce)
        self.seal = seal
        self._received = b""
        self._challenge = b""
        self.outgoing = self._hello
        self.outcome = Outcome.UNDER_WAY

    def wanted(self) -> int:
        """Bytes still missing of what the other side says next."""
        size = VERDICT_SIZE if self._challenge else CHALLENGE_SIZE
        return size - len(self._received)

    def feed(self, data: bytes) -> None:
        """Take bytes in, at most `wanted`.

        Raises:
            HandshakeError: the other side does not know the key.
        """
        self._received += data
        if self.wanted():
            return
        said, self._received = self._received, b""
        if not self._challenge:
            expected = _proof(self._key, b"acceptor", self._hello, said[:NONCE_SIZE])
            _compare(said[NONCE_SIZE:], expected)
            self._challenge = said
            self.outgoing += _proof(self._key, b"initiator", self._hello, said)
            return
        verdict = said[:1]
        _compare(said[1:], _proof(self._key, b"verdict", verdict, self._hello, self._challenge))
        if verdict == UNLIKE:
            raise HandshakeError(
                f"we have the seal {self.seal.name.lower()} for this connection and the peer has "
                "another: set btl_base_seal to the same value everywhere"
            )
        self.outcome = Outcome.TAKEN if verdict == TAKEN else Outcome.REFUSED

    @property
    def transcript(self) -> bytes:
        """What both sides have said and proven, the same at both."""
        return self._hello + self._challenge


class Acceptor:
    """The side that listened.

    Attributes:
        outgoing: bytes to send; the caller takes them away.
        outcome: how far it is.
        peer: the initiator's rank; believe it only when the outcome is `PROVEN`.
        theirs: the initiator's nonce; as that.
        seal: of what follows, once it is TAKEN.
    """

    def __init__(
        self,
        key: bytes,
        job_id: bytes,
        rank: int,
        size: int,
        nonce: bytes,
        magic: bytes = MAGIC,
        seal_of: Callable[[int], SealLevel] = _no_seal,
    ) -> None:
        """Wait for an initiator.

        Args:
            key: of the job.
            job_id: of the job.
            rank: of this process in it.
            size: initiators have lower ranks.
            nonce: this side's.
            magic: what the connection begins with.
            seal_of: says how what comes from a rank has to be sealed.
        """
        self._key = key
        self._magic = magic
        self._seal_of = seal_of
        self._proposed = 0
        self.seal = SealLevel.NONE
        self._job_id = job_id
        self._rank = rank
        self._size = size
        self._nonce = nonce
        self._hello = b""
        self._challenge = b""
        self._received = b""
        self.outgoing = b""
        self.outcome = Outcome.UNDER_WAY
        self.peer = -1
        self.theirs = b""

    def wanted(self) -> int:
        """Bytes still missing of what the other side says next."""
        if self.outcome is not Outcome.UNDER_WAY:
            return 0
        return (PROOF_SIZE if self._hello else HELLO.size) - len(self._received)

    def feed(self, data: bytes) -> None:
        """Take bytes in, at most `wanted`.

        Raises:
            HandshakeError: the other side is a stranger.
        """
        self._received += data
        if not self._magic.startswith(self._received[: len(self._magic)]) and not self._hello:
            raise HandshakeError("not a rank: wrong first bytes")
        if self.wanted():
            return
        said, self._received = self._received, b""
        if self._hello:
            expected = _proof(self._key, b"initiator", self._hello, self._challenge)
            _compare(said, expected)
            self.outcome = Outcome.PROVEN
            return
        _, job_id, peer, target, proposed, theirs = HELLO.unpack(said)
        if job_id != self._job_id or target != self._rank or peer >= self._size:
            raise HandshakeError(f"a rank of another job, or one that looks for rank {target}")
        self._hello = said
        self._proposed = proposed
        self.peer = peer
        self.theirs = theirs
        self._challenge = self._nonce + _proof(self._key, b"acceptor", said, self._nonce)
        self.outgoing += self._challenge

    def decide(self, verdict: bytes) -> None:
        """Take or refuse a proven connection; one that would be sealed otherwise is refused."""
        assert self.outcome is Outcome.PROVEN, "only a proven initiator gets a verdict"
        self.seal = self._seal_of(self.peer)
        if self._proposed != self.seal:
            verdict = UNLIKE
        self.outcome = Outcome.TAKEN if verdict == TAKEN else Outcome.REFUSED
        proof = _proof(self._key, b"verdict", verdict, self._hello, self._challenge)
        self.outgoing += verdict + proof

    @property
    def transcript(self) -> bytes:
        """What both sides have said and proven, the same at both."""
        return self._hello + self._challenge


def _compare(said: bytes, expected: bytes) -> None:
    import hmac

    if not hmac.compare_digest(said, expected):
        raise HandshakeError("the other side does not know the job key")
