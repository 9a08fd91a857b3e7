#!/usr/bin/env python3
"""What start, wire-up and end of a job cost the control plane, by ranks: messages, work, memory.

    python tools/bench control_scale [--ranks 16,64,256,1024,4096,10000:20] [--radix 32]

A number of ranks may be followed by how many there are on each host, 16 otherwise.

The product's machines (`JobMachine`, `RelayMachine`, `HostMachine`) in a virtual world without
processes; counts are exact, seconds are processor time of the whole world. Writes
docs/figures/control-scale.json and prints the table of docs/what-if.md.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ompy.runtime.connections.control import Kind
from ompy.runtime.connections.modex import ModexStore
from ompy.runtime.machines.agents.agent import HostMachine
from ompy.runtime.machines.agents.relaying import RelayMachine
from ompy.runtime.machines.launcher.job import JobMachine

from tests.support.control_processes import Driven, Process
from tests.support.control_world import LAUNCHER, Rank, Shape, World, judge
from tools.bench.plots.figure import FIGURES

# bytes that a rank publishes with btl self,sm,tcp on a host with one interface; measured
PUBLISHED: Final = 59
RADIX: Final = 32  # plm_base_radix
PER_HOST: Final = 16  # ranks; arbitrary
STRIDE: Final = 1000  # events; arbitrary: between two looks whether all have ended
MACHINES: Final = {"launcher": JobMachine, "relays": RelayMachine, "agents": HostMachine}


class ByHost(list[Process]):
    """Processes, found by their host."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts: dict[int, list[Process]] = {}

    def append(self, process: Process) -> None:
        """One more."""
        super().append(process)
        self.hosts.setdefault(process.host, []).append(process)


class LargeWorld(World):
    """A world whose model does not look at everybody for every message."""

    processes: ByHost
    took_s = 0.0  # to the launcher's end, in virtual time

    def _build(self) -> None:
        self.processes = ByHost()
        super()._build()

    def of_host(self, host: int) -> list[Process]:
        """Those that are alive."""
        return [one for one in self.processes.hosts.get(host, ()) if one.alive]

    def run(self) -> World:
        """To the end of everybody."""
        while self.launcher.alive:
            assert self.clock.step(), "they wait for nothing"
        self.took_s = self.clock.now
        while any(one.alive for one in self.processes):
            for _ in range(STRIDE):
                if not self.clock.step():
                    break
        return self


