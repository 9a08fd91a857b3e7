"""Random worlds of GASNet programs: everything is drawn from a number.

The program is `gasnet_generated`'s. Around it are drawn: conduit, way of messages, ranks on one
host, on several, neighbours by shared memory or by the NIC; credits, descriptors, registrations,
cut-overs, bursts, consistency; NICs that refuse and are late, with their clock or without; rails
that are slow and vary; between hosts up to two faults.

What has to hold: a program ends as it says, with all its bytes, and the same number gives the same
world. Where a fault may cost a connection and has struck, the program may instead end with GASNet's
error for a rank that cannot be reached.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from ompy.cli.simulating.sim import make_scenario, preload, sim
from ompy.engine.virtual_engine import RankFailed
from ompy.gasnet import GasnetError, ResourceError
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.faults.fault_script import parse_spec
from ompy.runtime.simulation.sweep import attempt
from ompy.runtime.simulation.virtual_job import Aborted

from tests.support import gasnet_generated
from tests.support.gasnet_transfers import Shape
from tests.support.gasnet_worlds import Ended, Under, each_rank, world_of
from tests.support.scripted_world import install

ROOT: Final = Path(__file__).resolve().parents[2]
KINDS: Final = ("one host", "hosts", "faults")
CLASSES: Final = tuple(
    f"{conduit}, {messages}, {kind}"
    for conduit in ("gemini", "aries")
    for messages in ("smsg", "mailboxes", "neighbours")
    for kind in (KINDS if messages != "neighbours" else ("one host",))
)
TWICE: Final = 50  # every so many worlds one is run again, and has to come out the same
SIMULATED: Final = 250  # every so many the program is run by `ompy sim` as well
LIMIT: Final = 20_000_000_000  # ns of virtual time; a program that is not over then stands still
DEADLY: Final = ("link_down", "nic_gone", "work_error")
# a segment that is dropped comes 200 ms later, which is half a world of polling: so few are
LASTING: Final = ("delay", "reorder", "rate_limit", "slow_receiver", "black_hole")
MILD: Final = (*LASTING * 8, "drop", "corrupt")
UNCAUGHT: Final = f"uncaught {ResourceError.__name__}"
LOST: Final = ("cannot be reached", "failed: ", "could not be put", "ended")


class World(NamedTuple):
    """What a number stands for.

    Attributes:
        name: of its class.
        under: conduit, its parameters and those of the NIC.
        hosts: of each rank.
        rail: between them.
        faults: on it, as they are typed.
        shape: of the program.
    """

    name: str
    under: Under
    hosts: tuple[int, ...]
    rail: Rail
    faults: tuple[str, ...]
    shape: Shape

    @property
    def deadly(self) -> bool:
        """Whether a fault may cost a connection."""
        return any(fault.startswith(DEADLY) for fault in self.faults)


def draw(number: int) -> World:
    """The world of a number; neighbouring ones are of all classes in turn."""
    random = Random(f"world {number}")
    name = CLASSES[number % len(CLASSES)]
    conduit, messages, kind = name.split(", ")
    ranks = random.choice((2, 2, 3, 3, 4))
    hosts = _hosts(random, ranks, kind)
    settings, edges = _settings(random)
    if messages == "smsg":
        settings["message_events"] = random.choice((0, 0, 1, 3))
    settings["pshm"] = messages == "neighbours" or (kind != "one host" and random.random() < 0.5)
    if messages != "neighbours":
        settings["messages"] = messages
    huge = random.random() < 0.01
    shape = gasnet_generated.draw(
        number,
        ranks,
        (*edges, 1 << 20) if huge else edges,
        (1 << 20) + 9 if huge else edges[-1] + 9,
    )
    if kind == "faults" and shape.end == "middle":  # who has ended would break connections, too
        shape = shape._replace(end="return", code=0)
    latency = random.choice((300, 1_000, 1_000, 4_000, 40_000))
    rail = Rail("rail0", latency, random.choice((0, latency // 2, 2 * latency)))
    faults = _faults(random, ranks) if kind == "faults" else ()
    return World(name, Under(conduit, settings, _nic(random)), hosts, rail, faults, shape)


def _hosts(random: Random, ranks: int, kind: str) -> tuple[int, ...]:
    """Hosts of the ranks: one, one each, or some of each."""
    if kind == "one host":
        return (0,) * ranks
    each = random.randint(1, ranks - 1)
    found = [rank // each for rank in range(ranks)]
    if random.random() < 0.3:
        random.shuffle(found)
        first = list(dict.fromkeys(found))
        found = [first.index(host) for host in found]
    return tuple(found)


def _settings(random: Random) -> tuple[dict[str, Any], tuple[int, ...]]:
    """The conduit's, and the sizes near which transfers go another way."""
    settings: dict[str, Any] = {
        "networkdepth": random.choice((1, 1, 2, 3, 12)),
        "pshm_network_depth": random.choice((1, 2, 32)),
        "num_pd": random.choice((1, 2, 5, 512)),
        "memreg": random.choice((0, 1, 2, 16)),
        "mem_consistency": random.choice(("strict", "relaxed", "default")),
        "smsg_burst": random.choice((1, 20)),
        "smsg_peer_burst": random.choice((1, 4)),
        "poll_burst": random.choice((1, 10)),
    }
    small = random.random() < 0.8
    fma, bounce = ((0, 64, 300), (130, 260, 1000)) if small else ((4096,), (8192,))
    edges = {40, 128}
    for way in ("put", "get"):
        settings[f"{way}_fma_rdma_cutover"] = random.choice(fma)
        settings[f"{way}_bounce_register_cutover"] = random.choice(bounce)
        edges |= {settings[f"{way}_{what}_cutover"] for what in ("fma_rdma", "bounce_register")}
    largest = max(settings[f"{way}_bounce_register_cutover"] for way in ("put", "get"))
    settings["bounce_size"] = largest * random.choice((1, 2, 32))
    return settings, tuple(sorted(edges - {0}))


