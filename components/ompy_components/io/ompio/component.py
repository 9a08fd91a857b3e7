"""ompio's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.io import API, IoComponent, IoModule, Opening
from ompy.mca.parameter import Parameter


class OmpioComponent(IoComponent):
    """Files of any file system that the ranks' hosts have in common."""

    name: ClassVar[str] = "ompio"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            30,  # Open MPI 4.1: io_ompio_priority
            "Priority in the selection of a module for each file.",
            level=9,
            unit="points",
        ),
        Parameter(
            "num_aggregators",
            "int",
            2,  # measured: columns of 8 bytes, 4 ranks, 2 cores; more does not help there
            "Most ranks of each host that write and read for the others in collective calls. The "
            "hint cb_nodes says for one file how many there are in all.",
            level=5,
            unit="ranks",
            minimum=1,
        ),
        Parameter(
            "bytes_per_agg",
            "size_t",
            33554432,  # Open MPI 4.1: io_ompio_bytes_per_agg
            "Most bytes of the file that such a rank has in memory at a time. The hint "
            "cb_buffer_size says so for one file.",
            level=5,
            unit="bytes",
            minimum=4096,
        ),
        Parameter(
            "independent_from",
            "size_t",
            65536,  # arbitrary: a call to the system is cheap beside the copying of so much
            "Average length of what lies side by side in the file from which on each rank writes "
            "and reads for itself in collective calls too.",
            level=6,
            unit="bytes",
            minimum=1,
        ),
        Parameter(
            "few_runs",
            "int",
            16,  # arbitrary: so many calls of the system take less than a few messages
            "Most pieces in the file of what a rank writes or reads in a collective call up to "
            "which it does so by itself. 0: aggregators are asked for whatever has gaps.",
            level=6,
            unit="runs",
            minimum=0,
        ),
        Parameter(
            "sieved_alone",
            "size_t",
            2097152,  # measured: columns of 8 bytes, 8 ranks, 2 cores: aggregators win above
            "Longest part of the file up to which a rank of a job on one host reads by itself in "
            "a collective call, gaps included. Where it wants half of that part, there is no "
            "limit.",
            level=6,
            unit="bytes",
            minimum=0,
        ),
    )

    def query(self, opening: Opening) -> IoModule | None:
        """A module for any file."""
        from ompy_components.io.ompio.module import Ompio

        return Ompio(opening, self.values)


COMPONENT = OmpioComponent()
