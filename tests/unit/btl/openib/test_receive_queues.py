"""The grammar of receive_queues: every rule of reference openmpi.md 5.2."""

from __future__ import annotations

import pytest
from ompy_components.btl.openib.queues.receive_queues import (
    BadReceiveQueues,
    PerPeer,
    Shared,
    canonical,
    default,
    parse_receive_queues,
)


def one(text: str) -> PerPeer | Shared:
    entries, _ = parse_receive_queues(text, 1)
    (entry,) = entries
    return entry


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P,128", PerPeer(128, 256, 192, 128, 4)),
        ("P,128,256,192,128", PerPeer(128, 256, 192, 128, 4)),  # Open MPI 1.8's first entry
        ("P,4096,8", PerPeer(4096, 8, 6, 4, 4)),
        ("P,64,10,2,3,5", PerPeer(64, 10, 2, 3, 5)),
        ("P,64,10,3", PerPeer(64, 10, 3, 7, 2)),  # 14 would be waited for for ever
        ("P,64,1", PerPeer(64, 1, 0, 1, 2)),
        ("S,128", Shared(128, 256, 192, 48, 64, 12)),
        ("S,128,256,192,128", Shared(128, 256, 192, 128, 64, 12)),  # Open MPI 4.1's first entry
        ("S,65536,1024,1008,64", Shared(65536, 1024, 1008, 64, 256, 48)),
        ("S,64,4,1,2,3,2", Shared(64, 4, 1, 2, 3, 2)),
        ("S,64,1", Shared(64, 1, 0, 1, 1, 1)),
    ],
)
def test_fields_and_their_defaults(text: str, expected: PerPeer | Shared) -> None:
    assert one(text) == expected
    assert one(expected.text) == expected, "with every field it says the same"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begins with ''"),
        ("Q,128", "begins with 'Q'"),
        ("p,128", "begins with 'p'"),
        ("P", "1 to 5 numbers, not 0"),
        ("P,1,2,1,1,1,1", "1 to 5 numbers, not 6"),
        ("S,1,2,1,1,1,1,1", "1 to 6 numbers, not 7"),
        ("P,1k", "'1k' is no number"),
        ("P,-5", "'-5' is no number"),
        ("P,128,", "'' is no number"),
        ("P,0", "buffers of 0 bytes"),
        ("P,128,4,4", "num, 4, has to be more than low, 4"),
        ("S,128,4,5", "num, 4, has to be more than low, 5"),
        ("P,128,2048", "a header can name 2047 credits"),
        ("S,128,4,1,0", "nothing could ever be sent"),
        ("S,128,4,1,1,5", "rd_init is 5"),
        ("S,128,4,1,1,0", "rd_init is 0"),
        ("S,128,4,1,1,1,5", "srq_limit is 5"),
        ("X,128,4", "XRC"),
        ("P,256:P,128", "sizes have to ascend"),
        ("P,256:S,256", "sizes have to ascend"),
        (":".join(f"P,{size}" for size in range(1, 18)), "17 entries"),
    ],
)
def test_what_breaks_a_rule_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(BadReceiveQueues, match=reason):
        parse_receive_queues(text, 1)


def test_the_largest_has_room_for_every_fragment() -> None:
    with pytest.raises(BadReceiveQueues, match=r"room for 4096 bytes.*up to 65536"):
        parse_receive_queues("P,128:S,4096", 65536)
    assert parse_receive_queues("P,128:S,65536", 65536)[1] == []
    ((warning,)) = parse_receive_queues("P,128:S,70000", 65536)[1]
    assert "never used" in warning


def test_the_default_is_that_of_open_mpi_4_1() -> None:
    assert default(12288, 65536) == (
        "S,128,256,192,128:S,2048,1024,1008,64:S,12288,1024,1008,64:S,65536,1024,1008,64"
    )


@pytest.mark.parametrize("eager", [128, 129, 1000, 4096, 12288, 100_000])
@pytest.mark.parametrize("largest", [256, 12288, 65536])
def test_the_default_fits_all_limits(eager: int, largest: int) -> None:
    entries, warnings = parse_receive_queues(default(eager, largest), max(eager, largest))
    assert not warnings
    assert all(isinstance(entry, Shared) for entry in entries)
    assert canonical(parse_receive_queues(canonical(entries), 1)[0]) == canonical(entries)
