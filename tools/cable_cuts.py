#!/usr/bin/env python3
"""A rail is cut while a job runs over two: how long the program pauses, and what comes after.

    python tools/cable_cuts.py --cuts 200
    python tools/cable_cuts.py --cuts 5 --kind reset,hole --program allreduce

Two hosts of `tools/lab` with two tcp rails of 1 Gbit/s each (tbf), `--mca pml bfo`, a new job for
each cut. Kinds: `reset` (the connection is reset: an error callback), `link` (the carrier goes at
one end), `hole` (both directions lose everything, and nobody says so). Programs: `allreduce`, a
loop of small ones, whose longest round is the pause; `transfer`, messages of 1 GB, where the
pause is what the report says, and the goodput of the message after the one that was cut is compared
with that of a job that had only the other rail. Every value received is checked. Then the rail is
healed; the time until it carries again is taken from the kernel's counters. A transfer uses it
from the next message on.

Prints Markdown; goes on where an earlier run at the same commit stopped. Needs root, iproute2,
openssh-server and nftables.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

from sweep import ROOT, commit_name

sys.path.insert(0, str(ROOT / "tools" / "lab"))
from laboratory import Laboratory

NAME: Final = "cuts"
RUN: Final = [sys.executable, "-m", "ompy.cli.run"]
KINDS: Final = ("reset", "link", "hole")
PROGRAMS: Final = ("allreduce", "transfer")
RATE: Final = "1gbit"  # so that the rails are the limit and not the processor
DOWN_SECONDS: Final = 2.0  # arbitrary: long against every verdict
PATIENCE: Final = 120  # s; arbitrary: far beyond what anything here takes
BACK_MAX: Final = 10.0  # s; arbitrary: ten times what is promised
CARRIES: Final = 5_000  # bytes; arbitrary: more than probes and a handshake in two seconds
ALLREDUCE: Final = """
import sys, time
from array import array
from os.path import exists
from mpi4py import MPI
comm = MPI.COMM_WORLD
mine, total = array("d", [0, 0]), array("d", [0, 0])
for _ in range(10):  # now both rails are connected
    comm.Allreduce(mine, total)
print("begun", flush=True)
last, turn = time.monotonic(), 0
while total[1] == 0:
    mine[0], mine[1] = turn, exists(sys.argv[1])
    comm.Allreduce(mine, total)
    now = time.monotonic()
    if now - last > 0.002 and comm.rank == 0:
        print("pause", now, now - last, flush=True)
    assert total[0] == comm.size * turn, (turn, total)
    last, turn = now, turn + 1
"""
TRANSFER: Final = """
import sys, time, zlib
from os.path import exists
from mpi4py import MPI
comm = MPI.COMM_WORLD
size = int(sys.argv[2])
data = bytearray(range(251)) * (size // 251)
told = bytearray(1)
expected = zlib.crc32(data)
for _ in range(10):  # now both rails are connected
    comm.Bcast(told, 0)
    comm.Barrier()
print("begun", flush=True)
while not told[0]:
    told[0] = exists(sys.argv[1])
    comm.Bcast(told, 0)
    begun = time.monotonic()
    if comm.rank == 0:
        comm.Send(data, 1)
    else:
        room = bytearray(len(data))
        comm.Recv(room, 0)
        print("message", begun, time.monotonic(), len(data), flush=True)
        assert zlib.crc32(room) == expected
"""


class Job:
    """A job that runs, and what it has said so far."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], said: Path) -> None:
        self._said = said
        with said.open("w") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )

    def rows(self, word: str) -> list[tuple[float, ...]]:
        """The numbers of the lines that begin with a word."""
        whole = self._said.read_text().rpartition("\n")[0]
        lines = [line.split() for line in whole.splitlines()]
        return [tuple(map(float, line[1:])) for line in lines if line and line[0] == word]

    def wait_for(self, word: str, count: int = 1) -> None:
        """Until so many lines begin with a word."""
        deadline = time.monotonic() + PATIENCE
        while len(self.rows(word)) < count:
            assert self._process.poll() is None, self.end()
            assert time.monotonic() < deadline, f"no {word} in {PATIENCE} s: {self.end()}"
            time.sleep(0.02)

    def end(self) -> str:
        """Wait for its end; what it wrote to standard error."""
        try:
            _, errors = self._process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            raise
        assert self._process.returncode == 0, errors
        return errors


