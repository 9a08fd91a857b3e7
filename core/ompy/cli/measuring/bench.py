"""`ompy bench`: OSU-like measurements on this machine, as a table or JSON."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import click

from ompy import __version__
from ompy.cli.bytecounts import parse_bytes
from ompy.cli.completing.completion import WordKeepingCommand, complete_parameter
from ompy.cli.given_words import GivenPath
from ompy.cli.measuring import gasnet_bench
from ompy.cli.numbers import WholeNumber
from ompy.cli.own_jobs import answer_of

KINDS: Final = {
    "latency": "one-way time of Send and Recv between two ranks",
    "bandwidth": "bytes per second of Isend and Irecv, 64 messages under way",
    "rate": "messages per second of Isend and Irecv, 64 messages under way",
    "object": "one-way time of send and recv of Python objects",
    "allreduce": "time of Allreduce of doubles over all ranks",
    "reduce": "time of Reduce of doubles to rank 0",
    "barrier": "time of Barrier",
    "bcast": "time of Bcast from rank 0",
    "allgather": "time of Allgather, bytes from every rank",
    "alltoall": "time of Alltoall, bytes for every rank",
    "gasnet": "put, get and active messages of GASNet between two ranks, and what way they go",
    "put": "time of Put and Flush into another rank's window",
    "get": "time of Get and Flush out of another rank's window",
    "fetch": "time of Fetch_and_op and Flush on a 64-bit integer of a window",
    "fence": "time of Put to the next rank and Fence, all ranks",
}
SIZES: Final = {
    "latency": "0,8,64,1k,4000,16k,64k,256k,1m,8m",
    "bandwidth": "1k,4000,16k,64k,256k,1m,4m",
    "rate": "8,64,1k",
    "object": "",
    "allreduce": "8,1k,16k,128k,1m",
    "reduce": "8,1k,16k,128k,1m",
    "barrier": "",
    "bcast": "8,1k,16k,128k,1m",
    "allgather": "8,1k,16k,128k,1m",
    "alltoall": "8,1k,16k,128k,1m",
    "gasnet": gasnet_bench.SIZES,
    "put": "8,1k,16k,256k,1m",
    "get": "8,1k,16k,256k,1m",
    "fetch": "",
    "fence": "8,1k,16k,256k",
}
BETWEEN_TWO: Final = ("latency", "bandwidth", "rate", "object", "gasnet", "put", "get", "fetch")
UNITS: Final = {"bandwidth": "MB/s", "rate": "thousand/s"}  # of the figures; else "us"
HELP: Final = "Measure message passing on this machine.\n\n\b\n" + "\n".join(
    f"  {name:<10} {text}" for name, text in KINDS.items()
)


def parse_sizes(text: str) -> list[int]:
    """Byte counts such as `8,1k,4m`.

    Raises:
        click.BadParameter: one is not a size.
    """
    return [parse_bytes(word) for word in text.split(",") if word.strip()]


@click.command(cls=WordKeepingCommand, help=HELP)
@click.argument("kind", type=click.Choice(list(KINDS)))
@click.option(
    "-n",
    "--ranks",
    default=2,
    show_default=True,
    type=WholeNumber(min=1),
    help="Ranks of collectives; all others are between two.",
)
@click.option("--sizes", default="", help="Bytes, as 8,1k,4m; the kind has its own defaults.")
@click.option("--rounds", default=9, show_default=True, type=WholeNumber(min=1))
@click.option(
    "--mca",
    nargs=2,
    multiple=True,
    metavar="NAME VALUE",
    shell_complete=complete_parameter,
    help="As for ompy-run.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME[:N],...",
    help="As for ompy-run; rank 0 has to be on this host.",
)
@click.option("--json", "as_json", is_flag=True, help="Print every round's figure as JSON.")
@click.option(
    "--plot",
    type=GivenPath(dir_okay=False, path_type=Path),
    help="Draw bandwidth by size too, for gasnet; the name says as what: SVG, PNG, PDF.",
)
def bench(
    kind: str,
    ranks: int,
    sizes: str,
    rounds: int,
    mca: list[tuple[str, str]],
    hosts: tuple[str, ...],
    as_json: bool,
    plot: Path | None,
) -> None:
    """Run one kind of measurement and print it."""
    if plot is not None and kind != "gasnet":
        raise click.BadParameter("only gasnet has a picture", param_hint="--plot")
    if kind in BETWEEN_TWO and ranks != 2:
        raise click.BadParameter(f"{kind} is measured between 2 ranks", param_hint="-n")
    if plot is not None:
        gasnet_bench.check_plot(plot)
    wanted = parse_sizes(sizes or SIZES[kind])
    where = [word for host in hosts for word in ("--host", host)]
    result = _measure(kind, ranks, wanted, rounds, mca, where)
    report = {
        "benchmark": kind,
        "what": KINDS[kind],
        "ompy": __version__,
        "form": result["form"],
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, "
        f"{len(os.sched_getaffinity(0))} cores",
        "ranks": ranks,
        "hosts": ",".join(hosts),
        "mca": dict(mca),
        "rounds": rounds,
    }
    if kind == "gasnet":
        report |= {"conduit": result["conduit"], "rows": gasnet_bench.rows_of(result)}
    else:
        report["rows"] = [{"label": label, "seconds": times} for label, times in result["rows"]]
    if plot is not None:
        gasnet_bench.plot(report, plot)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)


def _measure(
    kind: str,
    ranks: int,
    sizes: list[int],
    rounds: int,
    mca: list[tuple[str, str]],
    where: list[str],
) -> dict[str, Any]:
    """Run the loops in a job of their own. Exits with the job's code when it fails."""
    loops = "gasnet_loops" if kind == "gasnet" else "benchmark_loops"
    words = (kind, json.dumps(sizes), str(rounds))
    return answer_of(["-n", str(ranks), *where], mca, f"ompy.cli.measuring.{loops}", *words)


def _print(report: dict[str, Any]) -> None:
    head = (
        f"ompy {report['ompy']}, Python {report['python']}, hot modules {report['form']}; "
        f"{report['machine']}; {report['ranks']} ranks"
    ) + (f" on {report['hosts']}" if report["hosts"] else "")
    chosen = " ".join(f"{name}={value}" for name, value in report["mca"].items())
    click.echo(f"# {report['benchmark']}: {report['what']}")
    click.echo(f"# {head}{'; ' + chosen if chosen else ''}; {report['rounds']} rounds")
    kind = report["benchmark"]
    if kind == "gasnet":
        gasnet_bench.print_rows(report["rows"])
        return
    unit = UNITS.get(kind, "us")
    label = "object" if kind == "object" else "bytes"
    click.echo(f"{label:>22} {'median ' + unit:>16} {'best tenth':>12}")
    for row in report["rows"]:
        times = row["seconds"]
        best = quantiles(times, n=10, method="inclusive")[0] if len(times) > 1 else times[0]
        values = (figure(kind, row["label"], time) for time in (median(times), best))
        click.echo("{:>22} {:>16,.2f} {:>12,.2f}".format(row["label"], *values))


def figure(kind: str, label: str, seconds: float) -> float:
    """The number to print for a time: a rate for the rate-like kinds, else microseconds."""
    if kind == "bandwidth":
        return int(label) / seconds / 1e6
    if kind == "rate":
        return 1e-3 / seconds
    return seconds * 1e6
