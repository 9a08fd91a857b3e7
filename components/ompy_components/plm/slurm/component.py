"""plm/slurm: agents on the hosts of a Slurm allocation, started by `srun`."""

from __future__ import annotations

import os
import shlex
from typing import ClassVar, Final

from ompy.frameworks.plm import API, CommandPlm, Target
from ompy.mca.component import ApiVersion, NotAvailable
from ompy.mca.parameter import Parameter, Values
from ompy.runtime.agents.agent_command import PYTHON, agent_words
from ompy.runtime.launching.allocation import JOB_VARIABLE, allocated_hosts
from ompy.runtime.launching.launchers import SECRET

# One step on one host, beside other steps, on all that the allocation has there: the agent binds
# ranks itself; each byte at once and as it is; no other wire-up.
SEALS: Final = {
    "mac": "they prove themselves by MUNGE, or by OMPY_SECRET_FILE where that is set",
    "none": "whoever reads what srun carries has the job key",
}
STEP: Final = (
    "--nodes=1",
    "--ntasks=1",
    "--overlap",
    "--cpu-bind=none",
    "--unbuffered",
    "--quiet",
    "--mpi=none",
)


class SlurmPlm(CommandPlm):
    """Starts agents by srun, inside an allocation."""

    name: ClassVar[str] = "slurm"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[ApiVersion] = API
    anywhere: ClassVar[bool] = True
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            30,  # arbitrary: above ssh, which an allocation may not allow, below local
            "Which plm component is asked first; the highest is.",
            level=9,
            unit="points",
        ),
        Parameter(
            "args",
            "string",
            "",
            "Arguments for srun, after those it gets anyway.",
            level=2,
        ),
        PYTHON,
        Parameter(
            "seal",
            "string",
            "mac",
            "How agents are kept safe from somebody between the hosts, as srun is not: by proofs "
            "and a MAC, or not at all.",
            level=3,
            choices=SEALS,
        ),
    )

    def open(self, values: Values) -> None:
        """Look whether this is an allocation.

        Raises:
            NotAvailable: it is none.
        """
        super().open(values)
        if JOB_VARIABLE not in os.environ:
            raise NotAvailable(f"this is no Slurm allocation: {JOB_VARIABLE} is not set")

    def reaches(self, target: Target) -> bool:
        """The hosts of the allocation."""
        return any(host == target.name for host, _ in allocated_hosts(os.environ) or ())

    def secret(self) -> str | None:
        """The file that proves agents, or MUNGE; None if the user wants neither."""
        return None if self.values.seal == "none" else os.environ.get(SECRET, "")

    def command(self, target: Target) -> list[str]:
        """The local command that starts an agent there. It names no secret.

        Raises:
            NotAvailable: there is no srun.
        """
        import shutil

        srun = shutil.which("srun")
        if srun is None:
            raise NotAvailable("there is no srun in PATH")
        more = shlex.split(self.values.args)
        words = agent_words(self.values.python)
        return [srun, *STEP, f"--nodelist={target.name}", *more, *words]


COMPONENT = SlurmPlm()
