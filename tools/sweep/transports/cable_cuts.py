#!/usr/bin/env python3
"""A rail is cut while a job runs over two: how long the program pauses, and what comes after.

    python tools/sweep cable_cuts                                  200 cuts: an hour, quiet
    python tools/sweep cable_cuts --cuts 10 --kind reset,hole --program allreduce

Two hosts of `tools/lab` with two tcp rails of 1 Gbit/s each (tbf), `--mca pml bfo`, a new job for
each cut; programs and kinds take turns. Kinds: `reset` (the connection is reset: an error
callback), `link` (the carrier goes at one end), `hole` (both directions lose everything, and
nobody says so).

- `allreduce`, a loop of small ones: its longest round is the pause.
- `transfer`, messages of 1 GB, cut in the middle of one (its bytes are seen to move): the pause is
  the time from the cut until what was lost with the rail is under way over the other one, as the
  ranks' report has it, so the finding out is in it. Beside it the longest silence on the rail that
  survives. The goodput of the next message, all of it over one rail, is compared with that of jobs
  that never had more than one, run now and then between the cuts.

Every value received is checked. Then the rail is healed, for a transfer in the middle of a message
too; the time until it carries again is taken from the kernel's counters.

A line on standard error for each cut; then Markdown, with what is promised and what was found. Of
200 cuts or more it is also written to `docs/cable-cuts.md`, and exit code 1 says that a promise was
not kept. What is done is kept in `build/`: a run that was cut off goes
on where it stopped, at the same commit and with the same options. Needs root, iproute2,
openssh-server and nftables.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product
from os import cpu_count
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, NamedTuple

from tools.lab.laboratory import LabError, Laboratory, why_not
from tools.repository import ROOT, commit_name

NAME: Final = "cuts"
RUN: Final = [sys.executable, "-m", "ompy.cli.run"]
FAULTS: Final = {"reset": "refuse", "link": "cut", "hole": "loss"}  # of a laboratory, by kind
KINDS: Final = tuple(FAULTS)
PROGRAMS: Final = ("allreduce", "transfer")
TIMES: Final = ("noticed", "pause", "silence", "back")  # the columns of the table
RATE: Final = "1gbit"  # so that the rails are the limit and not the processor
DOWN_SECONDS: Final = 2.0  # arbitrary: long against every verdict
PATIENCE: Final = 120  # s; arbitrary: far beyond what anything here takes
BACK_MAX: Final = 10.0  # s; arbitrary: ten times what is promised
CARRIES: Final = 5_000  # bytes; arbitrary: more than probes and a handshake in two seconds
MOVING: Final = 20_000_000  # bytes; arbitrary: a message of 1 GB is under way, and far from its end
SAMPLE: Final = 0.002  # s; arbitrary: a tenth of the shortest pause that matters
PROMISED: Final = 200  # cuts; what the project promises
ALONE_EVERY: Final = 25  # cuts between two jobs that have one rail; arbitrary
COLUMNS: Final = """\
*noticed*: from the cut until the first rank gave the rail up. *pause*: how long the program stood
still: of `allreduce` the longest round, of `transfer` the time from the cut until what was lost
with the rail was under way over the other one, finding out included. *silence*: the longest time
after the cut in which nothing came over the rail that survives. *carries again*: from the healing
until bytes come over the rail."""
FIGURES: Final = ROOT / "docs" / "cable-cuts.md"
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
import sys
from os.path import exists
from time import monotonic
from mpi4py import MPI
comm = MPI.COMM_WORLD
size = int(sys.argv[2])
data = memoryview(bytearray(range(251)) * (size // 251 + 2))
room = bytearray(size)
told, turn = bytearray(1), 0
for _ in range(10):  # now both rails are connected
    comm.Bcast(told, 0)
    comm.Barrier()
print("begun", flush=True)
while not told[0]:
    told[0] = exists(sys.argv[1])
    comm.Bcast(told, 0)
    turn += 1  # no byte lies where it lay the last time
    message = data[turn % 251 :][:size]
    begun = monotonic()
    if comm.rank == 0:
        comm.Send(message, 1)
    else:
        comm.Recv(room, 0)
        print("message", begun, monotonic(), size, flush=True)
        assert room == message
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


class Counter:
    """Bytes that a host has received over its rails, as its kernel counts them."""

    def __init__(self, lab: Laboratory, host: str) -> None:
        self._table = Path(f"/proc/{next(iter(lab.processes(host)))}/net/dev")

    def bytes(self, rail: str) -> int:
        """Received over a rail so far."""
        for line in self._table.read_text().splitlines():
            name, _, counts = line.partition(":")
            if name.strip() == rail:
                return int(counts.split()[0])
        raise AssertionError(f"there is no {rail}")

    def wait_for(self, rail: str, count: int) -> None:
        """Until so many more bytes have come."""
        wanted = self.bytes(rail) + count
        assert self.until(rail, wanted, time.monotonic(), PATIENCE), f"{rail} is silent"

    def until(self, rail: str, wanted: int, since: float, most: float = BACK_MAX) -> float:
        """Seconds from `since` until so many have come; 0: they do not in `most` seconds."""
        while time.monotonic() - since < most:
            if self.bytes(rail) > wanted:
                return time.monotonic() - since
            time.sleep(0.01)
        return 0.0

    def silence(self, rail: str, end: float) -> float:
        """The longest time, until `end`, in which nothing came; s."""
        last = now = time.monotonic()
        seen, longest = self.bytes(rail), 0.0
        while now < end:
            time.sleep(SAMPLE)
            count, now = self.bytes(rail), time.monotonic()
            if count != seen:
                longest, last, seen = max(longest, now - last), now, count
        return max(longest, now - last)


class Cuts:
    """One laboratory with two hosts and two rails."""

    def __init__(self, name: str, size: int) -> None:
        self._lab = Laboratory(name)
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
        rail, other = chance.sample(("rail1", "rail2"), 2)
        host = chance.choice(("h1", "h2"))
        with tempfile.TemporaryDirectory() as folder:
            stop, report = Path(folder, "stop"), Path(folder, "rails.json")
            job = self._start(program, stop, ["--report-rails", str(report)], "10.77.0.0/16")
            try:
                job.wait_for("begun")
                counter = Counter(self._lab, "h2")
                hosts = ("h1", "h2") if kind == "hole" else (host,)
                fire = self._lab.arm(FAULTS[kind], hosts, rail)
                self._wait_until_it_moves(program, counter, chance)
                cut = time.monotonic()
                fire()
                took = time.monotonic() - cut
                silence = counter.silence(other, time.monotonic() + DOWN_SECONDS)
                if program == "transfer":  # the one that was cut, one more, and into a third
                    job.wait_for("message", 2 + len([r for r in job.rows("message") if r[1] < cut]))
                    counter.wait_for(other, MOVING)
                before = counter.bytes(rail)
                self._undo(kind, rail)
                healed = time.monotonic()
                back = counter.until(rail, before + CARRIES, healed)
            finally:
                stop.touch()
                errors = job.end()
            assert back, f"{rail} carried nothing {BACK_MAX} s after it was healed: {errors}"
            events = json.loads(report.read_text())["rails"]
            events = [event for event in events if _noticed(event) < healed]
            found = self._figures(program, job, events, cut, healed)
            return {**found, "back": back, "silence": silence, "cut_took": took}

    @staticmethod
    def _wait_until_it_moves(program: str, counter: Counter, chance: random.Random) -> None:
        """Until the middle of what the program does."""
        if program == "transfer":
            counter.wait_for("rail1", MOVING)
            counter.wait_for("rail2", MOVING)
        time.sleep(chance.uniform(0.1, 1.5))

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

    def _undo(self, kind: str, rail: str) -> None:
        """Heal a rail, wherever it was cut."""
        for host in ("h1", "h2"):
            if kind == "reset":
                self._lab.refuse(host, rail, "off")
            elif kind == "hole":
                self._lab.loss(host, rail, "0")
            else:
                self._lab.heal(host, rail)

    def _figures(
        self, program: str, job: Job, events: list[dict[str, Any]], cut: float, healed: float
    ) -> dict[str, Any]:
        assert events, "no rail event was told"
        found: dict[str, Any] = {
            "messages": sum(event["messages"] for event in events),
            "bytes": sum(event["bytes"] for event in events),
            "noticed": min(_noticed(event) for event in events) - cut,
        }
        if program == "allreduce":
            spans = [took for end, took in job.rows("pause") if cut < end < healed]
            found["pause"] = max(spans, default=0.002)
        else:
            ends = [_noticed(each) + each["pause_ns"] / 1e9 for each in events if each["pause_ns"]]
            assert ends, f"nothing was lost in the middle of a message: {events}"
            found["pause"] = max(ends) - cut
            during = [row for row in job.rows("message") if row[0] > cut and row[1] < healed]
            found["goodput"] = [size / (end - begun) for begun, end, size in during]
        return found


def _noticed(event: Mapping[str, Any]) -> float:
    """When, on the machine's monotonic clock, which the hosts of a laboratory share; s."""
    return float(event["began_ns"] + event["noticed_ns"]) / 1e9


