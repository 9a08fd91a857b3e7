"""What an endpoint does as its path comes and goes, for `ompy.frameworks.paths.path_keeper`.

A path works from the beginning, in generation 1. A word is a HELLO: its `generation` is the one it
is about, its `tag` the stage. Where a module has no messages there is nothing to agree on.

What the provider has no room for, or no connection, is offered again after a moment: the word of a
path that is being opened; an acknowledgement over one that works, which tells what became of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.engine.timers import Timer
from ompy.frameworks.paths.path_keeper import PathUser
from ompy.frameworks.paths.path_life import TRYING, Opening, Stage

from ompy_components.btl.ofi.headers import GENERATIONS, Kind

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.frameworks.paths.path_keeper import PathKeeper
    from ompy.net.base import Interface

    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.failures.device import Device
    from ompy_components.btl.ofi.failures.failover import Failover
    from ompy_components.btl.ofi.headers import Header
    from ompy_components.btl.ofi.sending import SendEngine

MS: Final = 1_000_000  # ns; Linux counts so
REFUSED: Final = 2 * MS  # arbitrary: until a provider that was connecting is asked again
# arbitrary: so many times as late with each: nine in an hour, as each lies in a buffer of the peer
SELDOM: Final = 4
_HALF: Final = GENERATIONS // 2
FIRST: Final = 1  # the generation in which both ends begin
# arbitrary, all of it: a provider delivers words, or says that it cannot; so one is said again only
# for the case that a connection took it along unseen, and seldom: each lies in a buffer of the peer
# until that looks, nine of them in the first minute
OPENING: Final = Opening(connects=False, repeat=200 * MS, repeat_max=60_000 * MS, tries=5)


class OfiPath(PathUser):
    """Of one endpoint."""

    __slots__ = ("_asks_at", "_endpoint", "_failover", "_interface", "_words")

    def __init__(
        self, endpoint: OfiEndpoint, interface: Interface, failover: Failover, words: Words
    ) -> None:
        self._endpoint = endpoint
        self._interface = interface
        self._failover = failover
        self._words = words
        self._asks_at = 0  # of silence, ns

    def ends(self) -> tuple[str, str, str]:
        """The interface's; of a provider that uses none both addresses are empty."""
        interface = self._interface
        return interface.name, interface.address, self._endpoint.record.address

    def waits(self) -> bool:
        """Injected fragments may wait in the provider, and BYEs for an answer."""
        endpoint = self._endpoint
        window = endpoint.window
        unsure = window.full() or (endpoint.parted and window.open())
        return bool(endpoint.busy() or unsure or endpoint.refused)

    def progress(self) -> object:
        """Messages and completions."""
        return self._endpoint.heard

    def unheard(self, silence: int) -> None:
        """Say how much was sent: a connection may have taken some along that nobody tells of.

        A peer that computes answers nothing either, so it is said ever more seldom.
        """
        if self._asks_at > SELDOM * silence:
            self._asks_at = 0  # of an earlier silence
        if silence >= self._asks_at:
            self._asks_at = SELDOM * silence
            self._words.count(self._endpoint)

    def open_ended(self) -> bool:
        """Something is to be completed."""
        return self._endpoint.busy()

    def stop(self, reason: str) -> None:
        """What the device has is drained."""
        self._failover.stop(self._endpoint, reason)

    def fail_open(self) -> None:
        """Fragments; what else the device has ends when it says so."""
        self._failover.end_fragments(self._endpoint)

    def drained(self) -> bool:
        """The device has nothing of it."""
        return self._failover.drained(self._endpoint)

    def tell(self, number: int) -> bool:
        """By GONE, over this path itself; the device may not carry it, so by notices as well."""
        self._words.gone(self._endpoint)
        return False

    def renew(self, number: int) -> None:
        """A fresh window."""
        self._endpoint.renew(number % GENERATIONS)

    def say(self, number: int, stage: Stage) -> None:
        """A HELLO."""
        self._words.say(self._endpoint)

    def ready(self) -> None:
        """Nothing waits: nothing was taken meanwhile."""
        self._endpoint.mended()
        self._failover.healed()


