"""The plm contract: how the launcher starts one agent per host.

A plm component only starts agents. What agents do, and how the launcher talks to them, is the
same for all of them (`ompy.runtime`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from ompy.mca.component import ApiVersion, Component

if TYPE_CHECKING:
    import socket

API: Final[ApiVersion] = (2, 5)  # reference openmpi.md 0.6: frameworks of MCA 2 count from 2.0
AGENT_MODULE: Final = "ompy.runtime.agents.remote_agent"  # what runs on another host: its `main`


class Target(NamedTuple):
    """A host an agent is wanted on.

    Attributes:
        name: as the user wrote it; this host by its own name.
        user: to log in as, empty for the default.
        port: of its remote shell, 0 for the default.
    """

    name: str
    user: str = ""
    port: int = 0


class AgentLink:
    """A started agent, or one that is being started.

    Attributes:
        host: where it runs.
        channel: connected to it; when it ends, the agent is gone, and the agent ends when
            this end is closed.
        pid: of the local process that stands for it.
        remote: it is no fork of the launcher: it says READY before it is told its job, and both
            sides let each other hear from them all the time, because a network does not say
            that a host is gone.
        sealed: what is to be used in place of the channel once both ends have proven themselves;
            the launcher's affair, None where nothing has to be proven. Since contract 2.4.
        parting_s: how long the local process may take to end by itself. Since contract 2.5.
    """

    __slots__ = ("channel", "host", "parting_s", "pid", "remote", "sealed")

    def __init__(
        self, host: str, channel: socket.socket, pid: int, *, remote: bool = False
    ) -> None:
        self.host = host
        self.channel = channel
        self.pid = pid
        self.remote = remote
        self.sealed: Any = None
        self.parting_s = 0.0


class PlmComponent(Component):
    """Base of plm components."""

    framework: ClassVar[str] = "plm"

    def reaches(self, target: Target) -> bool:
        """Whether this component is for agents on that host. Starts and asks nothing.

        The launcher takes the component of highest priority that says so, host by host. Since
        contract 2.1; components of 2.0 are for every host.
        """
        return True

    def start_agent(self, target: Target) -> AgentLink:
        """Begin to start an agent; do not wait for it. Since contract 2.1.

        A component that starts remote agents runs `AGENT_MODULE` there, with the other end of
        the link's channel as its standard input and output. Nothing secret belongs on its command
        line or in its environment.

        Raises:
            NotAvailable: this component cannot start anything there; the text says why.
        """
        return self.start(target.name)

    def start(self, host: str) -> AgentLink:
        """Start an agent on `host`: all that components of contract 2.0 have.

        Raises:
            NotAvailable: this component cannot start anything there; the text says why.
        """
        raise NotImplementedError


class CommandPlm(PlmComponent):
    """Base of plm components that start an agent by a command of this host. Since contract 2.2.

    The launcher runs the command with one end of a socket pair as its standard input and output,
    in a session of its own; the command dies with the launcher, and the agent when the command's
    standard input ends.

    Attributes:
        anywhere: the commands do the same on the hosts they lead to, so that agents may start each
            other where there are many hosts. Since contract 2.3.
        parting_s: at the end of a job the commands have so many seconds to end by themselves, for
            what they leave behind when they are killed. Since contract 2.5.
    """

    anywhere: ClassVar[bool] = False
    parting_s: ClassVar[float] = 0.0

    def command(self, target: Target) -> list[str]:
        """An absolute path and arguments that run `AGENT_MODULE` there. They name no secret.

        Raises:
            NotAvailable: there is no such command here; the text says why.
        """
        raise NotImplementedError

    def secret(self) -> str | None:
        """By what agents prove themselves, where the command does not protect their connection.

        What is said to them is then sealed, and the job key goes over no wire. More words are put
        behind those of `command`, so its last ones have to reach the agent as they are. Since
        contract 2.4.

        Returns:
            The path of a file that all hosts have and only the user can read; empty for MUNGE;
            None where the command sees to it itself, as ssh does.
        """
        return None
