"""Which components the installed distributions offer: metadata only, nothing is imported.

Never imported in a rank that was started with a snapshot. Whatever a stranger's metadata does is
kept from spreading.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import Final

from ompy.mca.records import ComponentRecord, State

GROUP_PREFIX: Final = "ompy."
ALIASES: Final = ".aliases"  # of a group: other names of its components, `vader = "sm"`
NAMELESS: Final = "?"  # a distribution without readable metadata


def scan(frameworks: frozenset[str]) -> list[ComponentRecord]:
    """A record for each entry point of the groups `ompy.<framework>`.

    Args:
        frameworks: whose components to look for.

    Returns:
        The records in an order that does not depend on the file system: those of ompy itself
        first, then by name of the distribution, then by framework and name. A distribution
        whose entry points cannot be read has one record, broken, for the framework `?`.
    """
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
    records.sort(key=_order)
    return records


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
    try:
        first = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return True
    same_place = str(first.locate_file("")) == str(distribution.locate_file(""))
    return same_place and _identity(first) == (name, version)


def _records(
    distribution: metadata.Distribution, name: str, version: str, frameworks: frozenset[str]
) -> Iterator[ComponentRecord]:
    try:
        points = list(distribution.entry_points)
    except Exception as error:
        reason = f"its entry_points.txt cannot be understood: {error}"
        yield ComponentRecord("?", "?", name, version, "", state=State.BROKEN, reason=reason)
        return
    for point in points:
        framework = point.group.removeprefix(GROUP_PREFIX)
        if point.group.startswith(GROUP_PREFIX) and framework in frameworks:
            target = point.value.partition("[")[0].replace(" ", "")  # without wanted extras
            record = ComponentRecord(framework, point.name, name, version, target)
            record.aliases = tuple(
                other.name
                for other in points
                if other.group == point.group + ALIASES and other.value == point.name
            )
            yield record


def _order(record: ComponentRecord) -> tuple[bool, str, str, str]:
    return (not record.in_tree, record.distribution.lower(), record.framework, record.name)
