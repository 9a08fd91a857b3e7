"""What the kernel says about a link: by netlink, at once, without being asked again and again."""

from __future__ import annotations

import socket
from typing import Final

from ompy.net.base import LinkError, LinkNews
from ompy.net.carrier import is_running
from ompy.net.sockets import SocketSource

_ROUTE: Final = 0  # Linux: NETLINK_ROUTE
_GROUP_LINK: Final = 1  # Linux: RTMGRP_LINK
_NEWS_ROOM: Final = 65_536  # bytes; arbitrary: more than one message has


class KernelLinkNews(SocketSource, LinkNews):
    """Of one interface of this network namespace."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        """Listen from now on.

        Raises:
            LinkError: the system does not let us.
        """
        self._name = name
        try:
            made = socket.socket(
                socket.AF_NETLINK,
                socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC,
                _ROUTE,
            )
        except OSError as problem:
            raise LinkError(f"no news of links: {problem}") from None
        try:
            made.bind((0, _GROUP_LINK))
        except OSError as problem:
            made.close()
            raise LinkError(f"no news of links: {problem}") from None
        super().__init__(made)

    def down(self) -> bool:
        """Take the news in, of whichever link; ask how this one is."""
        try:
            while self.socket.recv(_NEWS_ROOM):
                pass
        except BlockingIOError:
            pass
        except OSError:  # there was more than it can hold: ask all the same
            pass
        return not is_running(self._name)
