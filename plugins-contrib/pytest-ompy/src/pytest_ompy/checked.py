"""What the checker has found in a test: from the report of `ompy-run` into the test's."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ompy.check.findings import Found, lines_of

from pytest_ompy.merge import STRICT_XPASS, Report, kind_of, text_failure

SECTION: Final = "ompy check"


class CheckReport:
    """The file that `ompy-run` writes what it finds into.

    Attributes:
        path: its name.
    """

    def __init__(self) -> None:
        self._directory = tempfile.mkdtemp(prefix="pytest-ompy-")
        self.path = os.path.join(self._directory, "findings.json")

    def read(self) -> list[Found]:
        """What was found; nothing if the job has ended without a report."""
        try:
            report = json.loads(Path(self.path).read_text())
        except OSError:
            return []
        return [
            Found(one["class"], one["message"], tuple(one["sites"])) for one in report["findings"]
        ]

    def remove(self) -> None:
        """It is of no more use."""
        shutil.rmtree(self._directory, ignore_errors=True)


def with_findings(reports: list[Report], found: Sequence[Found]) -> list[Report]:
    """The reports of a test's phases, failed by what was found in it.

    A failure there is already gets it as a section. What was expected to fail has failed.

    Args:
        reports: of the phases.
        found: by the checker.
    """
    if not found or not reports:
        return reports
    text = "\n".join(lines_of(found))
    for report in reports:
        if kind_of(report) == "xpassed-strict":
            reason = str(report["longrepr"]).removeprefix(STRICT_XPASS).strip()
            report.update(wasxfail=reason, outcome="passed")
    failed = next((report for report in reports if report["outcome"] == "failed"), None)
    if failed is not None:
        failed["sections"].append((SECTION, text))
        return reports
    report = next((each for each in reports if each["when"] == "call"), reports[-1])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    report["longrepr"] = text_failure(text, f"{found[0].kind}: {found[0].message}{more}")
    report["outcome"] = "skipped" if "wasxfail" in report else "failed"
    return reports
