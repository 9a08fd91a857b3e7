"""Drawing: the same file from the same numbers, whoever draws it."""

from __future__ import annotations

from typing import Any, Final

from tools.repository import ROOT

FIGURES: Final = ROOT / "docs" / "figures"


def plotting(name: str) -> Any:
    """Matplotlib's pyplot, set for a picture of this name."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = name
    from matplotlib import pyplot as plt

    return plt


def finish(name: str, figure: Any, *all_axes: Any) -> None:
    """A grid, a legend in the first axes, and the file."""
    for axes in all_axes:
        axes.grid(alpha=0.3)
    all_axes[0].legend()
    figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
