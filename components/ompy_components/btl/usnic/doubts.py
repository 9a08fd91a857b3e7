"""Peers that do not answer: whether that is the path's fault.

When the timer of the oldest packet has run out the path to its peer is in doubt, and the agents of
both hosts are asked to try it (`ompy.frameworks.paths`). When they cannot reach each other for the
configured time, and nothing has come from the peer meanwhile either, the path is dead. Otherwise
the peer is silent, and what it does not acknowledge is sent again for as long as it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.paths import PathVerdict, PathWatch

from ompy_components.btl.usnic.channel import DATA

if TYPE_CHECKING:
    from ompy_components.btl.usnic.endpoint import UsnicEndpoint
    from ompy_components.btl.usnic.module import UsnicModule

ROUND_TRIPS: Final = 2  # arbitrary: agents' datagrams may take longer than the longest one known


class _Doubt(NamedTuple):
    """A path that is being watched, and what had come over it when that began."""

    watch: PathWatch
    progress: tuple[int, int]


class Doubts:
    """The paths of one module that are in doubt."""

    def __init__(self, module: UsnicModule) -> None:
        self._module = module
        self._doubts: dict[UsnicEndpoint, _Doubt] = {}

    def look(self, endpoint: UsnicEndpoint) -> str:
        """Begin or end to have a doubt about the path to a peer, as its timers say.

        Returns:
            Why the path is dead; empty while it is not.
        """
        doubt = self._doubts.get(endpoint)
        if not endpoint.reliability.in_doubt:
            if doubt is not None:
                self.forget(endpoint)
            return ""
        progress = endpoint.reliability.progress
        if doubt is not None and doubt.progress != progress:
            self.forget(endpoint)  # it did get through; what is in doubt now is another packet
            doubt = None
        if doubt is None:
            self._begin(endpoint, progress)
            return ""
        if doubt.watch.verdict is not PathVerdict.DEAD:
            return ""
        identity = self._module.nic.identity
        there = endpoint.addresses[DATA].host
        return (
            f"nothing gets through over {identity.interface} from {identity.address} to {there}: "
            f"{doubt.watch.why}"
        )

    def verdict(self, endpoint: UsnicEndpoint) -> PathVerdict:
        """What is known of the path to a peer."""
        if endpoint.proc.departed:
            return PathVerdict.DEAD
        doubt = self._doubts.get(endpoint)
        return doubt.watch.verdict if doubt is not None else PathVerdict.UNKNOWN

    def forget(self, endpoint: UsnicEndpoint) -> None:
        """There is no doubt any more."""
        doubt = self._doubts.pop(endpoint, None)
        if doubt is not None:
            doubt.watch.end()

    def close(self) -> None:
        """Nothing is sent any more."""
        for endpoint in list(self._doubts):
            self.forget(endpoint)

    def _begin(self, endpoint: UsnicEndpoint, progress: tuple[int, int]) -> None:
        module = self._module
        identity = module.nic.identity
        module.statistics.num_path_doubts += 1
        watch = module.context.paths.watch(
            endpoint.proc,
            identity.address,
            endpoint.addresses[DATA].host,
            identity.interface,
            self._changed,
            patience=ROUND_TRIPS * endpoint.reliability.round_trip_max,
        )
        self._doubts[endpoint] = _Doubt(watch, progress)

    def _changed(self) -> None:
        """There is a verdict: the next poll looks at it."""
        self._module.timer_at(0)
