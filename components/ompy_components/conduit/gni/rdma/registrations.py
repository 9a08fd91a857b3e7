"""Temporary registrations: memory outside the segment, for the time of one post.

Source: seed gasnet (Recognized environment variables); reference gasnet.md 6.6.
"""

from __future__ import annotations

from ompy.frameworks.nic.gni import CommunicationDomain, MemoryHandle, ReturnCode


class TemporaryRegistrations:
    """Those there are now. All calls come with the NIC's lock held.

    Attributes:
        bound: how many there may be; 0 for as many as the NIC gives.
        held: how many there are.
        refused: the NIC had none left when it was asked last.
    """

    def __init__(self, domain: CommunicationDomain, bound: int) -> None:
        self._domain = domain
        self.bound = bound
        self.held = 0
        self.refused = False

    def register_temporarily(self, memory: memoryview) -> MemoryHandle | None:
        """Register memory, if the bound and the NIC allow."""
        self.refused = False
        if self.bound and self.held >= self.bound:
            return None
        code, handle = self._domain.register(memory)
        assert code in (ReturnCode.SUCCESS, ReturnCode.ERROR_RESOURCE), code
        self.refused = handle is None
        self.held += handle is not None
        return handle

    def give(self, handle: MemoryHandle) -> None:
        """Take memory back."""
        code = self._domain.deregister(handle)
        assert code is ReturnCode.SUCCESS, f"{handle} is no registration of this rank: {code}"
        self.held -= 1