class Meter:
    """Counts what processes send and hear, and what machines are told."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()  # by process
        self.heard: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()  # heard
        self.kinds: Counter[str] = Counter()
        self.ranks: Counter[str] = Counter()  # what ranks hear, by kind
        self.events: Counter[str] = Counter()  # that machines were told, by their kind

    def watch_processes(self) -> Callable[[], None]:
        """Begin. Returns what ends it."""
        send, hear, commit = Driven.send, Driven.hear, Rank._commit  # noqa: SLF001 - a model's
        rank_hear = Rank._hear  # noqa: SLF001
        meter = self

        def sending(
            self: Driven, to: int, kind: Kind, header: Mapping[str, Any], body: bytes = b""
        ) -> None:
            meter.sent[self.name] += 1
            meter.kinds[kind.name] += 1
            send(self, to, kind, header, body)

        def hearing(self: Driven, who: int, message: tuple[Kind, Mapping[str, Any], bytes]) -> None:
            meter.heard[self.name] += 1
            meter.bytes[self.name] += len(json.dumps(dict(message[1]))) + len(message[2])
            hear(self, who, message)

        def rank_hearing(self: Rank, kind: Kind, header: Mapping[str, Any]) -> None:
            meter.ranks[kind.name] += 1
            rank_hear(self, kind, header)

        def committing(self: Rank) -> None:
            self._calls += 1
            self._say(Kind.COMMIT, {"call": self._calls}, bytes(PUBLISHED))

        handles = {kind: self._count_events(kind, one) for kind, one in MACHINES.items()}
        Driven.send, Driven.hear = sending, hearing  # type: ignore[method-assign]
        Rank._commit = committing  # type: ignore[method-assign] # noqa: SLF001
        Rank._hear = rank_hearing  # type: ignore[method-assign] # noqa: SLF001

        def end() -> None:
            Driven.send, Driven.hear = send, hear  # type: ignore[method-assign]
            Rank._commit = commit  # type: ignore[method-assign] # noqa: SLF001
            Rank._hear = rank_hear  # type: ignore[method-assign] # noqa: SLF001
            for kind, one in MACHINES.items():
                one.handle = handles[kind]  # type: ignore[attr-defined]

        return end

    def _count_events(self, kind: str, machine: Any) -> Any:
        handle = machine.handle

        def counted(self_: Any, event: Any, now: float) -> Any:
            self.events[kind] += 1
            return handle(self_, event, now)

        machine.handle = counted
        return handle


def run_job(ranks: int, per_host: int, radix: int) -> dict[str, Any]:
    """One job from its start to its end."""
    meter, begun = Meter(), time.process_time()
    end = meter.watch_processes()
    try:
        world = LargeWorld(Shape(-(-ranks // per_host), radix, per_host, 1))
        world.run()
    finally:
        end()
    assert judge(world) == "well", "the job has ended well"
    others = {name: count for name, count in meter.heard.items() if name != LAUNCHER}
    busiest = max(others, key=others.__getitem__)
    return {
        "ranks": ranks,
        "hosts": world.shape.hosts,
        "messages": sum(meter.sent.values()),
        "ranks_heard": dict(sorted(meter.ranks.items())),
        "kinds": dict(sorted(meter.kinds.items())),
        "modex_messages": meter.kinds["MODEX"],
        "launcher_heard": meter.heard[LAUNCHER],
        "launcher_sent": meter.sent[LAUNCHER],
        "busiest": busiest,
        "busiest_heard": others[busiest],
        "busiest_bytes": meter.bytes[busiest],
        "events": dict(meter.events),
        "processor_s": round(time.process_time() - begun, 3),
        "virtual_s": round(world.took_s, 3),
        "modex_bytes": modex_bytes(ranks),
    }


def modex_bytes(ranks: int) -> int:
    """Memory of what an agent knows of all ranks."""
    tracemalloc.start()
    store = ModexStore(frozenset(range(1)), ranks)
    for rank in range(ranks):
        store.commit(rank, bytes(PUBLISHED))
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used


def print_table(rows: list[dict[str, Any]]) -> None:
    """Markdown, per rank where it says so."""
    heads = (
        "ranks", "hosts", "words of a rank's agent to it", "words to the launcher, per rank",
        "words to the busiest agent, per rank", "bytes to it, per rank", "all words, per rank",
        "an agent's modex, bytes per rank", "processor time, ms per rank",
    )  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        ranks = row["ranks"]
        cells = (
            f"{ranks:,}",
            row["hosts"],
            f"{sum(row['ranks_heard'].values()) / ranks:.1f}",
            f"{row['launcher_heard'] / ranks:.1f}",
            f"{row['busiest_heard'] / ranks:.1f}",
            f"{row['busiest_bytes'] / ranks:.0f}",
            f"{row['messages'] / ranks:.1f}",
            f"{row['modex_bytes'] / ranks:.0f}",
            f"{row['processor_s'] / ranks * 1e3:.1f}",
        )
        print("|", " | ".join(map(str, cells)), "|")


def main() -> None:
    """Run them, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="16,64,256,1024,4096,10000:20")
    parser.add_argument("--radix", type=int, default=RADIX)
    options = parser.parse_args()
    rows = []
    for words in options.ranks.split(","):
        ranks, _, per_host = words.partition(":")
        rows.append(run_job(int(ranks), int(per_host or PER_HOST), options.radix))
        print(json.dumps(rows[-1]), flush=True)
    said = {"date": str(datetime.now(UTC).date()), "radix": options.radix, "rows": rows}
    (FIGURES / "control-scale.json").write_text(json.dumps(said, indent=1) + "\n")
    print_table(rows)


if __name__ == "__main__":
    main()
