#!/usr/bin/env python3
"""What btl/ofi costs over the raw loop, provider by provider; writes `docs/ofi-overhead.md`.

    python tools/bench ofi_overhead [--rounds 9] [--tree build/compiled] [--loops]
                        [--write docs/ofi-overhead.md] [--providers shm,tcp;ofi_rxm]

Four things beside each other in every round, two processes each: libfabric's own `fi_pingpong`,
`tools/bench/ofi/ofi_raw.py` (cffi and nothing else), btl/ofi alone (`tests/support/ofi_loops.py`)
and `ompy bench latency`; with `--loops` the two loops only. Raw loop and BTL have the same
provider, DELIVERY_COMPLETE and descriptors to sleep on; both poll without sleeping, each process
on a processor of its own. A round's figure is a median; the table has the median of the rounds,
and of their quotients.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from tests.support.ofi_loops import MESSAGE, SIZES, loops
from tests.support.worlds import RankError, real
from tools.repository import ROOT, commit_name

RAW: Final = ROOT / "tools" / "bench" / "ofi" / "ofi_raw.py"
PROVIDERS: Final = ("shm", "tcp;ofi_rxm", "udp;ofi_rxd", "sockets")  # reference ofi.md C1
LIMITS: Final = {8: 1.30, 1 << 20: 1.05}  # what the project promises, by size
LABELS: Final = {8: "8 B", 4096: "4 KiB", 1 << 20: "1 MiB"}
TRIPS: Final = 500  # of fi_pingpong; arbitrary
PATIENCE: Final = 120  # s; arbitrary: for any of the four
PINGPONG_PATIENCE: Final = 10  # s; arbitrary: over udp;ofi_rxd it often never ends
PROGRAM: Final = f"{loops.__module__}:{loops.__name__}"
REASONS: Final = "## What the overhead is"  # written by hand; what follows it is kept

Figures = dict[str, float]  # microseconds, by operation and size


def said_by(words: list[str], seconds: float = PATIENCE) -> str:
    """What a program says; ended with all it has started when it takes too long.

    Raises:
        subprocess.SubprocessError: it failed, or took too long.
    """
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        try:
            said, wrong = program.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(program.pid, signal.SIGKILL)
            raise
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, words, said, wrong)
    return said


def raw(provider: str) -> Figures:
    """The raw loop."""
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "raw.json")
        words = [sys.executable, str(RAW), "--providers", provider]
        words += ["--sizes", ",".join(map(str, SIZES)), "--json", str(kept), "--wait"]
        words += ["--no-atomics"]
        said_by(words)
        rows = json.loads(kept.read_text())
    return {f"{row['operation']} {row['bytes']}": row["median_us"] for row in rows}


def btl(provider: str) -> Figures:
    """btl/ofi with nothing above it; its figures are named `btl ...`."""
    settings = {"btl": "self,ofi", "btl_ofi_provider_include": provider}
    found: Figures = real(2, PROGRAM, settings=settings, timeout=PATIENCE)[0]
    return {f"btl {name}": us for name, us in found.items()}


def whole(provider: str) -> Figures:
    """MPI over it."""
    words = [sys.executable, "-m", "ompy.cli.main", "bench", "latency", "--json", "--rounds", "3"]
    words += ["--sizes", ",".join(map(str, LIMITS)), "--mca", "btl", "self,ofi"]
    words += ["--mca", "btl_ofi_provider_include", provider]
    rows = json.loads(said_by(words))["rows"]
    return {f"MPI {row['label']}": 1e6 * median(row["seconds"]) for row in rows}


def pingpong(provider: str, size: int) -> Figures:
    """The ping-pong of libfabric itself; nothing when it does not come to an end."""
    program = shutil.which("fi_pingpong")
    if program is None:
        return {}
    words = [program, "-p", provider, "-e", "rdm", "-I", str(TRIPS), "-S", str(size)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        time.sleep(0.5)  # its port has to be open: it says nothing
        said = ""
        with suppress(subprocess.SubprocessError):
            said = said_by([*words, "127.0.0.1"], PINGPONG_PATIENCE)
        with suppress(subprocess.TimeoutExpired):
            server.wait(2 if said else 0)
        server.kill()
    lines = [line.split() for line in said.splitlines()]
    if len(lines) < 2 or "usec/xfer" not in lines[0]:
        return {}
    return {f"fi_pingpong {size}": float(lines[-1][lines[0].index("usec/xfer")])}


def one_round(provider: str, *, loops_only: bool) -> Figures:
    """All four; what cannot be has no figure."""
    found: Figures = {}
    parts: list[Callable[[str], Figures]] = [raw, btl]
    if not loops_only:
        parts += [whole, *(partial(pingpong, size=size) for size in LIMITS)]
    for part in parts:
        try:
            found.update(part(provider))
        except (RankError, subprocess.SubprocessError) as problem:
            said = getattr(problem, "stderr", None) or problem
            print(f"{provider}: {str(said).strip()[-500:]}", file=sys.stderr)
    return found


def rows_of(provider: str, rounds: list[Figures]) -> list[str]:
    """The table's rows of a provider."""
    names = [f"{what} {size}" for size in SIZES for what in ("write", "read")]
    rows = []
    for name in [*names, f"send {MESSAGE}"]:
        both = [(one[f"btl {name}"], one[name]) for one in rounds if f"btl {name}" in one]
        both = [pair for pair in both if pair[1]]
        if not both:
            continue
        operation, _, size = name.partition(" ")
        quotient = median(mine / theirs for mine, theirs in both)
        limit = LIMITS.get(int(size))
        judged = "-" if limit is None else "yes" if quotient <= limit else "**no**"
        times = " | ".join(f"{median(pair[index] for pair in both):.1f}" for index in (1, 0))
        rows.append(
            f"| `{provider}` | {operation} | {LABELS[int(size)]} | {times} | **{quotient:.2f}** | "
            f"{judged} |"
        )
    return rows


