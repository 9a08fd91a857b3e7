"""Records: bytes of a stream under a seal; none is used before its seal was found right.

    head   length u32, and its own MAC of 12 bytes
    body   `length` bytes; encrypted where that was agreed
    tag    16 bytes: a MAC over the record's number, its head and its body, or AES-GCM's

A direction of a connection has a key of its own, and its records are numbered from 0; the number
is not on the wire. So a record that was altered, forged, left out, sent again, moved, or taken from
another connection or direction has a wrong tag. The head has a MAC of its own because a length is
needed before the tag is here: what nobody has sealed can make us wait for nothing.

MACs are keyed BLAKE2b; of a long body, over its SHA-256, which processors help with. Sans-IO.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.net.base import LinkError
from ompy.net.pieces import without
from ompy.net.seals.handshake import SealLevel

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORD_MAX: Final = 64 * 1024  # bytes; arbitrary: a MAC over it takes long beside all else
HEAD_TAG_SIZE: Final = 12  # bytes; arbitrary: nobody guesses 96 bits in one try
LENGTH_SIZE: Final = 4
HEAD_SIZE: Final = LENGTH_SIZE + HEAD_TAG_SIZE
TAG_SIZE: Final = 16  # AES-GCM's; of a MAC as many
OVERHEAD: Final = HEAD_SIZE + TAG_SIZE
# bytes from which hashing first costs less; measured: 1.7 us against 1.1 + 0.8 for 1024 bytes
HASHED_FROM: Final = 2048
# records under one key; arbitrary: 36 years of 10**9 a second, and far below 2**64
COUNT_MAX: Final = 1 << 60
NONCE_SIZE: Final = 12  # bytes; AES-GCM's: four of zeros and the record's number
_KEY_SIZE: Final = 32  # bytes; arbitrary: AES-256 and BLAKE2b both take them
_NO_BYTES: Final = b""


class SealError(LinkError):
    """What came is not what the other end has sealed, or nothing more may be sealed."""


def session_keys(job_key: bytes, transcript: bytes) -> tuple[bytes, bytes]:
    """The keys of one connection: of what its initiator sends, and of what its acceptor sends.

    HKDF (RFC 5869) with HMAC-SHA256: the salt is all that was said in the handshake, so both
    nonces, both ranks, the job and the seal that was agreed on.

    Args:
        job_key: secret of the job.
        transcript: what both have said, and both have proven.
    """
    secret = hmac.digest(transcript, job_key, "sha256")
    return (
        hmac.digest(secret, b"ompy stream initiator\x01", "sha256"),
        hmac.digest(secret, b"ompy stream acceptor\x01", "sha256"),
    )


def _cipher(key: bytes) -> Any:
    # late, and an optional requirement: `ompy[encrypt]`
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


@cclass
class _Direction:
    """What both ends of one direction share: its keys and the number of the next record.

    Attributes:
        count: records so far.
    """

    _body: Any
    _cipher: Any
    _head: Any
    count: int
    __slots__ = tuple(__annotations__)

    def __init__(self, key: bytes, level: SealLevel) -> None:
        assert len(key) == _KEY_SIZE
        assert level is not SealLevel.NONE, "nothing is made into records then"
        # hashes that have taken the key; what a record adds goes into copies of them
        self._head = blake2b(key=key, person=b"ompy head", digest_size=HEAD_TAG_SIZE)
        self._body = blake2b(key=key, person=b"ompy body", digest_size=TAG_SIZE)
        self._cipher = None
        if level is SealLevel.ENCRYPT:
            made = blake2b(key=key, person=b"ompy cipher", digest_size=_KEY_SIZE)
            self._cipher = _cipher(made.digest())
        self.count = 0

    @cfunc
    def _head_of(self, size: int) -> bytes:
        """The head of the next record, with a body of `size` bytes."""
        length: bytes = size.to_bytes(LENGTH_SIZE, "little")
        made = self._head.copy()
        made.update(raw.one_word(self.count) + length)
        digest: bytes = made.digest()
        return length + digest

    @cfunc
    def _tag_of(self, head: bytes, body: bytes | memoryview) -> bytes:
        """The MAC of the next record."""
        made = self._body.copy()
        made.update(raw.one_word(self.count) + head)
        made.update(body if len(body) < HASHED_FROM else sha256(body).digest())
        digest: bytes = made.digest()
        return digest

    @cfunc
    def _nonce(self) -> bytes:
        return bytes(NONCE_SIZE - 8) + raw.one_word(self.count)


@cclass
class Sealer(_Direction):
    """Makes records."""

    __slots__ = ()

    @ccall
    def seal(self, body: bytes | memoryview) -> tuple[bytes, bytes | memoryview, bytes]:
        """The next record, in three pieces: head, body and tag.

        Args:
            body: 1 to `RECORD_MAX` bytes, which nobody changes before all is sent.

        Raises:
            SealError: there were too many records under this key.
        """
        if self.count >= COUNT_MAX:
            raise SealError(f"{COUNT_MAX} records under one key: a fresh connection is needed")
        head: bytes = self._head_of(len(body))
        if self._cipher is None:
            tag = self._tag_of(head, body)
        else:
            both = memoryview(self._cipher.encrypt(self._nonce(), body, head))
            body, tag = both[:-TAG_SIZE], bytes(both[-TAG_SIZE:])
        self.count += 1
        return head, body, tag


@cclass
class Opener(_Direction):
    """Finds records in what arrives, and checks them.

    Attributes:
        plain: what the last record that `next` has found says; valid until `room` is called.
    """

    _begin: int
    _checked: bool
    _end: int
    _memory: memoryview[int]
    _why: str
    plain: memoryview[int] | bytes
    __slots__ = tuple(__annotations__)

    def __init__(self, key: bytes, level: SealLevel) -> None:
        super().__init__(key, level)
        # room for one record and as much again, so that many small ones come in one read
        self._memory = memoryview(bytearray(2 * (RECORD_MAX + OVERHEAD)))
        self._begin = 0
        self._end = 0
        self._checked = False  # the head of a record that is not whole
        self._why = ""
        self.plain = _NO_BYTES

    @property
    def holds(self) -> bool:
        """Whether there are bytes that belong to no record that was found."""
        return self._end > self._begin

    @ccall
    def room(self) -> memoryview:
        """Memory to receive into, never empty. Invalidates `plain`."""
        if self._begin == self._end:
            self._begin = self._end = 0
        elif self._begin > len(self._memory) // 2:
            held: int = self._end - self._begin
            self._memory[:held] = self._memory[self._begin : self._end]
            self._begin, self._end = 0, held
        return self._memory[self._end :]

    @ccall
    def received(self, count: int) -> None:
        """`count` bytes were stored in what `room` offered."""
        self._end += count

    @ccall
    def next(self) -> bool:
        """Find the next record that is whole, and take its seal off.

        Raises:
            SealError: it has none that is right; so does every later call.
        """
        if self._why:
            raise SealError(self._why)
        held: int = self._end - self._begin
        if held < HEAD_SIZE:
            return False
        memory = self._memory
        begin: int = self._begin
        head: bytes = bytes(memory[begin : begin + HEAD_SIZE])
        size: int = int.from_bytes(head[:LENGTH_SIZE], "little")
        if not 0 < size <= RECORD_MAX:
            raise self._broken("its length is none that is ever sent")
        if held < OVERHEAD + size:
            if not self._checked:
                if not hmac.compare_digest(head, self._head_of(size)):
                    raise self._broken("its length has a wrong MAC")
                self._checked = True
            return False
        body: int = begin + HEAD_SIZE
        self._open(head, memory[body : body + size], body + size)
        self._begin = body + size + TAG_SIZE
        self._checked = False
        self.count += 1
        return True

    @cfunc
    def _open(self, head: bytes, body: memoryview, tag: int) -> None:
        """Check a record, whose tag begins at byte `tag`, and take what it says."""
        if self.count >= COUNT_MAX:
            raise self._broken("it is one too many under one key")
        if self._cipher is None:
            said = self._memory[tag : tag + TAG_SIZE]
            if not hmac.compare_digest(said, self._tag_of(head, body)):
                raise self._broken("its MAC is wrong")
            self.plain = body
            return
        both = self._memory[tag - len(body) : tag + TAG_SIZE]
        try:
            self.plain = self._cipher.decrypt(self._nonce(), both, head)
        except Exception:  # InvalidTag, of a package that need not be there
            raise self._broken("its tag is wrong") from None

    def _broken(self, why: str) -> SealError:
        """Nothing after it is looked at: where the next record would begin, nobody knows."""
        self._why = (
            f"what came is not what the other end has sealed (record {self.count} of this "
            f"connection: {why}); it was altered, forged or sent again on the way"
        )
        self.plain = _NO_BYTES
        return SealError(self._why)


@cclass
class Writer:
    """Gives a stream's bytes to a transport as records, however little that takes at a time.

    A record that has begun must go out whole. So what was offered and not taken is offered again
    first: its bytes are here already, and only how many they are is looked at.
    """

    _claimed: int
    _rest: list[memoryview[int]]
    _sealer: Sealer
    _transmit: Callable[[Sequence[memoryview[int]]], int]
    __slots__ = tuple(__annotations__)

    def __init__(self, sealer: Sealer, transmit: Callable[[Sequence[memoryview]], int]) -> None:
        """Write through `transmit`, which answers how many bytes it has taken, 0 for none now."""
        self._sealer = sealer
        self._transmit = transmit
        self._rest = []  # of the record that has begun
        self._claimed = 0  # bytes it says

    @property
    def pending(self) -> bool:
        """Whether a record has begun that is not out."""
        return self._claimed > 0

    @ccall
    def write_pieces(self, pieces: Sequence[memoryview]) -> int:
        """Send as much of `pieces` as the transport takes.

        Returns:
            Bytes of `pieces` whose records are out whole.
        """
        taken: int = 0
        left: list[memoryview[int]] = list(pieces)
        while True:
            if self._claimed:
                if not self._push():
                    return taken
                left = without(left, self._claimed)
                taken += self._claimed
                self._claimed = 0
            body: bytes = _first(left)
            if not body:
                return taken
            head: bytes
            head, sealed, tag = self._sealer.seal(body)
            self._claimed = len(body)
            if len(body) < HASHED_FROM:  # one copy costs less than a gathering system call
                self._rest = [memoryview(b"".join((head, sealed, tag)))]
            else:
                self._rest = [memoryview(head), memoryview(sealed), memoryview(tag)]

    @cfunc
    def _push(self) -> bool:
        """Send what is left of a record, while any of it is taken. Whether all of it is out."""
        while self._rest:
            count: int = self._transmit(self._rest)
            if not count:
                return False
            self._rest = without(self._rest, count)
        return True


@cfunc
def _first(pieces: Sequence[memoryview]) -> bytes:
    """A copy of the first bytes, at most a record of them.

    A copy, because the memory may be the user's, and what was sealed must be what is sent.
    """
    if len(pieces) == 1:
        return bytes(pieces[0][:RECORD_MAX])
    size: int = 0
    found: list[memoryview[int]] = []
    for piece in pieces:
        found.append(piece[: RECORD_MAX - size])
        size += len(found[-1])
        if size == RECORD_MAX:
            break
    return _NO_BYTES.join(found)


assert HEAD_SIZE == 16
assert OVERHEAD == 32
