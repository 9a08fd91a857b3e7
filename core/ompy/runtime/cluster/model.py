"""What a message costs, as a cluster file says it: LogGP, by sizes, and who shares what.

LogGP (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995): latency L, overhead o of a processor for
each message it sends or receives, gap g between two messages of a processor, gap G per byte. Here a
bandwidth is 1/G. Real libraries take other ways for other sizes, so each size has its own numbers.
Pure values: they are shared by all ranks, and imported in their processes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.runtime.cluster.topology import Topology

# how often a rendezvous crosses the way: RNDV, PUT, the bytes, their acknowledgement, FIN;
# measured: ob1 over tcp, with links of 5 and 10 ms
CROSSINGS: Final = 5
CROSSINGS_LEAST: Final = 3  # the envelope, the answer, the bytes


class MessageCosts(NamedTuple):
    """What messages of some sizes cost.

    Attributes:
        begin: bytes from which on this holds.
        latency: ns; L.
        overhead: ns of the processor, once at each end; o.
        gap: ns between two messages that a rank sends; g.
        bandwidth: bytes per ns of one message; 1/G.
        rendezvous: the bytes move only when the receive is posted, and the sender waits for that.
        crossings: how often a rendezvous crosses the links of the way, from end to end.
    """

    begin: int
    latency: int
    overhead: int
    gap: int
    bandwidth: float
    rendezvous: bool
    crossings: int = CROSSINGS


class Way(NamedTuple):
    """How messages go: over the network, or through a host's memory.

    Attributes:
        messages: costs, by rising sizes; the first begins at 0.
        rank_bandwidth: bytes per ns that a rank sends and receives together; 0 for no such limit.
    """

    messages: tuple[MessageCosts, ...]
    rank_bandwidth: float = 0.0

    def costs(self, size: int) -> MessageCosts:
        """Of a message of so many bytes."""
        found = self.messages[0]
        for one in self.messages[1:]:
            if size < one.begin:
                break
            found = one
        return found

    @property
    def port(self) -> float:
        """Bytes per ns that a rank can send, and that it can receive."""
        return max(one.bandwidth for one in self.messages)


class Validated(NamedTuple):
    """How far a cluster file was compared with a real machine.

    Attributes:
        hosts: up to so many.
        ranks: up to so many.
        error: the largest relative error that was met.
        by: what was compared, in words.
    """

    hosts: int
    ranks: int
    error: float
    by: str


class Cluster(NamedTuple):
    """A cluster.

    Attributes:
        name: of the file.
        hosts: how many.
        ranks_per_host: 0 where the file does not say.
        topology: of the network.
        hop_latency: ns of each link on the way.
        link_bandwidth: bytes per ns of a link, in each direction.
        network: between hosts.
        memory: within one.
        memory_bandwidth: bytes per ns that all ranks of a host move through its memory.
        validated: how far it was compared with a real machine; None if nobody has.
    """

    name: str
    hosts: int
    ranks_per_host: int
    topology: Topology
    hop_latency: int
    link_bandwidth: float
    network: Way
    memory: Way
    memory_bandwidth: float
    validated: Validated | None = None


class Described(NamedTuple):
    """A world that is a described cluster.

    Attributes:
        cluster: which.
        compute_scale: virtual ns for each ns that a rank's processor works; 0: computing is free.
    """

    cluster: Cluster
    compute_scale: float = 0.0