class Words:
    """What the paths of one module have to say, until the provider has taken it.

    Attributes:
        can_speak: the module has messages.
    """

    __slots__ = (
        "_closed",
        "_device",
        "_engine",
        "_keeper",
        "_refused",
        "_sending",
        "_timer",
        "_waiting",
        "can_speak",
    )

    def __init__(
        self,
        engine: Engine,
        sending: SendEngine,
        keeper: PathKeeper,
        device: Device,
        *,
        can_speak: bool,
    ) -> None:
        self._engine = engine
        self._sending = sending
        self._keeper = keeper
        self._device = device
        self.can_speak = can_speak
        self._waiting: dict[OfiEndpoint, None] = {}  # whose word is to be said
        self._refused: dict[OfiEndpoint, None] = {}
        self._timer: Timer | None = None
        self._closed = False

    def say(self, endpoint: OfiEndpoint) -> None:
        """The own word, as it is by now."""
        if not self.can_speak:  # not from within what the machine has done
            self._waiting[endpoint] = None
            self.look_soon()
        elif not self._said(endpoint):
            self._waiting[endpoint] = None
            self._later(REFUSED)

    def gone(self, endpoint: OfiEndpoint) -> None:
        """The path is given up; the device may not carry that."""
        if self.can_speak and not self._device.dead:
            self._sending.say(endpoint, Kind.GONE)

    def count(self, endpoint: OfiEndpoint) -> None:
        """Tell the peer how many fragments were sent."""
        if self.can_speak and endpoint.usable() and endpoint.window.open():
            self._sending.say(endpoint, Kind.ACK, sent=endpoint.window.sent)

    def heard(self, endpoint: OfiEndpoint, header: Header) -> None:
        """HELLO or GONE of the peer."""
        path = endpoint.path
        # a generation's number only grows; the wire has the last bits of it
        ahead = (header.generation - path.life.number + _HALF) % GENERATIONS - _HALF
        number = path.life.number + ahead
        if header.kind == Kind.GONE:
            path.gave_up(number)
        elif self._keeper.begun and not self._device.dead and header.tag < len(Stage):
            path.word(number, Stage(header.tag))

    def refused(self, endpoint: OfiEndpoint) -> None:
        """The provider had no room for a message, or its connection may be broken."""
        endpoint.no_room(refused=True)
        self._refused[endpoint] = None
        self._later(REFUSED)

    def suspect(self, peers: list[OfiEndpoint], reason: str) -> None:
        """A connection has broken, and the device cannot say whose: try all that are idle.

        Where there is one path only, and that in order until now, it is known.
        """
        idle = [one for one in peers if one.usable() and not one.bye_number and not one.busy()]
        if len(peers) == len(idle) == 1:
            idle[0].path.broke(reason)
            return
        if self.can_speak:
            for endpoint in idle:
                self.refused(endpoint)
            for endpoint in peers:
                if endpoint.path.life.life in TRYING:
                    self.say(endpoint)
            self.look_soon()

    def look_soon(self) -> None:
        """Offer it again with the next round."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._later(0)

    def _later(self, delay: int) -> None:
        """After `delay` ns, unless that is to happen anyhow: there is one timer."""
        if self._timer is None and not self._closed:
            self._timer = self._engine.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, {}
        for endpoint in waiting:
            if not self._said(endpoint):
                self._waiting[endpoint] = None
        refused, self._refused = self._refused, {}
        for endpoint in refused:
            if not endpoint.refused:
                continue  # what went since then tells
            if not endpoint.usable():
                endpoint.no_room(refused=False)
            elif not self._sending.say(endpoint, Kind.ACK):
                self._refused[endpoint] = None
        if self._waiting or self._refused:
            self._later(REFUSED)

    def _said(self, endpoint: OfiEndpoint) -> bool:
        """Say where the own end is. Whether there is nothing more to be said."""
        life = endpoint.path.life
        stage, number = life.stage, life.number
        if stage is None:
            return True
        if self.can_speak:
            generation = number % GENERATIONS
            return self._sending.say(endpoint, Kind.HELLO, generation, stage.value)
        if life.life in TRYING:
            endpoint.path.word(number, Stage.UP)  # nobody else is to be heard
        return True

    def close(self) -> None:
        """The module ends."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
