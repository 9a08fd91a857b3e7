"""Which components the installed distributions offer: metadata only, nothing is imported.

Never imported in a rank that was started with a snapshot. Whatever a stranger's metadata does is
kept from spreading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from ompy.mca.errors import did_you_mean
from ompy.mca.plugins.component_records import ComponentRecord, State
from ompy.mca.plugins.installed import GROUP_PREFIX, only_ours

if TYPE_CHECKING:
    from importlib import metadata

ALIASES: Final = ".aliases"  # of a group: other names of its components, `vader = "sm"`
NAMELESS: Final = "?"  # a distribution without readable metadata


def scan_entry_points(frameworks: frozenset[str]) -> list[ComponentRecord]:
    """A record for each entry point of a group that begins with `ompy.`.

    Args:
        frameworks: whose components to look for.

    Returns:
        The records in an order that does not depend on the file system: those of ompy itself
        first, then by name of the distribution, then by framework and name. A distribution
        whose entry points cannot be read has one record, broken, for the framework `?`. An
        entry point for a framework there is none of is incompatible.
    """
    ours = only_ours()
    if ours is not None:
        records = list(_records(ours, ours.name, ours.version, frameworks))
    else:
        records = _all_records(frameworks)
    records.sort(key=_order)
    return records


def _all_records(frameworks: frozenset[str]) -> list[ComponentRecord]:
    """By the standard library, which knows every way a distribution can be installed."""
    from importlib import metadata

    records: list[ComponentRecord] = []
    seen: set[str] = set()
    for distribution in metadata.distributions():
        if not _may_offer(distribution):
            continue
        name, version = _identity(distribution)
        if name in seen or not _is_installed(distribution, name, version):
            continue
        if name != NAMELESS:
            seen.add(name)
        records.extend(_records(distribution, name, version, frameworks))
    return records


class _EntryPoint(Protocol):
    """One line of `entry_points.txt`."""

    @property
    def group(self) -> str:
        """The section it stands in."""

    @property
    def name(self) -> str:
        """What stands before the `=`."""

    @property
    def value(self) -> str:
        """What stands behind."""


class _Distribution(Protocol):
    """As far as it is looked at here."""

    @property
    def entry_points(self) -> Sequence[_EntryPoint]:
        """All it has."""


def _may_offer(distribution: metadata.Distribution) -> bool:
    """A quick look: most distributions have nothing for us, some cannot be read at all."""
    try:
        return GROUP_PREFIX in (distribution.read_text("entry_points.txt") or "")
    except Exception:
        return False


def _identity(distribution: metadata.Distribution) -> tuple[str, str]:
    try:
        return distribution.name or NAMELESS, distribution.version or ""
    except Exception:
        return NAMELESS, ""


def _is_installed(distribution: metadata.Distribution, name: str, version: str) -> bool:
    """Whether Python would take this one: of two with one name the first on the path counts."""
    from importlib import metadata

    try:
        first = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return True
    same_place = str(first.locate_file("")) == str(distribution.locate_file(""))
    return same_place and _identity(first) == (name, version)


def _records(
    distribution: _Distribution, name: str, version: str, frameworks: frozenset[str]
) -> Iterator[ComponentRecord]:
    try:
        points = list(distribution.entry_points)
    except Exception as error:
        line = str(error).partition("\n")[0]
        reason = f"its entry_points.txt cannot be understood: {line}"
        yield ComponentRecord("?", "?", name, version, "", state=State.BROKEN, reason=reason)
        return
    for point in points:
        framework = point.group.removeprefix(GROUP_PREFIX).removesuffix(ALIASES)
        if not point.group.startswith(GROUP_PREFIX) or _is_alias_of_one(point, points):
            continue
        target = point.value.partition("[")[0].replace(" ", "")  # without wanted extras
        record = ComponentRecord(framework, point.name, name, version, target)
        record.aliases = tuple(
            other.name
            for other in points
            if other.group == point.group + ALIASES and other.value == point.name
        )
        fault = ""
        if framework not in frameworks:
            fault = f"there is no framework {framework}{did_you_mean(framework, frameworks)}"
        elif point.group.endswith(ALIASES):
            fault = f"it is an alias of {target}, which {name} does not offer"
        if fault:
            if record.in_tree:
                continue  # the catalog is another one than ours
            record.move(State.INCOMPATIBLE, fault)
        yield record


def _is_alias_of_one(point: _EntryPoint, points: Sequence[_EntryPoint]) -> bool:
    """Whether it gives another name to a component of the same distribution."""
    group = point.group.removesuffix(ALIASES)
    return group != point.group and any(
        (other.group, other.name) == (group, point.value) for other in points
    )


def _order(record: ComponentRecord) -> tuple[bool, str, str, str, str, str]:
    """Nothing in it depends on where or in which order distributions were found."""
    return (
        not record.in_tree,
        record.distribution.lower(),
        record.framework,
        record.name,
        record.version,
        record.target,
    )
