"""pytest's reports as dictionaries of builtin values, and back: what `merge` works on."""

from __future__ import annotations

import pytest

from pytest_ompy.merge import Report


def packed(config: pytest.Config, report: pytest.TestReport) -> Report:
    """The dictionary that pytest makes of a report."""
    data: Report = config.hook.pytest_report_to_serializable(config=config, report=report)
    return data


def revived(config: pytest.Config, data: Report) -> pytest.TestReport:
    """The report again."""
    report: pytest.TestReport = config.hook.pytest_report_from_serializable(
        config=config, data=data
    )
    return report
