"""What becomes of a connection that has failed.

The first bad completion of an endpoint breaks its path (`ompy.frameworks.paths.path_life`) and
nothing else: all queue pairs go to ERR, so that the device reports what was posted, the peer is
told (by EP_BROKEN over another module's endpoint, or where there is none by a notice over whatever
other rails reach it), then the PML. What the device reports as good is good. When everything is
reported, what lies in the eager ring is delivered, the queue pairs are given back, and what failed
and what had not been posted is completed badly, in the order it was accepted. Then the path may be
opened anew.

Source: reference openmpi.md 5.7 and 4.15, seed bfo (9).
"""

from __future__ import annotations

from ompy.frameworks.btl import ERROR_NONFATAL, BtlModule
from ompy.frameworks.nic.base import EventKind
from ompy.frameworks.nic.verbs import Completion, VerbsNic
from ompy.frameworks.paths.path_keeper import PathKeeper

from ompy_components.btl.openib.connections.broken_notices import BrokenNotices
from ompy_components.btl.openib.connections.renewal import Renewals
from ompy_components.btl.openib.endpoint import OpenibEndpoint
from ompy_components.btl.openib.fragments import NO_NUMBER, OpenibFragment, Outgoing, Transfer
from ompy_components.btl.openib.headers import EP_EAGER_RDMA_ERROR


class Failover:
    """What breaks the paths of one module."""

    def __init__(
        self,
        module: BtlModule,
        nic: VerbsNic,
        keeper: PathKeeper,
        renewals: Renewals,
        notices: BrokenNotices,
        *,
        port_error: bool,
    ) -> None:
        """Begin with nothing broken.

        Args:
            module: whose; the PML is told so.
            nic: the device.
            keeper: of the paths.
            renewals: may know better what a failed put or get is worth.
            notices: tell the peer.
            port_error: a port that is down fails its paths at once.
        """
        self._module = module
        self._nic = nic
        self._keeper = keeper
        self._renewals = renewals
        self._notices = notices
        self._port_error = port_error
        self._device_told = False

    def work_failed(self, endpoint: OpenibEndpoint, one: Outgoing, done: Completion) -> None:
        """A send, put or get has failed."""
        if isinstance(one, Transfer) and self._renewals.failed(endpoint, one, done):
            return
        endpoint.path.broke(
            f"{done.opcode.value}: {done.status.value}{': ' * bool(done.detail)}{done.detail}"
        )
        if isinstance(one, OpenibFragment) and one.number != NO_NUMBER:
            self._notices.notify(endpoint, EP_EAGER_RDMA_ERROR, one.number)
        endpoint.failed_work.append(one)

    def fail_all(self, reason: str) -> None:
        """The port or the device has failed: so have all its connections.

        Of a device the PML hears once, for all peers, if that may be another path's business:
        where it is the end, it is the end of those peers alone that this device reaches.
        """
        module = self._module
        whole = bool(self._nic.gone) and self._nic.failover
        if whole and not self._device_told and module.error_callback is not None:
            self._device_told = True
            module.error_callback.failed(module, ERROR_NONFATAL, None, reason)
        self._keeper.quiet = whole
        for path in list(self._keeper.paths.values()):
            path.broke(reason)
        self._keeper.quiet = False

    # -- ports

    def event(self, kind: EventKind, reason: str) -> None:
        """The device says something unasked."""
        if kind is EventKind.LINK_UP:
            return  # packets may get through, or not yet: the agents find out
        if kind is not EventKind.LINK_DOWN or (self._port_error and self._nic.failover):
            self.fail_all(reason)
