"""Registries that have one component more, or another one of its name: the one under test."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Final

from ompy.frameworks.catalog import CATALOG
from ompy.mca.component import Component
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.mca.registry import Registry

PACKAGE: Final = "ompy.conformance"

Settings = Mapping[str, object]

# where the registry finds an object that is not installed, by its framework and name
candidates = SimpleNamespace()


@cache
def _in_tree() -> tuple[tuple[str, str, str, str, str], ...]:
    records = scan_entry_points(frozenset(framework.name for framework in CATALOG))
    return tuple(
        (record.framework, record.name, record.distribution, record.version, record.target)
        for record in records
        if record.in_tree
    )


def registry_with(
    framework: str, name: str, version: str, subject: object, settings: Settings
) -> Registry:
    """A registry of ompy's own components and one more, which replaces one of its name.

    Args:
        framework: of the object, or `hooks`.
        name: of it.
        version: of it.
        subject: what its entry point would name.
        settings: values of parameters by full name; nothing comes from files or environment.

    Raises:
        UsageError: a setting is not valid.
    """
    place = f"{framework}_{name}"
    setattr(candidates, place, subject)
    target = f"{__name__}:candidates.{place}"
    records = [ComponentRecord(framework, name, PACKAGE, version, target)]
    records += [ComponentRecord(*known) for known in _in_tree() if known[:2] != (framework, name)]
    pairs = [(name, str(value)) for name, value in settings.items()]
    made = Registry(CATALOG, gather_settings(pairs, {}, files=[]), records)
    if isinstance(subject, Component):
        made.load(framework)
    made.check_settings()
    return made
