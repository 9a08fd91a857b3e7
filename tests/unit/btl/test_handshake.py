"""The tcp handshake: both sides prove the key, and nobody else gets anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.net.seals.handshake import (
    CHALLENGE_SIZE,
    HELLO,
    MAGIC,
    NONCE_SIZE,
    PROOF_SIZE,
    REFUSED,
    TAKEN,
    VERDICT_SIZE,
    Acceptor,
    HandshakeError,
    Initiator,
    Outcome,
    SealLevel,
)

KEY, JOB = b"k" * 32, b"job-0001"
NONCES = b"i" * NONCE_SIZE, b"a" * NONCE_SIZE


def sides(key: bytes = KEY, job: bytes = JOB, target: int = 2) -> tuple[Initiator, Acceptor]:
    return (
        Initiator(key, job, 1, target, NONCES[0]),
        Acceptor(KEY, JOB, 2, 4, NONCES[1]),
    )


def pass_on(source: Initiator | Acceptor, target: Initiator | Acceptor, step: int = 1000) -> bytes:
    said, source.outgoing = source.outgoing, b""
    for begin in range(0, len(said), step):
        piece = said[begin : begin + step]
        while piece:
            count = min(len(piece), target.wanted())
            assert count, "the target wants no more"
            target.feed(piece[:count])
            piece = piece[count:]
    return said


@given(st.integers(1, 60), st.sampled_from([TAKEN, REFUSED]))
def test_both_sides_agree_whatever_the_pieces(step: int, verdict: bytes) -> None:
    initiator, acceptor = sides()
    pass_on(initiator, acceptor, step)
    assert acceptor.outcome is Outcome.UNDER_WAY
    pass_on(acceptor, initiator, step)
    pass_on(initiator, acceptor, step)
    assert acceptor.outcome is Outcome.PROVEN
    assert acceptor.peer == 1
    acceptor.decide(verdict)
    pass_on(acceptor, initiator, step)
    expected = Outcome.TAKEN if verdict == TAKEN else Outcome.REFUSED
    assert initiator.outcome is acceptor.outcome is expected
    assert initiator.outgoing == acceptor.outgoing == b""


def test_wrong_key_job_or_target_is_a_stranger() -> None:
    initiator, acceptor = sides(job=b"job-0002")
    with pytest.raises(HandshakeError, match="another job"):
        pass_on(initiator, acceptor)
    initiator, acceptor = sides(target=3)
    with pytest.raises(HandshakeError, match="looks for rank 3"):
        pass_on(initiator, acceptor)
    initiator, acceptor = sides(key=b"x" * 32)
    pass_on(initiator, acceptor)
    with pytest.raises(HandshakeError, match="job key"):
        pass_on(acceptor, initiator)
    # and an initiator that goes on regardless is turned away
    acceptor.outgoing = b""
    with pytest.raises(HandshakeError, match="job key"):
        acceptor.feed(b"\0" * PROOF_SIZE)
    assert acceptor.outcome is Outcome.UNDER_WAY


def test_a_rank_that_does_not_exist() -> None:
    initiator = Initiator(KEY, JOB, 4, 2, NONCES[0])
    with pytest.raises(HandshakeError):
        pass_on(initiator, Acceptor(KEY, JOB, 2, 4, NONCES[1]))


def test_replayed_bytes_prove_nothing() -> None:
    initiator, acceptor = sides()
    hello = pass_on(initiator, acceptor)
    pass_on(acceptor, initiator)
    proof = pass_on(initiator, acceptor)
    fresh = Acceptor(KEY, JOB, 2, 4, b"b" * NONCE_SIZE)
    fresh.feed(hello)
    with pytest.raises(HandshakeError):
        fresh.feed(proof)


def test_a_proof_is_not_good_in_another_role() -> None:
    initiator, acceptor = sides()
    pass_on(initiator, acceptor)
    challenge = acceptor.outgoing
    with pytest.raises(HandshakeError):
        acceptor.feed(challenge[NONCE_SIZE:])  # the acceptor's own proof sent back to it


@given(st.binary(max_size=300), st.integers(1, 40))
def test_garbage_ends_in_one_kind_of_error(data: bytes, step: int) -> None:
    acceptor = Acceptor(KEY, JOB, 2, 4, NONCES[1])
    fed = 0
    try:
        while fed < len(data) and acceptor.wanted():
            count = min(step, acceptor.wanted(), len(data) - fed)
            acceptor.feed(data[fed : fed + count])
            fed += count
    except HandshakeError:
        pass
    assert acceptor.outcome is Outcome.UNDER_WAY
    assert fed <= HELLO.size + PROOF_SIZE, "an unproven peer makes us read this much at most"


def test_wrong_first_bytes_are_noticed_at_once() -> None:
    acceptor = Acceptor(KEY, JOB, 2, 4, NONCES[1])
    with pytest.raises(HandshakeError, match="first bytes"):
        acceptor.feed(b"GET / HT")
    acceptor = Acceptor(KEY, JOB, 2, 4, NONCES[1])
    acceptor.feed(MAGIC[:3])
    with pytest.raises(HandshakeError):
        acceptor.feed(b"x")


@given(st.integers(0, CHALLENGE_SIZE - 1), st.integers(1, 255))
def test_a_flipped_bit_in_the_challenge(position: int, flip: int) -> None:
    initiator, acceptor = sides()
    pass_on(initiator, acceptor)
    challenge = bytearray(acceptor.outgoing)
    challenge[position] ^= flip
    with pytest.raises(HandshakeError):
        initiator.feed(bytes(challenge))


@given(st.integers(0, VERDICT_SIZE - 1), st.integers(1, 255))
def test_a_flipped_bit_in_the_verdict(position: int, flip: int) -> None:
    initiator, acceptor = sides()
    pass_on(initiator, acceptor)
    pass_on(acceptor, initiator)
    pass_on(initiator, acceptor)
    acceptor.decide(TAKEN)
    verdict = bytearray(acceptor.outgoing)
    verdict[position] ^= flip
    with pytest.raises(HandshakeError):
        initiator.feed(bytes(verdict))
    assert initiator.outcome is Outcome.UNDER_WAY


def agree(initiator: Initiator, acceptor: Acceptor) -> None:
    for _ in range(2):
        pass_on(initiator, acceptor)
        if acceptor.outcome is Outcome.PROVEN:
            acceptor.decide(TAKEN)
        pass_on(acceptor, initiator)


def sealing(ours: SealLevel, theirs: SealLevel, nonce: bytes) -> tuple[Initiator, Acceptor]:
    return (
        Initiator(KEY, JOB, 1, 2, nonce, seal=ours),
        Acceptor(KEY, JOB, 2, 4, NONCES[1], seal_of=lambda rank: theirs),
    )


@pytest.mark.parametrize("level", list(SealLevel))
def test_both_have_the_same_seal_and_transcript(level: SealLevel) -> None:
    initiator, acceptor = sealing(level, level, NONCES[0])
    agree(initiator, acceptor)
    assert initiator.outcome is acceptor.outcome is Outcome.TAKEN
    assert initiator.seal is acceptor.seal is level
    assert initiator.transcript == acceptor.transcript
    again, other = sealing(level, level, b"j" * NONCE_SIZE)
    agree(again, other)
    assert again.transcript != initiator.transcript, "so no two connections have one key"


@pytest.mark.parametrize("ours", list(SealLevel))
@pytest.mark.parametrize("theirs", list(SealLevel))
def test_ends_that_seal_differently_say_so_and_do_not_connect(
    ours: SealLevel, theirs: SealLevel
) -> None:
    if ours is theirs:
        return
    initiator, acceptor = sealing(ours, theirs, NONCES[0])
    with pytest.raises(HandshakeError, match="btl_base_seal"):
        agree(initiator, acceptor)
    assert initiator.outcome is Outcome.UNDER_WAY
    assert acceptor.outcome is Outcome.REFUSED


def test_nobody_in_between_can_have_them_agree_on_less() -> None:
    """The byte that says the seal is in every proof."""
    place = HELLO.size - NONCE_SIZE - 1
    initiator, acceptor = sealing(SealLevel.MAC, SealLevel.NONE, NONCES[0])
    hello = bytearray(initiator.outgoing)
    assert hello[place] == SealLevel.MAC
    hello[place] = SealLevel.NONE
    acceptor.feed(bytes(hello))
    with pytest.raises(HandshakeError, match="job key"):
        initiator.feed(acceptor.outgoing)
