"""plm/dask: agents on the hosts of Dask workers, as children of a worker."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

from ompy.frameworks.plm import API, CommandPlm, Target
from ompy.mca.component import ApiVersion, NotAvailable
from ompy.mca.parameter import Parameter, Values
from ompy.runtime.agents.agent_command import agent_words
from ompy.runtime.launching.launchers import SECRET


class DaskPlm(CommandPlm):
    """Starts agents by tasks of a Dask cluster."""

    name: ClassVar[str] = "dask"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[ApiVersion] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            # arbitrary: above local, as a rank beside the launcher has to end with its worker, too
            200,
            "Which plm component is asked first; the highest is.",
            level=9,
            unit="points",
        ),
        Parameter(
            "scheduler",
            "string",
            "",
            "Address of the cluster's scheduler, such as tcp://10.0.0.1:8786; empty for no Dask.",
            level=1,
        ),
        Parameter(
            "python",
            "string",
            "",
            "Python of the workers' hosts that has ompy; empty for the path of the launcher's own.",
            level=2,
        ),
    )

    def open(self, values: Values) -> None:
        """Look whether there is a cluster.

        Raises:
            NotAvailable: none was named.
        """
        super().open(values)
        if not values.scheduler:
            raise NotAvailable("no Dask cluster was named: plm_dask_scheduler is empty")

    def secret(self) -> str | None:
        """The file that proves agents; None where Dask's own connections are trusted."""
        return os.environ.get(SECRET)

    def command(self, target: Target) -> list[str]:
        """The local command that starts an agent there. It names no secret."""
        shell = [sys.executable, "-m", "ompy_dask.shell", self.values.scheduler, target.name]
        return [*shell, *agent_words(self.values.python)]


COMPONENT = DaskPlm()
