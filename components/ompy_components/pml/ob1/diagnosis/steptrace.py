"""Records the lettered steps of the protocols. Every method is called only while tracing is on.

`context`, `source` (the sender's rank in that communicator), the receiver and `sequence` name a
message: both sides' events have them.
"""

from __future__ import annotations

from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import BtlModule
from ompy.frameworks.context import RankContext

from ompy_components.pml.ob1.diagnosis.steps import RECEIVE, SEND, letter
from ompy_components.pml.ob1.fragment import Fragment
from ompy_components.pml.ob1.headers import NAMES
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.selection import EAGER_ALLOCATED, Protocol
from ompy_components.pml.ob1.sendrequest import SendRequest

LAYER = "pml.ob1"


class StepTrace:
    """What one rank's trace gets to know of its messages."""

    __slots__ = ("_context", "_trace")

    def __init__(self, context: RankContext) -> None:
        self._context = context
        self._trace = context.trace

    def candidate(
        self, request: SendRequest, protocol: Protocol, rail: Rail, *, at: int = 0
    ) -> None:
        """What the sender chose; `at` is when, 0 for now."""
        self._trace.record_at(
            at or self._trace.clock(),
            LAYER,
            "PROTOCOL",
            side=SEND,
            protocol=protocol.value,
            peer=request.endpoint.proc.rank,
            tag=request.tag,
            size=request.convertor.size,
            rail=self.rail_name(rail.module),
            context=request.context_id,
            source=request.own_rank,
            sequence=request.sequence,
        )

    def decided(self, request: RecvRequest, protocol: Protocol, fragment: Fragment) -> None:
        """What the receiver made of the first fragment."""
        self._trace.record(
            LAYER,
            "PROTOCOL",
            side=RECEIVE,
            protocol=protocol.value,
            peer=request.communicator.procs[request.source].rank,
            tag=request.tag,
            size=request.length,
            first=NAMES[fragment.kind],
            context=request.communicator.context_id,
            source=request.source,
            sequence=request.sequence,
        )

    def posted(self, request: RecvRequest) -> None:
        """A receive waits for its message. With the context, `posted` tells it from others."""
        communicator = request.communicator
        self._trace.record(
            LAYER,
            "POST",
            side=RECEIVE,
            context=communicator.context_id,
            posted=request.posted,
            source=request.wanted_source,
            tag=request.wanted_tag,
            room=request.convertor.size,
        )

    def sender(
        self,
        request: SendRequest,
        event: str,
        *,
        protocol: Protocol | None = None,
        rail: BtlModule | None = None,
        at: int = 0,
        **fields: object,
    ) -> None:
        """A step of the sender.

        Args:
            request: the message.
            event: a header, or one of the events in `steps`.
            protocol: of an eager message; a rendezvous knows its own.
            rail: it went over.
            at: when it began, on the trace's clock; 0 for now.
            fields: what else there is to tell.
        """
        if protocol is None:
            # of the eager protocols the two with a completion have the same letters
            protocol = (request.protocol if request.id else None) or EAGER_ALLOCATED
        if rail is not None:
            fields["rail"] = self.rail_name(rail)
        self._trace.record_at(
            at or self._trace.clock(),
            LAYER,
            event.partition(" ")[0],
            side=SEND,
            step=letter(protocol, SEND, event),
            peer=request.endpoint.proc.rank,
            tag=request.tag,
            context=request.context_id,
            source=request.own_rank,
            sequence=request.sequence,
            **fields,
        )

    def receiver(
        self,
        request: RecvRequest,
        event: str,
        *,
        protocol: Protocol | None = None,
        rail: BtlModule | None = None,
        at: int = 0,
        **fields: object,
    ) -> None:
        """A step of the receiver. The arguments are those of `sender`."""
        protocol = protocol or request.protocol
        assert protocol is not None, "a step comes behind the decision"
        if rail is not None:
            fields["rail"] = self.rail_name(rail)
        self._trace.record_at(
            at or self._trace.clock(),
            LAYER,
            event,
            side=RECEIVE,
            step=letter(protocol, RECEIVE, event),
            peer=request.communicator.procs[request.source].rank,
            tag=request.tag,
            context=request.communicator.context_id,
            source=request.source,
            sequence=request.sequence,
            posted=request.posted,
            **fields,
        )

    def rail_name(self, module: BtlModule) -> str:
        """The module's name, with its number where there are several of that name."""
        namesakes = [other for other in self._context.btls if other.name == module.name]
        if len(namesakes) < 2 or module not in namesakes:
            return module.name
        return f"{module.name}[{namesakes.index(module)}]"
