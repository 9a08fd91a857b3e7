#!/usr/bin/env python3
"""libfabric's own tests (fabtests) over its providers, and against nic/libfabric at the other end.

    python tools/sweep fabtests --programs DIR                  a table
    python tools/sweep fabtests --programs DIR shm sockets      of these providers only
    python tools/sweep fabtests --programs DIR --library FILE --keep 2.5.json
                                                             of another libfabric, kept as JSON
    python tools/sweep fabtests --read 1.17.json 2.5.json --write docs/fabtests.md
                                                             a table for each

DIR has the programs (`fi_rdm`, `fi_rdm_atomic`, ...); without `--programs` they are looked for on
the path, and where there are none the tool says so and ends well. Two tables: each of their tests
with both ends theirs, by which is known what the library can do at all; and those whose protocol
`fabtests_peer.py` speaks, with our binding as client and as server. All goes over loopback.
Exit code 1: a test failed with ours at one end that passes with both ends theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from tools.repository import ROOT, commit_name

PEER: Final = ROOT / "tools" / "sweep" / "transports" / "fabtests_peer.py"
LOOPBACK: Final = "127.0.0.1"
PROVIDERS: Final = ("tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd")
PATIENCE: Final = 60  # s; arbitrary: both ends poll, and may share a core with others
MISSING: Final = (38, 61)  # errno of "not implemented" and "no data": a provider has no such thing
TIMEOUT: Final = 124  # as of timeout(1)
LISTEN: Final = "0A"  # Linux: the state of a listening socket in /proc/net/tcp
THEIRS: Final = "theirs"
OURS: Final = "ours"

# command lines of two ends; those with -e msg or dgram are about endpoints the binding has none of
PAIRS: Final = (
    "av_xfer -e rdm",
    "rdm",
    "rdm -U",
    "rdm_pingpong -I 3 -w 0 -v -S 1024",
    "rdm_pingpong -I 3 -w 0 -v -S 100000",
    "rdm_tagged_pingpong -I 3 -w 0 -v -S 1024",
    "rdm_cntr_pingpong -I 3 -w 0 -S 1024",
    "rma_pingpong -I 3 -w 0 -v -o write -S 1024",
    "rma_bw -e rdm -o write -I 3 -w 0 -S 1024",
    "rma_bw -e rdm -o read -I 3 -w 0 -S 1024",
    "rma_bw -e rdm -o writedata -I 3 -w 0 -S 1024",
    "rdm_atomic -I 3 -v -o sum -z uint64",
    "rdm_atomic -I 3 -v -o bxor -z int32",
    "rdm_atomic -I 3 -v -o read -z uint64",
    "rdm_atomic -I 3 -v -o cswap -z uint64",
    "rdm_rma_event",
    "cq_data -e rdm -o senddata",
    "cq_data -e rdm -o writedata",
    "inject_test -A inject -v",
    "unexpected_msg -e rdm -I 3 -v",
    "multi_recv -e rdm -I 3 -w 0",
    "recv_cancel -e rdm -V",
    "rdm_tagged_peek",
    "multi_mr -e rdm -V",
    "multi_ep -e rdm -v",
    "flood -e rdm -v -T 1",
    "rdm_shared_av",
    "shared_ctx",
    "scalable_ep",
)
ALONE: Final = (
    f"av_test -g {LOOPBACK} -n 1 -s {LOOPBACK} -e rdm",
    "cq_test",
    "mr_test",
    "cntr_test",
    "dom_test -n 2",
)


class Shared(NamedTuple):
    """A test of which either end may be ours.

    Attributes:
        theirs: their command line.
        ours: ours, of `fabtests_peer.py`.
    """

    theirs: str
    ours: str


SHARED: Final = (
    Shared("rdm_pingpong -I 3 -w 0 -v -S 64", "rdm_pingpong --count 3 --size 64"),
    Shared("rdm_pingpong -I 3 -w 0 -v -S 1024", "rdm_pingpong --count 3 --size 1024"),
    Shared("rdm_pingpong -I 3 -w 0 -v -S 100000", "rdm_pingpong --count 3 --size 100000"),
    Shared("rma_pingpong -I 3 -w 0 -v -o write -S 1024", "rma_pingpong --count 3 --size 1024"),
    Shared("rma_pingpong -I 3 -w 0 -v -o write -S 100000", "rma_pingpong --count 3 --size 100000"),
    *(
        Shared(
            f"rdm_atomic -I 3 -v -o {op} -z {kind}", f"rdm_atomic --count 3 --op {op} --type {kind}"
        )
        for op, kind in (
            ("sum", "uint64"),
            ("min", "int64"),
            ("bxor", "int32"),
            ("write", "uint32"),
            ("read", "uint64"),
            ("cswap", "uint64"),
        )
    ),
)


class Runner:
    """Runs them over one libfabric."""

    def __init__(self, programs: Path, library: str) -> None:
        self._programs = programs
        self._library = library
        # 0: `sockets` waits 4 ms for everything otherwise, in which it does nothing
        self._environment = {**os.environ, "FI_SOCKETS_PE_WAITTIME": "0"}
        if library:
            self._environment["LD_LIBRARY_PATH"] = str(Path(library).resolve().parent)

    def version(self) -> str:
        """Of the library, as its own words have it."""
        program = "import sys; from ompy_components.nic.libfabric.library import Library; "
        program += "print(Library(sys.argv[1]).version_text)"
        name = self._library or "libfabric.so.1"
        return subprocess.run(
            [sys.executable, "-c", program, name], capture_output=True, text=True, check=True
        ).stdout.strip()

    def theirs(self, line: str, provider: str, port: int, *, serve: bool) -> list[str]:
        """One end of theirs. Names and beginnings of steps go over TCP, by their option -b."""
        name, *rest = line.split()
        command = [str(self._programs / f"fi_{name}"), *rest, "-p", provider]
        command += [f"-b={port}", "-O", LOOPBACK]
        return [*command, "-s", LOOPBACK] if serve else [*command, LOOPBACK]

    def ours(self, line: str, provider: str, port: int, *, serve: bool) -> list[str]:
        """One end of ours."""
        name, *rest = line.split()
        command = [sys.executable, str(PEER), name, provider, str(port), *rest]
        command += ["--library", self._library] if self._library else []
        return [*command, "--serve"] if serve else command

    def alone(self, line: str, provider: str) -> str:
        """A test of one process."""
        name, *rest = line.split()
        command = [str(self._programs / f"fi_{name}"), *rest, "-p", provider]
        return verdict(self._ended([self._begun(command)]))

    def pair(self, server: Sequence[str], client: Sequence[str], port: int) -> str:
        """A test of two; the client begins when the server listens at the port."""
        first = self._begun(server)
        limit = time.monotonic() + PATIENCE
        while first.poll() is None and not listening(port) and time.monotonic() < limit:
            time.sleep(0.05)
        return verdict(self._ended([first, self._begun(client)]))

    def _begun(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        nothing = subprocess.DEVNULL
        return subprocess.Popen(command, env=self._environment, stdout=nothing, stderr=nothing)

    def _ended(self, running: Sequence[subprocess.Popen[bytes]]) -> list[int]:
        codes = []
        for one in reversed(running):  # the client first: a server waits for it
            try:
                codes.append(one.wait(PATIENCE))
            except subprocess.TimeoutExpired:
                codes.append(TIMEOUT)
                break
        for one in running:
            if one.poll() is None:
                one.kill()
                one.wait()
        return codes


def listening(port: int) -> bool:
    """Whether somebody of this host listens at a TCP port; who connected would be its client."""
    lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return any(words[1].endswith(f":{port:04X}") and words[3] == LISTEN for words in lines)


def verdict(codes: Sequence[int]) -> str:
    """What the exit codes of a test's ends come to."""
    if not any(codes):
        return "yes"
    if TIMEOUT in codes:
        return "hangs"
    if any(abs(code) in MISSING for code in codes):
        return "-"
    crashed = [-code for code in codes if code < 0]
    return f"signal {crashed[0]}" if crashed else f"fails ({max(codes)})"


