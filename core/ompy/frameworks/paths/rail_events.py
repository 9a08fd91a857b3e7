"""What became of a rail: what a PML that fails over tells users of.

One event for each time a path to a peer broke, on the rank that noticed. It is told when that
happens and once more when the path is healed; at the end of the job all of them are the report.

Source: seed bfo (2).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RailEvent:
    """A path that broke.

    Attributes:
        rank, peer: ranks in the world: who noticed, and to whom the path led.
        rail: the BTL and its interface, in the BTL's words.
        cause: why it was given up, in words.
        noticed: when, ns of the rank's engine.
        messages: of them, and pieces of them, those sent again over other rails, in whole or in
            part, or asked for again.
        bytes: of them that had been sent over this rail, or may have been, and went again.
        pause: ns until the first of those messages went on, 0 when nothing was under way.
        healed: when it could be used again, ns of the rank's engine; 0 while it cannot.
        last: no other was left, so what was under way failed and nothing went again.
    """

    rank: int
    peer: int
    rail: str
    cause: str
    noticed: int
    messages: int = 0
    bytes: int = 0
    pause: int = 0
    healed: int = 0
    last: bool = False
