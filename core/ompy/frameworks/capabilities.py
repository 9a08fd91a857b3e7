"""What a BTL says it can do, for who wants to know before a message is sent.

The conformance kit chooses its tests by it. What a module says by its flags (`PUT`, `GET`,
`ATOMIC_OPS`, `FAILOVER_SUPPORT`) is not repeated here.
"""

from __future__ import annotations

from typing import NamedTuple


class Capabilities(NamedTuple):
    """What a BTL promises about its peers and its fragments.

    Attributes:
        reach: whom it can reach: `self` (the own rank), `host` (the other ranks of this host) or
            `network` (ranks of other hosts; of this host too, if it likes).
        wire: what carries the bytes, and so which faults of the virtual world can hit them:
            `memory`, `stream` or `datagram`.
        ordered: the fragments of one endpoint arrive in the order they were sent.
        reliable: every accepted fragment arrives once, whatever the wire drops, repeats or
            reorders.
        checksum: bytes altered on the wire are noticed.
        heals: a path that broke is taken back by itself, once the network carries packets again.
        virtual: it runs in the virtual world.
    """

    reach: str
    wire: str
    ordered: bool = True
    reliable: bool = True
    checksum: bool = False
    heals: bool = False
    virtual: bool = True
