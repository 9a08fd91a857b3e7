"""What `ompy bench gasnet` prints and draws of the rows its ranks have measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import click

SIZES: Final = "8,64,128,136,512,1k,2k,4k,4104,8k,8200,16k,64k,256k,1m"  # around the cut-overs
COPY: Final = "memory copy"
FLOODS: Final = ("put flood", "get flood", COPY)
DASHES: Final = {"in": "-", "out": "--"}
COLOURS: Final = {"put flood": "#1d6fb8", "get flood": "#e08a1e", COPY: "#64748b"}

Row = Mapping[str, Any]


def rows_of(result: Mapping[str, Any]) -> list[Row]:
    """The rows of a result, as `--json` prints them."""
    names = ("operation", "local", "bytes", "way", "seconds")
    return [dict(zip(names, row, strict=True)) for row in result["rows"]]


def print_rows(rows: Sequence[Row]) -> None:
    """Print a line of each."""
    columns = "{:>12} {:>8} {:>9} {:>10} {:>12} {:>5}  {}"
    click.echo(columns.format("operation", "local", "bytes", "median", "best tenth", "", "way"))
    for row in rows:
        is_flood = row["operation"] in FLOODS
        values = (f"{figure(row, of):,.2f}" for of in (median, best))
        unit = "MB/s" if is_flood else "us"
        local, way = row["local"] or "-", row["way"] or "-"
        click.echo(columns.format(row["operation"], local, row["bytes"], *values, unit, way))
    click.echo(
        "# put and get: until they are complete; AM: a request and its reply, there and back"
    )


def best(times: Sequence[float]) -> float:
    """The tenth of the times that are shorter ends here."""
    return quantiles(times, n=10, method="inclusive")[0] if len(times) > 1 else times[0]


def figure(row: Row, of: Any = median) -> float:
    """The number to show for a row: a rate for floods, else microseconds."""
    seconds = of(row["seconds"])
    if row["operation"] in FLOODS:
        return float(row["bytes"] / seconds / 1e6)
    return float(seconds * 1e6)


def changes(rows: Sequence[Row]) -> list[tuple[int, str]]:
    """The last sizes before floods go another way, each with what changes, and to what."""
    found: dict[int, dict[str, list[str]]] = {}
    for operation in FLOODS[:2]:
        for local in DASHES:
            course = [r for r in rows if (r["operation"], r["local"]) == (operation, local)]
            for below, row in pairwise(course):
                if below["way"] != row["way"]:
                    ways = found.setdefault(below["bytes"], {}).setdefault(row["way"], [])
                    ways.append(operation.removesuffix(" flood"))
    return [
        (size, ", ".join(f"{' and '.join(dict.fromkeys(who))}: {way}" for way, who in ways.items()))
        for size, ways in sorted(found.items())
    ]


def check_plot(path: Path) -> None:
    """See that a picture can be drawn and written there, before anything is measured.

    Raises:
        click.UsageError: there is no matplotlib.
        click.BadParameter: there is no such folder, or no such kind of picture.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise click.UsageError("--plot needs matplotlib: pip install 'ompy[plots]'") from None
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".") not in kinds:
        known = ", ".join(f".{kind}" for kind in sorted(kinds))
        text = f"{path} ends like no kind of picture; there are {known}"
        raise click.BadParameter(text, param_hint="--plot")
    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}", param_hint="--plot")


def title(report: Mapping[str, Any]) -> str:
    """What the picture says of where its figures are from."""
    conduit = report["conduit"]
    by_nic = any(row["way"] for row in report["rows"])
    variant = report["mca"].get(f"conduit_{conduit}_messages")
    what = [
        f"{conduit}, bandwidth of a flood {'over the NIC' if by_nic else 'by shared memory'}",
        *([f"messages {variant}"] if variant else []),
    ]
    where = f"{report['machine']}, Python {report['python']}, {report['form']}"
    return f"{', '.join(what)}\n{where}, {date.today().isoformat()}"


def in_words(size: float, _place: object = None) -> str:
    """A size as the axis has it."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g}"


def plot(report: Mapping[str, Any], path: Path) -> None:
    """Draw bandwidth by size, with the sizes up to which transfers go one way."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    rows = report["rows"]
    figure_, axes = plt.subplots(figsize=(8, 5))
    for operation in FLOODS:
        for local, dash in DASHES.items():
            course = [r for r in rows if (r["operation"], r["local"]) == (operation, local)]
            if not course:
                continue
            where = "" if operation == COPY else f", local memory {local} of the segment"
            axes.plot(
                [row["bytes"] for row in course],
                [figure(row) for row in course],
                dash,
                marker=".",
                color=COLOURS[operation],
                label=operation + where.replace("in of", "in"),
            )
    place: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "va": "bottom", "ha": "right"}
    for size, way in changes(rows):
        axes.axvline(size, color="#cbd5e1", linewidth=0.8, zorder=0)
        axes.text(size, 0.02, way, rotation=90, fontsize=7, color="#64748b", **place)
    axes.set_xscale("log", base=4)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(in_words)
    axes.set_xlabel("bytes")
    axes.set_ylabel("MB/s")
    axes.set_title(title(report), fontsize=9)
    axes.legend(fontsize=7)
    figure_.tight_layout()
    try:
        figure_.savefig(path)
    except OSError as problem:
        why = problem.strerror or problem
        raise click.ClickException(f"--plot {path}: it cannot be written: {why}") from None
    finally:
        plt.close(figure_)