def whole_rows(provider: str, rounds: list[Figures]) -> list[str]:
    """MPI beside libfabric's own ping-pong."""
    rows = []
    for size in LIMITS:
        cells = []
        for name in (f"fi_pingpong {size}", f"MPI {size}"):
            times = [one[name] for one in rounds if name in one]
            cells.append(f"{median(times):.1f}" if times else "-")
        rows.append(f"| `{provider}` | {LABELS[size]} | {' | '.join(cells)} |")
    return rows


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--providers", default=",".join(PROVIDERS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tree", type=Path, help="made by tools/package compile_hot")
    parser.add_argument("--loops", action="store_true", help="neither MPI nor fi_pingpong")
    parser.add_argument("--write", type=Path, help="file for the table, instead of the output")
    options = parser.parse_args()
    if options.tree:
        os.environ["PYTHONPATH"] = str(options.tree.resolve())
    providers = options.providers.split(",")
    found: dict[str, list[Figures]] = {provider: [] for provider in providers}
    for _ in range(options.rounds):
        for provider in providers:
            found[provider].append(one_round(provider, loops_only=options.loops))
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    text = "\n".join(
        [
            "# btl/ofi over the raw loop",
            "",
            "    python tools/bench ofi_overhead --tree build/o2 --write docs/ofi-overhead.md",
            "",
            f"{datetime.now(UTC):%Y-%m-%d}, ompy at {commit_name()}, "
            f"{'compiled' if options.tree else 'interpreted'}, {os.cpu_count()} cores, Linux "
            f"{platform.release()}, Python {platform.python_version()}, {options.rounds} rounds; "
            f"load averages at the end {loads}. Microseconds, medians. What is compared stands at "
            "the top of the tool. At most 1.30 at 8 B and 1.05 at 1 MiB is wanted.",
            "",
            "| provider | operation | bytes | raw loop | btl/ofi | quotient | reached |",
            "|---" * 7 + "|",
            *(row for provider in providers for row in rows_of(provider, found[provider])),
            "",
            "One way, messages:",
            "",
            "| provider | bytes | `fi_pingpong` | `ompy bench latency` |",
            "|---" * 4 + "|",
            *(row for provider in providers for row in whole_rows(provider, found[provider])),
            "",
        ]
    )
    if options.write:
        there = options.write.read_text() if options.write.exists() else ""
        options.write.write_text(text + "".join(there.partition("\n" + REASONS)[1:]))
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
