"""What the conduit tells the rank's trace. Whoever calls has looked at `trace.active` first.

Messages from one rank to another arrive in the order they were sent, whatever carries them, so both
sides count them alike: `am` is a message's number among those from its sender to its receiver, and
nothing of it goes over the wire. In PAR mode two threads that handle messages of one peer at the
same time may count them in the other order.

Events, and their fields besides `peer`:

    AMRequestShort, ...   am, handler, arguments, size, way; offset, packed of a LONG; credits left
    HANDLER, RETURN       am, request: the handler of that message of the peer begins, has returned
    CREDIT                what, count, left: taken; stall where there is none; replied: back with a
                          reply; back: otherwise; at the other side sent, banked
    PUT, GET, ATOMIC      op: number of the operation in this rank; offset, size, way
    FMA_PUT, BTE_GET, ... op, post, offset, size, place; lead: bytes of a get that nobody wanted
    FMA_AMO, FMA_FAMO     op, post, offset, size, place: what an atomic computes; FAMO: and fetches
    DONE, FAILED          op, post: the completion of a post was taken
    STALL                 what: no descriptor, bounce buffer or registration; without a peer

`core/ompy/trace/operations.py` makes operations of them.
"""

from __future__ import annotations

from _thread import get_ident
from itertools import count
from typing import TYPE_CHECKING, Final

from ompy_components.conduit.gni import headers
from ompy_components.conduit.gni.headers import Command

if TYPE_CHECKING:
    from ompy.trace.sink import Trace

    from ompy_components.conduit.gni.rdma.descriptors import Descriptor
    from ompy_components.conduit.gni.rdma.transfer_choice import Place

# reference gasnet.md 1: GASNet's own names of the calls
NAMES: Final = {
    Command.SHORT_REQUEST: "AMRequestShort",
    Command.SHORT_REPLY: "AMReplyShort",
    Command.MEDIUM_REQUEST: "AMRequestMedium",
    Command.MEDIUM_REPLY: "AMReplyMedium",
    Command.LONG_REQUEST: "AMRequestLong",
    Command.LONG_REPLY: "AMReplyLong",
}
LONGS: Final = (Command.LONG_REQUEST, Command.LONG_REPLY)
# by whether it reads, then by whether it goes by FMA
POSTS: Final = (("BTE_PUT", "FMA_PUT"), ("BTE_GET", "FMA_GET"))


class Tracing:
    """One rank's: counts what has to be told apart, and records.

    Attributes:
        trace: the rank's.
    """

    __slots__ = ("_layer", "_operation", "_operations", "_posts", "_received", "_sent", "trace")

    def __init__(self, trace: Trace, layer: str, size: int) -> None:
        """Record as `layer` for a job of so many ranks."""
        self.trace = trace
        self._layer = layer
        self._sent = [0] * size
        self._received = [0] * size
        self._operations = count(1)
        self._posts = count(1)
        self._operation: dict[int, int] = {}  # by thread, what its posts belong to

    # -- messages

    def sent(self, node: int, message: bytearray, way: str, left: int, *, later: bool) -> None:
        """A message is handed over, behind all earlier ones for `node`.

        Args:
            node: who gets it.
            message: all of it.
            way: what carries it.
            left: credits that are left for its receiver.
            later: it is a LONG_ASYNC.
        """
        read = headers.parse_message(memoryview(message))
        self._sent[node] += 1
        name = NAMES[Command(read.command)] + ("Async" if later else "")
        fields: dict[str, object] = {"peer": node, "am": self._sent[node], "handler": read.handler}
        fields |= {"arguments": len(read.arguments), "size": read.length, "way": way}
        if read.command in LONGS:
            fields |= {"offset": read.offset, "packed": int(bool(read.misc))}
        if name.startswith("AMRequest"):
            fields["credits"] = left
        self.trace.record(self._layer, name, **fields)

    def handling(self, node: int, *, is_request: bool) -> int:
        """A handler begins. Returns the number of its message."""
        self._received[node] += 1
        number = self._received[node]
        self.trace.record(self._layer, "HANDLER", peer=node, am=number, request=int(is_request))
        return number

    def handled(self, node: int, number: int, *, is_request: bool) -> None:
        """It has returned."""
        self.trace.record(self._layer, "RETURN", peer=node, am=number, request=int(is_request))

    def credit(self, what: str, node: int, number: int, left: int = -1) -> None:
        """Credits were taken or missed, have come back, or go back."""
        fields = {"left": left} if left >= 0 else {}
        self.trace.record(self._layer, "CREDIT", peer=node, what=what, count=number, **fields)

    # -- transfers

    def transfer(self, name: str, node: int, offset: int, size: int, way: str) -> None:
        """A put or get begins, of which the posts of this thread are from now on."""
        number = next(self._operations)
        self._operation[get_ident()] = number
        fields = {"op": number, "offset": offset, "size": size, "way": way}
        self.trace.record(self._layer, name, peer=node, **fields)

    def post(self, made: Descriptor, place: Place, *, fma: bool) -> None:
        """A post of the operation that this thread has begun last goes to the NIC."""
        made.operation = self._operation.get(get_ident(), 0)
        made.number = next(self._posts)
        post = made.post
        fields = {"op": made.operation, "post": made.number, "offset": post.remote_address}
        fields |= {"size": len(post.local)}
        if made.is_get:
            fields["lead"] = made.lead
        self.trace.record(
            self._layer, POSTS[made.is_get][fma], peer=made.node, **fields, place=place.value
        )

    def atomic_post(self, made: Descriptor) -> None:
        """The post of an atomic goes to the NIC."""
        made.operation = self._operation.get(get_ident(), 0)
        made.number = next(self._posts)
        post, name = made.post, "FMA_FAMO" if made.is_get else "FMA_AMO"
        fields = {"op": made.operation, "post": made.number, "offset": post.remote_address}
        command = post.command.value if post.command is not None else ""
        self.trace.record(
            self._layer, name, peer=made.node, **fields, size=post.amo_size, place=command
        )

    def done(self, made: Descriptor, *, well: bool = True) -> None:
        """Its completion was taken. One that began before anybody listened is nobody's."""
        if made.number:
            name = "DONE" if well else "FAILED"
            self.trace.record(
                self._layer, name, peer=made.node, op=made.operation, post=made.number
            )

    def stalled(self, what: str) -> None:
        """Something has run out; whoever needs it polls for completions."""
        self.trace.record(self._layer, "STALL", what=what)
