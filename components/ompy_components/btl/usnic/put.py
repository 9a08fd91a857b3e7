"""PUT emulation: chunks that go straight into the user's memory at the other side.

A put is a fragment whose packets say where its bytes go: `put_addr` names a registration of the
receiver's, `frag_offset` the place in it. The receiver looks that up for every packet before it
touches anything, and keeps no copy. When all is there, or could not be put there, it answers with
a small fragment under the tag DONE: a put is complete when that is here, so that one which was
refused is told apart from one which was not.

Source: seed usnic (usnic_put, RDMA emulation); the answer is ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import cclass
from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.btl import BAD_PARAM, BTL_OWNERSHIP, REMOTE_WRITE
from ompy.frameworks.btl_base.registration import RegistrationTable

from ompy_components.btl.usnic.headers import DONE, Header
from ompy_components.btl.usnic.packets import Fragment

if TYPE_CHECKING:
    from ompy_components.btl.usnic.endpoint import UsnicEndpoint
    from ompy_components.btl.usnic.module import UsnicModule

DONE_LAYOUT: Final = HeaderLayout("usnic.done", "fragment u32, status i32")
_ANSWER: Final = DONE_LAYOUT.struct
PLACE_MAX: Final = 1 << 32  # reference usnic.md 4: frag_offset has 32 bits


@cclass
class Landing:
    """A put some of whose bytes are here.

    Attributes:
        left: bytes that are not here yet.
        status: 0, or why it could not be done.
    """

    left: int
    status: int
    __slots__ = tuple(__annotations__)

    def __init__(self, size: int) -> None:
        self.left = size
        self.status = 0


class Puts:
    """The puts of one module, as asker and as target.

    Attributes:
        table: what this module has registered.
    """

    def __init__(self, module: UsnicModule) -> None:
        self._module = module
        self.table = RegistrationTable(module.context.rank)

    def start_put(
        self, endpoint: UsnicEndpoint, fragment: Fragment, identity: int, place: int
    ) -> None:
        """Send the bytes of a fragment to a place in memory the peer has registered."""
        fragment.put_address = identity
        fragment.place = place
        fragment.number = endpoint.next_number()
        fragment.accepted = True
        endpoint.asked[fragment.number] = fragment
        self._module.sending.enqueue(endpoint, fragment)

    def land(self, endpoint: UsnicEndpoint, header: Header, data: memoryview) -> None:
        """Put the bytes of a packet, which is new, where they belong."""
        landing = endpoint.landings.get(header.fragment)
        if landing is None:
            landing = endpoint.landings[header.fragment] = Landing(header.total)
        place = self.table.find(header.put_address, header.offset, len(data), REMOTE_WRITE)
        if place is None:
            landing.status = BAD_PARAM
        else:
            place[:] = data
        landing.left -= len(data)
        if landing.left <= 0:
            del endpoint.landings[header.fragment]
            self._answer(endpoint, _ANSWER.pack(header.fragment, landing.status))

    def _answer(self, endpoint: UsnicEndpoint, said: bytes) -> None:
        if not endpoint.path.up:
            return
        answer = self._module.small_fragment(len(said), BTL_OWNERSHIP)
        answer.segment[:] = said
        answer.tag = DONE
        answer.accepted = True
        self._module.sending.enqueue(endpoint, answer)

    def answered(self, endpoint: UsnicEndpoint, said: memoryview) -> None:
        """The peer has said what became of a put."""
        number, status = _ANSWER.unpack(said)
        fragment = endpoint.asked.pop(number, None)
        if fragment is not None:
            self._module.sending.complete(endpoint, fragment, status)
