"""Runs the kit on one component from within a program, and collects what came of each test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pytest

if TYPE_CHECKING:
    from ompy.conformance.registries import Settings
    from ompy.mca.component import ApiVersion

PASSED: Final = "passed"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
EXPECTED: Final = "expected failure"
# what the run has no use for; some of it is whoever calls's own
OFF: Final = (
    "cacheprovider",
    "faulthandler",
    "junitxml",
    "terminal",
    "threadexception",
    "unraisableexception",
)


class Subject(Protocol):
    """What can be examined: a component, or a package of hooks."""

    @property
    def framework(self) -> str:
        """Whose kit examines it."""

    @property
    def name(self) -> str:
        """Of its entry point."""

    @property
    def version(self) -> str:
        """Of it."""

    @property
    def api(self) -> ApiVersion:
        """Version of the contract that it was made for."""


class Candidate(NamedTuple):
    """What a run is about.

    Attributes:
        component: under test.
        settings: parameters by full name.
    """

    component: Subject
    settings: Settings


UNDER_TEST: Final = pytest.StashKey[Candidate]()


class Outcome(NamedTuple):
    """What came of one test.

    Attributes:
        test: its name, with parameters.
        suite: title of its suite.
        result: `PASSED`, `FAILED`, `SKIPPED` or `EXPECTED`.
        reason: of a failure in one line, of a skip, of an expected failure.
        report: of a failure, in full.
        seed: it ran with, if it has one.
    """

    test: str
    suite: str
    result: str
    reason: str
    report: str
    seed: int | None


def examine(
    component: Subject,
    settings: Settings,
    *,
    seeds: Sequence[int] = (),
    tests: Collection[str] = (),
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Outcome]:
    """Run the kit on a component, in this process, untouched by any pytest configuration.

    Args:
        component: under test.
        settings: parameters by full name.
        seeds: of the tests that take one; the kit's own if there are none.
        tests: names of tests to run, with or without parameters; all if there are none.
        progress: called with how many tests are done, and of how many.

    Raises:
        LookupError: there is no test of a name in `tests`.
    """
    run = _Run(Candidate(component, settings), seeds, tests, progress)
    with tempfile.TemporaryDirectory() as folder, _plain_environment():
        configuration = Path(folder) / "pytest.ini"
        configuration.write_text("[pytest]\n")
        tests_of_kit = f"{Path(__file__).with_name('under_test.py')}::{_class_of(component)}"
        arguments = [tests_of_kit, "--import-mode=importlib"]
        arguments += ["-c", str(configuration), "--rootdir", folder]
        for name in OFF:
            arguments += ["-p", f"no:{name}"]
        code = pytest.main(arguments, plugins=[run])
    if run.unknown:
        raise LookupError(f"the kit has no test {', '.join(sorted(run.unknown))}")
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {code!r}: {run.problem or 'no test was run'}")
    return run.outcomes


def _class_of(component: Subject) -> str:
    """The class of `under_test.py` that has the kit for it."""
    return f"Test{getattr(component, 'framework', 'btl').capitalize()}"


@contextmanager
def _plain_environment() -> Iterator[None]:
    """Nothing of the caller's pytest reaches the run."""
    before = dict(os.environ)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "CI", "BUILD_NUMBER"):
        os.environ.pop(name, None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class _Run:
    """A pytest plugin: hands the component in, chooses the tests, keeps their outcomes."""

    def __init__(
        self,
        candidate: Candidate,
        seeds: Sequence[int],
        tests: Collection[str],
        progress: Callable[[int, int], None],
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.unknown: set[str] = set()
        self.problem = ""
        self._candidate = candidate
        self._seeds = list(seeds)
        self._tests = set(tests)
        self._progress = progress
        self._about: dict[str, tuple[str, str, int | None]] = {}

    def pytest_configure(self, config: pytest.Config) -> None:
        """Hand in what is under test."""
        config.stash[UNDER_TEST] = self._candidate
        config.option.ompy_seeds = self._seeds

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what went wrong before any test."""
        if report.failed:
            self.problem = str(report.longrepr)

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Choose the tests, and learn which suite each is of."""
        if self._tests:
            chosen = [item for item in items if self._tests & {item.name, item.originalname}]
            found = {name for item in chosen for name in (item.name, item.originalname)}
            self.unknown = self._tests - found
            items[:] = chosen
        for item in items:
            callspec = getattr(item, "callspec", None)
            seed = callspec.params.get("seed") if callspec is not None else None
            self._about[item.nodeid] = (item.name, _title(item), seed)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep an outcome: of the call, or of what went wrong around it."""
        if report.when != "call" and report.passed:
            return
        name, suite, seed = self._about[report.nodeid]
        wasxfail: str | None = getattr(report, "wasxfail", None)
        if report.skipped and wasxfail is not None:
            result, reason = EXPECTED, wasxfail.removeprefix("reason: ")
        elif report.skipped:
            result, reason = SKIPPED, _skip_reason(report)
        elif report.passed:
            result, reason = PASSED, ""
        else:
            result, reason = FAILED, _first_line(report)
        text = report.longreprtext if result == FAILED else ""
        self.outcomes.append(Outcome(name, suite, result, reason, text, seed))
        self._progress(len(self.outcomes), len(self._about))


def _title(item: pytest.Function) -> str:
    """Title of the suite a test was written in."""
    assert item.cls is not None
    from ompy.conformance.component_kit import suite_of_test

    written_in = suite_of_test(item.cls, item.originalname)
    title: str = written_in.__dict__.get("title", written_in.__name__)
    return title


def _skip_reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _first_line(report: pytest.TestReport) -> str:
    """What went wrong, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines: list[str] = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return "no message"
    first = lines[0].removeprefix("AssertionError: ")
    # a breach of the contract stands in the second line, behind the seed
    return f"{first}: {lines[1]}" if "the contract was broken" in first and lines[1:] else first
