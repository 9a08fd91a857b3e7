"""How the kit treats what it is given: fixtures, capabilities, expected failures, seeds."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from ompy.conformance import BtlConformance
from ompy.conformance.btl.suite import Suite
from ompy.conformance.plugin import EXPECTED, FAILED, PASSED, SKIPPED, examine
from ompy.frameworks.capabilities import Capabilities
from ompy_components.btl.self.component import SelfComponent
from ompy_components.btl.sm.component import SmComponent

from tests.conformance.mutants import LosesOne, Mutant, Silent

ROOT = Path(__file__).resolve().parents[2]
SUITES = [base for base in BtlConformance.__mro__ if Suite in base.__bases__]


def names_of(suite: type) -> list[str]:
    return [name for name in vars(suite) if name.startswith("test_")]


def test_every_test_is_of_one_suite() -> None:
    """A name in two suites would hide one of the tests."""
    count = Counter(name for suite in SUITES for name in names_of(suite))
    assert len(count) > 60
    assert set(count.values()) == {1}


def test_every_test_says_what_it_checks() -> None:
    for suite in SUITES:
        assert suite.title
        for name in names_of(suite):
            assert inspect.getdoc(getattr(suite, name)), name


def test_the_readme_lists_the_suites() -> None:
    text = (ROOT / "core/ompy/conformance/README.md").read_text()
    listed = dict(re.findall(r"^\| ([\w ]+) \| `btl/(\w+\.py)` \|", text, re.MULTILINE))
    written = {suite.title: suite.__module__.rpartition(".")[2] + ".py" for suite in SUITES}
    assert listed == written


AUTHOR = """
import pytest
from ompy.conformance import BtlConformance
from ompy_components.btl.sm.component import COMPONENT

class TestMine(BtlConformance):
    seeds = (3, 5)

    @pytest.fixture
    def component(self):
        return COMPONENT

    @pytest.fixture
    def settings(self):
        return {"btl_sm_ring_slots": 4}

    def test_own(self, worlds):
        def program(driver):
            return driver.context.btls[0].name
        assert worlds.make(3).run(program) == ["sm"] * 3
        assert worlds.settings == {"btl_sm_ring_slots": 4}
"""


def author_runs(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-v", "--strict-markers", "-W", "error", *arguments]
    inherited = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    inherited["COLUMNS"] = "120"  # pytest shortens the reason of a skip
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)],
        capture_output=True,
        text=True,
        env=inherited,
        cwd=folder,
    )


def test_an_authors_file(tmp_path: Path) -> None:
    (tmp_path / "test_conformance.py").write_text(AUTHOR)
    chosen = "test_own or test_order or test_put or test_reset or test_names"
    done = author_runs(tmp_path, "-k", chosen)
    assert done.returncode == 0, done.stdout
    for expected in (
        r"TestMine::test_own PASSED",
        r"TestMine::test_order\[seed3\] PASSED",
        r"TestMine::test_order\[seed5\] PASSED",
        r"TestMine::test_put\[plain\] PASSED",
        r"TestMine::test_reset\[[^]]*\] SKIPPED \(capability off: stream\)",
        r"TestMine::test_names PASSED",
    ):
        assert re.search(expected, done.stdout), done.stdout


def test_a_class_without_component(tmp_path: Path) -> None:
    source = "from ompy.conformance import BtlConformance\nclass TestMine(BtlConformance): pass\n"
    (tmp_path / "test_conformance.py").write_text(source)
    done = author_runs(tmp_path, "-k", "test_names")
    assert done.returncode == 1
    assert "give the test class a fixture `component`" in done.stdout


def by_name(component, *tests: str, **options) -> dict[str, tuple[str, str]]:
    outcomes = examine(component, {}, tests=tests, **options)
    return {outcome.test: (outcome.result, outcome.reason) for outcome in outcomes}


def test_expected_failures() -> None:
    class Known(Mutant):
        expected_failures = {  # noqa: RUF012
            "test_everybody_to_everybody": "it loses the tenth fragment",
            "test_order[seed0]": "the same",
        }

    found = by_name(Known(LosesOne), "test_everybody_to_everybody", "test_order", "test_names")
    assert found == {
        "test_everybody_to_everybody[seed0]": (EXPECTED, "it loses the tenth fragment"),
        "test_everybody_to_everybody[seed1]": (EXPECTED, "it loses the tenth fragment"),
        "test_order[seed0]": (EXPECTED, "the same"),
        "test_order[seed1]": (FAILED, found["test_order[seed1]"][1]),
        "test_names": (PASSED, ""),
    }


def test_an_expected_failure_that_passes() -> None:
    class Wrong(SelfComponent):
        expected_failures = {"test_pollers": "why not"}  # noqa: RUF012

    assert by_name(Wrong(), "test_pollers") == {"test_pollers": (FAILED, "[XPASS(strict)] why not")}


def test_an_expected_failure_that_is_no_test() -> None:
    class Wrong(SelfComponent):
        expected_failures = {"test_polers": "a slip"}  # noqa: RUF012

    found = by_name(Wrong(), "test_expected_failures_are_tests")
    assert found["test_expected_failures_are_tests"][1].startswith("there is no test test_polers")


def test_not_in_the_virtual_world() -> None:
    class Real(SelfComponent):
        capabilities = Capabilities(reach="self", wire="memory", virtual=False)

    found = by_name(Real(), "test_pollers", "test_names", "test_order")
    assert found["test_pollers"] == (SKIPPED, "capability off: virtual")
    assert found["test_order[seed0]"] == (SKIPPED, "capability off: virtual")
    assert found["test_names"] == (PASSED, "")


@pytest.mark.parametrize(
    ("component", "said"),
    [
        (Silent(), "Silent does not say what it promises: give it capabilities: ClassVar"),
        ("COMPONENT", "returns 'COMPONENT', which is no BtlComponent"),
    ],
)
def test_refused(component: object, said: str) -> None:
    result, reason = by_name(component, "test_names")["test_names"]
    assert result == FAILED
    assert said in reason


def test_capabilities_nobody_knows() -> None:
    class Lost(SelfComponent):
        capabilities = Capabilities(reach="moon", wire="memory")

    result, reason = by_name(Lost(), "test_names")["test_names"]
    assert result == FAILED
    assert "reach is one of self, host, network" in reason


def test_a_wire_that_is_none() -> None:
    """Who claims datagrams and sends none passes no test of their faults."""

    class Pretender(SmComponent):
        capabilities = Capabilities(reach="host", wire="datagram")

    found = by_name(Pretender(), "test_bad_wire_is_hidden[seed0-drop]")
    result, reason = found["test_bad_wire_is_hidden[seed0-drop]"]
    assert result == FAILED
    assert "no fault of kind drop was delivered" in reason


def test_seeds() -> None:
    found = by_name(SelfComponent(), "test_order", seeds=[7, 11])
    assert set(found) == {"test_order[seed7]", "test_order[seed11]"}


def test_unknown_tests() -> None:
    with pytest.raises(LookupError, match="no test test_ordre"):
        by_name(SelfComponent(), "test_ordre", "test_order")


def test_the_callers_pytest_has_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing --nonsense")
    assert by_name(SelfComponent(), "test_names") == {"test_names": (PASSED, "")}
    assert os.environ["PYTEST_ADDOPTS"] == "-k nothing --nonsense"
