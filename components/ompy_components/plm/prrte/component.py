"""plm/prrte: agents started by `prterun`, the launcher of PMIx, and called by TCP."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from typing import ClassVar, Final

from ompy.frameworks.plm import API, CommandPlm, Target
from ompy.mca.component import ApiVersion, NotAvailable
from ompy.mca.parameter import Parameter
from ompy.runtime.agents.agent_command import PYTHON
from ompy.runtime.dialing.starting_dialer import waiting_words
from ompy.runtime.launching.launchers import SECRET
from ompy.runtime.ranks.environment import OWN_CODE

STARTER: Final = "ompy.runtime.dialing.starting_dialer"
# one process on one host, on all that may be used there: the agent binds ranks itself
ONE: Final = ("-n", "1", "--map-by", "node:OVERSUBSCRIBE", "--bind-to", "none")


class PrrtePlm(CommandPlm):
    """Starts agents by prterun."""

    name: ClassVar[str] = "prrte"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[ApiVersion] = API
    parting_s: ClassVar[float] = 5.0  # arbitrary: prterun takes some tenths to end its daemons
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            5,  # arbitrary: below ssh, as prterun lies in many a PATH without being meant
            "Which plm component is asked first; the highest is.",
            level=9,
            unit="points",
        ),
        Parameter(
            "agent",
            "string",
            "prterun",
            "The prterun to use: a path, or a name that is looked for in PATH.",
            level=2,
        ),
        Parameter(
            "args",
            "string",
            "",
            "Arguments for prterun, after those it gets anyway.",
            level=2,
        ),
        PYTHON,
    )

    def secret(self) -> str | None:
        """The file that proves both ends, or MUNGE. There is no connection without."""
        return os.environ.get(SECRET, "")

    def command(self, target: Target) -> list[str]:
        """The local command that starts the agent there, and calls it. It names no secret.

        Raises:
            NotAvailable: there is no prterun.
        """
        prterun = shutil.which(self.values.agent)
        if prterun is None:
            raise NotAvailable(f"there is no {self.values.agent} in PATH (plm_prrte_agent)")
        more = shlex.split(self.values.args)
        words = [prterun, "--host", f"{target.name}:1", *ONE, *more]
        words += waiting_words(self.values.python)
        return [sys.executable, *OWN_CODE, "-m", STARTER, target.name, *words]


COMPONENT = PrrtePlm()