def free_port() -> int:
    """A port of loopback that nobody has now."""
    with socket.socket() as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])


def theirs(runner: Runner, line: str, provider: str) -> str:
    """A test with both ends theirs, or of one process."""
    if line in ALONE:
        return runner.alone(line, provider)
    port = free_port()
    server = runner.theirs(line, provider, port, serve=True)
    return runner.pair(server, runner.theirs(line, provider, port, serve=False), port)


def shared(runner: Runner, one: Shared, provider: str) -> str:
    """A test with our client, then with our server."""
    found = []
    for serve in (False, True):
        port = free_port()
        ends = [
            runner.theirs(one.theirs, provider, port, serve=not serve),
            runner.ours(one.ours, provider, port, serve=serve),
        ]
        found.append(runner.pair(ends[serve], ends[not serve], port))
    return ", ".join(found)


def examine(runner: Runner, providers: Sequence[str]) -> dict[str, object]:
    """All tests over all providers."""
    made = f"{datetime.now(UTC):%Y-%m-%d}, ompy at {commit_name()}"
    found: dict[str, dict[str, dict[str, str]]] = {THEIRS: {}, OURS: {}}
    for one in SHARED:
        cells = {provider: shared(runner, one, provider) for provider in providers}
        found[OURS][one.theirs] = cells
        print("ours:", one.theirs, cells, file=sys.stderr, flush=True)
    for line in (*PAIRS, *ALONE):
        cells = {provider: theirs(runner, line, provider) for provider in providers}
        found[THEIRS][line] = cells
        print(line, cells, file=sys.stderr, flush=True)
    return {"version": runner.version(), "made": made, **found}


