"""Whether packets of every size get through to a peer: the connectivity checker.

When a module first has to do with a peer it pings that, with a packet that is next to nothing and
with one of the full size, and goes on every `timeout` with those that were not answered. The peer
answers each with a packet of the small size. Pings have no number and are never waited for.

What is judged is the full size alone: when small pings are answered and `retries` large ones were
not, something on the way has a smaller MTU than both ends believe, and such packets vanish for good
without a word (an *MTU black hole*). The path is failed then, and the reason says what to do. A
peer that answers nothing at all may be computing: it is pinged `retries` times and then left to
the retransmission timers.

Source: reference usnic.md 14, where agents of two hosts ping each other; README of this folder, 99.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ompy_components.btl.usnic.headers import HEADER_SIZE, PING, PONG, SEAL_SIZE, Header

if TYPE_CHECKING:
    from ompy.mca.parameter import Values

    from ompy_components.btl.usnic.endpoint import UsnicEndpoint
    from ompy_components.btl.usnic.module import UsnicModule

SMALL: Final = 0  # which of the two sizes; arbitrary numbers, they stand where packets have theirs
LARGE: Final = 1  # values of the same field
MS: Final = 1_000_000  # ns; Linux counts so


class Limits(NamedTuple):
    """What the parameters say.

    Attributes:
        enabled: whether peers are pinged at all; they are answered in any case.
        timeout: ns from one ping to the next.
        retries: pings without an answer before it is said that there will be none.
    """

    enabled: bool
    timeout: int
    retries: int


def probe_limits(values: Values) -> Limits:
    """From the component's parameters."""
    return Limits(
        values.connectivity_check,
        values.connectivity_ack_timeout * MS,
        values.connectivity_error_num_retries,
    )


class Probe:
    """What is known about the way to one peer.

    Attributes:
        answered: sizes that have got through, there and back.
        due: when the next pings go out.
    """

    __slots__ = ("_since_small", "_tries", "answered", "due")

    def __init__(self, now: int) -> None:
        self.answered: set[int] = set()
        self.due = now
        self._tries = 0
        self._since_small = 0

    def next(self, now: int, limits: Limits) -> list[int]:
        """Sizes to ping with now; none when it is over, by `black_hole` or without a verdict."""
        if self.over(limits):
            return []
        self.due = now + limits.timeout
        self._tries += 1
        self._since_small += SMALL in self.answered
        return [which for which in (SMALL, LARGE) if which not in self.answered]

    def over(self, limits: Limits) -> bool:
        """Whether there is nothing more to find out."""
        if len(self.answered) == 2 or self.black_hole(limits):
            return True
        return SMALL not in self.answered and self._tries > limits.retries

    def black_hole(self, limits: Limits) -> bool:
        """Whether small packets get through and large ones do not."""
        return self.answered == {SMALL} and self._since_small > limits.retries


class Connectivity:
    """Pings the peers of one module, and answers theirs."""

    def __init__(self, module: UsnicModule, limits: Limits) -> None:
        self._module = module
        self._limits = limits
        self._probes: dict[UsnicEndpoint, Probe] = {}

    def begin_checking(self, endpoint: UsnicEndpoint) -> None:
        """There is a new peer."""
        if self._limits.enabled:
            now = self._module.context.engine.now()
            self._probes[endpoint] = Probe(now)
            self._module.timer_at(now)

    def expire(self, now: int) -> None:
        """Send the pings that are due, and judge."""
        for endpoint, probe in list(self._probes.items()):
            if probe.due > now:
                self._module.timer_at(probe.due)
                continue
            sizes = probe.next(now, self._limits) if endpoint.usable() else []
            if sizes:
                for which in sizes:
                    self._send(endpoint, PING, which, self._padding(which))
                self._module.timer_at(probe.due)
                continue
            del self._probes[endpoint]
            if probe.black_hole(self._limits) and endpoint.usable():
                endpoint.path.broke(self._diagnosis(endpoint))

    def receive(self, endpoint: UsnicEndpoint, header: Header) -> None:
        """A ping, which is answered, or an answer."""
        if header.kind == PING:
            self._send(endpoint, PONG, header.sequence, 0)
            return
        probe = self._probes.get(endpoint)
        if probe is not None and header.sequence in (SMALL, LARGE):
            probe.answered.add(header.sequence)
            if len(probe.answered) == 2:
                del self._probes[endpoint]

    def _padding(self, which: int) -> int:
        return self._module.max_packet - SEAL_SIZE - HEADER_SIZE if which == LARGE else 0

    def _send(self, endpoint: UsnicEndpoint, kind: int, which: int, padding: int) -> None:
        """Best effort: without a credit, or to a peer that is gone, nothing is sent."""
        if endpoint.usable():
            self._module.sending.send_probe(endpoint, kind, which, padding)

    def _diagnosis(self, endpoint: UsnicEndpoint) -> str:
        nic = self._module.nic.identity
        size = self._module.max_packet
        return (
            f"packets of {size} bytes over {nic.interface} do not arrive at {endpoint.proc}, small "
            f"ones do: an MTU black hole. Something on the way takes smaller packets than "
            f"{nic.interface} believes. Make them smaller by --mca nic_vic_mtu, or raise the MTU "
            f"there ({self._limits.retries + 1} pings in "
            f"{(self._limits.retries + 1) * self._limits.timeout // MS} ms; "
            f"btl_usnic_connectivity_check 0 does without)"
        )