def table(trials: Sequence[dict[str, Any]], alone: Sequence[float]) -> list[str]:
    """Markdown. Times in ms: p50, p99 and the longest."""
    heads = ("program", "cut", "times", "noticed", "pause", "silence", "carries again")
    rows = [f"| {' | '.join(heads)} | goodput of one rail |", "|---" * 8 + "|"]
    for program, kind in dict.fromkeys((trial["program"], trial["kind"]) for trial in trials):
        here = [t for t in trials if (t["program"], t["kind"]) == (program, kind)]
        times = [_spread([1000 * trial[key] for trial in here]) for key in TIMES]
        if program == "allreduce":
            times[TIMES.index("silence")] = "-"  # its rounds are its pauses
        rates = [rate for trial in here for rate in trial.get("goodput", ())]
        goodput = f"{median(rates) / median(alone):.3f}" if rates and alone else "-"
        rows.append(f"| {program} | {kind} | {len(here)} | {' | '.join(times)} | {goodput} |")
    return rows


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.0f}, {_p99(values):.0f}, {max(values):.0f}"


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98] if len(values) > 1 else values[0]


class Promise(NamedTuple):
    """What the project promises, and what was found; a floor is a `least`."""

    what: str
    limit: float
    found: float
    least: bool = False

    @property
    def kept(self) -> bool:
        """Whether it was."""
        return self.found >= self.limit if self.least else self.found <= self.limit


