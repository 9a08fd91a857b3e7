"""Other launchers: seeing that one of them started this process.

A program that another launcher starts n times would be n worlds of one, each of which does all
the work. That is an error, never silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ALONE: Final = "OMPY_SINGLETON"  # set to anything: separate worlds of one are what is meant
OURS: Final = "OMPY_SIZE"  # what ompy-run's ranks start are plain programs
# launcher, its variables for rank and size (reference ecosystem.md 6.1; openmpi.md 2.4.1)
_LAUNCHERS: Final = (
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),  # a batch script itself has no step
    ("mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("mpiexec", "PMI_RANK", "PMI_SIZE"),
    ("torchrun", "RANK", "WORLD_SIZE"),
)


def started_by_another(environment: Mapping[str, str]) -> str:
    """Who started several processes of which this is one, and what to do; else empty."""
    if ALONE in environment or OURS in environment:
        return ""
    for launcher, rank, size in _LAUNCHERS:
        count = environment.get(size, "")
        if rank in environment and count.isdecimal() and int(count) > 1:
            return (
                f"{launcher} started this program {count} times ({size}={count}), and ompy cannot "
                f"make one job of what another launcher starts: run `ompy-run -n {count} ...` in "
                f"its place. If separate worlds of one are meant, set {ALONE}=1"
            )
    return ""
