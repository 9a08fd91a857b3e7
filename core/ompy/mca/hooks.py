"""Calls to the life-cycle hooks that installed packages offer in the group `ompy.hooks`.

Where no package offers any, a call does nothing and pluggy is not even imported. How a package
offers hooks is with `ompy.mca.hookspecs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ompy.mca.groups import HOOKS

if TYPE_CHECKING:
    from ompy.mca.plugins.component_records import ComponentRecord
    from ompy.mca.registry import Registry
    from ompy.mca.reporting import Finding


class HookCaller:
    """One method for each hook. This one has nobody to call.

    Attributes:
        active: somebody listens.
    """

    active = False

    def ompy_job_launching(self, job: object) -> None:
        """A job is about to be launched: placed and checked, nothing started."""
        self._call("ompy_job_launching", job=job)

    def ompy_job_finished(self, exit_code: int) -> None:
        """A job has ended and nothing of it is left."""
        self._call("ompy_job_finished", exit_code=exit_code)

    def ompy_rail_lost(self, event: Mapping[str, Any]) -> None:
        """A rank has lost a rail. Its fields: `FIELDS` of `ompy.runtime.rails.rail_report`."""
        self._call("ompy_rail_lost", event=event)

    def ompy_rail_healed(self, event: Mapping[str, Any]) -> None:
        """A rail that a rank had lost is in use again."""
        self._call("ompy_rail_healed", event=event)

    def ompy_finding(self, finding: Finding) -> None:
        """There is something that the job's user should know."""
        self._call("ompy_finding", finding=finding)

    def ompy_component_state(self, record: ComponentRecord) -> None:
        """A component is in a new state."""
        self._call("ompy_component_state", record=record)

    def ompy_rank_started(self, rank: int, size: int) -> None:
        """This rank is ready for its first message."""
        self._call("ompy_rank_started", rank=rank, size=size)

    def ompy_rank_finalizing(self, rank: int) -> None:
        """This rank is about to finalize; messages can still be sent."""
        self._call("ompy_rank_finalizing", rank=rank)

    def _call(self, hook: str, **arguments: object) -> None:
        """Call a hook of everybody who has it."""


def hook_caller(registry: Registry, *, tell: bool = True) -> HookCaller:
    """A caller for the hooks that the registry's selection `hooks` allows.

    A package that cannot be imported, or whose hooks are not ours, is left out and its record
    says why. Each component's present state is told at once, each change when it comes.

    Args:
        registry: with the packages.
        tell: write a line to standard error when a hook raises. Of the ranks of a job one is
            enough; the record says it in each.

    Raises:
        UsageError: the selection is not valid.
        ComponentError: the user asked for a package by name and it cannot be used.
    """
    if not registry.records_of(HOOKS.name):
        return HookCaller()
    plugins = registry.load_hooks()
    if not plugins:
        return HookCaller()
    from ompy.mca.hookspecs import PluginCaller

    return PluginCaller(registry, plugins, tell=tell)
