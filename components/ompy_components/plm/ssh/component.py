"""plm/ssh: agents on other hosts, started by the user's own remote shell."""

from __future__ import annotations

import os
import shlex
from typing import ClassVar, Final

from ompy.frameworks.plm import API, CommandPlm, Target
from ompy.mca.component import ApiVersion, NotAvailable
from ompy.mca.parameter import Parameter, Synonym
from ompy.runtime.agents.agent_command import PYTHON, agent_words

# no X11, no terminal; and no question that nobody would answer
SSH_OPTIONS: Final = ("-x", "-T", "-o", "BatchMode=yes")


class SshPlm(CommandPlm):
    """Starts agents by ssh, or by what the user has in its place."""

    name: ClassVar[str] = "ssh"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[ApiVersion] = API
    anywhere: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            10,  # reference openmpi.md 2.4: rsh is the last resort of Open MPI's plm too
            "Which plm component is asked first; the highest is.",
            level=9,
            unit="points",
        ),
        Parameter(
            "agent",
            "string",
            "ssh : rsh",  # reference openmpi.md 2.4: Open MPI's plm_rsh_agent
            "Remote shells, separated by colons; the first that is in PATH is used. Each may have "
            "arguments.",
            level=2,
            synonyms=(Synonym("plm_rsh_agent"),),
        ),
        Parameter(
            "args",
            "string",
            "",
            "Arguments for the remote shell, before those it gets anyway.",
            level=2,
            synonyms=(Synonym("plm_rsh_args"),),
        ),
        PYTHON,
    )

    def command(self, target: Target) -> list[str]:
        """The local command that starts an agent there. It names no secret.

        Raises:
            NotAvailable: there is no remote shell.
        """
        shell = self._shell()
        is_ssh = os.path.basename(shell[0]) == "ssh"
        if target.port and not is_ssh:
            text = f"host {target.name} has a port of its own, and {shell[0]} is not ssh"
            raise NotAvailable(text)
        command = [*shell, *shlex.split(self.values.args)]
        command += [*SSH_OPTIONS] if is_ssh else []
        command += ["-p", str(target.port)] if target.port else []
        command += ["-l", target.user] if target.user else []
        # for the login shell of the other host, whichever that is
        words = ["exec", *agent_words(self.values.python)]
        return [*command, target.name, shlex.join(words)]

    def _shell(self) -> list[str]:
        import shutil

        tried = []
        for text in self.values.agent.split(":"):
            words = shlex.split(text)
            if words:
                path = shutil.which(words[0])
                if path:
                    return [path, *words[1:]]
                tried.append(words[0])
        raise NotAvailable(f"no remote shell in PATH; plm_ssh_agent names {', '.join(tried)}")


COMPONENT = SshPlm()
