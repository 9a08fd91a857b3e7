"""Options and parameters of binding, what they come to, and what is found before anything runs."""

from __future__ import annotations

import os

import pytest
from ompy.cli.launch.binding import PlaceWishes, check_places, host_slots, place_wishes
from ompy.cli.launch.command_line import CommandError, parameters_set, parse_command_line
from ompy.cli.launch.launching import make_job
from ompy.cli.launch.mapping import MapBy
from ompy.frameworks.catalog import CATALOG
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry
from ompy.runtime.place.mapper import Rule

DUAL = "pack:2 numa:1 core:4 pu:2"


def wishes(line: str, **environment: str) -> PlaceWishes:
    groups = parse_command_line([*line.split(), "true"])
    settings = gather_settings(parameters_set(groups), environment)
    return place_wishes(groups[0], Registry(CATALOG, settings))


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("", None),
        ("--map-by numa --rank-by node", None),
        ("--bind-to none", None),
        ("--report-bindings", Rule(report=True)),
        ("--bind-to core", Rule("core")),
        ("--bind-to SOCKET", Rule("package")),
        ("--bind-to core:overload-allowed", Rule("core", overload=True)),
        ("--bind-to core:if-supported", Rule("core", if_supported=True)),
        ("--bind-to core --oversubscribe", Rule("core", overload=True)),
        ("--bind-to numa --map-by numa:OVERSUBSCRIBE", Rule("numa", "numa", overload=True)),
        ("--map-by socket:PE=2", Rule("core", "package", elements=2)),
        ("--map-by hwthread:PE=2", Rule("hwthread", "hwthread", elements=2)),
        ("--cpus-per-proc 3", Rule("core", elements=3)),
        ("--cpus-per-rank 3 --map-by :PE=2 --bind-to numa", Rule("numa", elements=2)),
        ("--use-hwthread-cpus --map-by slot:PE=2", Rule("hwthread", elements=2, hwthreads=True)),
        ("--bind-to core --rank-by fill", Rule("core", rank="fill")),
        ("--bind-to core --map-by node", Rule("core", "node")),
        ("--bind-to core --map-by ppr:2:node", Rule("core")),
        ("--map-by ppr:2:core", None),
        ("--bind-to core --map-by ppr:1:core", Rule("core", "core", per_object=1)),
        ("--bind-to numa --map-by ppr:2:NUMA", Rule("numa", "numa", per_object=2)),
        ("--map-by ppr:1:socket:PE=2", Rule("core", "package", elements=2, per_object=1)),
        ("--bind-to core --cpu-set 0,2-3", Rule("core", cpus="0,2-3")),
    ],
)
def test_rules(line: str, rule: Rule | None) -> None:
    assert wishes(line).rule == rule


def test_parameters_say_what_options_do_not() -> None:
    given = {
        "OMPY_MCA_hwloc_base_binding_policy": "numa",
        "OMPY_MCA_rmaps_base_mapping_policy": "node:PE=2",
        "OMPY_MCA_hwloc_base_report_bindings": "1",
        "OMPY_MCA_rmaps_base_ranking_policy": "core",
    }
    made = wishes("", **given)
    assert made.map_by == MapBy("node", elements=2)
    assert made.rule == Rule("numa", "node", "core", 2, report=True)
    made = wishes("--bind-to core --map-by slot --rank-by slot", **given)
    assert made.rule == Rule("core", report=True)
    by_prrtes_name = wishes("", OMPY_MCA_hwloc_default_binding_policy="core")
    assert by_prrtes_name.rule == Rule("core")


def test_slots_of_this_host_are_what_ranks_take() -> None:
    assert host_slots(None, 7) == 7
    assert host_slots(Rule(report=True), 7) == 7
    assert host_slots(Rule("core", topology=DUAL), 7) == 8
    assert host_slots(Rule("hwthread", topology=DUAL), 7) == 16
    assert host_slots(Rule("core", elements=3, topology=DUAL), 7) == 2
    assert host_slots(Rule("core", elements=9, topology=DUAL), 7) == 1


def test_a_look_at_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    groups = parse_command_line(["--host", "here:2,there:2", "true"])
    layout = make_job(groups, "here").layout
    rule = Rule("core", topology=DUAL)
    lines = check_places(rule, layout, "here", launching=False)
    assert [line.partition(" is ")[0] for line in lines] == [
        "rank 0 on here", "rank 1 on here", "rank 2 on there", "rank 3 on there",
    ]  # fmt: skip
    with pytest.raises(CommandError, match="is another machine; look at it with --do-not-launch"):
        check_places(rule, layout, "here", launching=True)
    only = {min(os.sched_getaffinity(0))}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: only)
    with pytest.raises(CommandError, match="host here: 2 .* and it has 1 cores: fewer ranks, or"):
        check_places(Rule("core"), layout, "here", launching=True)
    lines = check_places(Rule("core", overload=True), layout, "here", launching=False)
    assert lines[2] == "rank 2 on there: its agent will say"


def test_prefix_is_where_agents_find_their_python() -> None:
    told = dict(parameters_set(parse_command_line(["--prefix", "/opt/env", "true"])))
    assert told["plm_ssh_python"] == told["plm_slurm_python"] == "/opt/env/bin/python"
    with pytest.raises(CommandError, match="--prefix opt: the path of a folder begins with /"):
        parameters_set(parse_command_line(["--prefix", "opt", "true"]))
