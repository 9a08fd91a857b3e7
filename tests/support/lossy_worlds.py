"""Small worlds of ob1 over usnic whose wires lose, double, reorder and damage packets.

A world has a number and is drawn from it: its programs (who sends what to whom, who posts which
receive), limits of the BTL and queues of the NIC, and a fault script. The programs are checked
against the reference matcher: every message once, in order, with all its bytes, and nothing else.

Worlds come in groups that share programs and settings. The first run of a group is dry: nothing
is lost in it, and it tells how many packets each flow has. From those the packets are drawn that
single faults strike, so each of these must strike. Beside them packets suffer by chance, with
rates of the world's *wire*. First numbers lie so that about half of the flows pass 65535.

Ranks are brought up without registry and selection, with the components' own code from there on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Any

from ompy.frameworks.btl import FAILOVER_SUPPORT, PUT, RDMA_COMPLETION, SEND
from ompy.frameworks.context import RankContext
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.scripted import ScriptedFaults
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.btl.self.component import SelfComponent
from ompy_components.btl.usnic.component import UsnicComponent
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.reliability.sequence import WINDOW, distance
from ompy_components.nic.vic.component import VicComponent
from ompy_components.pml.ob1.component import Ob1Component

from tests.property.ob1.test_matching_model import Posted, Sent, compare, run_rank
from tests.support.scripted_world import faults_of
from tests.support.small_programs import draw_programs
from tests.support.small_worlds import SmallProcess, values_of

GROUP = 25  # worlds that share programs and a dry run
DRAWS = 5  # arbitrary: of a world's single faults; the second was enough whenever there was one
WIRES = {  # probabilities in percent: loss, duplicates, reorder, corruption
    "one fault": (0, 0, 0, 0),
    "loss 1 %": (1, 1, 1, 1),
    "loss 5 %": (5, 2, 5, 2),
    "loss 10 %": (10, 10, 10, 10),
    "loss 20 %": (20, 10, 5, 5),
    "loss 30 %": (30, 10, 10, 10),
}
TRAFFIC = {  # ranks, actions of a rank, sizes
    "tiny": (2, 10, (0, 1, 100, 600, 700)),
    "mixed": (2, 8, (0, 100, 700, 1300, 1500, 4000, 9000)),
    "large": (2, 3, (700, 15_000, 30_000)),
    "three ranks": (3, 6, (0, 700, 1500, 6000)),
}
CLASSES = [(traffic, wire) for traffic in TRAFFIC for wire in WIRES]
# what has to have happened in every class, however short the sweep
COUNTERS = (
    "num_resends",
    "num_timeout_retrans",
    "num_dup_recvs",
    "num_replayed_recvs",
    "num_dup_acks",
    "num_window_full",
    "num_crc_errors",
)
KINDS = ("drop", "duplicate", "reorder", "corrupt")
US = 1_000


@dataclass(frozen=True)
class Design:
    """What the worlds of a group have in common."""

    traffic: str
    wire: str
    programs: list[list[Sent | Posted]]
    settings: dict[str, Any]
    depth: int
    window: int
    rails: int

    @property
    def ranks(self) -> int:
        return len(self.programs)


@dataclass
class Outcome:
    """What a world came to.

    Attributes:
        counted: statistics of all modules, summed; and `messages`, `bytes`, `wraps`.
        faults: struck packets by kind of fault.
        packets: numbered packets of each flow, by sender, receiver and rail.
        missed: single faults whose packet never came.
    """

    counted: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    packets: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    missed: list[FaultRule] = field(default_factory=list)


class _Process(SmallProcess):
    """A rank that has ob1, r2, self and usnic, and no more."""

    def __init__(self, context: RankContext, design: Design) -> None:
        context.find_nics = lambda _kind, _name="": _vic(design.depth).devices(context)
        self.usnic: list[UsnicModule] = []
        for module in _usnic(design).init(context):
            assert isinstance(module, UsnicModule)
            module._limits = replace(module._limits, window=design.window)
            self.usnic.append(module)
        modules = [*_self().init(context), *self.usnic]
        super().__init__(context, modules, values_of(Ob1Component))


def _self() -> SelfComponent:
    made = SelfComponent()
    made.values = values_of(made)
    return made


def _vic(depth: int) -> VicComponent:
    made = VicComponent()
    made.values = values_of(made, queue_depth=depth)
    return made


def _usnic(design: Design) -> UsnicComponent:
    made = UsnicComponent()
    made.values = values_of(made, **design.settings)
    return made


# -- drawing


def draw(group: int) -> Design:
    """The programs and settings of a group."""
    traffic, wire = CLASSES[group % len(CLASSES)]
    random = Random(f"group {group}")
    ranks, actions, sizes = TRAFFIC[traffic]
    programs = draw_programs(random, ranks, actions, sizes)
    eager = random.choice((1_000, 4_000, 25 * 1024))
    settings = {
        "connectivity_check": False,
        "eager_limit": eager,
        "max_send_size": random.choice((eager, 3_000, 12_000)),
        "rdma_pipeline_send_length": random.choice((0, eager)),
        "rdma_pipeline_frag_size": random.choice((5_000, 20_000)),
        "flags": random.choice((SEND, SEND | PUT | RDMA_COMPLETION, SEND | FAILOVER_SUPPORT)),
        "all_data_on_data_channel": random.random() < 0.2,
        "prio_sd_num": 32,
        "prio_rd_num": 32,
    }
    depth, window = random.choice((32, 64)), random.choice((3, 5, 9, WINDOW))
    rails = random.choice((1, 1, 1, 2))
    settings["selective_ack"] = random.random() < 0.5
    return Design(traffic, wire, programs, settings, depth, window, rails)


def script(number: int, design: Design, dry: Outcome) -> list[FaultRule]:
    """The faults of a world: some packets by chance, and one of each kind by its number."""
    random = Random(f"world {number}")
    chances = [percent / 100 for percent in WIRES[design.wire]]
    late = {"delay": 50 * US, "jitter": 600 * US}
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("drop", {}),
        ("duplicate", {}),
        ("reorder", late),
        ("corrupt", {"mode": random.choice(("bit", "byte"))}),
    ]
    rules = [
        FaultRule(what, probability=chance, seed=number, **more)
        for (what, more), chance in zip(kinds, chances, strict=True)
        if chance
    ]
    flows = sorted(dry.packets)
    for what, more in kinds if chances[0] else [random.choice(kinds)]:
        sender, receiver, rail = random.choice(flows)
        nth = random.randint(1, dry.packets[sender, receiver, rail])
        rules.append(
            FaultRule(what, ranks=(sender,), peers=(receiver,), rails=(rail,), nth=(nth,), **more)
        )
    return rules


# -- running


@cache
def dry_run(group: int) -> tuple[Design, Outcome]:
    """A group, and what its first run came to."""
    design = draw(group)
    return design, run(design, group, [])


def world(number: int) -> tuple[Design, Outcome]:
    """Run the world of this number.

    Raises:
        AssertionError: a message was lost, doubled, reordered or altered, or a fault never struck.
    """
    design, before = dry_run(number // GROUP)
    for _ in range(DRAWS):
        outcome = run(design, number, script(number, design, before))
        if not outcome.missed:
            return design, outcome
        before = outcome  # with other faults a rail may carry fewer packets
    raise AssertionError(f"never struck, drawn anew {DRAWS} times: {outcome.missed}")


def run(design: Design, seed: int, rules: list[FaultRule]) -> Outcome:
    """Run a world and examine everything."""
    rails = tuple(Rail(f"rail{index}") for index in range(design.rails))
    processes: list[_Process] = []
    faults: list[ScriptedFaults] = []
    random = Random(f"first numbers {seed}")

    def bring_up(context: RankContext, _: object) -> _Process:
        network = context.network
        network.entropy = lambda count: (  # type: ignore[method-assign]
            (65536 - random.randint(1, 60)) & 0xFFFF
        ).to_bytes(count)
        if rules:
            work = faults_of(context, rules, seed=seed)
            network.install(work)
            faults.append(work)
        processes.append(_Process(context, design))
        return processes[-1]

    job = VirtualJob(design.ranks, None, seed=seed, rails=rails, bring_up=bring_up)  # type: ignore[arg-type]
    todo = [lambda process, mine=mine: run_rank(process, mine) for mine in design.programs]
    for rank, found in enumerate(job.run(todo)):  # type: ignore[arg-type]
        compare(rank, design.programs, found)
    outcome = _examine(design, processes)
    for index, rule in enumerate(rules):
        struck = sum(work.delivered[index] for work in faults)
        outcome.faults[rule.what] += struck
        if rule.nth and not struck:
            outcome.missed.append(rule)
    return outcome


def _examine(design: Design, processes: list[_Process]) -> Outcome:
    outcome = Outcome()
    for process in processes:
        pml: Any = process.pml
        assert len(pml.rdma) == len(pml.pending) == 0, "something was left behind"
        assert not pml.sending.requests
        assert not pml.receiving.requests
        for module in process.usnic:
            outcome.counted.update(module.statistics.nonzero())
            rail = module.nic.identity.interface
            for rank, endpoint in module.endpoints.items():
                machine = endpoint.reliability
                machine.check_invariants()
                assert not machine.failure
                assert machine.outstanding == 0
                count = distance(machine.next_sequence, module.isn)
                if count:
                    outcome.packets[process.context.rank, rank, rail] = count
                outcome.counted["wraps"] += machine.next_sequence < module.isn
    sent = [action for program in design.programs for action in program if isinstance(action, Sent)]
    outcome.counted["messages"] += len(sent)
    outcome.counted["bytes"] += sum(action.size for action in sent)
    return outcome
