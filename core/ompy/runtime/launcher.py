"""The launcher: starts the agents of a job, shows what the ranks write, ends with their code."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ompy.frameworks.job import Job
from ompy.frameworks.plm import AgentLink, PlmComponent
from ompy.runtime.control import KEY_SIZE, Kind, encode, send_all
from ompy.runtime.descendants import become_subreaper, kill_descendants

PATIENCE: Final = 5.0  # s; arbitrary: killed processes go at once unless the kernel holds them


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How the launcher behaves; nothing of it concerns the ranks.

    Attributes:
        universe: how many ranks the hosts are meant for.
        kill_grace_ms: from SIGTERM to SIGKILL when ranks are ended.
        tag: mark each line of output with its rank and stream.
        timestamp: mark each line of output with the time.
        timeout_s: end the job after so many seconds; 0 for never.
        timeout_source: what set the timeout, for the message.
        quiet: say nothing about how the job ended.
        fault_strict: a fault of the script that never struck is an error.
    """

    universe: int
    kill_grace_ms: int
    tag: bool = False
    timestamp: bool = False
    timeout_s: float = 0.0
    timeout_source: str = ""
    quiet: bool = False
    fault_strict: bool = False


def launch(job: Job, plm: PlmComponent, options: LaunchOptions) -> int:
    """Run a job to its end. Returns the exit code (reference openmpi.md 2.6).

    For a process of its own: it takes over signals and the standard streams, becomes the
    parent of everything the job leaves behind, and kills all its descendants in the end.

    Raises:
        NotAvailable: an agent could not be started on one of the hosts; none is left.
        ControlError: the job is too large to be told to an agent.
    """
    become_subreaper()
    links: list[AgentLink] = []
    try:
        for host in job.hosts:
            links.append(plm.start(host))
        _tell(job, links, options)

        from ompy.runtime.coordinator import Coordinator  # imported while the ranks start

        return Coordinator(job, links, options).run()
    finally:
        for link in links:
            link.channel.close()
        kill_descendants(PATIENCE)


def _tell(job: Job, links: Sequence[AgentLink], options: LaunchOptions) -> None:
    """Send each agent its job and the key all its processes share."""
    body = os.urandom(KEY_SIZE) + json.dumps(job.to_dict(), separators=(",", ":")).encode()
    for node, link in enumerate(links):
        header = {"node": node, "universe": options.universe, "interactive": os.isatty(0)}
        with suppress(OSError):  # it has ended already: its channel will say so
            send_all(link.channel, encode(Kind.START, header, body))
