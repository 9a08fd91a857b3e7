"""What an endpoint receives of its module."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ompy.frameworks.btl import ReceiveCallback
    from ompy.frameworks.btl_base.registration import RegistrationTable
    from ompy.net.base import Interface

    from ompy_components.btl.tcp.remote import RemoteMemory
    from ompy_components.btl.tcp.silence import SilenceWatch
    from ompy_components.btl.tcp.sockets import Sockets
    from ompy_components.btl.tcp.traffic import Traffic


class Resources(NamedTuple):
    """What the endpoints of one module share.

    Attributes:
        interface: the module's.
        sockets: serves their connections.
        traffic: counts what waits in their queues.
        registered: memory for puts and gets.
        landing: who is in the middle of receiving into registered memory.
        handlers: who takes fragments, by tag.
        silence: notices that a peer acknowledges nothing.
        kept_max: bytes of fragments that are kept for one peer at most.
    """

    interface: Interface
    sockets: Sockets
    traffic: Traffic
    registered: RegistrationTable
    landing: set[RemoteMemory]
    handlers: list[ReceiveCallback | None]
    silence: SilenceWatch
    kept_max: int
