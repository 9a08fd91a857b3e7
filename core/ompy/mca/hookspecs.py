"""The life-cycle hooks, and how a package offers its own.

A package names a module or object under the entry-point group `ompy.hooks`:

    [project.entry-points."ompy.hooks"]
    watcher = "my_package.watcher"

and marks functions of these names there, which take whichever of the arguments they want:

    from ompy.mca.hookspecs import hookimpl

    @hookimpl
    def ompy_job_finished(exit_code): ...

The hooks of each package are called apart from other packages', in the order of the packages'
names. One that raises is reported on standard error, by the launcher or by rank 0; its package is
not called again, the others go on.
`--mca hooks ^watcher` keeps a package from being imported.

This module imports pluggy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pluggy

from ompy import outputs
from ompy.mca.hooks import HookCaller
from ompy.mca.plugins.loading import summary, traceback_text

if TYPE_CHECKING:
    from ompy.mca.plugins.component_records import ComponentRecord
    from ompy.mca.registry import Registry
    from ompy.mca.reporting import Finding

PROJECT: Final = "ompy"
hookspec: Final = pluggy.HookspecMarker(PROJECT)
hookimpl: Final = pluggy.HookimplMarker(PROJECT)


class LifeCycle:
    """What a package may be told. See `HookCaller` for when."""

    @hookspec
    def ompy_job_launching(self, job: object) -> None:
        """A job is about to be launched (`ompy.frameworks.job.Job`); in the launcher."""

    @hookspec
    def ompy_job_finished(self, exit_code: int) -> None:
        """A job has ended with this exit code; in the launcher."""

    @hookspec
    def ompy_rail_lost(self, event: Mapping[str, Any]) -> None:
        """A rank has lost a rail (`FIELDS` of `runtime/rails/rail_report.py`); in the launcher."""

    @hookspec
    def ompy_rail_healed(self, event: Mapping[str, Any]) -> None:
        """A rail that a rank had lost is in use again; in the launcher."""

    @hookspec
    def ompy_finding(self, finding: Finding) -> None:
        """There is something that the user should know (`ompy.mca.reporting`); in the launcher."""

    @hookspec
    def ompy_component_state(self, record: ComponentRecord) -> None:
        """A component is in a new state; in every process."""

    @hookspec
    def ompy_rank_started(self, rank: int, size: int) -> None:
        """A rank of a world of `size` is ready; in its process."""

    @hookspec
    def ompy_rank_finalizing(self, rank: int) -> None:
        """A rank is about to finalize; in its process."""


def own_hooks(*plugins: object) -> pluggy.HookRelay:
    """The hooks of plug-ins of our own: what one of them raises is a mistake of ours."""
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(LifeCycle)
    for plugin in plugins:
        manager.register(plugin)
    manager.check_pending()
    return manager.hook


class PluginCaller(HookCaller):
    """Calls the hooks of packages, each guarded from the others."""

    active = True

    def __init__(
        self,
        registry: Registry,
        plugins: Sequence[tuple[ComponentRecord, object]],
        *,
        tell: bool = True,
    ) -> None:
        """Register the packages' objects; those whose hooks are not ours are dropped."""
        self._registry = registry
        self._tell = tell
        self._managers: list[tuple[ComponentRecord, pluggy.PluginManager]] = []
        for record, plugin in plugins:
            manager = pluggy.PluginManager(PROJECT)
            manager.add_hookspecs(LifeCycle)
            try:
                manager.register(plugin, record.name)
                manager.check_pending()
            except (Exception, SystemExit) as error:
                registry.drop_hooks(record, summary(error), traceback_text(error))
                registry.require(record)
            else:
                self._managers.append((record, manager))
        if any(manager.hook.ompy_component_state.get_hookimpls() for _, manager in self._managers):
            for record in list(registry.records):
                self.ompy_component_state(record)
            registry.listen(self.ompy_component_state)

    def _call(self, hook: str, **arguments: object) -> None:
        for entry in list(self._managers):
            record, manager = entry
            try:
                getattr(manager.hook, hook)(**arguments)
            except (Exception, SystemExit) as error:
                self._managers.remove(entry)
                self._report(record, hook, error)

    def _report(self, record: ComponentRecord, hook: str, error: BaseException) -> None:
        reason = f"{hook} raised {summary(error)}"
        self._registry.drop_hooks(record, reason, traceback_text(error))
        if self._tell:
            record.told = record.warning
            outputs.tell(
                f"ompy: {record.full_name} of {record.offered_by}: {reason}; "
                "its hooks are not called any more\n",
                "warning",
                "warning",
            )
