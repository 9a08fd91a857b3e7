#!/usr/bin/env python3
"""10,000 small worlds of the conduits gemini and aries, over NICs that refuse and are late.

    python tools/sweep conduit             all of them: some two minutes of one core
    python tools/sweep conduit --worlds N  the first N
    python tools/sweep conduit --world N   one again

What a world is stands in `tests/support/conduit_random.py`, what a sweep does in `worlds.py`.
When all have passed, `docs/conduit-sweep.md` is written.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.support import conduit_random
from tools.sweep.worlds import Sums, WorldSweep, main, stayed_zero

HEADING: Final = """\
# The sweep of the conduits

`tests/support/conduit_random.py` says what a world is: two to four ranks, a host or two, one to three credits, pools of one or many, memory of all three consistencies, NICs that refuse and are late.
No message was lost, doubled or altered, each get found what was put, and in the end no credit was missing and nothing stood in line."""  # noqa: E501 - a paragraph of Markdown
COLUMNS: Final = {  # heading: counters that are summed
    "worlds": ("worlds",),
    "requests": ("requests",),
    "replies": ("replies",),
    "puts": ("puts",),
    "gets": ("gets",),
    "waits for a credit": ("am_credit_stalls",),
    "in line": ("messages_in_line",),
    "events lost": ("message_events_lost",),
    "refused messages": ("smsg_send_retries", "post_fma_retries"),
    "refused posts": ("post_fma_retry", "post_rdma_retry"),
    "waits for a descriptor": ("alloc_pd_stall",),
}
WANTED: Final = ("requests", "replies", "puts", "gets", "am_credit_stalls")


def run(number: int) -> tuple[str, Counter[str]]:
    """One world: its class, and what it counted."""
    made, counted = conduit_random.world(number)
    if made.messages == "pshm":  # nothing is registered that anybody puts to
        return f"{made.name}, pshm", counted
    return f"{made.name}, {made.messages}, {made.settings['mem_consistency']}", counted


def show(number: int) -> None:
    """Run one world and show it."""
    print(conduit_random.design(number))
    print(dict(run(number)[1]))


def silent(sums: Sums) -> list[str]:
    """What classes of worlds have not seen of what they are there for."""
    return stayed_zero(sums, WANTED)


CONDUITS: Final = WorldSweep(
    name="conduit",
    worlds=10_000,  # arbitrary: what the project promises
    shard=120,  # arbitrary: twenty turns of all classes
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(CONDUITS, __doc__ or "")
