"""What is said before a waiting agent becomes the agent of a job.

    who calls                                     waiting agent
                                              <-  "ompy-agent-waits 1", a nonce
    sealed: "dial", that nonce, a name        ->

The nonce makes a recorded call worthless, and the seal proves that the caller is of this user
(`credentials.py`). The name is that of the invitation (`agent_proof.py`), by which both prove
themselves to each other from there on: what comes behind the call is the letter to that agent.
"""

from __future__ import annotations

import json
from typing import Any, Final

from ompy.runtime.connections.credentials import CredentialError, Credentials

HELLO: Final = b"ompy-agent-waits 1 "  # arbitrary: what nothing else begins with
NONCE_SIZE: Final = 16  # bytes; arbitrary: 128 bits never repeat
HELLO_SIZE: Final = len(HELLO) + NONCE_SIZE
LENGTH_SIZE: Final = 4  # bytes; arbitrary: of the number before a call
CALL_MAX: Final = 4096  # bytes; arbitrary: one by MUNGE takes some 400
_NAME_MAX: Final = 64  # characters; arbitrary: an invitation's has 32
_ROLE: Final = "dial"


def nonce_of(hello: bytes) -> bytes:
    """The nonce that a waiting agent has said.

    Raises:
        CredentialError: it is no waiting agent.
    """
    if not hello.startswith(HELLO) or len(hello) != HELLO_SIZE:
        raise CredentialError("something else than an agent of ompy listens there")
    return hello[len(HELLO) :]


def make_call(known: Credentials, nonce: bytes, name: str) -> bytes:
    """What the caller says.

    Args:
        known: makes the seal; may wait for another process.
        nonce: of the waiting agent.
        name: of the invitation.

    Raises:
        CredentialError: no seal can be made.
    """
    text = {"role": _ROLE, "nonce": nonce.hex(), "name": name}
    sealed = known.seal(json.dumps(text).encode())
    return len(sealed).to_bytes(LENGTH_SIZE, "big") + sealed


def missing_of_call(said: bytes) -> int:
    """How many bytes a call lacks; 0 when it is whole.

    Raises:
        CredentialError: it is none.
    """
    if len(said) < LENGTH_SIZE:
        return LENGTH_SIZE - len(said)
    size = int.from_bytes(said[:LENGTH_SIZE], "big")
    if not 0 < size <= CALL_MAX:
        raise CredentialError("what came is no call")
    return LENGTH_SIZE + size - len(said)


def name_of_call(known: Credentials, said: bytes, nonce: bytes) -> str:
    """The name that a whole call says.

    Args:
        known: opens the seal; may wait for another process.
        said: the call.
        nonce: that this caller was told.

    Raises:
        CredentialError: another user has made it, or for another agent, or another time.
    """
    try:
        call: dict[str, Any] = json.loads(known.open(said[LENGTH_SIZE:]))
        role, meant, name = call["role"], bytes.fromhex(call["nonce"]), str(call["name"])
    except (ValueError, KeyError, TypeError):
        raise CredentialError("nonsense under a seal") from None
    if (role, meant) != (_ROLE, nonce) or not name.isalnum() or len(name) > _NAME_MAX:
        raise CredentialError("what came was meant for another agent")
    return name
