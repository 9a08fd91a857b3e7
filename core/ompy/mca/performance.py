"""Performance variables: what components have counted, as MPI's tools interface has it (MPI_T).

A component declares them, and its module says what they are now (`BtlModule.counters`,
`Pml.counted`). Nothing is counted for them on the way of a message: they are read from what the
protocol numbers anyway.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COUNTER: Final = "counter"  # MPI 4.1, 15.3.7: it only grows
LEVEL: Final = "level"  # what is there now
HIGHEST: Final = "highwatermark"  # the most there has been
PVARS: Final = "mca_base_pvars"  # the parameter behind --pvars
EVERYTHING: Final = "all"  # in place of names


class PerformanceVariable(NamedTuple):
    """One of them.

    Attributes:
        name: in its component.
        help: what it says, in a sentence.
        unit: of its value, in the plural.
        kind: `COUNTER`, `LEVEL` or `HIGHEST`.
    """

    name: str
    help: str
    unit: str
    kind: str = COUNTER


def full_name(framework: str, component: str, name: str) -> str:
    """The name of a component's variable among all."""
    return f"{framework}_{component}_{name}"


def chosen_names(wanted: str, names: Iterable[str]) -> Sequence[str]:
    """The names that a list of patterns means.

    Args:
        wanted: names and patterns with `*`, separated by commas; `EVERYTHING` for all.
        names: all there are.
    """
    patterns = [word.strip() for word in wanted.split(",") if word.strip()]
    if EVERYTHING in patterns:
        return list(names)
    return [name for name in names if any(fnmatchcase(name, each) for each in patterns)]
