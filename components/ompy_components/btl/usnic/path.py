"""The paths of one module: what the keeper (`ompy.frameworks.paths.path_keeper`) has done.

Every packet says the generation of its path, in the field `epoch`. A path works from the beginning,
in generation 1. A word is an OPEN: a packet of the full size, so that a path which takes small ones
only is not taken back.

Packets have timers, so silence is noticed here: when the oldest packet has waited for as long as
its first timeout is, and nothing was acknowledged meanwhile, the path to its peer is in doubt. What
the peer of a path that is alive does not acknowledge is sent again for as long as it takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.btl import FAILOVER_SUPPORT, UNREACHABLE
from ompy.frameworks.paths.path_keeper import PathKeeper, PathUser
from ompy.frameworks.paths.path_life import Opening, Stage
from ompy.frameworks.paths.path_watch import MS

from ompy_components.btl.usnic.headers import HEADER_SIZE, OPEN, SEAL_SIZE, Header
from ompy_components.btl.usnic.packets import Fragment

if TYPE_CHECKING:
    from ompy_components.btl.usnic.endpoint import UsnicEndpoint
    from ompy_components.btl.usnic.module import UsnicModule

FIRST: Final = 1  # the generation in which both ends begin
# arbitrary: a lost OPEN, or its answer, delays by 20 ms: a few round trips of most networks; where
# the first ones were lost, by a third of a second more; eight take two seconds
OPENING: Final = Opening(connects=False, repeat=20 * MS, repeat_max=320 * MS, tries=8)
ROUND_TRIPS: Final = 4  # arbitrary: agents' datagrams may take longer than the quickest packet


class UsnicPath(PathUser):
    """Of one endpoint."""

    __slots__ = ("_endpoint", "_lost", "_paths")

    def __init__(self, paths: UsnicPaths, endpoint: UsnicEndpoint) -> None:
        self._paths = paths
        self._endpoint = endpoint
        self._lost: list[Fragment] = []  # to be completed badly, oldest first

    def ends(self) -> tuple[str, str, str]:
        """Interface and addresses."""
        return self._endpoint.ends()

    def spare(self) -> bool:
        """Where the flags say so."""
        return bool(self._paths.module.flags & FAILOVER_SUPPORT)

    def patience(self) -> int:
        """Some round trips."""
        return ROUND_TRIPS * self._endpoint.reliability.round_trips.least

    def progress(self) -> object:
        """What is acknowledged, both ways."""
        return self._endpoint.reliability.progress

    def open_ended(self) -> bool:
        """Fragments were given up."""
        return bool(self._lost)

    def stop(self, reason: str) -> None:
        """Nothing of the generation is sent any more, but an ACK to who has left."""
        endpoint, sending = self._endpoint, self._paths.module.sending
        self._paths.doubted.pop(endpoint, None)
        self._lost += sending.abandon(endpoint)
        if not endpoint.path.life.parting:
            sending.forget_ack(endpoint)

    def fail_open(self) -> None:
        """Oldest first."""
        lost, self._lost = self._lost, []
        for fragment in lost:
            self._paths.module.sending.complete(self._endpoint, fragment, UNREACHABLE)

    def renew(self, number: int) -> None:
        """Fresh numbers, windows and timers."""
        self._paths.module.renew(self._endpoint)

    def say(self, number: int, stage: Stage) -> None:
        """An OPEN."""
        self._paths.send_open(self._endpoint)

    def ready(self) -> None:
        """Nothing waits: nothing was taken meanwhile."""
        self._paths.module.statistics.num_epochs += 1


class UsnicPaths:
    """What the paths of one module see and say.

    Attributes:
        module: whose.
        keeper: drives their machines.
        doubted: those in doubt, with what had come over them when that began.
    """

    def __init__(self, module: UsnicModule) -> None:
        self.module = module
        self.keeper = PathKeeper(module, OPENING, 0)
        self.doubted: dict[UsnicEndpoint, tuple[int, int]] = {}
        self._words: dict[UsnicEndpoint, None] = {}  # whose own is to be said

    def keep(self, endpoint: UsnicEndpoint) -> None:
        """There is a new peer."""
        endpoint.path = self.keeper.keep(endpoint, UsnicPath(self, endpoint), FIRST)

    # -- words

    def send_open(self, endpoint: UsnicEndpoint) -> None:
        """With the next round: the device may refuse it."""
        self._words[endpoint] = None
        self.module.timer_at(self.keeper.now())

    def send_words(self) -> None:
        """Say what is true by now."""
        if not self._words:
            return
        words, self._words = self._words, {}
        padding = self.module.max_packet - SEAL_SIZE - HEADER_SIZE
        for endpoint in words:
            stage = endpoint.path.life.stage
            if stage is not None:
                self.module.sending.send_probe(endpoint, OPEN, stage.value, padding)

    def open_arrived(self, endpoint: UsnicEndpoint, header: Header) -> None:
        """The peer says OPEN; one with a stage that there is not is dropped."""
        if self.keeper.begun and not endpoint.proc.departed and header.sequence < len(Stage):
            endpoint.path.word(header.epoch, Stage(header.sequence))

    def admits(self, endpoint: UsnicEndpoint) -> bool:
        """Whether a packet of the generation that a path is in, or was in last, is taken.

        What comes over one that was given up is not: its sender must not hear that it has arrived,
        when nobody was told of it.
        """
        path = endpoint.path
        if path.up or path.life.parting or not self.keeper.begun:
            return True
        path.data()
        return path.up

    # -- silence

    def look(self, endpoint: UsnicEndpoint, now: int) -> None:
        """Begin or end to have a doubt, as the timers of a path say."""
        self._settle(endpoint, now)
        path, reliability = endpoint.path, endpoint.reliability
        if path.up and endpoint not in self.doubted and reliability.in_doubt(now):
            self.doubted[endpoint] = reliability.progress
            self.module.statistics.num_path_doubts += 1
            path.doubt()

    def settle(self, now: int) -> None:
        """Something has arrived: end the doubts that it answers."""
        for endpoint in list(self.doubted):
            self._settle(endpoint, now)

    def _settle(self, endpoint: UsnicEndpoint, now: int) -> None:
        before, reliability = self.doubted.get(endpoint), endpoint.reliability
        # if something did get through, what may be in doubt now is another packet
        if before and (before != reliability.progress or not reliability.in_doubt(now)):
            self.trust(endpoint)

    def trust(self, endpoint: UsnicEndpoint) -> None:
        """There is no doubt any more."""
        if endpoint in self.doubted:
            del self.doubted[endpoint]
            endpoint.path.trust()

    # -- the end

    def close(self) -> None:
        """Nothing is sent any more."""
        self._words.clear()
        self.doubted.clear()
        self.keeper.close()
