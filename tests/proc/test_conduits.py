"""The conduits gemini and aries between real processes, beside MPI."""

from __future__ import annotations

import pytest

from tests.support.worlds import real

pytestmark = pytest.mark.proc

PROGRAMS = "tests.sim.conduit.programs"


@pytest.mark.parametrize(
    ("name", "messages", "pshm"),
    [("gemini", "smsg", 0), ("aries", "mailboxes", 0), ("aries", "smsg", 1)],
)
def test_messages_and_transfers_beside_mpi(name: str, messages: str, pshm: int) -> None:
    settings = {
        "conduit": name,
        f"conduit_{name}_messages": messages,
        f"conduit_{name}_pshm": pshm,
        "btl": "self,sm",
    }
    found = real(2, f"{PROGRAMS}:beside_mpi", settings=settings)
    assert [one.get("messages_received", 0) for one in found] == [40, 40]
    assert found[0]["requests"] == found[1]["replies"] == 40


@pytest.mark.parametrize(
    ("messages", "pshm", "spin"), [("smsg", 0, 0), ("mailboxes", 0, 1), ("smsg", 1, 0)]
)
def test_threads_send_at_the_same_time(messages: str, pshm: int, spin: int) -> None:
    settings = {
        "conduit": "gemini",
        "conduit_gemini_messages": messages,
        "conduit_gemini_pshm": pshm,
        "conduit_gemini_use_spinlock": spin,
        "conduit_gemini_networkdepth": 2,
        "btl": "self,sm",
    }
    assert real(2, f"{PROGRAMS}:threads", settings=settings) == [[30] * 3] * 2
