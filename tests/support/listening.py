"""Who listens where: the sockets of processes, as Linux lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

TABLES = ("tcp", "tcp6", "udp", "udp6")
LISTENING = "0A"  # Linux TCP_LISTEN; a datagram socket hears whoever writes to it
LOOPBACK = re.compile(r"127\.|0{24}01000000$")


class Socket(NamedTuple):
    """Where strangers reach a process: `tcp` and the like, address (IPv6 in hex), port."""

    kind: str
    host: str
    port: int

    @property
    def on_loopback(self) -> bool:
        return LOOPBACK.match(self.host) is not None


def children(pid: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            parents.setdefault(parent, []).append(int(status.parent.name))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


def ancestors(pid: int, until: int) -> list[int]:
    """The processes above one, up to `until`, which is left out."""
    found = []
    while pid not in (0, 1, until):
        found.append(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found


def listening(pids: Iterable[int]) -> set[Socket]:
    """All sockets of these processes that anybody can send something to."""
    owned = set()
    for pid in pids:
        with suppress(OSError):  # it has ended
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    owned.add(os.readlink(descriptor))
    found = set()
    for kind in TABLES:
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            heard = kind.startswith("udp") or fields[3] == LISTENING
            if heard and f"socket:[{fields[9]}]" in owned:
                host, port = fields[1].split(":")
                found.add(Socket(kind, _address(host), int(port, 16)))
    return found


def _address(text: str) -> str:
    if len(text) > 8:
        return text
    return ".".join(str(byte) for byte in reversed(bytes.fromhex(text)))
