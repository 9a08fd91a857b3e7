"""What there is a template for, and what differs from kind to kind."""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.frameworks.catalog import CATALOG
from ompy.mca.groups import HOOKS


class Kind(NamedTuple):
    """A kind of component.

    Attributes:
        name: as people type it.
        framework: as in the entry-point group `ompy.FRAMEWORK`.
        noun: what it is in a sentence.
        summary: what the component of the template does, in a sentence.
        kit: class of `ompy.conformance` that judges it.
        module: of the template that has the component.
        target: attribute of that module which the entry point names; empty for the module.
        use: a command that uses it.
        judge: the command that judges it.
        next_steps: what an author does then, a paragraph each.
        others: modules of the template beside that one.
    """

    name: str
    framework: str
    noun: str
    summary: str
    kit: str
    module: str
    target: str
    use: str
    judge: str
    next_steps: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def api(self) -> tuple[int, int]:
        """Version of the contract that templates are written for: today's."""
        contracts = {info.name: info.api for info in (*CATALOG, HOOKS)}
        found = contracts[self.framework]
        assert found is not None, "a framework with components has a contract"
        return found


_COLL = Kind(
    "coll",
    "coll",
    "coll component",
    "Collectives for ompy: an allgather round a ring.",
    "CollConformance",
    "component",
    "COMPONENT",
    "ompy-run -n 4 --mca coll_{name}_priority 100 python PROGRAM",
    "ompy conformance coll {name}",
    (
        "Write `schedule_allreduce`, or another operation of `ompy.frameworks.coll.CollModule`.",
        "Return None from `query` for communicators that your algorithm is no good for.",
        "Make what a user may want to change a parameter.",
    ),
)
_BTL = Kind(
    "btl",
    "btl",
    "BTL component",
    "A BTL for ompy: fragments over UDP, made reliable by a sliding window.",
    "BtlConformance",
    "component",
    "COMPONENT",
    "ompy-run -n 2 --mca btl self,{name} python PROGRAM",
    "ompy conformance btl {name}",
    (
        "Replace the socket by what your BTL is about. The window may stay.",
        "Say in `capabilities` what it promises: the kit tests what is promised, and no more.",
        "Keep `exclusivity` low, so that jobs use it only when they name it.",
    ),
)
_PML = Kind(
    "pml",
    "pml",
    "PML component",
    "A PML for ompy that wraps the selected one, and counts the messages that a rank sends.",
    "PmlConformance",
    "component",
    "COMPONENT",
    "ompy-run -n 2 --mca pml_{name}_enable true python PROGRAM",
    "ompy conformance pml {name} --mca pml_{name}_enable true",
    (
        "Override the calls that you care about: `ompy.frameworks.pml.Pml` has them all.",
        "`send` and `recv` are made of `isend`, `irecv` and `wait`, so you see each message once.",
        "For a PML that needs no other one, derive from `Pml` and `PmlComponent`.",
    ),
)
_OSC = Kind(
    "osc",
    "osc",
    "osc component",
    "Windows for ompy, over messages.",
    "OscConformance",
    "component",
    "COMPONENT",
    "ompy-run -n 2 --mca osc_{name}_priority 200 python PROGRAM",
    "ompy conformance osc {name}",
    (
        "Override an operation, such as `put` or `get`, and hand the rest to `MessageOsc`.",
        "What `put` keeps for later has to be sent by `flush`, `unlock`, `complete` and `fence`.",
        "Return None from `query` for windows that you have nothing for.",
    ),
)
_NIC = Kind(
    "nic",
    "nic",
    "nic component",
    "A network card for ompy, made of sockets: datagrams between queue pairs.",
    "NicConformance",
    "component",
    "COMPONENT",
    "ompy-run -n 2 --mca btl self,usnic --mca btl_usnic_nic {name} python PROGRAM",
    "ompy conformance nic {name}",
    (
        "Replace the sockets by your device, or have them lose, delay or count what passes.",
        "Report what the device does, and decide nothing: BTLs decide which path is dead.",
        "Take clock, chance and network from the `RankContext`, so that a seed decides all.",
    ),
    ("device",),
)
_HOOK = Kind(
    "hook",
    "hooks",
    "package of hooks",
    "Hooks for ompy that write what happens to a job into a file.",
    "HookConformance",
    "hooks",
    "",
    "{variable}=events.txt ompy-run -n 2 python PROGRAM",
    "ompy conformance hooks {name}",
    (
        "Add hooks: `ompy.mca.hookspecs.LifeCycle` has their names and arguments.",
        "Do nothing unless the user asks for it, by a variable or a file: hooks are always on.",
        "Write to standard error or to a file. Standard output is the program's.",
    ),
)
KINDS: Final = {kind.name: kind for kind in (_BTL, _COLL, _HOOK, _NIC, _OSC, _PML)}
