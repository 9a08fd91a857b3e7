"""Active messages of the conduits: each arrives once, credits are conserved, nobody waits for ever."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from ompy.frameworks.conduit import Token

from tests.support.conduit_worlds import ConduitRank, conduit_world

CONDUITS = ["gemini", "aries"]
VARIANTS = ["smsg", "mailboxes"]
REQUEST, ANSWER, NOTE, DATA = range(128, 132)


def everybody_asks(rounds: int) -> Any:
    """Each asks each `rounds` times; of the requests only every other one is answered."""

    def program(rank: ConduitRank) -> dict[str, int]:
        counts: Counter[str] = Counter()

        def asked(token: Token, payload: memoryview, arguments: Any) -> None:
            counts["requests"] += 1
            assert token.is_request
            assert arguments[1] == token.source
            assert bytes(payload) == bytes([arguments[0] % 256]) * arguments[0]
            if arguments[0] % 2:
                rank.reply(token, ANSWER, bytes(payload), *arguments)

        def answered(token: Token, payload: memoryview, arguments: Any) -> None:
            counts["replies"] += 1
            assert not token.is_request
            assert arguments[1] == rank.rank
            assert bytes(payload) == bytes([arguments[0] % 256]) * arguments[0]

        rank.attach({REQUEST: asked, ANSWER: answered})
        for number in range(rounds):
            for peer in rank.peers:
                rank.medium(peer, REQUEST, bytes([number % 256]) * number, number, rank.rank)
        wanted = rounds * (rank.size - 1)
        rank.wait(
            lambda: (
                counts["requests"] == wanted and counts["replies"] == rounds // 2 * (rank.size - 1)
            )
        )
        rank.settle()
        return dict(counts)

    return program


@pytest.mark.parametrize("name", CONDUITS)
@pytest.mark.parametrize("messages", VARIANTS)
@pytest.mark.parametrize("depth", [1, 2, 12])
def test_everybody_asks_everybody(name: str, messages: str, depth: int) -> None:
    for seed in range(5):
        found = conduit_world(
            everybody_asks(20), ranks=3, name=name, messages=messages, networkdepth=depth, seed=seed
        )
        assert found == [{"requests": 40, "replies": 20}] * 3
