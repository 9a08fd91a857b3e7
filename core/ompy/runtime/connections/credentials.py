"""What proves that an agent on another host is of this user's job.

A *seal* is text that only processes of the user can have made, and, under MUNGE, read. Both kinds
make a job key of a salt that one side has chosen and sealed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import stat
import subprocess
from typing import Final, Protocol

SECRET_MIN: Final = 16  # bytes; arbitrary: 128 bits are beyond guessing
SECRET_MAX: Final = 4096  # bytes; arbitrary: a file that is larger is another file
TAG_SIZE: Final = 32  # bytes of an HMAC-SHA256
TIMEOUT: Final = 10.0  # s; arbitrary: munged answers within milliseconds
SOCKETS: Final = ("/run/munge/munge.socket.2", "/var/run/munge/munge.socket.2")  # MUNGE's own
_KEY_PURPOSE: Final = b"ompy job key"
_SEAL_PURPOSE: Final = b"ompy seal"


class CredentialError(Exception):
    """No proof can be made, or what was given is none; the text says why."""


class Credentials(Protocol):
    """Makes and opens seals. May wait for another process."""

    def seal(self, text: bytes) -> bytes:
        """Seal a text.

        Raises:
            CredentialError: no seal can be made.
        """

    def open(self, sealed: bytes) -> bytes:
        """The text of a seal.

        Raises:
            CredentialError: this user did not make it.
        """

    def key(self, salt: bytes) -> bytes:
        """The job key, 32 bytes, that belongs to a salt which was sealed."""


class SecretFile:
    """Proof by a file that all hosts have and only this user can read."""

    def __init__(self, path: str) -> None:
        """Read it.

        Raises:
            CredentialError: it is not there, others can read it, or it holds too little.
        """
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                self._secret = file.read(SECRET_MAX + 1)
        except OSError as problem:
            raise CredentialError(f"OMPY_SECRET_FILE={path}: {problem.strerror}") from None
        if why := _why_not_secret(status):
            raise CredentialError(f"OMPY_SECRET_FILE={path}: {why}; chmod 600 it, and make another")
        if not SECRET_MIN <= len(self._secret) <= SECRET_MAX:
            size = f"{SECRET_MIN} to {SECRET_MAX} random bytes are needed"
            raise CredentialError(f"OMPY_SECRET_FILE={path}: {size}")

    def _tag(self, purpose: bytes, text: bytes) -> bytes:
        return hmac.digest(self._secret, purpose + text, "sha256")

    def seal(self, text: bytes) -> bytes:
        """With an HMAC in front. Everybody can read it."""
        return self._tag(_SEAL_PURPOSE, text) + text

    def open(self, sealed: bytes) -> bytes:
        """The text, if the HMAC is right."""
        tag, text = sealed[:TAG_SIZE], sealed[TAG_SIZE:]
        if not hmac.compare_digest(tag, self._tag(_SEAL_PURPOSE, text)):
            raise CredentialError("the other side has another OMPY_SECRET_FILE")
        return text

    def key(self, salt: bytes) -> bytes:
        """What nobody can compute from the salt without the file."""
        return self._tag(_KEY_PURPOSE, salt)


def _why_not_secret(status: os.stat_result) -> str:
    """Kubernetes mounts secrets as root's, readable by the group of the pod."""
    if status.st_mode & stat.S_IRWXO:
        return "others may read or write it"
    if status.st_uid not in {0, os.geteuid()}:
        return "it belongs to another user"
    return "its group may read it" if status.st_mode & stat.S_IRWXG and status.st_uid else ""


class Munge:
    """Proof by MUNGE, which every host of a Slurm cluster has: user and text, end to end."""

    def __init__(self) -> None:
        """Find it.

        Raises:
            CredentialError: it is not installed, or nothing tells where its daemon listens.
        """
        for program in ("munge", "unmunge"):
            if shutil.which(program) is None:
                raise CredentialError(
                    f"there is no {program} on host {os.uname().nodename}, by which hosts prove "
                    "each other who they are; set OMPY_SECRET_FILE, or start by ompy-run"
                )
        try:
            self._socket = [] if any(map(os.path.exists, SOCKETS)) else _slurms_socket()
        except CredentialError as problem:
            raise CredentialError(
                f"no daemon of MUNGE is to be found on host {os.uname().nodename}: neither "
                f"{' nor '.join(SOCKETS)} is there, nor Slurm's configuration; set "
                f"OMPY_SECRET_FILE, or start munged ({str(problem).splitlines()[-1]})"
            ) from None

    def seal(self, text: bytes) -> bytes:
        """Encrypted, for this user on any host. The text goes through a pipe."""
        # 128 bits of AES are what every build of MUNGE has
        options = ("--cipher=aes128", "--mac=sha256", f"--restrict-uid={os.geteuid()}")
        return _run(["munge", *options, *self._socket], text).strip()

    def open(self, sealed: bytes) -> bytes:
        """The text, if this user sealed it, not long ago, and it was not opened before."""
        said = _run(["unmunge", "--numeric", "--keys=UID", *self._socket], sealed)
        facts, _, text = said.partition(b"\n\n")
        words = facts.split()
        if words[:1] != [b"UID:"] or words[1:] != [str(os.geteuid()).encode()]:
            raise CredentialError(f"another user made this credential: {facts.decode()!r}")
        return text

    def key(self, salt: bytes) -> bytes:
        """The salt was never seen by others."""
        return hashlib.sha256(_KEY_PURPOSE + salt).digest()


def _slurms_socket() -> list[str]:
    """Where Slurm's own configuration says munged listens."""
    config = _run(["scontrol", "show", "config"], b"").decode(errors="replace")
    for line in config.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "AuthInfo":
            for option in value.strip().split(","):
                if option.startswith("socket="):
                    return [f"--socket={option.removeprefix('socket=')}"]
    return []


def _run(command: list[str], text: bytes) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 - munge is how it is done
            command, input=text, capture_output=True, timeout=TIMEOUT, check=True
        )
    except subprocess.CalledProcessError as problem:
        said = problem.stderr.decode(errors="replace").strip()
        raise CredentialError(f"{command[0]}: {said or problem.returncode}") from None
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise CredentialError(f"{command[0]}: {problem}") from None
    return done.stdout


def credentials(secret: str) -> Credentials:
    """Those of a file, or MUNGE's if `secret` is empty.

    Raises:
        CredentialError: they cannot be used here.
    """
    return SecretFile(secret) if secret else Munge()


def node_address(host: str) -> str:
    """The address Slurm has for a node whose name does not resolve; empty if it has none."""
    if shutil.which("scontrol") is None:
        return ""
    try:
        said = _run(["scontrol", "--oneliner", "show", "node", host], b"").decode(errors="replace")
    except CredentialError:
        return ""
    found = [word for word in said.split() if word.startswith("NodeAddr=")]
    return found[0].removeprefix("NodeAddr=") if found else ""
