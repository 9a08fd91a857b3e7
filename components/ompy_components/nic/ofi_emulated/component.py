"""ofi_emulated's identity and parameters."""

from __future__ import annotations

from typing import ClassVar, Final

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import API, Nic, NicComponent, interfaces_for
from ompy.frameworks.nic.clock_parameters import clock_parameters
from ompy.frameworks.nic.fabric import FabricNic
from ompy.mca.component import NotAvailable
from ompy.mca.parameter import Parameter

from ompy_components.nic.ofi_emulated.timings import TIMINGS

OWN: Final = "own"  # the parameter changes nothing


class EmulatedFabricComponent(NicComponent):
    """An emulated libfabric with providers of many ways."""

    name: ClassVar[str] = "ofi_emulated"
    kinds: ClassVar[tuple[type[Nic], ...]] = (FabricNic,)
    version: ClassVar[str] = "0.1.0"
    wire_formats: ClassVar[str] = "ompy_components.nic.ofi_emulated.wire:WIRE"
    api: ClassVar[tuple[int, int]] = API
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter(
            "providers",
            "string",
            "",
            "Providers it has, in this order, separated by commas: emulated, emulated;offset, "
            "emulated;prov_key and others, which its README lists; empty for all.",
            level=2,
        ),
        Parameter(
            "mr_mode",
            "string",
            "",
            "What every provider asks of who registers memory: libfabric's names without FI_MR_, "
            "separated by commas, or `none`; empty: as each provider has it.",
            level=6,
        ),
        Parameter(
            "atomics",
            "string",
            OWN,
            "Whether every provider has atomics.",
            level=6,
            choices={
                OWN: "as each has it",
                "yes": "it has",
                "no": "it has none",
                "claimed": "it says so and cannot",
            },
        ),
        Parameter(
            "delivery_complete",
            "string",
            OWN,
            "What FI_DELIVERY_COMPLETE does with every provider.",
            level=6,
            choices={
                OWN: "as each has it",
                "honoured": "work is complete when the peer's memory has it",
                "ignored": "work is complete when it is sent, whatever was asked for",
                "unsupported": "there is no info for who asks for it",
            },
        ),
        Parameter(
            "inject_size",
            "size_t",
            4096,  # reference ofi.md C1, shm
            "Bytes that can be sent by inject.",
            level=5,
            unit="bytes",
            minimum=0,
        ),
        Parameter(
            "tx_size",
            "int",
            1024,  # reference ofi.md C1, shm
            "Transmits of a context that may be under way; what is more is refused with EAGAIN.",
            level=5,
            unit="work entries",
            minimum=1,
        ),
        Parameter(
            "rx_size",
            "int",
            1024,  # reference ofi.md C1, shm
            "Receives of a context that may be posted, and messages that may wait for one.",
            level=5,
            unit="work entries",
            minimum=1,
        ),
        Parameter(
            "tx_contexts",
            "int",
            16,  # reference ofi.md C1, sockets
            "Contexts of a scalable endpoint at most; with 1 there are no scalable endpoints.",
            level=5,
            unit="contexts",
            minimum=1,
            maximum=1024,
        ),
        Parameter(
            "max_message",
            "size_t",
            1 << 40,  # arbitrary: unlimited, as reference ofi.md C1 has it
            "Bytes of one message or transfer.",
            level=6,
            unit="bytes",
            minimum=1,
            maximum=1 << 40,
        ),
        Parameter(
            "cq_depth",
            "int",
            65_536,  # arbitrary: more than the contexts of one endpoint can have under way
            "Completions that a queue has room for at most; a full one overflows.",
            level=6,
            unit="completions",
            minimum=1,
        ),
        Parameter(
            "again_every",
            "int",
            0,
            "Every nth transmit is refused with EAGAIN once (from 2 on); 0: none is.",
            level=7,
            unit="posts",
            minimum=0,
        ),
        Parameter(
            "completion_delay_us",
            "int",
            0,
            "How long after its end the completion of work can be read.",
            level=7,
            unit="us",
            minimum=0,
        ),
        Parameter(
            "ack_timeout_ms",
            "int",
            100,  # arbitrary: as btl/usnic's packets are in doubt after
            "How long a peer may be silent while something is under way to it before the hosts' "
            "agents are asked whether the path still works; 0: they never are.",
            level=5,
            unit="ms",
            minimum=0,
        ),
        Parameter(
            "handshake_timeout_ms",
            "int",
            5000,  # arbitrary, as btl/tcp's: far beyond a round trip
            "How long a connection may take to be made, and then, once let in, to prove that it "
            "belongs to the job.",
            level=6,
            unit="ms",
            minimum=1,
        ),
        *clock_parameters(*TIMINGS),
    )

    def devices(self, context: RankContext) -> list[Nic]:
        """One for all interfaces; loopback alone when the whole job is on this host."""
        from ompy_components.nic.ofi_emulated.choice import chosen
        from ompy_components.nic.ofi_emulated.device import EmulatedFabric

        values = self.values
        if values.again_every == 1:
            raise NotAvailable("nic_ofi_emulated_again_every is 1: nothing could ever be sent")
        return [EmulatedFabric(context, interfaces_for(context), chosen(values), values)]


COMPONENT = EmulatedFabricComponent()
