"""How the counts come together, and that nobody hangs on somebody who does not report."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from ompy.data.convertor import ContiguousConvertor
from ompy.engine.virtual_engine import RankFailed
from ompy.frameworks.pml import STANDARD, PmlWrapper
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob
from worlds import monitored, registry, run

from ompy_pml_monitoring import output
from ompy_pml_monitoring.collection import TAG
from ompy_pml_monitoring.component import MonitoringComponent
from ompy_pml_monitoring.module import Monitoring

SECOND = 1_000_000_000  # ns


def ring(process: RankProcess) -> None:
    """One message of 40 bytes to the next rank."""
    comm = world_of(process)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.Sendrecv(bytes(40), right, 0, bytearray(40), left, 0)


def everybody(process: RankProcess) -> None:
    """One message of 3 bytes from each rank to each."""
    comm = world_of(process)
    for target in range(comm.size):
        comm.Isend(bytes(3), target)
    for source in range(comm.size):
        comm.Recv(bytearray(3), source)


def forgo(process: RankProcess) -> None:
    """Make this rank one that has no monitoring."""
    assert isinstance(process.pml, Monitoring)
    process.pml = process.pml.inner


def without(process: RankProcess) -> None:
    """As `ring`, of a rank that has no monitoring."""
    forgo(process)
    ring(process)


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_a_report_longer_than_an_eager_message(tmp_path: Path, btl: str) -> None:
    """It needs a rendezvous with rank 0, which comes last here."""

    def program(process: RankProcess) -> None:
        everybody(process)
        if process.context.rank == 0:
            process.context.engine.spend(SECOND)

    limits = {"btl_sm_eager_limit": 128, "btl_tcp_eager_limit": 128}
    told = monitored(tmp_path, 16, program, btl=btl, **limits)
    assert told["missing"] == {}
    assert told["user"]["sent"]["bytes"] == [[3] * 16] * 16


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_ranks_end_at_different_times(tmp_path: Path, slow: int) -> None:
    def program(process: RankProcess) -> int:
        ring(process)
        if process.context.rank == slow:
            process.context.engine.spend(5 * SECOND)
        return 0

    told = monitored(tmp_path, 3, program, btl="self,tcp")
    assert told["missing"] == {}
    assert told["user"]["sent"]["bytes"] == [[0, 40, 0], [0, 0, 40], [40, 0, 0]]


def ends(process: RankProcess) -> int:
    """When a rank was through, in seconds."""
    process.finalize()
    return process.context.engine.now() // SECOND


def test_rank_0_waits_no_longer_than_its_patience(tmp_path: Path) -> None:
    def program(process: RankProcess) -> int:
        ring(process)
        if process.context.rank == 1:
            process.context.engine.spend(60 * SECOND)
        return ends(process)

    file = tmp_path / "traffic.txt"
    assert run(3, program, pml_monitoring_output=file, pml_monitoring_patience=7) == [7, 60, 0]
    assert file.read_text().splitlines()[-2].startswith("no counts of rank 1: it still ran 7 s")


@pytest.mark.parametrize(("eager_limit", "given_up_after"), [(4096, 0), (128, 4)])
def test_nobody_waits_for_a_rank_0_that_has_no_monitoring(
    eager_limit: int, given_up_after: int
) -> None:
    """A report that is eager is gone at once; another one is given up after the patience."""

    def body(process: RankProcess) -> int:
        if process.context.rank == 0:
            forgo(process)
        everybody(process)
        if process.context.rank == 0:
            process.context.engine.spend(60 * SECOND)
        return ends(process)

    limits = {"btl_sm_eager_limit": eager_limit, "pml_monitoring_patience": 4}
    # 16 ranks: the report is longer than what ob1 sends at once whatever the eager limit
    assert run(16, body, **limits) == [60] + [given_up_after] * 15


def test_a_rank_without_monitoring_is_missing(tmp_path: Path) -> None:
    """Its row is what the others received from it."""
    programs = [ring, without, ring]
    told = monitored(tmp_path, 3, programs)
    assert list(told["missing"]) == ["1"]
    assert told["user"]["sent"]["bytes"] == [[0, 40, 0], [0, 0, 0], [40, 0, 0]]
    assert told["user"]["received"]["bytes"] == [[0, 0, 0], [0, 0, 40], [40, 0, 0]]


def test_a_rank_that_has_left_is_not_waited_for(tmp_path: Path) -> None:
    """Its LEAVE says that nothing is under way, or it has a moment after the runtime's news."""

    def stays(process: RankProcess) -> int:
        ring(process)
        process.context.procs[1].departed = "it ended"
        process.finalize()
        return process.context.engine.now() // (SECOND // 10)

    file = tmp_path / "traffic.txt"
    assert run(3, [stays, without, ring], pml_monitoring_output=file)[0] <= 2
    assert "no counts of rank 1: it ended without handing in its counts\n" in file.read_text()


def test_nothing_is_handed_to_a_rank_0_that_has_left() -> None:
    def program(process: RankProcess) -> int:
        process.context.procs[0].departed = "it ended"
        return int(ring(process) or 0)

    assert traced(registry(), [without, program, program]) == traced(registry(), without)


