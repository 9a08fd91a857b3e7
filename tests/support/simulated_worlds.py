"""Worlds of `ompy sim` that are drawn: a generated program, a mixture of BTLs, rails and faults.

A world has a number. Its class is the mixture; every mixture of the BTLs that the registry has
comes round in turn, so a new BTL enters by itself. The rest is drawn: ranks, rails, the PML, small
limits, and up to three faults of every kind there is.

In every fifth round the PML is bfo and one of two or three rails dies for good, whatever else
happens to it: nothing may be noticed of that but by the rail report. Over ofi alone there is no
other: it opens one domain, and so one rail.

What has to hold: the simulator itself never fails, no world is stuck, and a program ends well, with
every byte it was sent. Where faults may take the last path between two ranks (`World.spared` says
where they cannot) and one of them has struck, the program may end with MPI's error for a process
that cannot be reached instead. It may also wait for ever, but only for ranks whose paths it has not
lost: that a message cannot be delivered is its sender's to know, and that one may be waiting for
somebody else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from ompy.cli.simulating.past_the_wire import through_memory
from ompy.cli.simulating.sim import make_scenario, preload, sim
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.net.faults.fault_rules import FAULTS, LASTING_FAULTS, STORAGE_FAULTS
from ompy.runtime.simulation.simulated_world import Outcome
from ompy.runtime.simulation.sweep import Trial, attempt

from tests.support.generated_programs import draw_program

TWICE: Final = 20  # arbitrary: every so many worlds one is run again, and has to come out the same
RAISED: Final = "Exception"  # the name of MPI's own
ONE_RAIL: Final = "ofi"  # opens one domain, as Open MPI's does (README of btl/ofi)
FEW: Final = (  # buffers of the NICs: a rank posts all of them at its start, the default's are many
    ("btl_usnic_rd_num", "64"),
    ("btl_usnic_prio_rd_num", "64"),
    ("btl_openib_receive_queues", "P,128,32,24,4:S,2048,64,48,8:S,65536,32,24,8"),
)
# real seconds that a rank may compute: arbitrary, long enough for a machine with other work
PATIENCE: Final = "900"
# virtual time, arbitrary: longer than a kernel repeats itself on a connection (924 s)
LIMIT: Final = "1000s"
WAITS: Final = re.compile(r"^ompy: rank (\d+).*?(?=^ompy: rank |\Z)", re.MULTILINE | re.DOTALL)


class World(NamedTuple):
    """What a number stands for.

    Attributes:
        mixture: its BTLs, without self.
        spared: every two ranks keep a path that no fault is about, and the PML fails over.
        pml: that it has.
        options: of `ompy sim`, without the program.
        program: its source.
    """

    mixture: str
    spared: bool
    pml: str
    options: tuple[str, ...]
    program: str


@cache
def mixtures() -> tuple[str, ...]:
    """Every mixture of our own BTLs that go between hosts."""
    job = make_scenario(parsed(["-n", "1", __file__])).job
    records = [ComponentRecord.from_dict(values) for values in job.mca["components"]]
    names = sorted(
        one.name
        for one in records
        if one.framework == "btl" and one.in_tree and one.name != "self"
        if not through_memory(f"self,{one.name}")
    )
    every = [",".join(some) for n in range(len(names)) for some in combinations(names, n + 1)]
    return tuple(every)


def parsed(words: list[str]) -> dict[str, Any]:
    """The options of `ompy sim`, as its command has them."""
    return dict(sim.make_context("sim", words).params)


def _share(random: Random) -> str:
    return f"probability={random.choice((0.01, 0.05, 0.2))}"


def _begin(random: Random) -> str:
    """When something that lasts begins."""
    if random.random() < 0.6:
        return f"nth={random.randint(1, 80)}"
    return f"from={random.choice((1, 50, 300, 5000, 50_000))}us"


def _while(random: Random) -> str:
    """Begin and end of something that lasts."""
    begin = _begin(random)
    if begin.startswith("nth"):
        return begin + random.choice(("", ",lasts=300us", ",lasts=20ms", ",lasts=3s"))
    return begin + random.choice(("", ",until=60ms", ",until=4s"))


KINDS: Final[dict[str, Callable[[Random], str]]] = {
    "drop": _share,
    "duplicate": _share,
    "reorder": lambda random: f"{_share(random)},delay={random.choice(('50us', '1ms'))}",
    "delay": lambda random: f"{_share(random)},delay={random.choice((1, 20))}ms,jitter=10ms",
    "corrupt": lambda random: f"{_share(random)},mode={random.choice(('bit', 'byte'))}",
    "rate_limit": lambda random: f"rate={random.choice((20, 200))}Mbit/s",
    "slow_receiver": lambda random: f"rate={random.choice((20, 200))}Mbit/s",
    "black_hole": _while,
    "link_down": _while,
    "nic_gone": _begin,
    "work_error": lambda random: f"nth={random.randint(1, 40)},error={random.choice(ERRORS)}",
}
ERRORS: Final = ("EIO", "EREMOTEIO", "EHOSTUNREACH", "EAGAIN")
assert set(KINDS) == set(FAULTS) - set(STORAGE_FAULTS), (
    "a kind of fault that no world is drawn with"
)


def draw(number: int) -> World:
    """The world of a number."""
    turn, place = divmod(number, len(mixtures()))
    mixture = mixtures()[place]
    random = Random(f"world {number}")
    ranks, rails = random.choice((2, 2, 3, 4)), random.choice((1, 2, 2, 3))
    pml = "bfo" if random.random() < 0.7 else "ob1"
    dies = turn % 5 == 0
    if dies:
        pml, rails = "bfo", max(2, rails)
    words = ["-n", str(ranks), "--seed", str(number), "--rails", str(rails)]
    words += ["--patience", PATIENCE, "--limit", LIMIT]
    words += ["--mca", "pml", pml, "--mca", "btl", f"self,{mixture}"]
    for name, value in FEW if turn % 7 else ():
        words += ["--mca", name, value]
    if random.random() < 0.3:
        for name in mixture.split(","):
            words += ["--mca", f"btl_{name}_eager_limit", "1024"]
    struck = "rail0" if random.random() < 0.6 or dies else ""
    deadly = False
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        kind = random.choice(list(KINDS))
        keys = [KINDS[kind](random)]
        if kind == "slow_receiver" or random.random() < 0.7:
            keys.append(f"rank={random.randrange(ranks)}")
        if struck or random.random() < 0.3:
            keys.append(f"rail={struck or f'rail{random.randrange(rails)}'}")
        deadly = deadly or kind in LASTING_FAULTS or kind == "work_error" or not struck
        words += ["--fault", f"{kind}:{','.join(keys)}"]
    if dies:
        kind = random.choice(("black_hole", "link_down", "nic_gone"))
        begin = random.choice((f"nth={random.randint(1, 12)}", "from=1us", "from=100us"))
        words += ["--fault", f"{kind}:{begin},rail=rail0"]
        deadly = True
    others = rails > 1 and mixture != ONE_RAIL
    spared = not deadly or (pml == "bfo" and bool(struck) and others)
    return World(mixture, spared, pml, tuple(words), draw_program(random))


def world(number: int, folder: Path) -> tuple[World, Counter[str]]:
    """Run the world of a number: what it was, and what it counted.

    Args:
        number: of the world.
        folder: where its program is written, and stays.

    Raises:
        AssertionError: it ended as it must not.
        WorldBroke: the simulator failed.
    """
    made = draw(number)
    path = source(folder, number)
    trial = run(made, path)
    outcome = trial.outcome
    raised = trial.signature == ("failed", 1, RAISED) and "MPI_ERR_PROC_FAILED" in outcome.text
    waits = outcome.kind in {"deadlock", "limit"} and not _waits_in_vain(outcome)
    may = not made.spared and any(outcome.delivered)
    fine = outcome.kind == "ended" or (may and (raised or waits))
    assert fine, f"{outcome.kind}: {outcome.text}\n{trial.output}"
    if not number % TWICE:
        again = run(made, path)
        assert again[1:] == trial[1:], f"not the same twice: {outcome}, then {again.outcome}"
    counted = Counter(
        messages=outcome.messages,
        bytes=outcome.bytes,
        struck=sum(outcome.delivered),
        retransmissions=outcome.counters.get("retransmissions", 0),
        broke=len(outcome.rails),
        spared=made.spared,
        raised=raised,
        waits=waits,
    )
    for rule, times in zip(trial.scenario.job.faults, outcome.delivered, strict=True):
        counted[f"fault {rule['what']}"] += times
        counted[f"worlds with {rule['what']}"] = max(
            counted[f"worlds with {rule['what']}"], times > 0
        )
    return made, counted


def _waits_in_vain(outcome: Outcome) -> bool:
    """Whether a rank waits for one that it knows no path leads to, or for anybody."""
    last = {(event["rank"], event["peer"]) for event in outcome.rails if event["last"]}
    for found in WAITS.finditer(outcome.text):
        rank = int(found[1])
        _, _, waits = found[0].partition("waits for\n")
        for lost in [peer for one, peer in last if one == rank]:
            if re.search(
                rf"^ +(receive|probe) from (any rank|rank {lost}) .*MPI_COMM_WORLD", waits, re.M
            ):
                return True
    return False


def source(folder: Path, number: int) -> Path:
    """Where the program of a world is."""
    return folder / f"world-{number}.py"


def run(made: World, path: Path) -> Trial:
    """One world in a process of its own."""
    path.write_text(made.program)
    scenario = make_scenario(parsed([*made.options, str(path)]))
    preload(scenario.job)
    return attempt(scenario)
