"""`ompy sim --cluster`: what a program takes on a cluster that a file describes."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from ompy.cli.launch.command_line import RANKS_MAX
from ompy.cli.simulating.direct_worlds import direct_options
from ompy.cli.simulating.sim import check_one_world, make_scenario, run_scenario, tell_user
from ompy.mca.errors import UsageError
from ompy.runtime.diagnosis.shortage import Short

if TYPE_CHECKING:
    from ompy.runtime.cluster.model import Cluster
    from ompy.runtime.cluster.prediction import Prediction
    from ompy.runtime.simulation.simulated_world import World

NOT_WITH: Final = {  # options that say something of packets, or of many worlds
    "faults": "--fault",
    "kills": "--kill",
    "rails": "--rails",
    "latency": "--latency",
    "bandwidth": "--bandwidth",
    "report_rails": "--report-rails",
    "seeds": "--seeds",
    "explore": "--explore",
    "schedule": "--schedule",
}
COLL: Final = "^sm"  # shared memory has no messages, and takes no time here
OTHERS: Final = 100  # descriptors besides lines to ranks; arbitrary: more than there ever are
BUSIEST: Final = 5  # links that are shown; arbitrary: a terminal has room


def run_cluster(options: dict[str, Any], context: click.Context) -> int:
    """The program on a cluster. Returns the exit code.

    Raises:
        UsageError, ComponentError: what was asked for is wrong.
    """
    from ompy.runtime.cluster.cluster_file import read_cluster
    from ompy.runtime.cluster.model import Described

    if not options["cluster"]:
        raise UsageError("--compute-scale has no meaning without --cluster")
    direct = direct_options(options, "--cluster", NOT_WITH, COLL)
    cluster = read_cluster(options["cluster"])
    given = {
        name: options[name]
        for name in ("ranks", "ranks_per_host")
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }
    ranks, each = place_ranks(cluster, given.get("ranks"), given.get("ranks_per_host"))
    changed = {**direct, "ranks": ranks, "ranks_per_host": each}
    check_one_world(changed)
    make_room_for_lines(ranks)
    described = Described(cluster, options["compute_scale"] or 0.0)
    return run_scenario(make_scenario(changed)._replace(cluster=described), options)


def make_room_for_lines(ranks: int) -> None:
    """Let this process have a line to each rank.

    Raises:
        Short: the system does not allow so many descriptors.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = ranks + OTHERS
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise Short(f"{ranks} ranks need {needed} open files, and ulimit -Hn allows {hard}")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def place_ranks(cluster: Cluster, ranks: int | None, each: int | None) -> tuple[int, int]:
    """How many ranks there are, and how many on each host.

    Args:
        cluster: what there is.
        ranks: -n, if it was given.
        each: --ranks-per-host, if it was given.

    Raises:
        UsageError: so many are not to be had.
    """
    each = each or cluster.ranks_per_host or -(-(ranks or cluster.hosts) // cluster.hosts)
    room = cluster.hosts * each
    ranks = ranks or room
    if ranks > room:
        raise UsageError(
            f"-n {ranks}: {cluster.name} has {cluster.hosts} hosts of {each} ranks: {room} at most"
        )
    if ranks > RANKS_MAX:
        raise UsageError(f"{cluster.name}: {ranks} ranks: a job has {RANKS_MAX} at most; say -n")
    return ranks, each


def tell_prediction(world: World) -> None:
    """Say what the program takes there."""
    from ompy.runtime.cluster.prediction import prediction_of
    from ompy.runtime.cluster.timed_stub import TimedStub

    assert world.timed is not None, "it is a described cluster"
    stubs = [stub for stub in world.stubs if isinstance(stub, TimedStub)]
    found = prediction_of(stubs, world.timed)
    lines = prediction_lines(found, world)
    tell_user(
        "\nompy sim: ".join(lines),
        "prediction",
        predicted_ns=found.time,
        communication=found.communication,
        messages={way: count for way, (count, _) in found.counts.items()},
        bytes={way: size for way, (_, size) in found.counts.items()},
    )


def prediction_lines(found: Prediction, world: World) -> list[str]:
    """The report, for people."""
    from ompy.runtime.cluster.topology import link_text

    described = world.described
    assert described is not None, "it is a described cluster"
    cluster, ranks = described.cluster, len(found.communication)
    hosts = len(world.job.hosts)
    mean = sum(found.communication) / max(ranks, 1)
    over, near = found.counts["network"], found.counts["memory"]
    return [
        f"predicted: {found.time / 1e6:.6f} ms for {ranks} ranks on {hosts} "
        f"host{'s' if hosts > 1 else ''} of {Path(cluster.name).stem}",
        f"communication: {mean:.1%} of the ranks' time, "
        f"from {min(found.communication):.1%} to {max(found.communication):.1%}",
        f"between hosts {over[0]} messages of {over[1]} bytes, "
        f"within hosts {near[0]} of {near[1]}, those of collectives included",
        *(
            f"  {link.share:6.1%} of {link_text(link.name)}: {link.bytes} bytes"
            for link in found.links[:BUSIEST]
        ),
        standing_of_file(cluster, ranks, hosts),
    ]


def standing_of_file(cluster: Cluster, ranks: int, hosts: int) -> str:
    """How far the prediction may be believed."""
    known = cluster.validated
    if known is None:
        return "an extrapolation: nothing was compared with a real machine"
    far = f"{known.ranks} ranks on {known.hosts} host{'s' if known.hosts > 1 else ''}"
    error = f"errors up to {known.error:.0%}"
    if ranks > known.ranks or hosts > known.hosts:
        return f"an extrapolation: the file was compared for {far} at most ({error})"
    how = f" ({known.by})" if known.by else ""
    return f"compared with a real machine for {far}{how}: {error}"
