"""Peers that do not answer: whether that is the path's fault.

When the oldest packet has waited for as long as its first stay is, and nothing was acknowledged
meanwhile, the path to its peer is in doubt, and the agents of both hosts are asked to try it
(`ompy.frameworks.paths`). When they cannot reach each other for the configured time, and nothing
has come from the peer meanwhile either, the path is dead. Otherwise the peer is silent, and what it
does not acknowledge is sent again for as long as it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.btl import FAILOVER_SUPPORT
from ompy.frameworks.paths import PathVerdict, PathWatch

from ompy_components.btl.usnic.channel import DATA

if TYPE_CHECKING:
    from ompy_components.btl.usnic.endpoint import UsnicEndpoint
    from ompy_components.btl.usnic.module import UsnicModule

ROUND_TRIPS: Final = 4  # arbitrary: agents' datagrams may take longer than the quickest packet


class Doubt(NamedTuple):
    """A path that is being watched, and what had come over it when that began."""

    watch: PathWatch
    progress: tuple[int, int]


class Doubts:
    """The paths of one module that are in doubt.

    Attributes:
        open: by peer.
    """

    def __init__(self, module: UsnicModule) -> None:
        self._module = module
        self.open: dict[UsnicEndpoint, Doubt] = {}

    def look(self, endpoint: UsnicEndpoint, now: int) -> str:
        """Begin or end to have a doubt about the path to a peer, as its timers say.

        Returns:
            Why the path is dead; empty while it is not.
        """
        self._settle(endpoint, now)
        if not endpoint.reliability.in_doubt(now):
            return ""
        doubt = self.open.get(endpoint)
        if doubt is None:
            self._begin(endpoint)
            return ""
        if doubt.watch.verdict is not PathVerdict.DEAD:
            return ""
        identity = self._module.nic.identity
        there = endpoint.addresses[DATA].host
        return (
            f"nothing gets through over {identity.interface} from {identity.address} to {there}: "
            f"{doubt.watch.why}"
        )

    def settle(self, now: int) -> None:
        """Something has arrived: end the doubts that it answers."""
        for endpoint in list(self.open):
            self._settle(endpoint, now)

    def _settle(self, endpoint: UsnicEndpoint, now: int) -> None:
        doubt = self.open.get(endpoint)
        reliability = endpoint.reliability
        # if something did get through, what may be in doubt now is another packet
        if doubt and (not reliability.in_doubt(now) or doubt.progress != reliability.progress):
            self.forget(endpoint)

    def verdict(self, endpoint: UsnicEndpoint) -> PathVerdict:
        """What is known of the path to a peer."""
        if endpoint.proc.departed:
            return PathVerdict.DEAD
        doubt = self.open.get(endpoint)
        return doubt.watch.verdict if doubt is not None else PathVerdict.UNKNOWN

    def forget(self, endpoint: UsnicEndpoint) -> None:
        """There is no doubt any more."""
        doubt = self.open.pop(endpoint, None)
        if doubt is not None:
            doubt.watch.end()

    def close(self) -> None:
        """Nothing is sent any more."""
        for endpoint in list(self.open):
            self.forget(endpoint)

    def _begin(self, endpoint: UsnicEndpoint) -> None:
        module = self._module
        identity = module.nic.identity
        module.statistics.num_path_doubts += 1
        watch = module.context.paths.watch(
            endpoint.proc,
            identity.address,
            endpoint.addresses[DATA].host,
            identity.interface,
            self._changed,
            failover=bool(module.flags & FAILOVER_SUPPORT),
            least=ROUND_TRIPS * endpoint.reliability.round_trip_least,
        )
        self.open[endpoint] = Doubt(watch, endpoint.reliability.progress)

    def _changed(self) -> None:
        """There is a verdict: the next poll looks at it."""
        self._module.timer_at(0)
