"""sm's identity and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from ompy.frameworks.btl import (
    API,
    GET,
    PUT,
    RDMA_COMPLETION,
    SEND,
    SIZE_MAX,
    BtlComponent,
    BtlModule,
)
from ompy.frameworks.btl_base.btl_parameters import common_parameters
from ompy.frameworks.capabilities import Capabilities
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.component import NotAvailable
from ompy.mca.enumerators import Enumerator
from ompy.mca.parameter import Parameter
from ompy.mca.performance import LEVEL, PerformanceVariable
from ompy.net.base import LinkError
from ompy.net.memory.streaming import STREAM_LEAST

INLINE_MAX: Final = 4096  # reference openmpi.md 3.13: Open MPI's eager limit
# 128 KiB and ob1's largest header. Open MPI's is 4 KiB; measured, compiled, one way, in us, through
# a block and by rendezvous with single copy: 64 KiB 6.8 and 10.5, 128 KiB 11.7 and 14.7, 256 KiB 33
# and 26
EAGER_LIMIT: Final = 128 * 1024 + 64
LEND_LEAST: Final = 12288  # measured: README.md, "Lent messages"
LEND_PATIENCE: Final = 100  # arbitrary: some 10 us
INT_MAX: Final = (1 << 31) - 1  # reference openmpi.md 3.13: a size nothing reaches
# measured: puts of 4 KiB move 0.15 GB/s, of 128 KiB 2.2, of 1 MiB 3.7, from 4 MiB on 4.8;
# reference openmpi.md 3.13: what ofi has
PIPELINE_PIECE: Final = 4 << 20
# reference openmpi.md 3.13: of its words those that work here; numbers as Open MPI's vader has them
SINGLE_COPY: Final = {"cma": 1, "none": 3, "emulated": 4}


class SmComponent(BtlComponent):
    """Reaches the other ranks of the host. Defaults: reference openmpi.md 3.13, sm (5)."""

    name: ClassVar[str] = "sm"
    version: ClassVar[str] = "0.1.0"
    api: ClassVar[tuple[int, int]] = API
    rank_modules: ClassVar[tuple[str, ...]] = (
        "ompy_components.btl.sm.module",
        "ompy_components.btl.sm.endpoint",
        "ompy_components.btl.sm.inbox",
        "ompy_components.btl.sm.lending",
        "ompy_components.btl.sm.lending_choice",
        "ompy_components.btl.sm.pool",
        "ompy_components.btl.sm.remote",
    )
    capabilities: ClassVar[Capabilities] = Capabilities(reach="host", wire="memory")
    grows: ClassVar[bool] = True
    pvars: ClassVar[tuple[PerformanceVariable, ...]] = (
        PerformanceVariable(
            "fragments_sent", "Fragments that were put into the rings of other ranks.", "fragments"
        ),
        PerformanceVariable(
            "fragments_received", "Fragments that were taken out of this rank's rings.", "fragments"
        ),
        PerformanceVariable(
            "fragments_waiting", "Fragments that wait for room in a ring.", "fragments", LEVEL
        ),
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (
        *common_parameters(
            exclusivity=65536,
            eager_limit=EAGER_LIMIT,
            rndv_eager_limit=32 * 1024,
            # measured, between far cores, a message in pieces of 1 MiB in us: 121 with 64 KiB, 107
            # with 128, 105 with 256, 119 with 512; what is sent without a single copy likewise
            max_send_size=256 * 1024,
            latency=1,
            bandwidth=10_000,
            flags=SEND | PUT | GET | RDMA_COMPLETION,
            rdma_pipeline_send_length=INLINE_MAX,
            rdma_pipeline_frag_size=PIPELINE_PIECE,
            min_rdma_pipeline_size=INT_MAX,
            put_limit=SIZE_MAX,
            get_limit=SIZE_MAX,
            put_alignment=1,
            get_alignment=1,
        ),
        Parameter(
            "single_copy_mechanism",
            "int",
            SINGLE_COPY["cma"],
            "How puts and gets move bytes: by one copy of the kernel (cma), for peers with which "
            "it allows that, or in fragments (emulated); or there are none (none): large messages "
            "are sent.",
            level=3,
            unit="mechanism",
            enumerator=Enumerator(SINGLE_COPY),
        ),
        Parameter(
            "split_least",
            "size_t",
            256 * 1024,  # measured: 256 KiB take 28 us instead of 32, 384 KiB 32 instead of 40
            "Messages of so many bytes or more are copied by both ranks, half each, when the "
            "sender waits and every rank has a core; 0 for none.",
            level=5,
            unit="bytes",
        ),
        Parameter(
            "lend_least",
            "size_t",
            LEND_LEAST,
            "Eager messages of so many bytes or more are read by their receiver where they are, in "
            "the sender's memory, if it is in MPI soon enough; 0 for none.",
            level=5,
            unit="bytes",
        ),
        Parameter(
            "lend_patience",
            "int",
            LEND_PATIENCE,
            "How often the sender of such a message looks whether it was read, before it copies it "
            "for later; 0 for ever.",
            level=6,
            unit="looks",
            minimum=0,
        ),
        Parameter(
            "stream_least",
            "size_t",
            STREAM_LEAST,
            "Eager messages of so many bytes or more may be copied past the sender's cache, as "
            "another core reads them next: where copies through it turn out slow, and from 16 KiB "
            "on; 0 for none.",
            level=6,
            unit="bytes",
        ),
        Parameter(
            "inline_max",
            "size_t",
            INLINE_MAX,
            "Fragments of so many bytes, with the header, lie in a record of the ring; longer ones "
            "in a block of the sender's pool.",
            level=6,
            unit="bytes",
            minimum=64,  # arbitrary: more than any header of ob1
            maximum=1 << 20,  # arbitrary: beyond this a block is no slower
        ),
        Parameter(
            "ring_slots",
            "int",
            1024,  # arbitrary: a window of so many messages has room; a few KiB each
            "Small fragments that can be under way from one rank to another at a time; fewer, but "
            "32, where the ranks of a host are many and all their rings would take over 32 MiB.",
            level=6,
            unit="fragments",
            minimum=2,
        ),
        Parameter(
            "free_list_max",
            "int",
            64,  # measured: of a window of 64 messages of 64 KiB each takes 5.5 us with 16, and 4.7
            "Large fragments a rank can have under way at a time.",
            level=6,
            unit="fragments",
            minimum=1,
        ),
    )

    def init(self, context: RankContext) -> list[BtlModule]:
        """One module, when the rank is not alone on its host."""
        here = context.local_procs()
        if context.expects_others:  # it may have company later
            context.wireup.publish("btl.sm", b"1")
        if len(here) < 2:
            return []  # no other rank of the job is on this host
        module = self._module(context, f"btl_sm_{here[0].world}", here, here)
        context.wireup.publish("btl.sm", b"1")
        return [module]

    def bridge(self, context: RankContext, others: Sequence[Proc]) -> list[BtlModule]:
        """One module for the ranks of this host in two worlds."""
        here = context.local_procs()
        there = [proc for proc in others if proc.node == context.me.node]
        if not there:
            return []
        there.sort(key=lambda proc: proc.local_rank)
        both = [*here, *there] if here[0].world < there[0].world else [*there, *here]
        name = f"btl_sm_{both[0].world}_{both[-1].world}"
        return [self._module(context, name, both, there)]

    def _module(
        self, context: RankContext, name: str, members: Sequence[Proc], peers: Sequence[Proc]
    ) -> BtlModule:
        from ompy_components.btl.sm.module import SmModule

        try:
            return SmModule(context, self.values, name, members, peers)
        except LinkError as problem:
            raise NotAvailable(str(problem)) from problem


COMPONENT = SmComponent()
