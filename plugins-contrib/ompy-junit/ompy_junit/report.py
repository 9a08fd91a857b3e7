"""The report itself. The elements are those of the JUnit schema that CI systems read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

if TYPE_CHECKING:
    from ompy.mca.reporting import Finding

# XML 1.0: characters that no document may have
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JobReport:
    """One job.

    Attributes:
        findings: what was found, in order.
        rails: a sentence for each rail that was lost or healed.
    """

    def __init__(
        self, job_id: str, programs: Sequence[str], ranks: int, hosts: Sequence[str]
    ) -> None:
        self.findings: list[Finding] = []
        self.rails: list[str] = []
        self._name = " : ".join(programs)
        self._properties = {"job": job_id, "ranks": str(ranks), "hosts": ",".join(hosts)}

    def write(self, path: str, exit_code: int, seconds: float) -> None:
        """Write it.

        Args:
            path: of the file; what it held is lost.
            exit_code: of the job.
            seconds: that the job took.

        Raises:
            OSError: the file cannot be written.
        """
        tree = ElementTree(self._suite(exit_code, seconds))
        indent(tree)
        tree.write(path, encoding="utf-8", xml_declaration=True)

    def _suite(self, exit_code: int, seconds: float) -> Element:
        failed = str(int(exit_code != 0))
        counts = {"tests": "1", "failures": failed, "errors": "0", "skipped": "0"}
        took = {"time": f"{seconds:.3f}"}
        suite = Element("testsuite", {"name": "ompy", **counts, **took})
        properties = SubElement(suite, "properties")
        for name, value in {**self._properties, "exit_code": str(exit_code)}.items():
            SubElement(properties, "property", {"name": name, "value": _clean(value)})
        named = {"classname": "ompy", "name": _clean(self._name), **took}
        case = SubElement(suite, "testcase", named)
        if exit_code:
            self._add_failure(case, exit_code)
        told = [finding.text for finding in self.findings if finding.level != "error"]
        SubElement(case, "system-out").text = _clean("\n".join([*told, *self.rails]))
        return suite

    def _add_failure(self, case: Element, exit_code: int) -> None:
        errors = [finding for finding in self.findings if finding.level == "error"]
        headline = next((str(e.fields["headline"]) for e in errors if "headline" in e.fields), "")
        message = headline or f"the job ended with exit code {exit_code}"
        failure = SubElement(case, "failure", {"message": _clean(message), "type": "ompy"})
        failure.text = _clean("\n".join(error.text for error in errors))


def _clean(text: str) -> str:
    """Without what XML cannot hold, such as the escapes of a terminal."""
    return _FORBIDDEN.sub("?", text)