def _nic(random: Random) -> dict[str, Any]:
    return {
        "late": random.choice((0, 0, 10, 50)),
        "refuse": random.choice((0, 0, 5, 30)),
        "ring_slots": random.choice((2, 8, 64)),
        "posts": random.choice((1, 3, 1024)),
        "clock": random.choice((0, 1, 1)),
    }


def _faults(random: Random, ranks: int) -> tuple[str, ...]:
    """One or two, of every kind that connections have."""
    found = []
    for _ in range(random.choice((1, 1, 2))):
        what = random.choice((*random.choice((MILD, DEADLY, DEADLY[:1])), *MILD))
        share = f"probability={random.choice((0.02, 0.2))}"
        keys = {
            "delay": f"{share},delay={random.choice((50, 1000))}us,jitter=200us",
            "drop": f"{share},times=2",  # the segment comes again 200 ms later
            "corrupt": f"{share},times=2",
            "reorder": f"{share},delay=200us",
            "rate_limit": f"rate={random.choice((20, 200))}Mbit/s",
            "slow_receiver": f"rate={random.choice((20, 200))}Mbit/s",
            "black_hole": f"from={random.choice((1, 100, 900))}us,until={random.choice((1, 3))}ms",
            "link_down": f"nth={random.randint(1, 60)},lasts={random.choice((1, 5))}ms",
            "nic_gone": f"nth={random.randint(1, 60)}",
            "work_error": f"nth={random.randint(1, 20)}",
        }.get(what, share)
        at = (
            f",rank={random.randrange(ranks)}"
            if what == "slow_receiver" or random.random() < 0.5
            else ""
        )
        found.append(f"{what}:{keys}{at}")
    return tuple(found)


def world(number: int) -> tuple[World, Counter[str]]:
    """Run the world of a number; what it was, and what was done and counted in it.

    Raises:
        AssertionError: it ended as it must not.
    """
    made = draw(number)
    first = once(made)
    if not number % TWICE:
        assert once(made) == first, "not the same twice"
    counted = first[1]
    if not number % SIMULATED:
        simulate(made)
        counted["simulated"] += 1
    return made, counted


