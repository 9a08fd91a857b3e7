"""What the launcher and its agents import: no asyncio, which takes as long as a small job."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {"asyncio", "uvloop", "structlog", "pluggy", "numpy"}


def imported(*words: str) -> set[str]:
    """Every module that this process and its forks import until they end."""
    done = subprocess.run(
        [sys.executable, "-P", "-X", "importtime", *words],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def test_the_launcher_and_its_agent() -> None:
    found = imported("-m", "ompy.cli.run", "-n", "2", "/bin/true")
    assert "ompy.runtime.machines.launcher.job" in found, "the launcher's"
    assert "ompy.runtime.machines.agents.agent" in found, "the agent's"
    assert not found & HEAVY


def test_a_relay_and_an_agent_of_another_host() -> None:
    found = imported("-c", "import ompy.runtime.agents.relay, ompy.runtime.agents.remote_agent")
    assert "ompy.runtime.machines.agents.relaying" in found
    assert not found & HEAVY


def test_a_passive_agent_with_its_coordinator() -> None:
    found = imported("-c", "import ompy.runtime.passive.agent")
    assert "ompy.runtime.machines.agents.joining" in found
    assert "ompy.runtime.machines.launcher.assembly" in found
    assert not found & HEAVY
