"""Takes broken paths back: who says OPEN when, and what a new epoch begins with.

Whether and when a path is to be mended is decided by `ompy.frameworks.healing`; how both ends come
to a new epoch by `epoch.py`. An OPEN is a packet of the full size, so that a path which takes small
packets only is not taken back. It is said again, less and less often, until the peer has answered:
for as long as that computes. A module has this from `begin_failover` on.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.frameworks.healing import Mender
from ompy.frameworks.paths import MS
from ompy.frameworks.rail_notices import listen_for_notices, tell_of_failure

from ompy_components.btl.usnic.channel import DATA
from ompy_components.btl.usnic.epoch import Stage, Step
from ompy_components.btl.usnic.headers import HEADER_SIZE, OPEN, SEAL_SIZE, Header

if TYPE_CHECKING:
    from ompy_components.btl.usnic.endpoint import UsnicEndpoint
    from ompy_components.btl.usnic.module import UsnicModule

# arbitrary: a lost OPEN, or its answer, delays by that; a few round trips of most networks
PAUSE: Final = 20 * MS
PAUSE_MAX: Final = 320 * MS  # arbitrary: where the first ones were lost, a third of a second more


class Mending:
    """The paths of one module that have broken, now or before."""

    def __init__(self, module: UsnicModule) -> None:
        self._module = module
        self._menders: dict[UsnicEndpoint, Mender] = {}
        self._saying: dict[UsnicEndpoint, tuple[int, int]] = {}  # when again, and the pause then
        self._closed = False
        listen_for_notices(module.context)

    def broke(self, endpoint: UsnicEndpoint) -> None:
        """A path has been given up: tell its other end, and see that it is mended some time."""
        if self._closed:
            return
        tell_of_failure(self._module, endpoint, endpoint.epoch.number)
        if not self._module.nic.gone:
            self._mender(endpoint).broke()

    def sends(self, endpoint: UsnicEndpoint) -> bool:
        """The peer sends in the epoch of a path that is gone here: whether it is not any more."""
        if endpoint.epoch.unsettled:
            self._act(endpoint, endpoint.epoch.data())
        return not endpoint.gone

    def heard(self, endpoint: UsnicEndpoint, header: Header) -> None:
        """The peer says OPEN; one with a stage that there is not is dropped."""
        if self._closed or _is_over(endpoint) or header.sequence >= Stage.DOWN.value:
            return
        if endpoint.epoch.stage is Stage.DOWN and self._mender(endpoint).left_alone:
            return
        self._act(endpoint, endpoint.epoch.heard(header.epoch, Stage(header.sequence)))

    def expire(self, now: int) -> None:
        """Say again what has had no answer."""
        for endpoint, (due, pause) in list(self._saying.items()):
            if _is_over(endpoint) or self._module.nic.gone or not endpoint.epoch.unsettled:
                del self._saying[endpoint]
                continue
            if now >= due:
                self._saying[endpoint] = now + pause, min(2 * pause, PAUSE_MAX)
                self._say(endpoint)
            self._module.timer_at(self._saying[endpoint][0])

    def close(self) -> None:
        """The module ends: nothing is taken back any more."""
        self._closed = True
        self._saying.clear()
        for mender in self._menders.values():
            mender.end()

    # -- what is to be done

    def _want(self, endpoint: UsnicEndpoint) -> None:
        """The agents can reach each other over a path: begin a new epoch."""
        self._act(endpoint, endpoint.epoch.want())

    def _act(self, endpoint: UsnicEndpoint, steps: list[Step]) -> None:
        module = self._module
        for step in steps:
            if step is Step.FAIL:
                module.fail(endpoint, "the other end has given the path up, and begins anew")
            elif step is Step.RENEW:
                module.renew(endpoint)
            elif step is Step.SAY:
                now = module.context.engine.now()
                if endpoint.epoch.unsettled:  # with the next round, as the device may refuse it
                    self._saying[endpoint] = now, PAUSE
                    module.timer_at(now)
                else:
                    self._say(endpoint)
            else:
                self._ready(endpoint)

    def _say(self, endpoint: UsnicEndpoint) -> None:
        padding = self._module.max_packet - SEAL_SIZE - HEADER_SIZE
        self._module.sending.send_probe(endpoint, OPEN, endpoint.epoch.stage.value, padding)

    def _ready(self, endpoint: UsnicEndpoint) -> None:
        module = self._module
        endpoint.gone = ""
        module.statistics.num_epochs += 1
        module.note("PATH_HEALED", peer=endpoint.proc.rank, epoch=endpoint.epoch.number)
        self._mender(endpoint).mended()
        if module.error_callback is not None:
            module.error_callback.healed(module, endpoint.proc)

    # -- when

    def _mender(self, endpoint: UsnicEndpoint) -> Mender:
        made = self._menders.get(endpoint)
        if made is None:
            identity = self._module.nic.identity
            made = self._menders[endpoint] = Mender(
                self._module.context,
                endpoint.proc,
                (identity.address, endpoint.addresses[DATA].host),
                identity.interface,
                partial(self._want, endpoint),
            )
        return made


def _is_over(endpoint: UsnicEndpoint) -> bool:
    return bool(endpoint.left or endpoint.proc.departed)
