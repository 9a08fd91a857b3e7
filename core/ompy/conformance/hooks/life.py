"""Life: hooks are called in many orders, and leave launcher, ranks and job as they are."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import pluggy
import pytest

from ompy.conformance.component_identity import importable_module, loaded_by_import
from ompy.conformance.hooks.hook_suite import (
    Called,
    HookSuite,
    a_job,
    a_life,
    a_rail,
    hooks_of,
    nothing_changes,
    package_of,
    standard_handlers,
    streams,
)
from ompy.conformance.registries import registry_with
from ompy.mca.groups import HOOKS
from ompy.mca.hookspecs import PROJECT, LifeCycle
from ompy.mca.plugins.discovery import scan_entry_points
from ompy.mca.plugins.loading import load_target
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

EXIT_CODES: Final = (0, 1, 2, 130, 137, 255)  # well, failed, usage, Ctrl-C, killed, the most


class HookIdentitySuite(HookSuite):
    """Names and arguments of the hooks, and what importing them loads."""

    title: ClassVar[str] = "identity"

    def test_hooks_are_known(self, component: object) -> None:
        """Each hook has a name and arguments that ompy calls."""
        manager = pluggy.PluginManager(PROJECT)
        manager.add_hookspecs(LifeCycle)
        manager.register(package_of(component).plugin)
        manager.check_pending()

    def test_entry_point(self, component: object) -> None:
        """The entry point, if it is installed, leads to it."""
        package = package_of(component)
        found = scan_entry_points(frozenset({HOOKS.name}))
        module = getattr(package.plugin, "__name__", None)
        records = [one for one in found if one.target.partition(":")[0] == module]
        if not records:
            pytest.skip("it is not installed")
        assert any(load_target(record.target) is package.plugin for record in records)

    def test_import_is_light(self, component: object) -> None:
        """Every rank imports it, too: it loads nothing that is slow to load."""
        module = importable_module(getattr(package_of(component).plugin, "__name__", ""))
        if not module:
            pytest.skip("it cannot be imported by name")
        loaded = set(loaded_by_import(module)) - {"pluggy"}  # which hooks are made with
        assert not loaded, f"these are imported at a rank's start: {', '.join(sorted(loaded))}"


class HookLifeSuite(HookSuite):
    """What happens when they are called."""

    title: ClassVar[str] = "life"

    @pytest.mark.parametrize("code", EXIT_CODES)
    def test_whole_life(self, called: Called, code: int) -> None:
        """A job from its launch to its end, with rails lost and findings: no hook raises."""
        a_life(called.hooks, code)
        called.verify()

    def test_second_job(self, called: Called) -> None:
        """One process may launch several jobs, one after the other."""
        for ranks in (1, 4):
            a_life(called.hooks, 0, ranks)
        called.verify()

    def test_rails_without_end(self, called: Called) -> None:
        """A rail that is lost and healed many times."""
        called.hooks.ompy_job_launching(a_job(2))
        for _ in range(200):
            called.hooks.ompy_rail_lost(a_rail(healed=False))
            called.hooks.ompy_rail_healed(a_rail(healed=True))
        called.hooks.ompy_job_finished(0)
        called.verify()

    def test_job_that_ends_at_once(self, called: Called) -> None:
        """A launch that fails: nothing was told in between, or there was no launch at all."""
        called.hooks.ompy_job_finished(2)
        called.hooks.ompy_job_launching(a_job(1))
        called.hooks.ompy_job_finished(1)
        called.verify()

    def test_components(self, called: Called) -> None:
        """It is told of every component there is, whatever its state."""
        for record in called.registry.records:
            called.hooks.ompy_component_state(record)
        called.registry.load("btl")
        called.verify()

    def test_standard_output(self, called: Called, capfd: pytest.CaptureFixture[str]) -> None:
        """Standard output is the program's: hooks write to standard error, or to files."""
        a_life(called.hooks, 0)
        called.hooks.ompy_rank_started(0, 2)
        called.hooks.ompy_rank_finalizing(0)
        assert capfd.readouterr().out == "", "a hook has written to standard output"

    def test_process_is_as_before(self, called: Called) -> None:
        """Signals, streams, environment, folder and threads of the launcher are left alone."""
        with nothing_changes(_process):
            a_life(called.hooks, 0)
        called.verify()

    def test_unwritable_folder(self, called: Called, monkeypatch: pytest.MonkeyPatch) -> None:
        """Where nothing can be written a job goes on, and the hooks do not raise."""
        with monkeypatch.context() as there:
            there.chdir("/proc/self")  # no file can be made here, by root neither
            for name in called.variables:
                there.setenv(name, "/proc/self/nothing/there")
            a_life(called.hooks, 0)
        called.verify()


class HookRankSuite(HookSuite):
    """What the ranks of a job notice of them: nothing."""

    title: ClassVar[str] = "ranks"

    def test_ranks_do_the_same(self, component: object, called: Called, seed: int) -> None:
        """A job in a virtual world, with the hooks and without: event for event the same."""
        with_it, without = _played(component, seed, used=True), _played(component, seed, used=False)
        assert with_it[0] == without[0] == [6, 6, 6, 6]
        for number, (one, other) in enumerate(zip(with_it[1], without[1], strict=True), 1):
            assert one == other, f"seed {seed}: with the hooks event {number} is another one"


def _process() -> Mapping[str, object]:
    return {
        "what signals do": standard_handlers(),
        "standard streams": streams(),
        "the environment": dict(os.environ),
        "the working folder": os.getcwd(),
        "the number of threads": threading.active_count(),
    }


def _played(component: object, seed: int, *, used: bool) -> tuple[list[Any], list[str]]:
    package = package_of(component)
    about = package.framework, package.name, package.version
    chosen = package.name if used else f"^{package.name}"
    registry = registry_with(*about, package.plugin, {HOOKS.name: chosen})
    job = VirtualJob(4, registry, seed=seed)
    try:
        results = job.run(_program, trace=True)
    finally:
        registry.close()
    if used and {"ompy_rank_started", "ompy_rank_finalizing"} & set(hooks_of(package)):
        records = [one for one in registry.records_of(HOOKS.name) if one.traceback]
        assert not records, f"{records[0].reason}\n{records[0].traceback}"
    return results, [event.line() for event in job.events()]


def _program(process: RankProcess) -> Any:
    return world_of(process).allreduce(process.context.rank)
