"""plm/local: an agent on this host, forked from the launcher."""

from __future__ import annotations

import os
import socket
from typing import ClassVar

from ompy.frameworks.plm import API, AgentLink, PlmComponent, Target
from ompy.mca.component import ApiVersion, NotAvailable
from ompy.mca.parameter import Parameter
from ompy.runtime.agents.early_agent import take


class LocalPlm(PlmComponent):
    """Starts agents by fork."""

    name: ClassVar[str] = "local"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[ApiVersion] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            50,  # arbitrary: leaves room on both sides
            "Which plm component is asked first; the highest is.",
            level=9,
            unit="points",
        ),
    )

    def reaches(self, target: Target) -> bool:
        """This host."""
        return _is_here(target.name)

    def start(self, host: str) -> AgentLink:
        """Fork an agent, or take the one that the launcher has forked before.

        Raises:
            NotAvailable: `host` is another host.
        """
        if not _is_here(host):
            raise NotAvailable(f"plm/local starts processes on this host only, not on {host}")
        early = take(host)
        if early is not None:
            return early
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            _be_agent(ours, theirs)
        theirs.close()
        return AgentLink(host, ours, pid)


def _is_here(host: str) -> bool:
    return host in {"localhost", socket.gethostname()}


def _be_agent(launchers_end: socket.socket, connection: socket.socket) -> None:
    """What the forked process does; it never returns from it."""
    try:
        launchers_end.close()  # or the end of the launcher would go unseen
        from ompy.runtime.agents.agent import serve

        serve(connection)
    finally:
        os._exit(1)


COMPONENT = LocalPlm()
