"""Packages of hooks with a defect each, and the test of the kit that has to notice it."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace

from ompy.mca.hookspecs import hookimpl


class Hooks:
    """Keeps what it is told."""

    def __init__(self):
        self.told = []

    @hookimpl
    def ompy_job_launching(self, job):
        self.told.append(job)

    @hookimpl
    def ompy_rail_lost(self, event):
        self.told.append(event)

    @hookimpl
    def ompy_job_finished(self, exit_code):
        self.told.append(exit_code)


class Misspelt(Hooks):
    """A hook that nobody calls."""

    @hookimpl
    def ompy_job_ended(self, exit_code):
        pass


class WrongArgument(Hooks):
    """An argument that nobody gives."""

    @hookimpl
    def ompy_finding(self, message):
        pass


class NeedsSuccess(Hooks):
    """Raises when the job has failed."""

    @hookimpl
    def ompy_job_finished(self, exit_code):
        if exit_code > 128:
            raise ValueError(exit_code)


class NeedsALaunch(Hooks):
    """Relies on a job that was launched."""

    @hookimpl
    def ompy_job_finished(self, exit_code):
        self.told[0].placements  # noqa: B018


class OnceOnly(Hooks):
    """Relies on there being one job."""

    @hookimpl
    def ompy_job_launching(self, job):
        assert not self.told
        self.told.append(job)


class Changes(Hooks):
    """Writes into what it was given."""

    @hookimpl
    def ompy_rail_lost(self, event):
        event["seen"] = True


class Few(Hooks):
    """Has room for so many rails."""

    @hookimpl
    def ompy_rail_lost(self, event):
        self.told.append(event)
        assert len(self.told) < 100


class Prints(Hooks):
    """Writes to standard output."""

    @hookimpl
    def ompy_job_finished(self, exit_code):
        print("the end")


class Catches(Hooks):
    """Takes SIGTERM for itself."""

    @hookimpl
    def ompy_job_launching(self, job):
        signal.signal(signal.SIGTERM, lambda *_: None)


class SetsVariables(Hooks):
    """Changes the environment that ranks get."""

    @hookimpl
    def ompy_job_launching(self, job):
        os.environ["OMPY_SET_BY_A_HOOK"] = "self,tcp"


class StartsThreads(Hooks):
    """Leaves a thread behind."""

    @hookimpl
    def ompy_job_launching(self, job):
        threading.Thread(target=threading.Event().wait, args=(2,), daemon=True).start()


class WritesHere(Hooks):
    """Fails where it cannot write."""

    @hookimpl
    def ompy_job_finished(self, exit_code):
        with open("report.txt", "w") as file:
            file.write(str(exit_code))


class Stumbles(Hooks):
    """Does not know components that have no version."""

    @hookimpl
    def ompy_component_state(self, record):
        assert record.distribution == "ompy"


class FailsInRanks(Hooks):
    """Raises in ranks."""

    @hookimpl
    def ompy_rank_finalizing(self, rank):
        raise RuntimeError("in a rank")


PLANTED: dict[type[Hooks], str] = {
    Misspelt: "test_hooks_are_known",
    WrongArgument: "test_hooks_are_known",
    NeedsSuccess: "test_whole_life",
    NeedsALaunch: "test_job_that_ends_at_once",
    OnceOnly: "test_second_job",
    Changes: "test_whole_life",
    Few: "test_rails_without_end",
    Prints: "test_standard_output",
    Catches: "test_process_is_as_before",
    SetsVariables: "test_process_is_as_before",
    StartsThreads: "test_process_is_as_before",
    WritesHere: "test_unwritable_folder",
    Stumbles: "test_components",
    FailsInRanks: "test_ranks_do_the_same",
}


def component(planted: type[Hooks]) -> SimpleNamespace:
    from ompy.conformance.hooks.hook_suite import HookPackage

    return HookPackage(planted(), "mutant")  # type: ignore[return-value]
