"""The plm contract: how the launcher starts one agent per host.

A plm component only starts agents. What agents do, and how the launcher talks to them, is the
same for all of them (`ompy.runtime`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    import socket

API: Final[ApiVersion] = (2, 0)  # reference openmpi.md 0.6: frameworks of MCA 2 count from 2.0


class AgentLink:
    """A started agent.

    Attributes:
        host: where it runs.
        channel: connected to it; when it ends, the agent is gone, and the agent ends when
            this end is closed.
        pid: of the local process that stands for it.
    """

    __slots__ = ("channel", "host", "pid")

    def __init__(self, host: str, channel: socket.socket, pid: int) -> None:
        self.host = host
        self.channel = channel
        self.pid = pid


class PlmComponent(Component):
    """Base of plm components."""

    framework: ClassVar[str] = "plm"

    def start(self, host: str) -> AgentLink:
        """Start an agent on `host`.

        Raises:
            NotAvailable: this component cannot start anything there; the text says why.
        """
        raise NotImplementedError
