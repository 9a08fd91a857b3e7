"""A message as its receiver sees it before its receive: the first fragment."""

from __future__ import annotations

from ompy import raw
from ompy.compiled import U64, ccall, cclass, recycled
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.request import Request
from ompy.frameworks.btl import BtlModule
from ompy.frameworks.btl_base.lent_payload import LentPayload

from ompy_components.pml.ob1.headers import MATCH, MATCH_SIZE, RGET_SIZE, parse_registrations


@cclass
class RemoteMemory:
    """What a RGET says of the sender's memory.

    Attributes:
        module: that it came over, and that can get.
        fragment_id: the sender's, for the FINs.
        address: of the message, in the memory registered there; negative when that begins later.
        handle: of that memory.
        others: names of other rails, each with the handle there.
    """

    address: int
    fragment_id: U64
    handle: bytes
    module: BtlModule
    others: list[tuple[bytes, bytes]]
    __slots__ = tuple(__annotations__)


@recycled
@cclass
class Fragment:
    """A message that arrived before its receive, with its first bytes.

    Attributes:
        kind: header type, MATCH, RNDV or RGET.
        flags: of the header.
        source: sender's rank in the communicator.
        tag: of the message.
        sequence: of the message.
        length: bytes of the whole message.
        sender_request: the sender's request id (RNDV, RGET).
        payload: its first bytes; our own copy once `keep` was called.
        remote: the sender's memory (RGET), or None.
        before, after: its neighbours in the line that it waits in; `Line` sets them.
        after_of_tag: the next one there with the same tag; set where there is an index.
    """

    after: Fragment | None
    after_of_tag: Fragment | None
    before: Fragment | None
    flags: int
    kind: int
    length: int
    payload: bytes | bytearray | memoryview
    remote: RemoteMemory | None
    sender_request: U64
    sequence: int
    source: int
    tag: int
    __slots__ = tuple(__annotations__)

    @ccall
    def keep(self) -> None:
        """Have the payload outlive the BTL's memory that it arrived in."""
        if type(self.payload) is memoryview:
            self.payload = bytes(self.payload)


@ccall
def fragment_of(
    kind: int,
    flags: int,
    source: int,
    tag: int,
    sequence: int,
    length: int,
    sender_request: U64,
    payload: bytes | bytearray | memoryview,
) -> Fragment:
    """A fragment without remote memory. No `__init__`: it costs compiled callers the most."""
    made: Fragment = Fragment.__new__(Fragment)
    made.kind = kind
    made.flags = flags
    made.source = source
    made.tag = tag
    made.sequence = sequence
    made.length = length
    made.sender_request = sender_request
    made.payload = payload
    made.remote = None
    return made


@ccall
def description_of(fragment: Fragment) -> Request:
    """What a probe says of a message, as a completed receive."""
    found: Request = Request.__new__(Request)
    found.reset()
    found.source = fragment.source
    found.tag = fragment.tag
    found.length = found.received = fragment.length
    found.complete = True
    return found


@ccall
def whole_fragment(flags: int, source: int, tag: int, sequence: int, data: memoryview) -> Fragment:
    """A MATCH fragment that its receive was not asked for at once."""
    payload = data[MATCH_SIZE:]
    return fragment_of(MATCH, flags, source, tag, sequence, len(payload), 0, payload)


@ccall
def copied_fragment(flags: int, source: int, tag: int, sequence: int, data: memoryview) -> Fragment:
    """The same, of which the payload outlives the BTL's memory already."""
    length: int = raw.size(data) - MATCH_SIZE
    payload = raw.part(data, MATCH_SIZE, length)
    return fragment_of(MATCH, flags, source, tag, sequence, length, 0, payload)


@ccall
def remote_of(module: BtlModule, data: memoryview) -> RemoteMemory:
    """What a RGET says of the sender's memory."""
    made: RemoteMemory = RemoteMemory.__new__(RemoteMemory)
    made.module = module
    made.fragment_id = raw.word(data, 32)
    made.address = raw.signed_word(data, 40)
    size: int = module.registration_handle_size
    begin: int = RGET_SIZE + size
    end: int = raw.size(data) + min(made.address, 0)
    if end < begin:
        raise MPIError(ERR_INTERN, f"ob1: a RGET ends {begin - end} bytes too early")
    made.handle = raw.part(data, RGET_SIZE, size)
    made.others = parse_registrations(raw.part(data, begin, end - begin)) if end > begin else []
    return made


@ccall
def lent_fragment(
    flags: int, source: int, tag: int, sequence: int, lent: LentPayload
) -> Fragment | None:
    """A MATCH fragment whose payload is read from its sender's memory now; None if that is gone."""
    payload = raw.room(lent.size)
    if not lent.read(memoryview(payload)):
        return None
    return fragment_of(MATCH, flags, source, tag, sequence, lent.size, 0, payload)


@ccall
def kept_fragment(
    flags: int, source: int, tag: int, sequence: int, data: memoryview, lent: LentPayload | None
) -> Fragment | None:
    """A whole message that no receive was posted for; None if its sender has ended."""
    if lent is None:
        return copied_fragment(flags, source, tag, sequence, data)
    return lent_fragment(flags, source, tag, sequence, lent)
