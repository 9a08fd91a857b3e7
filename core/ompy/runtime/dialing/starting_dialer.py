"""A remote shell by another launcher; its words are HOST COMMAND... NAME SECRET.

The command starts `ompy agent` on that host, and passes on what it writes. The agent says at which
port it listens; it is called there (`dialer.py`), and all else goes over that connection. For
launchers whose own streams are no lifeline: prterun does not pass the end of standard input on, and
leaves its processes behind when it is killed (seen with PRRTE 3 of Open MPI 5.0.11).
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import IO, Final, NoReturn

from ompy.runtime.connections.credentials import CredentialError, credentials
from ompy.runtime.dialing.dialer import UNREACHED, carry_bytes, reach_agent, tell_user
from ompy.runtime.dialing.greeting import make_call
from ompy.runtime.launching.launchers import SECRET
from ompy.runtime.ranks.descendants import die_with_parent
from ompy.runtime.ranks.environment import OWN_CODE

LISTENS: Final = "ompy-agent listens at port "  # what `ompy agent --port 0` says
PATIENCE_S: Final = 120  # arbitrary: between the agent's first word and our call
GRACE_S: Final = 5.0  # arbitrary: an agent ends its ranks within seconds, and its launcher with it


def waiting_words(python: str = "") -> list[str]:
    """The command of an agent that waits, says where, and is called at once.

    Args:
        python: of its host; empty for the path of the launcher's own.
    """
    words = ["env"]
    for name in ("PYTHONPATH", SECRET):
        if os.environ.get(name):
            value = os.environ[name]
            words.append(f"{name}={os.path.abspath(value) if name == SECRET else value}")
    words += [python or sys.executable, *OWN_CODE, "-m", "ompy.cli.start", "agent"]
    return [*words, "--port", "0", "--patience", str(PATIENCE_S)]


def main() -> NoReturn:
    """Be that shell."""
    host, *command, name, secret = sys.argv[1:]
    parent = os.getpid()

    # SIGTERM, as it has to end what it has started elsewhere
    end_with_us = partial(die_with_parent, parent, signal.SIGTERM)
    starter = subprocess.Popen(  # noqa: S603 - what the user asked for
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=_outermost(os.environ),
        preexec_fn=end_with_us,  # noqa: PLW1509 - there is one thread
    )
    assert starter.stdout is not None, "it was asked for"
    code = UNREACHED
    port = _port(starter.stdout)
    if port:
        code = _call(host, port, name, secret, starter)
    try:
        if not port:
            tell_user(f"host {host}: no agent was started")
            starter.terminate()
        starter.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        starter.terminate()
    os._exit(code)


def _outermost(environment: Mapping[str, str]) -> dict[str, str]:
    """Without what makes a launcher of PMIx believe that it is a process of another's job."""
    ours = ("PMIX_MCA_", "PRTE_MCA_", "PRTE_ALLOW_")
    theirs = ("PMIX_", "PRTE_")
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(ours) or not name.startswith(theirs)
    }


def _port(output: IO[bytes]) -> int:
    """Where the agent listens, when it has said so; 0 if it has not. All else is shown."""
    for line in output:
        text = line.decode(errors="replace")
        before, found, after = text.partition(LISTENS)
        if found and after.strip().isdigit():
            return int(after)
        os.write(2, before.encode())
    return 0


def _call(host: str, port: int, name: str, secret: str, starter: subprocess.Popen[bytes]) -> int:
    """Call the agent, and be connected until either end or the launcher between goes."""
    address = "127.0.0.1" if host == socket.gethostname() else host
    try:
        known = credentials(secret)
        connection, nonce = reach_agent(address, port)
        connection.sendall(make_call(known, nonce, name))
    except (CredentialError, OSError) as problem:
        tell_user(f"host {host}, port {port}: {problem}")
        return UNREACHED

    def end_with_starter() -> None:
        assert starter.stdout is not None, "it was asked for"
        for line in starter.stdout:  # its end is that of the launcher between
            os.write(2, line)
        with suppress(OSError):  # the agent has gone first
            connection.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=end_with_starter, daemon=True).start()
    return 0 if carry_bytes(connection) else UNREACHED


if __name__ == "__main__":
    main()
