"""Paths that are silent: something is under way, and nothing has been heard for a while.

A peer that computes is silent, and so is one behind a cable that was pulled. So the hosts' agents
are asked (ARCHITECTURE.md, "Whether a rail is dead"): only DEAD breaks the path. Where the device's
traffic goes over no network interface (`shm`) there is nothing to ask about but whether the
process lives, and that the rank is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.engine.timers import Timer
from ompy.frameworks.bml import has_spare
from ompy.frameworks.paths import PathVerdict, PathWatch

from ompy_components.btl.ofi.headers import Kind

if TYPE_CHECKING:
    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.module import OfiModule

LOOKS: Final = 4  # arbitrary: how often within `silence_ms` it is looked whether there is news
MS: Final = 1_000_000  # ns; Linux counts so
REFUSED: Final = 2 * MS  # arbitrary: until a provider that was connecting is asked again


class _Doubt:
    """Attributes: since when (ns), what had been heard by then, and the watch, if there is one."""

    __slots__ = ("heard", "since", "watch")

    def __init__(self, since: int, heard: int) -> None:
        self.since = since
        self.heard = heard
        self.watch: PathWatch | None = None


class Guard:
    """Of one module."""

    __slots__ = ("_closed", "_doubts", "_module", "_silence", "_timer")

    def __init__(self, module: OfiModule, silence_ms: int) -> None:
        """After `silence_ms` without news a path is asked about; 0: never."""
        self._module = module
        self._silence = silence_ms * MS
        self._doubts: dict[OfiEndpoint, _Doubt] = {}
        self._timer: Timer | None = None
        self._closed = False

    def watch_over(self) -> None:
        """Something is under way: look now and then whether something is heard."""
        if self._silence and self._timer is None:
            self._later(self._silence // LOOKS)

    def _later(self, delay: int) -> None:
        """Look after `delay` ns, unless that is to happen anyhow: there is one timer."""
        if self._timer is None and not self._closed:
            self._timer = self._module.context.engine.call_later(delay, self._tick)

    def look_soon(self) -> None:
        """A path may be broken: a message of ours tells."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._later(0)

    def trust(self, endpoint: OfiEndpoint) -> None:
        """There is no doubt any more."""
        doubt = self._doubts.pop(endpoint, None)
        if doubt is not None and doubt.watch is not None:
            doubt.watch.end()

    def close(self) -> None:
        """The module ends."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for endpoint in list(self._doubts):
            self.trust(endpoint)

    def _tick(self) -> None:
        self._timer = None
        now = self._module.context.engine.now()
        waiting = [endpoint for endpoint in self._module.peers() if self._look(endpoint, now)]
        if any(endpoint.refused for endpoint in waiting):
            self._later(REFUSED)
        elif waiting:
            self.watch_over()

    def _look(self, endpoint: OfiEndpoint, now: int) -> bool:
        """Whether something is under way; breaks the path when it is known to be dead."""
        if endpoint.refused:  # one of ours tells what has become of it, unless the peer has gone
            said = not endpoint.usable() or self._module.sending.say(endpoint, Kind.ACK)
            endpoint.refused = not said
        if endpoint.broken or not (endpoint.busy() or _unsure(endpoint)):
            self.trust(endpoint)
            return False
        doubt = self._doubts.get(endpoint)
        if doubt is None or doubt.heard != endpoint.heard:
            self.trust(endpoint)
            self._doubts[endpoint] = _Doubt(now, endpoint.heard)
        elif now - doubt.since < self._silence or not self._known(endpoint):
            pass
        elif doubt.watch is None:
            doubt.watch = self._ask(endpoint)
        elif doubt.watch.verdict is PathVerdict.DEAD:
            why = f"nothing gets through over {endpoint.describe()}: {doubt.watch.why}"
            self._module.failover.fail(endpoint, why)
            return False
        return True

    def _known(self, endpoint: OfiEndpoint) -> bool:
        """Whether both ends have an address that agents can ask about."""
        return bool(self._module.interface.address and endpoint.record.address)

    def _ask(self, endpoint: OfiEndpoint) -> PathWatch:
        module = self._module
        interface = module.interface
        return module.context.paths.watch(
            endpoint.proc,
            interface.address,
            endpoint.record.address,
            interface.name,
            self._changed,
            failover=has_spare(endpoint.proc),
        )

    def _changed(self) -> None:
        """There is a verdict, perhaps from within another module's poll: look at it at once."""
        self.look_soon()


def _unsure(endpoint: OfiEndpoint) -> bool:
    """Injected fragments may wait in the provider, and farewells for an answer."""
    waits = endpoint.window.full() or (endpoint.parted and endpoint.window.open())
    return bool(waits or endpoint.refused)
