"""What is seen to fail of a module: work, posting, connections, the link, the device.

What comes of it is said to the paths: at once, or with the next poll where a call of the PML, or of
the device, is under way.

Source: reference ofi.md A6.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from ompy.compiled import ccall, cclass
from ompy.frameworks.nic.fabric import Completion, FabricError
from ompy.frameworks.paths.path_life import DOWN

from ompy_components.btl.ofi.failures.blame import Blame, blame

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy_components.btl.ofi.endpoint import OfiEndpoint
    from ompy_components.btl.ofi.failures.device import Device


@cclass
class Failures:
    """Of one module.

    Attributes:
        unsettled: `settle` has something to do: with the next poll.
    """

    _device: Device
    _device_problem: str
    _endpoints: dict[int, OfiEndpoint]
    _note: Callable[..., None]
    _to_fail: dict[OfiEndpoint, str]
    unsettled: bool
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        device: Device,
        endpoints: dict[int, OfiEndpoint],
        note: Callable[..., None],
    ) -> None:
        """Judge what is seen.

        Args:
            device: the module's.
            endpoints: all there are, by rank; the module adds to them.
            note: records an event.
        """
        self._device = device
        self._endpoints = endpoints
        self._note = note
        self._to_fail = {}
        self._device_problem = ""
        self.unsettled = False

    def post_failed(self, endpoint: OfiEndpoint, problem: FabricError) -> None:
        """Posting was refused: have it fail with the next poll, not within a call of the PML."""
        if blame(problem.errno) is Blame.DEVICE:
            self.fail_device_soon(str(problem))
        elif endpoint.path.life.life not in DOWN:
            self._to_fail.setdefault(endpoint, str(problem))
            self.unsettled = True

    def fail_device_soon(self, reason: str) -> None:
        """The device has failed: have all fail with the next poll."""
        self._device_problem = self._device_problem or reason
        self.unsettled = True

    def work_failed(self, endpoint: OfiEndpoint, completion: Completion, fault: Blame) -> None:
        """Work to a peer has ended badly."""
        reason = completion.detail or errno.errorcode.get(completion.error, str(completion.error))
        if fault is Blame.DEVICE:
            self.device_failed(reason)
        else:
            endpoint.path.broke(reason)

    def fail_all(self, reason: str) -> None:
        """The link is down: so are all paths, and may heal."""
        for endpoint in list(self._endpoints.values()):
            endpoint.path.broke(reason)

    def device_failed(self, reason: str) -> None:
        """Nothing of the device can be trusted any more: all paths fail, for good."""
        if not self._device.fail(reason):
            return
        self._note("DEVICE_FAILED", reason=reason)
        for endpoint in list(self._endpoints.values()):
            endpoint.path.end()
            endpoint.path.broke(reason)

    def forget(self, endpoint: OfiEndpoint) -> None:
        """Its path is stopped already."""
        self._to_fail.pop(endpoint, None)

    @ccall
    def settle(self) -> int:
        """Fail what is to fail. Returns how many."""
        events = 0
        if self._device_problem:
            self.device_failed(self._device_problem)
            self._device_problem = ""
            events += 1
        while self._to_fail:
            endpoint, reason = self._to_fail.popitem()
            endpoint.path.broke(reason)
            events += 1
        self.unsettled = bool(self._to_fail or self._device_problem)
        return events

    @property
    def pressing(self) -> bool:
        """Something is to be done with the next poll."""
        return bool(self._to_fail or self._device_problem)
