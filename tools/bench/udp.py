#!/usr/bin/env python3
"""usnic, tcp and sm beside raw UDP and libfabric's on this machine's loopback; prints Markdown.

    python tools/bench udp [--rounds 5] [--only latency,rate,bandwidth] [--tree build/compiled]

Raw UDP: two processes and nothing but `sendto` and `recv_into`. Nothing is resent or checked there,
packets are lost, and only what arrived counts. `bandwidth` sends packets as large as usnic's on the
loopback interface. In `latency` both sides sleep until a packet comes, or, *polled*, ask again and
again, as ranks do that have a core each. All take turns in every round; figures are medians over
the rounds, and so are the ratios, each within its round.

`--tree` is what `tools/package compile_hot` made: its usnic takes its turn as well.

Where `fi_pingpong` is installed (Debian: libfabric-bin) libfabric's `udp` provider takes its turn
in `latency`, which is all that program measures: as it is (packets may be lost, 1472 bytes at
most), and below `ofi_rxd`, which makes it reliable as usnic is. Both of its sides spin. Bandwidth
to and fro, which is what that program means by it, is bytes by latency.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from ompy.cli.measuring.bench import UNITS, figure

BIN: Final = Path(sys.executable).parent
BTLS: Final = ("usnic", "tcp", "sm")
# arbitrary: a tiny fragment, one in a packet of its own, and many packets, in streams and to and
# fro; with more than that libfabric's program takes minutes
SIZES: Final = {
    "latency": (8, 1024, 8000, 65_536),
    "rate": (8, 1024),
    "bandwidth": (65_536, 1_048_576),
}
PACKET: Final = 8972  # bytes; an MTU of 9000, which is what usnic has on loopback, less headers
SECONDS: Final = 0.3  # arbitrary: thousands of packets
RAW: Final = "raw UDP"
POLLED: Final = "polled UDP"
COMPILED: Final = "usnic compiled"
FABRIC: Final = {  # heading: provider and kind of endpoint
    "libfabric udp": ("udp", "dgram"),
    "libfabric udp;ofi_rxd": ("udp;ofi_rxd", "rdm"),
}
DATAGRAM_MAX: Final = 65_507  # bytes; Linux: what a UDP datagram over IPv4 has room for
FABRIC_DATAGRAM: Final = 1472  # bytes; libfabric 1.17: what a datagram of its udp provider holds
TRANSFERS: Final = 1000  # arbitrary: some hundredths of a second
PATIENCE: Final = 60  # s; arbitrary: far beyond that, on a machine that does other things as well


def pair() -> tuple[socket.socket, socket.socket]:
    """Two sockets that know each other."""
    made = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for one in made:
        one.bind(("127.0.0.1", 0))
        one.settimeout(0.2)
    for one, other in (made, made[::-1]):
        one.connect(other.getsockname())
    return made[0], made[1]


def beside(echoing: Callable[[], None], measuring: Callable[[], float]) -> float:
    """Run one in a child and the other here."""
    child = os.fork()
    if not child:
        try:
            echoing()
        finally:
            os._exit(0)
    try:
        return measuring()
    finally:
        os.waitpid(child, 0)


def raw_polled(size: int) -> float:
    """Seconds one way, where both sides ask without waiting."""
    near, far = pair()
    for one in (near, far):
        one.setblocking(False)

    def received(end: socket.socket, room: bytearray, until: float) -> bool:
        while time.perf_counter() < until:
            try:
                end.recv_into(room)
            except BlockingIOError:
                continue
            return True
        return False

    def echoing() -> None:
        room, until = bytearray(size), time.perf_counter() + 2 * SECONDS
        while received(far, room, until):
            far.send(room)
            until = time.perf_counter() + SECONDS

    def measuring() -> float:
        room, turns = bytearray(size), 0
        begun = time.perf_counter()
        until = begun + SECONDS
        near.send(room)
        while received(near, room, until):
            near.send(room)
            turns += 1
        return SECONDS / max(turns, 1) / 2

    return beside(echoing, measuring)


def raw_latency(size: int) -> float:
    """Seconds one way."""
    near, far = pair()

    def echoing() -> None:
        room = bytearray(size)
        try:
            while True:
                far.recv_into(room)
                far.send(room)
        except TimeoutError:
            pass

    def measuring() -> float:
        room, turns = bytearray(size), 0
        end = time.perf_counter() + SECONDS
        begun = time.perf_counter()
        while time.perf_counter() < end:
            near.send(room)
            near.recv_into(room)
            turns += 1
        return (time.perf_counter() - begun) / turns / 2

    return beside(echoing, measuring)


def raw_stream(size: int) -> float:
    """Seconds for each packet of `size` bytes that arrived of a stream as fast as it goes."""
    near, far = pair()

    def sending() -> None:
        data, end = bytearray(size), time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            for _ in range(100):
                far.send(data)

    def measuring() -> float:
        room, count = bytearray(size), 0
        near.recv_into(room)
        begun = last = time.perf_counter()
        try:
            while True:
                near.recv_into(room)
                count += 1
                last = time.perf_counter()
        except TimeoutError:
            return (last - begun) / count

    return beside(sending, measuring)


def raw(kind: str, size: int) -> float:
    if kind == "latency":
        return raw_latency(size) if size <= DATAGRAM_MAX else float("nan")
    if kind == "rate":
        return raw_stream(size)
    return raw_stream(PACKET) * size / PACKET


def fabric(name: str, size: int) -> float:
    """Seconds one way, by libfabric's own program; nan where there is no such measurement."""
    provider, endpoint = FABRIC[name]
    if endpoint == "dgram" and size > FABRIC_DATAGRAM:
        return float("nan")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = ["fi_pingpong", "-d", "lo", "-p", provider, "-e", endpoint]
    words += ["-I", str(TRANSFERS), "-S", str(size)]
    server = subprocess.Popen([*words, "-B", port], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.3)  # until it listens
        client = [*words, "-P", port, "127.0.0.1"]
        done = subprocess.run(client, capture_output=True, text=True, check=True, timeout=PATIENCE)
        server.wait(PATIENCE)
    finally:
        server.kill()
        server.wait()
    heading, row = done.stdout.splitlines()[-2:]
    return float(dict(zip(heading.split(), row.split(), strict=True))["usec/xfer"]) / 1e6