class Ending(PmlWrapper):
    """Notes that it was finalized."""

    ended: ClassVar[list[int]] = []

    def __init__(self, process: RankProcess) -> None:
        super().__init__(process.pml.inner)
        self.rank = process.context.rank

    def finalize(self) -> None:
        self.ended.append(self.rank)
        super().finalize()


@pytest.mark.parametrize("broken", [False, True])
def test_the_pml_inside_is_finalized(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the reports, and also when telling fails."""

    def fail(*_: object) -> None:
        raise RuntimeError("no more ink")

    def program(process: RankProcess) -> None:
        ring(process)
        process.pml.inner = Ending(process)

    Ending.ended.clear()
    if broken:
        monkeypatch.setattr(output, "show", fail)
        with pytest.raises(RankFailed, match="rank 0: RuntimeError: no more ink"):
            run(3, program)
    else:
        run(3, program, pml_monitoring_output="stdout")
    assert sorted(Ending.ended) == [0, 1, 2]
    assert Ending.ended[-1] == 0


def test_a_report_that_makes_no_sense_is_missing(tmp_path: Path) -> None:
    def liar(process: RankProcess) -> None:
        without(process)
        comm = process.communicators[0]
        said = ContiguousConvertor(memoryview(b'{"format": 77}'))
        process.pml.send(comm, said, 0, TAG, STANDARD)

    told = monitored(tmp_path, 2, [ring, liar])
    assert "format 77 is not 1" in told["missing"]["1"]


def test_without_comm_world_nobody_waits(tmp_path: Path) -> None:
    told = monitored(tmp_path, 2, lambda process: ends(process) and 1 / 0)
    assert told["missing"] == {"1": "there is no COMM_WORLD (any more)"}

    def released(process: RankProcess) -> None:
        ring(process)
        process.release(process.communicators[0])

    told = monitored(tmp_path, 2, released)
    assert told["missing"] == {"1": "there is no COMM_WORLD (any more)"}


def test_the_reports_are_not_counted(tmp_path: Path) -> None:
    told = monitored(tmp_path, 4, ring)
    assert told["internal"]["sent"]["messages"] == [[0] * 4] * 4


def traced(made: Any, programs: Any = ring) -> list[str]:
    """The trace of a job of three ranks."""
    job = VirtualJob(3, made, seed=9)
    job.run(programs, trace=True)
    return [event.line() for event in job.events()]


def test_off_it_changes_nothing() -> None:
    """The same seed gives the same trace whether it is installed or excluded."""
    off = {"pml_monitoring_enable": "false"}
    installed = registry(**off)
    plain = traced(installed)
    assert plain == traced(registry(pml="^monitoring", **off))
    (record,) = [r for r in installed.records_of("pml") if r.name == "monitoring"]
    assert (record.state.value, record.reason) == (
        "not-selected",
        "pml_monitoring_enable is false: set it to true to count messages",
    )
    assert traced(registry()) != plain, "it does something when it is on"


def test_output_none_sends_no_reports() -> None:
    quiet = traced(registry(pml_monitoring_output="none"))
    assert quiet == traced(registry(pml_monitoring_enable="false"))


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("nowhere/traffic.json", "[Errno 2] No such file or directory: 'nowhere/traffic.json'"),
        ("stdrr", "it is not stderr, stdout or none, and no file that ends in .json, .csv, .txt"),
        ("", "it is not stderr, stdout or none, and no file that ends in .json, .csv, .txt"),
    ],
)
def test_what_cannot_be_written_costs_nobody_the_counts(
    where: str,
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    run(2, ring, pml_monitoring_output=where)
    first, second, *rest = capsys.readouterr().err.splitlines()
    assert first == f"monitoring: pml_monitoring_output={where} cannot be written: {why}"
    assert second == "monitoring: what 2 rank(s) sent each other; rows send, columns receive"
    assert "     sum    1    1    2" in rest
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("where", ["stderr", "stdout"])
def test_streams(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(2, ring, pml_monitoring_output=where)
    said = capsys.readouterr()._asdict()
    assert [name for name, text in said.items() if text] == [where.removeprefix("std")]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"pml": "monitoring"},
            "pml:monitoring .asked for by .* it wraps a PML .* as in ob1,monitoring",
        ),
        (
            {"pml": "ob1,monitoring", "pml_monitoring_enable": "false"},
            "pml:monitoring .asked for by .*ob1,monitoring. .* pml_monitoring_enable is false: set",
        ),
    ],
)
def test_to_ask_for_it_by_name_and_not_mean_it(settings: dict[str, str], said: str) -> None:
    with pytest.raises(RankFailed, match=said):
        run(2, ring, **settings)


def test_to_ask_for_it_by_name(tmp_path: Path) -> None:
    told = monitored(tmp_path, 2, ring, pml="ob1,monitoring")
    assert told["user"]["sent"]["bytes"] == [[0, 40], [40, 0]]


def test_every_parameter_tells_what_it_is_for() -> None:
    for parameter in MonitoringComponent.parameters:
        assert len(parameter.help) > 20
        assert parameter.help.endswith(".")
        assert parameter.unit or parameter.type != "int" or parameter.name == "priority"
