"""Options of `ompy sim` that describe a cluster (`sim_cluster.py` runs it)."""

from __future__ import annotations

from typing import Any

import click

from ompy.cli.completing.completion import complete_file
from ompy.cli.numbers import Number

ALL = (
    click.option(
        "--cluster",
        metavar="FILE|NAME",
        shell_complete=complete_file,
        help="Predict what the program takes on a cluster that a TOML file describes, or one of "
        "configs/clusters (docs/what-if.md). -n is all its ranks unless it is given.",
    ),
    click.option(
        "--compute-scale",
        type=Number(min=0),
        metavar="X",
        help="With --cluster, computing takes X times the processor time that it takes here. "
        "Default: 0, it takes no time.",
    ),
)


def cluster_options(command: Any) -> Any:
    """A command with these options."""
    for option in reversed(ALL):
        command = option(command)
    return command