def ours(kind: str, btl: str, tree: Path | None = None) -> dict[int, float]:
    """Seconds by size, of one round of `ompy bench`."""
    sizes = ",".join(map(str, SIZES[kind]))
    command = [BIN / "ompy", "bench", kind, "--rounds", "1", "--json", "--sizes", sizes]
    command += ["--mca", "btl", f"self,{btl}"]
    environment = {**os.environ, **({"PYTHONPATH": str(tree.resolve())} if tree else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows = json.loads(done.stdout)["rows"]
    return {int(row["label"]): row["seconds"][0] for row in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(SIZES))
    parser.add_argument("--tree", type=Path, help="a compiled tree")
    options = parser.parse_args()
    tree: Path | None = options.tree
    seconds: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    kinds = options.only.split(",")
    installed = shutil.which("fi_pingpong") is not None
    others = {kind: list(FABRIC) if installed and kind == "latency" else [] for kind in SIZES}
    runs = {btl: (btl, None) for btl in BTLS} | ({COMPILED: ("usnic", tree)} if tree else {})
    for _ in range(options.rounds):
        for kind in kinds:
            for size in SIZES[kind]:
                seconds[kind, size, RAW].append(raw(kind, size))
                if kind == "latency":
                    polled = raw_polled(size) if size <= DATAGRAM_MAX else float("nan")
                    seconds[kind, size, POLLED].append(polled)
                for name in others[kind]:
                    seconds[kind, size, name].append(fabric(name, size))
            for name, (btl, where) in runs.items():
                for size, time_taken in ours(kind, btl, where).items():
                    seconds[kind, size, name].append(time_taken)
    day = datetime.now(UTC).date().isoformat()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{day}, {machine}; {options.rounds} rounds; load averages at the end {load}.")
    for kind in kinds:
        polled = [POLLED] if kind == "latency" else []
        names = [RAW, *polled, *others[kind], *runs]
        show(kind, names, seconds)


def show(kind: str, names: list[str], seconds: Mapping[tuple[str, int, str], list[float]]) -> None:
    """A table."""
    ratios = [
        (mine, bare)
        for mine in ("usnic", COMPILED)
        for bare in (RAW, POLLED)
        if mine in names and bare in names
    ]
    heads = [*names, *(f"{mine} / {bare}" for mine, bare in ratios)]
    print(f"\n| {kind}, {UNITS.get(kind, 'us')}: bytes | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 1) + "|")
    for size in SIZES[kind]:
        shown = {
            name: [figure(kind, str(size), taken) for taken in seconds[kind, size, name]]
            for name in names
        }
        cells = [f"{median(shown[name]):,.1f}" for name in names]
        for mine, bare in ratios:
            turns = zip(shown[mine], shown[bare], strict=True)
            cells.append(f"{median(one / other for one, other in turns):.2f}")
        print(f"| {size:,} | " + " | ".join(cell.replace("nan", "-") for cell in cells) + " |")


if __name__ == "__main__":
    main()
