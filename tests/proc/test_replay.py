"""A recorded packet of usnic between real ranks, 65,536 packets later: nightly."""

from __future__ import annotations

import pytest

from tests.support.effort import THOROUGH
from tests.support.replay_programs import replay
from tests.support.worlds import real

pytestmark = pytest.mark.proc


@pytest.mark.skipif(not THOROUGH, reason="65,536 messages: part of tools/nightly")
def test_a_recorded_packet_is_refused_after_the_wrap() -> None:
    settings = {"btl": "self,usnic"}
    _, (before, after) = real(2, f"{replay.__module__}:{replay.__name__}", settings=settings)
    assert (before, after) == (0, 1)