def promises(trials: Sequence[dict[str, Any]], alone: Sequence[float]) -> list[Promise]:
    """Those that these cuts say something about; the limits are our own."""
    told = [1000 * trial["pause"] for trial in trials if trial["kind"] != "hole"]
    silent = [1000 * trial["pause"] for trial in trials if trial["kind"] == "hole"]
    rates = [rate for trial in trials for rate in trial.get("goodput", ())]
    found = []
    if told:
        found.append(Promise("pause after an error callback, p99, ms", 50, _p99(told)))
    if silent:
        found.append(Promise("pause after a black hole, p50, ms", 500, median(silent)))
        found.append(Promise("pause after a black hole, p99, ms", 1000, _p99(silent)))
    back = _p99([1000 * trial["back"] for trial in trials])
    found.append(Promise("carries again, p99, ms", 1000, back))
    if rates and alone:
        share = median(rates) / median(alone)
        found.append(Promise("goodput, of one rail's, median", 0.95, share, least=True))
    return found


def judged(found: Sequence[Promise]) -> list[str]:
    """Markdown."""
    rows = ["| promised | limit | found | kept |", "|---" * 4 + "|"]
    for one in found:
        limit = f"{'at least' if one.least else 'at most'} {one.limit:g}"
        verdict = "yes" if one.kept else "**no**"
        rows.append(f"| {one.what} | {limit} | {one.found:.{3 if one.least else 0}f} | {verdict} |")
    return rows