HEAD: Final = """# libfabric's own tests

    python tools/sweep fabtests --programs DIR [--library FILE] --keep JSON
    python tools/sweep fabtests --read JSON ... --write docs/fabtests.md

fabtests come with libfabric's sources. Nothing of them is in this repository, and Debian has no
package of them. These are of libfabric 2.1.0: `apt-get source --download-only libfabric` with a
`deb-src` line of trixie. The files of `fabtests/common` were compiled with each of `functional`,
`benchmarks` and `unit`, by
`gcc -I include -I fabtests/include -D_GNU_SOURCE -DHAVE_CLOCK_GETTIME=1 -DHAVE_EPOLL=1`, with zeros
for what their `configure` looks for. For 1.17 `FT_FIVERSION` in their `shared.h` was
`FI_VERSION(1,17)`. Both ends run on loopback. Names and beginnings of steps go over TCP (`-b`).

*yes*: both ends ended well. *-*: the provider says that it has no such thing. *hangs*: not over
after a minute. In the first table of each library both ends are theirs: what the library can do at
all. In the second one end is `tools/sweep/transports/fabtests_peer.py`, which speaks their protocol
over nic/libfabric; a cell says how it went with ours as client, then as server. Theirs check the
bytes and words they get from ours, and ours those they get from theirs.

The binding has no calls for tags, counters, data beside completions, events at the target of a
write, buffers of several receives, cancelled receives and shared contexts: btl/ofi uses none of
them. So these are in the first table only. What else of their functional tests fits is done in our
own words over each provider, and over the twin: `tests/support/fabric_checks.py`, by
`pytest tests/proc/test_libfabric.py -k own_tests` and `tests/sim/ofi_emulated/test_checks.py`.

"""


def text(reports: Sequence[Mapping[str, object]]) -> str:
    """The document."""
    parts = [HEAD]
    for report in reports:
        parts.append(f"## libfabric {report['version']}\n\n{report['made']}.\n\n")
        for name, title in ((THEIRS, "both ends theirs"), (OURS, "ours as client, as server")):
            rows = report[name]
            assert isinstance(rows, dict)
            providers = list(next(iter(rows.values())))
            head = " | ".join(f"`{provider}`" for provider in providers)
            parts.append(f"| {title} | {head} |\n" + "|---" * (len(providers) + 1) + "|\n")
            for line, cells in rows.items():
                parts.append(f"| `{line}` | " + " | ".join(cells.values()) + " |\n")
            parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def wrong(report: Mapping[str, object]) -> list[str]:
    """What fails with ours at one end, and passes with both ends theirs or was not tried so."""
    theirs, ours = report[THEIRS], report[OURS]
    assert isinstance(theirs, dict)
    assert isinstance(ours, dict)
    return [
        f"{line} over {provider}: {cell}"
        for line, cells in ours.items()
        for provider, cell in cells.items()
        if cell != "yes, yes" and theirs.get(line, {}).get(provider, "yes") == "yes"
    ]


def main() -> None:
    """Run all, or read what was kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("providers", nargs="*", default=PROVIDERS)
    parser.add_argument("--programs", type=Path, help="folder of fi_rdm and the others")
    parser.add_argument("--library", default="", help="libfabric to use instead of the system's")
    parser.add_argument("--keep", type=Path, help="file for what is found, as JSON")
    parser.add_argument("--read", type=Path, nargs="+", help="such files, instead of trying")
    parser.add_argument("--write", type=Path, help="file for the tables, instead of the output")
    options = parser.parse_args()
    if options.read:
        reports = [json.loads(path.read_text()) for path in options.read]
    else:
        there = shutil.which("fi_rdm")
        programs = options.programs or (Path(there).parent if there else None)
        if programs is None or not (programs / "fi_rdm").exists():
            print("skipped: no fabtests here (fi_rdm); docs/fabtests.md says how to get them")
            return
        reports = [examine(Runner(programs.resolve(), options.library), options.providers)]
    if options.keep:
        options.keep.write_text(json.dumps(reports[0], indent=1) + "\n")
    if options.write:
        options.write.write_text(text(reports))
    else:
        print(text(reports), end="")
    failed = [one for report in reports for one in wrong(report)]
    for one in failed:
        print(f"FAILED {one}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
