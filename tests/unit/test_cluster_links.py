"""`tools/bench cluster_links`: the cluster that is predicted is the one that is measured."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from ompy.runtime.cluster.cluster_file import cluster_of

pytest.importorskip("numpy")

from tools.bench import cluster_limits, cluster_links
from tools.bench.cluster_links import HOSTS, PAYLOAD, Link
from tools.bench.cluster_programs import BODIES, Case


def test_the_file_has_the_links_and_the_costs_of_loopback() -> None:
    cluster = cluster_of(tomllib.loads(cluster_links.cluster_text(Link(5.0, 100))), "made")
    assert cluster.hosts == HOSTS
    assert 2 * cluster.hop_latency == 5_000_000, "ns, through the switch"
    assert cluster.link_bandwidth == pytest.approx(100e6 * PAYLOAD / 8 / 1e9, rel=1e-3)
    loopback = cluster_of(tomllib.loads(cluster_links.FILE.read_text()), "loopback")
    assert cluster.network == loopback.network
    assert cluster.memory.messages == loopback.memory.messages


def test_an_error_is_of_what_was_measured() -> None:
    case = Case("ring", 1000)
    (row,) = cluster_links.rows_of(Link(1.0, 20), {case: 0.004}, {case: 0.003})
    assert (row["measured_ms"], row["predicted_ms"], row["error"]) == (4.0, 3.0, -0.25)


def test_all_programs_are_there(tmp_path: Path) -> None:
    names = {*cluster_links.PROGRAMS, *(n for one in cluster_limits.LIMITS for n in one.programs)}
    assert names <= BODIES.keys()
    cases = [Case(name, 8) for name in sorted(names)]
    program = cluster_links.write_programs(tmp_path, cases, 2, 1)
    compile(program.read_text(), str(program), "exec")
    for name in names:
        compile((tmp_path / f"{name}.py").read_text(), name, "exec")
