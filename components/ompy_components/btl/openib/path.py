"""What an endpoint does as its path comes and goes (`ompy.frameworks.paths.path_keeper`)."""

from __future__ import annotations

from collections.abc import Callable

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.paths.path_keeper import PathUser
from ompy.frameworks.paths.path_life import Stage

from ompy_components.btl.openib.connections.broken_notices import BrokenNotices
from ompy_components.btl.openib.connections.connecting import ConnectionManager
from ompy_components.btl.openib.connections.deferred import DeferredFailures
from ompy_components.btl.openib.connections.draining import Draining
from ompy_components.btl.openib.endpoint import OpenibEndpoint
from ompy_components.btl.openib.headers import EP_BROKEN
from ompy_components.btl.openib.queues.queue_pairs import QueuePairs
from ompy_components.btl.openib.sending import SendEngine


class OpenibPath(PathUser):
    """Of one endpoint."""

    __slots__ = (
        "_connecting",
        "_deferred",
        "_draining",
        "_endpoint",
        "_note",
        "_notices",
        "_pairs",
        "_sending",
    )

    def __init__(
        self,
        endpoint: OpenibEndpoint,
        pairs: QueuePairs,
        connecting: ConnectionManager,
        sending: SendEngine,
        draining: Draining,
        notices: BrokenNotices,
        deferred: DeferredFailures,
        note: Callable[..., None],
    ) -> None:
        self._endpoint = endpoint
        self._pairs = pairs
        self._connecting = connecting
        self._sending = sending
        self._draining = draining
        self._notices = notices
        self._deferred = deferred
        self._note = note

    def ends(self) -> tuple[str, str, str]:
        """Interface and addresses."""
        return self._endpoint.ends()

    def unopened(self, reason: str) -> str:
        """With where from and where to."""
        name, source, target = self._endpoint.ends()
        return f"no connection over {name} from {source} to {target}: {reason}"

    def open_ended(self) -> bool:
        """Something accepted is not completed."""
        return self._endpoint.busy

    def stop(self, reason: str) -> None:
        """Have the device report all that it has: good or bad, it is known then."""
        self._draining.drain(self._endpoint)

    def tell(self, number: int) -> bool:
        """EP_BROKEN, over an endpoint of another module."""
        return self._notices.notify(self._endpoint, EP_BROKEN)

    def fail_open(self) -> None:
        """When the device has reported: `Draining.settle`."""

    def drained(self) -> bool:
        """Not before the next poll."""
        return False

    def renew(self, number: int) -> None:
        """Make queue pairs."""
        try:
            self._pairs.make_queue_pairs(self._endpoint)
        except NicError as problem:
            self._pairs.give_back(self._endpoint)
            self._deferred.defer_failure(self._endpoint, str(problem))

    def learn(self, payload: object) -> None:
        """Connect them to the peer's."""
        endpoint = self._endpoint
        assert isinstance(payload, tuple)
        endpoint.pairs = payload
        if not endpoint.queues:
            return  # they could not be made
        try:
            self._pairs.connect(endpoint)
        except NicError as problem:
            self._deferred.defer_failure(endpoint, str(problem))

    def say(self, number: int, stage: Stage) -> None:
        """A HELLO."""
        self._connecting.send_hello(self._endpoint, number, stage)

    def ready(self) -> None:
        """Send what waits."""
        self._note("CONNECTED", peer=self._endpoint.proc.rank)
        self._sending.connected(self._endpoint)
