"""The lettered steps of one message, each with the calls to the BTL that it made."""

from __future__ import annotations

from typing import Any

from tests.support.btl_journal import LAYER

SIDES = ("send", "receive")  # by rank
# step events of ob1 that go with a call to a BTL, and how that call reads
OUTGOING = {
    "send": {
        "MATCH": "tag = MATCH",
        "RNDV": "tag = RNDV",
        "RGET": "tag = RGET",
        "FRAG": "tag = FRAG",
        "WRITE": "btl_put",
    },
    "receive": {"ACK": "tag = ACK", "PUT": "tag = PUT", "READ": "btl_get"},
}

Row = tuple[str, str]  # the letter, empty for a call that is no step of ob1's by itself; what


def rows(job: Any, rank: int) -> list[Row]:
    """What one side did, in its order."""
    events = list(job.traces[rank])
    outgoing = dict(OUTGOING[SIDES[rank]])
    if any(event.layer == LAYER and "tag = FIN" in event.name for event in events):
        outgoing["FIN"] = "tag = FIN"  # from who has put, or has got
    found: list[Row] = []
    letters: list[tuple[str, str]] = []  # of steps whose call is still to come
    for event in events:
        values = dict(event.fields)
        if event.layer == LAYER:
            due = [entry for entry in letters if entry[1] in event.name]
            found.append((due[0][0] if due else "", event.name))
            if due:
                letters.remove(due[0])
        elif "step" in values and event.name in outgoing:
            letter, call = str(values["step"]), outgoing[event.name]
            made = [n for n, row in enumerate(found) if not row[0] and call in row[1]]
            if made:
                found[made[0]] = (letter, found[made[0]][1])
            else:
                letters.append((letter, call))
        elif "step" in values:
            what = "complete" if event.name == "COMPLETE" else f"takes in {event.name}"
            found.append((str(values["step"]), what))
    assert not letters, f"steps without a call: {letters}"
    return found


def table(text: str) -> dict[str, list[Row]]:
    """Rows of letter, side and what, by side."""
    found: dict[str, list[Row]] = {side: [] for side in SIDES}
    for line in text.strip().splitlines():
        letter, side, what = line.split(maxsplit=2)
        found[side].append((letter, what))
    return found
