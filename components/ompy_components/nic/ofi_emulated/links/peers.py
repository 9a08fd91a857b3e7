"""A domain's peers: the links to them, the connections they have made, and what of both breaks."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING

from ompy_components.nic.ofi_emulated.errors import words
from ompy_components.nic.ofi_emulated.links.doubts import Doubts
from ompy_components.nic.ofi_emulated.links.epochs import Epochs
from ompy_components.nic.ofi_emulated.links.link import Completing, Link
from ompy_components.nic.ofi_emulated.links.responder import Responder

if TYPE_CHECKING:
    from ompy.net.base import Address, Stream

    from ompy_components.nic.ofi_emulated.memory import EmulatedRegion
    from ompy_components.nic.ofi_emulated.receives import Receives
    from ompy_components.nic.ofi_emulated.resources import Resources
    from ompy_components.nic.ofi_emulated.vector import Name


class Peers:
    """Of one domain.

    Attributes:
        epochs: of the paths to them.
        doubts: about those that have not answered for a while.
    """

    def __init__(
        self,
        resources: Resources,
        patience: int,
        failover: Callable[[], bool],
        receives_of: Callable[[int, int], Receives | None],
    ) -> None:
        """None yet.

        Args:
            resources: that the links share.
            patience: ns without a word before the agents are asked; 0: they never are.
            failover: whether the device's user goes on over another rail when a path is dead.
            receives_of: of the context a request is for, by its endpoint's number and its own;
                None: it is not there, or not enabled.
        """
        self._resources = resources
        self._receives_of = receives_of
        self.epochs = Epochs()
        self._links: dict[Address, Link] = {}
        self._responders: dict[Responder, None] = {}
        self._closed = False
        self.doubts = Doubts(resources, patience, failover, self._links.values())

    @property
    def links(self) -> list[Link]:
        """The ways there are."""
        return list(self._links.values())

    # -- coming and going

    def link_to(self, name: Name) -> Link:
        """The way to the domain of an endpoint."""
        found = self._links.get(name.listener)
        if found is None:
            parts = self._resources, self.epochs, self.doubts
            found = self._links[name.listener] = Link(*parts, name.rank, name.listener)
        return found

    def release_link(self, listener: Address) -> None:
        """The domain that listens there is needed no more."""
        link = self._links.pop(listener, None)
        if link is not None:
            link.say_bye()
            link.close()

    def respond_to(self, stream: Stream, rank: int, epoch: int) -> None:
        """A peer's connection is proven."""
        if epoch > self.epochs.number_of(rank):
            self._end_epoch(rank, epoch - 1, "the peer has found the path broken")
        made = Responder(self._resources, stream, rank, epoch, self._receives_of, self._closed_by)
        self._responders[made] = None

    def _closed_by(self, responder: Responder, why: str) -> None:
        """A peer's connection is closed; `why` it broke: what goes the other way is broken too."""
        self._responders.pop(responder, None)
        rank, epoch = responder.rank, responder.epoch
        if not why or self._closed or epoch < self.epochs.number_of(rank):
            return
        if not self._end_epoch(rank, epoch, why):
            detail = f"{words(errno.ECONNRESET)}: rank {rank}: {why}"
            self._resources.notice(errno.ECONNRESET, detail)

    def _end_epoch(self, rank: int, epoch: int, why: str) -> bool:
        """Break the links to a rank up to an epoch. Whether there was one."""
        self.epochs.end_epoch(rank, epoch)
        links = [link for link in self.links if link.rank == rank and link.breakable(epoch)]
        for link in links:
            link.broken(errno.ECONNRESET, why)
        return bool(links)

    # -- what is given back

    def forget_context(self, context: Completing, receives: Receives) -> None:
        """A context is closed: nothing of it completes, and no message finds a place there."""
        for link in self.links:
            link.forget(context)
        self.withdraw(receives)

    def withdraw(self, subject: EmulatedRegion | Receives) -> None:
        """The memory of a region or a context is touched no more."""
        for responder in list(self._responders):
            responder.withdraw(subject)

    # -- ends

    def lost(self, why: str) -> None:
        """The device is gone: everything under way ends badly."""
        for link in self.links:
            link.broken(errno.ENODEV, why)
        for responder in list(self._responders):
            responder.close()

    def say_bye(self) -> None:
        """Tell all, behind all else, that the connections will be closed."""
        for one in self._ends():
            one.say_bye()

    @property
    def speaking(self) -> bool:
        """Whether a stream has not taken all that was posted or answered."""
        return any(one.speaking for one in self._ends())

    def _ends(self) -> list[Link | Responder]:
        return [*self._links.values(), *self._responders]

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        for link in self.links:
            link.close()
        self._links.clear()
        for responder in list(self._responders):
            responder.close()
        self.doubts.close()
