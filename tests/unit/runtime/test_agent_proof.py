"""An agent and who has started it prove themselves over what anybody can read and write."""

import os
import socket
import threading

import pytest
from ompy.runtime.agents.agent_proof import LETTER_MAX, NONCE_SIZE, AgentProof, accept
from ompy.runtime.connections.control import ControlError
from ompy.runtime.connections.credentials import CredentialError
from ompy.runtime.connections.pipes import PipePair

BANNER = b"banner"


def secret_file(folder, content=b"sixteen bytes ok", name="secret"):
    path = folder / name
    path.write_bytes(content)
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def secret(tmp_path):
    return secret_file(tmp_path)


class Link:
    """The two ends of what carries the connection."""

    def __init__(self):
        self.starter, agent = socket.socketpair()
        self.starter.settimeout(10)
        self.agent = PipePair(os.dup(agent.fileno()), os.dup(agent.fileno()))
        agent.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.starter.close()
        self.agent.close()

    def answer(self):
        """What the agent says first, banner taken off."""
        said = self.starter.recv(1 << 16)
        assert said.startswith(BANNER)
        return said[len(BANNER) :]


def test_both_have_the_key_and_hear_each_other(secret):
    proof = AgentProof(secret)
    invitation = proof.invite()
    with Link() as link:
        link.starter.sendall(invitation.letter())
        agents, known = accept(link.agent, *invitation.words, BANNER)
        agents.send(b"ready")
        answer = link.answer()
        assert invitation.accepted(link.starter, answer[: NONCE_SIZE - 1]) is None
        starters, first = invitation.accepted(link.starter, answer)
        assert first == b"ready"
        starters.send(b"begin")
        assert agents.recvmsg(100)[0] == b"begin"
        assert known.key == proof.key


def test_the_key_is_in_nothing_that_passes(secret):
    proof = AgentProof(secret)
    invitation = proof.invite()
    with Link() as link:
        letter = invitation.letter()
        link.starter.sendall(letter)
        agents, _ = accept(link.agent, *invitation.words, BANNER)
        agents.send(b"ready")
        passed = letter + link.answer() + " ".join(invitation.words).encode()
    for form in (proof.key, proof.key.hex().encode()):
        assert form not in passed


def test_each_job_and_each_start_has_its_own(secret):
    one, other = AgentProof(secret), AgentProof(secret)
    assert one.key != other.key
    assert one.invite().words[0] != one.invite().words[0]
    assert one.keys("a", b"n") != one.keys("b", b"n")
    assert one.keys("a", b"n") != one.keys("a", b"m")


def test_an_agent_below_proves_itself_by_the_same_key(secret):
    """What an agent has is all that it needs to start others."""
    proof = AgentProof(secret)
    with Link() as link:
        invitation = proof.invite()
        link.starter.sendall(invitation.letter())
        _, relay = accept(link.agent, *invitation.words, BANNER)
    with Link() as link:
        invitation = relay.invite()
        link.starter.sendall(invitation.letter())
        _, leaf = accept(link.agent, *invitation.words, BANNER)
        assert leaf.key == proof.key


def refused(link, words, letter):
    link.starter.sendall(letter)
    link.starter.shutdown(socket.SHUT_WR)
    with pytest.raises(CredentialError) as problem:
        accept(link.agent, *words, BANNER)
    link.starter.setblocking(False)
    with pytest.raises(BlockingIOError):  # and nothing was said to whoever that was
        link.starter.recv(100)
    return str(problem.value)


def test_letters_of_others_and_to_others_are_refused(secret, tmp_path):
    proof = AgentProof(secret)
    words = proof.invite().words
    stranger = AgentProof(secret_file(tmp_path, b"another sixteen.", "other"))
    for letter, why in (
        (proof.invite().letter(), "meant for another agent"),
        (stranger.letter(words[0]), "another OMPY_SECRET_FILE"),
        (bytes(4), "no seal"),
        ((LETTER_MAX + 1).to_bytes(4, "big"), "no seal"),
        (b"GET / HTTP/1.0\r\n\r\n", "no seal"),
    ):
        with Link() as link:
            assert why in refused(link, words, letter)


@pytest.mark.parametrize("sealed", [b"[]", b"{}", b"\xff", b'{"role": "start", "name": 3}'])
def test_nonsense_under_a_right_seal_is_refused(secret, sealed):
    proof = AgentProof(secret)
    letter = proof._credentials.seal(sealed)
    with Link() as link:
        why = refused(link, proof.invite().words, len(letter).to_bytes(4, "big") + letter)
        assert "nonsense under a seal" in why


def test_every_altered_byte_of_a_letter_is_found(secret):
    proof = AgentProof(secret)
    invitation = proof.invite()
    letter = invitation.letter()
    for place in range(len(letter)):
        altered = letter[:place] + bytes([letter[place] ^ 1]) + letter[place + 1 :]
        with Link() as link:
            link.starter.sendall(altered)
            link.starter.shutdown(socket.SHUT_WR)
            with pytest.raises((CredentialError, BrokenPipeError)):
                accept(link.agent, *invitation.words, BANNER)


def test_every_altered_byte_of_an_answer_is_found(secret):
    """Of its nonce too: the keys are others then."""
    proof = AgentProof(secret)
    invitation = proof.invite()
    with Link() as link:
        link.starter.sendall(invitation.letter())
        agents, _ = accept(link.agent, *invitation.words, BANNER)
        agents.send(b"ready")
        answer = link.answer()
        assert invitation.accepted(link.starter, answer)[1] == b"ready"
        for place in range(len(answer)):
            altered = answer[:place] + bytes([answer[place] ^ 1]) + answer[place + 1 :]
            with pytest.raises(ControlError, match="not what the other end has sealed"):
                invitation.accepted(link.starter, altered)


def test_what_an_agent_said_once_is_worthless_to_the_next_start(secret):
    proof = AgentProof(secret)
    with Link() as link:
        invitation = proof.invite()
        link.starter.sendall(invitation.letter())
        agents, _ = accept(link.agent, *invitation.words, BANNER)
        agents.send(b"ready")
        recorded = link.answer()
        with pytest.raises(ControlError):
            proof.invite().accepted(link.starter, recorded)


def test_an_answer_in_the_other_direction_is_none(secret):
    """A reflection."""
    proof = AgentProof(secret)
    invitation = proof.invite()
    with Link() as link:
        link.starter.sendall(invitation.letter())
        agents, _ = accept(link.agent, *invitation.words, BANNER)
        agents.send(b"ready")
        link.starter.sendall(link.answer()[NONCE_SIZE:])
        with pytest.raises(ControlError):
            agents.recvmsg(100)


def test_a_starter_that_goes_away_is_waited_for_no_longer(secret):
    proof = AgentProof(secret)
    invitation = proof.invite()
    with Link() as link:
        link.starter.sendall(invitation.letter()[:50])
        closing = threading.Timer(0.05, link.starter.close)
        closing.start()
        with pytest.raises(BrokenPipeError):
            accept(link.agent, *invitation.words, BANNER)
        closing.join()
