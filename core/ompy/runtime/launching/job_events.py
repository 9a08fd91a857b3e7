"""What happens to a job, from the launcher to all who listen: our own reports, then packages'.

Both have the life-cycle hooks of `ompy.mca.hookspecs`. Most jobs have nothing to tell: pluggy and
the reports are imported with the first event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ompy.mca.hooks import HookCaller
from ompy.mca.reporting import Finding, Reporter

if TYPE_CHECKING:
    import pluggy


class Reporting(NamedTuple):
    """How the launcher speaks of a job.

    Attributes:
        reporter: makes the lines.
        packages: calls the hooks of installed packages.
    """

    reporter: Reporter
    packages: HookCaller


SILENT: Final = Reporting(Reporter(), HookCaller())  # text, and nobody else to tell


class JobEvents:
    """Tells our own reports and the packages that are installed."""

    def __init__(
        self,
        say: Callable[[str], object],
        reporter: Reporter,
        packages: HookCaller,
        *,
        live_rails: bool,
    ) -> None:
        """Prepare.

        Args:
            say: writes whole lines for the user.
            reporter: makes them.
            packages: calls the hooks of installed packages.
            live_rails: say at once when a rail breaks or heals.
        """
        self._say = say
        self._reporter = reporter
        self._packages = packages
        self._live_rails = live_rails
        self._ours: pluggy.HookRelay | None = None

    def rail_lost(self, event: Mapping[str, Any]) -> None:
        """A rank has lost a rail."""
        self._own().ompy_rail_lost(event=event)
        self._packages.ompy_rail_lost(event)

    def rail_healed(self, event: Mapping[str, Any]) -> None:
        """It is in use again."""
        self._own().ompy_rail_healed(event=event)
        self._packages.ompy_rail_healed(event)

    def found(self, finding: Finding) -> None:
        """There is something that the user should know."""
        self._own().ompy_finding(finding=finding)
        self._packages.ompy_finding(finding)

    def _own(self) -> pluggy.HookRelay:
        if self._ours is None:
            from ompy.mca.hookspecs import own_hooks
            from ompy.runtime.launching.job_reports import FindingReport, RailReport

            reports: list[object] = [FindingReport(self._say, self._reporter)]
            if self._live_rails:
                reports.append(RailReport(self._say, self._reporter))
            self._ours = own_hooks(*reports)
        return self._ours
