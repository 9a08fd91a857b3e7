"""gni's identity and parameters."""

from __future__ import annotations

from typing import ClassVar

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import API, Nic, NicComponent
from ompy.frameworks.nic.clock_parameters import clock_parameters
from ompy.frameworks.nic.gni import GniNic
from ompy.mca.parameter import Parameter

from ompy_components.nic.gni.timings import ALL


class GniComponent(NicComponent):
    """An emulated Gemini NIC and an emulated Aries NIC."""

    name: ClassVar[str] = "gni"
    kinds: ClassVar[tuple[type[Nic], ...]] = (GniNic,)
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "registrations",
            "int",
            128,  # arbitrary: seed gasnet says that there are few
            "Pieces of memory a rank may have registered at a time.",
            level=5,
            unit="registrations",
            minimum=1,
            maximum=4096,
        ),
        Parameter(
            "posts",
            "int",
            1024,  # arbitrary: more than GASNET_GNI_NUM_PD, which limits them first
            "Posts of a rank that may be under way; another one is refused for the moment.",
            level=6,
            unit="posts",
            minimum=1,
        ),
        Parameter(
            "ring_slots",
            "int",
            64,  # arbitrary: as btl_sm_ring_slots
            "Entries of the ring from one rank of a host to another.",
            level=6,
            unit="entries",
            minimum=2,
        ),
        Parameter(
            "message_size",
            "int",
            1008,  # arbitrary: with its header a kibibyte, more than a GASNet medium needs
            "Bytes of a short message at most.",
            level=5,
            unit="bytes",
            minimum=128,  # seed gasnet: messages of the shared message queue have up to 128
        ),
        Parameter(
            "fabric",
            "string",
            "ofi_emulated",
            "NIC component with a fabric that carries what goes to other hosts.",
            level=6,
        ),
        Parameter(
            "msgq_on_host",
            "bool",
            False,
            "Have the shared message queue lead to ranks of the own host too, which the real one "
            "does not.",
            level=6,
        ),
        Parameter(
            "late",
            "int",
            0,
            "Of a hundred effects on memory, messages and events, how many come later than they "
            "have to: to see what memory ordering is for.",
            level=4,
            unit="percent",
            minimum=0,
            maximum=90,  # with all of them late nothing would come
        ),
        Parameter(
            "refuse_every",
            "int",
            0,
            "Have every so manieth post, message and registration refused for the moment; 0: none.",
            level=6,
            unit="calls",
            minimum=0,
        ),
        Parameter(
            "fail",
            "int",
            0,
            "Of a hundred posts, how many end with TRANSACTION_ERROR and are not done, drawn by "
            "chance.",
            level=6,
            unit="percent",
            minimum=0,
            maximum=100,
        ),
        Parameter(
            "refuse",
            "int",
            0,
            "Of a hundred posts, messages and registrations, how many are refused for the moment, "
            "drawn by chance.",
            level=6,
            unit="percent",
            minimum=0,
            maximum=90,  # with all of them refused nothing would go on
        ),
        *clock_parameters(*ALL),
    )

    def devices(self, context: RankContext) -> list[Nic]:
        """One of each generation."""
        from ompy_components.nic.gni.device import GniDevice
        from ompy_components.nic.gni.generations import GENERATIONS

        return [GniDevice(context, generation, self.values) for generation in GENERATIONS]


COMPONENT = GniComponent()
