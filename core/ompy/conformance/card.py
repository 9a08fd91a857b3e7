"""The card: what a component keeps of its contract, for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from ompy import __version__
from ompy.conformance.plugin import EXPECTED, FAILED, PASSED, SKIPPED, Outcome, Subject
from ompy.frameworks.capabilities import Capabilities

if TYPE_CHECKING:
    from ompy.conformance.registries import Settings

COLUMNS: Final = (PASSED, FAILED, SKIPPED, EXPECTED)
COLOURS: Final = {PASSED: "green", FAILED: "red", SKIPPED: "cyan", EXPECTED: "yellow"}
WIDTH: Final = 17  # arbitrary: of the column of suites; `remote memory` and a gap
OFF: Final = "capability off: "
NOT_JUDGED: Final = "not judged: "  # how the reason of a skipped test begins that matters


class Card(NamedTuple):
    """All outcomes of one component.

    Attributes:
        component: that was examined.
        settings: it was examined with.
        outcomes: of the tests, in the order they ran.
    """

    component: Subject
    settings: Settings
    outcomes: Sequence[Outcome]

    @property
    def failed(self) -> list[Outcome]:
        """The tests that failed."""
        return [outcome for outcome in self.outcomes if outcome.result == FAILED]

    def repeat(self, outcome: Outcome) -> str:
        """The command that runs one test again, as it ran here."""
        words = ["ompy", "conformance", self.component.framework, self.component.name]
        for name, value in self.settings.items():
            words += ["--mca", name, f"'{value}'"]
        if outcome.seed is not None:
            words += ["--seed", str(outcome.seed)]
        return " ".join([*words, "--test", f"'{outcome.test}'"])

    def lines(self) -> Iterator[str]:
        """The card as text with colours."""
        component = self.component
        major, minor = component.api
        framework = component.framework
        yield (
            f"{framework} {component.name} {component.version}, "
            f"{framework.upper()} API {major}.{minor}, under ompy {__version__}"
        )
        capabilities = _capabilities(component)
        if capabilities is not None:
            yield _promises(capabilities)
        yield ""
        yield f"{'suite':<{WIDTH}}{'passed':>8}{'failed':>8}{'skipped':>9}{'expected':>10}"
        for suite in dict.fromkeys(outcome.suite for outcome in self.outcomes):
            yield self._row(suite)
        yield from self._section("expected failures:", EXPECTED)
        yield from self._section("failed:", FAILED)
        if self.failed:
            yield ""
            yield "to run one of them again:"
            yield f"  {self.repeat(self.failed[0])}"
        yield ""
        yield self._verdict()

    def document(self) -> dict[str, Any]:
        """The card as plain values JSON can carry; `badge` is what shields.io takes."""
        count = Counter(outcome.result for outcome in self.outcomes)
        suites = dict.fromkeys(outcome.suite for outcome in self.outcomes)
        conforms = not count[FAILED]
        capabilities = _capabilities(self.component)
        return {
            "framework": self.component.framework,
            "component": self.component.name,
            "version": self.component.version,
            "api": list(self.component.api),
            "ompy": __version__,
            "capabilities": capabilities._asdict() if capabilities is not None else {},
            "settings": {name: str(value) for name, value in self.settings.items()},
            "conforms": conforms,
            "suites": [{"suite": suite, **self._counts(suite)} for suite in suites],
            "failed": [
                {"test": one.test, "reason": one.reason, "repeat": self.repeat(one)}
                for one in self.failed
            ],
            "skipped": self._reasons(SKIPPED),
            "expected_failures": self._reasons(EXPECTED),
            "badge": {
                "schemaVersion": 1,
                "label": f"ompy {self.component.framework} conformance",
                "message": f"{count[PASSED]} passed" if conforms else f"{count[FAILED]} failed",
                "color": "brightgreen" if conforms else "red",
            },
        }

    def _counts(self, suite: str) -> dict[str, int]:
        found = Counter(one.result for one in self.outcomes if one.suite == suite)
        return {column.replace(" ", "_"): found[column] for column in COLUMNS}

    def _reasons(self, result: str) -> list[dict[str, str]]:
        return [
            {"test": one.test, "reason": one.reason}
            for one in self.outcomes
            if one.result == result
        ]

    def _row(self, suite: str) -> str:
        counts = list(self._counts(suite).values())
        cells = [
            click.style(f"{count or '.':>{width}}", fg=COLOURS[column] if count else None)
            for column, count, width in zip(COLUMNS, counts, (8, 8, 9, 10), strict=True)
        ]
        reasons = dict.fromkeys(
            one.reason for one in self.outcomes if one.suite == suite and one.result == SKIPPED
        )
        off = [reason.removeprefix(OFF) for reason in reasons if reason.startswith(OFF)]
        others = [reason for reason in reasons if not reason.startswith(OFF)]
        notes = [f"off: {', '.join(off)}"] if off else []
        return f"{suite:<{WIDTH}}{''.join(cells)}   {'; '.join(notes + others)}".rstrip()

    def _section(self, title: str, result: str) -> Iterator[str]:
        found = [one for one in self.outcomes if one.result == result]
        if found:
            yield ""
            yield click.style(title, fg=COLOURS[result])
        for one in found:
            yield f"  {one.test}: {one.reason}"

    def _verdict(self) -> str:
        count = Counter(outcome.result for outcome in self.outcomes)
        numbers = ", ".join(f"{count[column]} {column}" for column in COLUMNS if count[column])
        if count[FAILED]:
            return click.style(f"does not conform: {numbers}", fg="red", bold=True)
        partly = any(one.reason.startswith(NOT_JUDGED) for one in self.outcomes)
        limit = " as far as it was judged" if partly else ""
        return click.style(f"conforms{limit}: {numbers}", fg="green", bold=True)


def _capabilities(component: Subject) -> Capabilities | None:
    """What it promises, if its framework has promises: BTLs' has."""
    return getattr(component, "capabilities", None)


def _promises(capabilities: Capabilities) -> str:
    """What it says of itself, in one line."""
    said = [f"reach {capabilities.reach}", f"wire {capabilities.wire}"]
    for name in ("ordered", "reliable", "checksum", "virtual"):
        said.append(name if getattr(capabilities, name) else f"not {name}")
    return ", ".join(said).replace("not checksum", "no checksum")
