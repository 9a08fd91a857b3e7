"""ob1's identity and parameters."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.frameworks.bml import Bml
from ompy.frameworks.context import RankContext
from ompy.frameworks.pml import API, Pml, PmlComponent
from ompy.mca.parameter import Parameter, Scope, Synonym
from ompy.mca.performance import HIGHEST, LEVEL, PerformanceVariable

WINDOW_MOST: Final = 1 << 24  # arbitrary: far below the 2^31 numbers that can be told apart


class Ob1Component(PmlComponent):
    """The default PML. Defaults: reference openmpi.md 3.9."""

    name: ClassVar[str] = "ob1"
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.pml.ob1.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = ("ompy_components.pml.ob1.module",)
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = (
        PerformanceVariable(
            "messages_sent",
            "Messages that have a number, to this rank and inside collectives too.",
            "messages",
        ),
        PerformanceVariable(
            "messages_received",
            "Messages that came in their order, whether a receive has asked for them or not.",
            "messages",
        ),
        PerformanceVariable(
            "messages_waiting",
            "Sends that wait, as the receiver has not taken enough of those before.",
            "messages",
            LEVEL,
        ),
        PerformanceVariable(
            "rendezvous_sent",
            "Messages of which only the beginning goes before the receiver answers.",
            "messages",
        ),
        PerformanceVariable(
            "rendezvous_received", "Such messages that a receive here has matched.", "messages"
        ),
        PerformanceVariable(
            "unexpected_msgq_length",
            "Messages that are here and that no receive has asked for.",
            "messages",
            LEVEL,
        ),
        PerformanceVariable(
            "unexpected_msgq_highest",
            "The most of these there were, of a look each millisecond, with --pvars only.",
            "messages",
            HIGHEST,
        ),
        PerformanceVariable(
            "match_attempts",
            "Receives and unexpected messages looked at to find those that fit; messages_received "
            "less unexpected_msgq_length if the first always did.",
            "looks",
        ),
        PerformanceVariable(
            "posted_recvq_length", "Receives that no message has matched.", "receives", LEVEL
        ),
        PerformanceVariable(
            "early_messages",
            "Messages that wait for one before them, which goes over another rail.",
            "messages",
            LEVEL,
        ),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "priority",
            "int",
            20,
            "Priority in the selection of a PML.",
            level=9,
            unit="points",
        ),
        Parameter(
            "send_pipeline_depth",
            "int",
            3,
            "Fragments of one message under way at a time in the send/receive pipeline.",
            level=9,
            unit="fragments",
            minimum=1,
        ),
        Parameter(
            "recv_pipeline_depth",
            "int",
            4,
            "Pieces of one message a receiver asks to be put at a time in the RDMA pipeline.",
            level=9,
            unit="pieces",
            minimum=1,
        ),
        Parameter(
            "max_rdma_per_request",
            "int",
            4,
            "Rails one large message is put over at most.",
            level=9,
            unit="rails",
            minimum=1,
        ),
        Parameter(
            "use_all_rdma",
            "bool",
            False,
            "Whether put and get also use rails that are too slow for small messages.",
            level=5,
            scope=Scope.GROUP,
        ),
        Parameter(
            "leave_pinned",
            "string",
            "-1",  # reference openmpi.md 1.11
            "Whether large messages are moved by direct RDMA whatever their size, because memory "
            "stays registered.",
            level=9,
            choices={
                "-1": "as the BTLs advise, which for all of ompy's is no",
                "0": "no",
                "1": "yes",
            },
            synonyms=(Synonym("mpi_leave_pinned"), Synonym("opal_leave_pinned")),
        ),
        Parameter(
            "leave_patience_ms",
            "int",
            5000,  # osc_base/module.py GRACE: much longer than what is under way takes
            "How long nothing new may come of a rank that has finalized or ended, and may still "
            "owe something, until what waits for it fails; a tenth of it where it has died and the "
            "job goes on. Where it is known to owe nothing, that fails at once.",
            level=5,
            unit="ms",
            minimum=1,
        ),
        Parameter(
            "max_send_per_range",
            "int",
            4,
            "Rails one large message is shared out over at most.",
            level=9,
            unit="rails",
            minimum=1,
        ),
        Parameter(
            "message_window",
            "int",
            65536,  # arbitrary: 8 MiB of them at most wait for one that is late
            "Messages to one process that may be under way before it has taken the first of them, "
            "by posted receives or not. The same on all ranks.",
            level=6,
            scope=Scope.ALL_EQ,
            unit="messages",
            minimum=1,
            maximum=WINDOW_MOST,
        ),
        Parameter(
            "unexpected_bytes",
            "size_t",
            128 * 1024 * 1024,  # arbitrary: over a million messages of 8 bytes
            "Bytes of one sender that a process holds at most of messages nobody has received, 64 "
            "for each message among them. What is beyond waits at the sender. 0 for any number.",
            level=5,
            scope=Scope.ALL_EQ,
            unit="bytes",
            minimum=0,
        ),
    )

    def init(self, context: RankContext, bml: Bml) -> Pml:
        """The PML of one rank."""
        from ompy_components.pml.ob1.module import Ob1

        return Ob1(context, bml, self.values)


COMPONENT = Ob1Component()
