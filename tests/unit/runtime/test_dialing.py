"""What is said before a waiting agent becomes one, byte by byte; shells that end by themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.runtime.connections.credentials import CredentialError, SecretFile
from ompy.runtime.dialing.greeting import (
    CALL_MAX,
    HELLO,
    LENGTH_SIZE,
    NONCE_SIZE,
    make_call,
    missing_of_call,
    name_of_call,
    nonce_of,
)
from ompy.runtime.ranks.descendants import is_ending, let_end

NONCE = bytes(range(NONCE_SIZE))
NAME = "0123456789abcdef" * 2


@pytest.fixture(name="known")
def fixture_known(tmp_path: Path) -> SecretFile:
    path = tmp_path / "secret"
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return SecretFile(str(path))


def test_a_call_says_its_name(known: SecretFile) -> None:
    call = make_call(known, nonce_of(HELLO + NONCE), NAME)
    for size in range(len(call)):
        assert missing_of_call(call[:size]) > 0
    assert missing_of_call(call) == 0
    assert name_of_call(known, call, NONCE) == NAME


def test_no_altered_byte_is_believed(known: SecretFile) -> None:
    call = make_call(known, NONCE, NAME)
    for place in range(LENGTH_SIZE, len(call)):
        altered = call[:place] + bytes([call[place] ^ 1]) + call[place + 1 :]
        with pytest.raises(CredentialError):
            name_of_call(known, altered, NONCE)


def test_a_recorded_call_is_worth_nothing(known: SecretFile) -> None:
    call = make_call(known, NONCE, NAME)
    with pytest.raises(CredentialError, match="meant for another"):
        name_of_call(known, call, bytes(NONCE_SIZE))


@pytest.mark.parametrize("text", [b"[]", b"{}", b"\xff", b'{"role": "dial", "nonce": 1}'])
def test_nonsense_under_our_own_seal(known: SecretFile, text: bytes) -> None:
    sealed = known.seal(text)
    with pytest.raises(CredentialError):
        name_of_call(known, len(sealed).to_bytes(LENGTH_SIZE, "big") + sealed, NONCE)


@pytest.mark.parametrize("name", ["", "a b", "--option", "a" * 65, "a\0"])
def test_names_that_are_none(known: SecretFile, name: str) -> None:
    """A name becomes a word of a command line."""
    with pytest.raises(CredentialError, match="meant for another"):
        name_of_call(known, make_call(known, NONCE, name), NONCE)


@pytest.mark.parametrize("size", [0, CALL_MAX + 1, (1 << 32) - 1])
def test_a_call_has_a_size(size: int) -> None:
    with pytest.raises(CredentialError, match="no call"):
        missing_of_call(size.to_bytes(LENGTH_SIZE, "big"))


@pytest.mark.parametrize("hello", [b"", HELLO, b"SSH-2.0-OpenSSH_9.2\r\n".ljust(35), HELLO + b"1"])
def test_something_else_listens(hello: bytes) -> None:
    with pytest.raises(CredentialError, match="something else"):
        nonce_of(hello)


def test_shells_are_waited_for_as_long_as_they_may_take() -> None:
    code = "import time; time.sleep({})"
    soon, never = (
        subprocess.Popen([sys.executable, "-c", code.format(seconds)]) for seconds in (0.2, 600)
    )
    let_end({soon.pid: 60, never.pid: 0})
    assert is_ending(soon.pid)
    let_end({never.pid: 0.1})
    assert not is_ending(never.pid)
    never.send_signal(signal.SIGKILL)
    soon.wait()
    never.wait()
