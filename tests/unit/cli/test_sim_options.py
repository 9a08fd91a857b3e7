"""What `ompy sim` makes of its options."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.cli.simulating.sim import check_one_world, make_scenario, sim
from ompy.mca.errors import UsageError


def options(**given: Any) -> dict[str, Any]:
    context = sim.make_context("sim", [__file__])
    return {**context.params, **given}


def test_the_default() -> None:
    scenario = make_scenario(options(ranks=3, rails=2, latency="20us", bandwidth="1Gbit/s"))
    assert scenario.job.hosts == ("host0", "host1", "host2")
    assert scenario.job.apps[0].argv == (__file__,)
    assert [(rail.name, rail.latency, rail.bandwidth) for rail in scenario.rails] == [
        ("rail0", 20_000, 1000),
        ("rail1", 20_000, 1000),
    ]
    assert ["btl", "self,usnic"] in [list(setting[:2]) for setting in scenario.job.mca["settings"]]
    assert make_scenario(options(seed=1)).job.job_id == make_scenario(options(seed=1)).job.job_id


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"mca": [("btl", "sm")]}, "--mca btl sm: btl = sm: ranks of a simulated world share no"),
        ({"mca": [("btl", "^tcp")]}, "share no memory"),
        ({"mca": [("blt", "sm")]}, "did you mean btl?"),
        ({"faults": ["drop:nth=1,rail=rail1"]}, "there is no rail rail1; did you mean rail0?"),
        ({"faults": ["drop:nth=1,rank=2"]}, "rank 2 in a job of 2"),
        ({"latency": "10"}, "--latency 10: a number with a unit is needed"),
        ({"limit": "1h"}, "--limit 1h: a number with a unit"),
    ],
)
def test_mistakes(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_scenario(options(**given))
    assert said in "\n".join(caught.value.problems)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"check": True}, "--check is of a search: --explore, or --schedule of one"),
        ({"check": True, "seeds": 3}, "--check is of a search"),
        ({"worlds": 3}, "--worlds is of a search: --explore"),
        ({"time": "3s"}, "--time is of a search: --explore"),
        ({"depth": 3, "seeds": 3}, "--depth is of a search: --explore"),
        ({"pct": 2, "schedule": "file"}, "--pct is of a search: --explore"),
        ({"resume": "file"}, "--resume is of a search: --explore"),
    ],
)
def test_what_would_do_nothing_is_refused(given: dict[str, Any], said: str) -> None:
    defaults = {parameter.name: parameter.default for parameter in sim.params}
    with pytest.raises(UsageError, match=said):
        check_one_world(options(**given, defaults=defaults))
    check_one_world(options(**{"seeds": None, **given}, explore=True, defaults=defaults))


def test_a_schedule_of_a_search_with_the_checker_is_run_with_it() -> None:
    defaults = {parameter.name: parameter.default for parameter in sim.params}
    check_one_world(options(check=True, schedule="file", defaults=defaults))
