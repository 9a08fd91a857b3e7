"""Agents and coordinator prove themselves to each other; nobody else gets anywhere."""

import asyncio
import os
import socket

import pytest
from ompy.runtime.credentials import CredentialError, Munge, SecretFile
from ompy.runtime.passive.meeting import (
    MeetingError,
    connect,
    listen,
    ports,
    prove_as_agent,
    prove_as_coordinator,
)
from ompy.runtime.sealed_connection import SealedConnection

PART = {"host": "a", "ranks": [[1, 0, 42, ["python"]]], "cores": 2}
SALT = bytes(range(32))


def secret_file(folder, name="secret", content=b"sixteen bytes ok", mode=0o600):
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def meet(agent, coordinator, job="j", wire=None):
    """What both sides come to: values or exceptions."""

    async def both():
        ends = socket.socketpair() if wire is None else wire
        for end in ends:
            end.setblocking(False)
        tasks = (
            prove_as_agent(ends[0], agent, "j", PART),
            prove_as_coordinator(ends[1], coordinator, job, SALT),
        )

        async def closing(task, end):
            try:
                return await task
            finally:
                end.close()

        made = [closing(task, end) for task, end in zip(tasks, ends, strict=True)]
        return await asyncio.wait_for(asyncio.gather(*made, return_exceptions=True), 10)

    return asyncio.run(both())


def test_both_get_the_key_and_the_part(tmp_path):
    proof = SecretFile(secret_file(tmp_path))
    (key, agents), (hello, coordinators) = meet(proof, proof)
    assert key == proof.key(SALT)
    assert len(key) == 32
    assert isinstance(agents, SealedConnection)
    assert isinstance(coordinators, SealedConnection)
    assert hello["part"] == PART


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
    assert isinstance(meet(replaying, honest)[1], tuple)
    assert isinstance(meet(replaying, honest)[1], MeetingError)
    replaying.last = b""
    assert isinstance(meet(honest, replaying)[0], tuple)
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


@pytest.mark.parametrize("said", [b"GET / HTTP/1.0\r\n\r\n" * 9, b"\xff" * 500, b""])
def test_strangers_are_dropped(tmp_path, said):
    proof = SecretFile(secret_file(tmp_path))

    async def stranger():
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        with ours, theirs:
            ours.send(said)
            ours.shutdown(socket.SHUT_WR)
            await asyncio.wait_for(prove_as_coordinator(theirs, proof, "j", SALT), 5)

    with pytest.raises(MeetingError):
        asyncio.run(stranger())


def test_all_hosts_know_where_and_a_taken_port_is_passed_over():
    job = f"test.{os.getpid()}"
    assert len(set(ports(job))) == 4
    assert ports(job) != ports("another")
    with socket.create_server(("", ports(job)[0])), listen(job) as coordinator:
        assert coordinator.getsockname()[1] == ports(job)[1]
        found = asyncio.run(connect("127.0.0.1", job))
        assert [end.getpeername()[1] for end in found] == ports(job)[:2]
        for end in found:
            end.close()


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
