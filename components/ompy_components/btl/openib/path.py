"""What an endpoint does as its path comes and goes (`ompy.frameworks.path_keeper`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.path_keeper import PathUser
from ompy.frameworks.path_life import Stage

from ompy_components.btl.openib.headers import EP_BROKEN

if TYPE_CHECKING:
    from ompy_components.btl.openib.endpoint import OpenibEndpoint
    from ompy_components.btl.openib.module import OpenibModule


class OpenibPath(PathUser):
    """Of one endpoint."""

    __slots__ = ("_endpoint", "_module")

    def __init__(self, module: OpenibModule, endpoint: OpenibEndpoint) -> None:
        self._module = module
        self._endpoint = endpoint

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
        self._module.failover.drain(self._endpoint)

    def tell(self, number: int) -> bool:
        """EP_BROKEN, over an endpoint of another module."""
        return self._module.failover.notify(self._endpoint, EP_BROKEN)

    def fail_open(self) -> None:
        """When the device has reported: `Failover.settle`."""

    def drained(self) -> bool:
        """Not before the next poll."""
        return False

    def renew(self, number: int) -> None:
        """Make queue pairs."""
        try:
            self._module.connecting.make(self._endpoint)
        except NicError as problem:
            self._module.failover.give_back(self._endpoint)
            self._module.deferred.add(self._endpoint, str(problem))

    def learn(self, payload: object) -> None:
        """Connect them to the peer's."""
        endpoint = self._endpoint
        assert isinstance(payload, tuple)
        endpoint.pairs = payload
        if not endpoint.queues:
            return  # they could not be made
        try:
            self._module.connecting.connect(endpoint)
        except NicError as problem:
            self._module.deferred.add(endpoint, str(problem))

    def say(self, number: int, stage: Stage) -> None:
        """A HELLO."""
        self._module.connecting.say(self._endpoint, number, stage)

    def ready(self) -> None:
        """Send what waits."""
        self._module.note("CONNECTED", peer=self._endpoint.proc.rank)
        self._module.sending.connected(self._endpoint)
