"""Where the coordinator listens: all hosts compute the same ports of the job's name."""

from __future__ import annotations

import hashlib
import socket
import struct
from typing import Final

from ompy.runtime.connections.credentials import node_address
from ompy.runtime.passive.meeting import MeetingError

PORTS: Final = 4  # arbitrary: so many programs would have to sit on the ports of a job
FIRST_PORT: Final = 20_000  # arbitrary: above what daemons use
PORT_SPAN: Final = 12_000  # arbitrary: ends below 32768, where Linux takes ports for clients
assert FIRST_PORT + PORT_SPAN < 32_768


def ports(job: str) -> list[int]:
    """Where the coordinator of a job may listen: all hosts compute the same."""
    digest = hashlib.sha256(job.encode()).digest()
    words = struct.unpack_from(f"!{PORTS}H", digest)
    return [FIRST_PORT + word % PORT_SPAN for word in words]


def listen_for_agents(job: str) -> socket.socket:
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
    """Of the host with the coordinator. May wait for a name server or for Slurm."""
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        known = node_address(host)
        return [known] if known else []
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
