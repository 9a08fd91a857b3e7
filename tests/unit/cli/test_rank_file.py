"""Rank files: which host and which processors each rank has, and what is said of wrong lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from ompy.cli.launch.binding import PlaceWishes, check_places, place_wishes
from ompy.cli.launch.command_line import CommandError, parameters_set, parse_command_line
from ompy.cli.launch.foreign_options import translate_line
from ompy.cli.launch.launching import make_job
from ompy.cli.launch.mapping import Layout
from ompy.frameworks.catalog import CATALOG
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry
from ompy.runtime.place.mapper import Rule

DUAL = "pack:2 numa:1 core:4 pu:2"
LINES = """# of Open MPI's manual
rank 0=aa slot=1:0-2
rank 1 = bb slot=0:0,1   # blanks are allowed
rank 2=cc slots=1-2
Rank 3=aa slot=0:*
"""


@pytest.fixture(autouse=True)
def no_allocation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def wishes(line: list[str]) -> PlaceWishes:
    groups = parse_command_line([*line, "true"])
    settings = gather_settings(parameters_set(groups), {"OMPY_MCA_hwloc_base_topology": DUAL})
    return place_wishes(groups[0], Registry(CATALOG, settings))


def laid_out(line: list[str], here: str = "here") -> Layout:
    return make_job(parse_command_line([*line, "true"]), here, wishes=wishes(line)).layout


def hosts_of(line: list[str], here: str = "here") -> str:
    layout = laid_out(line, here)
    return " ".join(layout.hosts[placed.node].name for placed in layout.placements)


@pytest.fixture
def ranks(tmp_path: Path) -> str:
    (tmp_path / "ranks").write_text(LINES)
    return str(tmp_path / "ranks")


def test_hosts_of_ranks(ranks: str) -> None:
    assert hosts_of(["--rankfile", ranks]) == "aa bb cc aa"
    assert hosts_of(["-rf", ranks, "-n", "2"]) == "aa bb"
    assert hosts_of(["--map-by", f"rankfile:FILE={ranks}"]) == "aa bb cc aa"
    assert hosts_of(["--rankfile", ranks, "--host", "cc,bb,aa:2"]) == "aa bb cc aa"
    assert hosts_of(["-n", "1", "--rankfile", ranks, "true", ":", "-n", "3"]) == "aa bb cc aa"


def test_processors_of_ranks(ranks: str) -> None:
    made = wishes(["--rankfile", ranks, "--report-bindings"])
    assert made.rule == Rule(
        "core", topology=DUAL, report=True, listed="0=1:0-2 1=0:0,1 2=1-2 3=0:*"
    )
    lines = check_places(made.rule, laid_out(["--rankfile", ranks]), "here", launching=False)
    assert [line.partition(": ")[2] for line in lines] == [
        "[../../../..][BB/BB/BB/..]",
        "[BB/BB/../..][../../../..]",
        "[../BB/BB/..][../../../..]",
        "[BB/BB/BB/BB][../../../..]",
    ]
    assert lines[2].startswith("rank 2 on cc is bound to package 0, numa 0, cores 1-2, cpus 2-5")
    hardware = wishes(["--rankfile", ranks, "--use-hwthread-cpus"]).rule
    assert hardware is not None
    assert hardware.unit == "hwthread"
    assert wishes(["--rankfile", ranks, "--bind-to", "none"]).rule is None


def test_a_line_without_processors_binds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ranks"
    path.write_text("rank 1=+n1\nrank 0=+n0\n")
    assert wishes(["--rankfile", str(path)]).rule is None
    assert hosts_of(["--rankfile", str(path), "--host", "a,b"]) == "a b"
    with pytest.raises(CommandError, match=r":1: \+n1: the last host of the job is \+n0"):
        hosts_of(["--rankfile", str(path)])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0=a slot=1", "expected rank N=HOST slot=LIST, found '0=a slot=1'"),
        ("rank", "expected rank N=HOST slot=LIST, found 'rank'"),
        ("rank x=a slot=1", "expected a rank from 0 to 999999 behind the word rank, found 'x'"),
        ("rank -1=a slot=1", "expected a rank from 0 to"),
        ("rank 1 slot=0", "expected =HOST behind rank 1"),
        ("rank 1= slot=0", "'slot=0' is no name of a host"),
        ("rank 1=-oProxy slot=0", "'-oProxy' is no name of a host"),
        ("rank 1=+nx slot=0", r"expected \+n and a number, found '\+nx'"),
        ("rank 1=a slto=0", r"expected slot=LIST, found 'slto=0'.*slot"),
        ("rank 1=a slot", "expected slot=LIST, found 'slot'"),
        ("rank 1=a slot=", r"slot=: expected 0:1 \(package 0, core 1\), 0:\*, 1,3 or 0-2"),
        ("rank 1=a slot=0:x", "slot=0:x: expected 0:1"),
        ("rank 1=a slot=3-1", "slot=3-1: expected 0:1"),
        ("rank 0=b slot=1", "rank 0 has a line already: .*:2"),
    ],
)
def test_wrong_lines(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "ranks"
    path.write_text(f"# first\nrank 0=a slot=0\n{line}\n")
    with pytest.raises(CommandError, match=f"^{path}:3: {said}") as caught:
        wishes(["--rankfile", str(path)])
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("-n 5", "rank 4 has no line"),
        ("--host aa:2,bb", ":4: host cc is not among those of the job"),
        ("--host aa,bb,cc", "2 ranks are listed on aa, which has room for 1; say how many"),
        ("--rank-by node", "--rankfile and --rank-by exclude each other"),
        ("--bind-to numa", "write core, hwthread or none"),
        ("--cpus-per-rank 2", "the rank file says which each has, as slot=0-1"),
        ("--npernode 2", "--npernode and --rankfile exclude each other"),
    ],
)
def test_what_does_not_go_with_the_file(ranks: str, options: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        hosts_of(["--rankfile", ranks, *options.split()])


def test_files_that_are_none(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("# nothing\n")
    with pytest.raises(CommandError, match="it has no line; expected rank N=HOST slot=LIST"):
        wishes(["--rankfile", str(empty)])
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(CommandError, match="it cannot be read"):
        wishes(["--rankfile", str(tmp_path / "binary")])


def test_cores_that_the_host_does_not_have(tmp_path: Path) -> None:
    path = tmp_path / "ranks"
    path.write_text("rank 0=here slot=0:9\n")
    line = ["--rankfile", str(path)]
    rule = wishes(line).rule
    assert rule is not None
    with pytest.raises(CommandError, match="host here: the rank file, rank 0: slot=0:9: package 0"):
        check_places(rule, laid_out(line), "here", launching=False)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--map-by ppr:2:socket --host a:4,b:4", "a a a a b b b b"),
        ("--map-by ppr:1:package --host a:4,b:4", "a a b b"),
        ("--map-by ppr:1:core --host a:8 -n 3", "a a a"),
        ("--map-by ppr:1:hwthread --host a:16,b:16 -n 17", "a " * 16 + "b"),
        ("--map-by ppr:1:numa", "here here"),
    ],
)
def test_ranks_for_each_object(options: str, expected: str) -> None:
    assert hosts_of(options.split()) == expected


def test_what_objects_do_not_hold() -> None:
    with pytest.raises(CommandError, match="ppr:2:package: a has 3 slot.s. for 4; say how many"):
        hosts_of(["--map-by", "ppr:2:socket", "--host", "a:3"])
    with pytest.raises(CommandError, match="9 processes were asked for, 4 on each of 2 host"):
        hosts_of(["--map-by", "ppr:2:socket", "--host", "a:4,b:4", "-n", "9"])
    with pytest.raises(CommandError, match="ppr:2:l3cache: this host's topology has no l3cache"):
        hosts_of(["--map-by", "ppr:2:l3cache", "--host", "a:4"])
    line = ["--map-by", "ppr:2:socket", "--bind-to", "core", "--host", "a:4,b:4"]
    rule = wishes(line).rule
    assert rule is not None
    lines = check_places(rule, laid_out(line), "here", launching=False)
    assert [each.rpartition(" ")[2] for each in lines[:4]] == [
        "[BB/../../..][../../../..]",
        "[../BB/../..][../../../..]",
        "[../../../..][BB/../../..]",
        "[../../../..][../BB/../..]",
    ]


def test_mpirun_lines_that_name_rank_files_and_packages() -> None:
    assert translate_line(["--npersocket", "2", "x"]).words == ["--map-by", "ppr:2:socket", "x"]
    kept = ["--map-by", "rankfile:FILE=/a/B", "x"]
    assert translate_line(kept).words == kept
