"""How agents find the coordinator, and how both prove that they are of one job.

agent                                        coordinator
<- nonce
sealed: hello, both nonces, job, its part ->
<- sealed: answer, both nonces, salt

From then on the connection carries control messages in records with a MAC, under keys of the job
key and both nonces.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import struct
from typing import Any, Final, NamedTuple

from ompy import __version__
from ompy.net.records import session_keys
from ompy.runtime.credentials import CredentialError, Credentials, node_address
from ompy.runtime.sealed_connection import SealedConnection

MAGIC: Final = b"ompymeet"
NONCE_SIZE: Final = 16  # bytes; arbitrary: 128 bits never repeat
SALT_SIZE: Final = 32  # bytes; arbitrary: as the key it becomes
SEALED_MAX: Final = 256 * 1024  # bytes; arbitrary: the part of a host with a thousand ranks fits
PROOF_TIMEOUT: Final = 20.0  # s; arbitrary: two calls of munge on a loaded host
CONNECT_TIMEOUT: Final = 3.0  # s; arbitrary: a packet lost twice
PORTS: Final = 4  # arbitrary: so many programs would have to sit on the ports of a job
FIRST_PORT: Final = 20_000  # arbitrary: above what daemons use
PORT_SPAN: Final = 12_000  # arbitrary: ends below 32768, where Linux takes ports for clients
_SIZE: Final = struct.Struct("!I")
assert FIRST_PORT + PORT_SPAN < 32_768


class MeetingError(Exception):
    """This was not the coordinator, or not an agent, of this job."""


class Met(NamedTuple):
    """What an agent has when both have proven themselves.

    Attributes:
        key: of the job.
        connection: what both say from now on, sealed.
    """

    key: bytes
    connection: SealedConnection


def ports(job: str) -> list[int]:
    """Where the coordinator of a job may listen: all hosts compute the same."""
    digest = hashlib.sha256(job.encode()).digest()
    words = struct.unpack_from(f"!{PORTS}H", digest)
    return [FIRST_PORT + word % PORT_SPAN for word in words]


def listen(job: str) -> socket.socket:
    """Listen as the coordinator of a job.

    It is at every address of this host: which of them its name stands for elsewhere is not known
    here (Debian's own name is 127.0.1.1). Who connects has to prove that it is of the job.

    Raises:
        MeetingError: all its ports are taken.
    """
    for port in ports(job):
        try:
            return socket.create_server(("", port), backlog=socket.SOMAXCONN)
        except OSError as problem:
            last = problem
    raise MeetingError(f"ports {ports(job)} are all taken: {last.strerror}")


def addresses(host: str) -> list[str]:
    """Of the host with the coordinator."""
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        known = node_address(host)
        return [known] if known else []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def connect(host: str, job: str) -> list[socket.socket]:
    """Connections to whatever listens where the coordinator may be, as far as they are made."""
    loop = asyncio.get_running_loop()
    found = []
    for address in await asyncio.to_thread(addresses, host):
        for port in ports(job):
            connection = socket.socket()
            connection.setblocking(False)
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    await loop.sock_connect(connection, (address, port))
            except (OSError, TimeoutError):
                connection.close()
            else:
                found.append(connection)
    return found


async def prove_as_agent(
    connection: socket.socket, credentials: Credentials, job: str, part: dict[str, Any]
) -> Met:
    """Prove this agent to the coordinator and the coordinator to it.

    Raises:
        MeetingError: it is not the coordinator of this job.
        CredentialError: no proof can be made here.
    """
    nonce = os.urandom(NONCE_SIZE)
    theirs = await _receive(connection, len(MAGIC) + NONCE_SIZE)
    if not theirs.startswith(MAGIC):
        raise MeetingError("another program listens there")
    nonces = nonce.hex() + theirs[len(MAGIC) :].hex()
    hello = {"role": "hello", "nonces": nonces, "job": job, "version": __version__, "part": part}
    sealed = await asyncio.to_thread(credentials.seal, json.dumps(hello).encode())
    await _send_sealed(connection, nonce + sealed)
    answer = await _open(await _receive_sealed(connection), credentials)
    if answer.get("role") != "answer" or answer.get("nonces") != nonces:
        raise MeetingError("it answered another agent")
    key = credentials.key(bytes.fromhex(answer["salt"]))
    forth, back = _keys(key, nonces)
    return Met(key, SealedConnection(connection, (forth, back)))


def _keys(key: bytes, nonces: str) -> tuple[bytes, bytes]:
    """Of what the agent says, and of what the coordinator says."""
    return session_keys(key, b"ompy meeting" + nonces.encode())


async def prove_as_coordinator(
    connection: socket.socket, credentials: Credentials, job: str, salt: bytes
) -> tuple[dict[str, Any], SealedConnection]:
    """Prove an agent to the coordinator and the coordinator to it.

    Returns:
        The agent's hello, and what both say from now on, sealed.

    Raises:
        MeetingError: it is not an agent of this job.
        CredentialError: no proof can be made here.
    """
    own = os.urandom(NONCE_SIZE)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(connection, MAGIC + own)
    said = await _receive_sealed(connection)
    nonces = said[:NONCE_SIZE].hex() + own.hex()
    hello = await _open(said[NONCE_SIZE:], credentials)
    if (hello.get("role"), hello.get("nonces"), hello.get("job")) != ("hello", nonces, job):
        raise MeetingError("an agent of another job, or what it said to another coordinator")
    answer = {"role": "answer", "nonces": nonces, "salt": salt.hex()}
    sealed = await asyncio.to_thread(credentials.seal, json.dumps(answer).encode())
    await _send_sealed(connection, sealed)
    forth, back = _keys(credentials.key(salt), nonces)
    return hello, SealedConnection(connection, (back, forth))


async def _open(sealed: bytes, credentials: Credentials) -> dict[str, Any]:
    try:
        said = json.loads(await asyncio.to_thread(credentials.open, sealed))
    except (CredentialError, ValueError) as problem:
        raise MeetingError(str(problem)) from None
    if not isinstance(said, dict):
        raise MeetingError("nonsense under a seal")
    return said


async def _receive(connection: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < size:
        more = await loop.sock_recv(connection, size - len(data))
        if not more:
            raise MeetingError("the connection ended")
        data += more
    return data


async def _receive_sealed(connection: socket.socket) -> bytes:
    (size,) = _SIZE.unpack(await _receive(connection, _SIZE.size))
    if not NONCE_SIZE < size <= SEALED_MAX:
        raise MeetingError(f"a seal of {size} bytes")
    return await _receive(connection, size)


async def _send_sealed(connection: socket.socket, sealed: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, _SIZE.pack(len(sealed)) + sealed)
