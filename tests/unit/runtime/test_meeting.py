"""Agents and coordinator prove themselves to each other; nobody else gets anywhere."""

import os
import socket

import pytest
from ompy.runtime.connections.credentials import CredentialError, Munge, SecretFile
from ompy.runtime.passive.coordinator_address import listen_for_agents, ports
from ompy.runtime.passive.meeting import (
    MAGIC,
    Apply,
    Joined,
    MeetingError,
    Met,
    Receive,
    Transmit,
    prove_as_agent,
    prove_as_coordinator,
)

PART = {"host": "a", "ranks": [[1, 0, 42, ["python"]]], "cores": 2}
SALT = bytes(range(32))


def secret_file(folder, name="secret", content=b"sixteen bytes ok", mode=0o600):
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


class Side:
    """One side of a handshake without a wire: what it sends is kept for the other."""

    def __init__(self, steps):
        self.steps, self.step, self.sent, self.outcome = steps, None, b"", None
        self.go_on(None)

    def go_on(self, found):
        """Do all steps but those that wait for the other side."""
        try:
            self.step = self.steps.send(found)
            while not isinstance(self.step, Receive):
                found = b""
                if isinstance(self.step, Transmit):
                    self.sent += self.step.data
                else:
                    found = self.apply(self.step)
                self.step = self.steps.send(found)
        except StopIteration as end:
            self.outcome = end.value
        except (MeetingError, CredentialError) as problem:
            self.outcome = problem

    def apply(self, step):
        assert isinstance(step, Apply)
        try:
            return step.function(step.text)
        except CredentialError as problem:
            self.step = self.steps.throw(problem)
            raise AssertionError("it goes on after a wrong seal") from problem

    def hear(self, other):
        """Take what the other has sent for this step. Whether there was as much."""
        if self.outcome is not None or len(other.sent) < self.step.size:
            return False
        said, other.sent = other.sent[: self.step.size], other.sent[self.step.size :]
        self.go_on(said)
        return True


def meet(agent, coordinator, job="j", nonces=None):
    """What both sides come to: values or exceptions."""
    mine, theirs = nonces or (os.urandom(16), os.urandom(16))
    sides = (
        Side(prove_as_agent(agent, "j", PART, mine)),
        Side(prove_as_coordinator(coordinator, job, SALT, theirs)),
    )
    while sides[0].hear(sides[1]) or sides[1].hear(sides[0]):
        pass
    ended = MeetingError("the connection ended")  # as the one that fails closes it
    return [ended if side.outcome is None else side.outcome for side in sides]


def test_both_get_the_key_and_the_part(tmp_path):
    proof = SecretFile(secret_file(tmp_path))
    (key, agents), (hello, coordinators) = meet(proof, proof)
    assert key == proof.key(SALT)
    assert len(key) == 32
    assert agents == coordinators[::-1], "what one sends with, the other opens with"
    assert len({*agents, key}) == 3
    assert hello["part"] == PART


def test_each_connection_has_keys_of_its_own(tmp_path):
    proof = SecretFile(secret_file(tmp_path))
    first, second = meet(proof, proof)[0], meet(proof, proof)[0]
    assert first.key == second.key
    assert not set(first.keys) & set(second.keys)


def test_another_secret_and_another_job_get_nowhere(tmp_path):
    proof = SecretFile(secret_file(tmp_path))
    other = SecretFile(secret_file(tmp_path, "other", b"another sixteen."))
    for agent, coordinator, job in ((proof, other, "j"), (proof, proof, "k")):
        mine, theirs = meet(agent, coordinator, job)
        assert isinstance(mine, MeetingError)
        assert isinstance(theirs, MeetingError)
    assert proof.key(SALT) != other.key(SALT)


class Recording(SecretFile):
    """Remembers what it sealed, and may say it again."""

    last = b""

    def seal(self, text):
        self.last = self.last or super().seal(text)
        return self.last


def test_what_was_said_to_one_is_worthless_to_another(tmp_path):
    """A hello or an answer that is replayed does not have the nonces of this connection."""
    path = secret_file(tmp_path)
    honest, replaying = SecretFile(path), Recording(path)
    assert isinstance(meet(replaying, honest)[1], Joined)
    assert isinstance(meet(replaying, honest)[1], MeetingError)
    replaying.last = b""
    assert isinstance(meet(honest, replaying)[0], Met)
    assert isinstance(meet(honest, replaying)[0], MeetingError)


class Reflecting(SecretFile):
    """Answers with what it was told."""

    def open(self, sealed):
        self.told = sealed
        return super().open(sealed)

    def seal(self, text):
        return self.told


def test_a_reflection_is_no_answer(tmp_path):
    path = secret_file(tmp_path)
    assert isinstance(meet(SecretFile(path), Reflecting(path))[0], MeetingError)


@pytest.mark.parametrize("said", [b"GET / HTTP/1.0\r\n\r\n" * 9, b"\xff" * 500])
def test_strangers_are_dropped(tmp_path, said):
    side = Side(prove_as_coordinator(SecretFile(secret_file(tmp_path)), "j", SALT, bytes(16)))
    side.go_on(said[: side.step.size])
    assert isinstance(side.outcome, MeetingError)


def test_another_program_is_no_coordinator(tmp_path):
    side = Side(prove_as_agent(SecretFile(secret_file(tmp_path)), "j", PART, bytes(16)))
    assert side.step == Receive(len(MAGIC) + 16)
    side.go_on(b"220 a mail server, at your service"[: side.step.size])
    assert "another program" in str(side.outcome)


def test_all_hosts_know_where_and_a_taken_port_is_passed_over():
    job = f"test.{os.getpid()}"
    assert len(set(ports(job))) == 4
    assert ports(job) != ports("another")
    with socket.create_server(("", ports(job)[0])), listen_for_agents(job) as coordinator:
        assert coordinator.getsockname()[1] == ports(job)[1]


def test_the_secret_file_has_to_be_one(tmp_path):
    for path, why in (
        (str(tmp_path / "none"), "No such file"),
        (secret_file(tmp_path, "open", mode=0o604), "others may read or write it"),
        (secret_file(tmp_path, "short", b"short"), "16 to 4096 random bytes"),
        (secret_file(tmp_path, "large", b"x" * 4097), "16 to 4096 random bytes"),
    ):
        with pytest.raises(CredentialError, match=why):
            SecretFile(path)


FAKE = """#!/bin/sh
# the daemon's part: what is sealed names its user
case $0 in
*unmunge) printf 'UID: {user}\\n\\n'; cut -d: -f2- ;;
*) printf 'MUNGE:'; cat ;;
esac
"""


@pytest.mark.parametrize("mine", [True, False])
def test_munge_is_asked_who_sealed_it(tmp_path, monkeypatch, mine):
    user = os.geteuid() if mine else os.geteuid() + 1
    for name in ("munge", "unmunge"):
        (tmp_path / name).write_text(FAKE.format(user=user))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'AuthInfo = socket=/run/m'\n")
    (tmp_path / "scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    proof = Munge()
    if mine:
        (key, _), (hello, _) = meet(proof, proof)
        assert (key, hello["part"]) == (proof.key(SALT), PART)
    else:
        with pytest.raises(CredentialError, match="another user"):
            proof.open(proof.seal(b"text"))


def test_no_munge_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(CredentialError, match="set OMPY_SECRET_FILE"):
        Munge()
