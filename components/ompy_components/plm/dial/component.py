"""plm/dial: agents that wait on their hosts already are called by TCP."""

from __future__ import annotations

import os
import sys
from typing import ClassVar, Final

from ompy.frameworks.plm import API, CommandPlm, Target
from ompy.mca.component import ApiVersion, NotAvailable
from ompy.mca.parameter import Parameter, Values
from ompy.runtime.launching.launchers import SECRET
from ompy.runtime.ranks.environment import OWN_CODE

DIALER: Final = "ompy.runtime.dialing.dialer"


class DialPlm(CommandPlm):
    """Calls agents that `ompy agent` has started."""

    name: ClassVar[str] = "dial"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[ApiVersion] = API
    anywhere: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            40,  # arbitrary: whoever names a port means it: above slurm and ssh, below local
            "Which plm component is asked first; the highest is.",
            level=9,
            unit="points",
        ),
        Parameter(
            "port",
            "int",
            0,
            "Where agents wait on the other hosts (ompy agent); 0 for none do. A hostfile may say "
            "another port for a host.",
            level=2,
            unit="port",
            minimum=0,
            maximum=65535,  # TCP's largest port
        ),
    )

    def open(self, values: Values) -> None:
        """Look whether agents wait.

        Raises:
            NotAvailable: none do.
        """
        super().open(values)
        if not values.port:
            raise NotAvailable("nothing says where agents wait: plm_dial_port is 0")

    def secret(self) -> str | None:
        """The file that proves both ends, or MUNGE. There is no connection without."""
        return os.environ.get(SECRET, "")

    def command(self, target: Target) -> list[str]:
        """The local command that calls the agent there. It names no secret."""
        return [
            sys.executable,
            *OWN_CODE,
            "-m",
            DIALER,
            target.name,
            str(target.port or self.values.port),
        ]


COMPONENT = DialPlm()