class Cuts:
    """One laboratory with two hosts and two rails."""

    def __init__(self, size: int) -> None:
        self._lab = Laboratory(NAME)
        self._size = size

    @contextmanager
    def up(self) -> Iterator[None]:
        """As long as it is there."""
        self._lab.up(2, 2)
        try:
            for host in ("h1", "h2"):
                for rail in ("rail1", "rail2"):
                    self._lab.rate(host, rail, RATE)
            yield
        finally:
            self._lab.down()

    def trial(self, program: str, kind: str, seed: int) -> dict[str, Any]:
        """One job and one cut; raises AssertionError when the job does not do what it should."""
        chance = random.Random(f"{program} {kind} {seed}")  # noqa: S311 - chance is the point
        rail = chance.choice(("rail1", "rail2"))
        with tempfile.TemporaryDirectory() as folder:
            stop, report = Path(folder, "stop"), Path(folder, "rails.json")
            job = self._start(program, stop, ["--report-rails", str(report)], "10.77.0.0/16")
            try:
                job.wait_for("begun")
                time.sleep(chance.uniform(0.3, 1.5))
                cut = time.monotonic()
                self._break(kind, rail, chance.choice(("h1", "h2")), on=True)
                if program == "transfer":  # the one that was cut, and one more
                    job.wait_for("message", 2 + len(job.rows("message")))
                else:
                    time.sleep(DOWN_SECONDS)
                before = self._received("h2", rail)
                healed = time.monotonic()
                self._break(kind, rail, "", on=False)
                back = self._wait_until_it_carries("h2", rail, before, healed)
            finally:
                stop.touch()
                errors = job.end()
            assert back, f"{rail} carried nothing {BACK_MAX} s after it was healed: {errors}"
            events = json.loads(report.read_text())["rails"]
            return self._figures(program, job, events, cut, healed, back)

    def alone(self) -> float:
        """Bytes per second of a job that has only the second rail."""
        with tempfile.TemporaryDirectory() as folder:
            stop = Path(folder, "stop")
            job = self._start("transfer", stop, [], "10.77.2.0/24")
            job.wait_for("message", 3)
            stop.touch()
            job.end()
            return median(size / (end - begun) for begun, end, size in job.rows("message"))

    def _start(self, program: str, stop: Path, options: Sequence[str], networks: str) -> Job:
        text = ALLREDUCE if program == "allreduce" else TRANSFER
        words = [*RUN, "--host", "h1:1,h2:1", "--mca", "pml", "bfo", "--mca", "btl", "self,tcp"]
        words += ["--mca", "btl_tcp_if_include", networks, *options]
        words += [sys.executable, "-c", text, str(stop), str(self._size)]
        environment = {**os.environ, **self._lab.environment()}
        return Job(self._lab.command("h1", words), environment, stop.with_name("said"))

    def _break(self, kind: str, rail: str, host: str, *, on: bool) -> None:
        """Cut a rail at one host, or at all of them (`hole`); or undo it, wherever it was cut."""
        for each in ("h1", "h2") if not on or kind == "hole" else (host,):
            if kind == "reset":
                self._lab.refuse(each, rail, "on" if on else "off")
            elif kind == "hole":
                self._lab.loss(each, rail, "100" if on else "0")
            elif on:
                self._lab.cut(each, rail)
            else:
                self._lab.heal(each, rail)

    def _wait_until_it_carries(self, host: str, rail: str, before: int, since: float) -> float:
        """Seconds from `since` until the rail brings this host messages; 0: it does not."""
        while time.monotonic() - since < BACK_MAX:
            if self._received(host, rail) - before > CARRIES:
                return time.monotonic() - since
            time.sleep(0.01)
        return 0.0

    def _received(self, host: str, rail: str) -> int:
        """Bytes a host has received over a rail, as its kernel counts."""
        for pid in self._lab.processes(host):
            try:
                lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
            except OSError:
                continue
            for line in lines:
                name, _, counts = line.partition(":")
                if name.strip() == rail:
                    return int(counts.split()[0])
        raise AssertionError(f"nothing runs on {host}")

    def _figures(
        self,
        program: str,
        job: Job,
        events: list[dict[str, Any]],
        cut: float,
        healed: float,
        back: float,
    ) -> dict[str, Any]:
        assert events, "no rail event was told"
        found: dict[str, Any] = {
            "back": back,
            "messages": sum(event["messages"] for event in events),
        }
        if program == "allreduce":
            spans = [took for end, took in job.rows("pause") if cut < end < healed]
            found["pause"] = max(spans, default=0.002)
        else:
            found["pause"] = max(event["pause_ns"] for event in events) / 1e9
            during = [row for row in job.rows("message") if row[0] > cut and row[1] < healed]
            found["goodput"] = [size / (end - begun) for begun, end, size in during]
        return found


def table(trials: Sequence[dict[str, Any]], alone: float) -> list[str]:
    """Markdown."""
    heads = (
        "program",
        "cut",
        "times",
        "pause, ms: p50, p99, longest",
        "carries again, ms: p50, p99",
    )
    rows = [f"| {' | '.join(heads)} | goodput of one rail |", "|---" * 6 + "|"]
    for program, kind in dict.fromkeys((trial["program"], trial["kind"]) for trial in trials):
        here = [t for t in trials if (t["program"], t["kind"]) == (program, kind)]
        pauses = [1000 * trial["pause"] for trial in here]
        backs = [1000 * trial["back"] for trial in here]
        rates = [rate for trial in here for rate in trial.get("goodput", ())]
        goodput = f"{median(rates) / alone:.2f}" if rates and alone else "-"
        rows.append(
            f"| {program} | {kind} | {len(here)} | {median(pauses):.0f}, {_p99(pauses):.0f}, "
            f"{max(pauses):.0f} | {median(backs):.0f}, {_p99(backs):.0f} | {goodput} |"
        )
    return rows


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    found.add_argument("--cuts", type=int, default=200, help="of each kind, for each program")
    found.add_argument("--kind", default=",".join(KINDS))
    found.add_argument("--program", default=",".join(PROGRAMS))
    found.add_argument("--size", type=int, default=1_000_000_000, help="bytes of a message")
    return found


def main() -> None:
    options = parser().parse_args()
    kept = ROOT / "build" / f"cable-cuts-{commit_name()}.jsonl"
    kept.parent.mkdir(exist_ok=True)
    trials = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(trial["program"], trial["kind"], trial["seed"]) for trial in trials}
    cuts = Cuts(options.size)
    with cuts.up():
        for program in options.program.split(","):
            for kind in options.kind.split(","):
                for seed in range(options.cuts):
                    if (program, kind, seed) in done:
                        continue
                    told = {"program": program, "kind": kind, "seed": seed}
                    told.update(cuts.trial(program, kind, seed))
                    trials.append(told)
                    with kept.open("a") as file:
                        print(json.dumps(told), file=file)
        alone = cuts.alone() if "transfer" in options.program else 0.0
    print(*table(trials, alone), sep="\n")


if __name__ == "__main__":
    main()
