"""The report in its forms: exact for a small job, folded for a large one."""

from __future__ import annotations

import pytest

from ompy_pml_monitoring.counts import Counts
from ompy_pml_monitoring.export import as_csv
from ompy_pml_monitoring.table import (
    BYTE_UNITS,
    COUNT_UNITS,
    bucket_name,
    matrix_lines,
    scaled,
    text,
)
from ompy_pml_monitoring.traffic import Traffic

REPORT = """\
monitoring: what 4 rank(s) sent each other; rows send, columns receive
(. no message; k, M, G: powers of 1000 for messages, of 1024 for bytes)

user messages (by the program): 12348 with 5246979 bytes

messages    0    1    2    3  sum
       0    .  12k    .    .  12k
       1    .    .    .    .    .
       2    .    .    .    1    1
       3    .    .    .    2    2
     sum    .  12k    .    3  12k

   bytes     0     1     2     3   sum
       0     .   12K     .     .   12K
       1     .     .     .     .     .
       2     .     .     .     0     0
       3     .     .     .  5.0M  5.0M
     sum     .   12K     .  5.0M  5.0M

internal messages (inside collectives and the like): 1 with 0 bytes

messages    0    1    2    3  sum
       0    .    .    .    .    .
       1    .    .    .    .    .
       2    .    .    .    .    .
       3    1    .    .    .    1
     sum    1    .    .    .    1

message size  user  internal
           0     1         1
           1   12k         .
       2M-4M     2         .
"""


def reports(ranks: int) -> dict[int, Counts]:
    return {rank: Counts(ranks) for rank in range(ranks)}


def send(made: dict[int, Counts], source: int, target: int, tag: int, size: int) -> None:
    if source in made:
        made[source].note_sent(target, tag, size)
    if target in made:
        made[target].note_received(source, tag, size)


def test_a_small_job() -> None:
    made = reports(4)
    for _ in range(12_345):
        send(made, 0, 1, 0, 1)
    send(made, 2, 3, 0, 0)
    for _ in range(2):
        send(made, 3, 3, 9, 2_617_317)
    send(made, 3, 0, -10, 0)
    report = text(Traffic(4, made, {}), 100)
    assert report.splitlines() == REPORT.splitlines()


@pytest.mark.parametrize(
    ("value", "count", "volume"),
    [
        (0, "0", "0"),
        (9_999, "9999", "9999"),
        (10_000, "10k", "9.8K"),
        (99_499, "99k", "97K"),
        (999_499, "999k", "976K"),
        (999_500, "1.0M", "976K"),
        (1_048_063, "1.0M", "1023K"),
        (1_048_064, "1.0M", "1.0M"),
        (9_949_999, "9.9M", "9.5M"),
        (9_950_001, "10M", "9.5M"),
        (1 << 40, "1.1T", "1.0T"),
        (1 << 63, "9.2E", "8.0E"),
    ],
)
def test_numbers_are_short(value: int, count: str, volume: str) -> None:
    assert (scaled(value, COUNT_UNITS), scaled(value, BYTE_UNITS)) == (count, volume)


def test_every_number_fits_its_column() -> None:
    values = [
        base**power * n - 1 for base in (2, 10) for power in range(19) for n in (1, 3, 99, 1001)
    ]
    assert max(len(scaled(v, units)) for v in values for units in (COUNT_UNITS, BYTE_UNITS)) == 5


def test_names_of_sizes() -> None:
    names = [bucket_name(bits) for bits in (0, 1, 2, 3, 10, 11, 20, 21, 41, 64)]
    expected = ["0", "1", "2-3", "4-7", "512-1023", "1K-2K", "512K-1M", "1M-2M", "1T-2T", "8E-16E"]
    assert names == expected


@pytest.mark.parametrize("ranks", [1, 2, 15, 32, 200])
@pytest.mark.parametrize("width", [0, 40, 80, 100])
def test_folding_keeps_every_cell(ranks: int, width: int) -> None:
    cells = [[f"{row}.{column}"[-5:] for column in range(ranks + 1)] for row in range(ranks + 1)]
    lines = list(matrix_lines("bytes", cells, width))
    if width:
        assert max(map(len, lines)) <= width
    blocks = "\n".join(lines).split("\n\n")
    assert len(blocks) == 1 or width, "nothing is folded that need not be"
    seen: list[list[str]] = [[] for _ in cells]
    heads: list[str] = []
    for block in blocks:
        title, *rows = [line.split() for line in block.splitlines()]
        assert title[0] == "bytes"
        heads += title[1:]
        assert [row[0] for row in rows] == [*map(str, range(ranks)), "sum"]
        for row_seen, row in zip(seen, rows, strict=True):
            row_seen.extend(row[1:])
    assert heads == [*map(str, range(ranks)), "sum"]
    assert seen == cells
    columns = [len(block.splitlines()[0].split()) for block in blocks]
    assert len(columns) < 2 or columns[0] == columns[-2], "blocks are about as wide"


def test_a_job_of_32_ranks_takes_two_blocks() -> None:
    made = reports(32)
    for source in range(32):
        send(made, source, (source + 1) % 32, 0, 100)
    lines = text(Traffic(32, made, {}), 100).splitlines()
    assert max(map(len, lines)) <= 100
    assert sum(line.startswith("messages") for line in lines) == 2


def test_a_missing_rank_is_named_and_its_row_is_what_others_received() -> None:
    made = reports(3)
    del made[1]
    send(made, 1, 0, 0, 7)
    send(made, 1, 2, 0, 9)
    send(made, 0, 1, 0, 5)
    traffic = Traffic(3, made, {1: "it fell asleep"})
    assert traffic.known("user").bytes == [[0, 5, 0], [7, 0, 9], [0, 0, 0]]
    assert traffic.sent["user"].bytes[1] == [0, 0, 0]
    assert not traffic.lost(), "nobody knows what rank 1 received"
    assert text(traffic, 100).splitlines()[-2:] == [
        "no counts of rank 1: it fell asleep",
        "the rows of these ranks show what the others received from them",
    ]


def test_the_list_of_what_is_lost_is_short() -> None:
    made = reports(5)
    for source in range(5):
        for target in range(5):
            made[source].note_sent(target, 0, source)
    lines = [line for line in text(Traffic(5, made, {}), 100).splitlines() if "not rec" in line]
    assert len(lines) == 11
    assert lines[0].endswith("1 user message(s) of 0 bytes from rank 0 to rank 0")
    assert lines[-1] == "sent and not received: more between 15 other pairs of ranks"


def test_a_job_without_messages() -> None:
    lines = text(Traffic(2, reports(2), {}), 100).splitlines()
    assert lines[3:] == [
        "user messages (by the program): none",
        "",
        "internal messages (inside collectives and the like): none",
    ]


def test_csv() -> None:
    made = reports(3)
    send(made, 0, 1, 5, 100)
    send(made, 0, 1, 5, 11)
    send(made, 2, 2, -10, 0)
    del made[1]
    assert as_csv(Traffic(3, made, {1: "gone"})).splitlines() == [
        "kind,source,target,sent_messages,sent_bytes,received_messages,received_bytes",
        "user,0,1,2,111,,",
        "internal,2,2,1,0,1,0",
    ]