def report(
    trials: Sequence[dict[str, Any]], alone: Sequence[float], commit: str, command: str
) -> str:
    """The page; when and under what load is that of the last cut, whenever it was made."""
    last = trials[-1]
    again = sum(trial["messages"] for trial in trials)
    size = sum(trial["bytes"] for trial in trials)
    lines = [
        "# Rails cut under a running job",
        "",
        f"    {command}",
        "",
        f"{last['date']}, ompy at {commit}, interpreted, {cpu_count()} cores, "
        f"Linux {platform.release()}, Python {platform.python_version()}; load averages at the end "
        f"{', '.join(f'{load:.1f}' for load in last['load'])}. {len(trials)} cuts, every value "
        f"received checked; {again:,} messages or pieces went again, {size:,} bytes. Times in ms: "
        "p50, p99 and the longest, from the cut or, for *carries again*, from the healing. What is "
        "measured stands at the top of the tool.",
        "",
        COLUMNS,
        "",
        *table(trials, alone),
        "",
        *judged(promises(trials, alone)),
        "",
    ]
    if alone:
        rates = ", ".join(f"{rate / 1e6:.1f}" for rate in alone)
        lines += [f"One rail alone, between the cuts: {rates} MB/s.", ""]
    return "\n".join(lines)


def some_of(choices: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """What makes words out of an option's value, and says which there are."""

    def words(text: str) -> tuple[str, ...]:
        found = tuple(text.split(","))
        for word in found:
            if word not in choices:
                known = ", ".join(choices)
                raise argparse.ArgumentTypeError(f"there is no {word!r}; choose from {known}")
        return found

    return words


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    found.add_argument("--cuts", type=int, default=PROMISED, help="in all")
    for name, choices in (("--kind", KINDS), ("--program", PROGRAMS)):
        words = ",".join(choices)
        found.add_argument(name, type=some_of(choices), default=choices, help=f"some of {words}")
    found.add_argument("--size", type=int, default=1_000_000_000, help="bytes of a message")
    found.add_argument("--name", default=NAME, help="of the laboratory")
    return found


def record(options: argparse.Namespace, commit: str) -> Path:
    """Where the cuts of these options are kept, however many they are."""
    words = ["+".join(options.program), "+".join(options.kind), str(options.size), options.name]
    return ROOT / "build" / f"cable-cuts-{commit}-{'-'.join(words)}.jsonl"


def progress(trials: Sequence[dict[str, Any]], cuts: int) -> str:
    """The last cut, in a line."""
    last = trials[-1]
    times = ", ".join(f"{key} {1000 * last[key]:.0f} ms" for key in TIMES)
    return f"{len(trials)} of {cuts}: {last['program']}, {last['kind']}: {times}"


def run(options: argparse.Namespace, kept: Path) -> tuple[list[dict[str, Any]], list[float]]:
    """Make the cuts that an earlier run has not made."""
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    trials = [row for row in rows if "alone" not in row]
    alone = [row["alone"] for row in rows if "alone" in row]
    if rows:
        print(f"{len(trials)} cuts were made before: {kept}", file=sys.stderr)
    if len(trials) >= options.cuts:
        return trials, alone
    kinds = list(product(options.program, options.kind))
    cuts = Cuts(options.name, options.size)

    def keep(row: dict[str, Any]) -> None:
        with kept.open("a") as file:
            print(json.dumps(row), file=file, flush=True)

    with cuts.up():
        while len(trials) < options.cuts:
            program, kind = kinds[len(trials) % len(kinds)]
            if "transfer" in options.program and len(alone) * ALONE_EVERY <= len(trials):
                alone.append(cuts.alone())
                keep({"alone": alone[-1]})
            told = {"program": program, "kind": kind, "seed": len(trials) // len(kinds)}
            found = cuts.trial(program, kind, told["seed"])
            circumstances = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "load": os.getloadavg()}
            trials.append({**told, **found, **circumstances})
            keep(trials[-1])
            print(progress(trials, options.cuts), file=sys.stderr, flush=True)
    return trials, alone


def main() -> None:
    options = parser().parse_args()
    if problem := why_not():
        sys.exit(f"cable_cuts: {problem}")
    commit = commit_name()
    kept = record(options, commit)
    kept.parent.mkdir(exist_ok=True)
    try:
        trials, alone = run(options, kept)
    except LabError as error:
        sys.exit(f"cable_cuts: {error}")
    command = shlex.join(["python", "tools/sweep", "cable_cuts", *sys.argv[1:]])
    page = report(trials, alone, commit, command)
    print(page)
    if len(trials) < PROMISED:
        return  # too few for a p99
    FIGURES.write_text(page)
    sys.exit(0 if all(promise.kept for promise in promises(trials, alone)) else 1)


if __name__ == "__main__":
    main()
