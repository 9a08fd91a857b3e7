"""The traffic as JSON and as CSV, for programs."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any, Final

from ompy_pml_monitoring.counts import FORMAT, KINDS
from ompy_pml_monitoring.traffic import Side, Traffic

CSV_HEAD: Final = (
    "kind",
    "source",
    "target",
    "sent_messages",
    "sent_bytes",
    "received_messages",
    "received_bytes",
)


def as_json(traffic: Traffic) -> str:
    """One object; matrices have a row for each sender and a column for each receiver.

    `sizes` maps the least size of each power-of-two range to the messages sent in it.
    """
    told: dict[str, Any] = {
        "format": FORMAT,
        "ranks": traffic.ranks,
        "missing": {str(rank): reason for rank, reason in sorted(traffic.missing.items())},
    }
    for kind in KINDS:
        told[kind] = {
            "sent": traffic.sent[kind]._asdict(),
            "received": traffic.received[kind]._asdict(),
            "sizes": {
                str(1 << bits >> 1): count
                for bits, count in enumerate(traffic.sizes[kind])
                if count
            },
        }
    return json.dumps(told) + "\n"


def as_csv(traffic: Traffic) -> str:
    """A line for each kind and pair of ranks with messages; empty where nobody counted."""
    import csv

    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    every = range(traffic.ranks)
    for kind in KINDS:
        for source in every:
            for target in every:
                sent = _cells(traffic, traffic.sent[kind], source, target, source)
                received = _cells(traffic, traffic.received[kind], source, target, target)
                if any((*sent, *received)):
                    writer.writerow([kind, source, target, *sent, *received])
    return file.getvalue()


def _cells(traffic: Traffic, side: Side, source: int, target: int, counter: int) -> list[Any]:
    """Messages and bytes of a pair, as rank `counter` counted them."""
    if counter in traffic.missing:
        return ["", ""]
    return [side.messages[source][target], side.bytes[source][target]]
