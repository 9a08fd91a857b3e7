"""The plug-in: options, marker, fixture and which side of a pool this session is."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ompy
import pytest

from pytest_ompy.plan import MARKER, SIZE, WORLDS, PlanError, check_settings, plan_of
from pytest_ompy.side import SIDE


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and settings."""
    group = parser.getgroup("ompy", "tests on MPI ranks (pytest-ompy)")
    add = group.addoption
    add("--ompy-n", type=int, metavar="N", help="Run every marked test on N ranks.")
    add(
        "--ompy-mca",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="Set an MCA parameter for all marked tests; may be given several times.",
    )
    add("--ompy-world", choices=WORLDS, help="Run all marked tests in this world.")
    add("--ompy-seed", type=int, metavar="SEED", help="The one seed of virtual worlds.")
    add("--ompy-pdb", type=int, metavar="RANK", help="In virtual worlds: trace this rank in pdb.")
    add("--ompy-check", action="store_true", help="Check every marked test, as with check=True.")
    add("--ompy-no-pool", action="store_true", help="Start the ranks afresh for every test.")
    parser.addini("ompy_timeout", "Seconds a marked test may take; 0 for no limit.", default="60")
    parser.addini(
        "ompy_grace", "Seconds the other ranks get when one has failed; 0 for none.", default="3"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Let test modules import `mpi4py` where none is installed; an installed one goes first."""
    dropin = str(Path(str(ompy.__file__)).parent / "dropin")
    if dropin not in sys.path:
        sys.path.append(dropin)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; see that the settings make sense."""
    config.addinivalue_line(
        "markers",
        "ompy(n, timeout, world, seeds, mca, unreceived, check, explore): run the test on n MPI "
        "ranks; with world='virtual' on simulated ones, once for each seed; with explore=True in "
        "every schedule. Arguments go by name, as in n=4",
    )
    check_settings(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Check the marker; run a test with several sizes once for each."""
    try:
        plan = plan_of(metafunc.definition, metafunc.config)
    except PlanError as problem:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {problem}") from None
    if plan is not None and len(plan.sizes) > 1:
        metafunc.fixturenames.append(SIZE)
        ids = [f"n{size}" for size in plan.sizes]
        metafunc.parametrize(SIZE, plan.sizes, ids=ids, indirect=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Be a controller if there is a marked test, unless this is a rank; else do nothing."""
    config = session.config
    marked = [item for item in session.items if item.get_closest_marker(MARKER) is not None]
    if marked and SIDE not in config.stash:  # a rank has put itself there
        from pytest_ompy.controller import Controller

        controller = Controller(config, session.items)
        config.stash[SIDE] = controller
        config.pluginmanager.register(controller, "ompy-controller")


def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport,
) -> tuple[str, str, str] | None:
    """Show that some ranks skipped a test that passed."""
    note = getattr(report, "ompy_note", "")
    if report.when == "call" and report.passed and note:
        return "passed", ".", f"PASSED ({note})"
    return None


@pytest.fixture(name=SIZE)
def _size(request: pytest.FixtureRequest) -> Any:
    """The number of ranks of a test that runs on several."""
    return request.param


@pytest.fixture
def comm(request: pytest.FixtureRequest) -> Any:
    """A communicator of all ranks of this test, made for it alone and freed after it."""
    if request.node.get_closest_marker(MARKER) is None:
        pytest.fail("comm is for tests on ranks: mark this one @pytest.mark.ompy(n=...)", False)
    return request.config.stash[SIDE].communicator()


@pytest.fixture
def gasnet(request: pytest.FixtureRequest) -> Any:
    """GASNet of a rank of the virtual world, before `init`, made for this test alone."""
    if request.node.get_closest_marker(MARKER) is None:
        pytest.fail("gasnet is for tests on ranks: mark this one @pytest.mark.ompy(n=...)", False)
    return request.config.stash[SIDE].gasnet()
