"""bfo while nothing fails: what goes over a rail, as the seed's drawings have it.

Source: seed bfo (Appendix 1).
"""

from __future__ import annotations

import pytest
from ompy.frameworks.btl import GET, PUT

from tests.sim.ob1.programs import one_message
from tests.support.failing_rails import READ, WRITE, FailingRail, failing_world

OURS = {"LEAVE", "FINAL_BARRIER", "CREDIT"}  # pml/ob1/README.md, pml/bfo/README.md
RIGHT, LEFT = 0, 1  # from the sender, to it
STREAM = FailingRail(flags=0, eager_limit=1024, rndv_eager_limit=500, max_send_size=2048)
# rail, bytes of the message, and what the drawing has from top to bottom
DRAWINGS: dict[str, tuple[FailingRail, int, list[tuple[str, int]]]] = {
    "MATCH": (STREAM, 900, [("MATCH", RIGHT)]),
    "several fragments": (
        STREAM,
        500 + 3 * 2016,
        [("RNDV", RIGHT), ("ACK", LEFT), *[("FRAG", RIGHT)] * 3],
    ),
    "put": (
        FailingRail(flags=PUT, put_limit=4500),
        9_000,
        [
            ("RNDV", RIGHT),
            ("PUT", LEFT),
            ("PUT", LEFT),
            (WRITE, RIGHT),
            (WRITE, RIGHT),
            ("FIN", RIGHT),
            ("FIN", RIGHT),
        ],
    ),
    "get": (FailingRail(flags=GET), 9_000, [("RGET", RIGHT), (READ, LEFT), ("FIN", LEFT)]),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_what_goes_over_the_rail(name: str) -> None:
    rail, size, expected = DRAWINGS[name]
    job = failing_world([one_message(size)] * 2, [rail])
    assert [(what, who) for what, who, _ in job.net.log if what not in OURS] == expected