def once(made: World) -> tuple[int, Counter[str]]:
    """One run: when it ended, by the world's clock, and what was counted."""
    counted: Counter[str] = Counter()
    ranks: list[Any] = []

    def program(gasnet: Any) -> None:
        mine = gasnet_generated.Program(gasnet, made.shape)
        ranks.append(mine)
        try:
            mine.run()
        finally:
            counted.update(mine.counted)
            if mine.ready:
                counted.update(gasnet._conduit.counters())  # it may have left

    job = world_of(made.under, made.hosts, seed=made.shape.number, rails=(made.rail,))
    rules = [rule for text in made.faults for rule in parse_spec(text)]
    scripts = install(job, rules, seed=made.shape.number)
    job.scheduler.after(LIMIT, partial(_still, ranks))
    lost = False
    try:
        results = job.run(each_rank(program, made.shape.ranks))
        check(made, results)
    except RankFailed as failed:
        lost = is_loss(failed)
        struck = any(any(script.delivered) for script in scripts)
        if not (made.deadly and struck and lost):
            raise
    counted["lost"] = lost
    for place, rule in enumerate(rules):
        times = sum(script.delivered[place] for script in scripts)
        counted["struck"] += times
        counted[f"fault {rule.what}"] += times
    counted[f"end {made.shape.end}"] += 1
    return job.scheduler.time, counted


def is_loss(failed: RankFailed) -> bool:
    """Whether a rank has failed because a connection did, which GASNet says: also at its end."""
    problem = failed.__cause__
    text = str(problem)
    told = isinstance(problem, GasnetError) or (isinstance(problem, Aborted) and UNCAUGHT in text)
    return told and any(word in text for word in LOST)


def check(made: World, results: Sequence[Any]) -> None:
    """Every rank ended with what the program is to end with."""
    ended = [one.code if isinstance(one, Ended) else 0 for one in results]
    assert ended == [made.shape.code] * len(results), (made.shape.end, made.shape.code, results)


def _still(ranks: Sequence[Any]) -> None:
    """The world has come to its limit."""
    lines = [
        f"rank {one.gasnet.mynode()}: {'; '.join(one.gasnet.waiting())}"
        for one in ranks
        if one.ready
    ]
    raise AssertionError("the world stands still:\n" + "\n".join(lines))


def words(made: World) -> list[str]:
    """The world as `ompy sim` has it: one host or one rank for each, where ranks are in order."""
    own = f"conduit_{made.under.name}"
    found = ["-n", str(made.shape.ranks), "--seed", str(made.shape.number)]
    found += ["--ranks-per-host", str(max(1, made.hosts.count(made.hosts[0])))]
    found += ["--mca", "conduit", made.under.name]
    for name, value in made.under.settings.items():
        found += ["--mca", f"{own}_{name}", str(int(value) if isinstance(value, bool) else value)]
    for name, value in made.under.nic.items():
        found += ["--mca", f"nic_gni_{name}", str(value)]
    for fault in made.faults:
        found += ["--fault", fault]
    return found


SOURCE: Final = """\
import sys
sys.path.insert(0, {root!r})
from ompy import gasnet
from tests.support import gasnet_generated
gasnet_generated.run(gasnet, gasnet_generated.Shape(*{shape!r}))
"""


def simulate(made: World) -> None:
    """The same program in processes of its own, by `ompy sim`.

    Raises:
        AssertionError: it ended as it must not.
    """
    folder = ROOT / "build" / "gasnet-sweep"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"world-{made.shape.number}-{os.getpid()}.py"
    path.write_text(SOURCE.format(root=str(ROOT), shape=tuple(made.shape)))
    scenario = make_scenario(dict(sim.make_context("sim", [*words(made), str(path)]).params))
    preload(scenario.job)
    trial = attempt(scenario)
    may = made.deadly and any(trial.outcome.delivered)
    lost = may and any(word in trial.output + trial.outcome.text for word in LOST)
    fine = trial.outcome.code == made.shape.code or lost
    assert fine, f"ompy sim {path}: {trial.outcome.kind} {trial.outcome.code}\n{trial.output}"
    path.unlink()
