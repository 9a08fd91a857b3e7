"""How a passive agent, and the coordinator in it, speak to the user.

They write to the standard error of the rank that started the agent, as text or, where the parameter
`mca_base_log_format` says so, as lines of JSON. What the parameter is, is looked for when there is
something to say.
"""

from __future__ import annotations

import os

from ompy import outputs
from ompy.frameworks.catalog import CATALOG
from ompy.mca.errors import UsageError
from ompy.mca.parameters.settings import LOG_FORMAT, gather_settings
from ompy.mca.registry import Registry
from ompy.mca.reporting import TEXT, Finding, Reporter


class HostReporter:
    """Speaks for one host of a job."""

    def __init__(self) -> None:
        self._about: dict[str, object] = {"host": os.uname().nodename}
        self._form = ""

    def set_job(self, job_id: str) -> None:
        """The job has an id: what is said from now on is about it."""
        self._about["job"] = job_id

    def warn_user(self, text: str, name: str = "warning", level: str = "warning") -> None:
        """Tell the user a sentence."""
        self.report_finding(Finding(name, f"ompy: {text}\n", level))

    def report_finding(self, finding: Finding) -> None:
        """Tell the user what was found."""
        outputs.write(Reporter(self._asked(), self._about).lines(finding))

    def _asked(self) -> str:
        """The form; text where the parameters are wrong, of which the coordinator tells."""
        if not self._form:
            try:
                registry = Registry(CATALOG, gather_settings([], os.environ))
                self._form = str(registry.value(LOG_FORMAT))
            except UsageError:
                self._form = TEXT
        return self._form
