"""monitoring's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import Pml, PmlWrapperComponent
from ompy.mca.component import ApiVersion
from ompy.mca.parameter import Parameter


class MonitoringComponent(PmlWrapperComponent):
    """Counts what the selected PML sends and receives. Off unless it is enabled."""

    name: ClassVar[str] = "monitoring"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[ApiVersion] = (2, 1)
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            0,
            "Order among wrappers of the PML: the highest is closest to the PML.",
            level=9,
            unit="points",
        ),
        Parameter(
            "enable",
            "bool",
            False,
            "Count messages and bytes per peer, and show the traffic matrix when the job ends.",
            level=1,
        ),
        Parameter(
            "output",
            "string",
            "stderr",
            "Where rank 0 shows the matrix: stderr, stdout, none, or a file whose name ends in "
            ".json, .csv or .txt and so says its form.",
            level=1,
        ),
        Parameter(
            "width",
            "int",
            100,
            "Columns of text a matrix may take before it is folded; 0 for any number.",
            level=4,
            unit="columns",
            minimum=0,
        ),
        Parameter(
            "patience",
            "int",
            30,
            "How long rank 0 waits in MPI_Finalize for the counts of ranks that still run.",
            level=4,
            unit="s",
            minimum=0,
        ),
    )

    def declines(self) -> str:
        """Unless it is enabled there is nothing to do."""
        if self.values.enable:
            return ""
        return "pml_monitoring_enable is false: set it to true to count messages"

    def wrap(self, context: RankContext, inner: Pml) -> Pml:
        """The counting PML of one rank."""
        from ompy_pml_monitoring.module import Monitoring

        return Monitoring(context, inner, self.values)


COMPONENT = MonitoringComponent()
