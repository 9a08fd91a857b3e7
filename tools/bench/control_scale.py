#!/usr/bin/env python3
"""What start, wire-up and end of a job cost the control plane, by ranks: messages, work, memory.

    python tools/bench control_scale [--ranks 16,64,256,1024,4096,10000:20] [--radix 32]

A number of ranks may be followed by how many there are on each host, 16 otherwise. Each rank looks
for the addresses of those that it exchanges messages with in an `Allreduce` by recursive doubling.

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
from ompy.runtime.connections.modex import CardIndex, ModexStore, bundle
from ompy.runtime.machines.agents.agent import HostMachine
from ompy.runtime.machines.agents.relaying import RelayMachine
from ompy.runtime.machines.launcher.job import JobMachine

from tests.support.control_processes import Driven, Process
from tests.support.control_world import LAUNCHER, Agent, Rank, Shape, World, judge
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
        self.partners: dict[int, int] = {}  # how many a rank has looked for
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
        self.bytes_sent: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.ranks: Counter[str] = Counter()  # what ranks hear, by kind
        self.events: Counter[str] = Counter()  # that machines were told, by their kind

    def watch_processes(self) -> Callable[[], None]:
        """Begin. Returns what ends it."""
        send, hear, commit = Driven.send, Driven.hear, Rank._commit  # noqa: SLF001 - a model's
        rank_hear, lookup = Rank._hear, Rank._lookup  # noqa: SLF001
        meter = self

        def sending(
            self: Driven, to: int, kind: Kind, header: Mapping[str, Any], body: bytes = b""
        ) -> None:
            meter.sent[self.name] += 1
            meter.kinds[kind.name] += 1
            meter.bytes_sent[self.name] += len(json.dumps(dict(header))) + len(body)
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
        Rank._lookup = look_for_partners  # type: ignore[method-assign] # noqa: SLF001
        Rank._hear = rank_hearing  # type: ignore[method-assign] # noqa: SLF001

        def end() -> None:
            Driven.send, Driven.hear = send, hear  # type: ignore[method-assign]
            Rank._commit = commit  # type: ignore[method-assign] # noqa: SLF001
            Rank._lookup = lookup  # type: ignore[method-assign] # noqa: SLF001
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


def look_for_partners(self: Rank) -> None:
    """One after the other: those at distances 1, 2, 4, ..."""
    size = len(self.world.job.placements)
    done = self.world.partners.setdefault(self.number, 0)  # type: ignore[attr-defined]
    self.world.partners[self.number] += 1  # type: ignore[attr-defined]
    partner = self.number ^ (1 << done)
    if 1 << (done + 1) < size:
        self._step -= 1  # once more after the answer
    self._call(Kind.LOOKUP, rank=partner if partner < size else 0)


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
        "launcher_bytes_heard": meter.bytes[LAUNCHER],
        "launcher_bytes_sent": meter.bytes_sent[LAUNCHER],
        "agent_bytes_heard": max(meter.bytes[f"agent {host}"] for host in world.agents),
        "events": dict(meter.events),
        "processor_s": round(time.process_time() - begun, 3),
        "virtual_s": round(world.took_s, 3),
        "cards": max(cards_of(agent) for agent in world.agents.values()),
        "index_bytes": index_bytes(world),
    }


def cards_of(agent: Agent) -> int:
    """Of how many ranks an agent has what they published."""
    store: ModexStore = agent.machine._ranks._modex  # noqa: SLF001 - of the product
    return len(store._committed)  # noqa: SLF001


def index_bytes(world: World) -> int:
    """Memory of what the launcher has of all ranks."""
    placements = world.job.placements
    tracemalloc.start()
    index = CardIndex()
    for place in placements:
        index.commit(bundle({place.rank: bytes(PUBLISHED)}), placements)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used


def print_table(rows: list[dict[str, Any]]) -> None:
    """Markdown, per rank where it says so."""
    heads = (
        "ranks", "hosts", "the launcher hears", "it sends", "bytes it hears", "bytes it sends",
        "the busiest agent or relay hears", "a rank hears", "all words",
        "ranks an agent has addresses of", "bytes an agent hears", "processor time, ms",
    )  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows:
        ranks = row["ranks"]
        cells = (
            f"{ranks:,}",
            row["hosts"],
            f"{row['launcher_heard'] / ranks:.1f}",
            f"{row['launcher_sent'] / ranks:.1f}",
            f"{row['launcher_bytes_heard'] / ranks:.0f}",
            f"{row['launcher_bytes_sent'] / ranks:.0f}",
            f"{row['busiest_heard'] / ranks:.1f}",
            f"{sum(row['ranks_heard'].values()) / ranks:.1f}",
            f"{row['messages'] / ranks:.1f}",
            f"{row['cards']:,}",
            f"{row['agent_bytes_heard'] / ranks:.0f}",
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
