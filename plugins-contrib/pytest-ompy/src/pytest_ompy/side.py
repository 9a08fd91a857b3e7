"""Which side of a pool a pytest session is on: kept in its configuration."""

from __future__ import annotations

from typing import Any, Protocol

import pytest


class Side(Protocol):
    """A session that can give a test its communicator."""

    def communicator(self) -> Any:
        """What the fixture `comm` is in this session."""

    def gasnet(self) -> Any:
        """What the fixture `gasnet` is in this session."""


SIDE: pytest.StashKey[Side] = pytest.StashKey()
