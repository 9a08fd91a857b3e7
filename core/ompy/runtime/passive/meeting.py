"""How an agent and the coordinator prove to each other that they are of one job.

agent                                        coordinator
<- nonce
sealed: hello, both nonces, job, its part ->
<- sealed: answer, both nonces, salt

From then on the connection carries control messages in records with a MAC, under keys of the job
key and both nonces.

Both sides are generators that know no socket, clock, thread or chance: they yield what is to be
done and are resumed with what came of it (`handshake_driver.py`).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from ompy import __version__
from ompy.net.seals.records import session_keys
from ompy.runtime.connections.credentials import CredentialError, Credentials

MAGIC: Final = b"ompymeet"
NONCE_SIZE: Final = 16  # bytes; arbitrary: 128 bits never repeat
SALT_SIZE: Final = 32  # bytes; arbitrary: as the key it becomes
SEALED_MAX: Final = 256 * 1024  # bytes; arbitrary: the part of a host with a thousand ranks fits
_SIZE: Final = struct.Struct("!I")


class MeetingError(Exception):
    """This was not the coordinator, or not an agent, of this job."""


class Receive(NamedTuple):
    """Wait for so many bytes, and no more; resumed with them.

    Attributes:
        size: in bytes, above 0.
    """

    size: int


class Transmit(NamedTuple):
    """Send all of this; resumed with nothing (`b""`).

    Attributes:
        data: it.
    """

    data: bytes


class Apply(NamedTuple):
    """Call a function that may wait for another process; resumed with its result.

    Attributes:
        function: makes or opens a seal. What it raises is raised where the step was yielded.
        text: its argument.
    """

    function: Callable[[bytes], bytes]
    text: bytes


Step: TypeAlias = Receive | Transmit | Apply
Result = TypeVar("Result")
Steps: TypeAlias = Generator[Step, bytes, Result]


class Met(NamedTuple):
    """What an agent has when both have proven themselves.

    Attributes:
        key: of the job.
        keys: of records that it sends, and of those that come.
    """

    key: bytes
    keys: tuple[bytes, bytes]


class Joined(NamedTuple):
    """What the coordinator has when both have proven themselves.

    Attributes:
        hello: of the agent, with its version and its part.
        keys: of records that go to it, and of those that come.
    """

    hello: Mapping[str, Any]
    keys: tuple[bytes, bytes]


def prove_as_agent(
    credentials: Credentials, job: str, part: Mapping[str, Any], nonce: bytes
) -> Steps[Met]:
    """Prove this agent to the coordinator and the coordinator to it.

    Args:
        credentials: make and open seals.
        job: its name.
        part: the ranks of this host.
        nonce: `NONCE_SIZE` random bytes, of this connection only.

    Raises:
        MeetingError: it is not the coordinator of this job.
        CredentialError: no proof can be made here.
    """
    theirs = yield Receive(len(MAGIC) + NONCE_SIZE)
    if not theirs.startswith(MAGIC):
        raise MeetingError("another program listens there")
    nonces = nonce.hex() + theirs[len(MAGIC) :].hex()
    hello = {"role": "hello", "nonces": nonces, "job": job, "version": __version__, "part": part}
    sealed = yield Apply(credentials.seal, json.dumps(hello).encode())
    yield _framed(nonce + sealed)
    answer = yield from _open((yield from _receive_sealed()), credentials)
    if answer.get("role") != "answer" or answer.get("nonces") != nonces:
        raise MeetingError("it answered another agent")
    key = credentials.key(bytes.fromhex(answer["salt"]))
    forth, back = _keys(key, nonces)
    return Met(key, (forth, back))


def prove_as_coordinator(
    credentials: Credentials, job: str, salt: bytes, nonce: bytes
) -> Steps[Joined]:
    """Prove an agent to the coordinator and the coordinator to it.

    Args:
        credentials: make and open seals.
        job: its name.
        salt: of which both make the job key.
        nonce: `NONCE_SIZE` random bytes, of this connection only.

    Raises:
        MeetingError: it is not an agent of this job.
        CredentialError: no proof can be made here.
    """
    yield Transmit(MAGIC + nonce)
    said = yield from _receive_sealed()
    nonces = said[:NONCE_SIZE].hex() + nonce.hex()
    hello = yield from _open(said[NONCE_SIZE:], credentials)
    if (hello.get("role"), hello.get("nonces"), hello.get("job")) != ("hello", nonces, job):
        raise MeetingError("an agent of another job, or what it said to another coordinator")
    answer = {"role": "answer", "nonces": nonces, "salt": salt.hex()}
    sealed = yield Apply(credentials.seal, json.dumps(answer).encode())
    yield _framed(sealed)
    forth, back = _keys(credentials.key(salt), nonces)
    return Joined(hello, (back, forth))


def _keys(key: bytes, nonces: str) -> tuple[bytes, bytes]:
    """Of what the agent says, and of what the coordinator says."""
    return session_keys(key, b"ompy meeting" + nonces.encode())


def _open(sealed: bytes, credentials: Credentials) -> Steps[dict[str, Any]]:
    try:
        said = json.loads((yield Apply(credentials.open, sealed)))
    except (CredentialError, ValueError) as problem:
        raise MeetingError(str(problem)) from None
    if not isinstance(said, dict):
        raise MeetingError("nonsense under a seal")
    return said


def _receive_sealed() -> Steps[bytes]:
    (size,) = _SIZE.unpack((yield Receive(_SIZE.size)))
    if not NONCE_SIZE < size <= SEALED_MAX:
        raise MeetingError(f"a seal of {size} bytes")
    return (yield Receive(size))


def _framed(sealed: bytes) -> Transmit:
    return Transmit(_SIZE.pack(len(sealed)) + sealed)
