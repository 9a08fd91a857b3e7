"""The exit code of a job from what happened to its ranks (reference openmpi.md 2.6)."""

import signal

import pytest
from ompy.frameworks.job import App, Job, Placement
from ompy.runtime.diagnosis.verdict import Verdict
from ompy.runtime.launching.report import WIDTH, failure_block, job_map
from ompy.runtime.machines.stages import Stage


def make_job(size=3):
    app = App(("python", "a b.py"), size)
    placements = tuple(Placement(rank, 0, 0, rank) for rank in range(size))
    return Job("0" * 16, (app,), ("here",), placements)


@pytest.fixture
def verdict():
    made = Verdict(make_job())
    for rank in range(3):
        made.started(rank, 1000 + rank)
    return made


def full_life(verdict, rank, status=0):
    for stage in (Stage.ATTACHED, Stage.INITIALIZED, Stage.FINALIZED):
        verdict.advanced(rank, stage)
    verdict.exited(rank, status)


def test_all_well(verdict):
    for rank in range(3):
        full_life(verdict, rank)
    assert verdict.exit_code == 0


def test_programs_without_mpi_are_all_well(verdict):
    for rank in range(3):
        verdict.exited(rank, 0)
    assert verdict.exit_code == 0


def test_exit_code_of_the_first_to_fail(verdict):
    verdict.exited(1, 3)
    verdict.exited(0, 4)
    verdict.exited(2, -15)
    assert verdict.exit_code == 3
    assert "Rank 1 " in verdict.failure.headline
    assert verdict.failure.facts == (
        ("rank", "1"),
        ("host", "here"),
        ("process", "1001"),
        ("program", "python 'a b.py'"),
    )


def test_ranks_that_could_not_be_started_for_one_reason_are_told_of_together(verdict):
    verdict.unstarted(1, 1, "the agent is busy")
    assert verdict.failure.headline == "Rank 1 could not be started: the agent is busy."
    assert ("rank", "1") in verdict.failure.facts
    verdict.unstarted(2, 1, "the agent is busy")
    verdict.exited(2, 1)
    verdict.unstarted(0, 127, "another reason")
    assert verdict.failure.headline == "Ranks 1, 2 could not be started: the agent is busy."
    assert (verdict.exit_code, verdict.failure.facts) == (1, ())


def test_a_rank_that_could_not_be_started_hides_no_earlier_failure(verdict):
    verdict.exited(0, 3)
    verdict.unstarted(1, 1, "the agent is busy")
    verdict.unstarted(2, 1, "the agent is busy")
    assert verdict.exit_code == 3


def test_exit_code_after_finalizing_counts(verdict):
    full_life(verdict, 0, 5)
    assert verdict.exit_code == 5


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1, 40])
def test_signal(verdict, number):
    verdict.exited(2, -number)
    assert verdict.exit_code == 128 + number
    assert f"signal {int(number)} " in verdict.failure.headline
    assert verdict.failure.advice


@pytest.mark.parametrize(("code", "exit_code"), [(0, 0), (7, 7), (256, 0), (300, 44), (-1, 255)])
def test_abort_code_is_taken_modulo_256(verdict, code, exit_code):
    verdict.aborted(1, 77, code, "enough")
    verdict.exited(1, -15)
    assert verdict.exit_code == exit_code
    assert "enough" in verdict.failure.headline
    assert ("process", "77") in verdict.failure.facts


def test_end_without_init_while_others_called_it(verdict):
    verdict.exited(0, 0)
    verdict.advanced(1, Stage.ATTACHED)
    assert verdict.failure is None
    verdict.advanced(1, Stage.INITIALIZED)
    assert verdict.exit_code == 1
    assert "Rank 0 " in verdict.failure.headline


def test_end_without_init_after_others_called_it(verdict):
    full_life(verdict, 1)
    verdict.exited(0, 0)
    assert verdict.exit_code == 1
    assert "Rank 0 " in verdict.failure.headline


def test_end_without_finalize(verdict):
    verdict.advanced(0, Stage.INITIALIZED)
    verdict.exited(0, 0)
    assert verdict.exit_code == 1
    assert "without MPI_Finalize" in verdict.failure.headline


def test_timeout_names_the_ranks_that_run(verdict):
    full_life(verdict, 0)
    verdict.advanced(1, Stage.INITIALIZED)
    verdict.timed_out(2.5, "--timeout 2.5")
    assert verdict.exit_code == 110
    assert verdict.failure.facts == (("initialized", "rank 1"), ("started", "rank 2"))


def test_others(verdict):
    for exit_code, tell in (
        (130, lambda v: v.signalled(signal.SIGINT)),
        (143, lambda v: v.signalled(signal.SIGTERM)),
        (1, lambda v: v.agent_lost("here", 5, "")),
        (1, lambda v: v.output_broken("No space left on device")),
        (141, lambda v: v.output_broken("")),
        (127, lambda v: v.unstarted(0, 127, "No such file")),
        (1, lambda v: v.lost(0, 55)),
    ):
        fresh = Verdict(make_job())
        tell(fresh)
        fresh.exited(0, 9)
        assert fresh.exit_code == exit_code


def test_block_is_between_rules_and_fits_a_terminal(verdict):
    verdict.exited(1, -9)
    lines = failure_block(verdict.failure).splitlines()
    assert lines[0] == lines[-1] == "-" * WIDTH
    assert all(len(line) <= WIDTH for line in lines)
    assert any("dmesg" in line for line in lines)


def test_a_closed_pipe_is_not_worth_a_block(verdict):
    verdict.output_broken("")
    assert failure_block(verdict.failure) == ""


def test_job_map_names_every_rank():
    text = job_map(make_job(), [(4, 0)], 4)
    assert "Data for node: here\tNum slots: 4\tMax slots: 0\tNum procs: 3" in text
    assert text.count("Process rank:") == 3


def test_a_long_program_is_shown_on_one_line():
    app = App(("python", "-c", "first = 1\n" * 50), 1)
    verdict = Verdict(Job("0" * 16, (app,), ("here",), (Placement(0, 0, 0, 0),)))
    verdict.exited(0, 1)
    lines = failure_block(verdict.failure).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert sum("first = 1" in line for line in lines) == 1


@pytest.mark.parametrize("status", [0, 3, -9])
def test_a_rank_that_others_can_do_without(verdict, status):
    for rank in range(3):
        verdict.advanced(rank, Stage.INITIALIZED)
    verdict.exited(1, status, expendable=True)
    assert verdict.exit_code == 0
    assert verdict.in_mpi == {0, 2}
    for rank in (0, 2):
        full_life(verdict, rank)
    assert verdict.exit_code == 0


def test_others_still_fail_when_one_could_be_done_without(verdict):
    for rank in range(3):
        verdict.advanced(rank, Stage.INITIALIZED)
    verdict.exited(1, -9, expendable=True)
    verdict.exited(0, -11)
    assert verdict.exit_code == 139
