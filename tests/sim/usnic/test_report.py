"""usnic's reports of its statistics."""

from __future__ import annotations

import re

import pytest
from ompy.conformance.btl.driver import Driver
from ompy_components.btl.usnic.report import imbalance, report_lines
from ompy_components.btl.usnic.statistics import Statistics

from tests.sim.usnic.test_module import SECOND, lossy, usnic, world

SENT = re.compile(r"sent (\d+) .* (\d+) chunks, (\d+) resends")


def program(driver: Driver) -> None:
    """Twenty large fragments in the first second, none later."""
    if driver.rank == 0:
        for _ in range(20):
            driver.send(1, driver.data(15_000))
    driver.idle(5 * SECOND // 2)
    driver.quiesce()
    driver.check_inbox(ordered=False)


@pytest.mark.parametrize("relative", [0, 1])
def test_reports_come_in_time_and_at_the_end(
    capsys: pytest.CaptureFixture[str], relative: int
) -> None:
    world(stats=1, stats_relative=relative).run(program)
    text = capsys.readouterr().err
    heads = re.findall(r"rank (\d), usnic over rail0 \(vic_0\), ([\d.]+) s:", text)
    assert [rank for rank, _ in heads].count("0") == 3
    times = [float(time) for rank, time in heads if rank == "0"]
    assert times[:2] == ([1.0, 1.0] if relative else [1.0, 2.0])
    chunks = [int(chunks) for _, chunks, _ in SENT.findall(text) if int(chunks)]
    assert chunks == ([220] if relative else [220] * 3), "of rank 0, with all of them early"
    assert text.count("in balance") == 6
    assert "OUT OF" not in text


def test_none_without_the_parameter(capsys: pytest.CaptureFixture[str]) -> None:
    world().run(program)
    assert capsys.readouterr().err == ""


def test_a_bad_wire_leaves_it_in_balance(capsys: pytest.CaptureFixture[str]) -> None:
    def busy(driver: Driver) -> None:
        program(driver)
        assert imbalance(usnic(driver).statistics, usnic(driver).buffers_held) == 0

    world(plan=lossy(0.1), stats=1).run(busy)
    text = capsys.readouterr().err
    assert "in balance" in text
    assert "OUT OF" not in text
    assert any(int(resends) for *_, resends in SENT.findall(text))


def test_what_does_not_add_up_is_said() -> None:
    lost = Statistics(num_total_recvs=6)
    assert imbalance(lost, held=0) == 12, "in no class, and the buffers are gone"
    assert imbalance(lost, held=6) == 6, "the buffers are there"
    assert "OUT OF BALANCE by 6" in report_lines(lost, 0, 6)[1]
    assert imbalance(Statistics(num_total_recvs=1), held=0) == 0, "it waits for its bookkeeping"
