"""How an agent and who has started it prove themselves, where what carries them protects nothing.

srun's standard streams are TCP connections of Slurm's daemons without a MAC or encryption. So

    who starts it                                    agent
    on its command line: a name nobody else has
    sealed: "start", that name, salt             ->
                                                 <- banner, nonce
    records with a MAC, both ways

The seal is MUNGE's, or that of a secret file (`credentials.py`). Who can open it makes the job key
of the salt, so the key goes over no wire: a START over such a connection comes without. Keys of the
records come from it, the name and the nonce. The seal proves who starts an agent, records with the
right MAC prove the agent. A letter to another agent has another name in it, and what was recorded
has had another nonce.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from ompy.net.seals.records import session_keys
from ompy.runtime.connections.control import KEY_SIZE
from ompy.runtime.connections.credentials import CredentialError, Credentials, credentials
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.connections.sealed_connection import SealedConnection

if TYPE_CHECKING:
    import socket

    from ompy.runtime.connections.pipes import PipePair

NONCE_SIZE: Final = 16  # bytes; arbitrary: 128 bits never repeat
SALT_SIZE: Final = KEY_SIZE  # bytes; as the key it becomes
LENGTH_SIZE: Final = 4  # bytes; arbitrary: of the number before a letter
LETTER_MAX: Final = 16 * 1024  # bytes; arbitrary: one by MUNGE takes some 400
_ROLE: Final = "start"


class AgentProof:
    """What all processes of a job have that start agents or are one.

    Attributes:
        key: of the job.
    """

    __slots__ = ("_credentials", "_salt", "_secret", "key")

    def __init__(self, secret: str, salt: bytes = b"", known: Credentials | None = None) -> None:
        """Prepare.

        Args:
            secret: path of the file that all hosts have; empty for MUNGE.
            salt: the job's; empty to choose one.
            known: what makes and opens seals, if it was found before.

        Raises:
            CredentialError: nothing can be proven here.
        """
        self._secret = os.path.abspath(secret) if secret else ""
        self._credentials = known or credentials(self._secret)
        self._salt = salt or os.urandom(SALT_SIZE)
        self.key = self._credentials.key(self._salt)

    def invite(self) -> Invitation:
        """Of an agent that is about to be started."""
        return Invitation(self, os.urandom(NONCE_SIZE).hex(), self._secret)

    def letter(self, name: str) -> bytes:
        """The first that the agent of this name is told.

        Raises:
            CredentialError: no seal can be made.
        """
        text = {"role": _ROLE, "name": name, "salt": self._salt.hex()}
        sealed = self._credentials.seal(json.dumps(text).encode())
        return len(sealed).to_bytes(LENGTH_SIZE, "big") + sealed

    def keys(self, name: str, nonce: bytes) -> tuple[bytes, bytes]:
        """Of what an agent says, and of what is said to it."""
        return session_keys(self.key, b"ompy agent" + name.encode() + b"\0" + nonce)


class Invitation:
    """What one agent needs to prove itself.

    Attributes:
        words: behind the command that starts it; none is secret.
    """

    __slots__ = ("_name", "_proof", "words")

    def __init__(self, proof: AgentProof, name: str, secret: str) -> None:
        self._proof = proof
        self._name = name
        self.words = (name, secret)

    def letter(self) -> bytes:
        """What it is told first of all.

        Raises:
            CredentialError: no seal can be made.
        """
        return self._proof.letter(self._name)

    def accepted(
        self, channel: socket.socket, said: bytes
    ) -> tuple[SealedConnection, bytes] | None:
        """Take what an agent has said behind its banner.

        Returns:
            What it is talked to over from now on, and what it has said there; None: more of it has
            to come first.

        Raises:
            ControlError: it is none, or somebody has altered what it says.
        """
        if len(said) < NONCE_SIZE:
            return None
        theirs, ours = self._proof.keys(self._name, said[:NONCE_SIZE])
        sealed = SealedConnection(channel, (ours, theirs))
        return sealed, sealed.feed(said[NONCE_SIZE:])


def accept(
    channel: PipePair, name: str, secret: str, banner: bytes
) -> tuple[SealedConnection, AgentProof]:
    """Wait for the letter to the agent of this name and answer. May wait for another process.

    Args:
        channel: to who has started it.
        name: from its command line.
        secret: also from there: path of the file that all hosts have; empty for MUNGE.
        banner: the first it says.

    Raises:
        CredentialError: the letter is from somebody else, or for another; or none can be opened.
        OSError: nobody is there.
    """
    size = int.from_bytes(_read(channel, LENGTH_SIZE), "big")
    if not 0 < size <= LETTER_MAX:
        raise CredentialError("the first that came is no seal")
    known = credentials(secret)
    said = known.open(_read(channel, size))
    try:
        letter: dict[str, Any] = json.loads(said)
        role, meant, salt = letter["role"], letter["name"], bytes.fromhex(letter["salt"])
    except (ValueError, KeyError, TypeError):
        raise CredentialError("nonsense under a seal") from None
    if (role, meant, len(salt)) != (_ROLE, name, SALT_SIZE):
        raise CredentialError("what came was meant for another agent")
    proof = AgentProof(secret, salt, known)
    nonce = os.urandom(NONCE_SIZE)
    send_all(channel, banner + nonce)
    return SealedConnection(channel, proof.keys(name, nonce)), proof


def _read(channel: PipePair, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = channel.recvmsg(size - len(data))[0]
        if not more:
            raise BrokenPipeError
        data += more
    return data
